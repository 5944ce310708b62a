//! Memory for the frames of an application.

use gst::prelude::*;
use gst_base::prelude::*;

/// The buffer pool that the elements after `source` (an `appsrc`) propose for `caps`: frames that an
/// application writes into its buffers reach the device without a copy.
///
/// Call it where appsrc asks for data, from its streaming thread. `None` where downstream proposes no
/// pool, or `source` is no GstBaseSrc; any buffer is as good then.
pub fn downstream_pool(
    source: &impl IsA<gst::Element>,
    caps: &gst::Caps,
) -> Option<gst::BufferPool> {
    let source = source.dynamic_cast_ref::<gst_base::BaseSrc>()?;
    // appsrc asks for a pool before it has caps, and never again.
    if source.buffer_pool().is_none() && source.set_caps(caps).is_ok() {
        source.negotiate();
    }
    source.buffer_pool()
}
