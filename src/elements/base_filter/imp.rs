//! Subclass of GstBaseTransform behind [`super::ClBaseFilter`].

use std::sync::{LazyLock, Mutex};

use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::{
    prelude::*,
    subclass::{
        BaseTransformMode,
        base_transform::{GenerateOutputSuccess, InputBuffer, PrepareOutputBufferSuccess},
        prelude::*,
    },
};

use super::{
    allocation,
    counts::Counts,
    device::Device,
    faults::Faults,
    frame::Buffers,
    properties::{self, MemoryObject, Settings},
    stream::{Kept, Stream},
    template::{Class, Methods},
};
use crate::elements::{
    debug_category, lock,
    property_table::{PropertyTable, property_methods},
};
use clinspect_core::ClError;
use clinspect_results::mask_caps::buffer_size;

pub(super) static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| debug_category("clbasefilter", "OpenCL elements' parent class"));

/// An element on a device.
#[derive(Default)]
pub struct ClBaseFilter {
    pub(super) settings: Mutex<Settings>,
    pub(super) device: Mutex<Option<Device>>,
    pub(super) stream: Mutex<Option<Stream>>,
    pub(super) kept: Mutex<Kept>,
    /// The latency that was posted last: number of held frames and frame rate; `None` for no latency.
    pub(super) delay: Mutex<Option<(u64, gst::Fraction)>>,
    pub(super) faults: Faults,
    pub(super) counts: Counts,
}

impl ClBaseFilter {
    pub(super) fn methods(&self) -> Result<&'static Methods, ClError> {
        let methods = self.obj().class().as_ref().methods;
        methods.ok_or_else(|| ClError::Unavailable("ClBaseFilter is abstract".into()))
    }

    /// See [`ClBaseFilter::check`](super::ClBaseFilter::check).
    ///
    /// # Errors
    /// See there.
    pub(super) fn check(&self) -> Result<(), ClError> {
        let images = lock(&self.settings).memory_object == MemoryObject::Image;
        (self.methods()?.check)(&self.obj(), images)
    }

    pub(super) fn process(&self, buffers: Buffers) -> Result<gst::FlowSuccess, gst::FlowError> {
        let event = self.methods().and_then(|methods| {
            let mut stream = lock(&self.stream);
            let Stream { importer, work, .. } = stream
                .as_mut()
                .ok_or_else(|| ClError::Input("received a frame before its caps".into()))?;
            (methods.process)(&self.obj(), work, importer, buffers)
        });
        match event {
            // No lock is held here, and the event goes just before the buffer that it belongs to.
            Ok(event) => self.push_event(event),
            Err(error) => {
                self.faults.post(
                    &self.obj(),
                    &error,
                    self.methods().map_or("", |methods| methods.task),
                );
                return Err(gst::FlowError::Error);
            }
        }
        Ok(gst::FlowSuccess::Ok)
    }
}

impl ClBaseFilter {
    /// Sends an event of a frame, if it has one.
    pub(super) fn push_event(&self, event: Option<gst::Event>) {
        if let Some(event) = event {
            let taken = self.obj().src_pad().push_event(event);
            gst::trace!(CAT, imp = self, "event handled: {taken}");
        }
    }

    /// The property `line-scan`.
    pub(super) fn line_scan(&self) -> bool {
        lock(&self.settings).line_scan
    }

    pub(super) fn set_line_scan(&self, value: bool) {
        lock(&self.settings).line_scan = value;
    }
}

static PROPERTIES: LazyLock<PropertyTable<ClBaseFilter>> = LazyLock::new(|| {
    PropertyTable::<ClBaseFilter>::new(&CAT)
        .with(|this| &this.settings, properties::rows())
        .with_own(
            properties::device_spec(),
            |this| lock(&this.settings).device.to_value(),
            ClBaseFilter::set_device,
        )
        .with_read_only(properties::stats_spec(), |this| this.stats().to_value())
});

#[glib::object_subclass]
impl ObjectSubclass for ClBaseFilter {
    const NAME: &'static str = "GstClBaseFilter";
    const ABSTRACT: bool = true;
    type Type = super::ClBaseFilter;
    type ParentType = gst_base::BaseTransform;
    type Class = Class;
}

impl ObjectImpl for ClBaseFilter {
    property_methods!(PROPERTIES);
}

impl GstObjectImpl for ClBaseFilter {}

impl ElementImpl for ClBaseFilter {
    // Not in `start` and `stop`: a failed start would be posted twice, once here and once by the
    // subclass as a failure of its parent class.
    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        if transition == gst::StateChange::ReadyToPaused {
            self.open().map_err(|error| {
                self.faults
                    .post(&self.obj(), &error, "opening an OpenCL device");
                gst::StateChangeError
            })?;
        }
        let result = self.parent_change_state(transition);
        let failed = transition == gst::StateChange::ReadyToPaused && result.is_err();
        if failed || transition == gst::StateChange::PausedToReady {
            self.close();
        }
        result
    }
}

impl BaseTransformImpl for ClBaseFilter {
    const MODE: BaseTransformMode = BaseTransformMode::Both;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn sink_event(&self, event: gst::Event) -> bool {
        let (event, outlive) = if self.is_line_scan() {
            self.pass_web(event)
        } else {
            (Some(event), Vec::new())
        };
        let Some(event) = event else { return true };
        if matches!(
            event.type_(),
            gst::EventType::Eos | gst::EventType::FlushStop
        ) {
            self.drain();
        }
        if event.type_() == gst::EventType::Eos
            && let Ok(methods) = self.methods()
            && let Some(stream) = lock(&self.stream).as_mut()
        {
            (methods.ended)(&self.obj(), &mut stream.work);
        }
        let is_handled = self.parent_sink_event(event);
        for event in outlive {
            self.parent_sink_event(event);
        }
        is_handled
    }

