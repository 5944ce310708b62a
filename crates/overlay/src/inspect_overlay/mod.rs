//! `inspectoverlay`: draws the results of the other elements over the picture.

mod area;
mod bits;
mod blend;
mod canvas;
mod colours;
mod defects;
mod found;
mod histogram;
mod imp;
mod masks;
mod output;
mod painter;
mod placement;
mod planes;
mod properties;
mod rows;
mod shapes;
pub mod text;
mod verdict;

use gst::glib;

glib::wrapper! {
    /// Draws defects (tint, boxes, labels), pixels that are not judged, the histogram of each channel
    /// and a bar with the verdict over the picture; needs no device. Frames with nothing to draw pass unchanged.
    ///
    /// It reads `GstClDefectMeta` and `GstClHistogramMeta` on the frames (`clpitchthreshold` with
    /// `output=frame`, `clhistogram`), and masks with their metas on the request pad `mask`, as
    /// `video/x-bitmask` or GRAY8. Frames wait for their masks: within the latency in a live
    /// pipeline, otherwise without a limit. docs/elements/inspectoverlay.md describes how masks are
    /// matched with frames, and what is drawn.
    ///
    /// ```text
    /// gst-launch-1.0 videotestsrc pattern=ball ! clhistogram ! clpitchthreshold pitch-x=16 output=frame ! inspectoverlay ! videoconvert ! autovideosink
    /// ```
    ///
    /// With the mask from a branch of its own, which needs a queue like every branch:
    ///
    /// ```text
    /// gst-launch-1.0 videotestsrc pattern=ball ! tee name=t  t. ! queue ! inspectoverlay name=o ! videoconvert ! autovideosink  t. ! queue ! clpitchthreshold pitch-x=16 ! o.mask
    /// ```
    pub struct InspectOverlay(ObjectSubclass<imp::InspectOverlay>)
        @extends gst_base::Aggregator, gst::Element, gst::Object;
}

/// Formats that can be drawn on: every raw format without a palette.
fn formats() -> Vec<gst_video::VideoFormat> {
    let mut formats: Vec<_> = gst_video::VideoFormat::iter_raw()
        .filter(|&format| rows::can_be_edited(format))
        .collect();
    // GStreamer's order begins with 16 bits per component, and a source that can choose takes the
    // first.
    formats.sort_by_key(|&format| {
        use gst_video::VideoFormat::{Bgrx, I420, Nv12};
        let first = [I420, Nv12, Bgrx].iter().position(|&first| first == format);
        let bits = gst_video::VideoFormatInfo::from_format(format).bits();
        first.unwrap_or(if bits <= 8 { 3 } else { 4 })
    });
    formats
}
