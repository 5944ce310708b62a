//! What operators have that mark pixels: counters, masks, and the list of their defects.

use std::sync::Arc;

use clinspect_core::{ClError, mask::packed_stride};
use clinspect_opencl::{
    Arg, ClBuffer, ClContext, Kernel, Mem, Memory, NdRange, Program, Submission,
};

use crate::{
    MaskTarget,
    inspection::Marked,
    lister::Lister,
    source::{plain_group, target_args},
    to_i32, to_u32,
};

/// The counters and masks of an operator that marks pixels by itself, and its list of their defects.
#[derive(Debug)]
pub struct Marker {
    pub(crate) lister: Lister,
    pub(crate) expand: Expand,
    /// Number of the counters: two of each kind. The commands of a frame count in those at `slot`, and clear the others for
    /// the next frame.
    pub count: usize,
    pub slot: usize,
    /// The counters at `slot` are zero.
    pub is_clean: bool,
    /// The result of the last frame.
    pub marked: Marked,
    /// Memory for a packed mask that is then expanded; allocated at first use.
    pub packed: Option<Arc<ClBuffer>>,
}

impl Marker {
    /// Prepares `count` counters, and the kernels of a program for buffers. `has_bus`: masks cross a bus to the host.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(
        context: &ClContext,
        program: &Program,
        count: usize,
        has_bus: bool,
    ) -> Result<Self, ClError> {
        let lister = Lister::new(context, program, has_bus)?;
        Ok(Self {
            lister,
            expand: Expand::new(context, program)?,
            count,
            slot: 0,
            is_clean: true,
            marked: Marked::default(),
            packed: None,
        })
    }

    /// The memory of the counters.
    pub fn counters(&self) -> &Mem {
        self.lister.results.memory()
    }

    /// Clears the counters, unless the last frame left them clear.
    ///
    /// # Errors
    /// The failing call.
    pub fn clean(&mut self, submission: &mut Submission) -> Result<(), ClError> {
        if !std::mem::replace(&mut self.is_clean, true) {
            self.lister.results.clear(submission)?;
        }
        Ok(())
    }

    /// Of the counters of a frame that were read: the one of the kind whose first counter is `first`.
    pub fn counted(&self, counts: &[u32], first: usize) -> u64 {
        counts.get(first + self.slot).copied().unwrap_or(0).into()
    }

    /// The kernels' arguments `counters` and `slot`.
    ///
    /// # Errors
    /// None in practice: a slot is 0 or 1.
    pub fn counter_args(&self) -> Result<[Arg<'_>; 2], ClError> {
        Ok([
            Arg::Mem(self.counters()),
            Arg::U32(to_u32(self.slot, "a counter")?),
        ])
    }

    /// The frame has this result, and the next frame counts in the other counters.
    pub fn finish(&mut self, marked: Marked) {
        self.marked = marked;
        self.slot = 1 - self.slot;
    }

    /// The frame may be counted in part.
    pub fn fail(&mut self) {
        self.marked = Marked::default();
        self.is_clean = false;
    }
}

/// `count` counters, set to zero.
///
/// # Errors
/// The failing call.
pub(crate) fn counters(context: &ClContext, count: usize) -> Result<Mem, ClError> {
    let bytes = count * size_of::<u32>();
    let mem = context.device_memory(bytes)?;
    context.zero(&mem, bytes, "the pixel counters")?;
    Ok(mem)
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
