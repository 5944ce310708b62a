//! The template of the elements that use a device.

mod allocation;
mod frame;
mod imp;
mod live;
mod message_gate;
mod properties;
mod template;

use std::sync::Arc;

use gst::{glib, prelude::*, subclass::prelude::*};

use clinspect_core::ClError;
use clinspect_opencl::{ClAllocator, ClContext, Meter};

pub use frame::Frame;
pub use live::Live;
pub use message_gate::MessageGate;
pub use template::{ClBaseFilterImpl, Negotiated, Target};

glib::wrapper! {
    /// Opens a device, imports frames, applies settings, proposes its memory and keeps counts.
    pub struct ClBaseFilter(ObjectSubclass<imp::ClBaseFilter>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// The device of a started element, and the properties latched at the start.
#[derive(Debug, Clone)]
struct Device {
    context: Arc<ClContext>,
    /// Counters of the element.
    meter: Arc<Meter>,
    /// Allocates memory in the context; the meter counts it.
    allocator: ClAllocator,
    /// Kernels read images instead of buffers.
    images: bool,
}

/// Methods for subclasses.
pub trait ClBaseFilterExt: IsA<ClBaseFilter> {
    /// The number of a frame: its offset if it has one, otherwise a count since the start.
    fn frame_number(&self, buffer: &gst::BufferRef) -> u64 {
        self.upcast_ref::<ClBaseFilter>().imp().frame_number(buffer)
    }

    /// Increments the count `name`, one of [`ClBaseFilterImpl::COUNTS`].
    fn count(&self, name: &'static str) {
        self.upcast_ref::<ClBaseFilter>().imp().count(name);
    }

    /// Posts a message on the bus.
    fn post(&self, message: gst::Message) {
        // Without a bus nobody receives messages.
        let _ = self
            .upcast_ref::<ClBaseFilter>()
            .upcast_ref::<gst::Element>()
            .post_message(message);
    }

    /// Posts a warning that settings are refused and the last ones stay in force.
    fn post_refusal(&self, error: &ClError) {
        gst::element_warning!(
            self.upcast_ref::<ClBaseFilter>(),
            gst::LibraryError::Settings,
            ("{}", error),
            ["the previous settings stay in force"]
        );
    }
}

impl<T: IsA<ClBaseFilter>> ClBaseFilterExt for T {}
