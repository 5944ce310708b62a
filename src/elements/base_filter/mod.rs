//! The parent class of the elements that use a device.

mod build;
mod device;
mod faults;
mod imp;
mod properties;
mod reports;
mod stream;
mod template;
mod web;
mod web_flow;

use std::sync::LazyLock;

use gst::{glib, subclass::prelude::*};

use super::pad_templates;
use clinspect_core::ClError;
use clinspect_opencl::frame::FORMATS;

pub use properties::with_line_scan;
pub use reports::{ClBaseFilterExt, MessageGate, MessageSettings};
pub use stream::{
    Frame, FrameStream, InForce, Learning, Live, Negotiated, Target, Treatment, View, before_caps,
    put_back, refuse,
};
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
