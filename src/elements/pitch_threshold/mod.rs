//! `clpitchthreshold`: compares a repeating pattern with itself and sends a packed defect mask.

mod imp;
mod properties;

use gst::glib;

glib::wrapper! {
    /// Compares a repeating pattern with itself one pitch away, on an OpenCL device, and sends
    /// a 1-bit mask of the pixels that differ, with the verdict as `GstClDefectMeta`.
    ///
    /// The pitch is estimated from the frames, unless it is set. With `output=frame` the frames
    /// pass unchanged, and mask, defects and verdict travel as their meta.
    ///
    /// Formats: GRAY8, GRAY16, and the luma of planar and semi-planar YUV. The mask is sent as
    /// `video/x-bitmask` (packed rows), GRAY8 (0 and 255) or `image/x-portable-bitmap`, whichever
    /// comes first in what downstream takes.
    ///
    /// ```text
    /// gst-launch-1.0 videotestsrc pattern=checkers-8 ! clpitchthreshold pitch-x=16 ! videoconvert ! autovideosink
    /// ```
    pub struct ClPitchThreshold(ObjectSubclass<imp::ClPitchThreshold>)
        @extends super::base_filter::ClBaseFilter, gst_base::BaseTransform, gst::Element, gst::Object;
}
