//! `clhistogram`: attaches each frame's histogram as metadata.

mod alarms;
mod imp;
mod properties;

use gst::{glib, prelude::*};

glib::wrapper! {
    /// Counts every component of a frame, on an OpenCL device, and attaches bins and statistics
    /// as `GstClHistogramMeta`; frames pass unchanged.
    ///
    /// Alarms (properties `alarm-*`, off by default) post the message `clhistogram-alarm` when
    /// lighting leaves its limits, and again when it is back.
    ///
    /// Formats: every raw format whose components are whole bytes, and GRAY16.
    ///
    /// ```text
    /// gst-launch-1.0 -m videotestsrc num-buffers=30 ! clhistogram ! fakesink
    /// ```
    pub struct ClHistogram(ObjectSubclass<imp::ClHistogram>)
        @extends super::base_filter::ClBaseFilter, gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Registers the element.
///
/// # Errors
/// GStreamer refuses the registration.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "clhistogram",
        gst::Rank::NONE,
        ClHistogram::static_type(),
    )
}
