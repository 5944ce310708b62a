//! The comparison at coarser levels; kernels in `kernels/scales.cl`.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    ignored::Ignored,
    kernels::scales_items::{FIRST_ROWS, ITEM_BLOCKS, MADE_ROWS},
    layout::FrameLayout,
    mask::packed_stride,
    pitch::{Axis, Comparison},
    region::Rect,
    scale_tiles::{ScaleTiles, TILE_GROUP},
    scales::{self, Level, LevelWords, Levels, ScaleComparison},
    window::Window,
};
use clinspect_opencl::{
    Arg, ClBuffer, ClContext, Kernel, Mem, Memory, Meter, NdRange, Program, ProgramSource,
    Submission,
    frame::{ClFrame, Plane},
};

use super::{
    settings::{ComparisonWords, PitchThresholdSettings},
    wide::{self, ROW_ALIGNMENT},
};
use crate::{
    depth::effective_depth,
    sample_options,
    source::{plain_group, source_args},
    to_i32, to_u32, upload,
};

/// Work-items per work-group on a GPU.
const GROUP: usize = 128;
/// Bands of rows per compute unit of a CPU.
const BANDS_PER_UNIT: usize = 16;

/// Kernels and memory of the coarser levels.
#[derive(Debug)]
pub(super) struct Scales {
    first: Kernel,
    next: Kernel,
    /// Judges all levels at once, where it can read the frame; no pictures are made then.
    tiles: Option<Tiles>,
    made_pictures: bool,
    /// No block is marked.
    marks_are_clear: bool,
    /// A block of the last frame was marked.
    had_marked: bool,
    repair: Kernel,
    repair_group: [usize; 2],
    join: Kernel,
    join_group: [usize; 2],
    /// Work-items on a CPU; `None` on a GPU.
    bands: Option<usize>,
    group: usize,
    comparisons: Vec<Comparison>,
    thetas_q8: Vec<i64>,
    is_matched: bool,
    sample_bytes: usize,
    /// The highest value of a sample.
    highest: i32,
    width: usize,
    flags: i32,
    levels: Levels,
    height: usize,
    pictures: GrowingMemory,
    marks: GrowingMemory,
    /// Packed mask of all rows of the plane, and the repaired plane; for frames in which a level marks a block.
    all: Option<Arc<ClBuffer>>,
    repaired: GrowingMemory,
    ignored: Option<IgnoredBlocks>,
    table: DeviceList<LevelWords>,
    judged: DeviceList<ScaleComparison>,
    fresh: Mem,
}

/// Memory that grows.
#[derive(Debug)]
struct GrowingMemory {
    memory: Mem,
    bytes: usize,
}

impl GrowingMemory {
    fn new(context: &ClContext, bytes: usize) -> Result<Self, ClError> {
        let bytes = bytes.max(1);
        let memory = context.device_memory(bytes)?;
        Ok(Self { memory, bytes })
    }

    /// Returns whether there is another memory now.
    fn grow(&mut self, context: &ClContext, bytes: usize) -> Result<bool, ClError> {
        let grows = bytes > self.bytes;
        if grows {
            *self = Self::new(context, bytes)?;
        }
        Ok(grows)
    }
}

/// A list on the device, which is written when it changes.
#[derive(Debug)]
struct DeviceList<T> {
    words: Vec<T>,
    memory: Mem,
    capacity: usize,
}

impl<T: bytemuck::NoUninit + PartialEq> DeviceList<T> {
    fn new(context: &ClContext, words: Vec<T>) -> Result<Self, ClError> {
        Ok(Self {
            memory: upload(context, &words, "levels")?,
            capacity: words.len(),
            words,
        })
    }

    fn update(&mut self, context: &ClContext, words: Vec<T>) -> Result<(), ClError> {
        if words == self.words {
            return Ok(());
        }
        if words.len() > self.capacity {
            *self = Self::new(context, words)?;
            return Ok(());
        }
        if !words.is_empty() {
            context.write(&self.memory, 0, bytemuck::cast_slice(&words), "levels")?;
        }
        self.words = words;
        Ok(())
    }
}

