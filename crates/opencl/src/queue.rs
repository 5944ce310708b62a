//! An in-order command queue and the commands that it has flushed.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire},
};

use opencl3::{
    command_queue::{finish, flush},
    types::cl_command_queue,
};

use super::handle::Queue;

/// An in-order queue. It numbers its commands, so that it is flushed only if a command of another
/// queue waits for a command that was not flushed.
#[derive(Debug)]
pub(super) struct InOrderQueue {
    queue: Queue,
    enqueued: AtomicU64,
    flushed: AtomicU64,
}

impl InOrderQueue {
    pub fn new(queue: Queue) -> Self {
        Self {
            queue,
            enqueued: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
        }
    }

    pub fn raw(&self) -> cl_command_queue {
        self.queue.raw()
    }

    /// Counts a command that was just enqueued; returns its number.
    pub fn next_number(&self) -> u64 {
        self.enqueued.fetch_add(1, AcqRel) + 1
    }

    /// Number of commands so far. A blocking call that begins later flushes at least these.
    pub fn enqueued(&self) -> u64 {
        self.enqueued.load(Acquire)
    }

    /// Notes that a blocking call has flushed the commands up to `number`.
    pub fn note_flushed(&self, number: u64) {
        self.flushed.fetch_max(number, AcqRel);
    }

    /// Whether the command with this number was flushed.
    pub fn has_flushed(&self, number: u64) -> bool {
        number <= self.flushed.load(Acquire)
    }

    /// Flushes all enqueued commands.
    ///
    /// # Errors
    /// The status of `clFlush`.
    pub fn flush(&self) -> Result<(), i32> {
        // A command that another thread enqueues now gets a higher number, and is flushed again
        // later.
        let number = self.enqueued();
        flush(self.raw())?;
        self.note_flushed(number);
        Ok(())
    }

    /// Waits for all enqueued commands.
    ///
    /// # Errors
    /// The status of `clFinish`.
    pub fn finish(&self) -> Result<(), i32> {
        let number = self.enqueued();
        finish(self.raw())?;
        self.note_flushed(number);
        Ok(())
    }
}
