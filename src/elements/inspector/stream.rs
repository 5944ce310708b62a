//! The stream of a running inspector: each frame is judged, and its result is sent.

use std::sync::Arc;

use gst::{glib::subclass::ObjectImplRef, prelude::*, subclass::prelude::*};
use gst_base::prelude::*;

use super::{
    COUNTS, Comparing, GoodFrame, InspectorImpl, TrainingFrame,
    blind::Blindness,
    classify::{Classifier, Rules, features, record},
    follow::Place,
    learn::{Finding, Judge, Learning as LimitLearning, NewLimits},
    masks::Masks,
    properties::{DrawnPicture, Output, ReportSettings, UsableReportSettings},
};
use crate::elements::{
    base_filter::{
        ClBaseFilter, ClBaseFilterExt, Frame, FrameStream, InForce, Learning, Live, MessageGate,
        Negotiated, View, before_caps, put_back, refuse,
    },
    lock,
    saver::Saver,
};
use clinspect_core::{
    ClError,
    components::{Finder, Listed},
    ignored::Bitmap,
    learning::{Contrasts, Demand},
    reference::Step,
    window::Reach,
};
use clinspect_opencl::Meter;
use clinspect_operators::{Basis, FrameParts, Inspection, JudgedPart, Limit, Marked, Picture};
use clinspect_results::{AlignStep, Alignment, BlindLimit, DefectResult, Part, Parts, Verdict};

/// The work of a running inspector.
pub struct InspectorStream<C: Comparing> {
    pub(super) element: ObjectImplRef<C::Element>,
    pub(super) live: Live<C::Settings, C::Operator>,
    pub(super) own: C,
    /// The properties of every inspector, as they were before the frame, and their revision.
    pub(super) reporting: UsableReportSettings,
    revision: Option<u64>,
    pub(super) classifier: Live<Rules, Classifier>,
    /// `None` if no limits are learned and none were.
    pub(super) limits: Option<LimitLearning<C::Settings>>,
    /// Size of the frames and bits of their samples.
    pub(super) frames: ([usize; 2], u32),
    pub(super) saver: Saver,
    /// What is sent, since the start.
    output: Output,
    pub(super) masks: Option<Masks>,
    /// The open defects of the web.
    pub(super) finder: Finder,
    /// The id of the defect that was listed last.
    last_id: u32,
    ignored: Option<(Arc<Bitmap>, gst::Buffer)>,
    gate: MessageGate,
    blindness: Blindness,
    /// The limit that sees best, if it is blind.
    blind: Option<BlindLimit>,
    /// With which operator and whether while limits are learned [`Self::blind`] is found, if it is the same for all frames.
    blind_of: Option<(u64, bool)>,
    /// Where the part lies that the regions follow.
    pub(super) place: Place,
    /// The verdict on the last frame, and whether the frame was corrupted.
    last: Option<(Verdict, bool)>,
    /// Numbers of the operator and the classifier of [`Self::names`]; `None` if these are unknown.
    named: Option<[u64; 2]>,
    names: Names,
    /// The element's counters, since caps.
    meter: Option<Arc<Meter>>,
    /// The frame of a training that is being judged.
    pub(super) kept: Option<(TrainingFrame<C::Operator>, Finding)>,
}

impl<C: Comparing> InspectorStream<C> {
    /// The element starts; `own` is its part of the stream.
    pub fn open(element: &C::Element, own: C) -> Box<Self> {
        let inspector = element.inspector();
        let output = lock(&inspector.reporting).output;
        *lock(&inspector.output) = Some(output);
        let object = element.obj();
        let object: &ClBaseFilter = object.upcast_ref();
        // With a meta the frame passes in place, without a copy.
        object.set_in_place(output == Output::Frame);
        Box::new(Self {
            live: Live::new(object),
            own,
            reporting: ReportSettings::default().usable(),
            revision: None,
            classifier: Live::new(object),
            limits: None,
            frames: ([0; 2], 0),
            saver: Saver::default(),
            output,
            masks: None,
            finder: Finder::default(),
            last_id: 0,
            ignored: None,
            gate: MessageGate::default(),
            blindness: Blindness::default(),
            blind: None,
            blind_of: None,
            place: Place::default(),
            last: None,
            named: None,
            names: Names::default(),
            meter: None,
            kept: None,
            element: element.ref_counted(),
        })
    }