/// The blocks that have an ignored pixel among those whose mean is taken.
#[derive(Debug)]
struct IgnoredBlocks {
    pixels: Arc<Ignored>,
    blocks: DeviceList<u8>,
    /// What the blocks were made for: the first row, and the levels.
    made_for: Option<(u64, Levels)>,
}

impl Scales {
    /// Prepares the levels of frames of `layout`; `by_rows` selects the kernels for a CPU, `tiles` has the kernels for frames
    /// that they can read.
    ///
    /// # Errors
    /// [`ClError::Refused`] for settings that make no sense; the failing call.
    pub fn new(
        context: &ClContext,
        settings: &PitchThresholdSettings,
        comparisons: &[Comparison],
        layout: &FrameLayout,
        by_rows: bool,
        tiles: Option<Tiles>,
    ) -> Result<Self, ClError> {
        let (sample, width, height) = (layout.sample, layout.width, layout.height);
        // Planes are buffers even where the comparison of pixels reads their image.
        let options = sample_options(sample, false);
        let source = if by_rows {
            ProgramSource::ScalesRows
        } else {
            ProgramSource::ScalesItems
        };
        let program = context.program(source, &options)?;
        let repair = program.kernel("scales_repair")?;
        let join = program.kernel("scales_join")?;
        let next = program.kernel("scales_next")?;
        let bands = by_rows.then(|| context.caps().compute_units * BANDS_PER_UNIT);
        let mut scales = Self {
            first: program.kernel("scales_first")?,
            group: GROUP.min(context.kernel_work_group(&next)?),
            next,
            tiles,
            made_pictures: false,
            marks_are_clear: false,
            had_marked: false,
            repair_group: plain_group(context, &repair)?,
            repair,
            join_group: plain_group(context, &join)?,
            join,
            bands,
            comparisons: comparisons.to_vec(),
            thetas_q8: settings.scale_thresholds_q8()?,
            is_matched: settings.match_center,
            sample_bytes: sample.bytes(),
            highest: (1 << effective_depth(settings.bit_depth, sample)?) - 1,
            width,
            flags: settings.flags(),
            levels: Levels::default(),
            height,
            pictures: GrowingMemory::new(context, 1)?,
            marks: GrowingMemory::new(context, 1)?,
            all: None,
            repaired: GrowingMemory::new(context, 1)?,
            ignored: match &settings.ignored {
                Some(pixels) => Some(IgnoredBlocks {
                    pixels: pixels.clone(),
                    blocks: DeviceList::new(context, Vec::new())?,
                    made_for: None,
                }),
                None => None,
            },
            table: DeviceList::new(context, Vec::new())?,
            judged: DeviceList::new(context, Vec::new())?,
            fresh: context.device_memory(size_of::<u32>())?,
        };
        let window = Window::frame(height);
        scales.take(context, &window, &settings.regions(width, &window))?;
        Ok(scales)
    }

    /// Takes the levels of a window.
    ///
    /// # Errors
    /// [`ClError::Refused`] for a frame whose levels are too large; the failing call.
    pub fn take(
        &mut self,
        context: &ClContext,
        window: &Window,
        regions: &[Rect],
    ) -> Result<(), ClError> {
        let scales = scales::Scales {
            levels: self.thetas_q8.len(),
            width: self.width,
            comparisons: &self.comparisons,
            regions,
            is_matched: self.is_matched,
        };
        let levels = scales.levels(window);
        to_i32(levels.elements, "the levels of a comparison across scales")?;
        let sample = 2 * self.sample_bytes;
        self.pictures.grow(context, levels.elements * sample)?;
        if self.marks.grow(context, levels.marks)? {
            self.marks_are_clear = false;
        }
        // Level 0 has no comparisons here.
        let mut table = vec![LevelWords::default()];
        let mut judged = Vec::new();
        for (level, &theta) in levels.levels.iter().zip(&self.thetas_q8) {
            let from = judged.len();
            judged.extend(scales.comparisons(level, window.height));
            table.push(level.words(theta, from..judged.len()));
        }
        self.table.update(context, table)?;
        self.judged.update(context, judged)?;
        if let Some(ignored) = &mut self.ignored {
            ignored.show(context, window, &levels)?;
        }
        self.levels = levels;
        self.height = window.height;
        Ok(())
    }

