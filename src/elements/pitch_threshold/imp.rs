//! Implementation of `clpitchthreshold`.

use std::sync::{LazyLock, Mutex};

use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::subclass::{BaseTransformMode, prelude::*};

use super::{
    estimate::{Estimation, News, Probes, probes},
    estimated::{Estimated, warn_missing},
    properties::{Settings, rows},
};
use crate::elements::{
    base_filter::{ClBaseFilter, ClBaseFilterExt, Frame, Live, Target},
    debug_category,
    inspector::{self, Basis, Inspector, InspectorImpl},
    lock,
    property_table::{PropertyTable, property_methods},
};
use clinspect_core::{ClError, components::Limits, region::user_region};
use clinspect_operators::{Listed, MaskTarget, PitchSettings, PitchThreshold};

/// Instance of `clpitchthreshold`.
#[derive(Default)]
pub struct ClPitchThreshold {
    inspector: Inspector,
    settings: Mutex<Settings>,
    estimated: Estimated,
}

/// Compares frames, and copies the lines from which the pitches are estimated.
pub struct Operator {
    comparison: PitchThreshold,
    probes: Probes,
}

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| debug_category("clpitchthreshold", "OpenCL pitch comparison"));

impl ClPitchThreshold {
    /// Applies new pitches.
    fn learn(
        &self,
        live: &mut Live<Settings, Operator>,
        estimation: &Estimation,
    ) -> Result<(), ClError> {
        let known = estimation.pitches();
        self.estimated.set(&self.obj(), known);
        gst::info!(CAT, imp = self, "estimated pitches {known:?}");
        let wanted = live.settings.clone().with_estimates(known);
        // Without a pitch this frame could not be judged, so wait for the operator.
        let is_blind = live.operator.comparison.pitches() == [0.0; 2];
        let refusal = if is_blind {
            live.switch(wanted)?
        } else {
            live.follow(wanted)?
        };
        if let Some(refusal) = refusal {
            self.obj().post_refusal(&refusal);
        }
        self.estimated.post(&self.obj());
        Ok(())
    }
}

static PROPERTIES: LazyLock<PropertyTable<ClPitchThreshold>> = LazyLock::new(|| {
    inspector::with_properties(PropertyTable::<ClPitchThreshold>::new(&CAT))
        .with(|this| &this.settings, rows())
        .with_read_only(Estimated::spec("x"), |this| {
            this.estimated.get()[0].to_value()
        })
        .with_read_only(Estimated::spec("y"), |this| {
            this.estimated.get()[1].to_value()
        })
});

#[glib::object_subclass]
impl ObjectSubclass for ClPitchThreshold {
    const NAME: &'static str = "GstClPitchThreshold";
    type Type = super::ClPitchThreshold;
    type ParentType = ClBaseFilter;
}

impl ObjectImpl for ClPitchThreshold {
    property_methods!(PROPERTIES);
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

impl InspectorImpl for ClPitchThreshold {
    const MESSAGE: &'static str = "clpitchthreshold";
    type Settings = Settings;
    type Operator = Operator;
    type State = Estimation;

    fn inspector(&self) -> &Inspector {
        &self.inspector
    }

    fn settings(&self, estimation: &Estimation) -> Settings {
        let settings = lock(&self.settings).clone();
        settings.with_estimates(estimation.pitches())
    }

    fn build(target: &Target, settings: &Settings) -> Result<Operator, ClError> {
        let multiples = settings.multiples.check("multiples", |m| Ok(m.clone()))?;
        let layout = &target.layout;
        let rois = settings.rois.check("rois", |rois| {
            let rois = rois.iter();
            rois.map(|&roi| user_region(roi, layout.width, layout.height))
                .collect()
        })?;
        let [pitch_x, pitch_y] = settings.pitches;
        let [along_x, along_y] = settings.estimates();
        let comparison = PitchThreshold::new(
            &target.context,
            layout,
            &PitchSettings {
                may_be_blind: along_x || along_y,
                pitch_x,
                pitch_y,
                multiples,
                threshold: settings.threshold,
                compare: settings.compare,
                match_center: settings.match_center,
                polarity: settings.polarity,
                rois,
                bit_depth: settings.bit_depth,
                image: target.images,
                variant: None,
            },
        )?;
        Ok(Operator {
            comparison,
            probes: probes(target, settings.estimates())?,
        })
    }

    fn set_up(&self, estimation: &mut Estimation) {
        *estimation = Estimation::default();
        self.estimated.set(&self.obj(), [None; 2]);
    }

    fn look(
        &self,
        live: &mut Live<Settings, Operator>,
        estimation: &mut Estimation,
        frame: &Frame,
    ) -> Result<(), ClError> {
        if estimation.follow(live.settings.estimates()) {
            self.estimated.set(&self.obj(), estimation.pitches());
        }
        if !estimation.is_due() {
            return Ok(());
        }
        let news = estimation.look(&mut live.operator.probes, &frame.input, frame.meter())?;
        if news.contains(&News::Pitch) {
            self.learn(live, estimation)?;
        }
        for news in news {
            if let News::Missing(axis) = news {
                warn_missing(&self.obj(), axis);
            }
        }
        Ok(())
    }

    fn mark(operator: &mut Operator, frame: &Frame, mask: MaskTarget) -> Result<u64, ClError> {
        operator.comparison.run(&frame.input, mask, frame.meter())
    }

    fn list(
        operator: &mut Operator,
        frame: &Frame,
        mask: MaskTarget,
        limits: &Limits,
    ) -> Result<Listed, ClError> {
        let comparison = &mut operator.comparison;
        comparison.list(&frame.input, mask, limits, frame.meter())
    }

    fn basis(live: &Live<Settings, Operator>) -> Basis {
        Basis {
            judged_pixels: live.operator.comparison.judged_pixels(),
            pitches: live.operator.comparison.pitches(),
            threshold: live.settings.threshold,
        }
    }
}
