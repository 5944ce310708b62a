//! The limits of a comparison are learned from good frames.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use gst::{glib::subclass::Signal, prelude::*, subclass::prelude::*};

use super::{
    Comparing, InspectorImpl, InspectorStream,
    blind::why_blind,
    classify::{Classifier, Rules, features, record},
};
use crate::elements::{
    base_filter::{ClBaseFilter, ClBaseFilterExt},
    lock,
    structure::structure,
    text::Location,
};
use clinspect_core::{
    ClError,
    components::{Finder, Limits},
    learning::{Contrasts, Demand, Good, Learned, Learner, Rule, Search},
    sight::Sight,
    window::Window,
};
use clinspect_opencl::{ClBuffer, Meter, frame::ClFrame};
use clinspect_operators::{Inspection, Limit, MaskTarget, Subject};
use clinspect_results::{DefectResult, Verdict};

const MOST_FRAMES: u32 = 100_000;
const MAX_MARGIN: f64 = 100.0;
/// The value of `margin` for the element's own.
const OWN: f64 = -1.0;
/// The value of `frames` for the element's own.
const OWN_FRAMES: u32 = 0;

/// How limits are learned.
#[derive(Debug, Clone)]
pub(super) struct LearnSettings {
    frames: u32,
    margin: f64,
    location: Location,
}

impl LearnSettings {
    /// Number of good frames of an element.
    fn frames_of<T: InspectorImpl>(&self) -> u32 {
        if self.frames == OWN_FRAMES {
            T::LEARN_FRAMES
        } else {
            self.frames
        }
    }

    /// Whether learned limits have a file.
    pub fn has_location(&self) -> bool {
        !self.location().as_os_str().is_empty()
    }

    /// The file of learned limits.
    pub fn location(&self) -> &Path {
        &self.location.0
    }
}

impl Default for LearnSettings {
    fn default() -> Self {
        Self {
            frames: OWN_FRAMES,
            margin: OWN,
            location: Location::default(),
        }
    }
}

structure!(LearnSettings, "learn" {
    uint(
        "frames", "Frames",
        "Number of good frames; strips of a web count as frames; 0 = the element's own: 32 of clsurface, 24 of others",
        OWN_FRAMES..=MOST_FRAMES
    ) = frames;
    double(
        "margin", "Margin",
        "Share of the largest value of the good frames that is added to it: 0.2 sets a limit 20 % above. Channels of \
         cltexture and clsurface: share of the distance from the mean of the tiles to the largest value. -1 = the element's own: 0.15; \
         0.1 for deviation-factor, 0.3 for channels, 0.5 for flatness; twice as much for limits of components",
        OWN..=MAX_MARGIN
    ) = margin;
    file(
        "location", "Location",
        "File of the learned limits, an .npz of NumPy: read when frames start, written when limits are learned; \
         empty = none"
    ) = location;
});

/// What other threads ask of the learning.
#[derive(Default)]
pub(super) struct Requests {
    /// `learn` was emitted.
    is_wanted: AtomicBool,
    /// The frames of `forget`.
    forgotten: Mutex<Vec<u64>>,
}

impl Requests {
    /// Limits are to be learned from the next frames.
    pub fn request(&self) {
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    /// Whether this was asked for since the last frame.
    fn is_pending(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }
}

/// The action signals of an inspector that learns.
pub fn signals<T: InspectorImpl>() -> [Signal; 2] {
    let learn = Signal::builder("learn").action().class_handler(|args| {
        let element = args.first()?.get::<gst::Element>().ok()?;
        let element = element.downcast_ref::<T::Type>()?;
        element.imp().inspector().learning.request();
        element.upcast_ref::<ClBaseFilter>().revise();
        None
    });
    let forget = Signal::builder("forget")
        .action()
        .param_types([u64::static_type()])
        .class_handler(|args| {
            let element = args.first()?.get::<gst::Element>().ok()?;
            let element = element.downcast_ref::<T::Type>()?;
            let frame = args.get(1)?.get::<u64>().ok()?;
            lock(&element.imp().inspector().learning.forgotten).push(frame);
            element.upcast_ref::<ClBaseFilter>().revise();
            None
        });
    [learn.build(), forget.build()]
}

/// The settings on which demands depend. Demands of different ones do not count together.
#[derive(Debug, Clone, PartialEq)]
pub struct DemandSettings<S> {
    /// Those of the comparison.
    pub comparison: S,
    rules: Rules,
    listing: Limits,
}

impl<S> DemandSettings<S> {
    /// What a frame demands under these settings; see [`Judge::demands`].
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn demands(
        &self,
        operator: &mut dyn Inspection,
        subject: Subject,
        mask: MaskTarget,
    ) -> Result<Option<Vec<Demand>>, ClError> {
        let judge = Judge {
            rules: &self.rules,
            classifier: &Classifier::new(&self.rules)?,
            listing: &self.listing,
        };
        judge.demands(operator, subject, mask)
    }
}

/// The limits that an inspector learns or has learned, kept from frame to frame.
pub(super) struct Learning<S> {
    /// The good frames.
    learner: Learner,
    under: Option<DemandSettings<S>>,
    /// Limits were learned from these frames, some of which may have been forgotten.
    has_learned: bool,
}

/// Decides whether a frame passes.
pub(super) struct Judge<'a> {
    pub rules: &'a Rules,
    pub classifier: &'a Classifier,
    pub listing: &'a Limits,
}

