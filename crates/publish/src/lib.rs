//! The GStreamer element `inspectpublish`: sends the results of the inspection as JSON to a file or
//! to an MQTT broker.
//!
//! The crate is the plugin `inspectpublish` and a library: [`register_static`] registers the
//! element in an application without a plugin file, and [`Publisher`] sends reports without the
//! element. It needs no OpenCL device.

pub mod address;
mod broker;
mod file;
mod mqtt;
mod publish;
mod publisher;
mod queue;
mod sender;
mod shared;
mod trial;

pub use publish::{Frames, InspectPublish, Method};
pub use publisher::{Numbers, Publisher, Settings, StartError};
pub use sender::Notice;
pub use shared::SharedValue;

use std::sync::{Mutex, PoisonError};

/// Registers the element in an application that links this crate, without a plugin file.
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

/// The plugin's entry points; the macro generates public items without documentation.
#[allow(missing_docs)]
mod plugin {
    use gst::{glib, prelude::*};

    fn plugin_init(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
        clinspect_results::register();
        let element = super::InspectPublish::static_type();
        gst::Element::register(Some(plugin), "inspectpublish", gst::Rank::NONE, element)
    }

    gst::plugin_define!(
        inspectpublish,
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
