//! `clunpack`: packed samples and Bayer pictures to raw video.

mod caps;
mod imp;

use gst::glib;

glib::wrapper! {
    /// Unpacks what cameras send: grey samples of 10 or 12 bits without padding, and Bayer pictures of 8 to 16 bits.
    ///
    /// The caps of packed samples say `GRAY16_LE`, so the property `packing` says what the bytes are. Raw video
    /// passes unchanged with `packing=none`.
    ///
    /// ```text
    /// gst-launch-1.0 videotestsrc ! rgb2bayer ! clunpack ! video/x-raw,format=GRAY8 ! clgaussian ! fakesink
    /// ```
    pub struct ClUnpack(ObjectSubclass<imp::ClUnpack>)
        @extends super::base_filter::ClBaseFilter, gst_base::BaseTransform, gst::Element, gst::Object;
}
