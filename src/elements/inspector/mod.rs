//! The template of the elements that mark defects in a mask: list, verdict, counts, metas,
//! messages, events, and the forms in which masks are sent.

mod caps;
mod classify;
mod ignore;
mod ignore_file;
mod learn;
mod masks;
mod properties;
mod record;
mod template;

use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use gst::{prelude::*, subclass::prelude::*};
use gst_base::prelude::*;

use super::{
    base_filter::{
        ClBaseFilter, ClBaseFilterExt, ClBaseFilterImpl, Frame, Learning, Live, MessageGate,
        Negotiated, Target, View, put_back,
    },
    lock, pad_templates,
    property_table::PropertyTable,
};
use classify::{Classifier, Rules};
use clinspect_core::{
    ClError,
    components::{Finder, Limits},
    ignored::Bitmap,
    window::Reach,
};
use clinspect_operators::{Listed, Marked, MaskTarget};
use clinspect_results::{DefectResult, Verdict};
pub use ignore::Ignore;
pub use learn::signal as learn_threshold;
use learn::{GoodFrames, LearnThreshold};
use masks::Masks;
pub use properties::{Output, OutputChoice, Picture, PitchThresholdOutput};
use properties::{PixelSize, Reporting};
use record::{features, record};
pub use template::{Basis, InspectorImpl};

const COUNTS: [&str; 3] = ["frames-passed", "frames-failed", "frames-unjudged"];

/// What every inspector has besides its own settings.
#[derive(Default)]
pub struct Inspector {
    reporting: Mutex<Reporting>,
    rules: Mutex<Rules>,
    ignore: Mutex<Ignore>,
    learning: LearnThreshold,
    /// The value of `output`, latched at the start.
    output: Mutex<Option<Output>>,
}

impl Inspector {
    fn reporting(&self) -> MutexGuard<'_, Reporting> {
        lock(&self.reporting)
    }

    /// Pixels that are not judged.
    pub fn ignore(&self) -> Ignore {
        lock(&self.ignore).clone()
    }

    /// Puts the ignored pixels in force back into the properties, as [`ClBaseFilterImpl::restore`] does.
    pub fn restore(&self, refused: &Ignore, in_force: &Ignore) {
        put_back(&mut *lock(&self.ignore), refused, in_force);
    }

    /// The value of `output` since the start; later changes do not count.
    fn output(&self) -> Output {
        let started = *lock(&self.output);
        started.unwrap_or_else(|| self.reporting().output)
    }
}

/// The table with the properties that every inspector has.
pub fn with_properties<T: InspectorImpl>(table: PropertyTable<T>) -> PropertyTable<T> {
    table
        .with(
            |this| &this.inspector().reporting,
            properties::rows::<T::Output>(),
        )
        .with(|this| &this.inspector().rules, classify::rows())
        .with(|this| &this.inspector().ignore, ignore::rows())
}

/// Pad templates of an inspector.
pub fn templates() -> &'static [gst::PadTemplate] {
    static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> =
        LazyLock::new(|| pad_templates(&caps::sink_template(), &caps::src_template()));
    TEMPLATES.as_ref()
}

/// State that an inspector keeps from frame to frame.
pub struct State<T, S> {
    masks: Option<Masks>,
    gate: MessageGate,
    verdict: Option<Verdict>,
    /// The open defects of the web.
    finder: Finder,
    /// The id of the defect that was listed last.
    last_id: u32,
    ignored: Option<(Arc<Bitmap>, gst::Buffer)>,
    classifier: Option<Live<Rules, Classifier>>,
    good: GoodFrames<S>,
    own: T,
}

impl<T: Default, S> Default for State<T, S> {
    fn default() -> Self {
        Self {
            masks: None,
            gate: MessageGate::default(),
            verdict: None,
            finder: Finder::default(),
            last_id: 0,
            ignored: None,
            classifier: None,
            good: GoodFrames::default(),
            own: T::default(),
        }
    }
}

