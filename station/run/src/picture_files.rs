//! The pictures in a folder that people fill.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use clinspect_pictures::ENDS;

/// Files that Windows leaves in a folder.
const OF_WINDOWS: [&str; 2] = ["thumbs.db", "desktop.ini"];

/// Whether a name is one that file managers, editors and other systems leave in a folder, such as `._1.png`, `.#a.toml` and
/// `Thumbs.db`. People do not see such files, so they are never meant.
pub fn is_hidden(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let is = |of: &&str| name.eq_ignore_ascii_case(of.as_bytes());
    name.starts_with(b".") || OF_WINDOWS.iter().any(is)
}

/// What is in a folder, sorted by name; without hidden files.
#[derive(Debug, Default)]
pub struct PictureFiles {
    /// Files with the end of a picture's name.
    pub pictures: Vec<PathBuf>,
    /// All else, which is left out.
    pub others: Vec<PathBuf>,
}

impl PictureFiles {
    /// Lists a folder; folders in it are not read.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn list(folder: &Path) -> io::Result<Self> {
        let mut list = Self::default();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.file_name().is_none_or(is_hidden) {
                continue;
            }
            let end = path.extension().and_then(|end| end.to_str());
            let is_picture = |end: &str| ENDS.iter().any(|of| end.eq_ignore_ascii_case(of));
            match end.is_some_and(is_picture) && path.is_file() {
                true => list.pictures.push(path),
                false => list.others.push(path),
            }
        }
        list.pictures.sort();
        list.others.sort();
        Ok(list)
    }
}
