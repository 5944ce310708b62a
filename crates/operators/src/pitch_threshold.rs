//! Pitch comparison, threshold and packed mask; kernels in `kernels/pitch_threshold.cl`.

mod difference;
mod learning;
mod prepare;
mod scales;
mod settings;
mod wide;

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{Finder, Limits, Listed, Run, RunDifference},
    ignored::Bitmap,
    layout::SampleType,
    learning::Demand,
    mask::packed_stride,
    ndrange::NdRange,
    pitch::{Axis, Comparison},
    region::{Rect, area},
    threshold::Reached,
    variant::WIDE_MEMORY,
    window::{Reach, Window},
};
use clinspect_opencl::{
    Arg, ClBuffer, ClContext, Kernel, Mem, Memory, Meter, Submission,
    frame::{ClFrame, Plane},
};

use crate::{
    inspection::{
        Basis, Finished, Inspection, JudgedPixels, Limit, Marked, PackedMask, Picture, Repeating,
        Subject, Submitted,
    },
    lister::{self, DeviceMask, Lister, Lists},
    mask::{Expand, MaskTarget, packed_mask},
    presence::{Contrast, Judged, Presence},
    regions::{Ignore, Rois},
    source::{PlaneImages, source_args},
    to_i32, to_u32,
};
use difference::Differences;
use learning::BeforeTrial;
use scales::{Pixels, Scales};
pub use settings::{Borders, Compare, PitchThresholdSettings, Polarity};
use wide::{Fixed, WideSplit};

/// Two counters of marked pixels, then two of tiles without the pattern, and two that count where coarser levels mark.
type Counters = [u32; 6];
/// Index of the first counter of tiles.
const TILES: usize = 2;
/// Index of the first counter of levels.
const LEVELS: usize = 4;

/// How a kernel is launched.
#[derive(Debug, Clone, Copy)]
enum Launch {
    /// A work-item per byte of the mask, in work-groups of this size.
    Bytes([usize; 2]),
    /// At most this many bands of rows.
    Bands(usize),
    /// The items of the wide kernels, and their work-items per work-group.
    Wide(WideSplit, usize),
}

/// Rows of the plane, and where their packed mask goes.
struct MaskedRows<'a> {
    first: usize,
    rows: usize,
    mask: Memory<'a>,
    mask_offset: usize,
    /// All pixels of the plane are marked, wherever they lie, and nothing is counted.
    is_all: bool,
}

/// A pitch comparison for frames of one layout.
#[derive(Debug)]
pub struct PitchThreshold {
    context: Arc<ClContext>,
    kernel: Kernel,
    name: &'static str,
    launch: Launch,
    expand: Expand,
    comparisons: Mem,
    comparison_list: Vec<Comparison>,
    rois: Rois,
    /// The whole plane as a region.
    everywhere: Rois,
    /// Counters of a comparison whose counts are not used.
    unused_counters: Mem,
    /// A faster kernel for some frames.
    fixed: Option<Fixed>,
    /// See [`Counters`]; `slot` selects the next frame's counter of either kind, which is zero.
    counters: Mem,
    slot: usize,
    clean: bool,
    /// The result of the last frame.
    marked: Marked,
    presence: Option<Presence>,
    contrast: Contrast,
    /// What a trial of other limits replaces.
    before_trial: Option<BeforeTrial>,
    scales: Option<Scales>,
    settings: PitchThresholdSettings,
    /// The window of the last frame.
    window: Window,
    /// The comparisons at the pitches themselves.
    at_pitches: Vec<Comparison>,
    weak: Vec<Comparison>,
    /// Memory for a packed mask that is then expanded; allocated at first use.
    packed: Option<Arc<ClBuffer>>,
    lister: Lister,
    differences: Option<Differences>,
    sample: SampleType,
    theta: i32,
    flags: i32,
    width: usize,
    /// The pixels that any comparison, those along x, and those along y judge if no pixel is ignored.
    judged: [Vec<Rect>; 3],
    judged_pixels: JudgedPixels,
    ignore: Option<Ignore>,
    pitches: [f64; 2],
    images: Option<PlaneImages>,
}

impl PitchThreshold {
    /// The comparisons that can judge less than half of the pixels of the regions of interest.
    pub fn weak_comparisons(&self) -> &[Comparison] {
        &self.weak
    }

