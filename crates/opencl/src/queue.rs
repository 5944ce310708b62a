//! In-order command queues, the completion of their commands, and the host memory that transfers use.

use std::{
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{AcqRel, Acquire, Release},
        },
    },
    thread,
    time::{Duration, Instant},
};

use opencl3::{
    command_queue::{
        enqueue_map_buffer, enqueue_marker_with_wait_list, enqueue_unmap_mem_object, finish, flush,
    },
    error_codes::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
    event::{
        CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, CL_PROFILING_COMMAND_END,
        CL_PROFILING_COMMAND_START, get_event_info, get_event_profiling_info, wait_for_events,
    },
    memory::{CL_MAP_READ, CL_MAP_WRITE},
    types::{CL_FALSE, cl_command_queue, cl_event, cl_mem},
};

use super::{
    caller::Caller,
    handle::{EventHandle, Mem, Queue, call_error, release},
    order::{Address, Order, Turn},
    sync::{Lock, Rank},
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

/// What `clWaitForEvents` returns for a command that has failed.
const FAILED_EVENT: i32 = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;

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
    /// Commands up to this number have ended: a thread has waited for one of them, or for a later one.
    ended: AtomicU64,
    /// See [`super::device::DeviceInfo::fails_whole`].
    fails_whole: bool,
    unneeded: Unneeded,
}

/// Events of all queues of a device that nobody needs any more. To release one is a call of the driver like others, and waits
/// for its turn: the next flush of any queue.
pub(super) type Unneeded = Arc<Lock<Vec<EventHandle>>>;

impl InOrderQueue {
    /// A queue of the device whose commands `order` owns. `fails_whole`: a command that fails ends the context.
    pub fn new(queue: Queue, order: &Arc<Order>, unneeded: &Unneeded, fails_whole: bool) -> Self {
        Self {
            queue,
            order: order.clone(),
            enqueued: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            fails_whole,
            unneeded: unneeded.clone(),
        }
    }

    /// Enqueues a command with `call`, which gets the queue, and returns the command's event, or null if the command has
    /// none.
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

    /// See [`super::device::DeviceInfo::fails_whole`].
    pub fn fails_whole(&self) -> bool {
        self.fails_whole
    }