/// Limits that were learned.
pub(super) struct NewLimits {
    limits: Vec<(Limit, Learned)>,
    /// The least contrasts of the pattern.
    pub(super) contrasts: Contrasts,
    frames: usize,
    missing: usize,
}

impl<S: Clone + PartialEq> Learning<S> {
    /// Learns from the next `frames` good frames.
    fn new(frames: usize) -> Self {
        Self {
            learner: Learner::new(frames),
            under: None,
            has_learned: false,
        }
    }

    /// Goes on from a file.
    pub fn from_file(learner: Learner) -> Self {
        Self {
            learner,
            under: None,
            has_learned: true,
        }
    }

    /// Whether no limits were learned yet.
    pub fn is_unfinished(&self) -> bool {
        self.missing() > 0 && !self.has_learned
    }

    /// The good frames.
    pub fn learner(&self) -> &Learner {
        &self.learner
    }

    /// Number of good frames that are missing.
    pub fn missing(&self) -> usize {
        self.learner.missing()
    }

    /// The good frames so far and all.
    pub fn progress(&self) -> [u32; 2] {
        let frames = [self.learner.good().len(), self.learner.wanted()];
        frames.map(|frames| u32::try_from(frames).unwrap_or(u32::MAX))
    }

    /// Whether the frames so far were compared under these settings.
    pub fn is_under<C: Comparing<Settings = S>>(&self, settings: &S, judge: &Judge) -> bool {
        self.under.as_ref() == Some(&judge.under::<C>(settings))
    }

    /// Whether a frame that is compared under these settings counts. Begins anew if the frames so far were compared under
    /// others.
    pub fn counts<C: Comparing<Settings = S>>(&mut self, settings: &S, judge: &Judge) -> bool {
        if self.missing() == 0 {
            return false;
        }
        let under = judge.under::<C>(settings);
        if self.under.as_ref() != Some(&under) {
            if self.under.is_some() {
                *self = Self::new(self.learner.wanted());
            }
            self.under = Some(under);
        }
        true
    }

    /// Adds the frame. Returns the limits after the last one.
    pub fn add(
        &mut self,
        frame: u64,
        (demands, contrasts): &(Vec<Demand>, Contrasts),
        settings: &LearnSettings,
        limits: &[Limit],
    ) -> Option<NewLimits> {
        self.learner.add(frame, demands, *contrasts);
        self.has_learned |= self.missing() == 0;
        (self.missing() == 0)
            .then(|| self.learned(settings, limits))
            .flatten()
    }

    /// Takes what good frames demand that the element has gathered. Returns the limits.
    pub fn replace(
        &mut self,
        good: &[Good],
        settings: &LearnSettings,
        limits: &[Limit],
    ) -> Option<NewLimits> {
        let mut learner = Learner::new(self.learner.wanted());
        for Good {
            frame,
            demands,
            contrasts,
        } in good
        {
            learner.add(*frame, demands, *contrasts);
        }
        self.learner = learner;
        self.has_learned = true;
        self.learned(settings, limits)
    }

    fn learned(&self, settings: &LearnSettings, limits: &[Limit]) -> Option<NewLimits> {
        let rules = limits.iter().map(|limit| Rule {
            margin: if settings.margin < 0.0 {
                limit.rule.margin
            } else {
                settings.margin
            },
            ..limit.rule
        });
        let learned = self.learner.learned(&rules.collect::<Vec<_>>())?;
        let named = limits.iter().zip(learned).map(|(limit, learned)| {
            // A component that is the same in all good frames demands nothing, but a limit of 0 is invalid.
            let limit_in_range = learned.limit.max(limit.step).min(limit.most);
            (
                *limit,
                Learned {
                    limit: limit_in_range,
                    ..learned
                },
            )
        });
        Some(NewLimits {
            limits: named.collect(),
            contrasts: self.learner.contrasts(),
            frames: self.learner.good().len(),
            missing: self.missing(),
        })
    }
}

