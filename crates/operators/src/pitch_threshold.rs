//! Pitch comparison, threshold and packed mask; kernels in `kernels/pitch_threshold.cl`.

mod along;
mod difference;
mod learning;
mod prepare;
mod scales;
mod settings;
mod wide;

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{Finder, Limits, Listed},
    ignored::Bitmap,
    lattice::{Distance, Lattice, VectorComparison},
    layout::SampleType,
    learning::Demand,
    region::Rect,
    sight::Sight,
    threshold::Reached,
    variant::WIDE_MEMORY,
    window::{Reach, Window},
};
use clinspect_opencl::{
    Arg, ClContext, Kernel, Mem, Memory, Meter, NdRange, Submission,
    frame::{ClFrame, Plane},
};

use crate::{
    MaskTarget,
    inspection::{
        Basis, Inspection, JudgedPixels, Limit, Marked, PackedMask, Picture, Repeating, Subject,
    },
    lister::Lister,
    marker::Marker,
    presence::{ComparedFrame, Contrast, Presence},
    regions::{self, Ignore, Rois},
    source::{PlaneImages, source_args},
    submitted::{self, Finished, Submitted},
    to_i32, to_u32,
};
use along::Blocks;
use difference::Differences;
use learning::BeforeTrial;
use scales::{Pixels, Scales};
pub use settings::{Borders, Compare, PitchThresholdSettings, Polarity};
use wide::{Fixed, WideSplit};

/// Two counters of marked pixels, then two of tiles without the pattern, and two that count where coarser levels mark.
const COUNTERS: usize = 6;
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
    /// Along vectors of any angle.
    Blocks(Blocks),
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
    marker: Marker,
    comparisons: Mem,
    comparison_list: Vec<VectorComparison>,
    rois: Rois,
    /// The whole plane as a region.
    everywhere: Rois,
    /// Counters of a comparison whose counts are not used.
    unused_counters: Mem,
    /// A faster kernel for some frames.
    fixed: Option<Fixed>,
    presence: Option<Presence>,
    contrast: Contrast,
    /// The minimum contrast is half of the measured one.
    is_measured: bool,
    /// What a trial of other limits replaces.
    before_trial: Option<BeforeTrial>,
    scales: Option<Scales>,
    settings: PitchThresholdSettings,
    /// The pitches along x and y, or the lengths of the lattice's vectors, px; 0 for none.
    pitches: [f64; 2],
    /// The vectors along which pixels are compared, if not along rows and columns.
    lattice: Option<Lattice>,
    /// The window of the last frame.
    window: Window,
    /// The pitches or vectors themselves; by its number, each that is in use.
    repeats: Vec<(usize, Distance)>,
    weak: Vec<VectorComparison>,
    differences: Option<Differences>,
    sample: SampleType,
    theta: i32,
    flags: i32,
    width: usize,
    /// Bytes of a row of the frame's samples.
    row_bytes: usize,
    /// Bytes of a row of the mask.
    stride: usize,
    /// The pixels that any comparison, those along x or the first vector, and those along y or the second vector judge if no
    /// pixel is ignored.
    judged: [Vec<Rect>; 3],
    judged_pixels: JudgedPixels,
    ignore: Option<Ignore>,
    images: Option<PlaneImages>,
}

impl PitchThreshold {
    /// The comparisons that can judge less than half of the pixels of the regions of interest.
    pub fn weak_comparisons(&self) -> &[VectorComparison] {
        &self.weak
    }

    /// The vectors along which frames are compared, if not along rows and columns.
    pub fn lattice(&self) -> Option<Lattice> {
        self.lattice
    }

    /// The minimum contrast in use.
    pub fn contrast(&self) -> Contrast {
        self.contrast
    }

    /// Takes the window of a strip.
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
            let ignored = regions::show(&mut self.ignore, &self.context, window)?;
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
        let Some(presence) = self.presence.as_mut().filter(|_| !self.repeats.is_empty()) else {
            return Ok(None);
        };
        self.marker.is_clean = false;
        let repeats = (self.repeats.iter())
            .map(|&(number, distance)| (distance, estimated.get(number) == Some(&true)));
        let repeats: Vec<_> = repeats.collect();
        presence.learn(
            &self.context,
            frame,
            rows,
            &repeats,
            self.marker.counters(),
            meter,
        )
    }

    fn set_contrast(&mut self, contrast: Contrast) -> bool {
        if self.presence.is_none() || contrast == Contrast::Off {
            return false;
        }
        let was_measured = std::mem::replace(&mut self.is_measured, true);
        std::mem::replace(&mut self.contrast, contrast) != contrast || !was_measured
    }
}

impl Submitted for PitchThreshold {
    fn marker(&mut self) -> (&Arc<ClContext>, &mut Marker) {
        (&self.context, &mut self.marker)
    }

    fn mask_size(&self, window: &Window) -> (usize, usize) {
        (self.width, self.row_bytes * window.rows)
    }

