//! Implementation of `clpitchthreshold`.

use std::sync::{LazyLock, Mutex};

use gst::{
    glib::{self, subclass::Signal},
    prelude::*,
    subclass::prelude::*,
};
use gst_base::subclass::{BaseTransformMode, prelude::*};

use super::properties::{Plan, Settings, rows};
use crate::elements::{
    base_filter::{
        self, ClBaseFilter, ClBaseFilterExt, ClBaseFilterImpl, FrameStream, InForce, Learning,
        Live, Negotiated, Target, View, put_back,
    },
    debug_category, element_class,
    inspector::{
        self, Comparing, Inspector, InspectorImpl, InspectorStream, colour,
        contrast::{self, Learned, Presence},
        pattern::{Change, Estimated, Estimation, TurnCheck, post_changes},
    },
    last_report::LastReport,
    lock,
    property_table::{PropertyTable, property_methods},
};
use clinspect_core::{ClError, learning::Contrasts};
use clinspect_operators::{
    Components, Contrast, Limit, PitchThreshold, PitchThresholdSettings, Subject,
};

/// Frames with the same plan before kernels are compiled for it: a change of settings must not wait for the
/// compiler, and a slider makes many.
const STEADY_FRAMES: u64 = 30;

/// Instance of `clpitchthreshold`.
#[derive(Default)]
pub struct ClPitchThreshold {
    inspector: Inspector,
    settings: Mutex<Settings>,
    pub(super) estimated: Estimated,
    pub(super) presence: Presence,
}

/// What the element keeps from frame to frame.
#[derive(Default)]
pub struct State {
    estimation: Estimation,
    turn_check: TurnCheck,
    steady: PlanAge,
    learned: Learned,
    /// Vectors and multiples of the comparisons that judge few pixels.
    weak: LastReport<Vec<(usize, u32)>>,
    /// [`InForce::number`] and the element's revision at the frame that was learned from last.
    followed: [u64; 2],
    /// What frames are looked at for, with this number and revision.
    looks_for: Subjects,
}

/// For what frames are looked at before they are compared.
#[derive(Debug, Clone, Copy, Default)]
struct Subjects {
    /// Pitches or vectors, which are estimated.
    repeats: bool,
    /// A pattern that is turned against the axes.
    turn: bool,
    /// The contrast, which is not known yet.
    contrast: bool,
}

/// For how long the plan has been the same.
#[derive(Default)]
struct PlanAge {
    plan: Option<Plan>,
    /// Number of the operator that was counted last.
    operator: u64,
    frames: u64,
    /// The plan has been in use for long enough, and its pitches will hardly change.
    is_steady: bool,
}

/// Compares frames, and copies the lines from which the pitches are estimated.
type Operator = Components<PitchThreshold>;

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| debug_category("clpitchthreshold", "OpenCL pitch comparison"));

impl ClPitchThreshold {
    fn set_contrasts(&self, contrasts: Vec<f64>) {
        lock(&self.settings).contrasts = contrasts.into();
        self.obj().notify("contrasts");
    }

    /// Warns once of comparisons that can judge less than half of the regions' pixels.
    fn warn_weak(
        &self,
        in_force: &InForce<Plan, Operator>,
        last: &mut LastReport<Vec<(usize, u32)>>,
    ) {
        let InForce {
            operator, settings, ..
        } = in_force;
        let Some(first) = operator.all().first() else {
            return;
        };
        let weak = first.weak_comparisons();
        // Estimated vectors differ a little from frame to frame.
        let names = weak.iter().map(|c| (c.vector, c.multiple));
        if !last.is_new(names.collect()) {
            return;
        }
        let [x, y] = operator.pitches();
        let is_alone = settings.properties.multiples.usable().len() == 1;
        for weak in weak {
            let advice = if is_alone {
                String::new()
            } else {
                format!(", or set multiples without {}", weak.multiple)
            };
            let [columns, rows] = weak.distance.margins();
            // An estimated pitch has many digits.
            let short = |pitch: f64| (1000.0 * pitch).round() / 1000.0;
            let (of, away) = match (first.lattice(), weak.vector) {
                (Some(lattice), number) => {
                    let v = lattice.vectors().get(number).copied().unwrap_or_default();
                    let of = format!("the vector ({}, {}) of lattice", short(v[0]), short(v[1]));
                    (of, format!("{columns} columns and {rows} rows"))
                }
                (None, 0) => (format!("pitch-x={}", short(x)), format!("{columns} pixels")),
                (None, _) => (format!("pitch-y={}", short(y)), format!("{rows} pixels")),
            };
            gst::element_imp_warning!(
                self,
                gst::StreamError::Format,
                (
                    "multiple {} of {} compares less than half of the pixels to be judged, \
                     because their neighbours {} away lie outside the frame; use larger \
                     frames{}",
                    weak.multiple,
                    of,
                    away,
                    advice
                )
            );
        }
    }
}

