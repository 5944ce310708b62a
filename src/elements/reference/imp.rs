//! Implementation of `clreference`.

use std::sync::{Arc, LazyLock, Mutex};

use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::subclass::{BaseTransformMode, prelude::*};

use super::{
    file,
    properties::{Files, InUse, Plan, Settings, file_rows, rows},
    training::{self, Requests, Trained},
};
use crate::elements::{
    base_filter::{
        ClBaseFilter, ClBaseFilterImpl, FrameStream, InForce, Live, Negotiated, Target, View,
        put_back,
    },
    debug_category, element_class,
    inspector::{
        self, Comparing, Inspector, InspectorImpl, InspectorStream, TrainingFrame, colour,
    },
    lock,
    property_table::{PropertyTable, property_methods},
    text::Location,
};
use clinspect_core::{ClError, region::user_region, sight::Sight};
use clinspect_opencl::Meter;
use clinspect_operators::{
    Comparison, Component, Limit, Models, PartPixels, Parts, PartsPlan, PartsSettings, Reference,
    ReferenceSettings, Subject, check_opening, check_threshold, grey_of, is_colour, largest_depth,
    learns_factor,
};

/// Instance of `clreference`.
#[derive(Default)]
pub struct ClReference {
    inspector: Inspector,
    settings: Mutex<Settings>,
    files: Mutex<Files>,
    pub(super) requests: Requests,
}

/// Compares frames with the models.
pub(super) type Operator = Comparison;

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| debug_category("clreference", "OpenCL comparison with a trained picture"));

static PROPERTIES: LazyLock<PropertyTable<ClReference>> = LazyLock::new(|| {
    inspector::with_properties(PropertyTable::<ClReference>::new(&CAT))
        .with(|this| &this.settings, rows())
        .with(|this| &this.files, file_rows())
});

element_class!(
    ClReference: ClBaseFilter,
    "GstClReference",
    inspector::templates(),
    "OpenCL comparison with a reference",
    "Filter/Analyzer/Video",
    "Compares frames with a picture trained from good frames on an OpenCL device, and \
     sends a 1-bit defect mask with a verdict",
);

impl ObjectImpl for ClReference {
    property_methods!(PROPERTIES);

    fn signals() -> &'static [glib::subclass::Signal] {
        static SIGNALS: LazyLock<Vec<glib::subclass::Signal>> = LazyLock::new(|| {
            let [learn, forget] = inspector::learn_signals::<ClReference>();
            vec![training::signal(), learn, forget]
        });
        SIGNALS.as_ref()
    }
}

impl BaseTransformImpl for ClReference {
    const MODE: BaseTransformMode = BaseTransformMode::Both;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;
}

impl ClBaseFilterImpl for ClReference {
    const TASK: &'static str = inspector::TASK;
    const COUNTS: &'static [&'static str] = &inspector::COUNTS;

    fn check(&self, images: bool) -> Result<(), ClError> {
        self.inspector.check()?;
        let settings = lock(&self.settings).clone();
        check_memory(images)?;
        inspector::check_regions(&settings.rois)?;
        check_opening(settings.opening)?;
        settings.parts()?;
        check_threshold(settings.threshold, largest_depth(settings.bit_depth))
    }

    fn open(&self) -> Box<dyn FrameStream> {
        let Location(location) = lock(&self.files).location.clone();
        InspectorStream::open(self, Trained::new(location))
    }

    fn close(&self) {
        self.inspector.close();
    }

    fn other_caps(&self, direction: gst::PadDirection, caps: &gst::Caps) -> Option<gst::Caps> {
        Some(self.inspector.other_caps(direction, caps))
    }
}

impl InspectorImpl for ClReference {
    const MESSAGE: &'static str = "clreference";
    const CHECK: &'static str = "check that the good frames of the training lie alike and match";
    type Output = inspector::ReferenceOutput;

    fn inspector(&self) -> &Inspector {
        &self.inspector
    }

