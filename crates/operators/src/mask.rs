//! The target of a mask, and the kernel that writes a byte per pixel.

use std::sync::Arc;

use clinspect_core::{ClError, mask::packed_stride, ndrange::NdRange};
use clinspect_opencl::{
    Arg, ClBuffer, ClContext, Kernel, Memory, Program, Submission, frame::ClFrame,
};

use crate::{
    source::{plain_group, target_args},
    to_i32, to_u32,
};

/// The target of a mask.
#[derive(Debug, Clone, Copy)]
pub enum MaskTarget<'a> {
    /// Packed from a byte offset on, `ceil(width/8)` bytes per row.
    Packed {
        /// The memory.
        buffer: &'a ClBuffer,
        /// Offset of the first row, bytes.
        offset: usize,
    },
    /// One byte per pixel, 0 or 255, as plane 0 of a frame.
    Grey(&'a ClFrame),
}

/// The memory of a frame's packed mask, and the offset of its first row; `own` if the target is not
/// packed.
pub(crate) fn packed_mask<'a>(
    target: MaskTarget<'a>,
    own: &'a Option<Arc<ClBuffer>>,
) -> Option<(&'a ClBuffer, usize)> {
    match target {
        MaskTarget::Packed { buffer, offset } => Some((buffer, offset)),
        MaskTarget::Grey(_) => own.as_ref().map(|buffer| (&**buffer, 0)),
    }
}

/// The kernel that expands a packed mask to a byte per pixel.
#[derive(Debug)]
pub(crate) struct Expand {
    kernel: Kernel,
    group: [usize; 2],
}

impl Expand {
    /// Takes the kernel from a program for buffers.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, program: &Program) -> Result<Self, ClError> {
        let kernel = program.kernel("mask_expand")?;
        Ok(Self {
            group: plain_group(context, &kernel)?,
            kernel,
        })
    }

    /// Expands the packed mask if the target has a byte per pixel.
    ///
    /// # Errors
    /// The failing call.
    pub fn run(
        &mut self,
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
        let range = NdRange::cover([stride, height], self.group);
        submission.run(&mut self.kernel, "mask_expand", &args, &range)
    }
}
