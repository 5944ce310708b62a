//! Runs a pitch comparison on a frame.

use std::sync::Arc;

use clinspect_core::{ClError, mask::packed_stride, ndrange::NdRange, variant::WIDE_MEMORY};
use clinspect_opencl::{
    Arg, ClBuffer, Kernel, Memory, Meter, Submission,
    frame::{ClFrame, Plane},
};

use super::{
    Contrast, Counters, JudgedPixels, Marked, MaskTarget, PitchThreshold, TILES, fixed::Fixed,
    ignore::Ignore, mask::packed_mask, presence::Judged,
};
use crate::{
    source::{source_args, target_args},
    to_i32, to_u32,
};

impl PitchThreshold {
    /// Compares a frame, writes its mask, waits, and returns the number of marked pixels.
    ///
    /// # Errors
    /// The failing call; the mask's contents are then undefined.
    pub fn run(
        &mut self,
        frame: &ClFrame,
        target: MaskTarget,
        meter: &Arc<Meter>,
    ) -> Result<Marked, ClError> {
        let result = self.compare(frame, target, meter);
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
        if matches!(target, MaskTarget::Grey(_)) && self.packed.is_none() {
            self.packed = Some(ClBuffer::new(&self.context, stride * self.height, meter)?);
        }
        let (mask, mask_offset) = packed_mask(target, &self.packed)
            .ok_or_else(|| ClError::Refused("no memory for the packed mask".into()))?;
        let mask = Memory::Buffer(mask);
        let comparison_count = match self.contrast {
            Contrast::Unknown => 0,
            _ => self.comparison_count,
        };
        if let Some(ignore) = &mut self.ignore
            && ignore.show(&self.context, 0, self.height)?
        {
            self.judged_pixels = JudgedPixels::of(&self.judged, Some(ignore.bitmap()));
        }
        let mut submission = self.context.submit(meter);
        if let Some(images) = &mut self.images {
            images.update(frame, &mut submission)?;
        }
        let slot = self.slot;
        if !self.clean {
            self.clean = true;
            submission.zero(&self.counters, size_of::<Counters>(), "the pixel counters")?;
        }
        let plane = frame.plane(0)?;
        let image = self.images.as_ref().and_then(|images| images.get(0));
        let [src, src_offset, src_stride] = source_args(plane, image, 0)?;
        let mut args = vec![
            src,
            src_offset,
            src_stride,
            Arg::I32(to_i32(self.width, "a width")?),
            Arg::I32(to_i32(self.height, "a height")?),
            Arg::Writes(mask),
            Arg::U64(mask_offset as u64),
            Arg::U32(to_u32(stride, "a stride")?),
            Arg::Mem(&self.comparisons),
            Arg::I32(to_i32(comparison_count, "comparisons")?),
            Arg::Mem(&self.rois),
            Arg::I32(to_i32(self.roi_count, "regions")?),
            Arg::I32(self.theta),
            Arg::I32(self.flags),
            Arg::Mem(&self.counters),
            Arg::U32(to_u32(slot, "a counter")?),
        ];
        let fixed = self.fixed.as_mut().filter(|fixed| {
            // The kernel compares whatever the number of comparisons.
            comparison_count > 0 && plane.aligned_len().is_some() && fixed.reads(plane)
        });
        let (kernel, name, wide) = match fixed {
            Some(fixed) => (
                &mut fixed.kernel,
                Fixed::NAME,
                Some((fixed.split, fixed.group)),
            ),
            None => (&mut self.kernel, self.name, self.wide),
        };
        let mut range = self.range;
        let mut is_summed = false;
        if let Some((split, group)) = wide {
            // The kernel also sums up the tiles: another launch would cost as much as the sums.
            let tiles = match (self.contrast, &self.presence) {
                (Contrast::Known(level), Some(presence)) => Some((level, presence)),
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
                ]),
            }
            range = split.range(group, tile_groups);
        }
        submission.run(kernel, name, &args, &range)?;
        if let (Contrast::Known(level), Some(presence)) = (self.contrast, &mut self.presence)
            && !is_summed
        {
            presence.sum(frame, level, &self.counters, TILES + slot, &mut submission)?;
        }
        if let Some(ignore) = &mut self.ignore {
            ignore.clear(mask, mask_offset, &self.counters, slot, &mut submission)?;
        }
        Self::expand(
            &mut self.expand,
            self.expand_group,
            mask,
            target,
            [self.width, self.height],
            &mut submission,
        )?;
        submission.measure(self.width * self.height);
        let mut counts: Counters = [0; 4];
        let bytes = bytemuck::cast_slice_mut(&mut counts);
        submission.read(&self.counters, 0, bytes, "the pixel count")?;
        let mut marked = Marked {
            pixels: u64::from(counts[slot]),
            missing: 0,
        };
        if let (Contrast::Known(level), Some(presence)) = (self.contrast, &mut self.presence)
            && counts[TILES + slot] > 0
        {
            let judged = Judged {
                comparisons: &self.comparisons,
                comparison_count: self.comparison_count,
                rois: &self.rois,
                roi_count: self.roi_count,
                flags: self.flags,
                ignored: self.ignore.as_ref().map(Ignore::memory),
            };
            let [fresh, missing] =
                presence.mark(&self.context, level, &judged, mask, mask_offset, meter)?;
            marked.pixels += u64::from(fresh);
            marked.missing = u64::from(missing);
            if fresh > 0 && matches!(target, MaskTarget::Grey(_)) {
                let mut submission = self.context.submit(meter);
                let size = [self.width, self.height];
                Self::expand(
                    &mut self.expand,
                    self.expand_group,
                    mask,
                    target,
                    size,
                    &mut submission,
                )?;
                submission.send()?.wait("the mask")?;
            }
        }
        Ok(marked)
    }

    /// Expands the packed mask if the target has a byte per pixel.
    fn expand(
        kernel: &mut Kernel,
        group: [usize; 2],
        mask: Memory,
        target: MaskTarget,
        [width, height]: [usize; 2],
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let MaskTarget::Grey(out) = target else {
            return Ok(());
        };
        let stride = packed_stride(width);
        let [dst, dst_offset, dst_stride] = target_args(out.plane(0)?, 0)?;
        let args = [
            Arg::Reads(mask),
            Arg::U32(to_u32(stride, "a stride")?),
            dst,
            dst_offset,
            dst_stride,
            Arg::I32(to_i32(width, "a width")?),
            Arg::I32(to_i32(height, "a height")?),
        ];
        let range = NdRange::cover([stride, height], group);
        submission.run(kernel, "mask_expand", &args, &range)
    }
}

/// Bytes of the memory object that a wide kernel reads.
fn memory_bytes(plane: &Plane, kernel: &str) -> Result<u32, ClError> {
    let memory = plane.aligned_len().filter(|&len| len < WIDE_MEMORY);
    let memory = memory
        .ok_or_else(|| ClError::Input(format!("{kernel} reads device memory under 2 GiB")))?;
    to_u32(memory, "a memory object")
}
