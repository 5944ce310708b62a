//! Implementation of `clpitchthreshold`.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use atomic_refcell::AtomicRefCell;
use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::{
    prelude::*,
    subclass::{BaseTransformMode, prelude::*},
};

use super::{
    caps::{self, MaskForm},
    judge::{COUNTS, Judged, State},
    properties::{self, PitchOutput, Reporting, Settings},
};
use crate::elements::{
    base_filter::{ClBaseFilterExt, ClBaseFilterImpl},
    pad_templates,
};
use clinspect_core::ClError;
use clinspect_opencl::{new_plain_pool, new_video_pool};

/// Instance of `clpitchthreshold`.
#[derive(Default)]
pub struct ClPitchThreshold {
    settings: Mutex<Settings>,
    reporting: Mutex<Reporting>,
    output: Mutex<PitchOutput>,
    /// Estimated pitches along x and y, px, for who asks.
    estimated: Mutex<[Option<f64>; 2]>,
    state: AtomicRefCell<Option<State>>,
}

pub(super) static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "clpitchthreshold",
        gst::DebugColorFlags::empty(),
        Some("OpenCL pitch comparison"),
    )
});

impl ClPitchThreshold {
    pub(super) fn settings_lock(&self) -> &Mutex<Settings> {
        &self.settings
    }

    pub(super) fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn reporting(&self) -> MutexGuard<'_, Reporting> {
        self.reporting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn output(&self) -> PitchOutput {
        *self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn estimated(&self) -> MutexGuard<'_, [Option<f64>; 2]> {
        self.estimated
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells who asks, and who listens, what the pitches are.
    pub(super) fn set_estimated(&self, pitches: [Option<f64>; 2]) {
        let before = std::mem::replace(&mut *self.estimated(), pitches);
        for (i, name) in ["estimated-pitch-x", "estimated-pitch-y"]
            .iter()
            .enumerate()
        {
            if before[i] != pitches[i] {
                self.obj().notify(name);
            }
        }
    }

    /// Runs `work` on the stream's state, and posts its failure.
    fn with_state(
        &self,
        work: impl FnOnce(&mut State) -> Result<Judged, ClError>,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let judged = match self.state.borrow_mut().as_mut() {
            Some(state) => work(state),
            None => Err(ClError::Input("a frame came before its caps".into())),
        };
        let judged = judged.map_err(|error| {
            self.obj().post_error(&error, "judging a frame");
            gst::FlowError::Error
        })?;
        // Nothing is held here, and the buffer that it speaks of is the next to go.
        if self.reporting().send_events {
            let sent = self.obj().src_pad().push_event(judged.result.to_event());
            gst::trace!(CAT, imp = self, "event taken: {sent}");
        }
        Ok(gst::FlowSuccess::Ok)
    }
}

#[glib::object_subclass]
impl ObjectSubclass for ClPitchThreshold {
    const NAME: &'static str = "GstClPitchThreshold";
    type Type = super::ClPitchThreshold;
    type ParentType = crate::elements::base_filter::ClBaseFilter;
}

impl ObjectImpl for ClPitchThreshold {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(properties::param_specs);
        PROPERTIES.as_ref()
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        let name = pspec.name();
        gst::info!(CAT, imp = self, "{name} = {value:?}");
        if name == "output" {
            let output = value.get().unwrap_or_default();
            *self.output.lock().unwrap_or_else(PoisonError::into_inner) = output;
        } else if !properties::set(&mut self.settings(), name, value) {
            properties::set_reporting(&mut self.reporting(), name, value);
        }
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        let estimated = |i: usize| self.estimated()[i].unwrap_or(0.0).to_value();
        match pspec.name() {
            "output" => self.output().to_value(),
            "estimated-pitch-x" => estimated(0),
            "estimated-pitch-y" => estimated(1),
            _ => properties::get(&self.settings(), &self.reporting(), pspec),
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
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> =
            LazyLock::new(|| pad_templates(&caps::sink_template(), &caps::src_template()));
        TEMPLATES.as_ref()
    }
}

impl BaseTransformImpl for ClPitchThreshold {
    // In place where frames pass with a meta.
    const MODE: BaseTransformMode = BaseTransformMode::Both;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let element = self.obj();
        element.start_device()?;
        element.reset_counts(&COUNTS);
        element.set_in_place(self.output() == PitchOutput::Frame);
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *self.state.borrow_mut() = None;
        self.parent_stop()
    }

    fn transform_caps(
        &self,
        direction: gst::PadDirection,
        caps: &gst::Caps,
        filter: Option<&gst::Caps>,
    ) -> Option<gst::Caps> {
        let caps = match self.output() {
            PitchOutput::Mask => caps::transform(direction, caps),
            PitchOutput::Frame => caps.clone(),
        };
        Some(match filter {
            // The filter's order is downstream's; ours says which form is preferred.
            Some(filter) => caps.intersect_with_mode(filter, gst::CapsIntersectMode::First),
            None => caps,
        })
    }

    fn unit_size(&self, caps: &gst::Caps) -> Option<usize> {
        caps::unit_size(caps)
    }

    fn transform_size(
        &self,
        _direction: gst::PadDirection,
        _caps: &gst::Caps,
        _size: usize,
        othercaps: &gst::Caps,
    ) -> Option<usize> {
        // A frame's size may be anything above what its rows need.
        caps::unit_size(othercaps)
    }

    fn set_caps(&self, incaps: &gst::Caps, outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        self.parent_set_caps(incaps, outcaps)?;
        let before = self.state.borrow_mut().take();
        let result = self
            .set_up(incaps, outcaps, before)
            .map(|state| *self.state.borrow_mut() = Some(state));
        self.obj()
            .set_up_result(&CAT, "setting up the pitch comparison", result)
    }

    fn decide_allocation(
        &self,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        let (caps, _) = query.get_owned();
        let asked = query.allocation_pools().next().map_or(0, |pool| pool.2);
        let video_meta = query
            .find_allocation_meta::<gst_video::VideoMeta>()
            .is_some();
        let pool = (|| {
            let caps = caps.ok_or_else(|| ClError::Refused("an allocation without caps".into()))?;
            let size = caps::unit_size(&caps)
                .and_then(|size| u32::try_from(size).ok())
                .ok_or_else(|| ClError::Refused(format!("no mask has the caps {caps}")))?;
            let device = self.obj().device()?;
            let pool = match MaskForm::of(&caps) {
                Some(MaskForm::Grey) => {
                    new_video_pool(&device.allocator, &caps, size, asked, video_meta)
                }
                _ => new_plain_pool(&device.allocator, &caps, size, asked),
            };
            pool.map(|pool| (pool, size))
        })();
        let (pool, size) = pool.map_err(|error| gst::loggable_error!(CAT, "{error}"))?;
        crate::elements::use_pool(query, &pool, size, asked);
        Ok(())
    }

    fn transform(
        &self,
        inbuf: &gst::Buffer,
        outbuf: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.with_state(|state| {
            let judged = self.judge(state, inbuf, Some(outbuf))?;
            self.report(state, &judged, outbuf)?;
            Ok(judged)
        })
    }

    fn transform_ip(
        &self,
        buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.with_state(|state| {
            let judged = self.judge(state, buffer, None)?;
            self.report(state, &judged, buffer)?;
            Ok(judged)
        })
    }
}

impl ClBaseFilterImpl for ClPitchThreshold {}
