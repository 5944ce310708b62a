//! Reads a mask that lies in a GPU's memory, of which only the rows with a marked pixel cross the bus; kernel
//! `mask_set_rows` in `kernels/pitch_mask.cl`.

use std::sync::Arc;

use clinspect_core::{ClError, ndrange::NdRange};
use clinspect_opencl::{Arg, ClBuffer, ClContext, Kernel, Mem, Memory, Meter, Program};

use crate::to_u32;

const KERNEL: &str = "mask_set_rows";
/// Rows that are read. A mask with more of them is read whole.
const CAPACITY: usize = 64;
/// More marked pixels are expected to lie in more rows.
const MOST_PIXELS: u64 = 64 * CAPACITY as u64;
/// Work-items per row.
const GROUP: usize = 64;
/// Two counters of set rows, which take turns.
const COUNTERS: usize = 2;

/// The kernel and its memory.
#[derive(Debug)]
pub(super) struct SetRows {
    kernel: Kernel,
    group: usize,
    /// The counters, the numbers of the rows, and the rows.
    out: Option<Mem>,
    slot: usize,
    read: Vec<u32>,
    /// The last mask, and the rows that are not clear.
    mask: Vec<u8>,
    set: Vec<u32>,
}

impl SetRows {
    /// Prepares the kernel.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, program: &Program) -> Result<Self, ClError> {
        let kernel = program.kernel(KERNEL)?;
        Ok(Self {
            group: GROUP.min(context.kernel_work_group(&kernel)?),
            kernel,
            out: None,
            slot: 0,
            read: Vec::new(),
            mask: Vec::new(),
            set: Vec::new(),
        })
    }

    /// Whether a mask with this number of marked pixels may have few enough rows.
    pub fn may_suffice(pixels: u64) -> bool {
        pixels <= MOST_PIXELS
    }

    /// The bytes of a mask of `rows` rows and `stride` bytes a row; `None` if too many rows have a marked pixel.
    ///
    /// # Errors
    /// The failing call.
    pub fn read(
        &mut self,
        context: &Arc<ClContext>,
        (mask, mask_offset): (&ClBuffer, usize),
        [stride, rows]: [usize; 2],
        meter: &Arc<Meter>,
    ) -> Result<Option<&[u8]>, ClError> {
        let words = COUNTERS + CAPACITY + (CAPACITY * stride).div_ceil(size_of::<u32>());
        let mut submission = context.submit(meter);
        // After a failure below the counters are unknown, and the memory is made again.
        let out = match self.out.take() {
            Some(out) if self.read.len() == words => out,
            _ => {
                let out = context.device_memory(words * size_of::<u32>())?;
                let counters = COUNTERS * size_of::<u32>();
                context.zero(&out, counters, "the counters of set rows")?;
                self.slot = 0;
                out
            }
        };
        let args = [
            Arg::Reads(Memory::Buffer(mask)),
            Arg::U64(mask_offset as u64),
            Arg::U32(to_u32(stride, "a stride")?),
            Arg::Mem(&out),
            Arg::U32(to_u32(self.slot, "a counter")?),
            Arg::U32(to_u32(CAPACITY, "rows")?),
        ];
        let range = NdRange::groups(rows, self.group);
        submission.run(&mut self.kernel, KERNEL, &args, &range)?;
        submission.measure(stride * rows);
        self.read.resize(words, 0);
        let bytes = bytemuck::cast_slice_mut(&mut self.read);
        submission.read(&out, 0, bytes, "the set rows of a mask")?;
        self.out = Some(out);
        let count = self.read[self.slot] as usize;
        self.slot = 1 - self.slot;
        if count > CAPACITY {
            return Ok(None);
        }
        if self.mask.len() == stride * rows {
            for row in self.set.drain(..) {
                if let Some(row) = row_of(&mut self.mask, stride, row) {
                    row.fill(0);
                }
            }
        } else {
            self.set.clear();
            self.mask = vec![0; stride * rows];
        }
        let (numbers, data) = self.read[COUNTERS..].split_at(CAPACITY);
        self.set.extend_from_slice(&numbers[..count]);
        let data: &[u8] = bytemuck::cast_slice(data);
        for (&row, bytes) in self.set.iter().zip(data.chunks_exact(stride)) {
            if let Some(row) = row_of(&mut self.mask, stride, row) {
                row.copy_from_slice(bytes);
            }
        }
        Ok(Some(&self.mask))
    }
}

/// A row of a mask.
fn row_of(mask: &mut [u8], stride: usize, row: u32) -> Option<&mut [u8]> {
    mask.chunks_exact_mut(stride).nth(row as usize)
}
