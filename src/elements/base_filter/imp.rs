//! Subclass of GstBaseTransform behind [`super::ClBaseFilter`].

use std::{
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::{
    prelude::*,
    subclass::{
        BaseTransformMode,
        base_transform::{InputBuffer, PrepareOutputBufferSuccess},
        prelude::*,
    },
};

use super::{
    Device, Negotiated, allocation,
    frame::Buffers,
    properties::{MemoryObject, Settings, TABLE, read_only_specs, stats},
    template::{Class, Methods, Work},
};
use crate::{
    elements::{lock, told::Told},
    error::error_message,
};
use clinspect_core::ClError;
use clinspect_opencl::frame::Importer;
use clinspect_opencl::{ClAllocator, Meter};
use clinspect_results::mask_caps::buffer_size;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "clbasefilter",
        gst::DebugColorFlags::empty(),
        Some("OpenCL elements' parent class"),
    )
});

/// How long a stop waits for a device that makes no progress.
const FINISH_LIMIT: Duration = Duration::from_secs(1);
/// How long the end of a stream and a flush wait: a slow device may take that long for one large
/// frame.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// State for the negotiated caps.
struct Stream {
    importer: Importer,
    work: Work,
}

/// Kind of a posted error. All failing calls count as one kind: after the first one, every later
/// call may fail.
#[derive(Debug, PartialEq)]
enum Fault {
    Call,
    Other(ClError),
}

impl From<&ClError> for Fault {
    fn from(error: &ClError) -> Self {
        match error {
            ClError::Call { .. } => Self::Call,
            other => Self::Other(other.clone()),
        }
    }
}

#[derive(Default)]
pub struct ClBaseFilter {
    settings: Mutex<Settings>,
    device: Mutex<Option<Device>>,
    /// Kept after the device is closed, so that `stats` can be read after a stop.
    meter: Mutex<Arc<Meter>>,
    stream: Mutex<Option<Stream>>,
    frames: AtomicU64,
    told: Mutex<Told<Fault>>,
    /// The subclass's own counts.
    counts: Mutex<Vec<(&'static str, u64)>>,
}

impl ClBaseFilter {
    fn methods(&self) -> Result<&'static Methods, ClError> {
        let methods = self.obj().class().as_ref().methods;
        methods.ok_or_else(|| ClError::Unavailable("ClBaseFilter is abstract".into()))
    }

    fn device(&self) -> Result<Device, ClError> {
        lock(&self.device)
            .clone()
            .ok_or_else(|| ClError::Unavailable("the element is not started".into()))
    }

    pub(super) fn frame_number(&self, buffer: &gst::BufferRef) -> u64 {
        let count = self.frames.fetch_add(1, Ordering::Relaxed);
        match buffer.offset() {
            gst::ffi::GST_BUFFER_OFFSET_NONE => count,
            offset => offset,
        }
    }

    pub(super) fn count(&self, name: &'static str) {
        if let Some((_, count)) = lock(&self.counts).iter_mut().find(|(n, _)| *n == name) {
            *count += 1;
        }
    }

    /// The `stats` property.
    fn stats(&self, meter: &Meter) -> gst::Structure {
        let mut stats = stats(meter);
        for (name, count) in lock(&self.counts).iter() {
            stats.set(*name, *count);
        }
        stats
    }

    /// Posts an error.
    fn post_error(&self, error: &ClError, task: &str) {
        lock(&self.told).is_news(error.into());
        self.obj().post_error_message(error_message(error, task));
    }

    /// Posts an error unless the same error was posted last.
    fn post_error_once(&self, error: &ClError, task: &str) {
        if lock(&self.told).is_news(error.into()) {
            self.obj().post_error_message(error_message(error, task));
        }
    }

    /// Opens the device, and latches the properties that take effect at the start.
    fn open(&self) -> Result<(), ClError> {
        let methods = self.methods()?;
        let settings = lock(&self.settings).clone();
        let context = clinspect_opencl::open(&settings.device)?;
        let meter = Meter::new(settings.profile);
        let allocator = ClAllocator::new(&context, &meter);
        gst::info!(CAT, imp = self, "device {}", context.device_name());
        *lock(&self.meter) = meter.clone();
        *lock(&self.counts) = methods.counts.iter().map(|&name| (name, 0)).collect();
        *lock(&self.device) = Some(Device {
            context,
            meter,
            allocator,
            images: settings.memory_object == MemoryObject::Image,
        });
        self.frames.store(0, Ordering::Relaxed);
        lock(&self.told).clear();
        (methods.started)(&self.obj());
        self.obj().notify("device-name");
        Ok(())
    }

