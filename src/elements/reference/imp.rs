//! Implementation of `clreference`.

use std::sync::{Arc, LazyLock, Mutex};

use gst::{glib, subclass::prelude::*};
use gst_base::subclass::{BaseTransformMode, prelude::*};

use super::{
    properties::{Files, InUse, ReferenceOutput, Settings, file_rows, rows},
    training::{self, Requests, Trained},
};
use crate::elements::{
    base_filter::{ClBaseFilter, Frame, Live, Negotiated, Target, View, put_back},
    debug_category,
    inspector::{self, Basis, Ignore, Inspector, InspectorImpl, Picture},
    lock,
    property_table::{PropertyTable, property_methods},
    text::Location,
};
use clinspect_core::{
    ClError,
    components::{Finder, Limits},
    ignored::Bitmap,
    region::{check_region, user_region},
    threshold::Reached,
    window::Reach,
};
use clinspect_opencl::frame::ClFrame;
use clinspect_operators::{
    Listed, Marked, MaskTarget, Reference, ReferenceSettings, Show, check_threshold, largest_depth,
};
use clinspect_results::Alignment;

/// Instance of `clreference`.
#[derive(Default)]
pub struct ClReference {
    inspector: Inspector,
    settings: Mutex<Settings>,
    files: Mutex<Files>,
    /// The value of `location`, latched at the start.
    latched: Mutex<Location>,
    pub(super) requests: Requests,
}

/// Compares frames with the model.
pub struct Operator {
    pub(super) reference: Reference,
    ignored: Option<Arc<Bitmap>>,
    difference_gain: f64,
}

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| debug_category("clreference", "OpenCL comparison with a trained picture"));

static PROPERTIES: LazyLock<PropertyTable<ClReference>> = LazyLock::new(|| {
    inspector::with_properties(PropertyTable::<ClReference>::new(&CAT))
        .with(|this| &this.settings, rows())
        .with(|this| &this.files, file_rows())
});

#[glib::object_subclass]
impl ObjectSubclass for ClReference {
    const NAME: &'static str = "GstClReference";
    type Type = super::ClReference;
    type ParentType = ClBaseFilter;
}

impl ObjectImpl for ClReference {
    property_methods!(PROPERTIES);

    fn signals() -> &'static [glib::subclass::Signal] {
        static SIGNALS: LazyLock<Vec<glib::subclass::Signal>> = LazyLock::new(|| {
            vec![
                training::signal(),
                inspector::learn_threshold::<ClReference>(),
            ]
        });
        SIGNALS.as_ref()
    }
}

impl GstObjectImpl for ClReference {}

impl ElementImpl for ClReference {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "OpenCL comparison with a reference",
                "Filter/Analyzer/Video",
                "Compares frames with a picture trained from good frames on an OpenCL device, and \
                 sends a 1-bit defect mask with a verdict",
                "gst-plugin-clinspect developers",
            )
        });
        Some(&*METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        inspector::templates()
    }
}

impl BaseTransformImpl for ClReference {
    const MODE: BaseTransformMode = BaseTransformMode::Both;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;
}

impl InspectorImpl for ClReference {
    const MESSAGE: &'static str = "clreference";
    type Output = ReferenceOutput;
    type Settings = Settings;
    type Operator = Operator;
    type State = Trained;

    fn inspector(&self) -> &Inspector {
        &self.inspector
    }

    fn settings(&self, state: &Trained) -> Settings {
        Settings {
            model: InUse(state.usable()),
            ignore: self.inspector.ignore(),
            ..lock(&self.settings).clone()
        }
    }

    fn restore(&self, refused: &Settings, in_force: &Settings) {
        self.inspector.restore(&refused.ignore, &in_force.ignore);
        let set = |settings: &Settings| Settings {
            model: InUse::default(),
            ignore: Ignore::default(),
            ..settings.clone()
        };
        put_back(&mut *lock(&self.settings), &set(refused), &set(in_force));
    }

    fn check(&self, images: bool) -> Result<(), ClError> {
        let settings = lock(&self.settings).clone();
        check_memory(images)?;
        (settings.rois).check("rois", |rois| {
            rois.iter().copied().try_for_each(check_region)
        })?;
        check_threshold(settings.threshold, largest_depth(settings.bit_depth))
    }

