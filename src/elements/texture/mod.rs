//! `cltexture`: compares a natural texture with itself and sends a packed defect mask.

mod imp;
mod properties;

use gst::glib;

glib::wrapper! {
    /// Compares a natural texture with itself, on an OpenCL device, and sends a 1-bit mask of the pixels that differ, with
    /// the verdict as `GstClDefectMeta`. It is for woven and knitted cloth, mesh, embossed and coated webs: their pattern
    /// repeats roughly, and no two repeats are alike. For patterns that a mask or a roller makes use `clpitchthreshold`.
    ///
    /// Six channels are compared with thresholds in units of the noise around: the pixel less the mean of its eight
    /// neighbours one pitch away, summed over windows of 1, 4, 9 and 33 pixels a side, and the mean over one repeat. The
    /// pitch is estimated from the frames, unless it is set. The thresholds are learned from good frames: without
    /// `thresholds`, and without a file of learned limits (`location` of `learn`), a start learns from the first frames,
    /// which must be good, and so does the action signal `learn`. Until then frames get the verdict `none`.
    ///
    /// Formats: GRAY8, GRAY16, and the luma of planar and semi-planar YUV. The mask is sent as `video/x-bitmask`
    /// (packed rows), GRAY8 (0 and 255) or `image/x-portable-bitmap`, whichever comes first in what downstream takes.
    /// With `output=frame` the frames pass unchanged, with mask, defects and verdict as their meta.
    ///
    /// ```text
    /// gst-launch-1.0 videotestsrc pattern=checkers-8 ! cltexture ! videoconvert ! autovideosink
    /// ```
    pub struct ClTexture(ObjectSubclass<imp::ClTexture>)
        @extends super::base_filter::ClBaseFilter, gst_base::BaseTransform, gst::Element, gst::Object;
}
