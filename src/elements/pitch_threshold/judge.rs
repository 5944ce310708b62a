//! From a frame to its mask, its defects and its verdict.

use std::sync::Arc;

use gst::{prelude::*, subclass::prelude::*};
use gst_base::prelude::*;

use super::{
    caps::{self, MaskForm},
    estimate::{Estimation, News},
    imp::{CAT, ClPitchThreshold},
    properties::{PitchOutput, Reporting, Settings},
};
use crate::elements::base_filter::{ClBaseFilterExt, Live, MessageGate};
use clinspect_core::ClError;
use clinspect_core::{mask::pbm_header, pitch::Axis, region::user_region};
use clinspect_opencl::frame::{ClFrame, Importer};
use clinspect_opencl::{ClBuffer, Meter, buffer_of, new_plain_pool};
use clinspect_operators::{Listed, MaskTarget, PitchSettings, PitchThreshold};
use clinspect_results::mask_caps::bitmask;
use clinspect_results::{Defect, DefectResult, FrameTimes, Verdict};

/// Counts in `stats`, one per verdict.
pub(super) const COUNTS: [&str; 3] = ["frames-passed", "frames-failed", "frames-unjudged"];

/// What a stream needs.
pub(super) struct State {
    live: Live<Settings, PitchThreshold>,
    estimation: Estimation,
    /// The operator could not be made for the pitches that are known; the next frame tries again.
    behind: bool,
    output: Output,
    gate: MessageGate,
    verdict: Option<Verdict>,
}

/// How masks are sent.
enum Output {
    Packed,
    Grey(Importer),
    Pbm(String),
    /// In the meta of the frame.
    Meta(MaskPool),
}

/// Packed masks that travel in metas.
struct MaskPool(gst::BufferPool);

impl Drop for MaskPool {
    fn drop(&mut self) {
        // Buffers in flight keep the pool until they come home.
        let _ = self.0.set_active(false);
    }
}

/// What judging leaves behind.
pub(super) struct Judged {
    pub result: DefectResult,
    times: FrameTimes,
}

impl ClPitchThreshold {
    fn build(
        &self,
        settings: &Settings,
        known: [Option<f64>; 2],
    ) -> Result<PitchThreshold, ClError> {
        let element = self.obj();
        let importer = element.importer()?;
        let layout = importer.layout();
        settings.unreadable.check()?;
        let rois = settings
            .rois
            .iter()
            .map(|&roi| user_region(roi, layout.width, layout.height))
            .collect::<Result<_, _>>()
            .map_err(|why| ClError::Refused(format!("rois: {why}")))?;
        let [pitch_x, pitch_y] = pitches(settings, known);
        PitchThreshold::new(
            importer.context(),
            layout,
            &PitchSettings {
                may_be_blind: settings.estimates().contains(&true),
                pitch_x,
                pitch_y,
                multiples: settings.multiples.clone(),
                threshold: settings.threshold,
                compare: settings.compare(),
                match_center: settings.match_center,
                polarity: settings.polarity(),
                rois,
                bit_depth: settings.bit_depth,
                image: element.wants_images(),
                variant: None,
            },
        )
    }

    fn estimation(&self, settings: &Settings) -> Result<Estimation, ClError> {
        let element = self.obj();
        let importer = element.importer()?;
        Estimation::new(importer.context(), importer.layout(), settings.estimates())
    }

    /// Prepares for frames of `incaps`, after the parent class has.
    pub(super) fn set_up(
        &self,
        incaps: &gst::Caps,
        outcaps: &gst::Caps,
        before: Option<State>,
    ) -> Result<State, ClError> {
        let settings = self.settings().clone();
        let estimation = self.estimation(&settings)?;
        self.set_estimated([None; 2]);
        let live = Live::new(settings, |s| self.build(s, [None; 2]))?;
        let element = self.obj();
        let output = if self.output() == PitchOutput::Frame {
            Output::Meta(self.mask_pool(incaps)?)
        } else {
            let importer = element.importer()?;
            match MaskForm::of(outcaps) {
                Some(MaskForm::Packed) => Output::Packed,
                Some(MaskForm::Pbm) => {
                    let layout = importer.layout();
                    Output::Pbm(pbm_header(layout.width, layout.height))
                }
                Some(MaskForm::Grey) => {
                    let info = gst_video::VideoInfo::from_caps(outcaps)
                        .map_err(|_| ClError::Refused(format!("no video format in {outcaps}")))?;
                    Output::Grey(Importer::new(importer.context(), importer.meter(), &info)?)
                }
                None => {
                    return Err(ClError::Refused(format!("no mask has the caps {outcaps}")));
                }
            }
        };
        let (gate, verdict) = before.map(|s| (s.gate, s.verdict)).unwrap_or_default();
        Ok(State {
            live,
            estimation,
            behind: false,
            output,
            gate,
            verdict,
        })
    }

