//! Owned OpenCL objects, and the launch of a kernel. Objects are released exactly once; a failing release is logged, not a
//! panic. A driver that stalls in a release must not delay a stop.

use std::{
    collections::VecDeque,
    ffi::c_void,
    ptr,
    sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use opencl3::{
    command_queue::{enqueue_nd_range_kernel, release_command_queue},
    context::context::release_context,
    error_codes::{CL_SUCCESS, error_text},
    event::release_event,
    kernel::release_kernel,
    memory::release_mem_object,
    program::release_program,
    types::{cl_command_queue, cl_context, cl_event, cl_kernel, cl_mem, cl_program},
};

use super::sync::Rank;
use clinspect_core::ClError;

/// libOpenCL could not be loaded (cl3's own code).
pub(super) const NO_LIBRARY: i32 = -2000;

/// The debug category of devices and commands.
pub(super) static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "clcontext",
        gst::DebugColorFlags::empty(),
        Some("OpenCL devices, contexts and queues"),
    )
});

/// The error of a failed OpenCL call on `subject`.
pub(super) fn call_error(call: &'static str, code: i32, subject: impl Into<String>) -> ClError {
    ClError::Call {
        call,
        code,
        code_name: error_text(code),
        subject: subject.into(),
    }
}

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $raw:ty, $release:ident, $call:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name($raw);

        // SAFETY: OpenCL 1.2 (A.2) makes objects usable from any thread.
        unsafe impl Send for $name {}

        impl $name {
            /// Takes over the reference that the creating call returned.
            pub(super) fn new(raw: $raw) -> Self {
                Self(raw)
            }

            /// The object, valid while `self` lives.
            pub(super) fn raw(&self) -> $raw {
                self.0
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                release($call, self.0, |object| {
                    // SAFETY: the handle owned this one reference, and it is released only here.
                    unsafe { $release(object) }
                });
            }
        }
    };
}

macro_rules! shared_handle {
    ($name:ident) => {
        // SAFETY: every OpenCL 1.2 call but clSetKernelArg is thread-safe (A.2).
        unsafe impl Sync for $name {}
    };
}

handle!(
    /// A context.
    Context, cl_context, release_context, "clReleaseContext"
);
shared_handle!(Context);
handle!(
    /// An in-order command queue.
    Queue, cl_command_queue, release_command_queue, "clReleaseCommandQueue"
);
shared_handle!(Queue);
handle!(
    /// A built program.
    BuiltProgram, cl_program, release_program, "clReleaseProgram"
);
shared_handle!(BuiltProgram);
handle!(
    /// A buffer or an image on a device.
    Mem, cl_mem, release_mem_object, "clReleaseMemObject"
);
shared_handle!(Mem);

impl Mem {
    /// The object, for the caller to release.
    pub(super) fn into_raw(self) -> cl_mem {
        std::mem::ManuallyDrop::new(self).0
    }
}

handle!(
    /// A kernel with its arguments.
    KernelHandle, cl_kernel, release_kernel, "clReleaseKernel"
);
// SAFETY: clSetKernelArg, the one call that is not thread-safe, needs `&mut Kernel`
// (`Submission::run`).
unsafe impl Sync for KernelHandle {}

/// A kernel with its arguments.
#[derive(Debug)]
pub struct Kernel {
    handle: KernelHandle,
    was_launched: bool,
}

impl Kernel {
    pub(super) fn new(raw: cl_kernel) -> Self {
        Self {
            handle: KernelHandle::new(raw),
            was_launched: false,
        }
    }

    pub(super) fn raw(&self) -> cl_kernel {
        self.handle.raw()
    }

    /// Whether the next launch is the first one, at which a driver may generate code.
    pub(super) fn begin_launch(&mut self) -> bool {
        !std::mem::replace(&mut self.was_launched, true)
    }
}
handle!(
    /// An event.
    EventHandle, cl_event, release_event, "clReleaseEvent"
);
shared_handle!(EventHandle);

/// The global and local size of a launch; with `local` `None` the runtime chooses the local size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NdRange {
    /// Work-items along each dimension.
    pub global: [usize; 2],
    /// Work-items of a work-group along each dimension.
    pub local: Option<[usize; 2]>,
}

impl NdRange {
    /// One dimension, local size chosen by the runtime.
    pub fn linear(items: usize) -> Self {
        Self {
            global: [items, 1],
            local: None,
        }
    }

    /// One dimension: `groups` work-groups of `local` work-items.
    pub fn groups(groups: usize, local: usize) -> Self {
        Self {
            global: [groups * local, 1],
            local: Some([local, 1]),
        }
    }

    /// `groups[0]` × `groups[1]` work-groups of `local` × 1 work-items.
    pub fn tiles(groups: [usize; 2], local: usize) -> Self {
        Self {
            global: [groups[0] * local, groups[1]],
            local: Some([local, 1]),
        }
    }

    /// Covers `extent` with whole work-groups of `local`; the kernel checks bounds.
    pub fn cover(extent: [usize; 2], local: [usize; 2]) -> Self {
        Self {
            global: [
                extent[0].next_multiple_of(local[0]),
                extent[1].next_multiple_of(local[1]),
            ],
            local: Some(local),
        }
    }
}

