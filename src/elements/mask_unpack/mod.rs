//! `clmaskunpack`: packed mask to GRAY8.

mod imp;

use gst::glib;

glib::wrapper! {
    /// Unpacks a 1-bit mask to GRAY8: a set bit becomes 255, a clear bit 0.
    ///
    /// For viewing stations that receive the packed masks of `clpitchthreshold`; needs no device.
    ///
    /// ```text
    /// gst-launch-1.0 videotestsrc ! clpitchthreshold pitch-x=16 ! video/x-bitmask ! clmaskunpack ! videoconvert ! autovideosink
    /// ```
    pub struct ClMaskUnpack(ObjectSubclass<imp::ClMaskUnpack>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}
