//! The debug category of devices and commands.

use std::sync::LazyLock;

pub(super) static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "clcontext",
        gst::DebugColorFlags::empty(),
        Some("OpenCL devices, contexts and queues"),
    )
});
