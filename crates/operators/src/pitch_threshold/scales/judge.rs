//! The launches that make and judge the levels of a frame.

use clinspect_core::{ClError, mask::packed_stride, ndrange::NdRange, pitch::Axis};
use clinspect_opencl::{Arg, ClContext, Mem, Memory, Submission, frame::ClFrame};

use super::Scales;
use crate::{source::source_args, to_i32, to_u32};

/// Blocks that a work-item of a GPU makes; the kernels' ITEM_BLOCKS.
const ITEM_BLOCKS: usize = 4;
/// Rows of the frame per work-item of `scales_first`; the kernel's FIRST_ROWS.
const FIRST_ROWS: usize = 4;
/// Rows of the next level's pictures that a work-item of a GPU makes; the kernels' MADE_ROWS.
const MADE_ROWS: usize = 4;
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