    fn close(&self) {
        *lock(&self.stream) = None;
        if let Ok(methods) = self.methods() {
            (methods.stopped)(&self.obj());
        }
        let device = lock(&self.device).take();
        if let Some(device) = device {
            // The commands of frames that were pushed must end before the element does.
            if let Err(error) = device.context.finish_within(FINISH_LIMIT, &device.meter) {
                gst::warning!(CAT, imp = self, "{error}");
            }
            device.meter.close();
            gst::info!(CAT, imp = self, "{}", self.stats(&device.meter));
        }
    }

    /// Posts the error if another element could not read or write a frame in this element's memory:
    /// that element may continue without an error of its own.
    ///
    /// # Errors
    /// There was such a failure.
    fn check_memory(&self) -> Result<(), ()> {
        let failure = self.device().ok();
        match failure.and_then(|device| device.allocator.take_failure()) {
            None => Ok(()),
            // The error was posted already, with the frame before.
            Some(_) if lock(&self.told).is_last(&Fault::Call) => Ok(()),
            Some(error) => {
                self.post_error(&error, "passing a frame on");
                Err(())
            }
        }
    }

    /// Waits until all pushed frames are computed, so that their errors are posted before the end
    /// of the stream.
    fn drain(&self) {
        if self.check_memory().is_ok()
            && let Ok(device) = self.device()
            // The failure of the device was posted already.
            && !device.context.has_failed()
            && let Err(error) = device.context.finish_within(DRAIN_LIMIT, &device.meter)
        {
            self.post_error(&error, "finishing the last frames of the stream");
        }
    }

    fn set_up(
        &self,
        info: &gst_video::VideoInfo,
        incaps: &gst::Caps,
        outcaps: &gst::Caps,
    ) -> Result<(), ClError> {
        let methods = self.methods()?;
        let device = self.device()?;
        let mut stream = lock(&self.stream);
        let before = stream.take().map(|stream| stream.work);
        let importer = Importer::new(&device.context, &device.meter, info)?;
        let caps = Negotiated {
            incaps,
            outcaps,
            importer: &importer,
            allocator: &device.allocator,
        };
        let work = (methods.set_up)(&self.obj(), before, &caps, device.images)?;
        *stream = Some(Stream { importer, work });
        Ok(())
    }

    fn process(&self, buffers: Buffers) -> Result<gst::FlowSuccess, gst::FlowError> {
        let event = self.methods().and_then(|methods| {
            let mut stream = lock(&self.stream);
            let Stream { importer, work } = stream
                .as_mut()
                .ok_or_else(|| ClError::Input("received a frame before its caps".into()))?;
            (methods.process)(&self.obj(), work, importer, buffers)
        });
        match event {
            Ok(None) => {}
            // No lock is held here, and the event goes just before the buffer that it belongs to.
            Ok(Some(event)) => {
                let taken = self.obj().src_pad().push_event(event);
                gst::trace!(CAT, imp = self, "event handled: {taken}");
            }
            Err(error) => {
                self.post_error(&error, self.methods().map_or("", |methods| methods.task));
                return Err(gst::FlowError::Error);
            }
        }
        Ok(gst::FlowSuccess::Ok)
    }
}

#[glib::object_subclass]
impl ObjectSubclass for ClBaseFilter {
    const NAME: &'static str = "GstClBaseFilter";
    const ABSTRACT: bool = true;
    type Type = super::ClBaseFilter;
    type ParentType = gst_base::BaseTransform;
    type Class = Class;
}

impl ObjectImpl for ClBaseFilter {
    fn properties() -> &'static [glib::ParamSpec] {
        static SPECS: LazyLock<Vec<glib::ParamSpec>> =
            LazyLock::new(|| [TABLE.specs(), &read_only_specs()].concat());
        SPECS.as_ref()
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        gst::info!(CAT, imp = self, "{} = {value:?}", pspec.name());
        TABLE.set(&self.settings, pspec.name(), value);
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        match pspec.name() {
            "device-name" => lock(&self.device)
                .as_ref()
                .map_or("", |device| device.context.device_name())
                .to_value(),
            "stats" => {
                let meter = lock(&self.meter).clone();
                self.stats(&meter).to_value()
            }
            name => TABLE
                .get(&self.settings, name)
                .unwrap_or_else(|| pspec.default_value().clone()),
        }
    }
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
                self.post_error(&error, "opening an OpenCL device");
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
        if matches!(
            event.type_(),
            gst::EventType::Eos | gst::EventType::FlushStop
        ) {
            self.drain();
        }
        self.parent_sink_event(event)
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
                lock(&self.told).clear();
                Ok(())
            }
            Err(error) => {
                // Upstream may try the same caps again.
                self.post_error_once(&error, "setting caps");
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
        let proposed = self
            .device()
            .and_then(|device| allocation::propose(&device, query));
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
        self.parent_submit_input_buffer(is_discont, input)
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
            self.post_error(&error, "allocating an output frame");
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
