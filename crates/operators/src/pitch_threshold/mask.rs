//! Where masks are written.

use clinspect_opencl::ClBuffer;
use clinspect_opencl::frame::ClFrame;

/// Where a mask goes.
#[derive(Debug, Clone, Copy)]
pub enum MaskTarget<'a> {
    /// Packed, from a byte offset on, `ceil(width/8)` bytes a row.
    Packed {
        /// The memory.
        buffer: &'a ClBuffer,
        /// Bytes before the first row.
        offset: usize,
    },
    /// One byte a pixel, 0 or 255, as plane 0 of a frame.
    Grey(&'a ClFrame),
}

/// Where a frame's packed mask is, and bytes before its first row; `own` holds it where the target
/// is not packed.
pub(super) fn packed_mask<'a>(
    target: MaskTarget<'a>,
    own: &'a Option<ClBuffer>,
) -> Option<(&'a ClBuffer, usize)> {
    match target {
        MaskTarget::Packed { buffer, offset } => Some((buffer, offset)),
        MaskTarget::Grey(_) => own.as_ref().map(|buffer| (buffer, 0)),
    }
}
