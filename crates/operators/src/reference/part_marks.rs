//! The marks of a frame's parts, where their pixels lie in the frame; kernels `reference_part_place` and `reference_placed`.

use clinspect_core::{ClError, place::Motion};
use clinspect_opencl::{Arg, ClBuffer, Kernel, Mem, Memory, NdRange, Submission};

use super::{Base, marks::PLACED, part_reader::motion_args};
use crate::{
    MaskTarget, inspection::PackedMask, marker::Expand, source::plain_group, to_i32, to_u32,
};

const PLACE: &str = "reference_part_place";

/// The kernels and their memory.
#[derive(Debug)]
pub(crate) struct PartMarks {
    base: Base,
    place: Kernel,
    placed: Kernel,
    groups: [[usize; 2]; 2],
    expand: Expand,
    /// The marks of the frame's pixels as words, all 0 between frames.
    words: Mem,
}

impl PartMarks {
    /// Of whole frames.
    pub fn new(base: &Base) -> Result<Self, ClError> {
        let (place, place_group) = base.kernel(PLACE)?;
        let placed = base.program.kernel(PLACED)?;
        let placed_group = plain_group(&base.context, &placed)?;
        let bytes = base.mask_bytes().next_multiple_of(size_of::<u32>());
        let marks = Self {
            place,
            placed,
            groups: [place_group, placed_group],
            expand: Expand::new(&base.context, &base.program)?,
            words: base.context.device_memory(bytes)?,
            base: base.clone(),
        };
        marks.clear()?;
        Ok(marks)
    }

    /// Forgets marks that were not sent, because a command has failed.
    ///
    /// # Errors
    /// The failing call.
    pub fn clear(&self) -> Result<(), ClError> {
        let bytes = self.base.mask_bytes().next_multiple_of(size_of::<u32>());
        (self.base.context).zero(&self.words, bytes, "the marks of a frame")
    }

    /// Enqueues the way of a part's marks to where they lie in the frame. `size`: of its cut.
    ///
    /// # Errors
    /// The failing call.
    pub fn place(
        &mut self,
        mask: &ClBuffer,
        size: [usize; 2],
        motion: &Motion,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let [width, height] = self.base.size;
        let [along_x, along_y, columns, rows] = motion_args(motion, size)?;
        let [x, y] = motion
            .reach()
            .map(|reach| to_i32(reach as usize, "a pixel"));
        let args = [
            Arg::Reads(Memory::Buffer(mask)),
            Arg::I32(to_i32(width, "a width")?),
            Arg::I32(to_i32(height, "a height")?),
            along_x,
            along_y,
            columns,
            rows,
            Arg::I32x4([x?, y?, 0, 0]),
            Arg::Mem(&self.words),
        ];
        let [columns, rows] = [size[0].div_ceil(8), size[1]];
        let range = NdRange::cover([columns, rows], self.groups[0]);
        submission.run(&mut self.place, PLACE, &args, &range)
    }

    /// Enqueues the way of all marks to the mask of the frame; there are none then.
    ///
    /// # Errors
    /// The failing call.
    pub fn send(
        &mut self,
        target: MaskTarget,
        (mask, offset): PackedMask,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let bytes = self.base.mask_bytes();
        let args = [
            Arg::Mem(&self.words),
            Arg::U32(to_u32(bytes, "a mask")?),
            Arg::Writes(Memory::Buffer(mask)),
            Arg::U64(offset as u64),
        ];
        let range = NdRange::cover([bytes.div_ceil(size_of::<u32>()), 1], self.groups[1]);
        submission.run(&mut self.placed, PLACED, &args, &range)?;
        (self.expand).run(Memory::Buffer(mask), target, self.base.size, submission)
    }
}
