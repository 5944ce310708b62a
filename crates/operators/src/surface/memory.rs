//! Device memory of a comparison of a surface.

use clinspect_core::{
    ClError,
    surface::{CELL, CHANNELS, DIMENSIONS, FEATURES, Model},
    texture::TILE,
};
use clinspect_opencl::{Arg, ClContext, Mem};

use crate::{to_i32, upload};

/// Number of levels.
pub(super) const LEVELS: usize = 3;
/// Energies of a cell.
const ENERGIES: usize = 8 * LEVELS;
/// Prototypes that are compared together. Twin: `TOGETHER` in `kernels/surface.cl`.
const TOGETHER: usize = 16;

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
    /// Sums of the tiles, of the logarithms or of the noise.
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
    pub column_sums: Mem,
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
        let level = |level| memory(area(sizes.level(level)), size_of::<u16>());
        let lines = || {
            Ok::<_, ClError>(Lines {
                boxes: memory(pixels, size_of::<u16>())?,
                lines: memory(pixels, size_of::<u32>())?,
                column_sums: memory(sizes.frame[0] * sizes.tiles[1], size_of::<u32>())?,
                units: memory(tiles, size_of::<u32>())?,
            })
        };
        Ok(Self {
            levels: [level(0)?, level(1)?, level(2)?],
            energy: memory(ENERGIES * cells, size_of::<u32>())?,
            means: memory(cells, size_of::<u32>())?,
            row_sums: memory(3 * cells, size_of::<u32>())?,
            features: memory(FEATURES * cells, size_of::<i16>())?,
            distances: memory(cells, size_of::<u32>())?,
            novelty: memory(cells, size_of::<u32>())?,
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
    /// Per feature its mean, then its weights.
    pub weights: Mem,
    /// See `kernels/surface.cl`.
    pub prototypes: Mem,
}

impl DeviceModel {
    /// Uploads a model.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, model: &Model) -> Result<Self, ClError> {
        let features = model.mean().iter().zip(model.weights());
        let weights: Vec<i32> = features
            .flat_map(|(&mean, weights)| std::iter::once(mean).chain(*weights))
            .collect();
        let blocks = model.prototypes().chunks(TOGETHER);
        let prototypes: Vec<i32> = blocks
            .flat_map(|block| (0..DIMENSIONS).flat_map(|j| block.iter().map(move |p| p[j])))
            .collect();
        Ok(Self {
            weights: upload(context, &weights, "a model")?,
            prototypes: upload(context, &prototypes, "a model")?,
        })
    }
}
