//! The device of an element, from its start to its stop.

use std::{sync::Arc, time::Duration};

use gst::{glib, prelude::*, subclass::prelude::*};

use super::{
    imp::{CAT, ClBaseFilter},
    properties::MemoryObject,
    stream::Kept,
};
use crate::elements::lock;
use clinspect_core::ClError;
use clinspect_opencl::{ClAllocator, ClContext, Meter};

/// How long a stop waits for a device that makes no progress.
const FINISH_LIMIT: Duration = Duration::from_secs(1);
/// How long the end of a stream and a flush wait: a slow device may take that long for one large
/// frame.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// The device of a started element, and the properties latched at the start.
#[derive(Debug, Clone)]
pub(super) struct Device {
    pub context: Arc<ClContext>,
    /// Counters of the element.
    pub meter: Arc<Meter>,
    /// Allocates memory in the context; the meter counts it.
    pub allocator: ClAllocator,
    /// Allocates memory for the strips of a web, if there is one.
    pub strips: Option<ClAllocator>,
    /// Kernels read images instead of buffers.
    pub images: bool,
    /// Frames are strips of a web.
    pub line_scan: bool,
}

impl ClBaseFilter {
    pub(super) fn device(&self) -> Result<Device, ClError> {
        lock(&self.device)
            .clone()
            .ok_or_else(|| ClError::Unavailable("the element is not started".into()))
    }

    /// The property `stats`.
    pub(super) fn stats(&self) -> gst::Structure {
        let device = lock(&self.device);
        let device = device.as_ref();
        let name = device.map_or("", |device| device.context.device_name());
        let mut stats = self.counts.stats();
        stats.set("device", name);
        stats
    }

    /// Opens the device, and latches the properties that take effect at the start.
    pub(super) fn open(&self) -> Result<(), ClError> {
        let methods = self.methods()?;
        let settings = lock(&self.settings).clone();
        let context = clinspect_opencl::open(&settings.device)?;
        let meter = Meter::new(settings.profile);
        let allocator = ClAllocator::new(&context, &meter);
        let strips = settings
            .line_scan
            .then(|| ClAllocator::for_strips(&context, &meter));
        gst::info!(CAT, imp = self, "device {}", context.device_name());
        self.counts.start(&meter, methods.counts);
        *lock(&self.device) = Some(Device {
            context,
            meter,
            allocator,
            strips,
            images: settings.memory_object == MemoryObject::Image,
            line_scan: settings.line_scan,
        });
        self.faults.clear();
        (methods.started)(&self.obj());
        self.obj().notify("stats");
        Ok(())
    }

    pub(super) fn close(&self) {
        *lock(&self.stream) = None;
        *lock(&self.kept) = Kept::default();
        *lock(&self.delay) = None;
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
            gst::info!(CAT, imp = self, "{}", self.counts.stats());
        }
    }

    /// Posts the error if another element could not read or write a frame in this element's memory:
    /// that element may continue without an error of its own.
    ///
    /// # Errors
    /// There was such a failure.
    pub(super) fn check_memory(&self) -> Result<(), ()> {
        let failure = self.device().ok().and_then(|device| {
            let strips = device.strips.as_ref();
            let strips = strips.and_then(|strips| strips.take_failure());
            device.allocator.take_failure().or(strips)
        });
        match failure {
            None => Ok(()),
            // The error was posted already, with the frame before.
            Some(_) if self.faults.is_call_posted() => Ok(()),
            Some(error) => {
                self.faults.post(&self.obj(), &error, "passing a frame on");
                Err(())
            }
        }
    }

    /// Waits until all pushed frames are computed, so that their errors are posted before the end
    /// of the stream.
    pub(super) fn drain(&self) {
        if self.check_memory().is_ok()
            && let Ok(device) = self.device()
            // The failure of the device was posted already.
            && !device.context.has_failed()
            && let Err(error) = device.context.finish_within(DRAIN_LIMIT, &device.meter)
        {
            self.faults.post(
                &self.obj(),
                &error,
                "finishing the last frames of the stream",
            );
        }
    }

    /// Sets `device`, unless a device is open.
    pub(super) fn set_device(&self, value: &glib::Value) {
        if lock(&self.device).is_none() {
            lock(&self.settings).set_device(value);
            return;
        }
        let device = lock(&self.settings).device.clone();
        gst::element_imp_warning!(
            self,
            gst::LibraryError::Settings,
            (
                "device={} stays: an element that runs cannot change its device; set it to READY \
                 first",
                device
            )
        );
    }
}