    /// Takes the properties of every inspector as they are now, and the signals: a strip may have waited since
    /// [`Self::follow`].
    fn read_properties(&mut self) -> Result<(), ClError> {
        let object = self.element.obj();
        let revision = object.upcast_ref::<ClBaseFilter>().revision();
        if self.revision == Some(revision) {
            return Ok(());
        }
        self.revision = Some(revision);
        let inspector = self.element.inspector();
        let (reporting, refusals) = {
            let mut now = lock(&inspector.reporting);
            let refusals = now.take_refusals();
            (now.usable(), refusals)
        };
        for refusal in refusals {
            refuse(object.upcast_ref(), &refusal, || ());
        }
        self.reporting = reporting;
        let rules = self.reporting.rules.clone();
        let last = &mut self.revision;
        self.classifier.apply(rules, |refused, in_force| {
            put_back(&mut lock(&inspector.reporting).rules, refused, in_force);
            *last = None;
        })?;
        self.take_requests()
    }

    /// Number of frames that were kept during a training and are not judged yet.
    pub(super) fn kept(&self) -> usize {
        self.own.kept() + usize::from(self.kept.is_some())
    }

    /// Number of good frames that are missing; 0 if no limits are being learned.
    pub(super) fn missing(&self) -> usize {
        self.limits.as_ref().map_or(0, LimitLearning::missing)
    }

    /// Sets the properties of limits.
    pub(super) fn set_limits(&self, limits: &[(Limit, f64)]) {
        self.element.set_limits(limits);
        self.element.obj().upcast_ref::<ClBaseFilter>().revise();
    }

    /// Sets the properties of learned limits, and posts and writes them. `operator` has compared a frame as will be done
    /// from now on, unless the one in force has.
    pub(super) fn apply(
        &mut self,
        learned: &NewLimits,
        operator: Option<&mut dyn Inspection>,
    ) -> Result<(), ClError> {
        let limits: Vec<_> = learned.values().collect();
        self.set_limits(&limits);
        let values: Vec<f64> = limits.iter().map(|(_, value)| *value).collect();
        let in_force = self.live.in_force()?;
        self.own
            .set_contrasts(&self.element, in_force, learned.contrasts);
        let sights = match operator {
            Some(operator) => operator.sights(Some(&values))?,
            None => in_force.operator.sights(Some(&values))?,
        };
        let element = self.element.obj();
        learned.post::<C::Element>(element.upcast_ref(), &sights);
        self.save_limits(learned)
    }

    /// Marks the defects of a frame, and lists them if a list is wanted.
    fn inspect(&mut self, frame: &Frame, frame_number: u64) -> Result<Inspected, ClError> {
        let mut limits = self.reporting.listing;
        let of_frames = self.listing_of_frames();
        let has_kept = self.kept() > 0;
        let own = &mut self.own;
        let finder = &mut self.finder;
        let is_web = frame.window.is_web;
        if !is_web {
            // A frame ends before anything has to be closed by force.
            limits.max_defect_rows = u32::MAX;
        } else if limits.max_defects == 0 {
            // Without a list nobody sees whether open defects continue.
            finder.reset();
        }
        let output = self.output;
        let in_force = self.live.in_force()?;
        let classifier = &self.classifier.in_force()?.operator;
        let place = &self.place;
        // The frames that were kept come first.
        let may_count = !frame.is_corrupted && !has_kept && place.unplaced.is_none();
        let learning = self.limits.as_mut().filter(|_| may_count);
        let judge = Judge {
            rules: &self.reporting.rules,
            classifier,
            listing: &of_frames,
        };
        let masks = self.masks.as_ref().ok_or_else(before_caps)?;
        let ((marked, listed, demands), mask) = masks.write(frame, |mask, picture| {
            let subject = frame.subject();
            let mut demands = None;
            if let Some(learning) = learning
                && learning.counts::<C>(&in_force.settings, &judge)
            {
                if let Some(together) = own.together() {
                    let InForce {
                        operator, settings, ..
                    } = &mut *in_force;
                    let good = GoodFrame {
                        number: frame_number,
                        subject,
                        under: judge.under::<C>(settings),
                        wanted: learning.learner().wanted(),
                        ignored: place.ignored.as_ref(),
                    };
                    together.gather(operator, good)?;
                } else if let Some(found) = judge.demands(&mut in_force.operator, subject, mask)? {
                    demands = Some((found, C::contrasts(in_force, subject)?));
                }
            }
            let InForce {
                operator, settings, ..
            } = &mut *in_force;
            // The frame itself is judged by the limits in force.
            let marked = operator.mark(subject, mask)?;
            let is_listed = marked.pixels > 0 || (is_web && finder.has_open());
            let listed = if is_listed && limits.max_defects > 0 {
                if !is_web {
                    finder.reset();
                }
                operator.list(subject, mask, finder, &limits)?
            } else {
                // Without a list, any marked pixel means overflow.
                Listed {
                    overflow: marked.pixels > 0,
                    ..Listed::default()
                }
            };
            if let (Some(out), Output::Picture(kind)) = (picture, output) {
                let picture = match kind {
                    DrawnPicture::Model => Picture::Model,
                    DrawnPicture::Difference => Picture::Difference(C::difference_gain(settings)),
                };
                operator.draw(subject, picture, out)?;
            }
            Ok((marked, listed, demands))
        })?;
        Ok(Inspected {
            marked,
            listed,
            demands,
            mask,
        })
    }
}