    /// The minimum contrast in use.
    pub fn contrast(&self) -> Contrast {
        self.contrast
    }

    /// Takes the window of a frame.
    fn take(&mut self, window: &Window) -> Result<(), ClError> {
        if let Some(presence) = &mut self.presence {
            presence.take(&self.context, window)?;
        }
        let before = std::mem::replace(&mut self.window, *window);
        // Without regions and ignored pixels, strips at all places of a web are judged alike.
        let is_alike = if self.settings.rois.is_empty() && self.ignore.is_none() {
            let web_row = window.web_row;
            *window == Window { web_row, ..before }
        } else {
            *window == before
        };
        if let Some(scales) = &mut self.scales
            && *window != before
        {
            // Blocks count from the web's first row.
            let regions = self.settings.regions(self.width, window);
            scales.take(&self.context, window, &regions)?;
        }
        if !is_alike {
            let regions = self.settings.regions(self.width, window);
            self.rois.update(&self.context, &regions)?;
            let plane = Rect::new(0, 0, self.width, window.height);
            self.everywhere.update(&self.context, &[plane])?;
            self.judged = judged(&self.settings, &self.comparison_list, self.width, window);
            let first_line = window.web_row + window.first as u64;
            let ignored = match &mut self.ignore {
                Some(ignore) => {
                    ignore.show(&self.context, first_line, window.rows)?;
                    Some(ignore.bitmap())
                }
                None => None,
            };
            self.judged_pixels = count_judged(&self.judged, ignored);
        }
        Ok(())
    }

    /// Adds the pixels of the frame of the last [`Inspection::mark`] to the counts: for each threshold, the pixels that it
    /// would mark. Returns whether the frame was compared.
    ///
    /// # Errors
    /// The failing call; nothing is added.
    pub fn count_reached(
        &mut self,
        subject: Subject,
        reached: &mut Reached,
    ) -> Result<bool, ClError> {
        let is_judging = self.contrast != Contrast::Unknown && !self.comparison_list.is_empty();
        if is_judging {
            self.count_differences(subject, reached)?;
        }
        Ok(is_judging)
    }
}

impl Repeating for PitchThreshold {
    fn pitches(&self) -> [f64; 2] {
        self.pitches
    }

    fn learn_contrast(
        &mut self,
        frame: &ClFrame,
        rows: usize,
        estimated: [bool; 2],
        meter: &Arc<Meter>,
    ) -> Result<Option<f64>, ClError> {
        let Some(presence) = self
            .presence
            .as_mut()
            .filter(|_| !self.at_pitches.is_empty())
        else {
            return Ok(None);
        };
        self.clean = false;
        let [along_x, along_y] = estimated;
        let comparisons = self
            .at_pitches
            .iter()
            .map(|comparison| match comparison.axis {
                Axis::X => (comparison, along_x),
                Axis::Y => (comparison, along_y),
            });
        let comparisons: Vec<_> = comparisons.collect();
        presence.learn(
            &self.context,
            frame,
            rows,
            &comparisons,
            &self.counters,
            meter,
        )
    }

    fn set_contrast(&mut self, contrast: Contrast) {
        if self.presence.is_some() && contrast != Contrast::Off {
            self.contrast = contrast;
        }
    }
}

impl Lists for PitchThreshold {
    fn lister(&mut self) -> (&Arc<ClContext>, &mut Lister) {
        (&self.context, &mut self.lister)
    }
}

impl Submitted for PitchThreshold {
    fn look(&mut self, subject: Subject, _leader: Option<&Self>) -> Result<(), ClError> {
        self.take(&subject.window)
    }

