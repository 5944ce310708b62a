//! What the host reads of each frame, in one memory: the counters, and the runs of marked pixels that the device collects.

use clinspect_core::{
    ClError,
    components::{Run, RunDifference},
    kernels::mask_expand::{RUN_COUNTER, RUNS_AT},
    mask::packed_stride,
};
use clinspect_opencl::{Arg, ClContext, Mem, Submission};

use crate::to_u32;

/// Most runs that are collected of a mask.
pub(crate) const MOST_RUNS: usize = 4096;

/// A word of the memory on the host.
const WORD: usize = size_of::<u64>();
/// Words before the runs, of a run, and of its difference.
const HEAD: usize = RUNS_AT * RUN;
const RUN: usize = size_of::<Run>() / WORD;
const DIFFERENCE: usize = size_of::<RunDifference>() / WORD;

/// The memory, and what was read of it. Kernels fill it: see `RUNS_ARGS` in `kernels/mask_expand.cl`.
#[derive(Debug)]
pub(crate) struct FrameResults {
    memory: Mem,
    host: Vec<u64>,
    /// Runs that there is room for in `host`.
    room: usize,
    /// Runs that were read.
    count: usize,
    /// The counter of runs that is 0.
    slot: usize,
    mask: RunMask,
}

/// A mask on the host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostMask<'a> {
    /// The packed rows, in which no other bits are set than those of marked pixels.
    pub bytes: &'a [u8],
    /// By row: whether it has a marked pixel.
    pub is_set: &'a [bool],
}

/// Memory for the mask of runs.
#[derive(Debug, Default)]
struct RunMask {
    /// The last mask, and the bytes that are not 0.
    mask: Vec<u8>,
    set: Vec<usize>,
    /// By row of the mask: whether it has a marked pixel.
    is_set: Vec<bool>,
}

impl FrameResults {
    /// Memory with counters of 0. `has_runs`: the device collects runs.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, has_runs: bool) -> Result<Self, ClError> {
        let most = if has_runs { MOST_RUNS } else { 0 };
        let memory = context.device_memory((HEAD + most * (RUN + DIFFERENCE)) * WORD)?;
        context.zero(&memory, HEAD * WORD, "the pixel counters")?;
        Ok(Self {
            memory,
            host: vec![0; HEAD],
            room: 0,
            count: 0,
            slot: 0,
            mask: RunMask::default(),
        })
    }

    /// The memory, which begins with the counters of marked pixels.
    pub fn memory(&self) -> &Mem {
        &self.memory
    }

    /// Clears all counters.
    ///
    /// # Errors
    /// The failing call.
    pub fn clear(&self, submission: &mut Submission) -> Result<(), ClError> {
        submission.zero(&self.memory, HEAD * WORD, "the pixel counters")
    }

    /// No runs are read of the next frame, unless [`Self::collect`] follows.
    pub fn begin(&mut self) {
        (self.room, self.count) = (0, 0);
        self.host.truncate(HEAD);
    }

    /// The last arguments of a kernel that collects at most `room` runs of a mask of `rows` rows, and makes room for them.
    ///
    /// # Errors
    /// None in practice.
    pub fn collect(
        &mut self,
        room: usize,
        rows: usize,
        is_measured: bool,
    ) -> Result<[Arg<'_>; 5], ClError> {
        let room = room.min(MOST_RUNS);
        let words = if is_measured { RUN + DIFFERENCE } else { RUN };
        (self.room, self.count) = (room, 0);
        self.host.resize(HEAD + room * words, 0);
        Ok([
            Arg::Mem(&self.memory),
            Arg::U32(to_u32(room, "runs")?),
            Arg::Mem(&self.memory),
            Arg::I32(i32::from(self.slot == 1)),
            Arg::U32(to_u32(rows, "a mask")?),
        ])
    }

    /// What the host reads of a frame, and where to.
    pub fn read(&mut self) -> (&Mem, &mut [u8]) {
        (&self.memory, bytemuck::cast_slice_mut(&mut self.host))
    }

    /// The counters of marked pixels that were read.
    pub fn counters(&self) -> [u32; RUN_COUNTER] {
        std::array::from_fn(|at| self.counter(at))
    }

    fn counter(&self, at: usize) -> u32 {
        let counters: &[u32] = bytemuck::cast_slice(&self.host);
        counters[at]
    }

    /// Takes the runs that were read. Returns false if the mask has more.
    pub fn take_runs(&mut self) -> bool {
        let count = self.counter(RUN_COUNTER + self.slot) as usize;
        self.slot = 1 - self.slot;
        let is_whole = count <= self.room;
        self.count = if is_whole { count } else { 0 };
        is_whole
    }

    /// The runs that were taken.
    pub fn runs(&self) -> &[Run] {
        bytemuck::cast_slice(&self.host[HEAD..][..self.count * RUN])
    }

    /// Their differences, if they were measured.
    pub fn differences(&self) -> &[RunDifference] {
        bytemuck::cast_slice(&self.host[HEAD + self.room * RUN..][..self.count * DIFFERENCE])
    }

    /// The mask that has the runs.
    pub fn mask(&mut self, [width, height]: [usize; 2]) -> HostMask<'_> {
        let stride = packed_stride(width);
        let runs: &[Run] = bytemuck::cast_slice(&self.host[HEAD..][..self.count * RUN]);
        let RunMask { mask, set, is_set } = &mut self.mask;
        if mask.len() != stride * height {
            set.clear();
            *mask = vec![0; stride * height];
        }
        for byte in set.drain(..) {
            mask[byte] = 0;
        }
        is_set.clear();
        is_set.resize(height, false);
        for run in runs {
            let Some(is_set) = is_set.get_mut(run.y as usize) else {
                continue;
            };
            *is_set = true;
            for x in run.x0..run.x1 {
                let at = run.y as usize * stride + x as usize / 8;
                if let Some(byte) = mask.get_mut(at) {
                    if *byte == 0 {
                        set.push(at);
                    }
                    *byte |= 0x80 >> (x % 8);
                }
            }
        }
        HostMask {
            bytes: mask,
            is_set,
        }
    }
}
