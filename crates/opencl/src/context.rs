//! A device's context with its in-order queues, and the commands put into them.

use std::{
    ffi::c_void,
    mem::{size_of, size_of_val},
    ptr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use opencl3::{
    command_queue::{
        CL_QUEUE_PROFILING_ENABLE, create_command_queue, enqueue_fill_buffer,
        enqueue_nd_range_kernel, enqueue_read_buffer, enqueue_write_buffer, finish, flush,
    },
    context::context::create_context,
    kernel::{CL_KERNEL_WORK_GROUP_SIZE, get_kernel_work_group_info, set_kernel_arg},
    types::{CL_TRUE, cl_context, cl_device_id, cl_event, cl_mem},
};

use super::{
    device::DeviceInfo,
    handle::{Context, Event, Kernel, Mem, Queue, call_error},
    meter::Meter,
    program::ProgramCache,
};
use clinspect_core::ClError;
use clinspect_core::{device_caps::DeviceCaps, ndrange::NdRange};

/// One device in use: its context, its in-order queues and its programs.
#[derive(Debug)]
pub struct ClContext {
    // Fields are dropped in this order: queues and programs before their context.
    queue: Queue,
    /// Where a device has memory of its own: what the host sends crosses the bus while kernels of
    /// the frame before run. Commands of the two queues know each other by their events.
    uploads: Option<Queue>,
    programs: Mutex<ProgramCache>,
    context: Context,
    device: DeviceInfo,
    /// A command has failed; on a GPU all later ones then may.
    has_failed: AtomicBool,
    /// The driver did not finish in time.
    stalls: AtomicBool,
}

/// A kernel argument.
#[derive(Debug, Clone, Copy)]
pub enum Arg<'a> {
    /// A buffer or image.
    Mem(&'a Mem),
    /// `int`
    I32(i32),
    /// `uint`
    U32(u32),
    /// `ulong`
    U64(u64),
    /// `int4`
    I32x4([i32; 4]),
    /// `__local` memory of so many bytes.
    Local(usize),
}

impl ClContext {
    pub(super) fn new(device: &DeviceInfo) -> Result<Self, ClError> {
        let context = create_context(&[device.id], ptr::null(), None, ptr::null_mut())
            .map(Context::new)
            .map_err(|code| call_error("clCreateContext", code, &device.name))?;
        let queue = || {
            // SAFETY: both handles are valid; a queue keeps its own reference to the context.
            unsafe { create_command_queue(context.raw(), device.id, CL_QUEUE_PROFILING_ENABLE) }
                .map(Queue::new)
                .map_err(|code| call_error("clCreateCommandQueue", code, &device.name))
        };
        let uploads = (!device.caps.shares_host_memory).then(queue).transpose()?;
        Ok(Self {
            queue: queue()?,
            uploads,
            programs: Mutex::default(),
            context,
            device: device.clone(),
            has_failed: AtomicBool::new(false),
            stalls: AtomicBool::new(false),
        })
    }

    /// The error of a command that failed; whoever opens the device after it gets another context.
    pub(super) fn failed(
        &self,
        call: &'static str,
        code: i32,
        subject: impl Into<String>,
    ) -> ClError {
        let error = call_error(call, code, subject);
        if !error.is_group_too_large() {
            self.has_failed.store(true, Ordering::Release);
        }
        error
    }

    /// Whether a command has failed.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// The device's name.
    pub fn device_name(&self) -> &str {
        &self.device.name
    }

    /// The device's limits.
    pub fn caps(&self) -> &DeviceCaps {
        &self.device.caps
    }

    pub(super) fn raw_context(&self) -> cl_context {
        self.context.raw()
    }

    pub(super) fn raw_device(&self) -> cl_device_id {
        self.device.id
    }

    pub(super) fn raw_queue(&self) -> opencl3::types::cl_command_queue {
        self.queue.raw()
    }

    pub(super) fn programs(&self) -> MutexGuard<'_, ProgramCache> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where host memory is mapped for writing and given back.
    pub(super) fn raw_upload_queue(&self) -> opencl3::types::cl_command_queue {
        self.uploads.as_ref().unwrap_or(&self.queue).raw()
    }

    /// Most work-items a group of this kernel may have on this device.
    ///
    /// # Errors
    /// The driver's answer to `clGetKernelWorkGroupInfo`.
    pub fn kernel_work_group(&self, kernel: &Kernel) -> Result<usize, ClError> {
        get_kernel_work_group_info(kernel.raw(), self.device.id, CL_KERNEL_WORK_GROUP_SIZE)
            .map(|info| info.to_size().clamp(1, self.device.caps.max_work_group))
            .map_err(|code| call_error("clGetKernelWorkGroupInfo", code, &self.device.name))
    }

    /// Sets the arguments and enqueues the kernel after `waits`; returns its completion.
    ///
    /// Memory that the arguments name must live until the returned event is complete.
    ///
    /// # Errors
    /// The failing call with the kernel's name as its subject.
    pub fn run(
        &self,
        kernel: &mut Kernel,
        name: &'static str,
        args: &[Arg],
        range: &NdRange,
        waits: &[&Event],
    ) -> Result<Event, ClError> {
        for (index, arg) in args.iter().enumerate() {
            let raw_mem: cl_mem;
            let (size, value): (usize, *const c_void) = match arg {
                Arg::Mem(mem) => {
                    raw_mem = mem.raw();
                    (size_of::<cl_mem>(), (&raw const raw_mem).cast())
                }
                Arg::I32(v) => (size_of_val(v), ptr::from_ref(v).cast()),
                Arg::U32(v) => (size_of_val(v), ptr::from_ref(v).cast()),
                Arg::U64(v) => (size_of_val(v), ptr::from_ref(v).cast()),
                Arg::I32x4(v) => (size_of_val(v), v.as_ptr().cast()),
                Arg::Local(bytes) => (*bytes, ptr::null()),
            };
            // SAFETY: the value is read during the call and is as large as `size` says; the
            // kernel is borrowed mutably, so no other thread sets its arguments.
            unsafe { set_kernel_arg(kernel.raw(), index as u32, size, value) }.map_err(|code| {
                call_error("clSetKernelArg", code, format!("{name}, argument {index}"))
            })?;
        }
        let waits: Vec<cl_event> = waits.iter().map(|e| e.raw()).collect();
        let local = range.local.as_ref().map_or(ptr::null(), |l| l.as_ptr());
        // SAFETY: the kernel bounds-checks against its arguments or its header states what the
        // operator promises; the operator keeps the memory alive until the event.
        unsafe {
            enqueue_nd_range_kernel(
                self.queue.raw(),
                kernel.raw(),
                2,
                ptr::null(),
                range.global.as_ptr(),
                local,
                waits.len() as u32,
                wait_list(&waits),
            )
        }
        .map(Event::new)
        .map_err(|code| self.failed("clEnqueueNDRangeKernel", code, name))
    }

    /// Reads `out.len()` bytes from `offset`, and waits for them and for all before.
    ///
    /// # Errors
    /// The failing call; `waits` that failed make it fail.
    pub fn read(
        &self,
        mem: &Mem,
        offset: usize,
        out: &mut [u8],
        waits: &[&Event],
        subject: &str,
    ) -> Result<Event, ClError> {
        let waits: Vec<cl_event> = waits.iter().map(|e| e.raw()).collect();
        // SAFETY: a blocking read writes at most `out.len()` bytes before it returns; the driver
        // checks the range against the buffer.
        unsafe {
            enqueue_read_buffer(
                self.queue.raw(),
                mem.raw(),
                CL_TRUE,
                offset,
                out.len(),
                out.as_mut_ptr().cast(),
                waits.len() as u32,
                wait_list(&waits),
            )
        }
        .map(Event::new)
        .map_err(|code| self.failed("clEnqueueReadBuffer", code, subject))
    }

    /// Writes bytes to `offset`, and waits until the device has them.
    ///
    /// # Errors
    /// The failing call.
    pub fn write(
        &self,
        mem: &Mem,
        offset: usize,
        data: &[u8],
        subject: &str,
    ) -> Result<Event, ClError> {
        // SAFETY: a blocking write reads `data` before it returns; the driver checks the range.
        unsafe {
            enqueue_write_buffer(
                self.queue.raw(),
                mem.raw(),
                CL_TRUE,
                offset,
                data.len(),
                data.as_ptr().cast(),
                0,
                ptr::null(),
            )
        }
        .map(Event::new)
        .map_err(|code| self.failed("clEnqueueWriteBuffer", code, subject))
    }

    /// Fills `len` bytes from the start with zeros after `waits`; `len` is a multiple of 4.
    ///
    /// # Errors
    /// The failing call.
    pub fn zero(
        &self,
        mem: &Mem,
        len: usize,
        waits: &[&Event],
        subject: &str,
    ) -> Result<Event, ClError> {
        let zero = 0_u32;
        let waits: Vec<cl_event> = waits.iter().map(|e| e.raw()).collect();
        // SAFETY: the pattern is copied during the call; the driver checks the range.
        unsafe {
            enqueue_fill_buffer(
                self.queue.raw(),
                mem.raw(),
                (&raw const zero).cast(),
                size_of::<u32>(),
                0,
                len,
                waits.len() as u32,
                wait_list(&waits),
            )
        }
        .map(Event::new)
        .map_err(|code| self.failed("clEnqueueFillBuffer", code, subject))
    }

    /// Hands enqueued commands to the device without waiting for them.
    ///
    /// # Errors
    /// The failing call.
    pub fn flush(&self) -> Result<(), ClError> {
        self.flush_queue(&self.queue)
    }

    /// Hands what the host sends to the device; commands of the other queue may wait for it.
    ///
    /// # Errors
    /// The failing call.
    pub(super) fn flush_uploads(&self) -> Result<(), ClError> {
        match &self.uploads {
            Some(uploads) => self.flush_queue(uploads),
            None => Ok(()),
        }
    }

    fn flush_queue(&self, queue: &Queue) -> Result<(), ClError> {
        flush(queue.raw()).map_err(|code| self.failed("clFlush", code, &self.device.name))
    }

    /// Waits until the device has done all that was enqueued.
    ///
    /// # Errors
    /// The failing call.
    pub fn finish(&self) -> Result<(), ClError> {
        for queue in self.uploads.iter().chain([&self.queue]) {
            finish(queue.raw()).map_err(|code| self.failed("clFinish", code, &self.device.name))?;
        }
        Ok(())
    }

    /// As [`Self::finish`], and takes `meter`'s last times, but waits no longer than `limit`, and no
    /// second time for a driver that stalls: elements of one pipeline stop one after the other.
    ///
    /// # Errors
    /// The failing call; [`ClError::Unavailable`] after the limit.
    pub fn finish_within(
        self: &Arc<Self>,
        limit: Duration,
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        let stalls = || {
            ClError::Unavailable(format!(
                "the driver of {} has not finished within {limit:?}; it is left alone",
                self.device.name
            ))
        };
        if self.stalls.load(Ordering::Acquire) {
            return Err(stalls());
        }
        let (sender, finished) = mpsc::channel();
        let finish = |context: &Self, meter: &Meter| {
            let result = context.finish();
            meter.harvest();
            result
        };
        let (context, last_times) = (self.clone(), meter.clone());
        let thread = std::thread::Builder::new().name("clfinish".into());
        let thread = thread.spawn(move || {
            let result = finish(&context, &last_times);
            // Before whoever waits goes on: it may hold the last reference but this one.
            drop(context);
            // Nobody listens after the limit.
            let _ = sender.send(result);
        });
        if thread.is_err() {
            return finish(self, meter);
        }
        finished.recv_timeout(limit).unwrap_or_else(|_| {
            self.stalls.store(true, Ordering::Release);
            // Whoever opens the device next gets another queue.
            self.has_failed.store(true, Ordering::Release);
            Err(stalls())
        })
    }
}

/// An empty list must be passed as a null pointer.
pub(super) fn wait_list(events: &[cl_event]) -> *const cl_event {
    if events.is_empty() {
        ptr::null()
    } else {
        events.as_ptr()
    }
}