    fn submit<'a>(
        &'a mut self,
        Subject { frame, window, .. }: Subject<'a>,
        (mask, mask_offset): PackedMask<'a>,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        if let Some(images) = &mut self.images {
            images.update(frame, submission)?;
        }
        let slot = self.slot;
        if !self.clean {
            self.clean = true;
            submission.zero(&self.counters, size_of::<Counters>(), "the pixel counters")?;
        }
        let mask = Memory::Buffer(mask);
        let rows = MaskedRows {
            first: window.first,
            rows: window.rows,
            mask,
            mask_offset,
            is_all: false,
        };
        let is_summed = self.compare_rows(frame, &rows, slot, submission)?;
        if let (Contrast::Known(level), Some(presence)) = (self.contrast, &mut self.presence)
            && !is_summed
        {
            presence.sum(frame, level, &self.counters, TILES + slot, submission)?;
        }
        let comparison_count = self.comparisons_in_use();
        if let Some(scales) = &mut self.scales
            && comparison_count > 0
        {
            scales.run(frame, &self.counters, LEVELS + slot, submission)?;
        }
        if let Some(ignore) = &mut self.ignore {
            ignore.clear(mask, mask_offset, &self.counters, slot, submission)?;
        }
        Ok(())
    }

    fn counters(&self) -> (&Mem, usize) {
        (&self.counters, Counters::default().len())
    }

    fn finish(
        &mut self,
        Subject {
            frame,
            window,
            meter,
        }: Subject,
        (mask, mask_offset): PackedMask,
        counts: &[u32],
        missing: Option<PackedMask>,
    ) -> Result<Finished, ClError> {
        let mask = Memory::Buffer(mask);
        let slot = self.slot;
        let count = |at: usize| counts.get(at + slot).copied().unwrap_or(0);
        let mut finished = Finished::default();
        let marked = &mut finished.marked;
        marked.pixels = u64::from(count(0));
        let has_levels = self.scales.is_some() && self.comparisons_in_use() > 0;
        if has_levels && count(LEVELS) > 0 {
            let has_marked = count(0) > 0 || !self.marks_whole_frame();
            let fresh = self.join_levels(frame, mask, mask_offset, has_marked, meter)?;
            finished.late += u64::from(fresh);
        } else if has_levels && let Some(scales) = &mut self.scales {
            scales.note_unmarked();
        }
        if let (Contrast::Known(level), Some(presence)) = (self.contrast, &mut self.presence)
            && count(TILES) > 0
        {
            let judged = Judged {
                window,
                comparisons: &self.comparisons,
                comparison_count: self.comparison_list.len(),
                rois: &self.rois.memory,
                roi_count: self.rois.words.len(),
                flags: self.flags,
                ignored: self.ignore.as_ref().map(Ignore::memory),
            };
            let mut mark =
                |mask, offset| presence.mark(&self.context, level, &judged, mask, offset, meter);
            let [fresh, missing_pixels] = mark(mask, mask_offset)?;
            finished.late += u64::from(fresh);
            marked.missing = u64::from(missing_pixels);
            if let Some((missing, offset)) = missing {
                let [fresh, _] = mark(Memory::Buffer(missing), offset)?;
                finished.newly_missing = u64::from(fresh);
            }
        }
        marked.pixels += finished.late;
        self.marked = *marked;
        self.slot = 1 - slot;
        Ok(finished)
    }

    fn fail(&mut self) {
        self.marked = Marked::default();
        self.clean = false;
    }

    fn measure(
        &mut self,
        subject: Subject,
        mask: PackedMask,
        runs: &[Run],
    ) -> Result<&[RunDifference], ClError> {
        let is_missing = self.marked.missing > 0;
        let meter = subject.meter;
        self.with_difference_args(subject, is_missing, |lister, context, args| {
            lister.measure(context, mask, args, runs, meter).map(drop)
        })?;
        Ok(self.lister.results())
    }
}

impl Inspection for PitchThreshold {
    fn mark(&mut self, subject: Subject, mask: MaskTarget) -> Result<Marked, ClError> {
        let result = self.mark_alone(subject, mask);
        if result.is_err() {
            self.fail();
        }
        result
    }

    fn list(
        &mut self,
        subject: Subject,
        mask: MaskTarget,
        finder: &mut Finder,
        limits: &Limits,
    ) -> Result<Listed, ClError> {
        let packed = self.packed.clone();
        let size = [self.width, self.window.rows];
        let Some(mask) = packed_mask(mask, &packed).filter(|_| self.marked.pixels > 0) else {
            finder.pass(size[0], size[1], limits, subject.window.ends_web());
            return Ok(finder.list(&[]));
        };
        let marked = DeviceMask {
            buffer: mask.0,
            offset: mask.1,
            size,
            pixels: self.marked.pixels,
        };
        self.list_marks(subject, marked, (finder, limits, subject.window.ends_web()))
    }

    fn draw(&mut self, subject: Subject, picture: Picture, out: &ClFrame) -> Result<(), ClError> {
        match picture {
            Picture::Difference(gain) => self.draw_difference(subject, out, gain),
            Picture::Model => Err(ClError::Refused(
                "a pattern that is compared with itself has no model to draw".into(),
            )),
        }
    }