static PROPERTIES: LazyLock<PropertyTable<ClPitchThreshold>> = LazyLock::new(|| {
    let table = inspector::with_properties(PropertyTable::<ClPitchThreshold>::new(&CAT));
    base_filter::with_line_scan(table)
        .with(|this| &this.settings, rows())
        .with_read_only(Estimated::spec(), |this| this.estimated.get().to_value())
});

element_class!(
    ClPitchThreshold: ClBaseFilter,
    "GstClPitchThreshold",
    inspector::templates(),
    "OpenCL pitch comparison",
    "Filter/Analyzer/Video",
    "Compares a repeating pattern with itself on an OpenCL device, and sends a \
     1-bit defect mask with a verdict",
);

impl ObjectImpl for ClPitchThreshold {
    property_methods!(PROPERTIES);

    fn signals() -> &'static [glib::subclass::Signal] {
        static SIGNALS: LazyLock<Vec<Signal>> = LazyLock::new(|| {
            let [learn, forget] = inspector::learn_signals::<ClPitchThreshold>();
            let take_contrast = contrast::contrast_signal(|this: &ClPitchThreshold| {
                this.set_contrasts(Vec::new());
                &this.presence
            });
            vec![take_contrast, learn, forget]
        });
        SIGNALS.as_ref()
    }
}

impl BaseTransformImpl for ClPitchThreshold {
    const MODE: BaseTransformMode = BaseTransformMode::Both;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;
}

impl ClBaseFilterImpl for ClPitchThreshold {
    const TASK: &'static str = inspector::TASK;
    const COUNTS: &'static [&'static str] = &inspector::COUNTS;

    fn check(&self, _images: bool) -> Result<(), ClError> {
        self.inspector.check()?;
        let settings = lock(&self.settings).clone();
        inspector::check_regions(&settings.rois)?;
        let pitches = settings.pitches([None; 2]);
        settings.comparison(pitches, None)?.check()
    }

    fn open(&self) -> Box<dyn FrameStream> {
        InspectorStream::open(self, State::default())
    }

    fn close(&self) {
        self.inspector.close();
    }

    fn other_caps(&self, direction: gst::PadDirection, caps: &gst::Caps) -> Option<gst::Caps> {
        Some(self.inspector.other_caps(direction, caps))
    }
}

impl InspectorImpl for ClPitchThreshold {
    const MESSAGE: &'static str = "clpitchthreshold";
    const CHECK: &'static str =
        "check pitch, light and focus, or inspect a natural texture with cltexture";
    type Output = inspector::PitchThresholdOutput;

    fn inspector(&self) -> &Inspector {
        &self.inspector
    }

    fn set_limits(&self, limits: &[(Limit, f64)]) {
        let element = self.obj();
        let values: Vec<f64> = limits.iter().map(|&(_, value)| value).collect();
        if lock(&self.settings).colour.take(limits) {
            element.notify("component-limits");
            return;
        }
        lock(&self.settings).set_limits(&values);
        element.notify("threshold");
        if limits.len() > 1 {
            element.notify("scale-factors");
        }
    }
}

impl State {
    /// Takes the contrasts of good frames.
    fn take_contrasts(
        &mut self,
        element: &ClPitchThreshold,
        in_force: &mut InForce<Plan, Operator>,
        contrasts: Contrasts,
    ) {
        let object = element.obj();
        let of = (object.upcast_ref(), &element.estimated);
        Presence::take(of, in_force, &mut self.learned, contrasts);
    }

