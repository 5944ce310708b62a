//! Simulated scenes as PNG files, with their ground truth.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use image::{GrayImage, ImageBuffer, Luma};

use crate::{
    cloth::{ClothSpec, ClothWeb},
    label::{LabelGenerator, LabelSpec},
    panel::{PanelGenerator, PanelSpec},
    planted::Planted,
};

/// Which frames have defects.
#[derive(Clone, Copy, Debug)]
pub struct Sequence {
    /// Number of frames.
    pub frames: usize,
    /// Good frames before the others, from which a reference can be learned.
    pub good: usize,
    /// The last of each this many frames after them is bad.
    pub bad_every: usize,
    /// Defects planted in a bad frame.
    pub defects: usize,
    /// Seed of the generator.
    pub seed: u64,
}

impl Default for Sequence {
    fn default() -> Self {
        Self {
            frames: 60,
            good: 0,
            bad_every: 3,
            defects: 8,
            seed: 1,
        }
    }
}

impl Sequence {
    /// Defects of each frame.
    fn defects(self) -> impl Iterator<Item = usize> {
        (0..self.frames).map(move |frame| match frame.checked_sub(self.good) {
            Some(after) if (after + 1).is_multiple_of(self.bad_every) => self.defects,
            _ => 0,
        })
    }
}

/// The name of a frame's file.
pub fn file_name(frame: usize) -> String {
    format!("{frame:06}.png")
}

/// Frames of display panels; returns the defects of each frame.
///
/// # Errors
/// A panel that cannot be drawn, or a file that cannot be written.
pub fn panels(
    folder: &Path,
    spec: PanelSpec,
    sequence: Sequence,
) -> Result<Vec<Vec<Planted<&'static str>>>> {
    let mut generator = PanelGenerator::new(spec, sequence.seed).map_err(anyhow::Error::msg)?;
    let frames = sequence.defects().enumerate().map(|(number, defects)| {
        let frame = generator.next_random(defects);
        let size = [frame.width, frame.height];
        write(folder, number, size, frame.samples)?;
        let named = frame.planted.into_iter().map(|defect| {
            let name = defect.kind.name();
            defect.of_kind(name)
        });
        Ok(named.collect())
    });
    frames.collect()
}

/// Frames of printed labels; returns the misprints of each frame.
///
/// # Errors
/// A label that cannot be drawn, or a file that cannot be written.
pub fn labels(
    folder: &Path,
    spec: LabelSpec,
    sequence: Sequence,
) -> Result<Vec<Vec<Planted<&'static str>>>> {
    let mut generator = LabelGenerator::new(spec, sequence.seed).map_err(anyhow::Error::msg)?;
    let frames = sequence.defects().enumerate().map(|(number, defects)| {
        let frame = generator.next_random(defects);
        write(folder, number, [frame.width, frame.height], frame.samples)?;
        let named = frame.planted.into_iter().map(|misprint| {
            let name = misprint.kind.name();
            misprint.of_kind(name)
        });
        Ok(named.collect())
    });
    frames.collect()
}

/// Strips of `rows` rows of a woven web under a line camera. [`ClothSpec::planted`] lists its defects.
///
/// # Errors
/// A web that cannot be drawn, or a file that cannot be written.
pub fn web(folder: &Path, spec: ClothSpec, seed: u64, strips: usize, rows: usize) -> Result<()> {
    let mut web = ClothWeb::new(spec, seed).map_err(anyhow::Error::msg)?;
    for strip in 0..strips {
        let mut samples = Vec::with_capacity(rows * spec.width);
        for row in strip * rows..(strip + 1) * rows {
            web.row(row as u64, &mut samples);
        }
        write(folder, strip, [spec.width, rows], samples)?;
    }
    Ok(())
}

/// Writes rows of samples of one byte, or of two bytes in little endian.
fn write(
    folder: &Path,
    number: usize,
    [width, height]: [usize; 2],
    samples: Vec<u8>,
) -> Result<()> {
    fs::create_dir_all(folder)?;
    let file = folder.join(file_name(number));
    let (columns, rows) = (u32::try_from(width)?, u32::try_from(height)?);
    let size = "samples of another size";
    let saved = if samples.len() == width * height {
        let picture = GrayImage::from_raw(columns, rows, samples);
        picture.context(size)?.save(&file)
    } else {
        let (levels, _) = samples.as_chunks();
        let levels = levels.iter().map(|&bytes| u16::from_le_bytes(bytes));
        let picture =
            ImageBuffer::<Luma<u16>, _>::from_raw(columns, rows, levels.collect::<Vec<_>>());
        picture.context(size)?.save(&file)
    };
    saved.with_context(|| file.display().to_string())
}
