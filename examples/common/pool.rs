//! Buffers that an application fills for its appsrc, in the memory that the next element reads.

use gst::prelude::*;
use gst_base::prelude::*;

/// The pool that downstream proposes for `caps`; called where appsrc asks for data. `None` where
/// downstream has no wish, and any buffer is as good.
pub fn pool(appsrc: &gst_app::AppSrc, caps: &gst::Caps) -> Option<gst::BufferPool> {
    let source = appsrc.dynamic_cast_ref::<gst_base::BaseSrc>()?;
    // appsrc asks for a pool before it has caps, and never again.
    if source.buffer_pool().is_none() && source.set_caps(caps).is_ok() {
        source.negotiate();
    }
    source.buffer_pool()
}
