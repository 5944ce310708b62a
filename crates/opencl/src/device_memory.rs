//! Memory objects, and commands on memory that only one operator uses, for which the order of the queue is enough.

use std::{ffi::c_void, mem::size_of, ptr, sync::Arc};

use opencl3::{
    command_queue::{enqueue_fill_buffer, enqueue_read_buffer, enqueue_write_buffer},
    memory::{CL_MEM_READ_WRITE, create_buffer},
    types::{CL_FALSE, CL_TRUE},
};

use super::{
    context::{ClContext, first_of},
    handle::{Mem, call_error},
    queue::Event,
    turns::Turn,
};
use clinspect_core::ClError;

impl ClContext {
    /// Memory that only the device uses: tables, weights, intermediate results.
    ///
    /// # Errors
    /// The device is out of memory, or `size` exceeds its limit.
    pub fn device_memory(&self, size: usize) -> Result<Mem, ClError> {
        self.create_buffer(CL_MEM_READ_WRITE, size.max(1), ptr::null_mut())
    }

    /// A memory object of `size` bytes; with `CL_MEM_USE_HOST_PTR` in `flags`, the bytes at `host`, which the caller
    /// keeps for longer than the object.
    pub(super) fn create_buffer(
        &self,
        flags: u64,
        size: usize,
        host: *mut c_void,
    ) -> Result<Mem, ClError> {
        let limit = self.caps().max_allocation;
        if size as u64 > limit {
            return Err(ClError::Refused(format!(
                "{size} bytes are over the {limit} that {} allows for one buffer: send smaller frames, \
                 or set device to another one",
                self.device_name()
            )));
        }
        // SAFETY: `host` is null, or the caller keeps the bytes for longer than the memory object.
        unsafe { create_buffer(self.raw_context(), flags, size, host) }
            .map(Mem::new)
            .map_err(|code| call_error("clCreateBuffer", code, format!("{size} bytes")))
    }

    /// Reads `out.len()` bytes from `offset`, and waits for the read and for all commands before
    /// it.
    pub fn read(
        &self,
        mem: &Mem,
        offset: usize,
        out: &mut [u8],
        subject: &str,
    ) -> Result<(), ClError> {
        (self.read_after(mem, offset, out, None, None, subject)).map(drop)
    }

    /// Like [`Self::read`]; a failure of `before` fails the read. `turn` ends before the wait.
    pub(super) fn read_after(
        &self,
        mem: &Mem,
        offset: usize,
        out: &mut [u8],
        before: Option<&Arc<Event>>,
        turn: Option<Turn>,
        subject: &str,
    ) -> Result<Arc<Event>, ClError> {
        let queue = self.commands();
        let waits = self.wait_list(queue, before.into_iter())?;
        let len = out.len();
        let read = |blocks, to: *mut u8| {
            // SAFETY: the driver checks the range against the buffer, and `to` has `len` bytes until the command
            // has ended.
            let event = queue.enqueue(|raw| unsafe {
                enqueue_read_buffer(
                    raw,
                    mem.raw(),
                    blocks,
                    offset,
                    len,
                    to.cast(),
                    waits.len() as u32,
                    first_of(&waits),
                )
            });
            event.map_err(|code| self.failed("clEnqueueReadBuffer", code, subject))
        };
        let event = match self.landing(len)? {
            // Other threads enqueue while this one waits.
            Some(landing) => {
                let event = read(CL_FALSE, landing.pointer())?;
                self.flush(queue)?;
                drop(turn);
                self.wait(&event, subject)?;
                landing.take(out);
                self.put_back(landing);
                event
            }
            None => {
                let flushed = queue.enqueued();
                let event = read(CL_TRUE, out.as_mut_ptr())?;
                queue.set_flushed(flushed);
                event.set_done();
                self.count_progress();
                event
            }
        };
        Ok(event)
    }

    /// Writes bytes at `offset`, and waits until the device has them.
    pub fn write(
        &self,
        mem: &Mem,
        offset: usize,
        data: &[u8],
        subject: &str,
    ) -> Result<(), ClError> {
        let queue = self.commands();
        // SAFETY: a blocking write reads `data` before it returns; the driver checks the range.
        queue
            .enqueue(|raw| unsafe {
                enqueue_write_buffer(
                    raw,
                    mem.raw(),
                    CL_TRUE,
                    offset,
                    data.len(),
                    data.as_ptr().cast(),
                    0,
                    ptr::null(),
                )
            })
            .map(drop)
            .map_err(|code| self.failed("clEnqueueWriteBuffer", code, subject))
    }

    /// Fills the first `len` bytes with zeros, and waits; `len` is a multiple of 4.
    pub fn zero(&self, mem: &Mem, len: usize, subject: &str) -> Result<(), ClError> {
        let zeroed = self.zero_after(mem, len, &[], subject)?;
        self.wait(&zeroed, subject)
    }

    /// Enqueues the fill with zeros, after `before`.
    pub(super) fn zero_after(
        &self,
        mem: &Mem,
        len: usize,
        before: &[Arc<Event>],
        subject: &str,
    ) -> Result<Arc<Event>, ClError> {
        let queue = self.commands();
        let waits = self.wait_list(queue, before.iter())?;
        let zero = 0_u32;
        // SAFETY: the pattern is copied during the call; the driver checks the range.
        queue
            .enqueue(|raw| unsafe {
                enqueue_fill_buffer(
                    raw,
                    mem.raw(),
                    (&raw const zero).cast(),
                    size_of::<u32>(),
                    0,
                    len,
                    waits.len() as u32,
                    first_of(&waits),
                )
            })
            .map_err(|code| self.failed("clEnqueueFillBuffer", code, subject))
    }
}
