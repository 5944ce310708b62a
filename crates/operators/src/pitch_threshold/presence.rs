//! The search for the pattern: tiles in which it is missing are marked; kernels in
//! `kernels/presence.cl`.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    layout::{FrameLayout, SampleType},
    mask::packed_stride,
    ndrange::NdRange,
    pitch::{Axis, Comparison},
    presence::{PairSums, TileSum, Tiles, contrast_q4, shows_pattern},
};
use clinspect_opencl::{
    Arg, ClContext, Kernel, Mem, Memory, Meter, Program, Submission, frame::ClFrame,
};

use crate::{
    source::{plain_group, source_args},
    to_i32, to_u32,
};

/// Work-items per work-group of `tile_sums_groups`.
const GROUP: usize = 128;
/// Rows of a tile that one of its work-items sums up, at most.
const ITEM_ROWS: usize = 16;
/// Work-items per compute unit of `tile_sums_columns` and of `pair_sums`.
const ITEMS_PER_UNIT: usize = 4;
/// Work-items per work-group of `pair_sums_groups`.
const PAIR_GROUP: usize = 64;

/// The minimum contrast of a tile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Contrast {
    /// The pattern is not looked for.
    Off,
    /// It must be learned from a frame; until then no pixel is judged.
    Unknown,
    /// Grey levels of 8 bits.
    Known(f64),
}

/// What the comparison knows of a frame, for the kernels.
pub(super) struct Judged<'a> {
    pub comparisons: &'a Mem,
    pub comparison_count: usize,
    pub rois: &'a Mem,
    pub roi_count: usize,
    pub flags: i32,
    /// Ignored pixels, packed as the mask is.
    pub ignored: Option<&'a Mem>,
}

/// Kernels and memory of the search.
#[derive(Debug)]
pub(super) struct Presence {
    tiles: Tiles,
    size: [usize; 2],
    shift: i32,
    sum: Kernel,
    /// On a CPU rows of tiles are summed up by columns, in this working memory.
    columns: Option<Mem>,
    range: NdRange,
    row_step: usize,
    mark: Kernel,
    mark_group: [usize; 2],
    pairs: Kernel,
    pairs_range: NdRange,
    pairs_out: Mem,
    sums: Mem,
    table: Mem,
    counts: Mem,
    host_sums: Vec<TileSum>,
}

/// Number of work-groups of `items` work-items that sum up the tiles; see `sum_tiles`.
fn groups(tiles: &Tiles, row_step: usize, items: usize) -> usize {
    let parts = tiles.width.div_ceil(8) * row_step;
    let in_group = (items / parts).max(1);
    tiles.columns.div_ceil(in_group) * tiles.rows
}

impl Presence {
    /// Prepares the search in frames of `layout`; `by_columns` selects the kernel for a CPU, `depth`
    /// is the depth of a sample, bits.
    pub fn new(
        context: &ClContext,
        program: &Program,
        layout: &FrameLayout,
        pitches: [f64; 2],
        depth: u32,
        by_columns: bool,
    ) -> Result<Self, ClError> {
        let (width, height) = (layout.width, layout.height);
        let tiles = Tiles::new(pitches, width, height);
        let local = GROUP * size_of::<TileSum>();
        let by_columns = by_columns || context.caps().local_memory < local as u64;
        let name = if by_columns {
            "tile_sums_columns"
        } else {
            "tile_sums_groups"
        };
        let sum = program.kernel(name)?;
        let units = context.caps().compute_units;
        let items = (ITEMS_PER_UNIT * units).min(tiles.rows);
        let group = GROUP.min(context.kernel_work_group(&sum)?);
        let row_step = tiles.height.div_ceil(ITEM_ROWS).min(8);
        let (range, columns) = if by_columns {
            let bytes = if layout.sample == SampleType::U8 {
                4
            } else {
                8
            };
            let columns = context.device_memory(items * 2 * width * bytes)?;
            (NdRange::groups(items, 1), Some(columns))
        } else {
            (
                NdRange::groups(groups(&tiles, row_step, group), group),
                None,
            )
        };
        let pairs = program.kernel(if by_columns {
            "pair_sums"
        } else {
            "pair_sums_groups"
        })?;
        let pairs_range = if by_columns {
            NdRange::groups((ITEMS_PER_UNIT * units).min(tiles.count()), 1)
        } else {
            let local = context.caps().local_memory as usize / size_of::<PairSums>();
            let group = PAIR_GROUP
                .min(context.kernel_work_group(&pairs)?)
                .min(local);
            NdRange::groups(tiles.count(), group)
        };
        let mark = program.kernel("mark_missing")?;
        Ok(Self {
            tiles,
            size: [width, height],
            shift: depth.saturating_sub(8) as i32,
            mark_group: plain_group(context, &mark)?,
            sums: context.device_memory(tiles.count() * size_of::<TileSum>())?,
            table: context.device_memory(tiles.count() * size_of::<i32>())?,
            counts: context.device_memory(2 * size_of::<u32>())?,
            pairs_out: context.device_memory(tiles.count() * size_of::<PairSums>())?,
            host_sums: Vec::new(),
            sum,
            columns,
            range,
            row_step,
            mark,
            pairs,
            pairs_range,
        })
    }

