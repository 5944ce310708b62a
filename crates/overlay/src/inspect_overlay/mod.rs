//! `inspectoverlay`: draws what the other elements found over the picture.

mod aggregate;
mod bits;
mod blend;
mod canvas;
mod colours;
mod defects;
mod histogram;
mod imp;
mod masks;
mod matching;
mod output;
mod painter;
mod placement;
mod planes;
mod properties;
mod rows;
mod shapes;
mod text;
mod verdict;

use gst::{glib, prelude::*};

glib::wrapper! {
    /// Draws defects (tint, boxes, labels), the histogram of each channel and a bar with the
    /// verdict over the picture; needs no device. Frames with nothing to draw pass untouched.
    ///
    /// It reads `GstClDefectMeta` and `GstClHistogramMeta` on the frames (`clpitchthreshold` with
    /// `output=frame`, `clhistogram`), and masks with their metas that come on the request pad
    /// `mask`, as `video/x-bitmask` or GRAY8. Frames wait for their masks: in a live pipeline within
    /// its latency, else always. docs/elements/inspectoverlay.md says which mask belongs to which
    /// frame, and what is drawn.
    ///
    /// ```text
    /// gst-launch-1.0 videotestsrc pattern=ball ! clhistogram ! clpitchthreshold pitch-x=16 output=frame ! inspectoverlay ! videoconvert ! autovideosink
    /// ```
    ///
    /// With the mask from a branch of its own, which needs a queue as every branch does:
    ///
    /// ```text
    /// gst-launch-1.0 videotestsrc pattern=ball ! tee name=t  t. ! queue ! inspectoverlay name=o ! videoconvert ! autovideosink  t. ! queue ! clpitchthreshold pitch-x=16 ! o.mask
    /// ```
    pub struct InspectOverlay(ObjectSubclass<imp::InspectOverlay>)
        @extends gst_base::Aggregator, gst::Element, gst::Object;
}

/// Formats that can be drawn on: every raw one whose colours are not those of a palette.
fn formats() -> Vec<gst_video::VideoFormat> {
    let mut formats: Vec<_> = gst_video::VideoFormat::iter_raw()
        .filter(|&format| rows::can_be_edited(format))
        .collect();
    // GStreamer's order begins with 16 bits a component; a source that may choose takes the first.
    formats.sort_by_key(|&format| {
        use gst_video::VideoFormat::{Bgrx, I420, Nv12};
        let first = [I420, Nv12, Bgrx].iter().position(|&first| first == format);
        let bits = gst_video::VideoFormatInfo::from_format(format).bits();
        first.unwrap_or(if bits <= 8 { 3 } else { 4 })
    });
    formats
}

/// Registers the element.
///
/// # Errors
/// GStreamer refuses the registration.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "inspectoverlay",
        gst::Rank::NONE,
        InspectOverlay::static_type(),
    )
}
