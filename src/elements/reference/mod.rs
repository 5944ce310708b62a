//! `clreference`: compares frames with a trained picture and sends a packed defect mask.

mod file;
mod imp;
mod properties;
mod training;

use gst::glib;

glib::wrapper! {
    /// Compares frames with a picture that it learned from good frames, on an OpenCL device, and sends a 1-bit mask
    /// of the pixels that differ, with the verdict as `GstClDefectMeta`. It is for pictures that do not repeat:
    /// labels, boards, prints, parts.
    ///
    /// The action signal `train` begins a training of `train-frames` good frames; with `train-frames` set, a start
    /// without a model begins one too. A pixel is marked if it differs from the mean of the training by more than
    /// `threshold` grey levels, and by more than `deviation-factor` times its standard deviation. Frames can be shifted
    /// to where they fit the model (`align`), and their brightness can follow it (`normalize`).
    ///
    /// With `location` the model is read from a file at the start, and written there after a training.
    ///
    /// Formats: GRAY8, GRAY16, and the luma of planar and semi-planar YUV. The mask is sent as `video/x-bitmask`
    /// (packed rows), GRAY8 (0 and 255) or `image/x-portable-bitmap`, whichever comes first in what downstream takes.
    /// With `output=frame` the frames pass unchanged, with mask, defects and verdict as their meta.
    ///
    /// ```text
    /// gst-launch-1.0 videotestsrc ! clreference train-frames=10 ! videoconvert ! autovideosink
    /// ```
    pub struct ClReference(ObjectSubclass<imp::ClReference>)
        @extends super::base_filter::ClBaseFilter, gst_base::BaseTransform, gst::Element, gst::Object;
}
