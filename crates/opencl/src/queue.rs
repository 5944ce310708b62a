//! In-order command queues, and the completion of their commands.

use std::{
    ptr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{AcqRel, Acquire, Release},
        },
    },
    thread,
    time::{Duration, Instant},
};

use opencl3::{
    command_queue::{finish, flush},
    event::{
        CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, CL_PROFILING_COMMAND_END,
        CL_PROFILING_COMMAND_START, get_event_info, get_event_profiling_info, wait_for_events,
    },
    types::{cl_command_queue, cl_event},
};

use super::{
    handle::{EventHandle, Queue, call_error},
    turns::{Turn, Turns},
};
use clinspect_core::ClError;

/// Pause between two queries of [`Event::poll`]: the first one, and the longest.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// [`Event::yield_until_done`] yields for at most the first time, and until the processor was idle for the second.
const LONGEST_POLL: Duration = Duration::from_millis(1);
const LONGEST_IDLE: Duration = Duration::from_micros(40);
/// A yield that returns within this time ran no other thread.
const SHORTEST_WORK: Duration = Duration::from_micros(5);

/// Longest time that a query for the times of a command may take; they are only statistics.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

/// An in-order queue. It numbers its commands, to know which ones were flushed: before a command of another queue waits
/// for one, that one must be flushed.
#[derive(Debug)]
pub(super) struct InOrderQueue {
    queue: Queue,
    enqueued: AtomicU64,
    flushed: AtomicU64,
    /// Held while a command is enqueued, on a device that runs a command in the thread that enqueues it.
    inline: Option<Mutex<()>>,
    /// Orders the threads that enqueue in any queue of the device; `None` where the order does not matter.
    turns: Option<Arc<Turns>>,
}

impl InOrderQueue {
    /// `runs_inline`: the device runs a command in the thread that enqueues it.
    pub fn new(queue: Queue, runs_inline: bool, turns: Option<Arc<Turns>>) -> Self {
        Self {
            queue,
            enqueued: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            inline: runs_inline.then(Mutex::default),
            turns,
        }
    }

    /// Enqueues a command with `call`, which gets the queue.
    ///
    /// On a device that runs commands inline, one thread at a time enqueues. Otherwise a thread that runs a command
    /// also runs the commands that other threads enqueue meanwhile, and in PoCL 3.1 it then waits for its own lock.
    ///
    /// # Errors
    /// The status of the call.
    pub fn enqueue(
        self: &Arc<Self>,
        call: impl FnOnce(cl_command_queue) -> Result<cl_event, i32>,
    ) -> Result<Arc<Event>, i32> {
        let _turn = self.take_turn();
        let inline = self.inline.as_ref();
        let _inline = inline.map(|inline| inline.lock().unwrap_or_else(PoisonError::into_inner));
        call(self.queue.raw()).map(|event| Event::of(self, event))
    }

    /// Whether threads take turns to enqueue, so that no thread may wait for the device in a call that enqueues.
    pub fn takes_turns(&self) -> bool {
        self.turns.is_some()
    }

    /// Waits until it is this thread's turn to enqueue; see [`Turns`].
    pub fn take_turn(&self) -> Option<Turn> {
        self.turns.as_ref().map(Turns::take)
    }

    /// Counts a command that was just enqueued; returns its number.
    pub fn next_number(&self) -> u64 {
        self.enqueued.fetch_add(1, AcqRel) + 1
    }

    /// Number of commands so far. A blocking call that begins later flushes at least these.
    pub fn enqueued(&self) -> u64 {
        self.enqueued.load(Acquire)
    }

    /// Records that a blocking call has flushed the commands up to `number`.
    pub fn set_flushed(&self, number: u64) {
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
        let _turn = self.take_turn();
        flush(self.queue.raw())?;
        self.set_flushed(number);
        Ok(())
    }

    /// Waits for all enqueued commands.
    ///
    /// # Errors
    /// The status of `clFinish`.
    pub fn finish(&self) -> Result<(), i32> {
        let number = self.enqueued();
        finish(self.queue.raw())?;
        self.set_flushed(number);
        Ok(())
    }
}

/// The status of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// Queued or running.
    Pending,
    /// Complete.
    Complete,
    /// Ended with this status.
    Failed(i32),
}

/// The completion of an enqueued command.
#[derive(Debug)]
pub(super) struct Event {
    /// `None` while the event is dropped.
    handle: Option<EventHandle>,
    queue: Arc<InOrderQueue>,
    number: u64,
    /// The command is known to be complete without a failure: no further query is needed.
    is_done: AtomicBool,
}

impl Drop for Event {
    fn drop(&mut self) {
        if let (Some(turns), Some(handle)) = (&self.queue.turns, self.handle.take()) {
            turns.release(handle);
        }
    }
}

impl Event {
    /// Takes ownership of the event of the command that was just enqueued in `queue`.
    pub fn of(queue: &Arc<InOrderQueue>, raw: cl_event) -> Arc<Self> {
        Arc::new(Self {
            handle: Some(EventHandle::new(raw)),
            number: queue.next_number(),
            queue: queue.clone(),
            is_done: AtomicBool::new(false),
        })
    }

    pub fn raw(&self) -> cl_event {
        self.handle
            .as_ref()
            .map_or(ptr::null_mut(), EventHandle::raw)
    }

