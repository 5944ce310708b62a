//! Frames that wait to be written: bounded, and the sender never waits.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use gstinspectpublish::report::Report;

use super::{folder::Role, snapshot::Snapshot};

/// A frame to be recorded.
pub(super) struct Job {
    pub snapshot: Snapshot,
    pub report: Arc<Report>,
    pub role: Role,
}

/// What [`Queue::pop`] found.
pub(super) enum Next {
    /// The oldest frame, and how many still wait.
    Job(Box<Job>, usize),
    /// None came in time.
    Time,
    /// None will come.
    End,
}

/// The queue.
pub(super) struct Queue {
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
    pub fn new(most_frames: usize, most_bytes: usize) -> Self {
        Self {
            most_frames,
            most_bytes,
            waiting: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Adds a frame and tells how many wait; `None` if the queue is full. An empty queue takes a frame
    /// of any size.
    pub fn push(&self, job: Job) -> Option<usize> {
        let mut waiting = self.lock();
        let bytes = waiting.bytes + job.snapshot.bytes();
        let is_full = waiting.jobs.len() >= self.most_frames || bytes > self.most_bytes;
        if is_full && !waiting.jobs.is_empty() {
            return None;
        }
        waiting.bytes = bytes;
        waiting.jobs.push_back(job);
        self.changed.notify_one();
        Some(waiting.jobs.len())
    }

    /// The oldest frame; waits for one until `end`. After [`Self::close`] the frames that are left
    /// come first.
    pub fn pop(&self, end: Instant) -> Next {
        let mut waiting = self.lock();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                waiting.bytes -= job.snapshot.bytes();
                return Next::Job(Box::new(job), waiting.jobs.len());
            }
            if waiting.is_closed {
                return Next::End;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::Time;
            }
            let woken = self.changed.wait_timeout(waiting, left);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Removes all frames, and tells how many.
    pub fn clear(&self) -> usize {
        let mut waiting = self.lock();
        waiting.bytes = 0;
        waiting.jobs.drain(..).count()
    }

    /// No frame will follow.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
