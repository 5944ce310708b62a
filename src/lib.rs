//! GStreamer elements that inspect live video with OpenCL: `clgaussian`, `clhistogram`,
//! `clpitchthreshold`, `clmaskunpack` and `inspectoverlay`.
//!
//! The crate is the plugin `clinspect`, and a library: applications read the metas through
//! [`results`], and tests reach every layer.

pub mod elements;
pub mod error;
pub mod frame;
pub mod math;
pub mod opencl;
pub mod operators;
pub mod results;

use std::sync::{Mutex, PoisonError};

/// Registers the elements in an application that links this crate, without a plugin file.
///
/// Call it after `gst::init()`; more than once does no harm, nor does it from several threads.
///
/// # Errors
/// GStreamer refuses the registration.
pub fn register_static() -> Result<(), gst::glib::BoolError> {
    // GStreamer runs the plugin's init for every call, and neither it nor GObject guards the
    // registration of a meta against a second thread.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    plugin::plugin_register_static()
}

/// The plugin's entry points; the macro makes public items without documentation.
#[allow(missing_docs)]
mod plugin {
    use gst::glib;

    fn plugin_init(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
        super::results::register();
        super::elements::gaussian::register(plugin)?;
        super::elements::histogram::register(plugin)?;
        super::elements::pitch_threshold::register(plugin)?;
        super::elements::mask_unpack::register(plugin)?;
        super::elements::inspect_overlay::register(plugin)
    }

    gst::plugin_define!(
        clinspect,
        env!("CARGO_PKG_DESCRIPTION"),
        plugin_init,
        concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
        // GStreamer's name for it; the crate is MIT OR Apache-2.0.
        "MIT/X11",
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_NAME"),
        env!("BUILD_REL_DATE")
    );
}
