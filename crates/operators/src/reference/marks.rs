//! What becomes of the marks of a frame: they are opened, and moved to where their pixels lie in the frame.

use std::sync::Arc;

use clinspect_core::{ClError, mask::packed_stride, reference::Warp};
use clinspect_opencl::{Arg, ClBuffer, Kernel, Mem, Memory, Meter, NdRange, Rows, Submission};

use super::{Base, warper::Warper};
use crate::{to_i32, to_u32};

const OPEN: &str = "reference_open";
const PLACE: &str = "reference_place";
pub(super) const PLACED: &str = "reference_placed";

/// A packed mask, and the offset of its first row.
pub(super) type Packed<'a> = (&'a ClBuffer, usize);

/// The kernels and their memory.
#[derive(Debug)]
pub(super) struct OpenedMarks {
    open: Kernel,
    place: Kernel,
    placed: Kernel,
    groups: [[usize; 2]; 3],
    /// The marks of the model's pixels, where they differ from those of the frame.
    own: Arc<ClBuffer>,
    /// The marks of the frame's pixels as words, all 0 between frames.
    words: Mem,
}

impl OpenedMarks {
    pub fn new(base: &Base, meter: &Arc<Meter>) -> Result<Self, ClError> {
        let (open, open_group) = base.kernel(OPEN)?;
        let (place, place_group) = base.kernel(PLACE)?;
        let (placed, placed_group) = base.kernel(PLACED)?;
        let bytes = base.mask_bytes();
        let words = bytes.next_multiple_of(size_of::<u32>());
        let marks = Self {
            open,
            place,
            placed,
            groups: [open_group, place_group, placed_group],
            own: Arc::new(ClBuffer::new(&base.context, bytes, meter)?),
            words: base.context.device_memory(words)?,
        };
        base.context
            .zero(&marks.words, words, "the marks of a frame")?;
        Ok(marks)
    }

    /// The marks of the model's pixels of the last frame.
    pub fn own(&self) -> &Arc<ClBuffer> {
        &self.own
    }

    /// Enqueues the opening of a mask into [`Self::own`]; counts the pixels.
    pub fn open(
        &mut self,
        base: &Base,
        (mask, offset): Packed,
        counters: [Arg; 2],
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let [width, height] = base.size;
        let [counters, slot] = counters;
        let args = [
            Arg::Reads(Memory::Buffer(mask)),
            Arg::U64(offset as u64),
            Arg::I32(to_i32(width, "a width")?),
            Arg::I32(to_i32(height, "a height")?),
            Arg::Writes(Memory::Buffer(&self.own)),
            counters,
            slot,
        ];
        let range = NdRange::cover([packed_stride(width), height], self.groups[0]);
        submission.run(&mut self.open, OPEN, &args, &range)
    }

    /// Enqueues a copy of a mask to [`Self::own`], or back.
    pub fn copy(
        &self,
        base: &Base,
        (mask, offset): Packed,
        is_back: bool,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let rows = |buffer, offset| Rows {
            memory: Memory::Buffer(buffer),
            offset,
            stride: packed_stride(base.size[0]),
        };
        let (own, mask) = (rows(&self.own, 0), rows(mask, offset));
        let (from, to) = if is_back { (own, mask) } else { (mask, own) };
        submission.copy(from, to, packed_stride(base.size[0]), base.size[1])
    }

    /// Enqueues the way of the marks of [`Self::own`] to where their pixels lie in the frame.
    pub fn place(
        &mut self,
        base: &Base,
        (warper, warp): (&Warper, &Warp),
        (mask, offset): Packed,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let [width, height] = base.size;
        let stride = packed_stride(width);
        let (item_bytes, range) = if base.context.caps().is_cpu {
            (stride, NdRange::tiles([1, height], 1))
        } else {
            (1, NdRange::cover([stride, height], self.groups[1]))
        };
        let [[low_x, high_x], [low_y, high_y]] = warp.reach();
        let mut args = vec![
            Arg::Reads(Memory::Buffer(&self.own)),
            Arg::I32(to_i32(width, "a width")?),
            Arg::I32(to_i32(height, "a height")?),
        ];
        args.extend(warper.warp_args(warp)?);
        args.extend([
            Arg::I32x4([low_x, high_x, low_y, high_y]),
            Arg::I32(to_i32(item_bytes, "bytes")?),
            Arg::Mem(&self.words),
        ]);
        submission.run(&mut self.place, PLACE, &args, &range)?;
        let bytes = base.mask_bytes();
        let args = [
            Arg::Mem(&self.words),
            Arg::U32(to_u32(bytes, "a mask")?),
            Arg::Writes(Memory::Buffer(mask)),
            Arg::U64(offset as u64),
        ];
        let range = NdRange::cover([bytes.div_ceil(size_of::<u32>()), 1], self.groups[2]);
        submission.run(&mut self.placed, PLACED, &args, &range)
    }
}
