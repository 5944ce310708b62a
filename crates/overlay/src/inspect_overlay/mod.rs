//! `inspectoverlay`: draws what the other elements found over the picture.

mod bits;
mod blend;
mod canvas;
mod colours;
mod defects;
mod histogram;
mod imp;
mod layout;
mod mask_pad;
mod mask_queue;
mod matching;
mod pace;
mod painter;
mod planes;
mod properties;
mod rows;
mod seeking;
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
    /// `mask`, as `video/x-bitmask` or GRAY8. A mask belongs to the frame of its running time, or
    /// to all frames while its duration lasts. A frame waits for its mask for at most
    /// `mask-timeout`, which a live pipeline's latency includes while there is the pad. Results of
    /// another size than the frame's (behind `videoscale`) are scaled to it. Seeks reach the masks'
    /// source where it is not the frames'.
    ///
    /// Formats: every raw one without a palette; on grey frames colours are grey, so convert them
    /// before. Sizes of text and lines follow the frame's size.
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
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Formats that can be drawn on: every raw one whose colours are not those of a palette.
fn formats() -> Vec<gst_video::VideoFormat> {
    let mut formats: Vec<_> = gst_video::VideoFormat::iter_raw()
        .filter(|&format| rows::can_be_edited(format))
        .collect();
    // GStreamer's order begins with 16 bits a component; a source that may choose takes the first.
    formats.sort_by_key(|format| match format {
        gst_video::VideoFormat::I420 => 0,
        gst_video::VideoFormat::Nv12 => 1,
        gst_video::VideoFormat::Bgrx => 2,
        _ => {
            let info = gst_video::VideoFormatInfo::from_format(*format);
            if info.bits() <= 8 { 3 } else { 4 }
        }
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
