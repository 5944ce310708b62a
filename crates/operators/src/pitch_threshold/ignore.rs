//! Clears the ignored pixels in packed masks; kernel `kernels/mask_ignore.cl`.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    ignored::{Bitmap, Ignored},
    ndrange::NdRange,
};
use clinspect_opencl::{Arg, ClContext, Kernel, Mem, Memory, Program, Submission};

use super::upload;
use crate::to_u32;

const KERNEL: &str = "mask_ignore";
/// Bytes of a mask that the kernel clears at once.
const WORD: usize = 4;
/// Work-items per work-group on a GPU.
const GROUP: usize = 64;
/// Work-items per compute unit of a CPU, in work-groups of one.
const ITEMS_PER_UNIT: usize = 4;

/// The ignored pixels on the device.
#[derive(Debug)]
pub(super) struct Ignore {
    pixels: Arc<Ignored>,
    /// The rows that are on the device, and the number of the first one.
    bitmap: Arc<Bitmap>,
    first: u64,
    memory: Mem,
    kernel: Kernel,
    /// Most work-items; `None` for one per word.
    items: Option<usize>,
    group: usize,
}

impl Ignore {
    /// Uploads `rows` rows from row 0 on. `program` has the kernel.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(
        context: &ClContext,
        program: &Program,
        pixels: &Arc<Ignored>,
        rows: usize,
    ) -> Result<Self, ClError> {
        let bitmap = Arc::new(pixels.rows(0, rows));
        let kernel = program.kernel(KERNEL)?;
        let caps = context.caps();
        Ok(Self {
            memory: upload(context, bitmap.bytes(), "ignored pixels")?,
            items: caps.is_cpu.then_some(caps.compute_units * ITEMS_PER_UNIT),
            group: if caps.is_cpu {
                1
            } else {
                GROUP.min(context.kernel_work_group(&kernel)?)
            },
            kernel,
            pixels: pixels.clone(),
            bitmap,
            first: 0,
        })
    }

    /// The rows that are on the device.
    pub fn bitmap(&self) -> &Arc<Bitmap> {
        &self.bitmap
    }

    /// The same for the kernels, packed as a mask is.
    pub fn memory(&self) -> &Mem {
        &self.memory
    }

    /// Takes `rows` rows from row `first` on, and uploads them if they differ. Returns whether they
    /// differ.
    ///
    /// # Errors
    /// The failing call.
    pub fn show(&mut self, context: &ClContext, first: u64, rows: usize) -> Result<bool, ClError> {
        let before = (self.first, self.bitmap.rows());
        let is_uniform = |(first, rows)| self.pixels.is_uniform(first, rows);
        if before == (first, rows)
            || (before.1 == rows && is_uniform(before) && is_uniform((first, rows)))
        {
            return Ok(false);
        }
        let bitmap = self.pixels.rows(first, rows);
        self.first = first;
        if bitmap == *self.bitmap {
            return Ok(false);
        }
        if bitmap.bytes().len() > self.bitmap.bytes().len() {
            self.memory = upload(context, bitmap.bytes(), "ignored pixels")?;
        } else {
            context.write(&self.memory, 0, bitmap.bytes(), "ignored pixels")?;
        }
        self.bitmap = Arc::new(bitmap);
        Ok(true)
    }

    /// Clears the ignored pixels of a mask with the rows of [`Self::show`], and subtracts those that
    /// were marked from the counter `slot`.
    ///
    /// # Errors
    /// The failing call.
    pub fn clear(
        &mut self,
        mask: Memory,
        mask_offset: usize,
        counters: &Mem,
        slot: usize,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let bytes = self.bitmap.bytes().len();
        let words = bytes.div_ceil(WORD);
        let items = self.items.map_or(words, |items| items.min(words)).max(1);
        let args = [
            Arg::Mem(&self.memory),
            Arg::Writes(mask),
            Arg::U64(mask_offset as u64),
            Arg::U32(to_u32(bytes, "a mask")?),
            Arg::U32(to_u32(words.div_ceil(items), "words")?),
            Arg::Mem(counters),
            Arg::U32(to_u32(slot, "a counter")?),
        ];
        let range = NdRange::groups(items.div_ceil(self.group), self.group);
        submission.run(&mut self.kernel, KERNEL, &args, &range)
    }
}