    /// Takes other thresholds, 1/256 grey level, for the levels of a window.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn set_thresholds(
        &mut self,
        context: &ClContext,
        thetas_q8: &[i64],
        window: &Window,
        regions: &[Rect],
    ) -> Result<(), ClError> {
        self.thetas_q8 = thetas_q8.to_vec();
        self.take(context, window, regions)
    }

    /// No block of the frame of the last [`Self::run`] is marked.
    pub fn note_unmarked(&mut self) {
        self.marks_are_clear = !self.made_pictures;
        self.had_marked = false;
    }

    /// Memory for a packed mask of all rows of the plane.
    ///
    /// # Errors
    /// The failing call.
    pub fn mask_of_all(
        &mut self,
        context: &Arc<ClContext>,
        meter: &Arc<Meter>,
    ) -> Result<Arc<ClBuffer>, ClError> {
        let bytes = packed_stride(self.width) * self.height;
        match &self.all {
            Some(all) if all.size() >= bytes => Ok(all.clone()),
            _ => {
                let all = Arc::new(ClBuffer::new(context, bytes, meter)?);
                self.all = Some(all.clone());
                Ok(all)
            }
        }
    }

    /// Marks the pixels of the marked blocks in a packed mask, and returns the number of those that were not marked
    /// before.
    ///
    /// # Errors
    /// The failing call.
    pub fn join(
        &mut self,
        window: &Window,
        mask: Memory,
        mask_offset: usize,
        mut submission: Submission,
    ) -> Result<u32, ClError> {
        self.had_marked = true;
        let stride = packed_stride(self.width);
        let args = [
            Arg::Mem(&self.marks.memory),
            Arg::Mem(&self.table.memory),
            Arg::I32(to_i32(self.levels.levels.len(), "levels")?),
            Arg::I32(to_i32(self.width, "a width")?),
            Arg::I32(to_i32(window.first, "a row")?),
            Arg::I32(to_i32(window.rows, "rows")?),
            Arg::Writes(mask),
            Arg::U64(mask_offset as u64),
            Arg::U32(to_u32(stride, "a stride")?),
            Arg::Mem(&self.fresh),
        ];
        let range = NdRange::cover([stride, window.rows], self.join_group);
        submission.zero(&self.fresh, size_of::<u32>(), "the counter of levels")?;
        submission.run(&mut self.join, "scales_join", &args, &range)?;
        let mut fresh = [0_u32];
        let bytes = bytemuck::cast_slice_mut(&mut fresh);
        submission.read(&self.fresh, 0, bytes, "the levels' pixels")?;
        Ok(fresh[0])
    }

    /// The last arguments of `run_differences`: pictures, levels, their number, comparisons and marks.
    pub fn difference_args(&self) -> Result<[Arg<'_>; 5], ClError> {
        Ok([
            Arg::Mem(&self.pictures.memory),
            Arg::Mem(&self.table.memory),
            Arg::I32(to_i32(self.levels.levels.len(), "levels")?),
            Arg::Mem(&self.judged.memory),
            Arg::Mem(&self.marks.memory),
        ])
    }
}

impl IgnoredBlocks {
    /// Takes the blocks of a window, and uploads them if they differ.
    fn show(
        &mut self,
        context: &ClContext,
        window: &Window,
        levels: &Levels,
    ) -> Result<(), ClError> {
        let made_for = Some((window.web_row, levels.clone()));
        if self.made_for != made_for {
            let bitmap = self.pixels.rows(window.web_row, window.height);
            self.blocks.update(context, levels.ignored(&bitmap))?;
            self.made_for = made_for;
        }
        Ok(())
    }
}

/// What [`Scales::judge_repaired`] needs of the comparison of pixels.
pub struct Pixels<'a> {
    /// Packed mask of all rows of the plane, and its first byte.
    pub marked: Memory<'a>,
    pub marked_offset: usize,
    pub comparisons: &'a Mem,
    /// Two counters for a comparison whose counts are not used.
    pub counters: &'a Mem,
    /// Threshold, 1/256 grey level.
    pub theta: i32,
}