/// Names in results, the threshold, and the other settings in words.
#[derive(Default)]
struct Names {
    classes: Vec<String>,
    channels: Vec<String>,
    threshold: f64,
    settings: String,
}

/// What was found in a frame.
struct Inspected {
    marked: Marked,
    listed: Listed,
    /// What the frame demands of the limits, and the contrasts of its pattern, if limits are learned from it.
    demands: Option<(Vec<Demand>, Contrasts)>,
    /// The mask, if it is sent as a meta.
    mask: Option<gst::Buffer>,
}

impl<C: Comparing> FrameStream for InspectorStream<C> {
    fn negotiate(&mut self, caps: &Negotiated) -> Result<(), ClError> {
        let inspector = self.element.inspector();
        let reporting = lock(&inspector.reporting).clone();
        reporting.check()?;
        self.meter = Some(caps.importer.meter().clone());
        self.kept = None;
        self.own.negotiate(&self.element, caps);
        let before = self.limits.take();
        if before.is_some_and(|limits| limits.is_unfinished()) {
            inspector.learning.request();
        }
        // Requests of the last frames are taken with the next one.
        self.revision = None;
        lock(&inspector.ignore).read_again();
        self.classifier.start(reporting.rules, Classifier::new)?;
        self.masks = Some(match self.output {
            Output::Frame => Masks::in_meta(caps)?,
            Output::Mask => Masks::as_buffers(caps)?,
            Output::Picture(_) => Masks::with_pictures(caps)?,
        });
        let settings = self.own.settings(&self.element);
        let target = caps.target.clone();
        self.live.start(settings, move |settings| {
            let operator = C::build(&target, settings)?;
            target.check_reach(&operator.reach())?;
            Ok(operator)
        })?;
        let layout = &caps.target.layout;
        self.frames = ([layout.width, layout.height], layout.sample.bits());
        let has_file = self.read_limits()?;
        // A file that cannot be used is not replaced unasked: these frames need not be good.
        if !has_file && C::lacks_limits(self.live.in_force()?) {
            self.element.inspector().learning.request();
        }
        Ok(())
    }

    fn follow(&mut self, revision: u64) -> Result<(), ClError> {
        let (own, element) = (&self.own, &self.element);
        let wanted = || own.settings(element);
        self.live.follow(revision, wanted, |refused, in_force| {
            C::restore(element, refused, in_force);
        })
    }

    fn reach(&self) -> Reach {
        let in_force = self.live.get();
        in_force.map_or_else(Reach::default, |in_force| in_force.operator.reach())
    }

    fn learning(&self) -> Learning {
        let in_force = self.live.get();
        in_force.map_or(Learning::Off, |in_force| self.own.learning(in_force))
    }

    fn learn(&mut self, view: &View) -> Result<(), ClError> {
        self.own.learn(&self.element, &mut self.live, view)
    }

    fn leave_out(&mut self) {
        self.own.leave_out();
    }