impl<T: InspectorImpl> ClBaseFilterImpl for T {
    const TASK: &'static str = "judging a frame";
    const COUNTS: &'static [&'static str] = &COUNTS;
    type Settings = T::Settings;
    type Operator = T::Operator;
    type State = State<T::State, T::Settings>;

    fn settings(&self, state: &State<T::State, T::Settings>) -> T::Settings {
        InspectorImpl::settings(self, &state.own)
    }

    fn restore(&self, refused: &T::Settings, in_force: &T::Settings) {
        InspectorImpl::restore(self, refused, in_force);
    }

    fn check(&self, images: bool) -> Result<(), ClError> {
        let inspector = self.inspector();
        inspector.reporting().check()?;
        Classifier::new(&lock(&inspector.rules))?;
        inspector.ignore().check()?;
        InspectorImpl::check(self, images)
    }

    fn build(target: &Target, settings: &T::Settings) -> Result<T::Operator, ClError> {
        <T as InspectorImpl>::build(target, settings)
    }

    fn started(&self) {
        let inspector = self.inspector();
        let output = inspector.reporting().output;
        *lock(&inspector.output) = Some(output);
        InspectorImpl::started(self);
        let element = self.obj();
        let element: &ClBaseFilter = element.upcast_ref();
        // With a meta the frame passes in place, without a copy.
        element.set_in_place(output == Output::Frame);
    }

    fn stopped(&self) {
        *lock(&self.inspector().output) = None;
    }

    fn other_caps(&self, direction: gst::PadDirection, caps: &gst::Caps) -> Option<gst::Caps> {
        Some(match self.inspector().output() {
            Output::Mask => caps::transform(direction, caps),
            Output::Frame => caps.clone(),
            Output::Picture(_) => caps::transform_to_picture(direction, caps),
        })
    }

    fn set_up(
        &self,
        state: &mut State<T::State, T::Settings>,
        caps: &Negotiated,
    ) -> Result<(), ClError> {
        self.inspector().reporting().check()?;
        InspectorImpl::set_up(self, &mut state.own, caps);
        self.inspector().learning.begin_again(&mut state.good);
        lock(&self.inspector().ignore).read_again();
        let rules = lock(&self.inspector().rules).clone();
        state.classifier = Some(Live::new(rules, Classifier::new)?);
        state.masks = Some(match self.inspector().output() {
            Output::Frame => Masks::in_meta(caps)?,
            Output::Mask => Masks::as_buffers(caps)?,
            Output::Picture(_) => Masks::with_pictures(caps)?,
        });
        Ok(())
    }

    fn reach(operator: &T::Operator) -> Reach {
        <T as InspectorImpl>::reach(operator)
    }

    fn learning(
        &self,
        live: &Live<T::Settings, T::Operator>,
        state: &State<T::State, T::Settings>,
    ) -> Learning {
        InspectorImpl::learning(self, live, &state.own)
    }

    fn look(
        &self,
        live: &mut Live<T::Settings, T::Operator>,
        state: &mut State<T::State, T::Settings>,
        view: &View,
    ) -> Result<(), ClError> {
        InspectorImpl::look(self, live, &mut state.own, view)
    }

    fn web_begins(
        &self,
        _live: &mut Live<T::Settings, T::Operator>,
        state: &mut State<T::State, T::Settings>,
    ) {
        state.finder.reset();
    }

    fn ended(&self, state: &mut State<T::State, T::Settings>) {
        InspectorImpl::ended(self, &mut state.own);
        let settings = *self.inspector().reporting().learn.usable();
        let learning = &self.inspector().learning;
        if let Some(why) = learning.why_unfinished(&settings, &state.good) {
            let element = self.obj();
            let element: &ClBaseFilter = element.upcast_ref();
            gst::element_warning!(element, gst::StreamError::Format, ("{why}"));
        }
    }

    fn process(
        &self,
        live: &mut Live<T::Settings, T::Operator>,
        state: &mut State<T::State, T::Settings>,
        frame: &mut Frame,
    ) -> Result<Option<gst::Event>, ClError> {
        T::note(live, &mut state.own);
        let element = self.obj();
        let element: &ClBaseFilter = element.upcast_ref();
        let before_caps = || ClError::Input("received a frame before its caps".into());
        let classifier = state.classifier.as_mut().ok_or_else(before_caps)?;
        let rules = lock(&self.inspector().rules).clone();
        if let Some(refusal) = classifier.follow(rules.clone())? {
            let now = &self.inspector().rules;
            let in_force = &classifier.settings;
            element.refuse(&refusal, || put_back(&mut *lock(now), &rules, in_force));
        }
        let classifier = &classifier.operator;
        let refusals = self.inspector().reporting().take_refusals();
        for refusal in refusals {
            element.refuse(&refusal, || ());
        }
        let reporting = self.inspector().reporting().clone();
        let reports = reporting.reports.usable();
        let PixelSize(mm_per_pixel) = *reporting.mm_per_pixel.usable();
        let masks = state.masks.as_ref().ok_or_else(before_caps)?;
        let output = self.inspector().output();
        let ((marked, listed), mask) = masks.write(frame, |mask, picture| {
            let operator = &mut live.operator;
            let limits = reporting.listing();
            let found = inspect::<T>(operator, frame, mask, &mut state.finder, limits)?;
            if let (Some(out), Output::Picture(kind)) = (picture, output) {
                T::draw(operator, frame, kind, out)?;
            }
            Ok(found)
        })?;

        let learning = &self.inspector().learning;
        let settings = *reporting.learn.usable();
        if let Some(learned) = learning.look::<T>(settings, live, &mut state.good, frame)? {
            // The next frame is judged by the new threshold.
            self.set_threshold(learned.threshold);
            learned.tell(element, T::MESSAGE);
        }
        let is_scaled = mm_per_pixel.iter().all(|&mm| mm > 0.0);
        let mean_level = if is_scaled && !listed.defects.is_empty() {
            T::mean_level(&mut live.operator)?
        } else {
            // Nobody asks for the visibility of a defect, so the device is not read.
            None
        };
        let Basis {
            judged,
            pitches: [pitch_x, pitch_y],
            threshold,
            alignment,
            ignored,
        } = T::basis(live);
        let defects = listed.defects.iter().map(|defect| {
            state.last_id = state.last_id.checked_add(1).unwrap_or(1);
            let class = classifier.class_of(&features(defect), defect.is_missing);
            record(defect, state.last_id, class)
        });
        let mut result = DefectResult {
            element: element.name().into(),
            frame_number: element.frame_number(frame.buffer()),
            web: frame.web,
            first_line: frame.first_line(),
            width: frame.info().width(),
            height: frame.info().height(),
            mean_level: mean_level.unwrap_or(0.0),
            pitch_x,
            pitch_y,
            threshold,
            alignment,
            training: self.training(&state.own),
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
            open_area: listed.largest_open,
            mask,
            ignored: ignored.map(|bitmap| as_buffer(&mut state.ignored, bitmap)),
            verdict: Verdict::None,
        };
        result.verdict = Verdict::new(&result, classifier.limits());
        for (name, count) in result.class_counts() {
            element.count_class(name, count);
        }
        result.attach(frame.output()).map_err(|error| {
            ClError::Input(format!("cannot attach a meta to the buffer: {error}"))
        })?;
        let [passed, failed, unjudged] = COUNTS;
        element.count(match result.verdict {
            Verdict::Pass => passed,
            Verdict::Fail => failed,
            Verdict::None => unjudged,
        });
        let changed = state.verdict.replace(result.verdict) != Some(result.verdict);
        let times = element.frame_times(frame.buffer());
        // A change of the verdict restarts the interval.
        if state
            .gate
            .opens(&reports.messages, times.running_time, changed)
        {
            let summary = Some(result.summary());
            element.post(times.message(element, T::MESSAGE, summary, |fields| {
                result.write_message(fields);
                fields.set("settings", T::in_words(live));
                if reports.message_defects {
                    fields.set("defects", result.defect_structures());
                }
            }));
        }
        Ok(reports.events.then(|| result.to_event()))
    }
}

/// Marks the defects of a frame, and lists them if a list is wanted.
fn inspect<T: InspectorImpl>(
    operator: &mut T::Operator,
    frame: &Frame,
    mask: MaskTarget,
    finder: &mut Finder,
    mut limits: Limits,
) -> Result<(Marked, Listed), ClError> {
    if !frame.window.is_web {
        finder.reset();
        // A frame ends before anything has to be closed by force.
        limits.max_defect_rows = u32::MAX;
    }
    if limits.max_defects == 0 {
        // Without a list nobody sees whether open defects continue.
        finder.reset();
    }
    let marked = T::mark(operator, frame, mask)?;
    let is_listed = marked.pixels > 0 || finder.has_open();
    let listed = if is_listed && limits.max_defects > 0 {
        T::list(operator, frame, mask, finder, &limits)?
    } else {
        // Without a list, any marked pixel means overflow.
        Listed {
            overflow: marked.pixels > 0,
            ..Listed::default()
        }
    };
    Ok((marked, listed))
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
