//! Owned OpenCL objects: released exactly once; a failing release is logged, not a panic.

use opencl3::{
    command_queue::release_command_queue,
    context::context::release_context,
    error_codes::error_text,
    event::release_event,
    kernel::release_kernel,
    memory::release_mem_object,
    program::release_program,
    types::{cl_command_queue, cl_context, cl_event, cl_kernel, cl_mem, cl_program},
};

use super::releases::release;
use clinspect_core::ClError;

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
    Kernel, cl_kernel, release_kernel, "clReleaseKernel"
);
// SAFETY: clSetKernelArg, the one call that is not thread-safe, needs `&mut Kernel`
// (`Submission::run`).
unsafe impl Sync for Kernel {}
handle!(
    /// An event.
    EventHandle, cl_event, release_event, "clReleaseEvent"
);
shared_handle!(EventHandle);
