//! `clfoldersrc`: the pictures of a folder as a camera, again and again. An element of the station alone.

mod imp;

use std::path::Path;

use gst::{glib, prelude::*};

glib::wrapper! {
    /// Sends the pictures of a folder (PNG, PNM, JPEG) as frames, in the order of their names, and begins again.
    pub struct FolderSrc(ObjectSubclass<imp::FolderSrc>)
        @extends gst_base::PushSrc, gst_base::BaseSrc, gst::Element, gst::Object;
}

/// Registers the element. Later calls change nothing.
///
/// # Errors
/// GStreamer refuses the registration.
pub fn register() -> Result<(), glib::BoolError> {
    gst::Element::register(
        None,
        "clfoldersrc",
        gst::Rank::NONE,
        FolderSrc::static_type(),
    )
}

/// The description of a source that sends the pictures of a folder. `None` if the path is no UTF-8.
pub fn description(folder: &Path) -> Option<String> {
    let path = folder.to_str()?;
    let escaped = path.replace('\\', r"\\").replace('"', "\\\"");
    Some(format!("clfoldersrc location=\"{escaped}\""))
}