    /// Looks for the pitches and the lattice in a frame, and applies those that are new.
    fn estimate(
        &mut self,
        element: &ClPitchThreshold,
        live: &mut Live<Plan, Operator>,
        view: &View,
    ) -> Result<(), ClError> {
        let object = element.obj();
        let object: &ClBaseFilter = object.upcast_ref();
        let due = self.estimation.is_due(view);
        if due.pitches || due.lattice {
            let operator = &mut live.in_force()?.operator;
            let before = self.estimation.vectors_of_frame();
            let due = (due, [true; 2]);
            let changes = self.estimation.update(operator, due, view)?;
            let is_told = changes.contains(&Change::Pitch);
            if is_told || self.estimation.vectors_of_frame() != before {
                self.apply_estimates(element, live, is_told)?;
            }
            let in_use = &live.in_force()?.settings;
            let is_alone = in_use.pitches == [0.0; 2] && in_use.lattice.is_none();
            post_changes(object, &changes, is_alone);
        }
        Ok(())
    }

    /// Takes what the settings in force ask to estimate.
    fn follow(&mut self, element: &ClPitchThreshold, properties: &Settings) {
        let (wanted, wants_lattice) = (properties.estimates(), properties.estimates_lattice());
        if self.estimation.follow(wanted, wants_lattice) {
            let object = element.obj();
            element.estimated.set(object.upcast_ref(), &self.estimation);
        }
        self.looks_for.repeats = wanted != [false; 2];
        self.looks_for.turn = properties.may_be_turned() && !self.turn_check.is_over();
    }

    /// Compares at the estimates from now on; `is_told`: as a message says.
    fn apply_estimates(
        &mut self,
        element: &ClPitchThreshold,
        live: &mut Live<Plan, Operator>,
        is_told: bool,
    ) -> Result<(), ClError> {
        let object = element.obj();
        let object: &ClBaseFilter = object.upcast_ref();
        let known = self.estimation.pitches();
        let lattice = self.estimation.vectors_of_frame();
        if is_told {
            element.estimated.set(object, &self.estimation);
            gst::info!(
                CAT,
                imp = element,
                "estimated pitches {known:?}, {lattice:?}"
            );
        }
        let InForce {
            operator, settings, ..
        } = live.in_force()?;
        let plan = Plan {
            pitches: settings.properties.pitches(known),
            lattice,
            // The estimates may still change.
            is_steady: false,
            ..settings.clone()
        };
        // The properties were accepted; only the estimates may not fit the frame.
        let keep = |_: &Plan, _: &Plan| {};
        let is_turning = lattice.is_some() != settings.lattice.is_some();
        if operator.pitches() == [0.0; 2] || is_turning {
            // At the pitches in use this frame could not be judged, so wait for the operator.
            live.switch(plan, keep)?;
        } else {
            live.apply(plan, keep)?;
        }
        if is_told {
            (element.estimated).post(object, ClPitchThreshold::MESSAGE);
        }
        Ok(())
    }
}

/// The contrasts that are set for the components in use.
fn set_of(in_force: &InForce<Plan, Operator>) -> Option<Contrasts> {
    let properties = &in_force.settings.properties;
    properties.contrasts_of(in_force.operator.all().len())
}

impl Comparing for State {
    type Element = ClPitchThreshold;
    type Settings = Plan;
    type Operator = Operator;

    fn settings(&self, element: &ClPitchThreshold) -> Plan {
        let properties = lock(&element.settings).clone();
        let plan = Plan {
            pitches: properties.pitches(self.estimation.pitches()),
            lattice: (self.estimation.vectors_of_frame())
                .filter(|_| properties.estimates_lattice()),
            ignore: element.inspector.ignore(),
            properties,
            is_steady: false,
        };
        Plan {
            is_steady: self.steady.holds(&plan),
            ..plan
        }
    }

    fn restore(element: &ClPitchThreshold, refused: &Plan, in_force: &Plan) {
        element.inspector.restore(&refused.ignore, &in_force.ignore);
        let now = &mut *lock(&element.settings);
        put_back(now, &refused.properties, &in_force.properties);
    }