    fn transform_caps(
        &self,
        direction: gst::PadDirection,
        caps: &gst::Caps,
        filter: Option<&gst::Caps>,
    ) -> Option<gst::Caps> {
        let methods = self.methods().ok()?;
        match ((methods.other_caps)(&self.obj(), direction, caps), filter) {
            (None, _) => self.parent_transform_caps(direction, caps, filter),
            // The filter has downstream's order of preference; the result has the element's own.
            (Some(caps), Some(filter)) => {
                Some(caps.intersect_with_mode(filter, gst::CapsIntersectMode::First))
            }
            (Some(caps), None) => Some(caps),
        }
    }

    fn set_caps(&self, incaps: &gst::Caps, outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let info = gst_video::VideoInfo::from_caps(incaps)
            .map_err(|_| gst::loggable_error!(CAT, "not raw video caps: {incaps}"))?;
        match self.set_up(&info, incaps, outcaps) {
            Ok(()) => {
                self.faults.clear();
                Ok(())
            }
            Err(error) => {
                // Upstream may try the same caps again.
                self.faults.post_once(&self.obj(), &error, "setting caps");
                Err(gst::loggable_error!(CAT, "{error}"))
            }
        }
    }

    fn unit_size(&self, caps: &gst::Caps) -> Option<usize> {
        buffer_size(caps)
    }

    fn transform_size(
        &self,
        _direction: gst::PadDirection,
        _caps: &gst::Caps,
        _size: usize,
        othercaps: &gst::Caps,
    ) -> Option<usize> {
        // The input buffer may be larger than its rows need, so the size comes from the caps.
        buffer_size(othercaps)
    }

    fn propose_allocation(
        &self,
        _decide: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        // Held strips keep their buffers only if these are sent on.
        let sends_on = self.obj().is_in_place();
        let held = lock(&self.delay).filter(|_| sends_on);
        let held = held.map_or(0, |(frames, _)| u32::try_from(frames).unwrap_or(u32::MAX));
        let proposed = self
            .device()
            .and_then(|device| allocation::propose(&device, query, held, sends_on));
        proposed.map_err(|error| gst::loggable_error!(CAT, "{error}"))
    }

    fn decide_allocation(
        &self,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        let decided = self
            .device()
            .and_then(|device| allocation::decide(&device, query));
        decided.map_err(|error| gst::loggable_error!(CAT, "{error}"))
    }

    fn submit_input_buffer(
        &self,
        is_discont: bool,
        input: gst::Buffer,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.check_memory().map_err(|()| gst::FlowError::Error)?;
        self.set_up_again()?;
        self.parent_submit_input_buffer(is_discont, input)?;
        // Without strips the parent class takes the buffer itself.
        if !self.is_line_scan() {
            return Ok(gst::FlowSuccess::Ok);
        }
        match self.take_queued_buffer() {
            Some(strip) => self.take_strip(strip),
            None => self.skip_strip(),
        }
    }

    fn generate_output(&self) -> Result<GenerateOutputSuccess, gst::FlowError> {
        match self.methods() {
            Ok(methods) if methods.rewrites => self.rewrite(methods),
            _ => self.parent_generate_output(),
        }
    }

    fn query(&self, direction: gst::PadDirection, query: &mut gst::QueryRef) -> bool {
        let is_drain =
            direction == gst::PadDirection::Sink && query.type_() == gst::QueryType::Drain;
        let holds_strips = is_drain && self.drain_web();
        let answered = BaseTransformImplExt::parent_query(self, direction, query) && !holds_strips;
        if answered
            && let gst::QueryViewMut::Latency(latency) = query.view_mut()
            && let Some((frames, fps)) = *lock(&self.delay)
            // Without a framerate nobody knows how long strips are held.
            && fps.numer() > 0
        {
            let nanoseconds = gst::ClockTime::SECOND.nseconds();
            let held = nanoseconds.mul_div_ceil(frames * fps.denom() as u64, fps.numer() as u64);
            let held = gst::ClockTime::from_nseconds(held.unwrap_or(0));
            let (live, min, max) = latency.result();
            let longer = |time: gst::ClockTime| time.saturating_add(held);
            latency.set(live, longer(min), max.map(longer));
        }
        answered
    }

    fn prepare_output_buffer(
        &self,
        input: InputBuffer,
    ) -> Result<PrepareOutputBufferSuccess, gst::FlowError> {
        let prepared = self.parent_prepare_output_buffer(input);
        // The parent class refuses the frame without a reason.
        if let Err(gst::FlowError::Error) = prepared
            && let Ok(device) = self.device()
        {
            let error = device.allocator.take_failure();
            let error = error.unwrap_or_else(|| {
                ClError::Input(
                    "cannot allocate a buffer for the output frame; stop and start the pipeline"
                        .into(),
                )
            });
            self.faults
                .post(&self.obj(), &error, "allocating an output frame");
        }
        prepared
    }

    fn transform_meta<'a>(
        &self,
        _outbuf: &mut gst::BufferRef,
        _meta: gst::MetaRef<'a, gst::Meta>,
        _inbuf: &'a gst::BufferRef,
    ) -> bool {
        // The output has the input's size, so the metas of other elements remain valid. Metas about
        // memory do not reach this method.
        true
    }

    fn transform(
        &self,
        inbuf: &gst::Buffer,
        outbuf: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.process(Buffers::Pair(inbuf, outbuf))
    }

    fn transform_ip(
        &self,
        buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.process(Buffers::InPlace(buffer))
    }
}
