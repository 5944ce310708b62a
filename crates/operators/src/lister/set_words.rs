//! Reads a mask of few marked pixels that lies in a GPU's memory: only the words that are not 0 cross the bus; kernel
//! `mask_set_words` in `kernels/mask_expand.cl`.

use std::sync::Arc;

use clinspect_core::{ClError, ndrange::NdRange};
use clinspect_opencl::{Arg, ClContext, Kernel, Mem, Memory, Meter, Program};

use super::DeviceMask;
use crate::to_u32;

const KERNEL: &str = "mask_set_words";
/// Words that the device memory holds.
const CAPACITY: usize = 4096;
/// Work-items per work-group.
const GROUP: usize = 128;
/// Two counters of set words, which take turns.
const COUNTERS: usize = 2;
const WORD: usize = size_of::<u32>();

/// The kernel and its memory.
#[derive(Debug)]
pub(super) struct SetWords {
    kernel: Kernel,
    group: usize,
    /// The counters, then the number and the bytes of each word; `None` if the counters are unknown.
    out: Option<Mem>,
    slot: usize,
    read: Vec<u32>,
    /// The last mask, and its words that are not 0.
    mask: Vec<u32>,
    set: Vec<u32>,
    /// By row of the mask: whether it has a marked pixel.
    is_set: Vec<bool>,
}

/// A mask on the host.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostMask<'a> {
    /// The packed rows.
    pub bytes: &'a [u8],
    /// By row: whether it has a marked pixel.
    pub is_set: &'a [bool],
}

impl SetWords {
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
            is_set: Vec::new(),
        })
    }

    /// A mask of `rows` rows and `stride` bytes a row, in which no other bits are set than those of its marked pixels;
    /// `None` if these are too many.
    ///
    /// # Errors
    /// The failing call.
    pub fn read(
        &mut self,
        context: &Arc<ClContext>,
        mask: DeviceMask,
        [stride, rows]: [usize; 2],
        meter: &Arc<Meter>,
    ) -> Result<Option<HostMask<'_>>, ClError> {
        let pixels = mask.pixels;
        if pixels > CAPACITY as u64 {
            return Ok(None);
        }
        let bytes = stride * rows;
        // After a failure below the counters are unknown, and the memory is made again.
        let out = match self.out.take() {
            Some(out) => out,
            None => {
                let out = context.device_memory((COUNTERS + 2 * CAPACITY) * WORD)?;
                context.zero(&out, COUNTERS * WORD, "the counters of set words")?;
                self.slot = 0;
                out
            }
        };
        let args = [
            Arg::Reads(Memory::Buffer(mask.buffer)),
            Arg::U64(mask.offset as u64),
            Arg::U32(to_u32(bytes, "a mask")?),
            Arg::Mem(&out),
            Arg::U32(to_u32(self.slot, "a counter")?),
            Arg::U32(to_u32(CAPACITY, "words")?),
        ];
        let words = bytes.div_ceil(WORD);
        let range = NdRange::groups(words.div_ceil(self.group), self.group);
        let mut submission = context.submit(meter, bytes);
        submission.run(&mut self.kernel, KERNEL, &args, &range)?;
        // A pixel is in one word.
        self.read.resize(COUNTERS + 2 * pixels as usize, 0);
        let read = bytemuck::cast_slice_mut(&mut self.read);
        submission.read(&out, 0, read, "the set words of a mask")?;
        let (counters, found) = self.read.split_at(COUNTERS);
        let count = counters[self.slot] as usize;
        self.slot = 1 - self.slot;
        self.out = Some(out);
        let found = found.as_chunks().0;
        if count > found.len() {
            return Ok(None);
        }

        if self.mask.len() != words {
            self.set.clear();
            self.mask = vec![0; words];
        }
        for word in self.set.drain(..) {
            self.mask[word as usize] = 0;
        }
        self.is_set.clear();
        self.is_set.resize(rows, false);
        for &[number, value] in &found[..count] {
            let Some(word) = self.mask.get_mut(number as usize) else {
                continue;
            };
            *word = value;
            self.set.push(number);
            // A word may lie in several rows.
            let first = number as usize * WORD;
            for row in first / stride..=(first + WORD - 1) / stride {
                if let Some(is_set) = self.is_set.get_mut(row) {
                    *is_set = true;
                }
            }
        }
        let bytes = bytemuck::cast_slice(&self.mask).get(..bytes);
        let is_set = &self.is_set;
        Ok(bytes.map(|bytes| HostMask { bytes, is_set }))
    }
}
