//! The comparison at coarser levels; kernels in `kernels/scales.cl`.

mod judge;

use std::sync::Arc;

use clinspect_core::{
    ClError,
    ignored::Ignored,
    layout::FrameLayout,
    mask::packed_stride,
    ndrange::NdRange,
    pitch::Comparison,
    region::Rect,
    scales::{self, LevelWords, Levels, ScaleComparison},
    window::Window,
};
use clinspect_opencl::{
    Arg, ClBuffer, ClContext, Kernel, Mem, Memory, Meter, ProgramSource, Submission,
};

pub(super) use judge::Pixels;

use super::{scale_tiles::Tiles, settings::PitchThresholdSettings, upload};
use crate::{depth::effective_depth, sample_options, source::plain_group, to_i32, to_u32};

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
