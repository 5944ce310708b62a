//! Buffers for an application's appsrc, in memory that the next element reads without a copy.

use gst::prelude::*;
use gst_base::prelude::*;

/// The pool that downstream proposes for `caps`; call this when appsrc asks for data. `None`:
/// downstream proposes no pool, any buffer will do.
pub fn pool(appsrc: &gst_app::AppSrc, caps: &gst::Caps) -> Option<gst::BufferPool> {
    let source = appsrc.dynamic_cast_ref::<gst_base::BaseSrc>()?;
    // appsrc itself asks only once, before it has caps.
    if source.buffer_pool().is_none() && source.set_caps(caps).is_ok() {
        source.negotiate();
    }
    source.buffer_pool()
}