/// A frame waits this long, and for the trial that is going on then, while frames of a training are judged.
const KEPT_TIME: Duration = Duration::from_millis(600);

/// A frame that trained the element, and an operator for what the other frames trained.
pub struct TrainingFrame<O> {
    /// The number of the frame.
    pub frame_number: u64,
    /// The frame as it was read for the training.
    pub frame: ClFrame,
    /// Its rows: those of a part that was read from a frame are fewer.
    pub height: usize,
    /// Memory for the packed mask of the frame.
    pub mask: ClBuffer,
    /// Judges the frame.
    pub operator: O,
}

impl<O> TrainingFrame<O> {
    /// What judges the frame, the frame, and the target of its mask.
    fn parts<'a>(&'a mut self, meter: &'a Arc<Meter>) -> (&'a mut O, Subject<'a>, MaskTarget<'a>) {
        let mask = MaskTarget::Packed {
            buffer: &self.mask,
            offset: 0,
        };
        let subject = Subject::whole(&self.frame, self.height, meter);
        (&mut self.operator, subject, mask)
    }
}

impl<C: Comparing> InspectorStream<C> {
    /// Takes the signals `learn` and `forget`.
    pub(super) fn take_requests(&mut self) -> Result<(), ClError> {
        let requests = &self.element.inspector().learning;
        let object = self.element.obj();
        let element: &ClBaseFilter = object.upcast_ref();
        let settings = &self.reporting.learn;
        if requests.is_wanted.swap(false, Ordering::Relaxed) {
            // It asks for the frames that follow.
            self.own.forget_kept();
            self.kept = None;
            let wanted = settings.frames_of::<C::Element>() as usize;
            let frames = match self.own.together() {
                Some(together) => {
                    together.begin_again();
                    together.possible_frames(element, wanted)
                }
                None => wanted,
            };
            self.limits = Some(Learning::new(frames));
        }
        let frames = std::mem::take(&mut *lock(&requests.forgotten));
        let mut is_changed = false;
        for frame in frames {
            let together = self.own.together();
            let was_gathered = together.is_some_and(|together| together.forget(frame));
            let learning = self.limits.as_mut();
            if learning.is_some_and(|learning| learning.learner.forget(frame)) {
                is_changed |= !was_gathered;
            } else if !was_gathered {
                gst::element_warning!(
                    element,
                    gst::LibraryError::Settings,
                    (
                        "frame {} cannot be forgotten, because nothing was learned from it; the message of the learned \
                         limits names the frame that set each of them",
                        frame
                    )
                );
            }
        }
        let learning = (self.limits.as_ref()).filter(|limits| is_changed && limits.has_learned);
        let limits = self.live.in_force()?.operator.limits();
        match learning.and_then(|learning| learning.learned(settings, &limits)) {
            Some(learned) => self.apply(&learned, None),
            None => Ok(()),
        }
    }

    /// A frame demands this of the limits. They are learned after the last frame, and judge the next one.
    pub(super) fn count(
        &mut self,
        frame_number: u64,
        demands: &(Vec<Demand>, Contrasts),
    ) -> Result<(), ClError> {
        let limits = self.live.in_force()?.operator.limits();
        let settings = &self.reporting.learn;
        let learning = self.limits.as_mut();
        match learning.and_then(|learning| learning.add(frame_number, demands, settings, &limits)) {
            Some(learned) => self.apply(&learned, None),
            None => Ok(()),
        }
    }

    /// The warning at the end of a stream that had too few frames; `None` if nothing is being learned.
    pub(super) fn why_unfinished(&mut self) -> Option<String> {
        let inspector = self.element.inspector();
        let [good, wanted] = if inspector.learning.is_pending() {
            [
                0,
                lock(&inspector.reporting)
                    .learn
                    .usable()
                    .frames_of::<C::Element>(),
            ]
        } else {
            let gathered = self.gathered() as u32;
            let learning = self.limits.as_ref();
            let [good, wanted] = learning.filter(|limits| limits.missing() > 0)?.progress();
            [good.saturating_add(gathered), wanted]
        };
        Some(format!(
            "the stream ended after {good} of {wanted} good frames of learn, so the limits are those of before; lower \
             frames in the property learn, or let more good frames pass"
        ))
    }