impl Scales {
    /// Compares at the levels, and adds to the counter `slot` where a block is marked. The counter beside it is
    /// zeroed for the next frame.
    ///
    /// # Errors
    /// The failing call.
    pub fn run(
        &mut self,
        frame: &ClFrame,
        counters: &Mem,
        slot: usize,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let plane = frame.plane(0)?;
        let size = [self.width, self.height];
        let (Some(tiles), Some(last)) = (&mut self.tiles, self.levels.levels.last()) else {
            return self.compare(Some(frame), counters, slot, submission);
        };
        // Tiles mark many blocks slowly, and frames with defects often come in a row.
        if self.had_marked || !tiles.reads(plane, size) {
            return self.compare(Some(frame), counters, slot, submission);
        }
        if !self.marks_are_clear {
            submission.zero(&self.marks.memory, self.marks.bytes, "the marks of levels")?;
        }
        self.marks_are_clear = false;
        self.made_pictures = false;
        let ignored = self.ignored.as_ref();
        let [src, src_offset, src_stride] = source_args(plane, None, 0)?;
        let args = [
            src,
            src_offset,
            src_stride,
            Arg::I32(to_i32(self.width, "a width")?),
            Arg::I32(to_i32(self.height, "a height")?),
            Arg::Mem(&self.table.memory),
            Arg::Mem(&self.judged.memory),
            Arg::Mem(&self.marks.memory),
            Arg::Mem(ignored.map_or(&self.marks.memory, |ignored| &ignored.blocks.memory)),
            Arg::I32(i32::from(ignored.is_some())),
            Arg::Mem(counters),
            Arg::U32(to_u32(slot, "a counter")?),
        ];
        tiles.run(self.width, last, &args, submission)
    }

    /// Makes the pictures of the frame of the last [`Self::run`], unless it has made them: differences are read there.
    ///
    /// # Errors
    /// The failing call.
    pub fn make_pictures(
        &mut self,
        frame: &ClFrame,
        unused_counters: &Mem,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        if self.made_pictures {
            return Ok(());
        }
        self.compare(Some(frame), unused_counters, 0, submission)
    }

    /// Compares a frame at the levels, or the repaired frame, which only clears marks.
    fn compare(
        &mut self,
        frame: Option<&ClFrame>,
        counters: &Mem,
        slot: usize,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        self.made_pictures = true;
        let axes = Arg::I32(self.axes());
        let height = Arg::I32(to_i32(self.height, "a height")?);
        let slot = Arg::U32(to_u32(slot, "a counter")?);
        let [src, src_offset, src_stride] = match frame {
            Some(frame) => source_args(frame.plane(0)?, None, 0)?,
            None => [
                Arg::Mem(&self.repaired.memory),
                Arg::U64(0),
                Arg::U32(to_u32(self.repaired_stride(), "a stride")?),
            ],
        };
        let args = [
            src,
            src_offset,
            src_stride,
            Arg::I32(to_i32(self.width, "a width")?),
            height,
            axes,
            Arg::Mem(&self.pictures.memory),
            Arg::Mem(&self.table.memory),
            Arg::Mem(counters),
            slot,
        ];
        let Some(first) = self.levels.levels.first() else {
            return Ok(());
        };
        let range = match self.bands {
            Some(bands) => NdRange::groups(bands.min(2 * first.rows), 1),
            None => NdRange::cover(
                [
                    first.pitch / ITEM_BLOCKS,
                    (2 * first.rows).div_ceil(FIRST_ROWS),
                ],
                [self.group, 1],
            ),
        };
        submission.run(&mut self.first, "scales_first", &args, &range)?;
        let ignored = self.ignored.as_ref();
        for (index, level) in self.levels.levels.iter().enumerate() {
            let to = self.levels.levels.get(index + 1);
            let args = [
                height,
                axes,
                Arg::Mem(&self.pictures.memory),
                Arg::Mem(&self.table.memory),
                Arg::I32(to_i32(level.shift, "a level")?),
                Arg::I32(i32::from(to.is_none())),
                Arg::Mem(&self.judged.memory),
                Arg::I32(self.flags),
                Arg::Mem(&self.marks.memory),
                Arg::I32(i32::from(frame.is_none())),
                // Where no pixel is ignored the marks stand in for the blocks, which the kernel does not read.
                Arg::Mem(ignored.map_or(&self.marks.memory, |ignored| &ignored.blocks.memory)),
                Arg::I32(i32::from(ignored.is_some())),
                Arg::Mem(counters),
                slot,
            ];
            let judged = level.past - level.from;
            let range = match self.bands {
                Some(bands) => NdRange::groups(bands, 1),
                None => {
                    let groups = |items: usize| items.div_ceil(self.group);
                    let mut all = groups(level.count * judged.div_ceil(level.set_rows()));
                    if let Some(to) = to {
                        let columns = to.pitch / ITEM_BLOCKS;
                        if self.axes() & 1 == 1 {
                            all += groups(columns * (to.rows.div_ceil(MADE_ROWS) << level.shift));
                        }
                        if self.axes() & 2 == 2 {
                            let sets = self.height.div_ceil(MADE_ROWS << level.shift);
                            all += groups(columns * (sets << level.shift));
                        }
                    }
                    NdRange::groups(all, self.group)
                }
            };
            submission.run(&mut self.next, "scales_next", &args, &range)?;
        }
        Ok(())
    }

