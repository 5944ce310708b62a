//! Implementation of `clpitchthreshold`.

use std::sync::{Arc, LazyLock, Mutex};

use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::subclass::{BaseTransformMode, prelude::*};

use super::{
    estimate::{Estimation, News},
    properties::{Settings, TABLE, estimated_specs},
};
use crate::elements::{
    base_filter::{ClBaseFilter, ClBaseFilterExt, Frame, Live, Target},
    inspector::{self, Basis, Inspector, InspectorImpl},
    lock,
};
use clinspect_core::ClError;
use clinspect_core::{components::Limits, pitch::Axis, region::user_region};
use clinspect_opencl::Meter;
use clinspect_opencl::frame::ClFrame;
use clinspect_operators::{Listed, MaskTarget, PitchSettings, PitchThreshold, Probe};

/// Instance of `clpitchthreshold`.
#[derive(Default)]
pub struct ClPitchThreshold {
    inspector: Inspector,
    settings: Mutex<Settings>,
    /// Estimated pitches along x and y, px, for the properties.
    estimated: Mutex<[Option<f64>; 2]>,
}

/// The settings, and the estimated pitches.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    settings: Settings,
    /// Estimated pitches along x and y, px, if the settings ask for estimates.
    known: [Option<f64>; 2],
}

impl Wanted {
    fn new(settings: Settings, estimation: &Estimation) -> Self {
        let estimates = settings.estimates();
        let known = estimation.pitches();
        Self {
            settings,
            known: [0, 1].map(|axis| known[axis].filter(|_| estimates[axis])),
        }
    }

    /// The pitches in use: the settings' ones, else the estimated ones, else 0.
    fn pitches(&self) -> [f64; 2] {
        let pitch =
            |set: f64, known: Option<f64>| if set < 0.0 { known.unwrap_or(0.0) } else { set };
        [
            pitch(self.settings.pitch_x, self.known[0]),
            pitch(self.settings.pitch_y, self.known[1]),
        ]
    }
}

/// Compares frames, and copies the lines from which the pitches are estimated.
pub struct Operator {
    comparison: PitchThreshold,
    probes: [Option<Probe>; 2],
}

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "clpitchthreshold",
        gst::DebugColorFlags::empty(),
        Some("OpenCL pitch comparison"),
    )
});

impl ClPitchThreshold {
    /// Updates the properties with the estimated pitches, and notifies listeners.
    fn set_estimated(&self, pitches: [Option<f64>; 2]) {
        let before = std::mem::replace(&mut *lock(&self.estimated), pitches);
        for (axis, name) in ["estimated-pitch-x", "estimated-pitch-y"]
            .iter()
            .enumerate()
        {
            if before[axis] != pitches[axis] {
                self.obj().notify(name);
            }
        }
    }

    /// Applies new pitches.
    fn learn(
        &self,
        live: &mut Live<Wanted, Operator>,
        estimation: &Estimation,
    ) -> Result<(), ClError> {
        let known = estimation.pitches();
        self.set_estimated(known);
        gst::info!(CAT, imp = self, "estimated pitches {known:?}");
        let wanted = Wanted::new(live.settings.settings.clone(), estimation);
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
        let [x, y] = known.map(|pitch| pitch.unwrap_or(0.0));
        let fields = gst::Structure::builder("clpitchthreshold-pitch")
            .field("estimated-pitch-x", x)
            .field("estimated-pitch-y", y)
            .build();
        let message = gst::message::Element::builder(fields).src(&*self.obj());
        self.obj().post(message.build());
        Ok(())
    }

    /// Warns that frames cannot be judged along an axis.
    fn warn_missing(&self, axis: Axis) {
        let (name, along) = match axis {
            Axis::X => ("pitch-x", "rows"),
            Axis::Y => ("pitch-y", "columns"),
        };
        gst::element_imp_warning!(
            self,
            gst::StreamError::Format,
            (
                "no repeating pattern was found along {}; set {} if there is one, or \
                 to 0 for no comparison along {}",
                along,
                name,
                along
            ),
            ["frames that cannot be judged get the verdict none and a clear mask"]
        );
    }
}

