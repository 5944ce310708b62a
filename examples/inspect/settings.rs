//! What the command line chooses: settings of the elements and of the simulated sources.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::common::{cloth::ClothSpec, label::LabelSpec, panel::PanelSpec};

/// The element that compares, and its settings.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// `clpitchthreshold` or `clreference`.
    pub element: &'static str,
    /// Properties that options of their own set, as in gst-launch.
    pub settings: String,
    /// Other properties, as in gst-launch.
    pub properties: String,
    /// File of the trained reference, which outlives a restart of the source.
    pub model: Option<Model>,
}

/// A file that this run makes. It is removed at the end, unless it lies in the folder of the pictures.
#[derive(Debug, Clone)]
pub struct Model(Arc<ModelFile>);

#[derive(Debug)]
struct ModelFile {
    path: PathBuf,
    stays: bool,
}

impl Model {
    /// A file in the folder, if there is one. A file of an earlier run is removed: this run trains.
    pub fn new(folder: Option<&Path>) -> Self {
        let path = match folder {
            Some(folder) => folder.join("reference.npz"),
            None => std::env::temp_dir().join(format!("inspect-{}.npz", std::process::id())),
        };
        // There may be none. One that cannot be removed is a warning of the element.
        let _ = std::fs::remove_file(&path);
        Self(Arc::new(ModelFile {
            path,
            stays: folder.is_some(),
        }))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

impl Drop for ModelFile {
    fn drop(&mut self) {
        if !self.stays {
            // There is none if the training did not end.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Settings of the elements.
#[derive(Debug, Clone)]
pub struct Inspection {
    pub device: String,
    pub kernel_size: u32,
    pub sigma: f64,
    pub bit_depth: u32,
    /// Frames are strips of a web.
    pub line_scan: bool,
    /// Width and height of a pixel, mm; 0 = unknown.
    pub mm_per_pixel: [f64; 2],
    /// `None`: both pitches are 0 and there is no reference, frames are smoothed and counted only.
    pub comparison: Option<Comparison>,
}

/// A simulated web and its strips.
#[derive(Debug, Clone, Copy)]
pub struct Strips {
    pub spec: ClothSpec,
    pub seed: u64,
    /// Rows of a strip.
    pub rows: u32,
}

/// Settings of the panel frames.
#[derive(Debug, Clone)]
pub struct Panels {
    pub spec: PanelSpec,
    pub seed: u64,
    pub sequence: Sequence,
}

/// Settings of the labels.
#[derive(Debug, Clone)]
pub struct Labels {
    pub spec: LabelSpec,
    pub seed: u64,
    pub sequence: Sequence,
}

/// Which simulated frames are good and bad.
#[derive(Debug, Clone, Copy)]
pub struct Sequence {
    /// Good frames before the others, for the training.
    pub good: u64,
    /// Defects planted in a bad frame.
    pub defects: usize,
    /// One in this many frames is bad.
    pub bad_every: u64,
    /// Frames made before the start, besides those for the training; 0 = each frame is made when it is
    /// shown.
    pub distinct: u64,
}

impl Inspection {
    /// Formats that the elements and the pictures support, the preferred first.
    pub fn formats(&self) -> &'static [&'static str] {
        match (self.bit_depth, &self.comparison) {
            (9.., _) => &["GRAY16_LE"],
            // A comparison needs grey; frames that are only counted keep their colours.
            (_, Some(_)) => &["GRAY8"],
            (_, None) => &["GRAY8", "RGB"],
        }
    }
}
