//! Runs a pitch comparison on a frame.

use std::sync::Arc;

use clinspect_core::{
    ClError, mask::packed_stride, ndrange::NdRange, variant::WIDE_MEMORY, window::Window,
};
use clinspect_opencl::{
    Arg, ClBuffer, Memory, Meter, Submission,
    frame::{ClFrame, Plane},
};

use super::{
    Contrast, Counters, LEVELS, Launch, Marked, MaskTarget, PitchThreshold, TILES, fixed::Fixed,
    ignore::Ignore, mask::packed_mask, presence::Judged, scales::Pixels,
};
use crate::{source::source_args, to_i32, to_u32};

/// Rows of the plane, and where their packed mask goes.
struct MaskedRows<'a> {
    first: usize,
    rows: usize,
    mask: Memory<'a>,
    mask_offset: usize,
    /// All pixels of the plane are marked, wherever they lie, and nothing is counted.
    is_all: bool,
}

impl PitchThreshold {
    /// [`Self::run_window`] for a whole frame.
    ///
    /// # Errors
    /// See there.
    pub fn run(
        &mut self,
        frame: &ClFrame,
        target: MaskTarget,
        meter: &Arc<Meter>,
    ) -> Result<Marked, ClError> {
        self.run_window(frame, &Window::frame(self.height), target, meter)
    }

    /// Compares the rows of a window, writes their mask, waits, and returns the number of marked
    /// pixels. `frame` holds the rows of the window; row 0 of the mask is the first processed row.
    ///
    /// # Errors
    /// The failing call; the mask's contents are then undefined.
    pub fn run_window(
        &mut self,
        frame: &ClFrame,
        window: &Window,
        target: MaskTarget,
        meter: &Arc<Meter>,
    ) -> Result<Marked, ClError> {
        let result = self
            .take(window)
            .and_then(|()| self.compare(frame, target, meter));
        self.marked = *result.as_ref().unwrap_or(&Marked::default());
        if result.is_ok() {
            self.slot = 1 - self.slot;
        } else {
            // The frame may be counted in part.
            self.clean = false;
        }
        result
    }

    fn compare(
        &mut self,
        frame: &ClFrame,
        target: MaskTarget,
        meter: &Arc<Meter>,
    ) -> Result<Marked, ClError> {
        let stride = packed_stride(self.width);
        let window = self.window;
        let bytes = stride * window.rows;
        if matches!(target, MaskTarget::Grey(_))
            && self
                .packed
                .as_ref()
                .is_none_or(|packed| packed.size() < bytes)
        {
            self.packed = Some(Arc::new(ClBuffer::new(&self.context, bytes, meter)?));
        }
        let packed = self.packed.clone();
        let (mask, mask_offset) = packed_mask(target, &packed)
            .ok_or_else(|| ClError::Refused("no memory for the packed mask".into()))?;
        let mask = Memory::Buffer(mask);
        let comparison_count = self.comparisons_in_use();
        let context = self.context.clone();
        let mut submission = context.submit(meter, self.judged_bytes());
        if let Some(images) = &mut self.images {
            images.update(frame, &mut submission)?;
        }
        let slot = self.slot;
        if !self.clean {
            self.clean = true;
            submission.zero(&self.counters, size_of::<Counters>(), "the pixel counters")?;
        }
        let rows = MaskedRows {
            first: window.first,
            rows: window.rows,
            mask,
            mask_offset,
            is_all: false,
        };
        let is_summed = self.compare_rows(frame, &rows, slot, &mut submission)?;
        if let (Contrast::Known(level), Some(presence)) = (self.contrast, &mut self.presence)
            && !is_summed
        {
            presence.sum(frame, level, &self.counters, TILES + slot, &mut submission)?;
        }
        if let Some(scales) = &mut self.scales
            && comparison_count > 0
        {
            scales.run(frame, &self.counters, LEVELS + slot, &mut submission)?;
        }
        if let Some(ignore) = &mut self.ignore {
            ignore.clear(mask, mask_offset, &self.counters, slot, &mut submission)?;
        }
        let size = [self.width, window.rows];
        self.expand.run(mask, target, size, &mut submission)?;
        let mut counts: Counters = Counters::default();
        let bytes = bytemuck::cast_slice_mut(&mut counts);
        submission.read(&self.counters, 0, bytes, "the pixel count")?;
        let mut marked = Marked {
            pixels: u64::from(counts[slot]),
            missing: 0,
        };
        let mut fresh = 0;
        let has_levels = self.scales.is_some() && comparison_count > 0;
        if has_levels && counts[LEVELS + slot] > 0 {
            let has_marked = counts[slot] > 0 || !self.marks_whole_frame();
            fresh = self.join_levels(frame, mask, mask_offset, has_marked, meter)?;
            marked.pixels += u64::from(fresh);
        } else if has_levels && let Some(scales) = &mut self.scales {
            scales.note_unmarked();
        }
        if let (Contrast::Known(level), Some(presence)) = (self.contrast, &mut self.presence)
            && counts[TILES + slot] > 0
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
            let [missing_fresh, missing] =
                presence.mark(&self.context, level, &judged, mask, mask_offset, meter)?;
            fresh += missing_fresh;
            marked.pixels += u64::from(missing_fresh);
            marked.missing = u64::from(missing);
        }
        if fresh > 0 && matches!(target, MaskTarget::Grey(_)) {
            let mut submission = self.context.submit(meter, self.width * window.rows);
            self.expand.run(mask, target, size, &mut submission)?;
            submission.send()?.wait("the mask")?;
        }
        Ok(marked)
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
}

/// Bytes of the memory object that a wide kernel reads.
fn memory_bytes(plane: &Plane, kernel: &str) -> Result<u32, ClError> {
    let memory = plane.aligned_len().filter(|&len| len < WIDE_MEMORY);
    let memory = memory
        .ok_or_else(|| ClError::Input(format!("{kernel} reads device memory under 2 GiB")))?;
    to_u32(memory, "a memory object")
}