    /// An active pool of packed masks for frames of `caps`.
    fn mask_pool(&self, caps: &gst::Caps) -> Result<MaskPool, ClError> {
        let refused = || ClError::Refused(format!("no mask for frames of {caps}"));
        let mut mask = gst::Caps::new_empty();
        mask.make_mut()
            .append_structure(bitmask(caps.structure(0).ok_or_else(refused)?));
        let size = caps::unit_size(&mask)
            .and_then(|size| u32::try_from(size).ok())
            .ok_or_else(refused)?;
        let pool = new_plain_pool(&self.obj().device()?.allocator, &mask, size, 0)?;
        pool.set_active(true).map_err(|_| refused())?;
        Ok(MaskPool(pool))
    }

    /// Judges a frame; the mask goes into `mask`, or into the result where masks travel as meta.
    pub(super) fn judge(
        &self,
        state: &mut State,
        input: &gst::BufferRef,
        mask: Option<&gst::BufferRef>,
    ) -> Result<Judged, ClError> {
        let element = self.obj();
        self.follow(state)?;
        let (frame, meter, size) = {
            let mut importer = element.importer()?;
            let info = importer.info();
            let size = (info.width(), info.height());
            (importer.import(input)?, importer.meter().clone(), size)
        };
        if state.estimation.is_due() {
            let news = state.estimation.look(&frame, &meter)?;
            self.learn(state, &news)?;
        }

        let reporting = *self.reporting();
        let mut travelling = None;
        let (defect_pixels, listed) = match &state.output {
            Output::Grey(importer) => {
                let mask = importer.output(mask.ok_or_else(no_mask)?)?;
                let target = MaskTarget::Grey(&mask);
                inspect(&mut state.live.operator, &frame, target, &reporting, &meter)?
            }
            Output::Packed => {
                let (buffer, offset) = mask_memory(mask.ok_or_else(no_mask)?)?;
                let target = MaskTarget::Packed { buffer, offset };
                inspect(&mut state.live.operator, &frame, target, &reporting, &meter)?
            }
            Output::Pbm(header) => {
                let (buffer, offset) = mask_memory(mask.ok_or_else(no_mask)?)?;
                let bytes = header.as_bytes();
                buffer.write(offset, bytes, "a PBM header")?;
                let target = MaskTarget::Packed {
                    buffer,
                    offset: offset + bytes.len(),
                };
                inspect(&mut state.live.operator, &frame, target, &reporting, &meter)?
            }
            Output::Meta(pool) => {
                let mask = pool
                    .0
                    .acquire_buffer(None)
                    .map_err(|_| self.no_mask_memory())?;
                let (buffer, offset) = mask_memory(&mask)?;
                let target = MaskTarget::Packed { buffer, offset };
                let done = inspect(&mut state.live.operator, &frame, target, &reporting, &meter)?;
                travelling = Some(mask);
                done
            }
        };
        drop(frame);

        let settings = &state.live.settings;
        let [pitch_x, pitch_y] = state.live.operator.pitches();
        let judged_pixels = state.live.operator.judged_pixels();
        let defects: Vec<Defect> = listed.defects.iter().map(record).collect();
        let verdict = Verdict::new(
            judged_pixels,
            defect_pixels,
            &defects,
            listed.overflow,
            &reporting.limits,
        );
        Ok(Judged {
            result: DefectResult {
                element: element.name().into(),
                frame_number: element.frame_number(input),
                width: size.0,
                height: size.1,
                pitch_x,
                pitch_y,
                threshold: settings.threshold,
                judged_pixels,
                defect_pixels,
                verdict,
                defects,
                overflow: listed.overflow,
                mask: travelling,
            },
            times: FrameTimes::of(input, &element.segment()),
        })
    }

    /// Attaches what was found to the buffer that goes on, and tells it on the bus.
    pub(super) fn report(
        &self,
        state: &mut State,
        judged: &Judged,
        output: &mut gst::BufferRef,
    ) -> Result<(), ClError> {
        let element = self.obj();
        let Judged { result, times } = judged;
        result
            .attach(output)
            .map_err(|error| ClError::Input(format!("the buffer takes no meta: {error}")))?;
        let [passed, failed, unjudged] = COUNTS;
        element.count(match result.verdict {
            Verdict::Pass => passed,
            Verdict::Fail => failed,
            Verdict::None => unjudged,
        });
        let changed = state.verdict.replace(result.verdict) != Some(result.verdict);
        let reporting = *self.reporting();
        // A change starts the interval anew.
        if !reporting.post_messages
            || !state
                .gate
                .opens(times.running_time, reporting.interval, changed)
        {
            return Ok(());
        }
        self.post(times.message(&*element, "clpitchthreshold", |fields| {
            result.write_scalars(fields);
            fields.set("defects", result.defect_structures());
        }));
        Ok(())
    }

