//! Implementation of `clpitchthreshold`.

use std::sync::{LazyLock, Mutex};

use gst::{
    glib::{self, subclass::Signal},
    prelude::*,
    subclass::prelude::*,
};
use gst_base::subclass::{BaseTransformMode, prelude::*};

use super::{
    properties::{Plan, Settings, rows},
    steady::Steady,
};
use crate::elements::{
    base_filter::{
        self, ClBaseFilter, ClBaseFilterImpl, FrameStream, InForce, Learning, Live, Negotiated,
        Target, View, put_back,
    },
    debug_category,
    inspector::{
        self, Comparing, Inspector, InspectorImpl, InspectorStream, colour,
        pitches::{Change, Estimated, Estimation, Probed, post_changes},
        presence::{self, Learned, Presence},
    },
    last_report::LastReport,
    lock,
    property_table::{PropertyTable, property_methods},
};
use clinspect_core::{ClError, pitch::Axis};
use clinspect_operators::{
    Components, Contrast, Inspection, Limit, PitchThreshold, PitchThresholdSettings,
};

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
    steady: Steady,
    learned: Learned,
    /// Axes and multiples of the comparisons that judge few pixels.
    weak: LastReport<Vec<(Axis, u32)>>,
}

/// What an operator is built from.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    plan: Plan,
    /// The plan will stay as it is for long, so kernels are compiled for it alone.
    is_steady: bool,
}

/// Compares frames, and copies the lines from which the pitches are estimated.
type Operator = Probed<Components<PitchThreshold>>;

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| debug_category("clpitchthreshold", "OpenCL pitch comparison"));

