//! Host memory in which results of the device arrive.

use std::{ptr, sync::Arc};

use opencl3::{
    command_queue::{enqueue_map_buffer, enqueue_unmap_mem_object},
    memory::{CL_MAP_READ, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE},
    types::{CL_TRUE, cl_mem},
};

use super::{
    context::ClContext,
    handle::{Mem, release},
    queue::InOrderQueue,
};
use clinspect_core::ClError;

/// Smallest memory: the histograms of a colour frame fit.
const MIN_BYTES: usize = 4096;

/// Pinned host memory: a read into other memory waits for the device inside its call.
#[derive(Debug)]
pub(super) struct Landing {
    mem: Mem,
    pointer: cl_mem,
    len: usize,
    queue: Arc<InOrderQueue>,
}

// SAFETY: the pointer is of a mapping that lasts as long as the value.
unsafe impl Send for Landing {}

impl Landing {
    /// Memory for `len` bytes or more.
    ///
    /// # Errors
    /// The device is out of memory; a failing call.
    pub fn new(context: &ClContext, len: usize) -> Result<Self, ClError> {
        let len = len.max(MIN_BYTES);
        let flags = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
        let mem = context.create_buffer(flags, len, ptr::null_mut())?;
        let queue = context.commands().clone();
        let mut pointer: cl_mem = ptr::null_mut();
        // SAFETY: the range is the whole buffer.
        let map = |raw| unsafe {
            enqueue_map_buffer(
                raw,
                mem.raw(),
                CL_TRUE,
                CL_MAP_READ,
                0,
                len,
                &mut pointer,
                0,
                ptr::null(),
            )
        };
        (queue.enqueue(map))
            .map_err(|code| context.failed("clEnqueueMapBuffer", code, "results"))?;
        Ok(Self {
            mem,
            pointer,
            len,
            queue,
        })
    }

    pub fn holds(&self, len: usize) -> bool {
        len <= self.len
    }

    pub fn pointer(&self) -> *mut u8 {
        self.pointer.cast()
    }

    /// Copies the first bytes to `out`, which is no longer than the memory.
    pub fn take(&self, out: &mut [u8]) {
        let len = out.len().min(self.len);
        // SAFETY: the mapping has `len` bytes, and the command that wrote them has ended.
        unsafe { ptr::copy_nonoverlapping(self.pointer(), out.as_mut_ptr(), len) };
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        let (queue, pointer) = (self.queue.clone(), Address(self.pointer));
        release("clEnqueueUnmapMemObject", self.mem.raw(), move |mem| {
            let pointer = &pointer;
            // SAFETY: the pointer came from mapping this buffer, which is released after this call, and nobody uses it
            // any more.
            let unmap =
                |raw| unsafe { enqueue_unmap_mem_object(raw, mem, pointer.0, 0, ptr::null()) };
            queue.enqueue(unmap).map(drop)
        });
    }
}

/// The address of mapped memory, for the thread that unmaps it.
struct Address(cl_mem);

// SAFETY: the address is only handed to the driver.
unsafe impl Send for Address {}
