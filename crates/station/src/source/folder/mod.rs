//! `clfoldersrc`: the pictures of a folder as a camera, again and again. An element of the station alone.

mod imp;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gst::{glib, prelude::*};

glib::wrapper! {
    /// Sends the pictures of a folder (PNG, PNM, JPEG) as frames, in the order of their names, and begins again.
    pub struct FolderSrc(ObjectSubclass<imp::FolderSrc>)
        @extends gst_base::PushSrc, gst_base::BaseSrc, gst::Element, gst::Object;
}

/// Ends of the names of pictures.
const ENDS: [&str; 6] = ["png", "pgm", "ppm", "pnm", "jpg", "jpeg"];

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

/// The pictures in a folder, sorted by name; folders in it are not read.
///
/// # Errors
/// The folder cannot be read.
pub fn pictures(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let end = path.extension().and_then(|end| end.to_str());
        let is_picture = end.is_some_and(|end| ENDS.iter().any(|of| of.eq_ignore_ascii_case(end)));
        if is_picture && entry.file_type()?.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
