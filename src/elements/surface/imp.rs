//! Implementation of `clsurface`.

use std::{
    path::Path,
    sync::{Arc, LazyLock, Mutex},
};

use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::subclass::{BaseTransformMode, prelude::*};

use super::{
    learning::School,
    properties::{Plan, Settings, rows},
};
use crate::elements::{
    base_filter::{
        self, ClBaseFilter, ClBaseFilterImpl, FrameStream, InForce, Live, Negotiated, Target, View,
        put_back,
    },
    debug_category, element_class,
    inspector::{
        self, Comparing, DemandSettings, GoodFrame, Inspector, InspectorImpl, InspectorStream,
        Lesson, MaskedOutput, Regions, Together, Writer, colour,
    },
    lock,
    property_table::{PropertyTable, property_methods},
};
use clinspect_core::{
    ClError,
    surface::{CHANNEL_NAMES, Model},
};
use clinspect_operators::{
    Components, JudgedComponents, LearnedSurface, Limit, Surface, SurfaceSettings, read_surface,
    write_surface,
};

/// Instance of `clsurface`.
#[derive(Default)]
pub struct ClSurface {
    inspector: Inspector,
    settings: Mutex<Settings>,
}

/// What the element keeps from frame to frame.
#[derive(Default)]
pub struct State {
    model: Option<Arc<Model>>,
    school: School,
}

/// Compares grey frames, or the luma of others.
pub(super) type Operator = Components<Surface>;

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| debug_category("clsurface", "OpenCL surface comparison"));

static PROPERTIES: LazyLock<PropertyTable<ClSurface>> = LazyLock::new(|| {
    let table = inspector::with_properties(PropertyTable::<ClSurface>::new(&CAT));
    base_filter::with_line_scan(table).with(|this| &this.settings, rows())
});

element_class!(
    ClSurface: ClBaseFilter,
    "GstClSurface",
    inspector::templates(),
    "OpenCL surface comparison",
    "Filter/Analyzer/Video",
    "Compares leather, metal and other surfaces without a pattern with what good frames have shown on an \
     OpenCL device, and sends a 1-bit defect mask with a verdict",
);

impl ObjectImpl for ClSurface {
    property_methods!(PROPERTIES);

    fn signals() -> &'static [glib::subclass::Signal] {
        static SIGNALS: LazyLock<[glib::subclass::Signal; 2]> =
            LazyLock::new(inspector::learn_signals::<ClSurface>);
        SIGNALS.as_ref()
    }
}

impl BaseTransformImpl for ClSurface {
    const MODE: BaseTransformMode = BaseTransformMode::Both;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;
}

