//! `clgaussian`: smooths frames.

mod imp;

use gst::glib;

glib::wrapper! {
    /// Smooths every component of a frame with a Gaussian, on an OpenCL device.
    ///
    /// Formats: every raw format whose components are whole bytes, and GRAY16. Integer arithmetic
    /// is exact and equals OpenCV's `GaussianBlur` with replicated borders.
    ///
    /// ```text
    /// gst-launch-1.0 videotestsrc pattern=snow ! clgaussian kernel-size=5 ! videoconvert ! autovideosink
    /// ```
    pub struct ClGaussian(ObjectSubclass<imp::ClGaussian>)
        @extends super::base_filter::ClBaseFilter, gst_base::BaseTransform, gst::Element, gst::Object;
}