    fn set_limits(&self, limits: &[(Limit, f64)]) {
        if limits.iter().any(|(limit, _)| limit.component.is_some()) {
            lock(&self.settings).take_components(limits);
            self.obj().notify("component-limits");
            return;
        }
        for &(Limit { name, .. }, limit) in limits {
            self.obj().set_property(name, limit);
        }
    }
}

impl Comparing for Trained {
    type Element = ClReference;
    type Settings = Plan;
    type Operator = Operator;

    fn settings(&self, element: &ClReference) -> Plan {
        let properties = lock(&element.settings).clone();
        Plan {
            model: InUse(self.usable_with(&properties.colour)),
            properties,
            ignore: element.inspector.ignore(),
        }
    }

    fn restore(element: &ClReference, refused: &Plan, in_force: &Plan) {
        element.inspector.restore(&refused.ignore, &in_force.ignore);
        let now = &mut *lock(&element.settings);
        put_back(now, &refused.properties, &in_force.properties);
    }

    fn build(target: &Target, plan: &Plan) -> Result<Operator, ClError> {
        let settings = &plan.properties;
        check_memory(target.images)?;
        let layout = &target.layout;
        let rois = inspector::regions(&settings.rois, target)?;
        let ignored = (plan.ignore).pixels(layout.width, Some(layout.height))?;
        let trial = colour::trial(target)?;
        let models = plan.model.0.as_ref();
        let of_component = |settings: &Settings, component| ReferenceSettings {
            rois: rois.clone(),
            ignored: ignored.clone(),
            bit_depth: target.bit_depth(settings.bit_depth),
            ..settings.comparison(component, models)
        };
        let of_whole = |component: Option<Component>| {
            let own = settings.of_component(component)?;
            Ok::<_, ClError>(of_component(&own, component))
        };
        let whole = of_component(settings, None);
        let parts = settings.parts()?;
        if let (Some(parts), Some(models)) = (&parts, models) {
            let ignored = (ignored.as_ref()).map(|ignored| ignored.rows(0, layout.height));
            let pixels = PartPixels {
                rois: &rois,
                ignored: ignored.as_ref(),
            };
            target.trial.parts(layout, whole.bit_depth)?;
            if is_colour(layout) {
                target.trial.colour(layout)?;
            }
            trial.reference(&grey_of(layout), &whole)?;
            let judged = (settings.colour.judged(), models);
            let parts_of = (parts, pixels);
            let operator = Parts::new(&target.context, layout, judged, parts_of, of_whole)?;
            let plan = Box::new(self::plan(settings, parts, whole));
            return Ok(Comparison::Parts(Box::new(operator), plan));
        }
        let operator = settings.colour.build(target, |layout, component| {
            let settings = of_whole(component)?;
            let reference = Reference::new(&target.context, layout, &settings)?;
            trial.reference(layout, &settings)?;
            Ok(reference)
        })?;
        if let Some(parts) = &parts {
            let plan = Box::new(self::plan(settings, parts, whole));
            return Ok(Comparison::Untrained(operator, plan));
        }
        let operator = operator.with_alignment(layout, &whole, models)?;
        Ok(Comparison::Frames(operator))
    }

    fn negotiate(&mut self, element: &ClReference, caps: &Negotiated) {
        let colour = lock(&element.settings).colour.clone();
        self.set_frames(&element.obj(), &caps.target.layout, &colour);
    }

    fn learn(
        &mut self,
        element: &ClReference,
        live: &mut Live<Plan, Operator>,
        view: &View,
    ) -> Result<(), ClError> {
        let InForce {
            operator, settings, ..
        } = live.in_force()?;
        self.set_components(&element.obj(), &settings.properties.colour);
        self.train(
            &element.obj(),
            settings.properties.train_frames,
            operator,
            view,
        )
    }

    fn leave_out(&mut self) {
        self.leave_frame_out();
    }

    fn prepare(&mut self, _: &ClReference, in_force: &mut InForce<Plan, Operator>) {
        in_force.operator.set_blind(self.is_training());
    }

