//! A buffer's mapping into the host's memory, and its end.

use std::{ffi::c_void, ptr, sync::Arc};

use opencl3::{command_queue::enqueue_unmap_mem_object, types::cl_mem};

use super::{context::ClContext, handle::Event, releases::release};
use clinspect_core::ClError;

/// What the host wants with mapped memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// It reads.
    pub read: bool,
    /// It writes; bytes that it leaves alone keep their value.
    pub write: bool,
}

/// How a buffer is mapped.
#[derive(Debug, Clone)]
pub(super) struct Mapping {
    /// Maps that nobody has undone yet.
    pub count: usize,
    /// Where the bytes are, while the mapping stands.
    pub pointer: *mut u8,
    /// The host may write.
    pub writable: bool,
    /// Nobody uses a mapping for reading any more, and it still stands: the next reader needs no
    /// transfer. Whoever writes ends it first.
    pub kept: bool,
}

// SAFETY: the pointer is only handed out while `count` says the mapping stands.
unsafe impl Send for Mapping {}

impl Default for Mapping {
    fn default() -> Self {
        Self {
            count: 0,
            pointer: ptr::null_mut(),
            writable: false,
            kept: false,
        }
    }
}

impl Mapping {
    /// Ends it, in the queue in which it began.
    ///
    /// # Safety
    /// It stands on `mem`, which lives, and nobody uses its pointer any more.
    ///
    /// # Errors
    /// The failing call.
    pub unsafe fn end(&self, context: &ClContext, mem: cl_mem) -> Result<Arc<Event>, ClError> {
        let pointer: *mut c_void = self.pointer.cast();
        let queue = if self.writable {
            context.raw_upload_queue()
        } else {
            context.raw_queue()
        };
        // SAFETY: the pointer came from mapping `mem`; the caller promises the rest.
        unsafe { enqueue_unmap_mem_object(queue, mem, pointer, 0, ptr::null()) }
            .map(|event| Arc::new(Event::new(event)))
            .map_err(|code| context.failed("clEnqueueUnmapMemObject", code, "a frame"))
    }

    /// As [`Self::end`], for a buffer that is dropped: in the order of releases, for a stop frees
    /// many buffers, and a driver that stalls must not hold it up at each. A failure is logged.
    ///
    /// # Safety
    /// As that of [`Self::end`]; `mem` is released by a drop after this.
    pub unsafe fn end_with_buffer(&self, context: &Arc<ClContext>, mem: cl_mem) {
        if self.count == 0 && !self.kept {
            return;
        }
        let (context, mapping) = (context.clone(), self.clone());
        release("clEnqueueUnmapMemObject", mem, move |mem| {
            // SAFETY: its release comes after this one, and the caller promises the rest.
            match unsafe { mapping.end(&context, mem) } {
                Err(ClError::Call { code, .. }) => Err(code),
                _ => Ok(()),
            }
        });
    }
}
