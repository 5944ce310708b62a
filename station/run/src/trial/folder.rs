//! Frames in folders: sorted by people into `good` and `failed`, or recorded.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    frame::Frame,
    picture_files::PictureFiles,
    recorded::{self, Label, LabelledFrame, Recording},
};

/// Folders for the frames of each label.
const SORTED: [(&str, Label); 2] = [("good", Label::Good), ("failed", Label::Failed)];

/// A frame in a folder.
#[derive(Debug, Clone)]
pub enum FolderFrame {
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
    Recording(Recording),
}

impl FolderFrame {
    /// What its verdict must be.
    pub fn label(&self) -> Label {
        match self {
            Self::Sorted { label, .. } => *label,
            Self::Recording(recorded) => recorded.label(),
        }
    }

    /// Reads the frame.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn load(&self) -> Result<LabelledFrame, String> {
        match self {
            Self::Sorted { name, label, file } => Ok(LabelledFrame {
                name: name.clone(),
                frame: Arc::new(read_picture(file)?),
                label: *label,
                missed: Vec::new(),
            }),
            Self::Recording(recorded) => recorded.load(),
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
pub fn find(folder: &Path, camera: &str) -> io::Result<Vec<FolderFrame>> {
    let mut found = Vec::new();
    for (name, label) in SORTED {
        let sorted = folder.join(name);
        if !sorted.is_dir() {
            continue;
        }
        let files = PictureFiles::list(&sorted)?.pictures.into_iter();
        found.extend(files.map(|file| FolderFrame::Sorted {
            name: name_in(name, &file),
            label,
            file,
        }));
    }
    found.extend(
        recorded::list(folder, camera)?
            .into_iter()
            .map(FolderFrame::Recording),
    );
    Ok(found)
}

/// The names of what [`find`] leaves out of the folders `good` and `failed`, because it is no picture.
///
/// # Errors
/// A folder cannot be read.
pub fn left_out(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for (name, _) in SORTED {
        let sorted = folder.join(name);
        if sorted.is_dir() {
            let others = PictureFiles::list(&sorted)?.others;
            names.extend(others.iter().map(|file| name_in(name, file)));
        }
    }
    Ok(names)
}

fn name_in(folder: &str, file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    format!("{folder}/{name}")
}