    fn limits(&self) -> Vec<Limit> {
        self.learned_limits()
    }

    fn demands(&mut self, subject: Subject) -> Result<Option<Vec<Demand>>, ClError> {
        self.demands_of(subject)
    }

    fn try_limits(&mut self, values: Option<&[f64]>) -> Result<(), ClError> {
        self.try_values(values)
    }

    fn mean_level(&mut self) -> Result<Option<f64>, ClError> {
        match (self.contrast, &mut self.presence) {
            (Contrast::Known(contrast), Some(presence)) => {
                presence.mean_level(&self.context, contrast)
            }
            _ => Ok(None),
        }
    }

    fn basis(&self) -> Basis {
        Basis {
            judged: match self.contrast {
                Contrast::Unknown => JudgedPixels::default(),
                _ => self.judged_pixels,
            },
            pitches: self.pitches,
            alignment: None,
            ignored: self.ignore.as_ref().map(Ignore::bitmap).cloned(),
        }
    }

    fn reach(&self) -> Reach {
        self.settings.reach(&self.comparison_list)
    }
}

impl PitchThreshold {
    /// Calls `measure` with the arguments of kernel `run_differences` before and behind the mask. `is_missing`: there are
    /// tiles without the pattern.
    fn with_difference_args(
        &mut self,
        subject: Subject,
        is_missing: bool,
        measure: impl FnOnce(&mut Lister, &Arc<ClContext>, [&[Arg]; 2]) -> Result<(), ClError>,
    ) -> Result<(), ClError> {
        let window = self.window;
        let [src, src_offset, src_stride] = source_args(subject.frame.plane(0)?, None, 0)?;
        // Without a search the comparisons stand in for the table, which the kernel does not read.
        let (tiles, tile_rows, table) = match &self.presence {
            Some(presence) => (
                presence.tiles_arg()?,
                presence.rows_arg()?,
                Arg::Mem(presence.table()),
            ),
            None => (
                Arg::I32x4([1; 4]),
                Arg::I32x4([0; 4]),
                Arg::Mem(&self.comparisons),
            ),
        };
        let frame_args = [
            src,
            src_offset,
            src_stride,
            Arg::I32(to_i32(self.width, "a width")?),
            Arg::I32(to_i32(window.height, "a height")?),
            Arg::I32(to_i32(window.first, "a row")?),
            Arg::Mem(&self.comparisons),
            Arg::I32(to_i32(self.comparison_list.len(), "comparisons")?),
            Arg::I32(self.theta),
            Arg::I32(self.flags),
            tiles,
            tile_rows,
            table,
            Arg::I32(i32::from(is_missing)),
        ];
        // Without coarser levels the comparisons stand in for their memory, which the kernel does not read.
        let levels = match &self.scales {
            Some(scales) => scales.difference_args()?,
            None => {
                let none = Arg::Mem(&self.comparisons);
                [none, none, Arg::I32(0), none, none]
            }
        };
        measure(&mut self.lister, &self.context, [&frame_args, &levels])
    }

    fn mark_alone(&mut self, subject: Subject, target: MaskTarget) -> Result<Marked, ClError> {
        let (window, meter) = (subject.window, subject.meter);
        let size = [self.width, window.rows];
        let bytes = packed_stride(self.width) * window.rows;
        let suffices = |packed: &Arc<ClBuffer>| packed.size() >= bytes;
        if matches!(target, MaskTarget::Grey(_)) && !self.packed.as_ref().is_some_and(suffices) {
            self.packed = Some(Arc::new(ClBuffer::new(&self.context, bytes, meter)?));
        }
        let packed = self.packed.clone();
        let mask = packed_mask(target, &packed)
            .ok_or_else(|| ClError::Refused("no memory for the packed mask".into()))?;
        self.look(subject, None)?;
        let context = self.context.clone();
        let judged_bytes = self.width * window.rows * self.sample.bytes();
        let mut submission = context.submit(meter, judged_bytes);
        self.submit(subject, mask, &mut submission)?;
        let memory = Memory::Buffer(mask.0);
        (self.expand).run(memory, target, size, &mut submission)?;
        if self.lister.wants_ahead() {
            let packed = DeviceMask::of(mask, size);
            self.with_difference_args(subject, false, |lister, context, args| {
                lister.measure_ahead(context, packed, args, &mut submission)
            })?;
        }
        let mut counts = Counters::default();
        let counted = (&self.counters, bytemuck::cast_slice_mut(&mut counts));
        let mut reads = self.lister.reads_ahead(counted);
        submission.read_all(&mut reads, "the pixel count")?;
        let finished = self.finish(subject, mask, &counts, None)?;
        self.lister.take_ahead(finished.late == 0);
        if finished.late > 0 && matches!(target, MaskTarget::Grey(_)) {
            let mut submission = context.submit(meter, self.width * window.rows);
            (self.expand).run(memory, target, size, &mut submission)?;
            submission.send()?.wait("the mask")?;
        }
        Ok(finished.marked)
    }