impl ClBaseFilterImpl for ClSurface {
    const TASK: &'static str = inspector::TASK;
    const COUNTS: &'static [&'static str] = &inspector::COUNTS;

    fn check(&self, _images: bool) -> Result<(), ClError> {
        self.inspector.check()?;
        let plan = State::default().settings(self);
        inspector::check_regions(&plan.properties.rois.rois)?;
        plan.comparison().map(drop)
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

impl InspectorImpl for ClSurface {
    const MESSAGE: &'static str = "clsurface";
    const LEARN_FRAMES: u32 = 32;
    const CHECK: &'static str =
        "check that the good frames show one material, in the same light and focus";
    type Output = MaskedOutput;

    fn inspector(&self) -> &Inspector {
        &self.inspector
    }

    fn set_limits(&self, limits: &[(Limit, f64)]) {
        let thresholds: Vec<f64> = limits.iter().map(|&(_, value)| value).collect();
        let mut settings = lock(&self.settings);
        settings.learned.clone_from(&thresholds);
        settings.thresholds = thresholds.into();
        drop(settings);
        self.obj().notify("thresholds");
    }
}

/// The comparison of the frames of a target.
///
/// # Errors
/// [`ClError::Refused`] for settings that do not fit the frames.
pub(super) fn comparison(target: &Target, plan: &Plan) -> Result<SurfaceSettings, ClError> {
    let (rois, ignored) = inspector::judged_pixels(target, plan.regions())?;
    Ok(SurfaceSettings {
        rois,
        ignored,
        line_scan: target.line_scan,
        image: target.images,
        bit_depth: target.bit_depth(plan.properties.bit_depth),
        ..plan.comparison()?
    })
}

impl Comparing for State {
    type Element = ClSurface;
    type Settings = Plan;
    type Operator = Operator;

    fn settings(&self, element: &ClSurface) -> Plan {
        let properties = lock(&element.settings).clone();
        Plan {
            ignore: element.inspector.ignore(),
            model: self.model.clone(),
            properties,
        }
    }

    fn restore(element: &ClSurface, refused: &Plan, in_force: &Plan) {
        element.inspector.restore(&refused.ignore, &in_force.ignore);
        let now = &mut *lock(&element.settings);
        put_back(now, &refused.properties, &in_force.properties);
    }

    fn build(target: &Target, plan: &Plan) -> Result<Operator, ClError> {
        let settings = comparison(target, plan)?;
        let trial = colour::trial(target)?;
        // A component would need a model of its own.
        colour::build(target, JudgedComponents::Luma, |layout, _| {
            let surface = Surface::new(&target.context, layout, &settings)?;
            trial.surface(layout, &settings)?;
            Ok(surface)
        })
    }

    fn negotiate(&mut self, _: &ClSurface, caps: &Negotiated) {
        self.school = School::new(caps.target.clone());
    }

    fn learn(
        &mut self,
        _: &ClSurface,
        _: &mut Live<Plan, Operator>,
        _: &View,
    ) -> Result<(), ClError> {
        Ok(())
    }

    fn prepare(&mut self, _: &ClSurface, _: &mut InForce<Plan, Operator>) {}

    fn regions(plan: &Plan) -> Option<Regions<'_>> {
        Some(plan.regions())
    }

    fn together(&mut self) -> Option<&mut dyn Together<Plan, Operator>> {
        Some(self)
    }

    fn lacks_limits(in_force: &InForce<Plan, Operator>) -> bool {
        !in_force.operator.all().iter().all(Surface::is_complete)
    }

    fn counted_under(plan: &Plan) -> Plan {
        let mut counted = plan.clone();
        counted.properties.thresholds = Default::default();
        counted.properties.learned = Vec::new();
        counted.model = None;
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
        in_force.settings.properties.in_words()
    }
}

impl Together<Plan, Operator> for State {
    fn possible_frames(&self, element: &ClBaseFilter, wanted: usize) -> usize {
        self.school.possible_frames(element, wanted)
    }

    fn begin_again(&mut self) {
        self.school.begin_again();
    }

    fn gather(&mut self, operator: &mut Operator, frame: GoodFrame<Plan>) -> Result<(), ClError> {
        self.school.gather(operator, frame)
    }

    fn gathered(&self) -> usize {
        self.school.gathered()
    }

    fn forget(&mut self, frame_number: u64) -> bool {
        self.school.forget(frame_number)
    }

    fn lesson(
        &mut self,
        under: &dyn Fn() -> DemandSettings<Plan>,
        waits: bool,
    ) -> Result<Option<Lesson>, ClError> {
        let Some((model, lesson)) = self.school.lesson(under, waits)? else {
            return Ok(None);
        };
        self.model = Some(Arc::new(model));
        Ok(Some(lesson))
    }

    fn read(&mut self, path: &Path, plan: &Plan) -> Result<Option<Vec<f64>>, String> {
        let learned = read_surface(path, plan.properties.in_use())?;
        // Thresholds that somebody has set go with the model of the file.
        let by_hand = plan.properties.thresholds_by_hand();
        Ok(learned.map(|LearnedSurface { model, limits }| {
            self.model = Some(model);
            if by_hand.is_empty() {
                limits
            } else {
                by_hand.to_vec()
            }
        }))
    }

    fn writer(&self, plan: &Plan, limits: Vec<f64>) -> Writer {
        let (model, channels) = (self.model.clone(), plan.properties.in_use());
        Box::new(move |path| {
            let model = model.ok_or("there is no model")?;
            write_surface(path, &LearnedSurface { model, limits }, channels)
        })
    }
}
