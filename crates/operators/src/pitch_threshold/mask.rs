//! The target of a mask.

use std::sync::Arc;

use clinspect_opencl::ClBuffer;
use clinspect_opencl::frame::ClFrame;

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