    /// Enqueues the comparison of rows. Returns whether it sums up the tiles, too.
    fn compare_rows(
        &mut self,
        frame: &ClFrame,
        rows: &MaskedRows,
        slot: usize,
        submission: &mut Submission,
    ) -> Result<bool, ClError> {
        let stride = packed_stride(self.width);
        let comparison_count = self.comparisons_in_use();
        let (rois, counters) = if rows.is_all {
            (&self.everywhere, &self.unused_counters)
        } else {
            (&self.rois, &self.counters)
        };
        let plane = frame.plane(0)?;
        let image = self.images.as_ref().and_then(|images| images.get(0));
        let [src, src_offset, src_stride] = source_args(plane, image, 0)?;
        let mut args = vec![
            src,
            src_offset,
            src_stride,
            Arg::I32(to_i32(self.width, "a width")?),
            Arg::I32(to_i32(self.window.height, "a height")?),
            Arg::I32(to_i32(rows.first, "a row")?),
            Arg::I32(to_i32(rows.rows, "rows")?),
            Arg::Writes(rows.mask),
            Arg::U64(rows.mask_offset as u64),
            Arg::U32(to_u32(stride, "a stride")?),
            Arg::Mem(&self.comparisons),
            Arg::I32(to_i32(comparison_count, "comparisons")?),
            Arg::Mem(&rois.memory),
            Arg::I32(to_i32(rois.words.len(), "regions")?),
            Arg::I32(self.theta),
            Arg::I32(self.flags),
            Arg::Mem(counters),
            Arg::U32(to_u32(slot, "a counter")?),
        ];
        let fixed = self.fixed.as_mut().filter(|fixed| {
            // The kernel compares whatever the number of comparisons.
            comparison_count > 0 && plane.aligned_len().is_some() && fixed.reads(plane)
        });
        let (kernel, name, launch) = match fixed {
            Some(fixed) => (
                &mut fixed.kernel,
                Fixed::NAME,
                Launch::Wide(fixed.split, fixed.group),
            ),
            None => (&mut self.kernel, self.name, self.launch),
        };
        let mut is_summed = false;
        let range = match launch {
            Launch::Bytes(group) => NdRange::cover([stride, rows.rows], group),
            Launch::Bands(bands) => NdRange::groups(bands.min(rows.rows.max(1)), 1),
            Launch::Wide(split, group) => {
                let split = split.of_rows(rows.rows);
                // The kernel also sums up the tiles: another launch would cost as much as the sums.
                let tiles = match (self.contrast, &self.presence) {
                    (Contrast::Known(level), Some(presence)) if !rows.is_all => {
                        Some((level, presence))
                    }
                    _ => None,
                };
                is_summed = tiles.is_some();
                let tile_groups = tiles.map_or(0, |(_, presence)| presence.groups(group));
                args.push(Arg::U32(memory_bytes(plane, name)?));
                args.extend(split.args(group, tile_groups)?);
                match tiles {
                    Some((level, presence)) => args.extend(presence.tile_args(level)?),
                    None => args.extend([
                        Arg::I32x4([1; 4]),
                        Arg::U32(0),
                        Arg::I32(0),
                        Arg::Mem(&self.counters),
                        Arg::I32(1),
                        Arg::I32(0),
                        Arg::I32(1),
                    ]),
                }
                split.range(group, tile_groups)
            }
        };
        submission.run(kernel, name, &args, &range)?;
        Ok(is_summed)
    }

    /// Bytes of the rows that are judged.
    pub(super) fn judged_bytes(&self) -> usize {
        self.width * self.window.rows * self.sample.bytes()
    }

