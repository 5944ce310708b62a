//! GStreamer elements that inspect live video with OpenCL: `clunpack`, `clflatfield`, `clgaussian`, `clhistogram`,
//! `clpitchthreshold`, `clreference`, `clsurface`, `cltexture` and `clmaskunpack`.
//!
//! The crate is the plugin `clinspect` and a library for applications: [`register_static`]
//! registers the elements without a plugin file, [`check_settings`] checks properties before frames
//! flow, [`results`] reads the results of the elements, and [`downstream_pool`] gives an
//! application's own frames memory that the device reads without a copy.

mod elements;
mod embedding;
mod error;

pub use clinspect_core::ClError;
pub use clinspect_results as results;
pub use embedding::downstream_pool;

use std::sync::{Mutex, PoisonError};

/// Registers the elements in an application that links this crate, without a plugin file.
///
/// Call it after `gst::init()`. Later calls do nothing; several threads may call it.
///
/// # Errors
/// GStreamer refuses the registration.
pub fn register_static() -> Result<(), gst::glib::BoolError> {
    // GStreamer would run the plugin's init at every call, without a lock, and replace the factories of elements that
    // run.
    static IS_REGISTERED: Mutex<bool> = Mutex::new(false);
    let mut is_registered = IS_REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_registered {
        plugin::plugin_register_static()?;
        *is_registered = true;
    }
    Ok(())
}

/// Checks the properties of an element of this plugin, as far as neither frames nor a device decide: what passes may
/// still be refused for frames of some format or size. Other elements pass.
///
/// # Errors
/// The element's own words for settings that it refuses with every frame.
pub fn check_settings(element: &gst::Element) -> Result<(), String> {
    use gst::prelude::*;
    match element.downcast_ref::<elements::base_filter::ClBaseFilter>() {
        Some(filter) => filter.check().map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

/// Checks whether the limits of an element see a defect, as far as its files tell: those of `clreference` and its model. Other
/// elements pass, because they know the contrast from frames only.
///
/// # Errors
/// A sentence that begins with the limit, such as `threshold`.
pub fn check_sight(element: &gst::Element) -> Result<(), String> {
    use gst::{prelude::*, subclass::prelude::*};
    match element.downcast_ref::<elements::reference::ClReference>() {
        Some(reference) => reference.imp().check_sight(),
        None => Ok(()),
    }
}

/// The plugin's entry points; the macro generates public items without documentation.
#[allow(missing_docs)]
mod plugin {
    use gst::glib;

    fn plugin_init(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
        super::results::register();
        super::elements::register(plugin)
    }

    gst::plugin_define!(
        clinspect,
        env!("CARGO_PKG_DESCRIPTION"),
        plugin_init,
        concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
        // GStreamer's name of the licence; the crate is MIT OR Apache-2.0.
        "MIT/X11",
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_NAME"),
        env!("BUILD_REL_DATE")
    );
}
