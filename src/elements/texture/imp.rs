//! Implementation of `cltexture`.

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
        self, ClBaseFilter, ClBaseFilterImpl, FrameStream, InForce, Learning, Live, Negotiated,
        Target, View, put_back,
    },
    debug_category, element_class,
    inspector::{
        self, Comparing, Inspector, InspectorImpl, InspectorStream, MaskedOutput, Regions, colour,
        contrast::{self, Learned, Presence},
        pattern::{Change, Due, Estimated, Estimation, post_changes},
    },
    lock,
    property_table::{PropertyTable, property_methods},
};
use clinspect_core::{ClError, texture::CHANNEL_NAMES};
use clinspect_operators::{Component, Components, Contrast, Limit, Texture, TextureSettings};

/// Instance of `cltexture`.
#[derive(Default)]
pub struct ClTexture {
    inspector: Inspector,
    settings: Mutex<Settings>,
    estimated: Estimated,
    presence: Presence,
}

/// What the element keeps from frame to frame.
pub struct State {
    estimation: Estimation,
    learned: Learned,
}

impl Default for State {
    fn default() -> Self {
        Self {
            estimation: Estimation::of_texture(),
            learned: Learned::default(),
        }
    }
}

/// Compares frames, and copies the lines from which the pitches are estimated.
type Operator = Components<Texture>;

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| debug_category("cltexture", "OpenCL texture comparison"));

static PROPERTIES: LazyLock<PropertyTable<ClTexture>> = LazyLock::new(|| {
    let table = inspector::with_properties(PropertyTable::<ClTexture>::new(&CAT));
    base_filter::with_line_scan(table)
        .with(|this| &this.settings, rows())
        .with_read_only(Estimated::spec(), |this| this.estimated.get().to_value())
});

element_class!(
    ClTexture: ClBaseFilter,
    "GstClTexture",
    inspector::templates(),
    "OpenCL texture comparison",
    "Filter/Analyzer/Video",
    "Compares cloth and other natural textures with themselves on an OpenCL device, and sends a \
     1-bit defect mask with a verdict",
);

impl ObjectImpl for ClTexture {
    property_methods!(PROPERTIES);

    fn signals() -> &'static [glib::subclass::Signal] {
        static SIGNALS: LazyLock<Vec<Signal>> = LazyLock::new(|| {
            let [learn, forget] = inspector::learn_signals::<ClTexture>();
            let take_contrast = contrast::contrast_signal(|this: &ClTexture| &this.presence);
            vec![take_contrast, learn, forget]
        });
        SIGNALS.as_ref()
    }
}

impl BaseTransformImpl for ClTexture {
    const MODE: BaseTransformMode = BaseTransformMode::Both;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;
}

