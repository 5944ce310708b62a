//! Writes of host memory into a buffer.

use std::sync::Arc;

use opencl3::{command_queue::enqueue_write_buffer, types::CL_FALSE};

use super::{
    buffer::ClBuffer,
    context::{ClContext, first_of},
    event::{Event, Status},
};
use clinspect_core::ClError;

/// Writes into a buffer, in the upload queue. Each waits for the write before it, so that a failure
/// reaches the last one.
#[derive(Debug)]
pub(crate) struct Writes<'a> {
    buffer: &'a ClBuffer,
    before: Vec<Arc<Event>>,
    first: Option<Arc<Event>>,
    last: Option<Arc<Event>>,
    bytes: usize,
}

impl ClBuffer {
    /// Begins to write, after the commands that still use the buffer, and after `before`, whose failure
    /// makes the writes fail.
    ///
    /// # Errors
    /// The failure of an earlier unmap.
    pub(crate) fn begin_writes(&self, before: Option<&Arc<Event>>) -> Result<Writes<'_>, ClError> {
        Ok(Writes {
            buffer: self,
            before: before
                .cloned()
                .into_iter()
                .chain(self.before_upload()?)
                .collect(),
            first: None,
            last: None,
            bytes: 0,
        })
    }
}

impl Writes<'_> {
    /// Enqueues a write of `len` bytes at `offset`, and hands it to the device.
    ///
    /// # Safety
    /// The bytes stay valid and unchanged until [`Self::last`] has ended.
    ///
    /// # Errors
    /// The failing call.
    pub unsafe fn write(
        &mut self,
        offset: usize,
        bytes: *const u8,
        len: usize,
    ) -> Result<(), ClError> {
        let context = self.buffer.context();
        let queue = context.uploads();
        let waits = context.wait_list(queue, self.last.iter().chain(&self.before))?;
        // SAFETY: the caller keeps the bytes; the driver checks the range in the buffer.
        let event = queue
            .enqueue(|raw| unsafe {
                enqueue_write_buffer(
                    raw,
                    self.buffer.mem().raw(),
                    CL_FALSE,
                    offset,
                    len,
                    bytes.cast_mut().cast(),
                    waits.len() as u32,
                    first_of(&waits),
                )
            })
            .map_err(|code| context.failed("clEnqueueWriteBuffer", code, "a frame"))?;
        self.before.clear();
        self.bytes += len;
        self.first.get_or_insert_with(|| event.clone());
        self.last = Some(event);
        context.flush(queue)
    }

    /// The last write so far.
    pub fn last(&self) -> Option<Arc<Event>> {
        self.last.clone()
    }

    /// Ends the writes, and counts them. Returns the last one.
    pub fn end(self) -> Option<Arc<Event>> {
        if let (Some(first), Some(last)) = (&self.first, &self.last) {
            self.buffer.meter().uploaded(first, last, self.bytes);
        }
        self.last
    }
}

impl ClContext {
    /// Waits for a command that reads host memory, unless the command is known to have ended, with
    /// or without a failure.
    ///
    /// # Errors
    /// The wait has failed.
    pub(crate) fn wait_for_end(&self, event: &Event) -> Result<(), ClError> {
        match event.status() {
            Ok(Status::Complete | Status::Failed(_)) => Ok(()),
            _ => self.wait(event, "a frame"),
        }
    }
}
