//! `clhistogram`: attaches each frame's histogram as metadata.

mod alarms;
mod imp;

use gst::glib;

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
