//! Frames that wait to be written: bounded, and the sender never waits.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use gstinspectpublish::report::Report;

use super::{folder::Role, link::Link};
use crate::frame::Frame;

/// A frame to be recorded.
pub(super) struct Job {
    pub snapshot: Frame,
    pub report: Arc<Report>,
    /// Bytes of the report.
    pub results: usize,
    pub role: Role,
}

impl Job {
    /// Bytes in memory: pixels and results.
    pub fn bytes(&self) -> usize {
        self.snapshot.bytes() + self.results
    }
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
                waiting.bytes -= dropped.bytes();
            }
        }
        waiting.bytes += job.bytes();
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
            let bytes = bytes + job.bytes();
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
                    bytes -= earlier.bytes();
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
                waiting.bytes -= job.bytes();
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

#[cfg(test)]
mod tests {
    use gstinspectpublish::report::VERSION;

    use super::*;
    use crate::state::Camera;

    #[test]
    fn bytes_of_results_count_as_those_of_pixels_do() {
        gst::init().unwrap_or_else(|error| eprintln!("{error}"));
        let camera = Arc::new(Camera::new("left", &crate::machine::Line::new().expect("a line")).0);
        let queue = Queue::new(Arc::new(Link::new(camera)), 100, 1 << 20);
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, 16, 8).build();
        let info = info.expect("a size");
        let job = |results| Job {
            snapshot: Frame::copy_of(&gst::Buffer::from_mut_slice([0; 128]), &info)
                .expect("a copy"),
            report: Arc::new(Report {
                version: VERSION,
                camera: None,
                frame: Some(1),
                outcome: None,
                time: String::new(),
                recipe: None,
                corrupted: false,
                verdict: "fail",
                inspections: Vec::new(),
                histograms: Vec::new(),
            }),
            results,
            role: Role::Failed,
        };
        let dropped = (0..5).map(|_| queue.push(job(400_000)));
        assert_eq!(Vec::from_iter(dropped), [0, 0, 1, 1, 1]);
        assert!(matches!(queue.pop(Instant::now()), Next::Job(_)));
        assert_eq!(queue.push(job(400_000)), 0, "there is room again");
    }
}