    /// Whether the command is in this queue; the queue's order then makes a wait unnecessary.
    pub fn is_in(&self, queue: &Arc<InOrderQueue>) -> bool {
        Arc::ptr_eq(&self.queue, queue)
    }

    /// Whether both commands are in one queue.
    pub fn shares_queue(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.queue, &other.queue)
    }

    /// Flushes the command to the device.
    ///
    /// # Errors
    /// The status of `clFlush`.
    pub fn flush(&self) -> Result<(), i32> {
        if self.queue.has_flushed(self.number) {
            return Ok(());
        }
        self.queue.flush()
    }

    /// Records that the command is complete: a call that waits for it has succeeded.
    pub fn set_done(&self) {
        self.is_done.store(true, Release);
    }

    /// Waits without a limit.
    ///
    /// # Errors
    /// The status of `clWaitForEvents`.
    pub fn wait(&self) -> Result<(), i32> {
        if !self.is_done.load(Acquire) {
            wait_for_events(&[self.raw()])?;
            self.set_done();
        }
        Ok(())
    }

    /// Gives the processor to other threads until the command has ended, or until the processor was idle for
    /// [`LONGEST_IDLE`].
    ///
    /// A thread that waits for an event sleeps, and a thread of the driver must wake it: 30 us at 1080p. A thread that
    /// yields runs again as soon as the driver's thread on its processor has no more work (docs/adr/0018).
    pub fn yield_until_done(&self) {
        let begun = Instant::now();
        let (mut before, mut idle) = (begun, Duration::ZERO);
        while self.status() == Ok(Status::Pending) {
            thread::yield_now();
            let now = Instant::now();
            // A yield to another thread takes longer.
            if now - before < SHORTEST_WORK {
                idle += now - before;
            }
            if idle >= LONGEST_IDLE || now - begun >= LONGEST_POLL {
                return;
            }
            before = now;
        }
    }

    /// Queries the command's status.
    ///
    /// # Errors
    /// The status of `clGetEventInfo`.
    pub fn status(&self) -> Result<Status, i32> {
        if self.is_done.load(Acquire) {
            return Ok(Status::Complete);
        }
        let status = get_event_info(self.raw(), CL_EVENT_COMMAND_EXECUTION_STATUS)?.to_int();
        Ok(match status {
            CL_COMPLETE => {
                self.set_done();
                Status::Complete
            }
            code if code < CL_COMPLETE => Status::Failed(code),
            _ => Status::Pending,
        })
    }

    /// Flushes the command, and queries its status repeatedly until it has ended or `gives_up` returns true.
    ///
    /// # Errors
    /// The call that failed, with its status.
    pub fn poll(&self, gives_up: impl FnMut() -> bool) -> Result<Status, (&'static str, i32)> {
        if self.is_done.load(Acquire) {
            return Ok(Status::Complete);
        }
        self.flush().map_err(|code| ("clFlush", code))?;
        self.poll_status(gives_up)
            .map_err(|code| ("clGetEventInfo", code))
    }

    fn poll_status(&self, mut gives_up: impl FnMut() -> bool) -> Result<Status, i32> {
        let mut pause = FIRST_PAUSE;
        loop {
            let status = self.status()?;
            if status != Status::Pending || gives_up() {
                return Ok(status);
            }
            thread::sleep(pause);
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    /// Waits for at most `limit`. Returns true if the command has ended, with or without a failure, so that
    /// the device uses its memory no more.
    pub fn ends_within(&self, limit: Duration) -> bool {
        if self.is_done.load(Acquire) {
            return true;
        }
        // A lost queue refuses the flush, but the device may have executed the command without one.
        let _ = self.flush();
        let end = Instant::now() + limit;
        let status = self.poll_status(|| Instant::now() >= end);
        matches!(status, Ok(Status::Complete | Status::Failed(_)))
    }

    /// The failure of the command, if it has failed by now.
    pub fn failure(&self, subject: &str) -> Option<ClError> {
        match self.status() {
            Ok(Status::Failed(code)) => Some(call_error("a command", code, subject)),
            _ => None,
        }
    }

    /// Whether the command has ended, with or without a failure.
    pub fn has_ended(&self) -> bool {
        // If the query itself fails, no later query will see an end.
        self.status() != Ok(Status::Pending)
    }

    /// The start of this completed command and the end of `last` on the device's clock, ns, if the
    /// driver knows them and answers within [`PATIENCE`]; the end does not precede the start.
    pub fn span_until_ns(&self, last: &Self) -> Option<[u64; 2]> {
        let begun = Instant::now();
        let time = |event: &Self, what| {
            get_event_profiling_info(event.raw(), what)
                .ok()
                .map(|info| info.to_ulong())
        };
        let start = time(self, CL_PROFILING_COMMAND_START)?;
        if begun.elapsed() > PATIENCE {
            return None;
        }
        let end = time(last, CL_PROFILING_COMMAND_END)?;
        (start <= end).then_some([start, end])
    }

    /// Whether the command is one of those from `first` to `last`, which are in one queue.
    pub fn is_between(&self, first: &Self, last: &Self) -> bool {
        self.shares_queue(first) && (first.number..=last.number).contains(&self.number)
    }
}