    fn next_number(&self) -> u64 {
        self.enqueued.fetch_add(1, AcqRel) + 1
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

    /// Flushes all enqueued commands, and releases the [`Unneeded`] events.
    ///
    /// # Errors
    /// The status of `clFlush`.
    pub fn flush(&self, _turn: &Turn) -> Result<(), i32> {
        let unneeded = std::mem::take(&mut *self.unneeded.lock());
        drop(unneeded);
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
///
/// A command in the middle of a submission may have no event of the driver, which makes each call of NVIDIA's driver longer.
/// If another queue or the host waits for such a command after all, it gets the event of a marker behind it.
#[derive(Debug)]
pub(super) struct Event {
    handle: OnceLock<EventHandle>,
    queue: Arc<InOrderQueue>,
    number: u64,
    /// The command is known to be complete without a failure: no further query is needed.
    is_done: AtomicBool,
    /// A command of another queue that waits for this one: when it has ended, so has this one.
    follower: OnceLock<Arc<Event>>,
}

impl Drop for Event {
    fn drop(&mut self) {
        // On other drivers a release is cheap, and waits for nothing.
        if self.queue.fails_whole
            && let Some(handle) = self.handle.take()
        {
            self.queue.unneeded.lock().push(handle);
        }
    }
}

impl Event {
    /// Takes ownership of the event of the command that was just enqueued in `queue`.
    fn of(queue: &Arc<InOrderQueue>, raw: cl_event) -> Arc<Self> {
        let handle = OnceLock::new();
        if !raw.is_null() {
            let _ = handle.set(EventHandle::new(raw));
        }
        Arc::new(Self {
            handle,
            number: queue.next_number(),
            queue: queue.clone(),
            is_done: AtomicBool::new(false),
            follower: OnceLock::new(),
        })
    }

    /// The driver's event, for a command that waits for this one. The device has the command, or gets it at once.
    ///
    /// # Errors
    /// The call that failed, with its status.
    pub fn awaited(&self, turn: &Turn) -> Result<cl_event, (&'static str, i32)> {
        let handle = match self.handle.get() {
            Some(handle) => {
                if !self.is_flushed() {
                    self.queue.flush(turn).map_err(|code| ("clFlush", code))?;
                }
                handle
            }
            None => {
                // SAFETY: without a list the marker waits for all commands before it.
                let marker = unsafe {
                    enqueue_marker_with_wait_list(self.queue.queue.raw(), 0, ptr::null())
                };
                let marker = marker.map_err(|code| ("clEnqueueMarkerWithWaitList", code))?;
                self.queue.next_number();
                self.queue.flush(turn).map_err(|code| ("clFlush", code))?;
                self.handle.get_or_init(|| EventHandle::new(marker))
            }
        };
        Ok(handle.raw())
    }

    /// The driver's event, if the command is in this queue.
    pub fn raw_in(&self, queue: &Arc<InOrderQueue>) -> Option<cl_event> {
        let handle = self.handle.get().filter(|_| self.is_in(queue))?;
        Some(handle.raw())
    }

    /// [`Self::awaited`] in a thread without the turn.
    fn awaited_now(&self) -> Result<cl_event, (&'static str, i32)> {
        match self.handle.get() {
            Some(handle) if self.is_flushed() => Ok(handle.raw()),
            _ => self.awaited(&self.queue.order.lock().turn),
        }
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

    /// Records that the command is complete: a call that waits for it has succeeded.
    pub fn set_done(&self) {
        self.is_done.store(true, Release);
        self.queue.ended.fetch_max(self.number, AcqRel);
    }

    /// `follower` waits for this command, in another queue.
    pub fn set_follower(&self, follower: &Arc<Self>) {
        if !self.shares_queue(follower) {
            let _ = self.follower.set(follower.clone());
        }
    }

    /// Whether a command has ended that is at least as late in this queue, or as the one that waits for this one in its queue.
    fn has_been_passed(&self) -> bool {
        let passed = |event: &Self| event.number <= event.queue.ended.load(Acquire);
        passed(self) || self.follower.get().is_some_and(|follower| passed(follower))
    }

    /// Whether the command is known to be complete without a failure. Where a failure ends the context, a command is complete
    /// if a later one is.
    pub fn is_known_to_be_complete(&self) -> bool {
        self.is_done.load(Acquire) || (self.queue.fails_whole && self.has_been_passed())
    }

    /// Waits without a limit.
    ///
    /// # Errors
    /// The call that failed, with its status.
    pub fn wait(&self) -> Result<(), (&'static str, i32)> {
        Rank::Order.assert_free();
        if !self.is_known_to_be_complete() {
            // This call flushes the queue.
            let event = match self.handle.get() {
                Some(handle) => handle.raw(),
                None => self.awaited_now()?,
            };
            wait_for_events(&[event]).map_err(|code| ("clWaitForEvents", code))?;
            self.set_done();
        }
        Ok(())
    }

    /// Lets `caller` ask for the end, and waits without a limit.
    ///
    /// # Errors
    /// See [`Self::wait`].
    pub fn wait_by(&self, caller: &Caller) -> Result<(), (&'static str, i32)> {
        Rank::Order.assert_free();
        if self.is_known_to_be_complete() {
            return Ok(());
        }
        self.awaited_now()?;
        let mut status = Ok(Status::Pending);
        caller.repeat(&mut || {
            status = self.status();
            status != Ok(Status::Pending)
        });
        match status {
            Ok(Status::Complete) => Ok(()),
            Ok(_) => Err(("clWaitForEvents", FAILED_EVENT)),
            Err(code) => Err(("clGetEventInfo", code)),
        }
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

    /// Queries the command's status; pending if the command has no event and none behind it is known to have ended.
    ///
    /// # Errors
    /// The status of `clGetEventInfo`.
    pub fn status(&self) -> Result<Status, i32> {
        if self.is_known_to_be_complete() {
            return Ok(Status::Complete);
        }
        let Some(handle) = self.handle.get() else {
            return Ok(Status::Pending);
        };
        let status = get_event_info(handle.raw(), CL_EVENT_COMMAND_EXECUTION_STATUS)?.to_int();
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
        if self.is_known_to_be_complete() {
            return Ok(Status::Complete);
        }
        self.awaited_now()?;
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
        if self.has_been_passed() {
            return true;
        }
        // A lost queue refuses the flush, but the device may have executed the command without one.
        let _ = self.awaited_now();
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
        self.has_been_passed() || matches!(self.status(), Ok(Status::Complete | Status::Failed(_)))
    }

    /// The start of this completed command and the end of `last` on the device's clock, ns, if the
    /// driver knows them and answers within [`PATIENCE`]; the end does not precede the start.
    pub fn span_until_ns(&self, last: &Self) -> Option<[u64; 2]> {
        let begun = Instant::now();
        let time = |event: &Self, what| {
            get_event_profiling_info(event.handle.get()?.raw(), what)
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

/// Host memory that the driver pinned, so that transfers from and to it are fast and wait in no call. A drop waits for
/// nothing: the driver frees the memory after the commands before it in the queue.
#[derive(Debug)]
pub(super) struct Pinned {
    mem: Mem,
    address: Address,
    len: usize,
    /// The queue of the last command on the memory.
    queue: Arc<InOrderQueue>,
}

impl Pinned {
    /// Maps `mem`, which has `len` bytes, for good. The memory can be used after the command, or by later commands of the
    /// queue.
    ///
    /// # Errors
    /// The status of `clEnqueueMapBuffer`.
    pub fn over(
        mem: Mem,
        len: usize,
        turn: &Turn,
        queue: &Arc<InOrderQueue>,
    ) -> Result<(Self, Arc<Event>), i32> {
        let mut pointer: cl_mem = ptr::null_mut();
        // SAFETY: the range is the whole buffer. Nobody uses the pointer before the command has ended.
        let mapped = queue.enqueue(turn, |raw| unsafe {
            enqueue_map_buffer(
                raw,
                mem.raw(),
                CL_FALSE,
                CL_MAP_READ | CL_MAP_WRITE,
                0,
                len,
                &mut pointer,
                0,
                ptr::null(),
            )
        })?;
        let pinned = Self {
            mem,
            address: Address(pointer.cast()),
            len,
            queue: queue.clone(),
        };
        Ok((pinned, mapped))
    }

    /// The memory, for commands of `queue` from now on.
    pub fn for_queue(mut self, queue: &Arc<InOrderQueue>) -> Self {
        self.queue = queue.clone();
        self
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn address(&self) -> Address {
        self.address
    }

    /// Copies bytes from `offset` on to `out`, which ends inside the memory. All commands on the memory have ended.
    pub fn copy_to(&self, offset: usize, out: &mut [u8]) {
        let len = out.len().min(self.len.saturating_sub(offset));
        // SAFETY: the memory has `offset + len` bytes, and no command uses it.
        unsafe { ptr::copy_nonoverlapping(self.address.0.add(offset), out.as_mut_ptr(), len) };
    }

    /// Copies `bytes`, which are no longer than the memory, into it. No command uses the memory.
    pub fn copy_from(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(self.len);
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.address.0, len) };
    }

    /// Drops the memory after `user`, the last command on it.
    pub fn drop_after(self, user: &Event) {
        drop(self.for_queue(&user.queue));
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let (queue, address) = (self.queue.clone(), self.address);
        release("clEnqueueUnmapMemObject", self.mem.raw(), move |mem| {
            let address = address;
            // SAFETY: the address came from mapping this buffer, which is released after this call, and nobody uses it
            // any more.
            queue.enqueue_late(|raw| unsafe {
                enqueue_unmap_mem_object(raw, mem, address.0.cast(), 0, ptr::null())
            })
        });
    }
}

/// A transfer between the device and pinned memory that was enqueued.
#[derive(Debug)]
pub(super) struct Transfer {
    pub command: Arc<Event>,
    pub pinned: Pinned,
}
