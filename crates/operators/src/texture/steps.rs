//! The kernels of a texture comparison, and what they make of a frame.

use std::ops::Range;

use clinspect_core::{
    ClError,
    kernels::texture_items::{BLOCK_PIXELS, BLOCK_ROWS, LATTICE_GROUP, LATTICE_ROWS, WIDE_PIXELS},
    texture::{Part, Repeats, Tiles, parts},
    variant::{
        TEXTURE_GROUP, TEXTURE_LINE, TextureVariant, texture_line_bytes, texture_line_reach,
    },
    window::Window,
};
use clinspect_opencl::{Arg, ClContext, Kernel, Mem, Memory, NdRange, Program, Submission};

use super::{
    along::{Along, SMOOTH_ONLY},
    memory::{Pictures, TilePeaks, repeat_arg, tiles_arg},
    settings::NoiseFrom,
};
use crate::{
    inspection::PackedMask,
    regions::{Ignore, Rois},
    to_i32,
};

/// Bands of rows per compute unit of a CPU.
const BANDS_PER_UNIT: usize = 4;
/// Pixels and rows per work-group of `texture_mark`.
const BLOCK: [usize; 2] = [BLOCK_PIXELS, BLOCK_ROWS];
/// Most work-items per work-group of `texture_noise`.
const NOISE_GROUP: usize = 64;

/// The kernels of a variant.
#[derive(Debug)]
pub(super) struct Steps {
    pub variant: TextureVariant,
    /// The steps along vectors of any angle, once they were needed.
    pub along: Option<Along>,
    smooth: Kernel,
    lattice: Kernel,
    tiles: Kernel,
    noise: Kernel,
    mark: Kernel,
    peaks: Kernel,
    /// Work-items per work-group of `texture_noise`.
    noise_group: usize,
    /// Most work-items of [`TextureVariant::Rows`].
    items: usize,
}

/// What the steps work on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plane<'a> {
    pub pictures: &'a Pictures,
    pub width: usize,
    pub window: Window,
}

impl Plane<'_> {
    /// Width and height.
    pub fn size_args(&self) -> Result<[Arg<'static>; 2], ClError> {
        Ok([
            Arg::I32(to_i32(self.width, "a width")?),
            Arg::I32(to_i32(self.window.height, "a height")?),
        ])
    }

    /// The tiles of the noise.
    pub fn tiles(&self) -> Tiles {
        Tiles::new(self.width, &self.window)
    }

    /// Width and height, the rows that are judged, and the pictures.
    fn judged_args(&self) -> Result<[Arg<'_>; 6], ClError> {
        let [width, height] = self.size_args()?;
        Ok([
            width,
            height,
            Arg::I32(to_i32(self.window.first, "a row")?),
            Arg::I32(to_i32(self.window.rows, "rows")?),
            Arg::Mem(&self.pictures.memory),
            self.pictures.pitch_arg()?,
        ])
    }
}

