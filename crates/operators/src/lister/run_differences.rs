//! Measures the differences of the pixels of runs; kernels `run_differences` in `kernels/pitch_threshold_mask.cl` and
//! `kernels/reference.cl`.

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::{
    components::{Run, RunDifference},
    ndrange::NdRange,
};
use clinspect_opencl::{Arg, ClContext, Kernel, Mem, Meter, Program};

const KERNEL: &str = "run_differences";
/// Number of runs that the device memory holds at first; it doubles as needed.
const FIRST_CAPACITY: usize = 1024;
/// Work-items per work-group on a GPU.
const GROUP: usize = 64;
/// Most work-items on a CPU, in work-groups of one. PoCL would compile the kernel again for more than
/// 65534 work-items, while frames wait.
const MOST_CPU_ITEMS: usize = 256;

/// The kernel and its buffers.
#[derive(Debug)]
pub(super) struct RunDifferences {
    kernel: Kernel,
    runs: Mem,
    out: Mem,
    capacity: usize,
    results: Vec<RunDifference>,
}

impl RunDifferences {
    /// Prepares the kernel of a program for buffers.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, program: &Program) -> Result<Self, ClError> {
        let (runs, out) = Self::memory(context, FIRST_CAPACITY)?;
        Ok(Self {
            kernel: program.kernel(KERNEL)?,
            runs,
            out,
            capacity: FIRST_CAPACITY,
            results: Vec::new(),
        })
    }

    fn memory(context: &ClContext, capacity: usize) -> Result<(Mem, Mem), ClError> {
        Ok((
            context.device_memory(capacity * size_of::<Run>())?,
            context.device_memory(capacity * size_of::<RunDifference>())?,
        ))
    }

    /// Measures `runs` of the frame in `frame_args`, and waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn run(
        &mut self,
        context: &Arc<ClContext>,
        frame_args: &[Arg],
        runs: &[Run],
        meter: &Meter,
    ) -> Result<&[RunDifference], ClError> {
        self.results.clear();
        if runs.is_empty() {
            return Ok(&self.results);
        }
        if runs.len() > self.capacity {
            self.capacity = runs.len().next_power_of_two();
            (self.runs, self.out) = Self::memory(context, self.capacity)?;
        }
        context.write(&self.runs, 0, bytemuck::cast_slice(runs), "runs of defects")?;
        let count = u32::try_from(runs.len())
            .map_err(|_| ClError::Refused(format!("{} runs are too many", runs.len())))?;
        let mut args = frame_args.to_vec();
        args.extend([Arg::Mem(&self.runs), Arg::U32(count), Arg::Mem(&self.out)]);
        let range = if context.caps().is_cpu {
            NdRange::groups(runs.len().min(MOST_CPU_ITEMS), 1)
        } else {
            let group = GROUP.min(context.kernel_work_group(&self.kernel)?);
            NdRange::groups(runs.len().div_ceil(group), group)
        };
        self.results.resize(runs.len(), RunDifference::default());
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.results);
        let mut submission = context.submit(meter, bytes.len());
        submission.run(&mut self.kernel, KERNEL, &args, &range)?;
        submission.read(&self.out, 0, bytes, "differences of runs")?;
        Ok(&self.results)
    }
}
