//! Device memory of a texture comparison, and the arguments that describe it to the kernels.

use clinspect_core::{
    ClError,
    kernels::{texture::PAD, texture_rows::SCRATCH_ROWS},
    texture::{CHANNELS, Repeat, Tiles},
    window::Window,
};
use clinspect_opencl::{Arg, ClContext, Mem};

use crate::to_i32;

/// Pictures of 16-bit samples.
const PICTURES: usize = 4;
/// Bytes of the pictures that are worked on at a time by a CPU: a part of its last cache.
const CACHE_BYTES: usize = 16 << 20;
/// Fewer rows at a time would cost more for the first sums of each band than the cache saves.
const LEAST_AT_ONCE: usize = 256;
/// A picture's rows begin at multiples of this many samples.
const ALIGNMENT: usize = 32;

/// The noise of a tile, 1/16 of a unit, and the limits of the channels. Twin: `tile_noise_t` in `kernels/texture.cl`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct TileNoise {
    pub residual: u32,
    pub mean: u32,
    pub limits: [u32; CHANNELS],
}

const _: () = assert!(size_of::<TileNoise>() == 32);

/// One more than the largest sums of a tile's channels, all and without the border. Twin: `peaks` in
/// `kernels/texture.cl`.
pub(super) type TilePeaks = [[u32; CHANNELS]; 2];

/// Device memory for the rows of a plane.
#[derive(Debug)]
pub(super) struct Pictures {
    /// The four pictures.
    pub memory: Mem,
    /// Sums of the tiles.
    pub sums: Mem,
    /// The tiles' noise.
    pub noise: Mem,
    /// The tiles' largest sums.
    pub peaks: Mem,
    /// Working memory of `TextureVariant::Rows`.
    pub scratch: Option<Mem>,
    rows: usize,
    tile_count: usize,
    pitch: usize,
}

impl Pictures {
    /// Memory for planes of this window. `items`: most work-items of `TextureVariant::Rows`.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(
        context: &ClContext,
        width: usize,
        window: &Window,
        items: Option<usize>,
    ) -> Result<Self, ClError> {
        let pitch = (width + 2 * PAD).next_multiple_of(ALIGNMENT);
        let tile_count = Tiles::new(width, window).count();
        let rows = window.height;
        Ok(Self {
            memory: context.device_memory(PICTURES * pitch * rows * size_of::<u16>())?,
            sums: context.device_memory(tile_count * 2 * size_of::<u32>())?,
            noise: context.device_memory(tile_count * size_of::<TileNoise>())?,
            peaks: context.device_memory(tile_count * size_of::<TilePeaks>())?,
            scratch: items
                .map(|items| context.device_memory(items * SCRATCH_ROWS * pitch * size_of::<u32>()))
                .transpose()?,
            rows,
            tile_count,
            pitch,
        })
    }

    /// Whether the memory suffices for planes of this window.
    pub fn holds(&self, width: usize, window: &Window) -> bool {
        window.height <= self.rows && Tiles::new(width, window).count() <= self.tile_count
    }

    /// Rows of the pictures that a cache holds, at least [`LEAST_AT_ONCE`].
    pub fn rows_at_once(&self) -> usize {
        let row = PICTURES * self.pitch * size_of::<u16>();
        (CACHE_BYTES / row).max(LEAST_AT_ONCE)
    }

    /// Where the strongest channels of a window's pixels begin, in ints. Twin: `STRONGEST` in `kernels/texture.cl`.
    pub fn strongest_start(&self, window: &Window) -> u64 {
        self.pitch as u64 * window.height as u64
    }

    /// Samples from row to row of a picture.
    pub fn pitch_arg(&self) -> Result<Arg<'static>, ClError> {
        Ok(Arg::I32(to_i32(self.pitch, "a row")?))
    }
}

/// The arguments for an axis.
pub(super) fn repeat_arg(repeat: &Repeat) -> Arg<'static> {
    Arg::I32x4([repeat.pitch, repeat.full, repeat.edge, repeat.scale])
}

/// The argument `tiles`. A web may have more rows than an `int` holds: its rows and tiles count from the
/// last multiple of a tile that still fits.
pub(super) fn tiles_arg(tiles: &Tiles) -> Result<Arg<'static>, ClError> {
    let origin = tiles.first;
    let number = |value: u64| to_i32(value as usize, "tiles");
    let before = tiles.before - origin * clinspect_core::texture::TILE as u64;
    let end = match tiles.end {
        Some(end) => number(end - origin)?,
        None => i32::MAX,
    };
    Ok(Arg::I32x4([
        to_i32(tiles.columns, "tiles")?,
        to_i32(tiles.rows, "tiles")?,
        number(before)?,
        end,
    ]))
}