    /// Number of comparisons that judge pixels; none while the minimum contrast is unknown.
    pub(super) fn comparisons_in_use(&self) -> usize {
        match self.contrast {
            Contrast::Unknown => 0,
            _ => self.comparison_list.len(),
        }
    }

    /// Runs the kernels that follow where a level marks a block.
    pub(super) fn warm_up_levels(
        &mut self,
        frame: &ClFrame,
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        match self.packed.clone() {
            Some(mask) if self.scales.is_some() => {
                self.join_levels(frame, Memory::Buffer(&mask), 0, true, meter)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Marks the pixels of the blocks that levels mark. Returns the number of those that were not marked before.
    /// `has_marked`: pixels of the frame may be marked themselves.
    fn join_levels(
        &mut self,
        frame: &ClFrame,
        mask: Memory,
        mask_offset: usize,
        has_marked: bool,
        meter: &Arc<Meter>,
    ) -> Result<u32, ClError> {
        let context = self.context.clone();
        let bytes = packed_stride(self.width) * self.window.rows;
        let mut submission = context.submit(meter, bytes);
        if has_marked {
            let is_whole = self.marks_whole_frame();
            let all = match &mut self.scales {
                Some(scales) if !is_whole => Some(scales.mask_of_all(&context, meter)?),
                _ => None,
            };
            if let Some(all) = &all {
                let rows = MaskedRows {
                    first: 0,
                    rows: self.window.height,
                    mask: Memory::Buffer(all),
                    mask_offset: 0,
                    is_all: true,
                };
                self.compare_rows(frame, &rows, 0, &mut submission)?;
            }
            let (marked, marked_offset) = match &all {
                Some(all) => (Memory::Buffer(all), 0),
                None => (mask, mask_offset),
            };
            if let Some(scales) = &mut self.scales {
                let pixels = Pixels {
                    marked,
                    marked_offset,
                    comparisons: &self.comparisons,
                    counters: &self.unused_counters,
                    theta: self.theta,
                };
                scales.judge_repaired(&context, frame, &pixels, &mut submission)?;
            }
        } else if let Some(scales) = &mut self.scales {
            scales.make_pictures(frame, &self.unused_counters, &mut submission)?;
        }
        match &mut self.scales {
            Some(scales) => scales.join(&self.window, mask, mask_offset, submission),
            None => Ok(0),
        }
    }

    /// Whether the mask of a frame has all pixels of the plane that a comparison marks.
    fn marks_whole_frame(&self) -> bool {
        !self.window.is_web && self.ignore.is_none() && self.settings.rois.is_empty()
    }

    /// Compiles the kernel that lists need, and runs it once.
    pub(super) fn warm_up_list(
        &mut self,
        frame: &ClFrame,
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        self.marked.pixels = 1;
        let target = MaskTarget::Grey(frame);
        let subject = Subject {
            frame,
            window: self.window,
            meter,
        };
        lister::warm_up(self.packed.clone().as_deref(), |finder, limits| {
            self.list(subject, target, finder, limits)
        })
    }
}

/// The pixels of a window that any comparison, those along x, and those along y judge.
fn judged(
    settings: &PitchThresholdSettings,
    comparisons: &[Comparison],
    width: usize,
    window: &Window,
) -> [Vec<Rect>; 3] {
    let along = |axis| {
        let along = comparisons.iter().copied();
        let along: Vec<Comparison> = along.filter(|c| c.axis == axis).collect();
        settings.judged(&along, width, window)
    };
    [
        settings.judged(comparisons, width, window),
        along(Axis::X),
        along(Axis::Y),
    ]
}

/// Bytes of the memory object that a wide kernel reads.
fn memory_bytes(plane: &Plane, kernel: &str) -> Result<u32, ClError> {
    let memory = plane.aligned_len().filter(|&len| len < WIDE_MEMORY);
    let memory = memory
        .ok_or_else(|| ClError::Input(format!("{kernel} reads device memory under 2 GiB")))?;
    to_u32(memory, "a memory object")
}

/// The pixels of rectangles without common pixels: by any comparison, along x and along y.
fn count_judged(judged: &[Vec<Rect>; 3], ignored: Option<&Arc<Bitmap>>) -> JudgedPixels {
    let [any, x, y] = judged.each_ref().map(|rects| match ignored {
        Some(ignored) => ignored.count_judged(rects),
        None => area(rects),
    });
    JudgedPixels { any, x, y }
}