    fn begin_web(&mut self) {
        self.finder.reset();
    }

    fn end(&mut self) {
        while let Some(meter) = self.meter.clone().filter(|_| self.kept() > 0) {
            // The stream has ended, so no frame waits.
            if let Err(error) = self.judge_kept(&meter) {
                let element = self.element.obj();
                let element: &ClBaseFilter = element.upcast_ref();
                gst::element_warning!(
                    element,
                    gst::LibraryError::Failed,
                    ("nothing was learned from the frames of the training: {error}")
                );
                break;
            }
        }
        if let Err(error) = self.take_lesson(true) {
            self.warn_unlearned(&error.to_string());
        }
        self.own.end(&self.element);
        if let Some(why) = self.why_unfinished() {
            let element = self.element.obj();
            let element: &ClBaseFilter = element.upcast_ref();
            gst::element_warning!(element, gst::StreamError::Format, ("{why}"));
        }
    }

    fn process(&mut self, frame: &mut Frame) -> Result<Option<gst::Event>, ClError> {
        self.read_properties()?;
        if self.limits.is_some() {
            self.take_lesson(false)?;
        }
        let object = self.element.obj().clone();
        let element: &ClBaseFilter = object.upcast_ref();
        let frame_number = element.frame_number(frame.buffer());
        let missing = self.missing();
        if missing > 0 && self.own.training().is_some() {
            let operator = &mut self.live.in_force()?.operator;
            (self.own).keep(operator, frame_number, frame.subject(), missing)?;
        }
        self.own.prepare(&self.element, self.live.in_force()?);
        if self.kept() > 0 {
            self.judge_kept(frame.meter())?;
        }
        self.follow_part(frame)?;
        let Inspected {
            marked,
            listed,
            demands,
            mask,
        } = self.inspect(frame, frame_number)?;
        if let Some(demands) = demands {
            self.count(frame_number, &demands)?;
        }
        let progress = self.limits.as_ref().filter(|_| missing > 0);
        let progress = progress.map(LimitLearning::progress).map(|[good, wanted]| {
            let kept = self.kept() + self.gathered();
            let kept = u32::try_from(kept).unwrap_or(u32::MAX);
            [good.saturating_add(kept).min(wanted), wanted]
        });
        let missing_frames = match self.missing() {
            0 => 0,
            missing => missing.saturating_sub(self.gathered()),
        };
        let in_force = self.live.in_force()?;
        let (reports, mm_per_pixel) = (&self.reporting.reports, self.reporting.mm_per_pixel);
        let is_scaled = mm_per_pixel.iter().all(|&mm| mm > 0.0);
        let mean_level = if is_scaled && !listed.defects.is_empty() {
            in_force.operator.mean_level()?
        } else {
            // The visibility of a defect is not computed, so the device is not read.
            None
        };
        let Basis {
            judged,
            pitches: [pitch_x, pitch_y],
            lattice,
            alignment,
            parts,
            ignored,
        } = in_force.operator.basis();
        let InForce {
            operator: classifier,
            number,
            ..
        } = self.classifier.in_force()?;
        let named = [in_force.number, *number];
        // The names go with the result, and come back.
        if self.named.take() != Some(named) {
            self.names = Names {
                classes: classifier.names(),
                channels: C::channels(in_force),
                threshold: C::threshold(in_force),
                settings: C::in_words(in_force),
            };
        }
        let mut names = std::mem::take(&mut self.names);
        let defects = listed.defects.iter().map(|defect| {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            let class = classifier.class_of(&features(defect), defect.is_missing);
            record(defect, self.last_id, class)
        });
        let mut result = DefectResult {
            element: element.name().into(),
            frame_number,
            web: frame.web,
            first_line: frame.first_line(),
            width: frame.info().width(),
            height: frame.info().height(),
            mean_level: mean_level.unwrap_or(0.0),
            pitch_x,
            pitch_y,
            lattice: lattice.map_or_else(Vec::new, |lattice| lattice.vectors().to_vec()),
            threshold: names.threshold,
            alignment: alignment.map(|found| Alignment {
                shift_x: found.shift[0],
                shift_y: found.shift[1],
                match_score: found.score,
                matched: found.is_matched,
                transform: found.transform,
                misfit: found.misfit,
                step: align_step(found.step),
                largest_local_shift: found.largest_local_shift,
            }),
            parts: parts.map(of_frame),
            training: self.own.training(),
            learning: progress,
            blind: None,
            unplaced: self.place.unplaced,
            judged_pixels: judged.any,
            judged_x: judged.x,
            judged_y: judged.y,
            defect_pixels: marked.pixels,
            missing_pixels: marked.missing,
            defects: defects.collect(),
            overflow: listed.overflow,
            mm_per_pixel_x: mm_per_pixel[0],
            mm_per_pixel_y: mm_per_pixel[1],
            class_names: std::mem::take(&mut names.classes),
            channels: std::mem::take(&mut names.channels),
            open_area: listed.largest_open,
            mask,
            corrupted: frame.is_corrupted,
            is_moved: false,
            ignored: ignored.map(|bitmap| as_buffer(&mut self.ignored, bitmap)),
            verdict: Verdict::None,
        };
        result.judge_parts(&classifier.limits);
        result.verdict = Verdict::new(&result, &classifier.limits);
        if result.verdict == Verdict::Pass {
            let of = (in_force.number, result.learning.is_some());
            if self.blind_of != Some(of) {
                let sights = in_force.operator.sights(None)?;
                self.blind = (self.blindness).judge(element, sights, C::Element::CHECK, of.1);
                self.blind_of = Some(of).filter(|_| in_force.operator.sees_all_alike());
            }
            if self.blind.is_some() {
                result.blind.clone_from(&self.blind);
                result.verdict = Verdict::new(&result, &classifier.limits);
            }
        }
        for (name, count) in result.class_counts() {
            element.count_class(name, count);
        }
        result.attach(frame.output()).map_err(|error| {
            ClError::Input(format!("cannot attach a meta to the buffer: {error}"))
        })?;
        let [passed, failed, unjudged, missing] = COUNTS;
        element.set_count(missing, missing_frames as u64);
        element.count(match result.verdict {
            Verdict::Pass => passed,
            Verdict::Fail => failed,
            Verdict::None => unjudged,
        });
        let now = (result.verdict, result.corrupted);
        let changed = self.last.replace(now) != Some(now);
        let times = element.frame_times(frame.buffer());
        // A change of the verdict restarts the interval.
        if self
            .gate
            .opens(&reports.messages, times.running_time, changed)
        {
            let summary = Some(result.summary());
            element.post(
                times.message(element, C::Element::MESSAGE, summary, |fields| {
                    result.write_message(fields);
                    fields.set("settings", &names.settings);
                    if reports.message_defects {
                        fields.set("defects", result.defect_structures());
                    }
                }),
            );
        }
        let event = reports.events.then(|| result.to_event());
        self.named = Some(named);
        self.names = Names {
            classes: result.class_names,
            channels: result.channels,
            ..names
        };
        Ok(event)
    }
}