#[glib::object_subclass]
impl ObjectSubclass for ClPitchThreshold {
    const NAME: &'static str = "GstClPitchThreshold";
    type Type = super::ClPitchThreshold;
    type ParentType = ClBaseFilter;
}

impl ObjectImpl for ClPitchThreshold {
    fn properties() -> &'static [glib::ParamSpec] {
        static SPECS: LazyLock<Vec<glib::ParamSpec>> =
            LazyLock::new(|| [TABLE.specs(), &estimated_specs(), Inspector::specs()].concat());
        SPECS.as_ref()
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        let name = pspec.name();
        gst::info!(CAT, imp = self, "{name} = {value:?}");
        if !TABLE.set(&self.settings, name, value) {
            self.inspector.set(name, value);
        }
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        let estimated = |axis: usize| lock(&self.estimated)[axis].unwrap_or(0.0).to_value();
        match pspec.name() {
            "estimated-pitch-x" => estimated(0),
            "estimated-pitch-y" => estimated(1),
            name => TABLE
                .get(&self.settings, name)
                .or_else(|| self.inspector.get(name))
                .unwrap_or_else(|| pspec.default_value().clone()),
        }
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

impl InspectorImpl for ClPitchThreshold {
    const MESSAGE: &'static str = "clpitchthreshold";
    type Settings = Wanted;
    type Operator = Operator;
    type State = Estimation;

    fn inspector(&self) -> &Inspector {
        &self.inspector
    }

    fn settings(&self, estimation: &Estimation) -> Wanted {
        Wanted::new(lock(&self.settings).clone(), estimation)
    }

    fn build(target: &Target, wanted: &Wanted) -> Result<Operator, ClError> {
        let settings = &wanted.settings;
        settings.unreadable.check()?;
        let layout = &target.layout;
        let rois = settings
            .rois
            .iter()
            .map(|&roi| user_region(roi, layout.width, layout.height))
            .collect::<Result<_, _>>()
            .map_err(|why| ClError::Refused(format!("rois: {why}")))?;
        let [pitch_x, pitch_y] = wanted.pitches();
        let [along_x, along_y] = settings.estimates();
        let comparison = PitchThreshold::new(
            &target.context,
            layout,
            &PitchSettings {
                may_be_blind: along_x || along_y,
                pitch_x,
                pitch_y,
                multiples: settings.multiples.clone(),
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
        let probe = |wanted: bool, axis| {
            wanted
                .then(|| Probe::new(&target.context, layout, axis))
                .transpose()
        };
        Ok(Operator {
            comparison,
            probes: [probe(along_x, Axis::X)?, probe(along_y, Axis::Y)?],
        })
    }

    fn set_up(&self, estimation: &mut Estimation) {
        *estimation = Estimation::default();
        self.set_estimated([None; 2]);
    }

    fn look(
        &self,
        live: &mut Live<Wanted, Operator>,
        estimation: &mut Estimation,
        frame: &Frame,
    ) -> Result<(), ClError> {
        if estimation.follow(live.settings.settings.estimates()) {
            self.set_estimated(estimation.pitches());
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
                self.warn_missing(axis);
            }
        }
        Ok(())
    }

    fn mark(
        operator: &mut Operator,
        frame: &ClFrame,
        mask: MaskTarget,
        meter: &Arc<Meter>,
    ) -> Result<u64, ClError> {
        operator.comparison.run(frame, mask, meter)
    }

    fn list(
        operator: &mut Operator,
        frame: &ClFrame,
        mask: MaskTarget,
        limits: &Limits,
        meter: &Arc<Meter>,
    ) -> Result<Listed, ClError> {
        operator.comparison.list(frame, mask, limits, meter)
    }

    fn basis(live: &Live<Wanted, Operator>) -> Basis {
        Basis {
            judged_pixels: live.operator.comparison.judged_pixels(),
            pitches: live.operator.comparison.pitches(),
            threshold: live.settings.settings.threshold,
        }
    }
}