impl Steps {
    /// Takes the kernels of a program.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(
        context: &ClContext,
        program: &Program,
        variant: TextureVariant,
    ) -> Result<Self, ClError> {
        let noise = program.kernel("texture_noise")?;
        Ok(Self {
            variant,
            along: None,
            smooth: program.kernel("texture_smooth")?,
            lattice: program.kernel("texture_lattice")?,
            tiles: program.kernel("texture_tiles")?,
            noise_group: NOISE_GROUP
                .min(context.kernel_work_group(&noise)?)
                .min(context.caps().max_work_item[0]),
            noise,
            mark: program.kernel("texture_mark")?,
            peaks: program.kernel("texture_peaks")?,
            items: context.caps().compute_units * BANDS_PER_UNIT,
        })
    }

    /// Work-items that need working memory.
    pub fn scratch_items(&self) -> Option<usize> {
        (self.variant == TextureVariant::Rows).then_some(self.items)
    }

    /// The steps along vectors of any angle, which are compiled now if they were not needed before.
    ///
    /// # Errors
    /// The failing call.
    pub fn along(&mut self, context: &ClContext) -> Result<&mut Along, ClError> {
        match &mut self.along {
            Some(along) => Ok(along),
            none => {
                let for_gpu = self.variant == TextureVariant::Items;
                Ok(none.insert(Along::new(context, for_gpu)?))
            }
        }
    }

    /// A launch over rows, of which a work-group takes `block` pixels and rows.
    fn range(&self, width: usize, rows: usize, block: [usize; 2]) -> NdRange {
        match self.variant {
            TextureVariant::Rows => NdRange::groups(self.items.min(rows).max(1), 1),
            TextureVariant::Items => {
                let groups = [width.div_ceil(block[0]), rows.div_ceil(block[1])];
                NdRange::tiles(groups, TEXTURE_GROUP)
            }
        }
    }

    /// Enqueues the pictures and the sums of their tiles. `source`: the arguments of the frame's plane.
    ///
    /// # Errors
    /// The failing call.
    pub fn make_pictures(
        &mut self,
        source: [Arg; 3],
        depth: u32,
        repeats: &Repeats,
        plane: &Plane,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let [width, height] = plane.size_args()?;
        let pitch = plane.pictures.pitch_arg()?;
        let pictures = Arg::Mem(&plane.pictures.memory);
        let (rows, of_tiles) = (plane.window.height, plane.tiles());
        let tiles = tiles_arg(&of_tiles)?;

        let [src, offset, stride] = source;
        let depth = Arg::I32(depth as i32);
        let mut smooth_args = vec![src, offset, stride, width, height, depth];
        let [along_x, along_y] = repeats.axes().copied().unwrap_or([SMOOTH_ONLY; 2]);
        smooth_args.extend([repeat_arg(&along_x), pictures, pitch]);
        let lattice_args = vec![width, height, repeat_arg(&along_y), pictures, pitch];
        let mut tile_args = vec![width, height, pictures, pitch, tiles];
        tile_args.push(Arg::Mem(&plane.pictures.sums));
        let (size, picture_args) = ([plane.width, rows], [width, height, pictures, pitch]);
        match self.variant {
            TextureVariant::Rows => {
                let at_once = plane.pictures.rows_at_once();
                let parts = match repeats {
                    Repeats::Axes(_) => parts(rows, &of_tiles, &along_y, at_once),
                    Repeats::Vectors(_) => vec![Part {
                        smooth: 0..rows,
                        lattice: 0..0,
                        tiles: 0..of_tiles.rows,
                    }],
                };
                let scratch = plane.pictures.scratch.as_ref().map(Arg::Mem);
                let items = self.items;
                let run = |kernel: &mut Kernel,
                           name: &'static str,
                           args: &[Arg],
                           range: Range<usize>,
                           submission: &mut Submission| {
                    if range.is_empty() {
                        return Ok(());
                    }
                    let mut args = args.to_vec();
                    args.extend(scratch);
                    args.push(Arg::I32(to_i32(range.start, "a row")?));
                    args.push(Arg::I32(to_i32(range.end, "a row")?));
                    let items = NdRange::groups(items.min(range.len()), 1);
                    submission.run(kernel, name, &args, &items)
                };
                let [smooth, lattice, tiles] =
                    ["texture_smooth", "texture_lattice", "texture_tiles"];
                for part in parts {
                    let Part {
                        smooth: smoothed,
                        lattice: made,
                        tiles: summed,
                    } = part;
                    run(&mut self.smooth, smooth, &smooth_args, smoothed, submission)?;
                    run(&mut self.lattice, lattice, &lattice_args, made, submission)?;
                    if let (Repeats::Vectors(_), Some(along)) = (repeats, &mut self.along) {
                        along.run(size, picture_args, submission)?;
                    }
                    run(&mut self.tiles, tiles, &tile_args, summed, submission)?;
                }
            }
            TextureVariant::Items => {
                let reach = texture_line_reach(Some(&along_x));
                smooth_args.push(Arg::I32(to_i32(reach, "a reach")?));
                smooth_args.push(Arg::Local(texture_line_bytes(reach)));
                let range = self.range(plane.width, rows, [TEXTURE_LINE, 1]);
                let kernel = &mut self.smooth;
                submission.run(kernel, "texture_smooth", &smooth_args, &range)?;
                if let (Repeats::Vectors(_), Some(along)) = (repeats, &mut self.along) {
                    along.run(size, picture_args, submission)?;
                } else {
                    let columns = plane.width.div_ceil(4 * LATTICE_GROUP);
                    let range =
                        NdRange::tiles([columns, rows.div_ceil(LATTICE_ROWS)], LATTICE_GROUP);
                    let kernel = &mut self.lattice;
                    submission.run(kernel, "texture_lattice", &lattice_args, &range)?;
                }
                let bytes = of_tiles.count() * 2 * size_of::<u32>();
                submission.zero(&plane.pictures.sums, bytes, "sums of tiles")?;
                let range = self.range(plane.width, of_tiles.rows, [WIDE_PIXELS, 1]);
                let kernel = &mut self.tiles;
                submission.run(kernel, "texture_tiles", &tile_args, &range)?;
            }
        }
        Ok(())
    }

    /// Enqueues the noise of the tiles.
    ///
    /// # Errors
    /// The failing call.
    pub fn make_noise(
        &mut self,
        from: NoiseFrom,
        thresholds: &Mem,
        plane: &Plane,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let [width, height] = plane.size_args()?;
        let tiles = plane.tiles();
        let around = from.neighbourhood();
        let around = [around.above, around.below, around.beside, 0].map(|n| n as i32);
        let args = [
            width,
            height,
            tiles_arg(&tiles)?,
            Arg::I32x4(around),
            Arg::Mem(&plane.pictures.sums),
            Arg::Mem(thresholds),
            Arg::Mem(&plane.pictures.noise),
        ];
        let group = self.noise_group;
        let range = NdRange::groups(tiles.count().div_ceil(group), group);
        submission.run(&mut self.noise, "texture_noise", &args, &range)
    }

    /// Enqueues the marks of the pixels in `rois`.
    ///
    /// # Errors
    /// The failing call.
    pub fn mark(
        &mut self,
        rois: &Rois,
        (mask, mask_offset): PackedMask,
        counters: [Arg; 2],
        plane: &Plane,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let mut args = plane.judged_args()?.to_vec();
        args.extend([
            tiles_arg(&plane.tiles())?,
            Arg::Mem(&plane.pictures.noise),
            Arg::Mem(&rois.memory),
            Arg::I32(to_i32(rois.words.len(), "regions")?),
            Arg::Writes(Memory::Buffer(mask)),
            Arg::U64(mask_offset as u64),
        ]);
        args.extend(counters);
        args.extend(plane.pictures.scratch.iter().map(Arg::Mem));
        let range = self.range(plane.width, plane.window.rows, BLOCK);
        submission.run(&mut self.mark, "texture_mark", &args, &range)
    }

    /// Enqueues the largest sums of each tile: of the pixels in `rois`, and of those in `inner`.
    ///
    /// # Errors
    /// The failing call.
    pub fn find_peaks(
        &mut self,
        [rois, inner]: [&Rois; 2],
        ignore: Option<&Ignore>,
        plane: &Plane,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let tiles = plane.tiles();
        let peaks = &plane.pictures.peaks;
        let mut args = plane.judged_args()?.to_vec();
        args.push(tiles_arg(&tiles)?);
        for rois in [rois, inner] {
            args.push(Arg::Mem(&rois.memory));
            args.push(Arg::I32(to_i32(rois.words.len(), "regions")?));
        }
        args.extend([
            // Where no pixel is ignored the peaks stand in for the bitmap, which the kernel does not read.
            Arg::Mem(ignore.map_or(peaks, Ignore::memory)),
            Arg::I32(i32::from(ignore.is_some())),
            Arg::Mem(peaks),
        ]);
        args.extend(plane.pictures.scratch.iter().map(Arg::Mem));
        let rows = match self.variant {
            // A work-item takes rows of tiles.
            TextureVariant::Rows => tiles.rows,
            TextureVariant::Items => plane.window.rows,
        };
        let range = self.range(plane.width, rows, BLOCK);
        let bytes = tiles.count() * size_of::<TilePeaks>();
        submission.zero(peaks, bytes, "the tiles' peaks")?;
        submission.run(&mut self.peaks, "texture_peaks", &args, &range)
    }
}
