//! The template of the elements that work on a device.

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
    /// Opens a device, brings frames to it, follows settings, offers its memory, and counts.
    pub struct ClBaseFilter(ObjectSubclass<imp::ClBaseFilter>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// The device of a started element, and what its properties were at the start.
#[derive(Debug, Clone)]
struct Device {
    context: Arc<ClContext>,
    /// Counters of the element.
    meter: Arc<Meter>,
    /// Allocates in the context, and counts in the meter.
    allocator: ClAllocator,
    /// Kernels read images instead of buffers.
    images: bool,
}

/// What a subclass asks of its parent class.
pub trait ClBaseFilterExt: IsA<ClBaseFilter> {
    /// The number of a frame: its offset where it has one, else a count since the start.
    fn frame_number(&self, buffer: &gst::BufferRef) -> u64 {
        self.upcast_ref::<ClBaseFilter>().imp().frame_number(buffer)
    }

    /// Counts one more of `name`, which is one of [`ClBaseFilterImpl::COUNTS`].
    fn count(&self, name: &'static str) {
        self.upcast_ref::<ClBaseFilter>().imp().count(name);
    }

    /// Posts a message, where the element has a bus.
    fn post(&self, message: gst::Message) {
        // Without a bus nobody listens.
        let _ = self
            .upcast_ref::<ClBaseFilter>()
            .upcast_ref::<gst::Element>()
            .post_message(message);
    }

    /// Posts a warning: settings are refused, and those before stay in force.
    fn post_refusal(&self, error: &ClError) {
        gst::element_warning!(
            self.upcast_ref::<ClBaseFilter>(),
            gst::LibraryError::Settings,
            ("{}", error),
            ["the settings before stay in force"]
        );
    }
}

impl<T: IsA<ClBaseFilter>> ClBaseFilterExt for T {}
