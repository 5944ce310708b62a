//! Frames that wait to be written: bounded, and the sender never waits.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
    time::Instant,
};

use gstinspectpublish::report::Report;

use super::{folder::Role, snapshot::Snapshot};
use crate::state::Camera;

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
    Time,
    /// None will come.
    End,
}

/// The queue.
pub(super) struct Queue {
    camera: Arc<Camera>,
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
    pub fn new(camera: Arc<Camera>, most_frames: usize, most_bytes: usize) -> Self {
        Self {
            camera,
            most_frames,
            most_bytes,
            waiting: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Adds a frame, unless the queue is full. An empty queue takes a frame of any size.
    pub fn push(&self, job: Job) -> bool {
        let mut waiting = self.lock();
        let bytes = waiting.bytes + job.snapshot.bytes();
        let is_full = waiting.jobs.len() >= self.most_frames || bytes > self.most_bytes;
        if is_full && !waiting.jobs.is_empty() {
            return false;
        }
        waiting.bytes = bytes;
        waiting.jobs.push_back(job);
        self.tell(&waiting);
        self.changed.notify_one();
        true
    }

    /// The oldest frame; waits for one until `end`. After [`Self::close`] the frames that are left
    /// come first.
    pub fn pop(&self, end: Instant) -> Next {
        let mut waiting = self.lock();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                waiting.bytes -= job.snapshot.bytes();
                self.tell(&waiting);
                return Next::Job(Box::new(job));
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
        let count = waiting.jobs.drain(..).count();
        self.tell(&waiting);
        count
    }

    /// No frame will follow.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Counts under the lock: else an older count could come last, and stay.
    fn tell(&self, waiting: &Waiting) {
        let count = waiting.jobs.len() as u64;
        self.camera.counters.recording_queue.store(count, Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
