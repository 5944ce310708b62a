//! A buffer's mapping into host memory.

use std::{ptr, sync::Arc};

use opencl3::{command_queue::enqueue_unmap_mem_object, types::cl_mem};

use super::{context::ClContext, event::Event, queue::InOrderQueue, releases::release};
use clinspect_core::ClError;

/// How the host accesses mapped memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The host reads.
    pub read: bool,
    /// The host writes; bytes that it does not write keep their value.
    pub write: bool,
}

/// A mapping in force.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mapping {
    /// Address of the first byte.
    pub pointer: *mut u8,
    /// The host may write.
    pub writable: bool,
}

// SAFETY: the pointer is handed out only while the buffer's state holds the mapping.
unsafe impl Send for Mapping {}

impl Mapping {
    /// The queue in which a mapping of this kind begins and ends.
    pub fn queue(context: &ClContext, writable: bool) -> &Arc<InOrderQueue> {
        if writable {
            context.uploads()
        } else {
            context.commands()
        }
    }

    /// Enqueues the unmap.
    ///
    /// # Safety
    /// The mapping belongs to `mem`, `mem` is alive, and nobody uses the pointer any more.
    ///
    /// # Errors
    /// The failing call.
    pub unsafe fn end(self, context: &ClContext, mem: cl_mem) -> Result<Arc<Event>, ClError> {
        let queue = Self::queue(context, self.writable);
        // SAFETY: the pointer came from mapping `mem`; the caller guarantees the rest.
        queue
            .enqueue(|raw| unsafe {
                enqueue_unmap_mem_object(raw, mem, self.pointer.cast(), 0, ptr::null())
            })
            .map_err(|code| context.failed("clEnqueueUnmapMemObject", code, "a frame"))
    }

    /// Like [`Self::end`], for a buffer that is dropped. The unmap goes through [`release`], so
    /// that a stalling driver does not delay a stop once per buffer. A failure is logged.
    ///
    /// # Safety
    /// Like [`Self::end`]; `mem` is released with [`release`] after this call.
    pub unsafe fn end_with_buffer(self, context: &Arc<ClContext>, mem: cl_mem) {
        let context = context.clone();
        release("clEnqueueUnmapMemObject", mem, move |mem| {
            // SAFETY: the release of `mem` comes after this call, and the caller guarantees the
            // rest.
            match unsafe { self.end(&context, mem) } {
                Err(ClError::Call { code, .. }) => Err(code),
                _ => Ok(()),
            }
        });
    }
}