impl ClBaseFilterImpl for ClTexture {
    const TASK: &'static str = inspector::TASK;
    const COUNTS: &'static [&'static str] = &inspector::COUNTS;

    fn check(&self, _images: bool) -> Result<(), ClError> {
        self.inspector.check()?;
        let settings = lock(&self.settings).clone();
        inspector::check_regions(&settings.rois.rois)?;
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

impl InspectorImpl for ClTexture {
    const MESSAGE: &'static str = "cltexture";
    const CHECK: &'static str = "check the pitches, light and focus";
    type Output = MaskedOutput;

    fn inspector(&self) -> &Inspector {
        &self.inspector
    }

    fn set_limits(&self, limits: &[(Limit, f64)]) {
        if lock(&self.settings).colour.take(limits) {
            self.obj().notify("component-limits");
            return;
        }
        let thresholds: Vec<f64> = limits.iter().map(|&(_, value)| value).collect();
        lock(&self.settings).thresholds = thresholds.into();
        self.obj().notify("thresholds");
    }
}

impl State {
    /// Looks for the pitches and the lattice in a frame.
    fn estimate(
        &mut self,
        element: &ClTexture,
        live: &mut Live<Plan, Operator>,
        view: &View,
    ) -> Result<(), ClError> {
        let object = element.obj();
        let object: &ClBaseFilter = object.upcast_ref();
        let InForce {
            operator, settings, ..
        } = live.in_force()?;
        let properties = &settings.properties;
        let (wanted, wants_lattice) = (properties.estimates(), properties.estimates_lattice());
        if self.estimation.follow(wanted, wants_lattice) {
            element.estimated.set(object, &self.estimation);
        }
        // The pitch along the web varies with the line's speed, so each frame tells its own where pitches count. The camera's
        // distance decides that along a row.
        let is_due = self.estimation.is_due(view);
        let axes = [is_due.pitches, true];
        let due = Due {
            pitches: is_due.pitches || self.estimation.held_vectors().is_none(),
            ..is_due
        };
        let changes = (self.estimation).update(operator, (due, axes), view)?;
        if changes.contains(&Change::Pitch) {
            let known = self.estimation.pitches();
            element.estimated.set(object, &self.estimation);
            let lattice = self.estimation.held_vectors();
            gst::info!(
                CAT,
                imp = element,
                "estimated pitches {known:?}, {lattice:?}"
            );
            (element.estimated).post(object, ClTexture::MESSAGE);
        }
        // A texture needs both axes.
        post_changes(object, &changes, true);
        Ok(())
    }

    /// Gives the operator the pitches or vectors in use. If estimates do not fit the frame, those before stay.
    fn apply_repeats(&self, in_force: &mut InForce<Plan, Operator>) {
        let properties = &in_force.settings.properties;
        let pitches = properties.pitches(self.estimation.pitches_of_frame());
        let lattice = properties.vectors(self.estimation.vectors_of_frame());
        for part in in_force.operator.all_mut() {
            let lattice = lattice.clone();
            if let Err(why) = lattice.and_then(|lattice| part.set_repeats(pitches, lattice)) {
                gst::debug!(
                    CAT,
                    "{pitches:?}, {:?}: {why}",
                    self.estimation.vectors_of_frame()
                );
            }
        }
    }
}

/// The minimum contrast that is wanted.
fn wanted_contrast(in_force: &InForce<Plan, Operator>) -> Contrast {
    let InForce {
        operator, settings, ..
    } = in_force;
    // If components have limits of their own, these have the contrast of each.
    let first = Component::ALL.into_iter().find(|_| operator.are_apart());
    let own = settings.properties.of_component(first);
    own.map_or(settings.properties.contrast(), |own| own.contrast())
}

impl Comparing for State {
    type Element = ClTexture;
    type Settings = Plan;
    type Operator = Operator;

    fn settings(&self, element: &ClTexture) -> Plan {
        let properties = lock(&element.settings).clone();
        Plan {
            ignore: element.inspector.ignore(),
            properties,
        }
    }

    fn restore(element: &ClTexture, refused: &Plan, in_force: &Plan) {
        element.inspector.restore(&refused.ignore, &in_force.ignore);
        let now = &mut *lock(&element.settings);
        put_back(now, &refused.properties, &in_force.properties);
    }

    fn build(target: &Target, plan: &Plan) -> Result<Operator, ClError> {
        let properties = &plan.properties;
        let (rois, ignored) = inspector::judged_pixels(target, plan.regions())?;
        let trial = colour::trial(target)?;
        let comparison = properties.colour.build(target, |layout, component| {
            let properties = properties.of_component(component)?;
            let settings = TextureSettings {
                rois: rois.clone(),
                ignored: ignored.clone(),
                line_scan: target.line_scan,
                image: target.images,
                bit_depth: target.bit_depth(properties.bit_depth),
                // Estimates follow from frame to frame.
                ..properties.comparison(properties.pitches([None; 2]))?
            };
            let comparison = Texture::new(&target.context, layout, &settings)?;
            trial.texture(layout, &settings)?;
            Ok(comparison)
        })?;
        let comparison = comparison.with_probes(properties.estimates())?;
        if properties.estimates_lattice() {
            comparison.with_middle()
        } else {
            Ok(comparison)
        }
    }

    fn negotiate(&mut self, element: &ClTexture, _caps: &Negotiated) {
        *self = Self::default();
        let object = element.obj();
        let object: &ClBaseFilter = object.upcast_ref();
        (element.presence).forget(object, &element.estimated, &mut self.learned);
        element.estimated.set(object, &self.estimation);
    }

    fn learn(
        &mut self,
        element: &ClTexture,
        live: &mut Live<Plan, Operator>,
        view: &View,
    ) -> Result<(), ClError> {
        self.estimate(element, live, view)?;
        let in_force = live.in_force()?;
        self.apply_repeats(in_force);
        let contrast = wanted_contrast(in_force);
        let object = element.obj();
        let wanted = (contrast, None, in_force.settings.properties.estimates());
        let of = (object.upcast_ref(), &element.estimated);
        let learned = &mut self.learned;
        (element.presence).update(of, wanted, in_force, learned, view)
    }

    fn learning(&self, in_force: &InForce<Plan, Operator>) -> Learning {
        let properties = &in_force.settings.properties;
        let learns_contrast = wanted_contrast(in_force) == Contrast::Unknown;
        if properties.estimates() == [false; 2] && !learns_contrast {
            Learning::Off
        } else if !in_force.operator.all().iter().all(Texture::has_repeats)
            || (learns_contrast && !self.learned.is_known())
        {
            Learning::Needed
        } else {
            Learning::Known
        }
    }

    fn prepare(&mut self, _: &ClTexture, in_force: &mut InForce<Plan, Operator>) {
        self.apply_repeats(in_force);
        // A web learns from time to time only, and the comparison may have been built since then.
        if wanted_contrast(in_force) == Contrast::Unknown {
            self.learned.give(in_force);
        }
    }

    fn regions(plan: &Plan) -> Option<Regions<'_>> {
        Some(plan.regions())
    }

    fn lacks_limits(in_force: &InForce<Plan, Operator>) -> bool {
        let properties = &in_force.settings.properties;
        let colour = &properties.colour;
        properties.thresholds.usable().is_empty() && !colour.has_own(&in_force.operator)
    }

    fn counted_under(plan: &Plan) -> Plan {
        let mut counted = plan.clone();
        counted.properties.thresholds = Default::default();
        counted.properties.colour.forget_limits();
        counted
    }

    fn channels(in_force: &InForce<Plan, Operator>) -> Vec<String> {
        colour::channels(&in_force.operator, &CHANNEL_NAMES)
    }

    fn threshold(_: &InForce<Plan, Operator>) -> f64 {
        // The channels have thresholds of their own, which are no grey levels.
        0.0
    }

    fn difference_gain(_: &Plan) -> f64 {
        0.0
    }

    fn in_words(in_force: &InForce<Plan, Operator>) -> String {
        let operators = in_force.operator.all().iter();
        (in_force.settings.properties).in_words(operators.map(Texture::contrast))
    }
}