    /// Number of work-groups of `items` work-items that sum up the tiles.
    pub fn groups(&self, items: usize) -> usize {
        groups(&self.tiles, self.row_step, items)
    }

    /// The last arguments of the wide kernels, from `tile_groups` on.
    pub fn tile_args(&self, contrast: f64) -> Result<[Arg<'_>; 5], ClError> {
        Ok([
            self.tiles_arg()?,
            Arg::U32(contrast_q4(contrast)),
            Arg::I32(self.shift),
            Arg::Mem(&self.sums),
            Arg::I32(to_i32(self.row_step, "rows")?),
        ])
    }

    /// The tiles for a kernel.
    pub fn tiles_arg(&self) -> Result<Arg<'static>, ClError> {
        let tiles = &self.tiles;
        let numbers = [tiles.width, tiles.height, tiles.columns, tiles.rows];
        let [a, b, c, d] = numbers.map(|n| to_i32(n, "tiles"));
        Ok(Arg::I32x4([a?, b?, c?, d?]))
    }

    /// The table of tile differences; valid after [`Self::mark`].
    pub fn table(&self) -> &Mem {
        &self.table
    }

    fn sizes(&self) -> Result<[Arg<'static>; 2], ClError> {
        let [width, height] = self.size;
        Ok([
            Arg::I32(to_i32(width, "a width")?),
            Arg::I32(to_i32(height, "a height")?),
        ])
    }

    /// The first arguments of the kernels that read a frame.
    fn frame_args<'a>(&self, frame: &'a ClFrame) -> Result<Vec<Arg<'a>>, ClError> {
        let [src, offset, stride] = source_args(frame.plane(0)?, None, 0)?;
        let [width, height] = self.sizes()?;
        Ok(vec![
            src,
            offset,
            stride,
            width,
            height,
            Arg::I32(self.shift),
        ])
    }

    /// Sums up the tiles of a frame, and counts those without the pattern in `counters`, two numbers.
    pub fn sum(
        &mut self,
        frame: &ClFrame,
        contrast: f64,
        counters: &Mem,
        slot: usize,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let mut args = self.frame_args(frame)?;
        args.extend([
            self.tiles_arg()?,
            Arg::U32(contrast_q4(contrast)),
            Arg::Mem(&self.sums),
            Arg::Mem(counters),
            Arg::U32(to_u32(slot, "a counter")?),
        ]);
        let name = match &self.columns {
            Some(columns) => {
                args.push(Arg::Mem(columns));
                "tile_sums_columns"
            }
            None => {
                let group = self.range.local.map_or(1, |local| local[0]);
                args.push(Arg::I32(to_i32(self.row_step, "rows")?));
                args.push(Arg::Local(group * size_of::<TileSum>()));
                "tile_sums_groups"
            }
        };
        submission.run(&mut self.sum, name, &args, &self.range)
    }

    /// Reads the sums of the last [`Self::sum`].
    fn read_sums(&mut self, context: &ClContext) -> Result<(), ClError> {
        self.host_sums
            .resize(self.tiles.count(), TileSum::default());
        let bytes = bytemuck::cast_slice_mut(&mut self.host_sums);
        context.read(&self.sums, 0, bytes, "sums of tiles")
    }

    /// Marks the judged pixels of the tiles without the pattern in a packed mask, after a
    /// [`Self::sum`]. Returns the number of pixels that were not marked before, and of all pixels
    /// that are marked for want of a pattern.
    pub fn mark(
        &mut self,
        context: &Arc<ClContext>,
        contrast: f64,
        judged: &Judged,
        mask: Memory,
        mask_offset: usize,
        meter: &Meter,
    ) -> Result<[u32; 2], ClError> {
        self.read_sums(context)?;
        let table = self
            .tiles
            .differences_q8(&self.host_sums, contrast_q4(contrast));
        context.write(
            &self.table,
            0,
            bytemuck::cast_slice(&table),
            "differences of tiles",
        )?;
        let stride = packed_stride(self.size[0]);
        let [width, height] = self.sizes()?;
        let args = [
            width,
            height,
            Arg::Writes(mask),
            Arg::U64(mask_offset as u64),
            Arg::U32(to_u32(stride, "a stride")?),
            Arg::Mem(judged.comparisons),
            Arg::I32(to_i32(judged.comparison_count, "comparisons")?),
            Arg::Mem(judged.rois),
            Arg::I32(to_i32(judged.roi_count, "regions")?),
            Arg::I32(judged.flags),
            self.tiles_arg()?,
            Arg::Mem(&self.table),
            // Where no pixel is ignored the table stands in for the bitmap, which the kernel does not read.
            Arg::Mem(judged.ignored.unwrap_or(&self.table)),
            Arg::I32(i32::from(judged.ignored.is_some())),
            Arg::Mem(&self.counts),
        ];
        let range = NdRange::cover([stride, self.size[1]], self.mark_group);
        let mut submission = context.submit(meter);
        submission.zero(
            &self.counts,
            2 * size_of::<u32>(),
            "the missing pixels' counters",
        )?;
        submission.run(&mut self.mark, "mark_missing", &args, &range)?;
        submission.measure(stride * self.size[1]);
        let mut counts = [0_u32; 2];
        let bytes = bytemuck::cast_slice_mut(&mut counts);
        submission.read(&self.counts, 0, bytes, "the missing pixels' count")?;
        Ok(counts)
    }

    /// The median tile's standard deviation in grey levels of 8 bits, if the frame shows a pattern
    /// that repeats after each of the comparisons' distances.
    pub fn learn(
        &mut self,
        context: &Arc<ClContext>,
        frame: &ClFrame,
        comparisons: &[Comparison],
        counters: &Mem,
        meter: &Meter,
    ) -> Result<Option<f64>, ClError> {
        for comparison in comparisons {
            if !shows_pattern(&self.pair_sums(context, frame, comparison, meter)?) {
                return Ok(None);
            }
        }
        let mut submission = context.submit(meter);
        self.sum(frame, 0.0, counters, 0, &mut submission)?;
        drop(submission);
        self.read_sums(context)?;
        Ok(Some(self.tiles.median_deviation(&self.host_sums)))
    }

    fn pair_sums(
        &mut self,
        context: &Arc<ClContext>,
        frame: &ClFrame,
        comparison: &Comparison,
        meter: &Meter,
    ) -> Result<Vec<PairSums>, ClError> {
        let mut args = self.frame_args(frame)?;
        args.extend([
            Arg::I32(i32::from(comparison.axis == Axis::Y)),
            Arg::I32(comparison.whole),
            Arg::I32(comparison.fraction),
            self.tiles_arg()?,
            Arg::Mem(&self.pairs_out),
        ]);
        let name = if self.columns.is_some() {
            "pair_sums"
        } else {
            let group = self.pairs_range.local.map_or(1, |local| local[0]);
            args.push(Arg::Local(group * size_of::<PairSums>()));
            "pair_sums_groups"
        };
        let mut submission = context.submit(meter);
        submission.run(&mut self.pairs, name, &args, &self.pairs_range)?;
        let mut sums = vec![PairSums::default(); self.tiles.count()];
        let bytes = bytemuck::cast_slice_mut(&mut sums);
        submission.read(&self.pairs_out, 0, bytes, "sums of pairs")?;
        Ok(sums)
    }
}
