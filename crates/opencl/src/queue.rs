//! An in-order command queue and the commands that it has flushed.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire},
    },
};

use opencl3::{
    command_queue::{finish, flush},
    types::{cl_command_queue, cl_event},
};

use super::{event::Event, handle::Queue};

/// An in-order queue. It numbers its commands, so that it is flushed only if a command of another
/// queue waits for a command that was not flushed.
#[derive(Debug)]
pub(super) struct InOrderQueue {
    queue: Queue,
    enqueued: AtomicU64,
    flushed: AtomicU64,
    /// Held while a command is enqueued, on a device that runs a command in the thread that enqueues it.
    turns: Option<Mutex<()>>,
}

impl InOrderQueue {
    /// `runs_inline`: the device runs a command in the thread that enqueues it.
    pub fn new(queue: Queue, runs_inline: bool) -> Self {
        Self {
            queue,
            enqueued: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            turns: runs_inline.then(Mutex::default),
        }
    }

    /// Enqueues a command with `call`, which gets the queue.
    ///
    /// On a device that runs commands inline no other thread enqueues meanwhile. There a command that is enqueued
    /// while another thread runs the one before is run by that thread, which in PoCL 3.1 then waits for a lock of its
    /// own without end.
    ///
    /// # Errors
    /// The status of the call.
    pub fn enqueue(
        self: &Arc<Self>,
        call: impl FnOnce(cl_command_queue) -> Result<cl_event, i32>,
    ) -> Result<Arc<Event>, i32> {
        let turns = self.turns.as_ref();
        let _turn = turns.map(|turns| turns.lock().unwrap_or_else(PoisonError::into_inner));
        call(self.queue.raw()).map(|event| Event::of(self, event))
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
        flush(self.queue.raw())?;
        self.note_flushed(number);
        Ok(())
    }

    /// Waits for all enqueued commands.
    ///
    /// # Errors
    /// The status of `clFinish`.
    pub fn finish(&self) -> Result<(), i32> {
        let number = self.enqueued();
        finish(self.queue.raw())?;
        self.note_flushed(number);
        Ok(())
    }
}
