//! `clsurface`: compares a surface with what good frames have shown and sends a packed defect mask.

mod imp;
mod learning;
mod properties;

use gst::glib;

glib::wrapper! {
    /// Compares a surface with what good frames have shown, on an OpenCL device, and sends a 1-bit mask of the pixels that
    /// differ, with the verdict as `GstClDefectMeta`. It is for materials on which nothing repeats and no picture is fixed:
    /// leather, cast and ground metal, wood, paper, embossed and coated webs.
    ///
    /// The channel `novelty` compares each cell of 4x4 pixels, by contrasts in three scales, with the prototypes of a model;
    /// `dark-lines` and `bright-lines` find cracks and scratches. Model and thresholds are learned from good frames: without
    /// a file of them (`location` of `learn`) a start learns from the first frames, which must be good, and so does the
    /// action signal `learn`. A thread learns; meanwhile, and until then, frames get the verdict `none` or that of the model
    /// before.
    ///
    /// Formats: GRAY8, GRAY16, and the luma of RGB and of planar and semi-planar YUV. The mask is sent as `video/x-bitmask`
    /// (packed rows), GRAY8 (0 and 255) or `image/x-portable-bitmap`, whichever comes first in what downstream takes.
    /// With `output=frame` the frames pass unchanged, with mask, defects and verdict as their meta.
    ///
    /// ```text
    /// gst-launch-1.0 videotestsrc pattern=snow is-live=true ! clsurface ! videoconvert ! autovideosink
    /// ```
    pub struct ClSurface(ObjectSubclass<imp::ClSurface>)
        @extends super::base_filter::ClBaseFilter, gst_base::BaseTransform, gst::Element, gst::Object;
}