    /// Judges frames that were kept during a training, for a while: the frame in work waits. Tells how far it is.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub(super) fn judge_kept(&mut self, meter: &Arc<Meter>) -> Result<(), ClError> {
        let begun = Instant::now();
        while begun.elapsed() < KEPT_TIME && self.kept() > 0 {
            self.judge_next_kept(meter)?;
        }
        let learning = self.limits.as_ref();
        let fields = gst::Structure::builder(format!("{}-learning", C::Element::MESSAGE))
            .field(
                "frames",
                learning.map_or(0, |learning| learning.progress()[0]),
            )
            .field("missing-frames", self.missing() as u32)
            .build();
        let object = self.element.obj();
        let message = gst::message::Element::builder(fields).src(&*object);
        object.upcast_ref::<ClBaseFilter>().post(message.build());
        Ok(())
    }

    /// Limits of the list of frames, and of strips that are judged as frames: no row is waited for.
    pub(super) fn listing_of_frames(&self) -> Limits {
        Limits {
            max_defect_rows: u32::MAX,
            ..self.reporting.listing
        }
    }

    /// Tries a limit on the frame that was kept, or begins with the next one.
    fn judge_next_kept(&mut self, meter: &Arc<Meter>) -> Result<(), ClError> {
        let listing = self.listing_of_frames();
        let judge = Judge {
            rules: &self.reporting.rules,
            classifier: &self.classifier.in_force()?.operator,
            listing: &listing,
        };
        let settings = self.own.settings(&self.element);
        let Some((mut kept, mut finding)) = self.kept.take() else {
            let operator = &self.live.in_force()?.operator;
            let Some(mut kept) = self.own.next_kept(operator, meter)? else {
                return Ok(());
            };
            let learning = self.limits.as_mut();
            if learning.is_some_and(|learning| learning.counts::<C>(&settings, &judge)) {
                let (operator, subject, mask) = kept.parts(meter);
                let finding = judge.begin(operator, subject, mask)?;
                self.kept = finding.map(|finding| (kept, finding));
            }
            return Ok(());
        };
        let learning = self.limits.as_ref();
        if !learning.is_some_and(|learning| learning.is_under::<C>(&settings, &judge)) {
            return Ok(());
        }
        let (operator, subject, mask) = kept.parts(meter);
        match judge.try_next(operator, &mut finding, subject, mask)? {
            // Trained models have no pattern.
            Some(demands) => self.count(kept.frame_number, &(demands, Contrasts::default()))?,
            None => self.kept = Some((kept, finding)),
        }
        Ok(())
    }
}

/// What a frame demands, while it is being found by trials.
pub(super) struct Finding {
    demands: Vec<Demand>,
    /// The demand that is being found.
    at: usize,
    search: Option<Search>,
}

