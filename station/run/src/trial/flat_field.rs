//! References of the light, taken from frames.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gst::prelude::*;
use plan::{CameraConfig, model_file};
use serde::{Deserialize, Serialize};

use super::{
    chain::Chain,
    settings,
    teach::{Scratch, quoted},
};
use crate::frame::Frame;

/// A reference of `clflatfield`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reference {
    /// An even, bright surface.
    White,
    /// No light.
    Dark,
}

/// References that were taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TakenReference {
    /// Their file.
    pub file: PathBuf,
    /// What the element says about the new one.
    pub summary: String,
}

/// Takes a reference from frames, all of which are averaged: at most 1024. The other reference in the camera's file is kept.
/// The new file is in the folder `files`; the camera's own is only read.
///
/// # Errors
/// A sentence: there are no frames or too many, the element refuses the reference, or the file cannot be written.
pub fn take(
    config: &CameraConfig,
    reference: Reference,
    frames: &[Arc<Frame>],
    files: &Path,
) -> Result<TakenReference, String> {
    const MOST: usize = 1024;
    if !(1..=MOST).contains(&frames.len()) {
        let count = frames.len();
        return Err(format!(
            "a reference is taken from 1 to {MOST} frames, and there are {count}"
        ));
    }
    let Scratch(scratch) = &Scratch::new(files)?;
    let file = scratch.join("flat-field.npz");
    let failed = |why: std::io::Error| format!("the references cannot be written: {why}");
    // Of the analyzer nothing is wanted.
    let mut config = settings::of_trial(config);
    let table = config.flat_field.get_or_insert_default();
    if let Some(before) = settings::file_of(table, "location") {
        fs::copy(before, &file).map_err(failed)?;
    }
    table.set("location", quoted(&file)?);
    table.set("average-frames", frames.len().to_string());
    let mut chain = Chain::start(&config)?;
    let signal = match reference {
        Reference::White => "take-white",
        Reference::Dark => "take-dark",
    };
    let element = chain.parts.first().map(|part| part.element.clone());
    let element = element.ok_or_else(|| "there is no flat field".to_owned())?;
    element.emit_by_name::<()>(signal, &[]);
    for (at, frame) in frames.iter().enumerate() {
        let judged = chain.judge(frame, at as u64);
        judged.map_err(|why| format!("frame {}: {why}", at + 1))?;
    }
    // It was posted before the last frame came back.
    let message = chain.message("clflatfield-reference", Duration::ZERO)?;
    let taken = files.join(model_file(&config.name, "flat-field"));
    fs::rename(&file, &taken).map_err(failed)?;
    Ok(TakenReference {
        file: taken,
        summary: message.get("summary").unwrap_or_default(),
    })
}