    fn build(target: &Target, plan: &Plan) -> Result<Operator, ClError> {
        let properties = &plan.properties;
        let layout = &target.layout;
        let frame_height = (!target.line_scan).then_some(layout.height);
        let rois = inspector::regions(&properties.rois, target)?;
        let ignored = plan.ignore.pixels(layout.width, frame_height)?;
        let trial = colour::trial(target)?;
        let comparison = properties.colour.build(target, |layout, component| {
            let settings = PitchThresholdSettings {
                rois: rois.clone(),
                ignored: ignored.clone(),
                line_scan: target.line_scan,
                image: target.images,
                is_steady: plan.is_steady,
                bit_depth: target.bit_depth(properties.bit_depth),
                ..properties
                    .of_component(component)?
                    .comparison(plan.pitches, plan.lattice)?
            };
            let comparison = PitchThreshold::new(&target.context, layout, &settings)?;
            trial.pitch_threshold(layout, &settings)?;
            Ok(comparison)
        })?;
        let comparison = comparison.with_probes(properties.estimates())?;
        if properties.estimates_lattice() || properties.may_be_turned() {
            comparison.with_middle()
        } else {
            Ok(comparison)
        }
    }

    fn negotiate(&mut self, element: &ClPitchThreshold, _caps: &Negotiated) {
        *self = Self::default();
        let object = element.obj();
        let estimated = &element.estimated;
        (element.presence).forget(object.upcast_ref(), estimated, &mut self.learned);
        estimated.set(object.upcast_ref(), &self.estimation);
    }

    fn learn(
        &mut self,
        element: &ClPitchThreshold,
        live: &mut Live<Plan, Operator>,
        view: &View,
    ) -> Result<(), ClError> {
        let object = element.obj();
        let object: &ClBaseFilter = object.upcast_ref();
        let revision = object.revision();
        let InForce {
            settings, number, ..
        } = live.in_force()?;
        if self.followed[0] != *number {
            self.follow(element, &settings.properties);
        }
        if self.looks_for.repeats {
            self.estimate(element, live, view)?;
        }
        let in_force = live.in_force()?;
        if self.looks_for.turn {
            let pitches = in_force.operator.pitches();
            (self.turn_check).update(object, &mut in_force.operator, pitches, view)?;
            self.looks_for.turn = !self.turn_check.is_over();
        }
        if self.followed[0] != in_force.number {
            element.warn_weak(in_force, &mut self.weak);
        }
        if self.looks_for.contrast || self.followed != [in_force.number, revision] {
            let properties = &in_force.settings.properties;
            let wanted = (
                properties.contrast(),
                set_of(in_force),
                properties.estimates(),
            );
            let of = (object, &element.estimated);
            let learned = &mut self.learned;
            (element.presence).update(of, wanted, in_force, learned, view)?;
            self.looks_for.contrast = wanted.0 == Contrast::Unknown && !self.learned.is_known();
            self.followed = [in_force.number, revision];
        }
        Ok(())
    }

    fn learning(&self, in_force: &InForce<Plan, Operator>) -> Learning {
        let properties = &in_force.settings.properties;
        let estimates = properties.estimates();
        let learns_contrast = properties.contrast() == Contrast::Unknown;
        if estimates == [false; 2] && !learns_contrast {
            Learning::Off
        } else if in_force.operator.pitches() == [0.0; 2]
            || (learns_contrast && !self.learned.is_known() && set_of(in_force).is_none())
        {
            Learning::Needed
        } else {
            Learning::Known
        }
    }

    fn prepare(&mut self, element: &ClPitchThreshold, in_force: &mut InForce<Plan, Operator>) {
        let may_move = self.looks_for.repeats && self.estimation.may_move();
        if self.steady.count(in_force, may_move) {
            element.obj().revise();
        }
        // A web learns from time to time only, and the comparison may have been built since then.
        if self.followed[0] != in_force.number
            && in_force.settings.properties.contrast() == Contrast::Unknown
        {
            match set_of(in_force) {
                Some(set) => self.take_contrasts(element, in_force, set),
                None => self.learned.give(in_force),
            }
        }
    }

    fn counted_under(plan: &Plan) -> Plan {
        let mut counted = plan.clone();
        counted.properties.forget_limits();
        // Pieces that lie otherwise are judged by one limit.
        counted.lattice = None;
        // All kernels count the same.
        counted.is_steady = false;
        counted
    }