impl ClPitchThreshold {
    /// Warns once of comparisons that can judge less than half of the regions' pixels.
    fn warn_weak(
        &self,
        in_force: &InForce<Wanted, Operator>,
        last: &mut LastReport<Vec<(Axis, u32)>>,
    ) {
        let InForce { operator, settings } = in_force;
        let Some(first) = operator.all().first() else {
            return;
        };
        let weak = first.weak_comparisons();
        let names: Vec<(Axis, u32)> = weak.iter().map(|c| (c.axis, c.multiple)).collect();
        if !last.is_new(names) {
            return;
        }
        let [x, y] = operator.pitches();
        let is_alone = settings.plan.properties.multiples.usable().len() == 1;
        for weak in weak {
            let advice = if is_alone {
                String::new()
            } else {
                format!(", or set multiples without {}", weak.multiple)
            };
            let (name, pitch) = match weak.axis {
                Axis::X => ("pitch-x", x),
                Axis::Y => ("pitch-y", y),
            };
            gst::element_imp_warning!(
                self,
                gst::StreamError::Format,
                (
                    "multiple {} of {}={} compares less than half of the pixels to be judged, \
                     because their neighbours {} pixels away lie outside the frame; use larger \
                     frames{}",
                    weak.multiple,
                    name,
                    // An estimated pitch has many digits.
                    (1000.0 * pitch).round() / 1000.0,
                    weak.margin(),
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

#[glib::object_subclass]
impl ObjectSubclass for ClPitchThreshold {
    const NAME: &'static str = "GstClPitchThreshold";
    type Type = super::ClPitchThreshold;
    type ParentType = ClBaseFilter;
}

impl ObjectImpl for ClPitchThreshold {
    property_methods!(PROPERTIES);

    fn signals() -> &'static [glib::subclass::Signal] {
        static SIGNALS: LazyLock<Vec<Signal>> = LazyLock::new(|| {
            let [learn, forget] = inspector::learn_signals::<ClPitchThreshold>();
            let take_contrast = presence::signal(|this: &ClPitchThreshold| &this.presence);
            vec![take_contrast, learn, forget]
        });
        SIGNALS.as_ref()
    }
}

impl GstObjectImpl for ClPitchThreshold {}

impl ElementImpl for ClPitchThreshold {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "OpenCL pitch comparison",
                "Filter/Analyzer/Video",
                "Compares a repeating pattern with itself on an OpenCL device, and sends a \
                 1-bit defect mask with a verdict",
                "gst-plugin-clinspect developers",
            )
        });
        Some(&*METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        inspector::templates()
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
        settings.comparison(pitches)?.check()
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
    /// Looks for the pitches in a frame, and applies those that are new.
    fn estimate(
        &mut self,
        element: &ClPitchThreshold,
        live: &mut Live<Wanted, Operator>,
        view: &View,
    ) -> Result<(), ClError> {
        let InForce { operator, settings } = live.in_force()?;
        let properties = &settings.plan.properties;
        if self.estimation.follow(properties.estimates()) {
            let known = self.estimation.pitches();
            element
                .estimated
                .set_pitches(element.obj().upcast_ref(), known);
        }
        if !self.estimation.is_due(view) {
            return Ok(());
        }
        let changes = self.estimation.update(operator, [true; 2], view)?;
        if changes.contains(&Change::Pitch) {
            self.apply_estimates(element, live)?;
        }
        let is_alone = live.in_force()?.settings.plan.pitches == [0.0; 2];
        post_changes(element.obj().upcast_ref(), &changes, is_alone);
        Ok(())
    }

    fn apply_estimates(
        &mut self,
        element: &ClPitchThreshold,
        live: &mut Live<Wanted, Operator>,
    ) -> Result<(), ClError> {
        let known = self.estimation.pitches();
        element
            .estimated
            .set_pitches(element.obj().upcast_ref(), known);
        gst::info!(CAT, imp = element, "estimated pitches {known:?}");
        let InForce { operator, settings } = live.in_force()?;
        let wanted = Wanted {
            plan: Plan {
                pitches: settings.plan.properties.pitches(known),
                ..settings.plan.clone()
            },
            // The pitch may still change.
            is_steady: false,
        };
        // The properties were accepted; only the estimated pitches may not fit the frame.
        let keep = |_: &Wanted, _: &Wanted| {};
        if operator.pitches() == [0.0; 2] {
            // Without a pitch this frame could not be judged, so wait for the operator.
            live.switch(wanted, keep)?;
        } else {
            live.follow(wanted, keep)?;
        }
        (element.estimated).post(element.obj().upcast_ref(), ClPitchThreshold::MESSAGE);
        Ok(())
    }
}

impl Comparing for State {
    type Element = ClPitchThreshold;
    type Settings = Wanted;
    type Operator = Operator;

    fn settings(&self, element: &ClPitchThreshold) -> Wanted {
        let properties = lock(&element.settings).clone();
        let plan = Plan {
            pitches: properties.pitches(self.estimation.pitches()),
            ignore: element.inspector.ignore(),
            properties,
        };
        Wanted {
            is_steady: !self.estimation.may_move() && self.steady.holds(&plan),
            plan,
        }
    }

    fn restore(element: &ClPitchThreshold, refused: &Wanted, in_force: &Wanted) {
        let (refused, in_force) = (&refused.plan, &in_force.plan);
        element.inspector.restore(&refused.ignore, &in_force.ignore);
        let now = &mut *lock(&element.settings);
        put_back(now, &refused.properties, &in_force.properties);
    }

    fn build(target: &Target, wanted: &Wanted) -> Result<Operator, ClError> {
        let Wanted { plan, is_steady } = wanted;
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
                is_steady: *is_steady,
                bit_depth: target.bit_depth(properties.bit_depth),
                ..properties
                    .of_component(component)?
                    .comparison(plan.pitches)?
            };
            let comparison = PitchThreshold::new(&target.context, layout, &settings)?;
            trial.pitch_threshold(layout, &settings)?;
            Ok(comparison)
        })?;
        Probed::new(comparison, target, properties.estimates())
    }

    fn negotiate(&mut self, element: &ClPitchThreshold, _caps: &Negotiated) {
        *self = Self::default();
        let object = element.obj();
        let estimated = &element.estimated;
        (element.presence).forget(object.upcast_ref(), estimated, &mut self.learned);
        element
            .estimated
            .set_pitches(element.obj().upcast_ref(), [None; 2]);
    }

    fn learn(
        &mut self,
        element: &ClPitchThreshold,
        live: &mut Live<Wanted, Operator>,
        view: &View,
    ) -> Result<(), ClError> {
        self.estimate(element, live, view)?;
        let in_force = live.in_force()?;
        element.warn_weak(in_force, &mut self.weak);
        let InForce { operator, settings } = in_force;
        let properties = &settings.plan.properties;
        let learned = &mut self.learned;
        let object = element.obj();
        let wanted = (properties.contrast(), properties.estimates());
        let of = (object.upcast_ref(), &element.estimated);
        (element.presence).update(of, wanted, &mut operator.comparison, learned, view)
    }

    fn learning(&self, in_force: &InForce<Wanted, Operator>) -> Learning {
        let properties = &in_force.settings.plan.properties;
        let estimates = properties.estimates();
        let learns_contrast = properties.contrast() == Contrast::Unknown;
        if estimates == [false; 2] && !learns_contrast {
            Learning::Off
        } else if in_force.operator.pitches() == [0.0; 2]
            || (learns_contrast && !self.learned.is_known())
        {
            Learning::Needed
        } else {
            Learning::Known
        }
    }

    fn prepare(&mut self, in_force: &mut InForce<Wanted, Operator>) {
        let InForce { operator, settings } = in_force;
        self.steady.count(&settings.plan);
        // A web learns from time to time only, and the comparison may have been built since then.
        if settings.plan.properties.contrast() == Contrast::Unknown {
            let operators = operator.all().len();
            let minimum = self.learned.minimum(operator.pitches(), operators);
            operator.set_minimum(minimum);
        }
    }

    fn counted_under(wanted: &Wanted) -> Wanted {
        let mut counted = wanted.clone();
        counted.plan.properties.forget_limits();
        // All kernels count the same.
        counted.is_steady = false;
        counted
    }

    fn contrast(&self, in_force: &InForce<Wanted, Operator>) -> Option<f64> {
        let contrast = (self.learned).contrast_of(in_force.operator.pitches())?;
        let highest = in_force.operator.limits().first()?.most;
        Some(contrast * (highest + 1.0) / 256.0)
    }

    fn channels(in_force: &InForce<Wanted, Operator>) -> Vec<String> {
        colour::channels(&in_force.operator, &[])
    }

    fn threshold(InForce { operator, settings }: &InForce<Wanted, Operator>) -> f64 {
        let properties = &settings.plan.properties;
        properties.colour.shared(operator, properties.threshold)
    }

    fn difference_gain(wanted: &Wanted) -> f64 {
        wanted.plan.properties.difference_gain
    }

    fn in_words(in_force: &InForce<Wanted, Operator>) -> String {
        let properties = &in_force.settings.plan.properties;
        let operators = in_force.operator.all().iter();
        properties.in_words(operators.map(PitchThreshold::contrast))
    }
}
