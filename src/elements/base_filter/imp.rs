//! Subclass of GstBaseTransform behind [`super::ClBaseFilter`].

use std::{
    path::PathBuf,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use atomic_refcell::{AtomicRefCell, AtomicRefMut};
use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::subclass::{
    BaseTransformMode,
    base_transform::{InputBuffer, PrepareOutputBufferSuccess},
    prelude::*,
};

use super::{
    ClBaseFilterExt, Device,
    properties::{MemoryObject, Settings, param_specs, stats},
};
use crate::error::error_message;
use clinspect_core::ClError;
use clinspect_opencl::frame::Importer;
use clinspect_opencl::{ClAllocator, Meter, new_video_pool};

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "clbasefilter",
        gst::DebugColorFlags::empty(),
        Some("OpenCL elements' parent class"),
    )
});

/// How long a stop waits for the device.
const FINISH_LIMIT: Duration = Duration::from_secs(1);
/// Buffers that a source may hold while the element works on one.
const MIN_BUFFERS: u32 = 2;

#[derive(Default)]
pub struct ClBaseFilter {
    settings: Mutex<Settings>,
    device: Mutex<Option<Device>>,
    /// Outlives the device, so that counts can be read after a stop.
    meter: Mutex<Arc<Meter>>,
    importer: AtomicRefCell<Option<Importer>>,
    frames: AtomicU64,
    /// A failing call was told, and what it leaves behind is no news.
    told: AtomicBool,
    /// Why caps could not be set the last time.
    failure: Mutex<Option<ClError>>,
    /// What a subclass counts.
    counts: Mutex<Vec<(&'static str, u64)>>,
}

impl ClBaseFilter {
    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self) -> MutexGuard<'_, Option<Device>> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn device(&self) -> Result<Device, ClError> {
        self.opened()
            .clone()
            .ok_or_else(|| ClError::Unavailable("the element is not started".into()))
    }

    pub(super) fn wants_images(&self) -> bool {
        self.settings().memory_object == MemoryObject::Image
    }

    pub(super) fn importer(&self) -> Result<AtomicRefMut<'_, Importer>, ClError> {
        AtomicRefMut::filter_map(self.importer.borrow_mut(), Option::as_mut)
            .ok_or_else(|| ClError::Input("a frame came before its caps".into()))
    }

    pub(super) fn frame_number(&self, buffer: &gst::BufferRef) -> u64 {
        let count = self.frames.fetch_add(1, Ordering::Relaxed);
        match buffer.offset() {
            gst::ffi::GST_BUFFER_OFFSET_NONE => count,
            offset => offset,
        }
    }

    pub(super) fn counts(&self) -> MutexGuard<'_, Vec<(&'static str, u64)>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The `stats` property.
    fn stats(&self, meter: &Meter) -> gst::Structure {
        let mut stats = stats(meter);
        for (name, count) in self.counts().iter() {
            stats.set(*name, *count);
        }
        stats
    }

    /// Whether setting caps ended differently from the time before; one failing call is like
    /// another, because upstream tries again and meets the next one.
    pub(super) fn is_news(&self, failure: &Option<ClError>) -> bool {
        let mut last = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = [&*last, failure].map(|f| matches!(f, Some(ClError::Call { .. })));
        if failure.is_none() {
            self.told.store(false, Ordering::Relaxed);
        }
        let news = *last != *failure && calls != [true; 2];
        last.clone_from(failure);
        news
    }

    fn open(&self) -> Result<Device, ClError> {
        let settings = self.settings().clone();
        let context = clinspect_opencl::open(&settings.device)?;
        let meter = Meter::new(settings.profile);
        let allocator = ClAllocator::new(&context, &meter);
        gst::info!(CAT, imp = self, "device {}", context.device_name());
        Ok(Device {
            context,
            meter,
            allocator,
        })
    }

    /// Notes that `error` is posted.
    pub(super) fn note_told(&self, error: &ClError) {
        if let ClError::Call { .. } = error {
            self.told.store(true, Ordering::Relaxed);
        }
    }

    /// Tells that a frame in this element's memory could not be read or written by others, who may
    /// go on without a word.
    ///
    /// # Errors
    /// It was told.
    fn tell_failed_memory(&self) -> Result<(), ()> {
        let failure = self.device().ok();
        match failure.and_then(|device| device.allocator.take_failure()) {
            None => Ok(()),
            // The frame before was refused for it.
            Some(_) if self.told.load(Ordering::Relaxed) => Ok(()),
            Some(error) => {
                self.obj().post_error(&error, "handing a frame on");
                Err(())
            }
        }
    }

    pub(super) fn start_device(&self) -> Result<(), gst::ErrorMessage> {
        let device = self
            .open()
            .map_err(|error| error_message(&error, "opening an OpenCL device"))?;
        *self.meter.lock().unwrap_or_else(PoisonError::into_inner) = device.meter.clone();
        *self.opened() = Some(device);
        self.frames.store(0, Ordering::Relaxed);
        self.is_news(&None);
        self.obj().notify("device-name");
        Ok(())
    }
}

#[glib::object_subclass]
impl ObjectSubclass for ClBaseFilter {
    const NAME: &'static str = "GstClBaseFilter";
    const ABSTRACT: bool = true;
    type Type = super::ClBaseFilter;
    type ParentType = gst_base::BaseTransform;
}

