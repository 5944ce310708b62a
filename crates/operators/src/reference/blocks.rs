//! Sums of 4x4 samples of a frame; kernel `reference_blocks`.

use clinspect_core::ClError;
use clinspect_opencl::{Arg, Kernel, Mem, Meter, NdRange, frame::ClFrame};

use super::{BLOCK, Base};
use crate::to_i32;

const BLOCKS: &str = "reference_blocks";
/// Side of a block whose samples are summed, px.
const SIDE: usize = 4;

/// The kernel and its results.
#[derive(Debug)]
pub(super) struct BlockSums {
    kernel: Kernel,
    group: [usize; 2],
    out: Mem,
    sums: Vec<u16>,
}

impl BlockSums {
    pub fn new(base: &Base) -> Result<Self, ClError> {
        let (kernel, group) = base.kernel(BLOCKS)?;
        let blocks = base.size.map(|n| n / SIDE).iter().product();
        Ok(Self {
            kernel,
            group,
            out: (base.context).device_memory(blocks * size_of::<u16>())?,
            sums: vec![0; blocks],
        })
    }

    /// Those of a frame in grey levels of 8 bits, row by row. Waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn of(&mut self, base: &Base, frame: &ClFrame, meter: &Meter) -> Result<&[u16], ClError> {
        let [src, offset, stride, ..] = base.frame_args(frame.plane(0)?)?;
        let [across, down] = base.size.map(|n| n / SIDE);
        let (item_blocks, range) = if base.context.caps().is_cpu {
            let blocks = across.next_multiple_of(BLOCK / SIDE);
            (blocks, NdRange::tiles([1, down], 1))
        } else {
            (1, NdRange::cover([across, down], self.group))
        };
        let args = [
            src,
            offset,
            stride,
            Arg::I32(to_i32(across, "blocks")?),
            Arg::I32(to_i32(down, "blocks")?),
            Arg::I32(to_i32(item_blocks, "blocks")?),
            Arg::I32(base.depth.saturating_sub(8) as i32),
            Arg::Mem(&self.out),
        ];
        let mut submission = base.context.submit(meter, base.bytes());
        submission.run(&mut self.kernel, BLOCKS, &args, &range)?;
        let bytes = bytemuck::cast_slice_mut(&mut self.sums);
        submission.read(&self.out, 0, bytes, "sums of the frame")?;
        Ok(&self.sums)
    }
}
