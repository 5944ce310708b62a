//! The device of an element, from its start to its stop.

use std::sync::Arc;

use super::properties::{MemoryObject, Settings};
use clinspect_core::ClError;
use clinspect_opencl::{ClAllocator, ClContext, Meter};

/// The device of a started element, and the properties latched at the start.
#[derive(Debug, Clone)]
pub(super) struct Device {
    pub context: Arc<ClContext>,
    /// Counters of the element.
    pub meter: Arc<Meter>,
    /// Allocates memory in the context; the meter counts it.
    pub allocator: ClAllocator,
    /// Kernels read images instead of buffers.
    pub images: bool,
    /// Frames are strips of a web.
    pub line_scan: bool,
}

impl Device {
    /// Opens the device, and takes the properties that take effect at the start.
    ///
    /// # Errors
    /// There is no such device, or it cannot be used.
    pub fn open(settings: &Settings) -> Result<Self, ClError> {
        let context = clinspect_opencl::open(&settings.device)?;
        let meter = Meter::new(settings.profile);
        Ok(Self {
            allocator: ClAllocator::new(&context, &meter),
            context,
            meter,
            images: settings.memory_object == MemoryObject::Image,
            line_scan: settings.line_scan,
        })
    }
}
