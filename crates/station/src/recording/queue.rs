//! Frames that wait to be written: bounded, and the sender never waits.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use gstinspectpublish::report::Report;

use super::{folder::Role, link::Link, snapshot::Snapshot};

/// A frame to be recorded.
pub(super) struct Job {
    pub snapshot: Snapshot,
    pub report: Arc<Report>,
    pub role: Role,
}

/// What [`Queue::pop`] found.
pub(super) enum Next {
    /// The oldest frame.
    Job(Box<Job>),
    /// None came in time.
    Timeout,
    /// None will come.
    Closed,
}

/// The queue.
pub(super) struct Queue {
    link: Arc<Link>,
    most_frames: usize,
    most_bytes: usize,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    bytes: usize,
    is_closed: bool,
}

impl Queue {
    pub fn new(link: Arc<Link>, most_frames: usize, most_bytes: usize) -> Self {
        Self {
            link,
            most_frames,
            most_bytes,
            waiting: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Adds a frame, unless the queue is full. A failed frame takes the place of context frames, the
    /// newest first. An empty queue takes a frame of any size. Returns how many frames were dropped.
    pub fn push(&self, job: Job) -> usize {
        let mut waiting = self.lock();
        let Some(evicted) = self.evicted(&waiting, &job) else {
            return 1;
        };
        for at in &evicted {
            if let Some(dropped) = waiting.jobs.remove(*at) {
                waiting.bytes -= dropped.snapshot.bytes();
            }
        }
        waiting.bytes += job.snapshot.bytes();
        waiting.jobs.push_back(job);
        self.update_length(&waiting);
        self.changed.notify_one();
        evicted.len()
    }

    /// Places of the frames that must be dropped for this one, the last place first; `None` if the frame
    /// does not fit.
    fn evicted(&self, waiting: &Waiting, job: &Job) -> Option<Vec<usize>> {
        let (mut frames, mut bytes) = (waiting.jobs.len(), waiting.bytes);
        let fits = |frames, bytes| {
            let bytes = bytes + job.snapshot.bytes();
            frames == 0 || (frames < self.most_frames && bytes <= self.most_bytes)
        };
        let mut places = Vec::new();
        if job.role == Role::Failed {
            for (at, earlier) in waiting.jobs.iter().enumerate().rev() {
                if fits(frames, bytes) {
                    break;
                }
                if earlier.role == Role::Context {
                    places.push(at);
                    frames -= 1;
                    bytes -= earlier.snapshot.bytes();
                }
            }
        }
        fits(frames, bytes).then_some(places)
    }

    /// The oldest frame; waits for one until `end`. After [`Self::close`] the frames that are left
    /// come first.
    pub fn pop(&self, end: Instant) -> Next {
        let mut waiting = self.lock();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                waiting.bytes -= job.snapshot.bytes();
                self.update_length(&waiting);
                return Next::Job(Box::new(job));
            }
            if waiting.is_closed {
                return Next::Closed;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::Timeout;
            }
            let woken = self.changed.wait_timeout(waiting, left);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Removes all frames, and returns how many.
    pub fn clear(&self) -> usize {
        let mut waiting = self.lock();
        waiting.bytes = 0;
        let count = waiting.jobs.drain(..).count();
        self.update_length(&waiting);
        count
    }

    /// No frame will follow.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Under the lock: otherwise an older length could be stored last.
    fn update_length(&self, waiting: &Waiting) {
        self.link.set_queued(waiting.jobs.len());
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
