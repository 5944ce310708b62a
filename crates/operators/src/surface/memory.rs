//! Device memory of a comparison of a surface.

use clinspect_core::{
    ClError,
    kernels::surface::{FEATURE_BLOCK, FEATURE_PAD, PAD, PAD_BLOCK, TOGETHER},
    surface::{CELL, CHANNELS, DIMENSIONS, FEATURES, Model, Projected},
    texture::TILE,
};
use clinspect_opencl::{Arg, ClContext, Mem};

use super::steps::by_rows;
use crate::{to_i32, upload};

/// Number of levels.
pub(super) const LEVELS: usize = 3;
/// Energies of a cell.
pub(super) const ENERGIES: usize = 8 * LEVELS;
/// Weights of a feature on the device: those of the dimensions, and zeros.
const WEIGHTS: usize = 16;

/// Sizes of what the kernels make of a frame; along x and y.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub frame: [usize; 2],
    /// Whole cells.
    pub cells: [usize; 2],
    pub tiles: [usize; 2],
}

impl Sizes {
    pub fn new(width: usize, height: usize) -> Self {
        let frame = [width, height];
        Self {
            frame,
            cells: frame.map(|length| length / CELL),
            tiles: frame.map(|length| (length / TILE).max(1)),
        }
    }

    /// The tile of a pixel.
    pub fn tile_of(&self, x: usize, y: usize) -> usize {
        let [column, row] =
            [(x, 0), (y, 1)].map(|(at, axis)| (at / TILE).min(self.tiles[axis] - 1));
        row * self.tiles[0] + column
    }

    /// Samples of a level.
    pub fn level(&self, level: usize) -> [usize; 2] {
        self.frame.map(|length| length >> level)
    }
}

/// The two arguments of a size.
pub(super) fn size_args(size: [usize; 2]) -> Result<[Arg<'static>; 2], ClError> {
    let [x, y] = size.map(|length| to_i32(length, "a length").map(Arg::I32));
    Ok([x?, y?])
}

/// Elements of a padded plane. Twin: `pitch_of` in `kernels/surface.cl`.
fn padded([x, y]: [usize; 2]) -> usize {
    (x.next_multiple_of(PAD_BLOCK) + 2 * PAD) * y
}

/// Elements of a plane of features. Twin: `feature_plane` in `kernels/surface.cl`.
pub(super) fn feature_plane([x, y]: [usize; 2]) -> usize {
    (x * y).next_multiple_of(FEATURE_BLOCK) + FEATURE_PAD
}

/// Pictures and tables of a frame.
#[derive(Debug)]
pub(super) struct Pictures {
    pub levels: [Mem; LEVELS],
    pub energy: Mem,
    pub means: Mem,
    pub row_sums: Mem,
    pub features: Mem,
    pub distances: Mem,
    pub novelty: Mem,
    /// Sums of the columns of tiles, and of tiles, of the logarithms or of the noise.
    pub column_sums: Mem,
    pub sums: Mem,
    pub contrast: Mem,
    pub strongest: Mem,
    pub peaks: Mem,
    pub lines: Option<Lines>,
}

/// Those of lines.
#[derive(Debug)]
pub(super) struct Lines {
    pub boxes: Mem,
    pub lines: Mem,
    pub units: Mem,
}

impl Pictures {
    /// Memory for frames of these sizes, of which none is 0.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, sizes: &Sizes, has_lines: bool) -> Result<Self, ClError> {
        let area = |[x, y]: [usize; 2]| x * y;
        let memory = |elements: usize, bytes: usize| context.device_memory(elements * bytes);
        let (pixels, cells, tiles) = (area(sizes.frame), area(sizes.cells), area(sizes.tiles));
        let level = |level| memory(padded(sizes.level(level)), size_of::<u16>());
        let padded_cells = padded(sizes.cells);
        let lines = || {
            Ok::<_, ClError>(Lines {
                boxes: memory(padded(sizes.frame), size_of::<u16>())?,
                lines: memory(padded(sizes.frame), size_of::<u32>())?,
                units: memory(tiles, size_of::<u32>())?,
            })
        };
        Ok(Self {
            levels: [level(0)?, level(1)?, level(2)?],
            energy: memory(ENERGIES * padded_cells, size_of::<u32>())?,
            means: memory(padded_cells, size_of::<u32>())?,
            row_sums: memory(3 * padded_cells, size_of::<u32>())?,
            features: memory(FEATURES * feature_plane(sizes.cells), size_of::<i16>())?,
            distances: memory(padded_cells, size_of::<u32>())?,
            novelty: memory(cells, size_of::<u32>())?,
            column_sums: memory(sizes.frame[0] * sizes.tiles[1], size_of::<u32>())?,
            sums: memory(tiles, size_of::<u32>())?,
            contrast: memory(tiles, size_of::<u32>())?,
            strongest: memory(pixels, size_of::<i32>())?,
            peaks: memory(tiles * CHANNELS, size_of::<u32>())?,
            lines: has_lines.then(lines).transpose()?,
        })
    }
}

/// A model on the device.
#[derive(Debug)]
pub(super) struct DeviceModel {
    pub means: Mem,
    /// See `kernels/surface.cl`, also for what follows.
    pub weights: Mem,
    pub prototypes: Mem,
    pub half_norms: Mem,
}

impl DeviceModel {
    /// Uploads a model.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, model: &Model) -> Result<Self, ClError> {
        let zeros = [0; WEIGHTS - DIMENSIONS];
        let weights: Vec<i32> = (model.weights().iter())
            .flat_map(|weights| weights.iter().chain(&zeros).copied())
            .collect();
        let prototypes: Vec<f32> = if by_rows(context) {
            let blocks = model.prototypes().chunks(TOGETHER);
            let values = |block: &[Projected], j: usize| {
                block.iter().map(move |p| p[j] as f32).collect::<Vec<_>>()
            };
            blocks
                .flat_map(|block| (0..DIMENSIONS).flat_map(move |j| values(block, j)))
                .collect()
        } else {
            let values = model.prototypes().as_flattened().iter();
            values.map(|&value| value as f32).collect()
        };
        // The sum of twelve squares has 24 bits, so its half is a float.
        let half_norm = |prototype: &Projected| {
            let norm: i32 = prototype.iter().map(|value| value * value).sum();
            norm as f32 / 2.0
        };
        let half_norms: Vec<f32> = model.prototypes().iter().map(half_norm).collect();
        Ok(Self {
            means: upload(context, model.mean(), "a model")?,
            weights: upload(context, &weights, "a model")?,
            prototypes: upload(context, &prototypes, "a model")?,
            half_norms: upload(context, &half_norms, "a model")?,
        })
    }
}
