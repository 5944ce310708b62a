//! How much the pixels of found runs differ; kernel `run_differences` in
//! `kernels/pitch_threshold.cl`.

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::{components::Run, ndrange::NdRange};
use clinspect_opencl::{Arg, ClContext, Event, Kernel, Mem, Meter, Program, Step};

const KERNEL: &str = "run_differences";
/// Runs that device memory is made for at first; it doubles as needed.
const FIRST_CAPACITY: usize = 1024;
/// Work-items of a group.
const GROUP: usize = 64;

/// What the pixels of one run differ by, in 1/512 grey level. Twin of `run_difference_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct RunDifference {
    /// Sum over the run.
    pub sum: i64,
    /// The difference of largest magnitude, the leftmost of equals.
    pub peak: i32,
    /// Bit 0: a pixel differs upwards; bit 1: downwards; bit 2: by nothing.
    pub signs: u32,
}

const _: () = assert!(size_of::<RunDifference>() == 16);

/// The kernel with its buffers.
#[derive(Debug)]
pub(super) struct RunDifferences {
    kernel: Kernel,
    runs: Mem,
    out: Mem,
    capacity: usize,
    results: Vec<RunDifference>,
}

impl RunDifferences {
    /// Prepares the kernel of a program built for buffers.
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

    /// Measures `runs` of the frame that `frame_args` name, and waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn run(
        &mut self,
        context: &ClContext,
        frame_args: &[Arg],
        runs: &[Run],
        waits: &[&Event],
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
        let group = GROUP.min(context.kernel_work_group(&self.kernel)?);
        let range = NdRange::groups(runs.len().div_ceil(group), group);
        let event = Arc::new(context.run(&mut self.kernel, KERNEL, &args, &range, waits)?);
        self.results.resize(runs.len(), RunDifference::default());
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.results);
        let len = bytes.len();
        let read = context.read(&self.out, 0, bytes, &[&event], "differences of runs")?;
        meter.measure(Step::Kernel, &event, &event, len);
        meter.result(Arc::new(read), len);
        Ok(&self.results)
    }
}