    fn build(target: &Target, settings: &Settings) -> Result<Operator, ClError> {
        check_memory(target.images)?;
        let layout = &target.layout;
        let rois = settings.rois.check("rois", |rois| {
            let rois = rois.iter();
            rois.map(|&roi| user_region(roi, layout.width, layout.height))
                .collect()
        })?;
        let ignored = (settings.ignore).pixels(layout.width, Some(layout.height))?;
        let bitmap = ignored
            .as_ref()
            .map(|ignored| ignored.rows(0, layout.height));
        let reference = Reference::new(
            &target.context,
            layout,
            &ReferenceSettings {
                model: settings.model.0.clone(),
                threshold: settings.threshold,
                deviation_factor: settings.deviation_factor,
                edge_tolerance: settings.edge_tolerance,
                polarity: settings.polarity,
                align: settings.align,
                search_range: settings.search_range,
                match_score: settings.match_score,
                normalize: settings.normalize,
                train_frames: settings.train_frames,
                rois,
                ignored,
                bit_depth: settings.bit_depth,
            },
        )?;
        Ok(Operator {
            reference,
            ignored: bitmap.map(Into::into),
            difference_gain: settings.difference_gain,
        })
    }

    fn started(&self) {
        *lock(&self.latched) = lock(&self.files).location.clone();
    }

    fn set_up(&self, state: &mut Trained, caps: &Negotiated) {
        let Location(location) = lock(&self.latched).clone();
        state.set_up(&self.obj(), caps, &location);
    }

    fn ended(&self, state: &mut Trained) {
        state.warn_unfinished(&self.obj());
    }

    fn look(
        &self,
        live: &mut Live<Settings, Operator>,
        state: &mut Trained,
        view: &View,
    ) -> Result<(), ClError> {
        state.look(&self.obj(), &live.settings, &live.operator, view)
    }

    fn reach(_operator: &Operator) -> Reach {
        Reach::default()
    }

    fn note(live: &mut Live<Settings, Operator>, state: &mut Trained) {
        live.operator.reference.set_blind(state.is_training());
    }

    fn training(&self, state: &Trained) -> Option<[u32; 2]> {
        state.trained_on()
    }

    fn mark(operator: &mut Operator, frame: &Frame, mask: MaskTarget) -> Result<Marked, ClError> {
        (operator.reference).run(&frame.input, mask, frame.meter())
    }

    fn list(
        operator: &mut Operator,
        frame: &Frame,
        mask: MaskTarget,
        finder: &mut Finder,
        limits: &Limits,
    ) -> Result<Listed, ClError> {
        let reference = &mut operator.reference;
        reference.list(&frame.input, mask, finder, limits, frame.meter())
    }

    fn draw(
        operator: &mut Operator,
        frame: &Frame,
        picture: Picture,
        out: &ClFrame,
    ) -> Result<(), ClError> {
        let show = match picture {
            Picture::Model => Show::Model,
            Picture::Difference => Show::Difference(operator.difference_gain),
        };
        (operator.reference).show(&frame.input, out, show, frame.meter())
    }

    fn counted_under(settings: &Settings) -> Settings {
        Settings {
            threshold: 0.0,
            ..settings.clone()
        }
    }

    fn count_reached(
        operator: &mut Operator,
        frame: &Frame,
        reached: &mut Reached,
    ) -> Result<bool, ClError> {
        (operator.reference).count_reached(&frame.input, reached, frame.meter())
    }

    fn set_threshold(&self, threshold: f64) {
        lock(&self.settings).threshold = threshold;
    }

    fn basis(live: &Live<Settings, Operator>) -> Basis {
        let reference = &live.operator.reference;
        let alignment = reference.alignment().map(|found| Alignment {
            shift_x: found.shift[0],
            shift_y: found.shift[1],
            match_score: found.score,
            matched: found.is_matched,
        });
        Basis {
            judged: reference.judged_pixels(),
            pitches: [0.0; 2],
            threshold: live.settings.threshold,
            alignment,
            ignored: live.operator.ignored.clone(),
        }
    }

    fn in_words(live: &Live<Settings, Operator>) -> String {
        live.settings.in_words()
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
