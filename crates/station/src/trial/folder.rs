//! Frames in folders: sorted by people into `good` and `failed`, or recorded.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Kept, Label};
use crate::{
    frame::Frame,
    recorded::{self, Recorded},
};

/// Ends of the names of pictures that [`Frame::read`] reads.
const PICTURES: [&str; 7] = ["png", "pgm", "ppm", "pbm", "pnm", "jpg", "jpeg"];
/// Folders for the frames of each label.
const SORTED: [(&str, Label); 2] = [("good", Label::Good), ("failed", Label::Failed)];

/// A frame in a folder.
#[derive(Debug, Clone)]
pub enum Found {
    /// A picture in `good` or `failed`.
    Sorted {
        /// Folder and name, such as `good/12.png`.
        name: String,
        /// What its folder says.
        label: Label,
        /// Its file.
        file: PathBuf,
    },
    /// A recording.
    Recorded(Recorded),
}

impl Found {
    /// What its verdict must be.
    pub fn label(&self) -> Label {
        match self {
            Self::Sorted { label, .. } => *label,
            Self::Recorded(recorded) => recorded.label(),
        }
    }

    /// Reads the frame.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn load(&self) -> Result<Kept, String> {
        match self {
            Self::Sorted { name, label, file } => Ok(Kept {
                name: name.clone(),
                frame: Arc::new(read_picture(file)?),
                label: *label,
                missed: Vec::new(),
            }),
            Self::Recorded(recorded) => recorded.load(),
        }
    }
}

/// The frame of a picture file.
///
/// # Errors
/// A sentence that names the file.
pub fn read_picture(file: &Path) -> Result<Frame, String> {
    let unreadable = |why: &str| format!("{} cannot be read: {why}", file.display());
    let bytes = recorded::read_bytes(file).map_err(|why| unreadable(&why.to_string()))?;
    Frame::read(&bytes).map_err(|why| unreadable(&why))
}

/// The frames of a camera: the pictures in the folders `good` and `failed`, then the camera's recordings.
///
/// # Errors
/// A folder cannot be read.
pub fn find(folder: &Path, camera: &str) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    for (name, label) in SORTED {
        let sorted = folder.join(name);
        if !sorted.is_dir() {
            continue;
        }
        found.extend(pictures(&sorted)?.into_iter().map(|file| {
            let of = file.file_name().unwrap_or_default().to_string_lossy();
            Found::Sorted {
                name: format!("{name}/{of}"),
                label,
                file,
            }
        }));
    }
    found.extend(
        recorded::list(folder, camera)?
            .into_iter()
            .map(Found::Recorded),
    );
    Ok(found)
}

/// The pictures of a folder, by name.
///
/// # Errors
/// The folder cannot be read.
pub fn pictures(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut pictures = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let end = path.extension().and_then(|end| end.to_str());
        let is_picture = |end: &str| PICTURES.iter().any(|of| end.eq_ignore_ascii_case(of));
        if end.is_some_and(is_picture) && path.is_file() {
            pictures.push(path);
        }
    }
    pictures.sort();
    Ok(pictures)
}