/// Enqueues a kernel of two dimensions. `wants_event`: the command has an event, else the result is null; opencl3 asks for an
/// event in each call.
///
/// # Safety
/// As for `clEnqueueNDRangeKernel`.
///
/// # Errors
/// The status of the call.
pub(super) unsafe fn enqueue_kernel(
    queue: cl_command_queue,
    kernel: cl_kernel,
    range: &NdRange,
    waits: &[cl_event],
    wants_event: bool,
) -> Result<cl_event, i32> {
    let global = range.global.as_ptr();
    let local = range.local.as_ref().map_or(ptr::null(), |l| l.as_ptr());
    let (count, list) = (waits.len() as u32, first_of(waits));
    if wants_event {
        // SAFETY: the caller's.
        return unsafe {
            enqueue_nd_range_kernel(queue, kernel, 2, ptr::null(), global, local, count, list)
        };
    }
    let library = cl3::load_library().as_ref().map_err(|_| NO_LIBRARY)?;
    let event = ptr::null_mut();
    let status = library.clEnqueueNDRangeKernel(
        queue,
        kernel,
        2,
        ptr::null(),
        global,
        local,
        count,
        list,
        event,
    );
    match status.ok_or(NO_LIBRARY)? {
        CL_SUCCESS => Ok(ptr::null_mut()),
        code => Err(code),
    }
}

/// An empty list must be passed as a null pointer.
pub(super) fn first_of(events: &[cl_event]) -> *const cl_event {
    if events.is_empty() {
        ptr::null()
    } else {
        events.as_ptr()
    }
}

/// A release that takes longer than this shows that the driver stalls.
const STALL: Duration = Duration::from_millis(500);

/// Releases for the background thread, in order; `None` while the driver does not stall.
static WAITING: Mutex<Option<VecDeque<Release>>> = Mutex::new(None);

/// Wakes the background thread.
static MORE: Condvar = Condvar::new();
/// Wakes those who wait for the background thread.
static LESS: Condvar = Condvar::new();

fn waiting() -> MutexGuard<'static, Option<VecDeque<Release>>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call for the background thread.
struct Release {
    call: &'static str,
    work: Box<dyn FnOnce() -> Result<(), i32> + Send>,
}

/// Whether releases wait in the background: objects that were dropped may still exist.
pub(super) fn are_late() -> bool {
    waiting().is_some()
}

/// Waits for at most [`STALL`] for the releases in the background. Called before memory is allocated: a program that makes and
/// drops memory faster than a driver that has stalled releases it would run out of memory. A thread with the turn does not
/// wait, because releases need it.
pub(super) fn wait_for_late() {
    if Rank::Order.is_held() {
        return;
    }
    let are_waiting = |releases: &mut Option<VecDeque<Release>>| {
        releases.as_ref().is_some_and(|late| !late.is_empty())
    };
    drop(LESS.wait_timeout_while(waiting(), STALL, are_waiting));
}

/// An object for the background thread to release.
struct Object(*mut c_void);

// SAFETY: OpenCL 1.2 (A.2) lets any thread release an object, or unmap one.
unsafe impl Send for Object {}

/// Calls `work` on `object`. Once a call has stalled, later calls go to a background thread, so
/// that an element with dozens of objects waits for one stall only. The order of the calls stays
/// the same.
///
/// `call` is the name of the OpenCL call; if `work` returns an error code, the failure is logged.
pub(super) fn release(
    call: &'static str,
    object: *mut c_void,
    work: impl FnOnce(*mut c_void) -> Result<(), i32> + Send + 'static,
) {
    let object = Object(object);
    let work = move || {
        // The closure must capture the `Send` wrapper, not only its pointer.
        let object = object;
        work(object.0)
    };
    if let Some(releases) = &mut *waiting() {
        let work = Box::new(work);
        releases.push_back(Release { call, work });
        MORE.notify_one();
        return;
    }
    let begun = Instant::now();
    log_failure(call, work());
    if begun.elapsed() > STALL {
        gst::warning!(
            CAT,
            "{call} stalls; further OpenCL objects are released in the background"
        );
        work_in_background();
    }
}

fn log_failure(call: &str, result: Result<(), i32>) {
    if let Err(code) = result {
        gst::error!(CAT, "{call} failed with {} ({code})", error_text(code));
    }
}

fn work_in_background() {
    let mut releases = waiting();
    if releases.is_some() {
        return;
    }
    let thread = std::thread::Builder::new().name("clreleases".into());
    match thread.spawn(work_until_none_waits) {
        Ok(_) => *releases = Some(VecDeque::new()),
        Err(error) => gst::warning!(CAT, "cannot start a thread for releases: {error}"),
    }
}

/// Makes the queued calls in order. Ends when no call was queued for a while; the next stall starts
/// a new thread.
fn work_until_none_waits() {
    loop {
        let is_empty = |releases: &mut Option<VecDeque<Release>>| {
            releases.as_ref().is_none_or(VecDeque::is_empty)
        };
        let (mut releases, _) = MORE
            .wait_timeout_while(waiting(), STALL, is_empty)
            .unwrap_or_else(PoisonError::into_inner);
        let Some(release) = releases.as_mut().and_then(VecDeque::pop_front) else {
            *releases = None;
            return;
        };
        drop(releases);
        log_failure(release.call, (release.work)());
        LESS.notify_all();
    }
}