    fn look(&mut self, subject: Subject, _leader: Option<&Self>) -> Result<(), ClError> {
        // All frames have the window that the operator was made for.
        if subject.window.is_web {
            self.take(&subject.window)?;
        }
        Ok(())
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
        self.marker.clean(submission)?;
        let slot = self.marker.slot;
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
            presence.sum(
                frame,
                level,
                self.marker.counters(),
                TILES + slot,
                submission,
            )?;
        }
        let comparison_count = self.comparisons_in_use();
        if let Some(scales) = &mut self.scales
            && comparison_count > 0
        {
            scales.run(frame, self.marker.counters(), LEVELS + slot, submission)?;
        }
        if let Some(ignore) = &mut self.ignore {
            ignore.clear(mask, mask_offset, self.marker.counters(), slot, submission)?;
        }
        Ok(())
    }

    fn finish(
        &mut self,
        Subject {
            frame,
            window,
            meter,
        }: Subject,
        mask: PackedMask,
        counts: &[u32],
        missing: Option<PackedMask>,
    ) -> Result<Finished, ClError> {
        let marker = &self.marker;
        let [own, tiles, levels] = [0, TILES, LEVELS].map(|first| marker.counted(counts, first));
        let mut finished = Finished::default();
        finished.marked.pixels = own;
        let has_levels = self.scales.is_some() && self.comparisons_in_use() > 0;
        if has_levels && levels > 0 {
            let has_marked = own > 0 || !self.marks_whole_frame();
            let fresh = self.join_levels(frame, mask, has_marked, meter)?;
            finished.late += u64::from(fresh);
        } else if has_levels && let Some(scales) = &mut self.scales {
            scales.note_unmarked();
        }
        if let (Contrast::Known(level), Some(presence)) = (self.contrast, &mut self.presence)
            && tiles > 0
        {
            let judged = ComparedFrame {
                window,
                comparisons: &self.comparisons,
                comparison_count: self.comparison_list.len(),
                rois: &self.rois.memory,
                roi_count: self.rois.words.len(),
                flags: self.flags,
                ignored: self.ignore.as_ref().map(Ignore::memory),
            };
            let masks = (mask, missing);
            presence.finish(&self.context, level, &judged, masks, (&mut finished, meter))?;
        }
        finished.marked.pixels += finished.late;
        self.marker.finish(finished.marked);
        Ok(finished)
    }

    fn with_difference_args(
        &mut self,
        subject: Subject,
        _mask: PackedMask,
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
        // Without coarser levels the comparisons stand in for their memory, which the kernel does not read; along vectors
        // there are none.
        let levels = match &self.scales {
            Some(scales) => scales.difference_args()?,
            None => {
                let none = Arg::Mem(&self.comparisons);
                [none, none, Arg::I32(0), none, none]
            }
        };
        let levels = match self.lattice {
            Some(_) => &[],
            None => &levels[..],
        };
        measure(
            &mut self.marker.lister,
            &self.context,
            [&frame_args, levels],
        )
    }
}

impl Inspection for PitchThreshold {
    fn mark(&mut self, subject: Subject, mask: MaskTarget) -> Result<Marked, ClError> {
        submitted::mark(self, subject, mask)
    }

    fn list(
        &mut self,
        subject: Subject,
        mask: MaskTarget,
        finder: &mut Finder,
        limits: &Limits,
    ) -> Result<Listed, ClError> {
        submitted::list(self, subject, mask, finder, limits)
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

    fn sights(&mut self, values: Option<&[f64]>) -> Result<Vec<Sight>, ClError> {
        self.sights_of(values)
    }

    fn sees_all_alike(&self) -> bool {
        true
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
            lattice: self.lattice,
            alignment: None,
            parts: None,
            ignored: self.ignore.as_ref().map(Ignore::bitmap).cloned(),
        }
    }

    fn reach(&self) -> Reach {
        self.settings.reach(&self.comparison_list)
    }
}

impl PitchThreshold {
    /// Enqueues the comparison of rows. Returns whether it sums up the tiles, too.
    fn compare_rows(
        &mut self,
        frame: &ClFrame,
        rows: &MaskedRows,
        slot: usize,
        submission: &mut Submission,
    ) -> Result<bool, ClError> {
        let stride = self.stride;
        let comparison_count = self.comparisons_in_use();
        let (rois, counters) = if rows.is_all {
            (&self.everywhere, &self.unused_counters)
        } else {
            (&self.rois, self.marker.counters())
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
        ];
        let fixed = self.fixed.as_mut().filter(|fixed| {
            // The kernel compares whatever the number of comparisons.
            comparison_count > 0 && plane.aligned_len().is_some() && fixed.reads(plane)
        });
        // The fixed kernel has its comparisons as constants; it reads the memory where pixels are judged one by one.
        if fixed.is_none() {
            args.push(Arg::I32(to_i32(comparison_count, "comparisons")?));
        }
        args.extend([
            Arg::Mem(&rois.memory),
            Arg::I32(to_i32(rois.words.len(), "regions")?),
            Arg::I32(self.theta),
            Arg::I32(self.flags),
            Arg::Mem(counters),
            Arg::U32(to_u32(slot, "a counter")?),
        ]);
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
            Launch::Blocks(blocks) => blocks.range(self.width, rows.rows),
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
                        Arg::Mem(self.marker.counters()),
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
        match self.marker.packed.clone() {
            Some(mask) if self.scales.is_some() => {
                self.join_levels(frame, (&mask, 0), true, meter)?;
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
        (mask, mask_offset): PackedMask,
        has_marked: bool,
        meter: &Arc<Meter>,
    ) -> Result<u32, ClError> {
        let mask = Memory::Buffer(mask);
        let context = self.context.clone();
        let bytes = self.stride * self.window.rows;
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
}

/// The pixels of a window that any comparison, those along x or the first vector, and those along y or the second vector
/// judge.
fn judged(
    settings: &PitchThresholdSettings,
    comparisons: &[VectorComparison],
    width: usize,
    window: &Window,
) -> [Vec<Rect>; 3] {
    let along = |vector| {
        let along = comparisons.iter().copied();
        let along: Vec<VectorComparison> = along.filter(|c| c.vector == vector).collect();
        settings.judged(&along, width, window)
    };
    [
        settings.judged(comparisons, width, window),
        along(0),
        along(1),
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
    let [any, x, y] = judged
        .each_ref()
        .map(|rects| regions::count(rects, ignored));
    JudgedPixels { any, x, y }
}
