//! A device in use: what all elements on it share, and what each has for itself.
//!
//! There is one context a device in a process. The registry holds weak references: a context lives as long as an element, a
//! memory or a pool uses it. So nothing is left to release at process exit, when drivers may be unloaded already.

use std::{
    collections::{HashMap, VecDeque},
    ffi::c_void,
    ops::{Deref, RangeInclusive},
    ptr,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use opencl3::{
    command_queue::{CL_QUEUE_PROFILING_ENABLE, create_command_queue},
    context::context::create_context,
    kernel::{CL_KERNEL_WORK_GROUP_SIZE, get_kernel_work_group_info},
    types::{cl_context, cl_event},
};

use super::{
    cache::Cache,
    caller::Caller,
    device::{DeviceInfo, choose, enumerate, lock_driver, not_found, not_opened},
    handle::{CAT, Context, Kernel, Queue, call_error},
    meter::Meter,
    order::{Order, Turn},
    pins::Pins,
    pocl,
    program::{
        Compiling, Program, ProgramSource, check_compiler_allowed, has_own_rules, is_beside_frames,
        notify_compiler,
    },
    queue::{Event, InOrderQueue, Pinned, Status, Unneeded},
    start,
    sync::{Lock, Rank},
};
use clinspect_core::{ClError, device_caps::DeviceCaps, selector::DeviceSelector};

/// The host polls for the end of kernels that process this many bytes. For shorter kernels the yields disturb PoCL's
/// threads; for longer ones the time to wake the host matters little (docs/adr/0018).
const POLLED_BYTES: RangeInclusive<usize> = 256 << 10..=8 << 20;

/// If the device makes progress for other elements, an element waits this many times the limit.
const PATIENCE: u32 = 3;

/// Number of recent commands that are kept to see the device's progress.
const MAX_RECENT: usize = 32;

/// The programs of a context, and those that the compiler refused. These are not compiled again: a compiler may take seconds
/// to refuse.
type Programs = HashMap<(ProgramSource, String), Result<Arc<Program>, ClError>>;

/// What all elements on a device share.
#[derive(Debug)]
pub struct DeviceContext {
    // Fields are dropped in this order: queues and programs before their context.
    /// The latest commands of all elements; they show whether the device makes progress.
    recent: Lock<VecDeque<Arc<Event>>>,
    /// A device that shares the host's memory has this queue alone: its order divides the device fairly. On others it holds
    /// the maps of new pinned memory, which wait for nothing.
    queue: Arc<InOrderQueue>,
    unneeded: Unneeded,
    order: Arc<Order>,
    /// On a device with memory of its own.
    caller: Option<Caller>,
    programs: Lock<Programs>,
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
    /// What was removed from the driver's cache when the device was opened, until somebody tells it.
    removed: Lock<Vec<String>>,
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
        // A thread that runs a command inside its call also runs the commands that others enqueue meanwhile, and in PoCL
        // 3.1 it then waits for its own lock.
        let shares = device.caps.shares_host_memory;
        let order = Arc::new(Order::new(!shares, shares && !device.runs_inline()));
        let unneeded = Arc::new(Lock::new(Rank::Events, Vec::new()));
        Ok(Self {
            recent: Lock::default(),
            queue: new_queue(&context, device, (&order, &unneeded), shares)?,
            unneeded,
            order,
            caller: (!shares).then(Caller::start).flatten(),
            programs: Lock::new(Rank::Programs, Programs::default()),
            context,
            device: device.clone(),
            cache: OnceLock::new(),
            has_failed: AtomicBool::new(false),
            is_stalled: AtomicBool::new(false),
            ended: AtomicU64::new(0),
            pins: Arc::default(),
            removed: Lock::default(),
        })
    }

    /// The owner of the order of all commands on the device.
    pub(super) fn order(&self) -> &Order {
        &self.order
    }

    /// Makes calls that belong together and wait for nothing: in the device's thread while several threads want to make some
    /// (`caller.rs`), else here.
    pub fn together<R: Send>(&self, calls: impl FnOnce() -> R + Send) -> R {
        match &self.caller {
            Some(caller)
                if (caller.is_awake() || self.order.is_crowded())
                    && !(Caller::is_current() || Rank::is_any_held() || has_own_rules()) =>
            {
                caller.run(calls)
            }
            _ => calls(),
        }
    }

    /// See the field `queue`.
    pub(super) fn common_queue(&self) -> &Arc<InOrderQueue> {
        &self.queue
    }

    pub(super) fn info(&self) -> &DeviceInfo {
        &self.device
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
        let mut recent = self.recent.lock();
        let oldest = (recent.len() == MAX_RECENT).then(|| recent.pop_front());
        recent.push_back(event);
        drop(recent);
        // Release the event after the lock.
        drop(oldest);
    }

    /// Waits for a command, without a limit.
    ///
    /// # Errors
    /// The command has failed, or waiting for it has.
    pub(super) fn wait(&self, event: &Event, subject: &str) -> Result<(), ClError> {
        let caller =
            (self.caller.as_ref()).filter(|caller| caller.is_awake() && !Caller::is_current());
        let waited = match caller {
            Some(caller) => event.wait_by(caller),
            None => event.wait(),
        };
        waited.map_err(|(call, code)| self.failed(call, code, subject))?;
        self.count_progress();
        Ok(())
    }

    /// A number that grows whenever a wait or a command of any element ends. Asks the driver about
    /// at most one command.
    pub(super) fn progress(&self) -> u64 {
        let oldest = self.recent.lock().front().cloned();
        if let Some(oldest) = oldest
            && oldest.has_ended()
        {
            let mut recent = self.recent.lock();
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
        let last = self.recent.lock().back().cloned();
        last.is_none_or(|last| last.ends_within(limit))
    }

    /// The most recent command.
    pub(super) fn latest(&self) -> Option<Arc<Event>> {
        self.recent.lock().back().cloned()
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

    /// Sentences about what was removed from the driver's cache when the device was opened; each is returned once.
    pub fn take_removed(&self) -> Vec<String> {
        std::mem::take(&mut self.removed.lock())
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
        if let Some(built) = self.programs.lock().get(&key) {
            return built.clone();
        }
        check_compiler_allowed(source)?;
        notify_compiler(Compiling::Program(source.file()));
        let _driver = lock_driver();
        // Another thread may have built the program meanwhile.
        if let Some(built) = self.programs.lock().get(&key) {
            return built.clone();
        }
        if self.device.caps.has_dot4 && is_beside_frames() {
            self.fill_driver_cache(source, options);
        }
        if self.device.is_pocl
            && let Some(cache) = self.cache()
        {
            start::begin(cache);
        }
        // The compiler of a driver without a cache may take seconds.
        let cache = self.cache().filter(|_| !self.device.keeps_programs());
        let in_use = self.device.is_pocl.then(start::FirstUse::begin);
        let built = Program::build(self.raw_context(), &self.device, source, options, cache);
        drop(in_use);
        let built = built.map(Arc::new);
        if !matches!(&built, Ok(_) | Err(ClError::Refused(_))) {
            start::fail();
        }
        if let Ok(_) | Err(ClError::Build { .. } | ClError::Refused(_)) = &built {
            let mut programs = self.programs.lock();
            if source.has_constants() {
                // Each list of comparisons has a program of its own. Unused ones are dropped: a pitch that drifts would
                // fill the memory with them.
                let is_used = |program: &Arc<Program>| Arc::strong_count(program) > 1;
                programs.retain(|(other, _), built| {
                    *other != source || built.as_ref().map_or(true, is_used)
                });
            }
            programs.insert(key, built.clone());
        }
        built
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

/// A new queue. `profiled`: the device takes the times of its commands, which makes each command of NVIDIA's driver a third
/// slower.
///
/// # Errors
/// The error of `clCreateCommandQueue`.
fn new_queue(
    context: &Context,
    device: &DeviceInfo,
    (order, unneeded): (&Arc<Order>, &Unneeded),
    profiled: bool,
) -> Result<Arc<InOrderQueue>, ClError> {
    let flags = if profiled {
        CL_QUEUE_PROFILING_ENABLE
    } else {
        0
    };
    // SAFETY: both handles are valid; a queue keeps its own reference to the context.
    let queue = unsafe { create_command_queue(context.raw(), device.id, flags) }
        .map_err(|code| call_error("clCreateCommandQueue", code, &device.name))?;
    Ok(Arc::new(InOrderQueue::new(
        Queue::new(queue),
        order,
        unneeded,
        device.fails_whole(),
    )))
}

/// A device in use by one element: what all elements on the device share, and the element's queues.
///
/// On a device with memory of its own the elements that a frame passes have in-order queues together, so that no element
/// waits for the frames of another camera, and a command waits for another queue only behind an upload. All elements on a device that shares the
/// host's memory have one queue together: its order divides the device fairly (docs/adr/0030).
#[derive(Debug)]
pub struct ClContext {
    // Dropped before the context.
    /// Pinned memory for commands of this element, which no transfer uses now.
    pinned: Lock<Vec<Pinned>>,
    commands: Arc<InOrderQueue>,
    uploads: Arc<InOrderQueue>,
    /// The element that gets the frames enqueues into the same queue.
    is_followed: bool,
    /// The device takes the times of the commands.
    is_profiled: bool,
    device: Arc<DeviceContext>,
}

impl Deref for ClContext {
    type Target = DeviceContext;

    fn deref(&self) -> &DeviceContext {
        &self.device
    }
}

impl ClContext {
    /// `profiled`: the device takes the times of the element's commands.
    ///
    /// # Errors
    /// The error of `clCreateCommandQueue`.
    pub(super) fn new(device: Arc<DeviceContext>, profiled: bool) -> Result<Self, ClError> {
        let shared = (&device.order, &device.unneeded);
        let new = || new_queue(&device.context, &device.device, shared, profiled);
        let (commands, uploads) = if device.caps().shares_host_memory {
            (device.queue.clone(), device.queue.clone())
        } else {
            (new()?, new()?)
        };
        Ok(Self {
            pinned: Lock::new(Rank::Pinned, Vec::new()),
            commands,
            uploads,
            is_followed: false,
            is_profiled: profiled,
            device,
        })
    }

    /// Whether each command needs an event: for its times, or because its failure must reach the commands behind it.
    pub(super) fn marks_all(&self) -> bool {
        self.is_profiled || !self.commands.fails_whole()
    }

    pub(super) fn pinned(&self) -> &Lock<Vec<Pinned>> {
        &self.pinned
    }

    /// Whether both use the same memory: they are of the same device, and none was opened after a failure.
    pub fn shares_memory_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.device, &other.device)
    }

    /// Whether a memory of another element is pinned for this device.
    pub fn has_pinned(&self, memory: &gst::MemoryRef) -> bool {
        self.pins.has(memory)
    }

    /// Pins a memory of another element; see [`Pins::pin`].
    pub(super) fn pin(&self, memory: &gst::MemoryRef, bytes: &[u8], importer: u64) -> bool {
        let create = |flags, start: *mut c_void, len| self.create_buffer(flags, len, start);
        self.pins.pin(memory, bytes, importer, create)
    }

    /// The queue in which frames that the host wrote cross the bus: a source may be some frames ahead, and the kernels of
    /// a frame must not wait for the next ones.
    pub(super) fn uploads(&self) -> &Arc<InOrderQueue> {
        &self.uploads
    }

    /// The queue in which a frame of so many bytes crosses the bus. The kernels of a small one rather wait for the next
    /// one: the calls with which queues wait for one another take longer.
    pub(super) fn uploads_of(&self, bytes: usize) -> &Arc<InOrderQueue> {
        if bytes < SMALL_FRAME {
            &self.commands
        } else {
            &self.uploads
        }
    }

    /// Whether the commands of the element that gets a frame of so many bytes hand these over to the device, too. The device
    /// begins with a large frame at once.
    pub(super) fn is_followed(&self, bytes: usize) -> bool {
        self.is_followed && bytes < SMALL_FRAME
    }

    /// The queue of all other commands.
    pub(super) fn commands(&self) -> &Arc<InOrderQueue> {
        &self.commands
    }

    /// The wait list of a command for `queue`. Flushes other queues: without a flush the wait may never end
    /// (OpenCL 1.2, 5.13). Events of `queue` itself are in the list so that their failure reaches the command.
    pub(super) fn wait_list<'a>(
        &self,
        turn: &Turn,
        queue: &Arc<InOrderQueue>,
        events: impl Iterator<Item = &'a Arc<Event>>,
    ) -> Result<Vec<cl_event>, ClError> {
        let fails_whole = queue.fails_whole();
        events
            .filter(|event| {
                !(fails_whole && (event.is_in(queue) || event.is_known_to_be_complete()))
            })
            .map(|event| match event.raw_in(queue) {
                Some(raw) => Ok(raw),
                None => (event.awaited(turn))
                    .map_err(|(call, code)| self.failed(call, code, self.device_name())),
            })
            .collect()
    }

    /// Hands enqueued commands to the device without waiting for them.
    pub(super) fn flush(&self, turn: &Turn, queue: &InOrderQueue) -> Result<(), ClError> {
        (queue.flush(turn)).map_err(|code| self.failed("clFlush", code, self.device_name()))
    }

    /// Waits for the end of the most recent command, and thus of all before it, with or without a failure.
    ///
    /// # Errors
    /// The wait has failed.
    pub(super) fn wait_for_last(&self) -> Result<(), ClError> {
        let last = self.latest();
        last.map_or(Ok(()), |last| self.wait_for_end(&last))
    }

    /// Waits for a command that reads host memory, unless the command is known to have ended, with
    /// or without a failure.
    ///
    /// # Errors
    /// The wait has failed.
    pub(crate) fn wait_for_end(&self, event: &Event) -> Result<(), ClError> {
        match event.is_known_to_have_ended() {
            true => Ok(()),
            false => self.wait(event, "a frame"),
        }
    }

    /// Waits for kernels that process `bytes` bytes, the last of which is `event`, without a limit.
    ///
    /// # Errors
    /// The command has failed, or waiting for it has.
    pub(super) fn wait_for_kernels(
        &self,
        event: &Event,
        bytes: usize,
        subject: &str,
    ) -> Result<(), ClError> {
        if self.info().has_pinned_workers() && is_polled(bytes) {
            event.yield_until_done();
        }
        self.wait(event, subject)
    }

    /// Waits for the last command that was submitted with `meter`, and takes its times. If no
    /// command of any element ends within `limit`, the device is marked as stalled. If the device is only
    /// busy, the wait lasts up to a few times the limit, and the device is not marked.
    ///
    /// # Errors
    /// The failure of the command; [`ClError::Unavailable`] after the limit, or at once if the
    /// device is marked as stalled, since the elements of one pipeline stop one after the other.
    pub fn finish_within(
        self: &Arc<Self>,
        limit: Duration,
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        let late = |why: &str| {
            ClError::Unavailable(format!(
                "{} did not finish the last frames within {limit:?}: {why}",
                self.device_name()
            ))
        };
        let stalled = || late("the device or its driver hangs; stop and start the pipeline");
        let Some(last) = meter.last_command() else {
            return Ok(());
        };
        if self.is_stalled() {
            return Err(stalled());
        }
        let begun = Instant::now();
        let mut seen = (0, begun);
        let mut no_progress = false;
        let mut asked = begun;
        let ended = last.poll(|| {
            asked = Instant::now();
            if asked - begun >= PATIENCE * limit {
                return true;
            }
            let progress = self.progress();
            if progress != seen.0 {
                seen = (progress, Instant::now());
            }
            no_progress = seen.1.elapsed() >= limit;
            no_progress
        });
        let ended =
            ended.map_err(|(call, code)| self.failed(call, code, "the last frames' commands"));
        match ended? {
            Status::Complete => {}
            Status::Failed(code) => return Err(self.failed("a command", code, "the last frames")),
            Status::Pending if no_progress => {
                self.condemn();
                return Err(stalled());
            }
            Status::Pending => {
                return Err(late("it is busy; lower the load, or use another device"));
            }
        }
        if asked.elapsed() >= limit {
            // The last status query took longer than `limit`, so the driver stalls: the next element must not wait for
            // another query.
            self.condemn();
        }
        self.count_progress();
        meter.harvest();
        Ok(())
    }

    /// Waits until the device has executed every enqueued command. For measurements; elements wait
    /// for their own commands with [`Self::finish_within`].
    pub fn finish(&self) -> Result<(), ClError> {
        for queue in [&self.uploads, &self.commands] {
            (queue.finish()).map_err(|code| self.failed("clFinish", code, self.device_name()))?;
        }
        Ok(())
    }
}

/// A frame of fewer bytes crosses the bus in less time than the calls take that let transfers and kernels overlap, where
/// several pipelines wait for the driver.
const SMALL_FRAME: usize = 4 << 20;

/// Whether the host polls for the end of kernels that process this many bytes.
fn is_polled(bytes: usize) -> bool {
    POLLED_BYTES.contains(&bytes)
}

struct Registry {
    /// The process that first used OpenCL; drivers do not survive a fork.
    process: Option<u32>,
    /// The devices found last; valid while a context lives.
    devices: Vec<DeviceInfo>,
    /// Contexts and the ids of their devices.
    contexts: Vec<(usize, Weak<DeviceContext>)>,
}

/// Never locked during a driver call, except to release a context.
static REGISTRY: Lock<Registry> = Lock::new(
    Rank::Registry,
    Registry {
        process: None,
        devices: Vec::new(),
        contexts: Vec::new(),
    },
);

impl Registry {
    /// The open context of the device that `selector` names.
    ///
    /// # Errors
    /// OpenCL was used before this process was forked.
    fn opened(&mut self, selector: &DeviceSelector) -> Result<Option<Arc<DeviceContext>>, ClError> {
        let process = std::process::id();
        if *self.process.get_or_insert(process) != process {
            return Err(ClError::Unavailable(
                "OpenCL was used before this process was forked, and drivers do not survive a \
                 fork: start the pipeline in a process of its own (spawn instead of fork)"
                    .into(),
            ));
        }
        // Frames in use elsewhere may keep the context of a failed device alive.
        self.contexts
            .retain(|(_, context)| context.upgrade().is_some_and(|c| !c.has_failed()));
        if self.contexts.is_empty() {
            self.devices.clear();
        }
        let Some(index) = choose(selector, &self.devices) else {
            return Ok(None);
        };
        let id = self.devices[index].id as usize;
        let known = self.contexts.iter().find(|(known, _)| *known == id);
        Ok(known.and_then(|(_, context)| context.upgrade()))
    }
}

/// Opens the device that `selector` names for an element. All elements on a device share its context.
///
/// # Errors
/// [`ClError::Unavailable`] if there is no such device; otherwise the failing OpenCL call.
pub fn open(selector: &str) -> Result<Arc<ClContext>, ClError> {
    with_queues(opened(selector)?, false)
}

/// Like [`open`], for an element whose frames go to the element that uses `next`: on the same device they have one queue,
/// so no command waits for another queue.
///
/// # Errors
/// See [`open`].
pub fn open_before(selector: &str, next: Option<&ClContext>) -> Result<Arc<ClContext>, ClError> {
    let device = opened(selector)?;
    let next = next.filter(|next| Arc::ptr_eq(&next.device, &device) && !next.is_profiled);
    match next {
        Some(next) => Ok(Arc::new(ClContext {
            pinned: Lock::new(Rank::Pinned, Vec::new()),
            commands: next.commands.clone(),
            uploads: next.uploads.clone(),
            is_followed: !device.caps().shares_host_memory,
            is_profiled: false,
            device,
        })),
        None => with_queues(device, false),
    }
}

/// Like [`open`]; the device takes the times of the element's commands, for a [`Meter`](super::Meter) that measures.
///
/// # Errors
/// See [`open`].
pub fn open_profiled(selector: &str) -> Result<Arc<ClContext>, ClError> {
    with_queues(opened(selector)?, true)
}

/// An element's queues on a device.
fn with_queues(device: Arc<DeviceContext>, is_profiled: bool) -> Result<Arc<ClContext>, ClError> {
    let opened = ClContext::new(device.clone(), is_profiled);
    let opened = opened.map_err(|error| not_opened(error, device.info(), &REGISTRY.lock().devices));
    opened.map(Arc::new)
}

/// The context that the process already has for the device, or a new one.
fn opened(selector: &str) -> Result<Arc<DeviceContext>, ClError> {
    let parsed = DeviceSelector::parse(selector);
    if let Some(context) = REGISTRY.lock().opened(&parsed)? {
        return Ok(context);
    }
    let _driver = lock_driver();
    // Another thread may have opened the device meanwhile.
    if let Some(context) = REGISTRY.lock().opened(&parsed)? {
        return Ok(context);
    }
    let devices = enumerate()?;
    let index = choose(&parsed, &devices).ok_or_else(|| not_found(selector, &devices))?;
    let device = &devices[index];
    let mut removed = Vec::new();
    if device.is_pocl {
        removed.extend(pocl::check_cache()?);
        removed.extend(Cache::open().ok().and_then(|cache| start::begin(&cache)));
    }
    let context = DeviceContext::new(device);
    let context = Arc::new(context.map_err(|error| not_opened(error, device, &devices))?);
    *context.removed.lock() = removed;
    gst::info!(CAT, "opened {}: {:?}", device.name, device.caps);
    let mut registry = REGISTRY.lock();
    registry
        .contexts
        .push((device.id as usize, Arc::downgrade(&context)));
    registry.devices = devices;
    Ok(context)
}

#[cfg(test)]
mod tests {
    use super::is_polled;

    #[test]
    fn is_polled_holds_for_frames_of_middle_size() {
        let sizes = [
            (320, 240),
            (640, 480),
            (1920, 1080),
            (3840, 2160),
            (4096, 3072),
        ];
        let polled = sizes.map(|(width, height)| is_polled(width * height));
        assert_eq!(polled, [false, true, true, true, false]);
    }
}
