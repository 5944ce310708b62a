//! The template of the elements that mark defects in a mask: list, verdict, counts, metas,
//! messages, events, and the forms in which masks are sent.

mod caps;
mod classify;
pub mod colour;
mod ignore;
mod learn;
mod masks;
pub mod pitches;
pub mod presence;
mod properties;
mod saved;
mod template;

use std::{
    path::Path,
    sync::{Arc, LazyLock, Mutex},
};

use gst::{glib::subclass::ObjectImplRef, prelude::*, subclass::prelude::*};
use gst_base::prelude::*;

use super::{
    base_filter::{
        ClBaseFilter, ClBaseFilterExt, Frame, FrameStream, InForce, Learning, Live, MessageGate,
        Negotiated, Target, View, before_caps, put_back, refuse,
    },
    checked::Checked,
    lock, pad_templates,
    property_table::PropertyTable,
    saver::{Saver, Saving},
};
use classify::{Classifier, Rules, features, record};
use clinspect_core::{
    ClError,
    components::{Finder, Listed},
    ignored::Bitmap,
    learning::Demand,
    reference::Step,
    region::{Rect, check_region, user_region},
    window::Reach,
};
use clinspect_operators::{Basis, Inspection, Limit, Marked, Picture, Subject};
use clinspect_results::{AlignStep, Alignment, DefectResult, Verdict};
pub use ignore::Ignore;
pub use learn::signals as learn_signals;
use learn::{Judge, Learning as LimitLearning, NewLimits, Requests};
use masks::Masks;
pub use properties::{DrawnPicture, Output, OutputChoice, PitchThresholdOutput};
use properties::{PixelSize, Reporting};
use saved::Saved;
pub use template::{Comparing, InspectorImpl, Kept};

/// An inspector's work on a frame, for error messages.
pub const TASK: &str = "judging a frame";
/// Counts of frames by verdict, and the good frames that are missing to learn limits.
pub const COUNTS: [&str; 4] = [
    "frames-passed",
    "frames-failed",
    "frames-unjudged",
    MISSING_FRAMES,
];
const MISSING_FRAMES: &str = "learn-frames-missing";

/// What every inspector has besides its own settings.
#[derive(Default)]
pub struct Inspector {
    reporting: Mutex<Reporting>,
    ignore: Mutex<Ignore>,
    learning: Requests,
    /// The value of `output`, latched at the start.
    output: Mutex<Option<Output>>,
}

impl Inspector {
    /// Pixels that are not judged.
    pub fn ignore(&self) -> Ignore {
        lock(&self.ignore).clone()
    }

    /// Puts the ignored pixels in force back into the properties, as [`Comparing::restore`] does.
    pub fn restore(&self, refused: &Ignore, in_force: &Ignore) {
        put_back(&mut *lock(&self.ignore), refused, in_force);
    }

    /// The value of `output` since the start; later changes do not count.
    fn output(&self) -> Output {
        let started = *lock(&self.output);
        started.unwrap_or_else(|| lock(&self.reporting).output)
    }

    /// See [`ClBaseFilterImpl::check`](super::base_filter::ClBaseFilterImpl::check).
    ///
    /// # Errors
    /// See there.
    pub fn check(&self) -> Result<(), ClError> {
        let reporting = lock(&self.reporting).clone();
        reporting.check()?;
        Classifier::new(&reporting.rules)?;
        self.ignore().check()
    }

    /// Forgets the latched value of `output`.
    pub fn close(&self) {
        *lock(&self.output) = None;
    }

    /// See [`ClBaseFilterImpl::other_caps`](super::base_filter::ClBaseFilterImpl::other_caps).
    pub fn other_caps(&self, direction: gst::PadDirection, caps: &gst::Caps) -> gst::Caps {
        match self.output() {
            Output::Mask => caps::transform(direction, caps),
            Output::Frame => caps.clone(),
            Output::Picture(_) => caps::transform_to_picture(direction, caps),
        }
    }
}

/// The table with the properties that every inspector has.
pub fn with_properties<T: InspectorImpl>(table: PropertyTable<T>) -> PropertyTable<T> {
    table
        .with(
            |this| &this.inspector().reporting,
            properties::rows::<T::Output>(),
        )
        .with(|this| &this.inspector().ignore, ignore::rows())
}