    /// Clears the marks of blocks that no comparison marks in the frame whose marked pixels are repaired.
    ///
    /// # Errors
    /// The failing call.
    pub fn judge_repaired(
        &mut self,
        context: &ClContext,
        frame: &ClFrame,
        pixels: &Pixels,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let repaired_stride = self.repaired_stride();
        self.repaired.grow(context, repaired_stride * self.height)?;
        let stride = packed_stride(self.width);
        let [src, src_offset, src_stride] = source_args(frame.plane(0)?, None, 0)?;
        let args = [
            src,
            src_offset,
            src_stride,
            Arg::I32(to_i32(self.width, "a width")?),
            Arg::I32(to_i32(self.height, "a height")?),
            Arg::Reads(pixels.marked),
            Arg::U64(pixels.marked_offset as u64),
            Arg::U32(to_u32(stride, "a stride")?),
            Arg::Mem(pixels.comparisons),
            Arg::I32(to_i32(self.comparisons.len(), "comparisons")?),
            Arg::I32(pixels.theta),
            Arg::I32(self.flags),
            Arg::I32(self.highest),
            Arg::Mem(&self.repaired.memory),
            Arg::U32(to_u32(repaired_stride, "a stride")?),
        ];
        let range = match self.bands {
            Some(_) => NdRange::tiles([1, self.height], 1),
            None => NdRange::cover([stride, self.height], self.repair_group),
        };
        submission.run(&mut self.repair, "scales_repair", &args, &range)?;
        self.compare(None, pixels.counters, 0, submission)
    }

    /// Bytes between rows of the repaired plane.
    fn repaired_stride(&self) -> usize {
        (self.width * self.sample_bytes).next_multiple_of(4)
    }

    /// The axes in use: 1 x, 2 y.
    fn axes(&self) -> i32 {
        let along = |axis| i32::from(self.comparisons.iter().any(|c| c.axis == axis));
        along(Axis::X) | (2 * along(Axis::Y))
    }
}

/// The kernels for one list of comparisons.
#[derive(Debug)]
pub(super) struct Tiles {
    launches: Vec<Launch>,
    sizes: ScaleTiles,
}

/// The kernel for some axes.
#[derive(Debug)]
struct Launch {
    kernel: Kernel,
    /// 1 x, 2 y, 3 both.
    axes: usize,
    /// Keeps the program among the context's programs: an operator for other regions needs it again.
    _program: Arc<Program>,
}

impl Tiles {
    /// The kernels' name.
    const NAME: &str = "scales_tiles";

