//! A buffer's mapping into the host's memory, and its end.

use std::{ptr, sync::Arc};

use opencl3::{command_queue::enqueue_unmap_mem_object, types::cl_mem};

use super::{context::ClContext, event::Event, queue::InOrderQueue, releases::release};
use clinspect_core::ClError;

/// What the host wants with mapped memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// It reads.
    pub read: bool,
    /// It writes; bytes that it leaves alone keep their value.
    pub write: bool,
}

/// A mapping that stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mapping {
    /// Where the bytes are.
    pub pointer: *mut u8,
    /// The host may write.
    pub writable: bool,
}

// SAFETY: the pointer is only handed out while the buffer's state says that the mapping stands.
unsafe impl Send for Mapping {}

impl Mapping {
    /// The queue in which such a mapping begins and ends.
    pub fn queue(context: &ClContext, writable: bool) -> &Arc<InOrderQueue> {
        if writable {
            context.uploads()
        } else {
            context.commands()
        }
    }

    /// Enqueues its end.
    ///
    /// # Safety
    /// It stands on `mem`, which lives, and nobody uses its pointer any more.
    ///
    /// # Errors
    /// The failing call.
    pub unsafe fn end(self, context: &ClContext, mem: cl_mem) -> Result<Arc<Event>, ClError> {
        let queue = Self::queue(context, self.writable);
        // SAFETY: the pointer came from mapping `mem`; the caller promises the rest.
        unsafe { enqueue_unmap_mem_object(queue.raw(), mem, self.pointer.cast(), 0, ptr::null()) }
            .map(|event| Event::of(queue, event))
            .map_err(|code| context.failed("clEnqueueUnmapMemObject", code, "a frame"))
    }

    /// As [`Self::end`], for a buffer that is dropped: in the order of releases, for a stop frees
    /// many buffers, and a driver that stalls must not hold it up at each. A failure is logged.
    ///
    /// # Safety
    /// As that of [`Self::end`]; `mem` is released by a drop after this.
    pub unsafe fn end_with_buffer(self, context: &Arc<ClContext>, mem: cl_mem) {
        let context = context.clone();
        release("clEnqueueUnmapMemObject", mem, move |mem| {
            // SAFETY: its release comes after this one, and the caller promises the rest.
            match unsafe { self.end(&context, mem) } {
                Err(ClError::Call { code, .. }) => Err(code),
                _ => Ok(()),
            }
        });
    }
}