fn align_step(step: Step) -> AlignStep {
    match step {
        Step::Affine => AlignStep::Affine,
        Step::Shift => AlignStep::Shift,
        Step::Start => AlignStep::Start,
        Step::None => AlignStep::Nothing,
    }
}

fn of_frame(of: FrameParts) -> Parts {
    let part = |part: &JudgedPart| Part {
        x: part.centre[0],
        y: part.centre[1],
        angle: part.angle,
        scale: part.scale,
        score: part.score,
        inside: part.inside,
        poses: part.poses,
        is_cut: part.is_cut,
        judged_pixels: part.judged,
        defect_pixels: part.marked,
        verdict: Verdict::None,
    };
    Parts {
        least: of.wanted[0],
        most: of.wanted[1],
        parts: of.parts.iter().map(part).collect(),
        other: of.other,
    }
}

/// The bitmap as a buffer for metas; the last one is kept.
fn as_buffer(last: &mut Option<(Arc<Bitmap>, gst::Buffer)>, bitmap: Arc<Bitmap>) -> gst::Buffer {
    match last {
        Some((known, buffer)) if Arc::ptr_eq(known, &bitmap) => buffer.clone(),
        _ => {
            let buffer = gst::Buffer::from_slice(bitmap.bytes().to_vec());
            *last = Some((bitmap, buffer.clone()));
            buffer
        }
    }
}
