//! Memory for the frames of an application.

use gst::prelude::*;
use gst_base::prelude::*;

/// The buffer pool that the elements after `source` (an `appsrc`) propose for `caps`. Frames that
/// an application writes into buffers of this pool reach the device without a copy.
///
/// Call it in the handler of appsrc's `need-data`, on its streaming thread. `None` if downstream
/// proposes no pool or `source` is not a GstBaseSrc; any buffer will do then.
pub fn downstream_pool(
    source: &impl IsA<gst::Element>,
    caps: &gst::Caps,
) -> Option<gst::BufferPool> {
    let source = source.dynamic_cast_ref::<gst_base::BaseSrc>()?;
    // appsrc queries a pool only once, before it has caps.
    if source.buffer_pool().is_none() && source.set_caps(caps).is_ok() {
        source.negotiate();
    }
    source.buffer_pool()
}
