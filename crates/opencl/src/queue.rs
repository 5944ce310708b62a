//! In-order command queues, and the completion of their commands.

use std::{
    sync::{
        Arc,
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
    order::{Order, Turn},
    sync::Rank,
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
    order: Arc<Order>,
    enqueued: AtomicU64,
    flushed: AtomicU64,
}

impl InOrderQueue {
    /// A queue of the device whose commands `order` owns.
    pub fn new(queue: Queue, order: &Arc<Order>) -> Self {
        Self {
            queue,
            order: order.clone(),
            enqueued: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
        }
    }

    /// Enqueues a command with `call`, which gets the queue.
    ///
    /// # Errors
    /// The status of the call.
    pub fn enqueue(
        self: &Arc<Self>,
        _turn: &Turn,
        call: impl FnOnce(cl_command_queue) -> Result<cl_event, i32>,
    ) -> Result<Arc<Event>, i32> {
        call(self.queue.raw()).map(|event| Event::of(self, event))
    }

    /// Enqueues the last command of an object that is dropped, perhaps by a thread that has the turn.
    ///
    /// # Errors
    /// The status of the call.
    pub fn enqueue_late(
        self: &Arc<Self>,
        call: impl FnOnce(cl_command_queue) -> Result<cl_event, i32>,
    ) -> Result<(), i32> {
        let _ordered = (!Rank::Order.is_held()).then(|| self.order.lock());
        call(self.queue.raw()).map(|event| drop(Event::of(self, event)))
    }

    /// Flushes all enqueued commands.
    ///
    /// # Errors
    /// The status of `clFlush`.
    pub fn flush(&self, _turn: &Turn) -> Result<(), i32> {
        let number = self.enqueued.load(Acquire);
        flush(self.queue.raw())?;
        self.flushed.fetch_max(number, AcqRel);
        Ok(())
    }

    /// Waits for all enqueued commands.
    ///
    /// # Errors
    /// The status of `clFinish`.
    pub fn finish(&self) -> Result<(), i32> {
        let number = self.enqueued.load(Acquire);
        finish(self.queue.raw())?;
        self.flushed.fetch_max(number, AcqRel);
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
    handle: EventHandle,
    queue: Arc<InOrderQueue>,
    number: u64,
    /// The command is known to be complete without a failure: no further query is needed.
    is_done: AtomicBool,
}

impl Event {
    /// Takes ownership of the event of the command that was just enqueued in `queue`.
    fn of(queue: &Arc<InOrderQueue>, raw: cl_event) -> Arc<Self> {
        Arc::new(Self {
            handle: EventHandle::new(raw),
            number: queue.enqueued.fetch_add(1, AcqRel) + 1,
            queue: queue.clone(),
            is_done: AtomicBool::new(false),
        })
    }

    pub fn raw(&self) -> cl_event {
        self.handle.raw()
    }

    pub fn queue(&self) -> &Arc<InOrderQueue> {
        &self.queue
    }

    /// Whether the command is in this queue; the queue's order then makes a wait unnecessary.
    pub fn is_in(&self, queue: &Arc<InOrderQueue>) -> bool {
        Arc::ptr_eq(&self.queue, queue)
    }

    /// Whether both commands are in one queue.
    pub fn shares_queue(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.queue, &other.queue)
    }

    /// Whether the device has the command, or gets it at once.
    fn is_flushed(&self) -> bool {
        self.number <= self.queue.flushed.load(Acquire)
    }

    /// Flushes the command to the device.
    ///
    /// # Errors
    /// The status of `clFlush`.
    pub fn flush(&self, turn: &Turn) -> Result<(), i32> {
        if self.is_flushed() {
            return Ok(());
        }
        self.queue.flush(turn)
    }

    /// Flushes the command to the device, in a thread without the turn.
    fn flush_now(&self) -> Result<(), i32> {
        if self.is_flushed() {
            return Ok(());
        }
        self.queue.flush(&self.queue.order.lock().turn)
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
        Rank::Order.assert_free();
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
        self.flush_now().map_err(|code| ("clFlush", code))?;
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
        let _ = self.flush_now();
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

    /// Whether no later query will see another end: the command has ended, with or without a failure, or the query fails.
    pub fn has_ended(&self) -> bool {
        self.status() != Ok(Status::Pending)
    }

    /// Whether the command has ended, with or without a failure, so that the device uses its memory no more.
    pub fn is_known_to_have_ended(&self) -> bool {
        matches!(self.status(), Ok(Status::Complete | Status::Failed(_)))
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
