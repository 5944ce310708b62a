//! The parent class of the elements that use a device.

mod counts;
mod device;
mod faults;
mod imp;
mod live;
mod message_gate;
mod progress;
mod properties;
mod stream;
mod template;
mod web;
mod web_flow;

use std::sync::LazyLock;

use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::prelude::*;

use super::pad_templates;
use clinspect_core::ClError;
use clinspect_opencl::frame::FORMATS;
use clinspect_results::FrameTimes;

pub use live::{InForce, Live, before_caps, put_back, refuse};
pub use message_gate::{MessageGate, MessageSettings};
pub use properties::with_line_scan;
pub use stream::{Frame, FrameStream, Learning, Negotiated, Target, Treatment, View};
pub use template::ClBaseFilterImpl;

glib::wrapper! {
    /// Opens a device, imports frames, applies settings, proposes its memory and keeps counts.
    pub struct ClBaseFilter(ObjectSubclass<imp::ClBaseFilter>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Pad templates of an element whose output has the caps of its input: every format that frames on
/// a device may have.
pub fn templates() -> &'static [gst::PadTemplate] {
    static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
        let caps = gst_video::VideoCapsBuilder::new()
            .format_list(FORMATS.iter().copied())
            .build();
        pad_templates(&caps, &caps)
    });
    TEMPLATES.as_ref()
}

impl ClBaseFilter {
    /// Checks the properties, as far as neither frames nor a device decide.
    ///
    /// # Errors
    /// The refusal that frames would cause.
    pub fn check(&self) -> Result<(), ClError> {
        self.imp().check()
    }
}

/// Methods for subclasses.
pub trait ClBaseFilterExt: IsA<ClBaseFilter> {
    /// The number of a frame: its offset if it has one, otherwise a count since the start.
    fn frame_number(&self, buffer: &gst::BufferRef) -> u64 {
        self.upcast_ref::<ClBaseFilter>()
            .imp()
            .counts
            .frame_number(buffer)
    }

    /// The times of a frame in the current segment.
    fn frame_times(&self, buffer: &gst::BufferRef) -> FrameTimes {
        FrameTimes::of(buffer, &self.upcast_ref::<ClBaseFilter>().segment())
    }

    /// Increments the count `name`, one of [`ClBaseFilterImpl::COUNTS`].
    fn count(&self, name: &'static str) {
        self.upcast_ref::<ClBaseFilter>().imp().counts.count(name);
    }

    /// Sets the count `name`, one of [`ClBaseFilterImpl::COUNTS`].
    fn set_count(&self, name: &'static str, to: u64) {
        (self.upcast_ref::<ClBaseFilter>().imp().counts).set_count(name, to);
    }

    /// Counts defects of a class in `class-counts` of the statistics.
    fn count_class(&self, name: &str, count: u32) {
        let filter = self.upcast_ref::<ClBaseFilter>();
        filter.imp().counts.count_class(name, count);
    }

    /// Posts a message on the bus.
    fn post(&self, message: gst::Message) {
        // Without a bus nobody receives messages.
        let _ = self
            .upcast_ref::<ClBaseFilter>()
            .upcast_ref::<gst::Element>()
            .post_message(message);
    }
}

impl<T: IsA<ClBaseFilter>> ClBaseFilterExt for T {}
