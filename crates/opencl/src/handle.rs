//! Owned OpenCL objects: released exactly once; a failing release is logged, not a panic.

use std::sync::LazyLock;

use opencl3::{
    command_queue::release_command_queue,
    context::context::release_context,
    error_codes::error_text,
    event::{
        CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, CL_PROFILING_COMMAND_END,
        CL_PROFILING_COMMAND_START, get_event_info, get_event_profiling_info, release_event,
        wait_for_events,
    },
    kernel::release_kernel,
    memory::release_mem_object,
    program::release_program,
    types::{cl_command_queue, cl_context, cl_event, cl_kernel, cl_mem, cl_program},
};

use super::releases::release;
use clinspect_core::ClError;

pub(super) static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "clcontext",
        gst::DebugColorFlags::empty(),
        Some("OpenCL devices, contexts and queues"),
    )
});

/// An OpenCL call's error with what it was about.
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
                    // SAFETY: the handle owned this one reference, and is dropped once.
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
handle!(
    /// A kernel with its arguments.
    Kernel, cl_kernel, release_kernel, "clReleaseKernel"
);
// SAFETY: clSetKernelArg, the one call that is not thread-safe, needs `&mut Kernel`
// (`ClContext::run`).
unsafe impl Sync for Kernel {}
handle!(
    /// The completion of an enqueued command.
    Event, cl_event, release_event, "clReleaseEvent"
);
shared_handle!(Event);

impl Event {
    /// Waits until the command has completed.
    ///
    /// # Errors
    /// The command failed, or waiting did.
    pub fn wait(&self, subject: &str) -> Result<(), ClError> {
        wait_for_events(&[self.0]).map_err(|code| call_error("clWaitForEvents", code, subject))
    }

    /// The failure of the command, where it has failed by now.
    pub fn failure(&self, subject: &str) -> Option<ClError> {
        let status = get_event_info(self.0, CL_EVENT_COMMAND_EXECUTION_STATUS).ok()?;
        let code = status.to_int();
        (code < CL_COMPLETE).then(|| call_error("a command", code, subject))
    }

    /// Whether the command has completed; a failed one counts as completed.
    pub fn is_complete(&self) -> bool {
        // An event that cannot be asked will not become complete either.
        get_event_info(self.0, CL_EVENT_COMMAND_EXECUTION_STATUS)
            .map_or(true, |info| info.to_int() <= CL_COMPLETE)
    }

    /// Nanoseconds from this completed command's start to the end of `last`, where the driver
    /// knows.
    pub fn duration_until_ns(&self, last: &Self) -> Option<u64> {
        let time = |event, what| {
            get_event_profiling_info(event, what)
                .ok()
                .map(|info| info.to_ulong())
        };
        time(last.0, CL_PROFILING_COMMAND_END)?
            .checked_sub(time(self.0, CL_PROFILING_COMMAND_START)?)
    }
}