    /// Why the pool has no mask.
    fn no_mask_memory(&self) -> ClError {
        let device = self.obj().device();
        let failure = device.and_then(|device| device.allocator.take_failure().map_or(Ok(()), Err));
        failure.err().unwrap_or_else(|| {
            ClError::Input("no memory for a mask: stop and start the pipeline".into())
        })
    }

    fn post(&self, message: gst::Message) {
        if self.obj().post_message(message).is_err() {
            gst::debug!(CAT, imp = self, "no bus takes messages");
        }
    }

    /// Follows changes of properties.
    fn follow(&self, state: &mut State) -> Result<(), ClError> {
        let known = state.estimation.pitches();
        let wanted = state.live.settings.estimates();
        let refusal = state
            .live
            .follow(self.settings_lock(), |s| self.build(s, known))?;
        if let Some(refusal) = refusal {
            self.obj().post_refusal(&refusal);
        }
        if state.live.settings.estimates() != wanted {
            state.estimation = self.estimation(&state.live.settings)?;
            self.set_estimated([None; 2]);
            state.live.remake(|s| self.build(s, [None; 2]))?;
        }
        if state.behind {
            let known = state.estimation.pitches();
            state.live.remake(|s| self.build(s, known))?;
            state.behind = false;
        }
        Ok(())
    }

    /// Goes on with what a look at the frame has found.
    fn learn(&self, state: &mut State, news: &[News]) -> Result<(), ClError> {
        if news.contains(&News::Pitch) {
            let known = state.estimation.pitches();
            self.set_estimated(known);
            gst::info!(CAT, imp = self, "estimated pitches {known:?}");
            state.behind = true;
            match state.live.remake(|s| self.build(s, known)) {
                Err(error @ ClError::Refused(_)) => self.obj().post_refusal(&error),
                result => result?,
            }
            state.behind = false;
            let [x, y] = known.map(|pitch| pitch.unwrap_or(0.0));
            let fields = gst::Structure::builder("clpitchthreshold-pitch")
                .field("estimated-pitch-x", x)
                .field("estimated-pitch-y", y)
                .build();
            self.post(
                gst::message::Element::builder(fields)
                    .src(&*self.obj())
                    .build(),
            );
        }
        for missing in news {
            if let News::Missing(axis) = missing {
                let (name, along) = match axis {
                    Axis::X => ("pitch-x", "rows"),
                    Axis::Y => ("pitch-y", "columns"),
                };
                gst::element_imp_warning!(
                    self,
                    gst::StreamError::Format,
                    (
                        "no repeating pattern was found along {}: set {} where there is one, or \
                         to 0 for no comparison along {}",
                        along,
                        name,
                        along
                    ),
                    ["frames that cannot be judged have the verdict none and a clear mask"]
                );
            }
        }
        Ok(())
    }
}

/// Compares a frame, and lists its defects where a list is wanted.
fn inspect(
    operator: &mut PitchThreshold,
    frame: &ClFrame,
    target: MaskTarget,
    reporting: &Reporting,
    meter: &Arc<Meter>,
) -> Result<(u64, Listed), ClError> {
    let count = operator.run(frame, target, meter)?;
    let listed = if count > 0 && reporting.listing.max_defects > 0 {
        operator.list(frame, target, &reporting.listing, meter)?
    } else {
        // Without a list, whatever is marked is more than it holds.
        Listed {
            overflow: count > 0,
            ..Listed::default()
        }
    };
    Ok((count, listed))
}

/// The pitches in use: set ones, known ones, else 0.
fn pitches(settings: &Settings, known: [Option<f64>; 2]) -> [f64; 2] {
    let pitch = |set: f64, known: Option<f64>| if set < 0.0 { known.unwrap_or(0.0) } else { set };
    [
        pitch(settings.pitch_x, known[0]),
        pitch(settings.pitch_y, known[1]),
    ]
}

fn record(defect: &clinspect_operators::MeasuredDefect) -> Defect {
    let shape = &defect.shape;
    Defect {
        x: shape.x,
        y: shape.y,
        width: shape.width,
        height: shape.height,
        area: shape.area,
        centroid_x: shape.centroid_x as f32,
        centroid_y: shape.centroid_y as f32,
        mean_difference: defect.mean_difference as f32,
        peak_difference: defect.peak_difference as f32,
        polarity: defect.polarity,
    }
}

fn no_mask() -> ClError {
    ClError::Input("the mask has no buffer".into())
}

/// The memory of a mask, and where in it the mask begins.
fn mask_memory(buffer: &gst::BufferRef) -> Result<(&Arc<ClBuffer>, usize), ClError> {
    let memory = (buffer.n_memory() == 1).then(|| buffer.peek_memory(0));
    let (buffer, offset) = memory
        .and_then(|memory| Some((buffer_of(memory)?, memory.offset())))
        .ok_or_else(|| ClError::Input("the mask is not in one OpenCL memory".into()))?;
    buffer.check()?;
    Ok((buffer, offset))
}