    /// Compiles the kernels for frames of 8-bit samples. `None` for too many comparisons, or for neighbours so far away
    /// that no tile holds them.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(
        context: &ClContext,
        settings: &PitchThresholdSettings,
        comparisons: &[Comparison],
        words: &[ComparisonWords],
    ) -> Result<Option<Self>, ClError> {
        let reach = [Axis::X, Axis::Y].map(|axis| {
            let along = comparisons.iter().filter(|c| c.axis == axis);
            along.map(Comparison::margin).max().unwrap_or(0)
        });
        let sizes = ScaleTiles::choose(settings.scales, reach, context.caps().local_memory);
        let (Some(sizes), Some(list)) = (sizes, wide::list(words)) else {
            return Ok(None);
        };
        let axes = usize::from(reach[0] > 0) + 2 * usize::from(reach[1] > 0);
        // PoCL's compiler cannot handle barriers inside a branch, so each axis has a launch there.
        let launches = match axes {
            3 if context.caps().is_cpu => vec![1, 2],
            axes => vec![axes],
        };
        let mut tiles = Self {
            launches: Vec::new(),
            sizes,
        };
        for axes in launches {
            let options = format!(
                "-DLEVELS={} -DGROUP={TILE_GROUP} -DAXES={axes} -DTILE_FLAGS={} -DREACH_X={} -DREACH_Y={} -DTILE_X={} \
                 -DTILE_X_ROWS={} -DTILE_Y={} -DTILE_Y_ROWS={} -DFIRST={} -DSECOND={} -DTILE_COMPARISONS={list}",
                settings.scales,
                settings.flags(),
                reach[0],
                reach[1],
                sizes.x[0],
                sizes.x[1],
                sizes.y[0],
                sizes.y[1],
                sizes.first,
                sizes.second,
            );
            let Some(program) = wide::program(context, ProgramSource::ScalesTiles, &options)?
            else {
                return Ok(None);
            };
            let kernel = program.kernel(Self::NAME)?;
            if context.kernel_work_group(&kernel)? < TILE_GROUP {
                return Ok(None);
            }
            tiles.launches.push(Launch {
                kernel,
                axes,
                _program: program,
            });
        }
        Ok(Some(tiles))
    }

    /// Whether the kernels can read this plane: they read whole 16 bytes, also at the ends of rows.
    pub fn reads(&self, plane: &Plane, [width, height]: [usize; 2]) -> bool {
        let row = width.next_multiple_of(ROW_ALIGNMENT);
        let end = plane.offset + height.saturating_sub(1) * plane.stride + row;
        (plane.offset | plane.stride).is_multiple_of(ROW_ALIGNMENT)
            && plane.aligned_len().is_some_and(|len| end <= len)
    }

    /// Enqueues the kernels for a frame `width` px wide whose coarsest level is `last`. `args`: those of the kernel up to
    /// `slot`.
    ///
    /// # Errors
    /// [`ClError::Refused`] for sizes that are too large; the failing call.
    pub fn run(
        &mut self,
        width: usize,
        last: &Level,
        args: &[Arg],
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let rows = (last.past - last.from) << last.shift;
        let top = to_i32(last.from << last.shift, "a row")? - to_i32(last.remainder, "a row")?;
        let sizes = [self.sizes.x, self.sizes.y];
        for launch in &mut self.launches {
            let [x, y] = [0, 1].map(|axis| match launch.axes >> axis & 1 {
                0 => [0, 0],
                _ => [
                    width.div_ceil(sizes[axis][0]),
                    rows.div_ceil(sizes[axis][1]),
                ],
            });
            let [x_tiles, y_tiles] = [x, y].map(|grid| grid[0] * grid[1]);
            let mut args = args.to_vec();
            args.extend([
                Arg::I32(top),
                Arg::I32(to_i32(x_tiles, "tiles")?),
                Arg::I32(to_i32(x[0], "tiles")?),
                Arg::I32(to_i32(y[0], "tiles")?),
            ]);
            let range = NdRange::groups(x_tiles + y_tiles, TILE_GROUP);
            submission.run(&mut launch.kernel, Self::NAME, &args, &range)?;
        }
        Ok(())
    }
}