    fn contrasts(
        in_force: &mut InForce<Plan, Operator>,
        Subject {
            frame,
            window,
            meter,
        }: Subject,
    ) -> Result<Contrasts, ClError> {
        let InForce {
            operator, settings, ..
        } = in_force;
        let properties = &settings.properties;
        if properties.contrast() != Contrast::Unknown {
            return Ok(Contrasts::default());
        }
        let of = (frame, window.height);
        let contrasts = contrast::contrasts_of(operator, of, properties.estimates(), meter)?;
        Ok(contrasts.unwrap_or_default())
    }

    fn set_contrasts(
        &mut self,
        element: &ClPitchThreshold,
        in_force: &mut InForce<Plan, Operator>,
        contrasts: Contrasts,
    ) {
        let is_wanted = in_force.settings.properties.contrast() == Contrast::Unknown;
        if is_wanted && contrasts.largest() > 0.0 {
            self.take_contrasts(element, in_force, contrasts);
            let components = in_force.operator.all().len().min(contrasts.0.len());
            element.set_contrasts(contrasts.0[..components].to_vec());
        }
    }

    fn channels(in_force: &InForce<Plan, Operator>) -> Vec<String> {
        colour::channels(&in_force.operator, &[])
    }

    fn threshold(in_force: &InForce<Plan, Operator>) -> f64 {
        let properties = &in_force.settings.properties;
        let colour = &properties.colour;
        colour.shared(&in_force.operator, properties.threshold)
    }

    fn difference_gain(plan: &Plan) -> f64 {
        plan.properties.difference_gain
    }

    fn in_words(in_force: &InForce<Plan, Operator>) -> String {
        let properties = &in_force.settings.properties;
        let operators = in_force.operator.all().iter();
        properties.in_words(operators.map(PitchThreshold::contrast))
    }
}

impl PlanAge {
    /// Counts a frame; `may_move`: a pitch may soon change. Returns whether the plan became steady, or stopped being so.
    fn count<O>(&mut self, in_force: &InForce<Plan, O>, may_move: bool) -> bool {
        self.frames += 1;
        if std::mem::replace(&mut self.operator, in_force.number) != in_force.number {
            let plan = Plan {
                is_steady: false,
                ..in_force.settings.clone()
            };
            if self.plan.as_ref() != Some(&plan) {
                self.plan = Some(plan);
                self.frames = 0;
            }
        }
        let is_steady = !may_move && self.frames >= STEADY_FRAMES;
        std::mem::replace(&mut self.is_steady, is_steady) != is_steady
    }

    /// Whether this plan is the one that is steady.
    fn holds(&self, plan: &Plan) -> bool {
        self.is_steady && self.plan.as_ref() == Some(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elements::inspector::Ignore;

    #[test]
    fn settings_are_steady_after_thirty_frames_without_a_change() {
        let plan = |threshold| Plan {
            properties: Settings {
                threshold,
                ..Settings::default()
            },
            pitches: [0.0; 2],
            lattice: None,
            ignore: Ignore::default(),
            is_steady: false,
        };
        let operator = |number, threshold, is_steady| InForce {
            operator: (),
            settings: Plan {
                is_steady,
                ..plan(threshold)
            },
            number,
        };
        let first = operator(1, 10.0, false);
        let mut steady = PlanAge::default();
        assert!(!steady.holds(&plan(10.0)));
        for _ in 0..STEADY_FRAMES {
            assert!(!steady.count(&first, false));
            assert!(!steady.holds(&plan(10.0)));
        }
        assert!(steady.count(&first, false), "the plan became steady");
        assert!(steady.holds(&plan(10.0)));
        // Another threshold is not in use yet.
        assert!(!steady.holds(&plan(11.0)));
        let compiled = operator(2, 10.0, true);
        assert!(!steady.count(&compiled, false), "the same plan");
        assert!(steady.holds(&plan(10.0)));
        assert!(steady.count(&compiled, true), "a pitch may move");
        assert!(!steady.holds(&plan(10.0)));
        assert!(steady.count(&compiled, false), "it has settled");
        assert!(steady.count(&operator(3, 11.0, false), false));
        assert!(!steady.holds(&plan(10.0)) && !steady.holds(&plan(11.0)));
    }
}
