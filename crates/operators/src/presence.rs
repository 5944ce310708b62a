//! The search for the pattern: tiles in which it is missing are marked; kernels in
//! `kernels/presence.cl`.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    lattice::Distance,
    layout::{FrameLayout, SampleType},
    mask::packed_stride,
    presence::{PairSums, TileRows, TileSum, Tiles, shows_pattern},
    window::Window,
};
use clinspect_opencl::{
    Arg, ClContext, Kernel, Mem, Memory, Meter, NdRange, ProgramSource, Submission, frame::ClFrame,
};

use crate::{
    inspection::PackedMask,
    sample_options,
    source::{plain_group, source_args},
    submitted::Finished,
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

/// A minimum contrast in 1/16 grey level (`c`); `min_contrast` is in grey levels of 8 bits.
pub fn contrast_q4(min_contrast: f64) -> u32 {
    (16.0 * min_contrast).round().clamp(0.0, f64::from(1 << 20)) as u32
}

/// What the comparison knows of a frame, for the kernels.
pub(crate) struct ComparedFrame<'a> {
    pub window: Window,
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
pub(crate) struct Presence {
    pitches: [f64; 2],
    width: usize,
    shift: i32,
    /// The tiles of the rows in work.
    rows: TileRows,
    sum: Kernel,
    /// Work-items per work-group of `sum` and of `pairs`.
    groups: [usize; 2],
    /// On a CPU rows of tiles are summed up by columns: most work-items, and their working memory.
    columns: Option<(usize, Mem)>,
    mark: Kernel,
    mark_group: [usize; 2],
    pairs: Kernel,
    /// Most work-items of `pairs` on a CPU.
    pair_items: usize,
    memory: TileMemory,
    counts: Mem,
    host_sums: Vec<TileSum>,
}

/// Device memory with a value per tile.
#[derive(Debug)]
struct TileMemory {
    count: usize,
    pairs: Mem,
    sums: Mem,
    table: Mem,
}

impl TileMemory {
    fn new(context: &ClContext, count: usize) -> Result<Self, ClError> {
        Ok(Self {
            count,
            pairs: context.device_memory(count * size_of::<PairSums>())?,
            sums: context.device_memory(count * size_of::<TileSum>())?,
            table: context.device_memory(count * size_of::<i32>())?,
        })
    }
}

/// Number of work-groups of `items` work-items that sum up the tiles; see `sum_tiles`.
fn groups(tiles: &Tiles, row_step: usize, items: usize) -> usize {
    let parts = tiles.width.div_ceil(8) * row_step;
    let in_group = (items / parts).max(1);
    tiles.columns.div_ceil(in_group) * tiles.rows
}

impl Presence {
    /// Prepares the search in frames of `layout` for pitches, or for the width and height of the box around a cell, px.
    /// `source` is the program for the comparisons in use, `by_columns` selects the kernel for a CPU, `depth` is the depth
    /// of a sample, bits.
    pub fn new(
        context: &ClContext,
        source: ProgramSource,
        layout: &FrameLayout,
        pitches: [f64; 2],
        depth: u32,
        by_columns: bool,
    ) -> Result<Self, ClError> {
        let width = layout.width;
        let rows = TileRows::new(pitches, width, &Window::frame(layout.height));
        let local = GROUP * size_of::<TileSum>();
        let by_columns = by_columns || context.caps().local_memory < local as u64;
        let program = context.program(source, &sample_options(layout.sample, false))?;
        let name = if by_columns {
            "tile_sums_columns"
        } else {
            "tile_sums_groups"
        };
        let sum = program.kernel(name)?;
        let items = ITEMS_PER_UNIT * context.caps().compute_units;
        let group = GROUP.min(context.kernel_work_group(&sum)?);
        let columns = if by_columns {
            let bytes = if layout.sample == SampleType::U8 {
                4
            } else {
                8
            };
            Some((items, context.device_memory(items * 2 * width * bytes)?))
        } else {
            None
        };
        let pairs = program.kernel(if by_columns {
            "pair_sums"
        } else {
            "pair_sums_groups"
        })?;
        let local = context.caps().local_memory as usize / size_of::<PairSums>();
        let pair_group = PAIR_GROUP
            .min(context.kernel_work_group(&pairs)?)
            .min(local);
        let mark = program.kernel("mark_missing")?;
        Ok(Self {
            pitches,
            width,
            shift: depth.saturating_sub(8) as i32,
            mark_group: plain_group(context, &mark)?,
            memory: TileMemory::new(context, rows.tiles.count())?,
            rows,
            counts: context.device_memory(2 * size_of::<u32>())?,
            host_sums: Vec::new(),
            sum,
            groups: [group, pair_group],
            columns,
            mark,
            pairs,
            pair_items: items,
        })
    }

    /// Changes the pitches; [`Self::take`] then makes the tiles for them.
    pub fn set_pitches(&mut self, pitches: [f64; 2]) {
        self.pitches = pitches;
    }

    /// Takes the tiles of a window.
    pub fn take(&mut self, context: &ClContext, window: &Window) -> Result<(), ClError> {
        self.rows = TileRows::new(self.pitches, self.width, window);
        let count = self.rows.tiles.count();
        if count > self.memory.count {
            self.memory = TileMemory::new(context, count.next_power_of_two())?;
        }
        Ok(())
    }

    /// Sets of rows of a tile that work-items sum up apart.
    fn row_step(&self) -> usize {
        self.rows.tiles.height.div_ceil(ITEM_ROWS).min(8)
    }

    /// Number of work-groups of `items` work-items that sum up the tiles.
    pub fn groups(&self, items: usize) -> usize {
        groups(&self.rows.tiles, self.row_step(), items)
    }

    /// The last arguments of the wide kernels, from `tile_groups` on.
    pub fn tile_args(&self, contrast: f64) -> Result<[Arg<'_>; 7], ClError> {
        Ok([
            self.tiles_arg()?,
            Arg::U32(contrast_q4(contrast)),
            Arg::I32(self.shift),
            Arg::Mem(&self.memory.sums),
            Arg::I32(to_i32(self.row_step(), "rows")?),
            Arg::I32(to_i32(self.rows.top, "rows")?),
            Arg::I32(to_i32(self.rows.height, "rows")?),
        ])
    }

    /// The tiles for a kernel.
    pub fn tiles_arg(&self) -> Result<Arg<'static>, ClError> {
        let tiles = &self.rows.tiles;
        let numbers = [tiles.width, tiles.height, tiles.columns, tiles.rows];
        let [a, b, c, d] = numbers.map(|n| to_i32(n, "tiles"));
        Ok(Arg::I32x4([a?, b?, c?, d?]))
    }

    /// The rows that the tiles cover, for a kernel.
    pub fn rows_arg(&self) -> Result<Arg<'static>, ClError> {
        let rows = &self.rows;
        let overlap = 1 + i32::from(rows.overlap);
        let top = to_i32(rows.top, "rows")?;
        Ok(Arg::I32x4([top, to_i32(rows.height, "rows")?, overlap, 0]))
    }

    /// The table of tile differences; valid after [`Self::mark`].
    pub fn table(&self) -> &Mem {
        &self.memory.table
    }

    /// The first arguments of the kernels that read tiles of a frame.
    fn frame_args<'a>(&self, frame: &'a ClFrame) -> Result<Vec<Arg<'a>>, ClError> {
        let plane = frame.plane(0)?;
        let [src, offset, stride] = source_args(plane, None, self.rows.top * plane.stride)?;
        Ok(vec![
            src,
            offset,
            stride,
            Arg::I32(to_i32(self.width, "a width")?),
            Arg::I32(to_i32(self.rows.height, "a height")?),
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
            Arg::Mem(&self.memory.sums),
            Arg::Mem(counters),
            Arg::U32(to_u32(slot, "a counter")?),
        ]);
        let (name, range) = match &self.columns {
            Some((items, columns)) => {
                args.push(Arg::Mem(columns));
                let items = (*items).min(self.rows.tiles.rows);
                ("tile_sums_columns", NdRange::groups(items, 1))
            }
            None => {
                let [group, _] = self.groups;
                args.push(Arg::I32(to_i32(self.row_step(), "rows")?));
                args.push(Arg::Local(group * size_of::<TileSum>()));
                (
                    "tile_sums_groups",
                    NdRange::groups(self.groups(group), group),
                )
            }
        };
        submission.run(&mut self.sum, name, &args, &range)
    }

    /// Reads the sums of the last [`Self::sum`].
    fn read_sums(&mut self, context: &ClContext) -> Result<(), ClError> {
        self.host_sums
            .resize(self.rows.tiles.count(), TileSum::default());
        let bytes = bytemuck::cast_slice_mut(&mut self.host_sums);
        context.read(&self.memory.sums, 0, bytes, "sums of tiles")
    }

    /// The mean of the tiles that show the pattern, grey levels of the frame's samples, after a [`Self::sum`] or
    /// a kernel that summed the tiles; `None` without such a tile.
    pub fn mean_level(
        &mut self,
        context: &ClContext,
        contrast: f64,
    ) -> Result<Option<f64>, ClError> {
        self.read_sums(context)?;
        let mean = (self.rows.tiles).mean_level(&self.host_sums, contrast_q4(contrast));
        Ok(mean.map(|mean| mean * f64::from(1_u32 << self.shift)))
    }

    /// Marks the tiles without the pattern in the masks of [`Submitted::finish`](crate::Submitted::finish), after a [`Self::sum`].
    ///
    /// # Errors
    /// The failing call.
    pub fn finish(
        &mut self,
        context: &Arc<ClContext>,
        contrast: f64,
        judged: &ComparedFrame,
        (mask, missing): (PackedMask, Option<PackedMask>),
        (finished, meter): (&mut Finished, &Meter),
    ) -> Result<(), ClError> {
        let mut mark = |(mask, offset): PackedMask| {
            self.mark(
                context,
                contrast,
                judged,
                Memory::Buffer(mask),
                offset,
                meter,
            )
        };
        let [fresh, missing_pixels] = mark(mask)?;
        finished.late += u64::from(fresh);
        finished.marked.missing = u64::from(missing_pixels);
        if let Some(missing) = missing {
            let [fresh, _] = mark(missing)?;
            finished.newly_missing = u64::from(fresh);
        }
        Ok(())
    }

    /// Marks the judged pixels of the tiles without the pattern in a packed mask, after a
    /// [`Self::sum`]. Returns the number of pixels that were not marked before, and of all pixels
    /// that are marked for want of a pattern.
    fn mark(
        &mut self,
        context: &Arc<ClContext>,
        contrast: f64,
        judged: &ComparedFrame,
        mask: Memory,
        mask_offset: usize,
        meter: &Meter,
    ) -> Result<[u32; 2], ClError> {
        self.read_sums(context)?;
        let window = &judged.window;
        let tiles = &self.rows.tiles;
        let table = if window.is_web {
            tiles.row_differences_q8(&self.host_sums, contrast_q4(contrast))
        } else {
            tiles.differences_q8(&self.host_sums, contrast_q4(contrast))
        };
        context.write(
            &self.memory.table,
            0,
            bytemuck::cast_slice(&table),
            "differences of tiles",
        )?;
        let stride = packed_stride(self.width);
        let args = [
            Arg::I32(to_i32(self.width, "a width")?),
            Arg::I32(to_i32(window.height, "a height")?),
            Arg::I32(to_i32(window.first, "a row")?),
            Arg::I32(to_i32(window.rows, "rows")?),
            Arg::Writes(mask),
            Arg::U64(mask_offset as u64),
            Arg::U32(to_u32(stride, "a stride")?),
            Arg::Mem(judged.comparisons),
            Arg::I32(to_i32(judged.comparison_count, "comparisons")?),
            Arg::Mem(judged.rois),
            Arg::I32(to_i32(judged.roi_count, "regions")?),
            Arg::I32(judged.flags),
            self.tiles_arg()?,
            self.rows_arg()?,
            Arg::Mem(&self.memory.table),
            // Where no pixel is ignored the table stands in for the bitmap, which the kernel does not read.
            Arg::Mem(judged.ignored.unwrap_or(&self.memory.table)),
            Arg::I32(i32::from(judged.ignored.is_some())),
            Arg::Mem(&self.counts),
        ];
        let range = NdRange::cover([stride, window.rows], self.mark_group);
        let mut submission = context.submit(meter, stride * window.rows);
        submission.zero(
            &self.counts,
            2 * size_of::<u32>(),
            "the missing pixels' counters",
        )?;
        submission.run(&mut self.mark, "mark_missing", &args, &range)?;
        let mut counts = [0_u32; 2];
        let bytes = bytemuck::cast_slice_mut(&mut counts);
        submission.read(&self.counts, 0, bytes, "the missing pixels' count")?;
        Ok(counts)
    }

    /// The median tile's standard deviation in grey levels of 8 bits, if the frame shows a pattern
    /// that repeats after each of these distances; `rows` is its number of rows. Each distance comes with whether it was
    /// estimated.
    pub fn learn(
        &mut self,
        context: &Arc<ClContext>,
        frame: &ClFrame,
        rows: usize,
        repeats: &[(Distance, bool)],
        counters: &Mem,
        meter: &Meter,
    ) -> Result<Option<f64>, ClError> {
        self.take(context, &Window::frame(rows))?;
        for &(distance, is_estimated) in repeats {
            let sums = self.pair_sums(context, frame, distance, meter)?;
            if !shows_pattern(&sums, is_estimated) {
                return Ok(None);
            }
        }
        let mut submission = context.submit(meter, frame.plane(0)?.stride * rows);
        self.sum(frame, 0.0, counters, 0, &mut submission)?;
        drop(submission);
        self.median_deviation(context).map(Some)
    }

    /// The median tile's standard deviation, grey levels of 8 bits, after a [`Self::sum`].
    pub fn median_deviation(&mut self, context: &ClContext) -> Result<f64, ClError> {
        self.read_sums(context)?;
        Ok(self.rows.tiles.median_deviation(&self.host_sums))
    }

    /// The lowest standard deviation of the tiles that count, after a [`Self::sum`]: see [`Tiles::lowest_deviation`];
    /// rows are the plane's.
    pub fn lowest_deviation(
        &mut self,
        context: &ClContext,
        mut counts: impl FnMut([usize; 4]) -> bool,
    ) -> Result<Option<f64>, ClError> {
        self.read_sums(context)?;
        let rows = &self.rows;
        let counts = |[x, y, width, height]: [usize; 4]| counts([x, y + rows.top, width, height]);
        let size = [self.width, rows.height];
        Ok((rows.tiles).lowest_deviation(&self.host_sums, size, counts))
    }

    fn pair_sums(
        &mut self,
        context: &Arc<ClContext>,
        frame: &ClFrame,
        distance: Distance,
        meter: &Meter,
    ) -> Result<Vec<PairSums>, ClError> {
        let mut args = self.frame_args(frame)?;
        args.extend([
            Arg::I32(distance.x),
            Arg::I32(distance.y),
            self.tiles_arg()?,
            Arg::Mem(&self.memory.pairs),
        ]);
        let count = self.rows.tiles.count();
        let (name, range) = if self.columns.is_some() {
            let items = self.pair_items.min(count);
            ("pair_sums", NdRange::groups(items, 1))
        } else {
            let [_, group] = self.groups;
            args.push(Arg::Local(group * size_of::<PairSums>()));
            ("pair_sums_groups", NdRange::groups(count, group))
        };
        let bytes = frame.plane(0)?.stride * self.rows.height;
        let mut submission = context.submit(meter, bytes);
        submission.run(&mut self.pairs, name, &args, &range)?;
        let mut sums = vec![PairSums::default(); count];
        let bytes = bytemuck::cast_slice_mut(&mut sums);
        submission.read(&self.memory.pairs, 0, bytes, "sums of pairs")?;
        Ok(sums)
    }
}
