//! A whole program, step by step: it increments N integers on the device.
//!
//! It uses OpenCL alone, as a first program would, in a fresh process.

use std::{path::Path, ptr, time::Instant};

use opencl3::{
    command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue},
    context::Context,
    device::{CL_DEVICE_TYPE_ALL, Device, get_all_devices},
    kernel::{ExecuteKernel, Kernel},
    memory::{Buffer, CL_MEM_READ_WRITE},
    program::Program,
    types::{CL_BLOCKING, cl_int},
};
use serde::Serialize;

use crate::{
    Child, Effort, Error,
    startup::{self, Startup, Step},
};

const SOURCE: &str = include_str!("increment.cl");
const FIRST: cl_int = 41;

/// The program's steps and their sums.
#[derive(Debug, Serialize)]
pub struct Increment {
    /// Integers.
    pub count: u32,
    pub steps: Vec<Startup>,
    /// Sum of the steps with an empty compiler cache, ms.
    pub cold_ms: f64,
    /// Sum of the steps with the cache of the cold run, ms.
    pub warm_ms: f64,
}

/// Measures in fresh processes, cold and warm.
///
/// # Errors
/// A process does not start, or fails.
pub fn measure(device: &str, effort: Effort) -> Result<Increment, Error> {
    let steps = startup::measure_child(Child::Increment, device, effort)?;
    let sum = |ms: fn(&Startup) -> f64| steps.iter().map(ms).sum();
    Ok(Increment {
        count: effort.count,
        cold_ms: sum(|step| step.cold_ms),
        warm_ms: sum(|step| step.warm_ms),
        steps,
    })
}

/// The program; `wanted` is the device's name.
///
/// # Errors
/// A failing OpenCL call, or a wrong result.
pub fn measure_here(wanted: &str, count: u32) -> Result<Vec<Step>, Error> {
    let mut watch = Watch::new();
    let ids = get_all_devices(CL_DEVICE_TYPE_ALL)?;
    let is_wanted = |device: &Device| device.name().is_ok_and(|name| name.trim() == wanted);
    let device = ids.into_iter().map(Device::new).find(is_wanted);
    let device = device.ok_or_else(|| format!("no device is called {wanted}"))?;
    watch.done("load drivers, find the device");

    let context = Context::from_device(&device)?;
    // SAFETY: the device belongs to the context, which outlives the queue.
    let queue = unsafe { CommandQueue::create(&context, device.id(), CL_QUEUE_PROFILING_ENABLE)? };
    watch.done("create context and queue");

    let file = KernelFile::new()?;
    watch.skip();
    let text = std::fs::read_to_string(&file.0)?;
    watch.done("read the kernel from a file");

    let build = |text: &str| Program::create_and_build_from_source(&context, text, "-cl-std=CL1.2");
    let program = build(&text)?;
    watch.done("build the kernel of the file");

    let of_string = build(SOURCE)?;
    watch.done("build the kernel of a string");

    let kernel = Kernel::create(&program, "increment")?;
    watch.done("create the kernel");

    let length = count as usize;
    let mut values = vec![FIRST; length];
    watch.skip();
    // SAFETY: no host pointer is given.
    let mut buffer =
        unsafe { Buffer::<cl_int>::create(&context, CL_MEM_READ_WRITE, length, ptr::null_mut())? };
    watch.done("create a buffer");

    // SAFETY: the write is blocking and as long as the buffer.
    unsafe { queue.enqueue_write_buffer(&mut buffer, CL_BLOCKING, 0, &values, &[])? };
    watch.done("write the integers");

    // SAFETY: the arguments are as the kernel declares them; it checks its bounds.
    let event = unsafe {
        ExecuteKernel::new(&kernel)
            .set_arg(&buffer)
            .set_arg(&cl_int::try_from(count)?)
            .set_global_work_size(length)
            .enqueue_nd_range(&queue)?
    };
    event.wait()?;
    watch.done("increment each atomically");

    // SAFETY: the read is blocking and as long as the buffer.
    unsafe { queue.enqueue_read_buffer(&buffer, CL_BLOCKING, 0, &mut values, &[])? };
    watch.done("read the integers");

    drop((event, buffer, kernel, of_string, program, queue, context));
    watch.done("release all");
    if values.iter().any(|&value| value != FIRST + 1) {
        return Err("the device incremented wrongly".into());
    }
    Ok(watch.steps)
}

/// Times the steps of the program.
struct Watch {
    started: Instant,
    steps: Vec<Step>,
}

impl Watch {
    fn new() -> Self {
        Self {
            started: Instant::now(),
            steps: Vec::new(),
        }
    }

    /// A step has ended.
    fn done(&mut self, step: &str) {
        let ms = self.started.elapsed().as_secs_f64() * 1e3;
        let step = step.to_owned();
        self.steps.push(Step { step, ms });
        self.started = Instant::now();
    }

    /// The work since the last step is no step.
    fn skip(&mut self) {
        self.started = Instant::now();
    }
}

/// The kernel in a file, removed on drop.
struct KernelFile(std::path::PathBuf);

impl KernelFile {
    fn new() -> Result<Self, Error> {
        // The parent's empty folder for compiler caches.
        let folder = std::env::var_os(startup::CACHES[0]).ok_or("the cache folder is not set")?;
        let path = Path::new(&folder).join("increment.cl");
        // The driver's cache must not take this kernel for the string's.
        std::fs::write(&path, format!("// From a file.\n{SOURCE}"))?;
        Ok(Self(path))
    }
}

impl Drop for KernelFile {
    fn drop(&mut self) {
        // The parent removes the folder.
        let _ = std::fs::remove_file(&self.0);
    }
}
