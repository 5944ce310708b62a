//! A device in use: its context and its programs, which all elements on it share.

use std::{
    collections::{HashMap, VecDeque},
    ptr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use opencl3::{
    command_queue::{CL_QUEUE_PROFILING_ENABLE, create_command_queue},
    context::context::create_context,
    kernel::{CL_KERNEL_WORK_GROUP_SIZE, get_kernel_work_group_info},
    types::cl_context,
};

use super::{
    cache::Cache,
    device::{DeviceInfo, lock_driver},
    handle::{CAT, Context, Kernel, Queue, call_error},
    pins::Pins,
    program::{
        Compiling, Program, ProgramSource, check_compiler_allowed, is_beside_frames,
        notify_compiler,
    },
    queue::{Event, InOrderQueue},
    turns::Turns,
};
use clinspect_core::{ClError, device_caps::DeviceCaps};

/// Number of recent commands that are kept to see the device's progress.
const MAX_RECENT: usize = 32;

/// What all elements on a device share.
#[derive(Debug)]
pub struct DeviceContext {
    // Fields are dropped in this order: queues and programs before their context.
    /// The latest commands of all elements; they show whether the device makes progress.
    recent: Mutex<VecDeque<Arc<Event>>>,
    /// The one queue of a device that shares the host's memory: its order divides the device fairly.
    queue: Option<Arc<InOrderQueue>>,
    /// Orders the threads that enqueue on a device with memory of its own.
    turns: Option<Arc<Turns>>,
    programs: Mutex<HashMap<(ProgramSource, String), Arc<Program>>>,
    /// Programs that the compiler refused. They are not compiled again: a compiler may take seconds to refuse.
    refused: Mutex<HashMap<(ProgramSource, String), ClError>>,
    context: Context,
    device: DeviceInfo,
    /// `None` if the folder cannot be used.
    cache: OnceLock<Option<Cache>>,
    /// A command has failed. On a GPU every later command may fail too.
    has_failed: AtomicBool,
    /// The device or its driver made no progress for longer than a stop may take.
    is_stalled: AtomicBool,
    /// Number of waits and commands of all elements that have ended.
    ended: AtomicU64,
    pins: Arc<Pins>,
}

impl Drop for DeviceContext {
    fn drop(&mut self) {
        self.pins.clear();
    }
}

impl DeviceContext {
    /// The caller holds [`lock_driver`].
    pub(super) fn new(device: &DeviceInfo) -> Result<Self, ClError> {
        let context = create_context(&[device.id], ptr::null(), None, ptr::null_mut())
            .map(Context::new)
            .map_err(|code| call_error("clCreateContext", code, &device.name))?;
        let mut opened = Self {
            recent: Mutex::default(),
            queue: None,
            turns: None,
            programs: Mutex::default(),
            refused: Mutex::default(),
            context,
            device: device.clone(),
            cache: OnceLock::new(),
            has_failed: AtomicBool::new(false),
            is_stalled: AtomicBool::new(false),
            ended: AtomicU64::new(0),
            pins: Arc::default(),
        };
        if device.caps.shares_host_memory {
            opened.queue = Some(opened.new_queue(true)?);
        } else {
            opened.turns = Some(Arc::new(Turns::new()));
        }
        Ok(opened)
    }

    /// The queue that all elements share, if there is one.
    pub(super) fn shared_queue(&self) -> Option<&Arc<InOrderQueue>> {
        self.queue.as_ref()
    }

    /// A new queue. `profiled`: the device takes the times of its commands, which makes each command of NVIDIA's
    /// driver a third slower.
    ///
    /// # Errors
    /// The error of `clCreateCommandQueue`.
    pub(super) fn new_queue(&self, profiled: bool) -> Result<Arc<InOrderQueue>, ClError> {
        let flags = if profiled {
            CL_QUEUE_PROFILING_ENABLE
        } else {
            0
        };
        // SAFETY: both handles are valid; a queue keeps its own reference to the context.
        let queue = unsafe { create_command_queue(self.context.raw(), self.device.id, flags) }
            .map_err(|code| call_error("clCreateCommandQueue", code, &self.device.name))?;
        Ok(Arc::new(InOrderQueue::new(
            Queue::new(queue),
            self.device.runs_inline(),
            self.turns.clone(),
        )))
    }

    pub(super) fn info(&self) -> &DeviceInfo {
        &self.device
    }

    pub(super) fn pins(&self) -> &Arc<Pins> {
        &self.pins
    }

    /// The error of a failed command. Marks the context as failed: the next [`open`](super::open)
    /// makes a new context.
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

    /// Marks the device as stalled: no element waits for it again, and the next open makes a new
    /// context.
    pub(super) fn condemn(&self) {
        self.is_stalled.store(true, Ordering::Release);
        self.has_failed.store(true, Ordering::Release);
    }

    /// Whether the device is marked as stalled.
    pub(super) fn is_stalled(&self) -> bool {
        self.is_stalled.load(Ordering::Acquire)
    }

    /// Counts the end of a wait for the device, which is progress.
    pub(super) fn count_progress(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds the last command of a frame to the recent ones.
    pub(super) fn add_recent(&self, event: Arc<Event>) {
        let mut recent = self.recent();
        let oldest = (recent.len() == MAX_RECENT).then(|| recent.pop_front());
        recent.push_back(event);
        drop(recent);
        // Release the event after the lock.
        drop(oldest);
    }

    /// A number that grows whenever a wait or a command of any element ends. Asks the driver about
    /// at most one command.
    pub(super) fn progress(&self) -> u64 {
        let oldest = self.recent().front().cloned();
        if let Some(oldest) = oldest
            && oldest.has_ended()
        {
            let mut recent = self.recent();
            if recent.front().is_some_and(|e| Arc::ptr_eq(e, &oldest)) {
                recent.pop_front();
            }
            drop(recent);
            self.count_progress();
        }
        self.ended.load(Ordering::Relaxed)
    }

    /// Waits for at most `limit` for the end of the most recent command, and thus of all before it. Returns false if it
    /// has not ended, and at once for a stalled device.
    pub(super) fn has_ended_within(&self, limit: Duration) -> bool {
        if self.is_stalled() {
            return false;
        }
        let last = self.recent().back().cloned();
        last.is_none_or(|last| last.ends_within(limit))
    }

    /// The most recent command.
    pub(super) fn latest(&self) -> Option<Arc<Event>> {
        self.recent().back().cloned()
    }

    fn recent(&self) -> MutexGuard<'_, VecDeque<Arc<Event>>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The device's name.
    pub fn device_name(&self) -> &str {
        &self.device.name
    }

    /// The device's limits.
    pub fn caps(&self) -> &DeviceCaps {
        &self.device.caps
    }

    /// The device and its driver, for messages.
    pub fn device_label(&self) -> String {
        self.device.label()
    }

    /// The device with all versions of its driver.
    pub fn device_identity(&self) -> String {
        self.device.identity()
    }

    /// The plugin's cache; `None` if it cannot be used, which is logged once.
    pub fn cache(&self) -> Option<&Cache> {
        let open = || {
            let opened = Cache::open();
            opened
                .inspect_err(|error| gst::warning!(CAT, "{error}"))
                .ok()
        };
        self.cache.get_or_init(open).as_ref()
    }

    pub(super) fn raw_context(&self) -> cl_context {
        self.context.raw()
    }

    /// A program built for this device; `options` are `-D` definitions.
    ///
    /// # Errors
    /// [`ClError::Build`] with the compiler's log.
    pub fn program(&self, source: ProgramSource, options: &str) -> Result<Arc<Program>, ClError> {
        let key = (source, options.to_owned());
        if let Some(program) = self.programs().get(&key) {
            return Ok(program.clone());
        }
        if let Some(error) = self.refused().get(&key) {
            return Err(error.clone());
        }
        check_compiler_allowed(source)?;
        notify_compiler(Compiling::Program(source.file()));
        let _driver = lock_driver();
        // Another thread may have built the program meanwhile.
        if let Some(program) = self.programs().get(&key) {
            return Ok(program.clone());
        }
        if self.device.caps.has_dot4 && is_beside_frames() {
            self.fill_driver_cache(source, options);
        }
        // The compiler of a driver without a cache may take seconds.
        let cache = self.cache().filter(|_| !self.device.keeps_programs());
        let built = Program::build(self.raw_context(), &self.device, source, options, cache);
        if let Err(error @ (ClError::Build { .. } | ClError::Refused(_))) = &built {
            self.refused().insert(key.clone(), error.clone());
        }
        let program = Arc::new(built?);
        let mut programs = self.programs();
        if source.has_constants() {
            // Each list of comparisons has a program of its own. Unused ones are dropped: a pitch that drifts would
            // fill the memory with them.
            programs
                .retain(|(other, _), program| *other != source || Arc::strong_count(program) > 1);
        }
        programs.insert(key, program.clone());
        drop(programs);
        Ok(program)
    }

    /// Compiles a program in a context of its own. NVIDIA's driver blocks all launches of a context
    /// while it compiles for that context (docs/adr/0007); afterwards its cache serves this context
    /// within milliseconds. A failure shows in the build that follows.
    fn fill_driver_cache(&self, source: ProgramSource, options: &str) {
        if let Ok(scratch) = create_context(&[self.device.id], ptr::null(), None, ptr::null_mut()) {
            let scratch = Context::new(scratch);
            let _ = Program::build(scratch.raw(), &self.device, source, options, None);
        }
    }

    fn refused(&self) -> MutexGuard<'_, HashMap<(ProgramSource, String), ClError>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn programs(&self) -> MutexGuard<'_, HashMap<(ProgramSource, String), Arc<Program>>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Maximum number of work-items in a work-group of this kernel on this device.
    ///
    /// # Errors
    /// The error of `clGetKernelWorkGroupInfo`.
    pub fn kernel_work_group(&self, kernel: &Kernel) -> Result<usize, ClError> {
        get_kernel_work_group_info(kernel.raw(), self.device.id, CL_KERNEL_WORK_GROUP_SIZE)
            .map(|info| info.to_size().clamp(1, self.device.caps.max_work_group))
            .map_err(|code| call_error("clGetKernelWorkGroupInfo", code, &self.device.name))
    }
}