impl ObjectImpl for ClBaseFilter {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(param_specs);
        PROPERTIES.as_ref()
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        let mut settings = self.settings();
        let name = pspec.name();
        gst::info!(CAT, imp = self, "{name} = {value:?}");
        // GObject checks the type of a value before it comes here.
        match name {
            "device" => {
                // Read as a path: a C program may set any bytes, and glib-rs panics on a string
                // that is no UTF-8.
                settings.device = value.get::<Option<PathBuf>>().ok().flatten().map_or_else(
                    || Settings::default().device,
                    |name| name.to_string_lossy().into_owned(),
                );
            }
            "memory-object" => settings.memory_object = value.get().unwrap_or_default(),
            "profile" => settings.profile = value.get().unwrap_or_default(),
            _ => {}
        }
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        match pspec.name() {
            "device" => self.settings().device.to_value(),
            "device-name" => self
                .opened()
                .as_ref()
                .map_or("", |device| device.context.device_name())
                .to_value(),
            "memory-object" => self.settings().memory_object.to_value(),
            "profile" => self.settings().profile.to_value(),
            "stats" => {
                let meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
                self.stats(&meter).to_value()
            }
            _ => pspec.default_value().clone(),
        }
    }
}

impl GstObjectImpl for ClBaseFilter {}
impl ElementImpl for ClBaseFilter {}

impl BaseTransformImpl for ClBaseFilter {
    const MODE: BaseTransformMode = BaseTransformMode::NeverInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *self.importer.borrow_mut() = None;
        let device = self.opened().take();
        if let Some(device) = device {
            // Frames that were sent on and not yet computed must not be lost with the element.
            let finished = device.context.finish_within(FINISH_LIMIT, &device.meter);
            if let Err(error) = finished {
                gst::warning!(CAT, imp = self, "{error}");
            }
            device.meter.close();
            gst::info!(CAT, imp = self, "{}", self.stats(&device.meter));
        }
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        let drains = matches!(
            event.view(),
            gst::EventView::Eos(_) | gst::EventView::FlushStop(_)
        );
        if drains
            && self.tell_failed_memory().is_ok()
            && let Ok(device) = self.device()
            // A device that failed before was told of.
            && !device.context.has_failed()
            && let Err(error) = device.context.finish()
        {
            let message = error_message(&error, "finishing the stream's last frames");
            self.obj().post_error_message(message);
        }
        self.parent_sink_event(event)
    }

    fn set_caps(&self, incaps: &gst::Caps, _outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let info = gst_video::VideoInfo::from_caps(incaps)
            .map_err(|_| gst::loggable_error!(CAT, "no video format in {incaps}"))?;
        let importer = self
            .device()
            .and_then(|device| Importer::new(&device.context, &device.meter, &info));
        match importer {
            Ok(importer) => {
                *self.importer.borrow_mut() = Some(importer);
                Ok(())
            }
            Err(error) => self.obj().set_up_result(&CAT, "setting caps", Err(error)),
        }
    }

    fn propose_allocation(
        &self,
        _decide: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        let device = self
            .device()
            .map_err(|error| gst::loggable_error!(CAT, "{error}"))?;
        let (caps, need_pool) = query.get_owned();
        let caps = caps.ok_or_else(|| gst::loggable_error!(CAT, "an allocation without caps"))?;
        let info = gst_video::VideoInfo::from_caps(&caps)
            .map_err(|_| gst::loggable_error!(CAT, "no video format in {caps}"))?;
        let size = u32::try_from(info.size())
            .map_err(|_| gst::loggable_error!(CAT, "frames of {} bytes", info.size()))?;
        let pool = need_pool
            .then(|| new_video_pool(&device.allocator, &caps, size, MIN_BUFFERS, false))
            .transpose()
            .map_err(|error| gst::loggable_error!(CAT, "{error}"))?;
        query.add_allocation_pool(pool.as_ref(), size, MIN_BUFFERS, 0);
        query.add_allocation_param(
            Some(device.allocator.upcast_ref::<gst::Allocator>()),
            gst::AllocationParams::default(),
        );
        query.add_allocation_meta::<gst_video::VideoMeta>(None);
        Ok(())
    }

    fn submit_input_buffer(
        &self,
        is_discont: bool,
        input: gst::Buffer,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.tell_failed_memory()
            .map_err(|()| gst::FlowError::Error)?;
        self.parent_submit_input_buffer(is_discont, input)
    }

    fn prepare_output_buffer(
        &self,
        input: InputBuffer,
    ) -> Result<PrepareOutputBufferSuccess, gst::FlowError> {
        let prepared = self.parent_prepare_output_buffer(input);
        // The parent class refuses the frame, but does not tell why.
        if let Err(gst::FlowError::Error) = prepared
            && let Ok(device) = self.device()
        {
            let error = device.allocator.take_failure();
            let error = error.unwrap_or_else(|| {
                ClError::Input("no buffer for the output frame: stop and start the pipeline".into())
            });
            self.obj().post_error(&error, "making an output frame");
        }
        prepared
    }

    fn transform_meta<'a>(
        &self,
        _outbuf: &mut gst::BufferRef,
        _meta: gst::MetaRef<'a, gst::Meta>,
        _inbuf: &'a gst::BufferRef,
    ) -> bool {
        // Output has the input's size, so what others found out about a frame stays true. Metas
        // about memory never come here.
        true
    }
}
