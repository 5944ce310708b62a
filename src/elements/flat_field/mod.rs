//! `clflatfield`: evens out lamps, lenses and sensors.

mod imp;
mod references;
mod taking;

use gst::glib;

glib::wrapper! {
    /// Corrects every sample of grey and RGB frames with a dark and a white reference, on an OpenCL device.
    ///
    /// The action signals `take-dark` and `take-white` average the next frames into a reference, and
    /// `location` keeps the references in a file that NumPy reads and writes. Frames pass unchanged until
    /// there is a white reference.
    ///
    /// ```text
    /// gst-launch-1.0 -m videotestsrc num-buffers=30 ! clflatfield location=/tmp/line-1.npz ! fakesink
    /// ```
    pub struct ClFlatField(ObjectSubclass<imp::ClFlatField>)
        @extends super::base_filter::ClBaseFilter, gst_base::BaseTransform, gst::Element, gst::Object;
}