impl Judge<'_> {
    /// Marks a frame, and finds what it demands; `None` if it is not compared. The mask is then that of a trial.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn demands(
        &self,
        operator: &mut (impl Inspection + ?Sized),
        subject: Subject,
        mask: MaskTarget,
    ) -> Result<Option<Vec<Demand>>, ClError> {
        let Some(mut finding) = self.begin(operator, subject, mask)? else {
            return Ok(None);
        };
        let found = loop {
            match self.try_next(operator, &mut finding, subject, mask) {
                Ok(None) => {}
                found => break found,
            }
        };
        operator.try_limits(None)?;
        found
    }

    /// Marks a frame whose demands are found by [`Self::try_next`]; `None` if it is not compared.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn begin(
        &self,
        operator: &mut (impl Inspection + ?Sized),
        subject: Subject,
        mask: MaskTarget,
    ) -> Result<Option<Finding>, ClError> {
        operator.mark(subject, mask)?;
        let demands = operator.demands(subject)?;
        Ok(demands.map(|demands| Finding {
            demands,
            at: 0,
            search: None,
        }))
    }

    /// Tries one limit on the frame that was marked last. Returns what it demands, once this is known: of each limit the
    /// lowest value at which the frame passes.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn try_next(
        &self,
        operator: &mut (impl Inspection + ?Sized),
        finding: &mut Finding,
        subject: Subject,
        mask: MaskTarget,
    ) -> Result<Option<Vec<Demand>>, ClError> {
        let limits = operator.limits();
        while let (Some(limit), Some(demand)) =
            (limits.get(finding.at), finding.demands.get_mut(finding.at))
        {
            let search = finding
                .search
                .get_or_insert_with(|| Search::new(limit.step, demand.peak.min(limit.most)));
            let is_known = self.is_strict() && demand.peak.is_finite();
            if let Some(value) = search.next().filter(|_| !is_known) {
                let mut values = vec![f64::INFINITY; limits.len()];
                values[finding.at] = value;
                operator.try_limits(Some(&values))?;
                search.tell(self.passes(operator, subject, mask)?);
                return Ok(None);
            }
            if !is_known {
                demand.peak = search.lowest();
            }
            finding.at += 1;
            finding.search = None;
        }
        Ok(Some(std::mem::take(&mut finding.demands)))
    }

    /// The settings on which demands depend.
    pub fn under<C: Comparing>(&self, settings: &C::Settings) -> DemandSettings<C::Settings> {
        DemandSettings {
            comparison: C::counted_under(settings),
            rules: self.rules.clone(),
            listing: *self.listing,
        }
    }

    /// Whether a single marked pixel fails a frame, so that no trial is needed.
    fn is_strict(&self) -> bool {
        self.listing.min_area <= 1 && self.classifier.limits.fails_for_any_pixel()
    }

    /// Whether the frame passes under the limits that are tried.
    fn passes(
        &self,
        operator: &mut (impl Inspection + ?Sized),
        subject: Subject,
        mask: MaskTarget,
    ) -> Result<bool, ClError> {
        let marked = operator.mark(subject, mask)?;
        let mut result = DefectResult {
            judged_pixels: operator.basis().judged.any,
            defect_pixels: marked.pixels,
            overflow: marked.pixels > 0 && self.listing.max_defects == 0,
            ..DefectResult::default()
        };
        if marked.pixels > 0 && self.listing.max_defects > 0 {
            // A strip is judged as a frame: all defects end in it.
            let window = Window {
                height: subject.window.span().end,
                ends: true,
                ..subject.window
            };
            let strip = Subject { window, ..subject };
            let listed = operator.list(strip, mask, &mut Finder::default(), self.listing)?;
            let defects = listed.defects.iter().map(|defect| {
                let class = (self.classifier).class_of(&features(defect), defect.is_missing);
                record(defect, 0, class)
            });
            result.defects = defects.collect();
            result.overflow = listed.overflow;
        }
        Ok(Verdict::new(&result, &self.classifier.limits) != Verdict::Fail)
    }
}

impl NewLimits {
    /// Each limit and its value.
    pub fn values(&self) -> impl Iterator<Item = (Limit, f64)> {
        let limits = self.limits.iter();
        limits.map(|(limit, learned)| (*limit, learned.limit))
    }

    /// Posts the message `<element>-learned`, and a warning for a limit that sees nothing.
    pub fn post<T: InspectorImpl>(&self, element: &ClBaseFilter, sights: &[Sight]) {
        let mut fields = gst::Structure::builder(format!("{}-learned", T::MESSAGE))
            .field("frames", self.frames as u32)
            .field("missing-frames", self.missing as u32)
            .build();
        for (of, Learned { limit, frame }) in &self.limits {
            let name = of.full_name();
            fields.set(&*name, limit);
            fields.set(format!("{name}-frame"), frame);
        }
        let are_apart = (self.limits.iter()).any(|(limit, _)| limit.component.is_some());
        let arrays: &[&str] = match self.limits.len() {
            _ if are_apart => &["component-limits"],
            // A threshold of its own has its property's name.
            1 => &["thresholds"],
            _ => &["scale-factors", "thresholds"],
        };
        for &name in arrays {
            if element.has_property(name) {
                fields.set(name, element.property::<gst::Array>(name));
            }
        }
        if self.contrasts.largest() > 0.0 {
            fields.set("contrasts", element.property::<gst::Array>("contrasts"));
        }
        let message = gst::message::Element::builder(fields).src(element);
        element.post(message.build());
        for (of, Learned { limit, frame }) in &self.limits {
            let name = of.full_name();
            if *limit >= of.most {
                gst::element_warning!(
                    element,
                    gst::StreamError::Format,
                    (
                        "the learned limit {}={} is the highest one, so hardly anything is found; look at frame {}, and \
                         take it out with the signal forget if it is not good",
                        name,
                        limit,
                        frame
                    )
                );
            }
        }
        for sight in sights.iter().filter(|sight| sight.is_blind()) {
            let named = (self.limits.iter()).find(|(of, _)| of.full_name() == sight.name);
            let is_highest = named.is_some_and(|(of, Learned { limit, .. })| *limit >= of.most);
            if let Some((_, Learned { frame, .. })) = named.filter(|_| !is_highest) {
                let why = why_blind(sight, *frame, T::CHECK);
                gst::element_warning!(element, gst::StreamError::Format, ("{why}"));
            }
        }
    }
}