    fn training(&self) -> Option<[u32; 2]> {
        self.trained_on()
    }

    fn keep(
        &mut self,
        operator: &mut Operator,
        frame_number: u64,
        subject: Subject,
        most: usize,
    ) -> Result<(), ClError> {
        self.keep_frame(operator, frame_number, subject, most)
    }

    fn kept(&self) -> usize {
        self.kept_frames()
    }

    fn forget_kept(&mut self) {
        self.forget_kept_frames();
    }

    fn next_kept(
        &mut self,
        operator: &Operator,
        meter: &Arc<Meter>,
    ) -> Result<Option<TrainingFrame<Operator>>, ClError> {
        self.next_kept_frame(operator, meter)
    }

    fn end(&mut self, element: &ClReference) {
        self.warn_unfinished(&element.obj());
    }

    fn counted_under(plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        let properties = &mut plan.properties;
        properties.colour.forget_limits();
        let models = plan.model.0.as_ref().map_or(&[][..], Models::all);
        let model = models.first().map(|model| &**model);
        if learns_factor(properties.deviation_factor, model, properties.train_frames) {
            properties.deviation_factor = 1.0;
        } else {
            properties.threshold = 0.0;
        }
        plan
    }

    fn channels(in_force: &InForce<Plan, Operator>) -> Vec<String> {
        colour::channels(in_force.operator.components(), &[])
    }

    fn threshold(in_force: &InForce<Plan, Operator>) -> f64 {
        let properties = &in_force.settings.properties;
        let colour = &properties.colour;
        colour.shared(in_force.operator.components(), properties.threshold)
    }

    fn difference_gain(plan: &Plan) -> f64 {
        plan.properties.difference_gain
    }

    fn in_words(in_force: &InForce<Plan, Operator>) -> String {
        in_force.settings.properties.in_words()
    }
}

impl ClReference {
    /// Whether the limits see a defect of the model in the file, before frames flow. Without a file that can be read, or with a
    /// file of learned limits, nothing is known.
    ///
    /// # Errors
    /// A sentence that begins with the limit.
    pub fn check_sight(&self) -> Result<(), String> {
        let settings = lock(&self.settings).clone();
        let Location(location) = lock(&self.files).location.clone();
        if self.inspector.learns_into_file() {
            return Ok(());
        }
        let Ok(Some(models)) = file::read_any(&location) else {
            return Ok(());
        };
        let are_apart = models.all().len() > 1;
        let components = Component::ALL.map(Some);
        let components = if are_apart { &components[..] } else { &[None] };
        let sights = components.iter().filter_map(|&component| {
            let [width, height] = models.of(component)?.size();
            let rois = settings.rois.usable().iter();
            let comparison = ReferenceSettings {
                rois: rois
                    .map(|&roi| user_region(roi, width, height).ok())
                    .collect::<Option<_>>()?,
                ignored: (self.inspector.ignore().pixels(width, Some(height))).ok()?,
                ..settings
                    .of_component(component)
                    .ok()?
                    .comparison(component, Some(&models))
            };
            let bits = models.of(component)?.bits();
            let depth = match settings.bit_depth {
                0 => bits,
                depth => depth.min(bits),
            };
            comparison.sight(depth)
        });
        match Sight::best(sights).filter(Sight::is_blind) {
            Some(sight) => Err(inspector::why_unseen(sight)),
            None => Ok(()),
        }
    }
}

/// How parts are trained.
fn plan(settings: &Settings, parts: &PartsSettings, comparison: ReferenceSettings) -> PartsPlan {
    PartsPlan {
        judged: settings.colour.judged(),
        settings: parts.clone(),
        comparison: ReferenceSettings {
            model: None,
            ..comparison
        },
    }
}

fn check_memory(images: bool) -> Result<(), ClError> {
    if images {
        return Err(ClError::Refused(
            "clreference reads buffers only; set memory-object=buffer".into(),
        ));
    }
    Ok(())
}