/// Checks regions of interest as far as no frame decides.
///
/// # Errors
/// [`ClError::Refused`] for a region that no frame can have.
pub fn check_regions(rois: &Checked<Vec<[u32; 4]>>) -> Result<(), ClError> {
    rois.check("rois", |rois| {
        rois.iter().copied().try_for_each(check_region)
    })
}

/// The regions of interest in the frames of a target.
///
/// # Errors
/// [`ClError::Refused`] for a region outside the frames.
pub fn regions(rois: &Checked<Vec<[u32; 4]>>, target: &Target) -> Result<Vec<Rect>, ClError> {
    let width = target.layout.width;
    // A web has no last row.
    let height = if target.line_scan {
        1 << 32
    } else {
        target.layout.height
    };
    rois.check("rois", |rois| {
        let rois = rois.iter();
        rois.map(|&roi| user_region(roi, width, height)).collect()
    })
}

/// Pad templates of an inspector.
pub fn templates() -> &'static [gst::PadTemplate] {
    static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> =
        LazyLock::new(|| pad_templates(&caps::sink_template(), &caps::src_template()));
    TEMPLATES.as_ref()
}

/// The work of a running inspector.
pub struct InspectorStream<C: Comparing> {
    element: ObjectImplRef<C::Element>,
    live: Live<C::Settings, C::Operator>,
    own: C,
    /// The properties of every inspector, as they were before the frame.
    reporting: Reporting,
    classifier: Live<Rules, Classifier>,
    limits: LimitLearning<C::Settings>,
    /// Size of the frames and bits of their samples.
    frames: ([usize; 2], u32),
    saver: Saver,
    masks: Option<Masks>,
    /// The open defects of the web.
    finder: Finder,
    /// The id of the defect that was listed last.
    last_id: u32,
    ignored: Option<(Arc<Bitmap>, gst::Buffer)>,
    gate: MessageGate,
    /// The verdict on the last frame, and whether the frame was corrupted.
    last: Option<(Verdict, bool)>,
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
            reporting: Reporting::default(),
            classifier: Live::new(object),
            limits: LimitLearning::default(),
            frames: ([0; 2], 0),
            saver: Saver::default(),
            masks: None,
            finder: Finder::default(),
            last_id: 0,
            ignored: None,
            gate: MessageGate::default(),
            last: None,
            element: element.ref_counted(),
        })
    }

    /// Takes the properties of every inspector as they are now: a strip may have waited since [`Self::follow`].
    fn read_properties(&mut self) -> Result<(), ClError> {
        let inspector = self.element.inspector();
        let (reporting, refusals) = {
            let mut now = lock(&inspector.reporting);
            let refusals = now.take_refusals();
            (now.clone(), refusals)
        };
        for refusal in refusals {
            refuse(self.element.obj().upcast_ref(), &refusal, || ());
        }
        self.reporting = reporting;
        let rules = self.reporting.rules.clone();
        self.classifier.follow(rules, |refused, in_force| {
            put_back(&mut lock(&inspector.reporting).rules, refused, in_force);
        })
    }

    /// Takes the signals `learn` and `forget`.
    fn take_requests(&mut self) -> Result<(), ClError> {
        let requests = &self.element.inspector().learning;
        let learn = self.reporting.learn.usable();
        let object = self.element.obj();
        let element: &ClBaseFilter = object.upcast_ref();
        let operator = &self.live.in_force()?.operator;
        match (self.limits).take::<C>(requests, learn, element, operator) {
            Some(learned) => self.apply(&learned),
            None => Ok(()),
        }
    }

    /// Reads the learned limits, if there is a file of them. Returns whether there is a file, usable or not.
    fn read_limits(&mut self) -> Result<bool, ClError> {
        let learn = lock(&self.element.inspector().reporting)
            .learn
            .usable()
            .clone();
        if !learn.has_location() {
            return Ok(false);
        }
        self.saver.wait();
        let limits = self.live.in_force()?.operator.limits();
        match saved_of::<C>(&limits, self.frames).read(learn.location()) {
            Ok(None) => Ok(false),
            Ok(Some(Saved {
                limits: values,
                learner,
            })) => {
                self.limits.restore(learner);
                let values = limits.iter().copied().zip(values);
                self.element.set_limits(&values.collect::<Vec<_>>());
                let wanted = self.own.settings(&self.element);
                self.live.switch(wanted, |refused, in_force| {
                    C::restore(&self.element, refused, in_force);
                })?;
                Ok(true)
            }
            Err(why) => {
                let element = self.element.obj();
                gst::element_warning!(
                    element,
                    gst::ResourceError::Read,
                    ("{}", why),
                    ["the limits are those of the properties"]
                );
                Ok(true)
            }
        }
    }

    /// Writes the learned limits, if a file is named.
    fn save_limits(&mut self, learned: &NewLimits) -> Result<(), ClError> {
        let learn = self.reporting.learn.usable();
        let Some(learner) = self.limits.learner().filter(|_| learn.has_location()) else {
            return Ok(());
        };
        let saved = Saved {
            limits: learned.values().map(|(_, value)| value).collect(),
            learner: learner.clone(),
        };
        let limits = self.live.in_force()?.operator.limits();
        let frames = self.frames;
        let saving = Saving {
            path: learn.location().into(),
            subject: "the set of learned limits",
            message: format!("{}-limits-saved", C::Element::MESSAGE),
            write: move |path: &Path| saved_of::<C>(&limits, frames).write(path, &saved),
        };
        self.saver.save(self.element.obj().upcast_ref(), saving);
        Ok(())
    }

    /// Sets the properties of learned limits, and posts and writes them.
    fn apply(&mut self, learned: &NewLimits) -> Result<(), ClError> {
        self.element
            .set_limits(&learned.values().collect::<Vec<_>>());
        let contrast = self.own.contrast(self.live.in_force()?);
        let element = self.element.obj();
        learned.post(element.upcast_ref(), C::Element::MESSAGE, contrast);
        self.save_limits(learned)
    }

    /// Marks the defects of a frame, and lists them if a list is wanted.
    fn inspect(&mut self, frame: &Frame, frame_number: u64) -> Result<Inspected, ClError> {
        let mut limits = self.reporting.listing();
        let finder = &mut self.finder;
        if !frame.window.is_web {
            finder.reset();
            // A frame ends before anything has to be closed by force.
            limits.max_defect_rows = u32::MAX;
        }
        if limits.max_defects == 0 {
            // Without a list nobody sees whether open defects continue.
            finder.reset();
        }
        let output = self.element.inspector().output();
        let in_force = self.live.in_force()?;
        let classifier = &self.classifier.in_force()?.operator;
        let (learning, own, element) = (&mut self.limits, &mut self.own, &self.element);
        let judge = Judge {
            rules: &self.reporting.rules,
            classifier,
            listing: &limits,
        };
        let masks = self.masks.as_ref().ok_or_else(before_caps)?;
        let ((marked, listed, demands), mask) = masks.write(frame, |mask, picture| {
            let subject = frame.subject();
            let mut demands = Vec::new();
            while let Some(kept) = own.next_kept(&in_force.operator, subject.meter)? {
                if learning.counts::<C>(&own.settings(element), &judge) {
                    let mut operator = kept.operator;
                    let trained = Subject {
                        frame: &kept.frame,
                        ..subject
                    };
                    let of = judge.demands(&mut *operator, trained, mask)?;
                    demands.extend(of.map(|of| (kept.frame_number, of)));
                }
            }
            let InForce { operator, settings } = &mut *in_force;
            if !frame.is_corrupted && learning.counts::<C>(settings, &judge) {
                let of = judge.demands(&mut **operator, subject, mask)?;
                demands.extend(of.map(|of| (frame_number, of)));
            }
            // The frame itself is judged by the limits in force.
            let marked = operator.mark(subject, mask)?;
            let is_listed = marked.pixels > 0 || finder.has_open();
            let listed = if is_listed && limits.max_defects > 0 {
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

/// What was found in a frame.
struct Inspected {
    marked: Marked,
    listed: Listed,
    /// What frames demand of the limits, by their numbers, if limits are learned.
    demands: Vec<(u64, Vec<Demand>)>,
    /// The mask, if it is sent as a meta.
    mask: Option<gst::Buffer>,
}

impl<C: Comparing> FrameStream for InspectorStream<C> {
    fn negotiate(&mut self, caps: &Negotiated) -> Result<(), ClError> {
        let inspector = self.element.inspector();
        let reporting = lock(&inspector.reporting).clone();
        reporting.check()?;
        self.own.negotiate(&self.element, caps);
        self.limits.begin_again(&inspector.learning);
        lock(&inspector.ignore).read_again();
        self.classifier.start(reporting.rules, Classifier::new)?;
        self.masks = Some(match inspector.output() {
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

    fn follow(&mut self) -> Result<(), ClError> {
        let wanted = self.own.settings(&self.element);
        self.live.follow(wanted, |refused, in_force| {
            C::restore(&self.element, refused, in_force);
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
        self.own.end(&self.element);
        let inspector = self.element.inspector();
        let learn = lock(&inspector.reporting).learn.usable().clone();
        if let Some(why) = self.limits.why_unfinished(&inspector.learning, &learn) {
            let element = self.element.obj();
            let element: &ClBaseFilter = element.upcast_ref();
            gst::element_warning!(element, gst::StreamError::Format, ("{why}"));
        }
    }

    fn process(&mut self, frame: &mut Frame) -> Result<Option<gst::Event>, ClError> {
        self.read_properties()?;
        self.take_requests()?;
        let object = self.element.obj().clone();
        let element: &ClBaseFilter = object.upcast_ref();
        let frame_number = element.frame_number(frame.buffer());
        let missing = self.limits.missing();
        if missing > 0 && self.own.training().is_some() {
            let operator = &mut self.live.in_force()?.operator;
            (self.own).keep(operator, frame_number, frame.subject(), missing)?;
        }
        self.own.prepare(self.live.in_force()?);
        let Inspected {
            marked,
            listed,
            demands,
            mask,
        } = self.inspect(frame, frame_number)?;
        let is_learning = self.limits.missing() > 0;
        let limits = self.live.in_force()?.operator.limits();
        for (number, demands) in demands {
            let learn = self.reporting.learn.usable();
            if let Some(learned) = self.limits.add(number, &demands, learn, &limits) {
                // The next frame is judged by the new limits.
                self.apply(&learned)?;
            }
        }
        let progress = self.limits.progress().filter(|_| is_learning);
        let in_force = self.live.in_force()?;
        let reports = self.reporting.reports.usable();
        let PixelSize(mm_per_pixel) = *self.reporting.mm_per_pixel.usable();
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
            alignment,
            ignored,
        } = in_force.operator.basis();
        let classifier = &self.classifier.in_force()?.operator;
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
            threshold: C::threshold(in_force),
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
            training: self.own.training(),
            learning: progress,
            judged_pixels: judged.any,
            judged_x: judged.x,
            judged_y: judged.y,
            defect_pixels: marked.pixels,
            missing_pixels: marked.missing,
            defects: defects.collect(),
            overflow: listed.overflow,
            mm_per_pixel_x: mm_per_pixel[0],
            mm_per_pixel_y: mm_per_pixel[1],
            class_names: classifier.names(),
            channels: C::channels(in_force),
            open_area: listed.largest_open,
            mask,
            corrupted: frame.is_corrupted,
            is_moved: false,
            ignored: ignored.map(|bitmap| as_buffer(&mut self.ignored, bitmap)),
            verdict: Verdict::None,
        };
        result.verdict = Verdict::new(&result, classifier.limits());
        for (name, count) in result.class_counts() {
            element.count_class(name, count);
        }
        result.attach(frame.output()).map_err(|error| {
            ClError::Input(format!("cannot attach a meta to the buffer: {error}"))
        })?;
        let [passed, failed, unjudged, missing] = COUNTS;
        element.set_count(missing, self.limits.missing() as u64);
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
                    fields.set("settings", C::in_words(in_force));
                    if reports.message_defects {
                        fields.set("defects", result.defect_structures());
                    }
                }),
            );
        }
        Ok(reports.events.then(|| result.to_event()))
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

/// The file of limits of frames with this size and these bits.
fn saved_of<C: Comparing>(limits: &[Limit], (size, bits): ([usize; 2], u32)) -> saved::Of<'_> {
    saved::Of {
        element: C::Element::MESSAGE,
        size,
        bits,
        limits,
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
