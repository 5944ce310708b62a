//! Frames that wait to be written: bounded, and the sender never waits.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use clinspect_results::report::Report;
use machine::locks::Monitor;

use super::{folder::Role, link::Link};
use crate::{bounded::Bounds, frame::Frame};

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
pub(super) enum QueueEvent {
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
    most: Bounds,
    waiting: Monitor<WaitingJobs>,
}

#[derive(Default)]
struct WaitingJobs {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

impl Queue {
    pub fn new(link: Arc<Link>, most: Bounds) -> Self {
        Self {
            link,
            most,
            waiting: Monitor::default(),
        }
    }

    /// Adds a frame, unless the queue is full. A failed frame takes the place of context frames, the
    /// newest first. An empty queue takes a frame of any size. Returns how many frames were dropped.
    pub fn push(&self, job: Job) -> usize {
        let mut waiting = self.waiting.lock();
        let Some(evicted) = self.evicted(&waiting, &job) else {
            return 1;
        };
        for at in &evicted {
            waiting.jobs.remove(*at);
        }
        waiting.jobs.push_back(job);
        self.update_length(&waiting);
        self.waiting.notify();
        evicted.len()
    }

    /// Places of the frames that must be dropped for this one, the last place first; `None` if the frame
    /// does not fit.
    fn evicted(&self, waiting: &WaitingJobs, job: &Job) -> Option<Vec<usize>> {
        let mut frames = waiting.jobs.len();
        let mut bytes = waiting.jobs.iter().map(Job::bytes).sum();
        let fits = |frames, bytes| self.most.has_room(frames, bytes, job.bytes());
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
    pub fn pop(&self, end: Instant) -> QueueEvent {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                self.update_length(&waiting);
                return QueueEvent::Job(Box::new(job));
            }
            if waiting.is_closed {
                return QueueEvent::Closed;
            }
            if Instant::now() >= end {
                return QueueEvent::Timeout;
            }
            waiting = self.waiting.wait(waiting, Some(end));
        }
    }

    /// Removes all frames, and returns how many.
    pub fn clear(&self) -> usize {
        let mut waiting = self.waiting.lock();
        let count = waiting.jobs.drain(..).count();
        self.update_length(&waiting);
        count
    }

    /// No frame will follow.
    pub fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.waiting.notify();
    }

    /// Under the lock: otherwise an older length could be stored last.
    fn update_length(&self, waiting: &WaitingJobs) {
        self.link.set_queued(waiting.jobs.len());
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::state::Camera;

    #[test]
    fn bytes_of_results_count_as_those_of_pixels_do() {
        gst::init().unwrap_or_else(|error| eprintln!("{error}"));
        let camera =
            Arc::new(Camera::new("left", &machine::answer::Line::new().expect("a line")).0);
        let queue = Queue::new(
            Arc::new(Link::new(camera)),
            Bounds {
                count: 100,
                bytes: 1 << 20,
            },
        );
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, 16, 8).build();
        let info = info.expect("a size");
        let job = |results| Job {
            snapshot: Frame::copy_of(&gst::Buffer::from_mut_slice([0; 128]), &info)
                .expect("a copy"),
            report: Arc::new(Report::empty("fail", String::new())),
            results,
            role: Role::Failed,
        };
        let dropped = (0..5).map(|_| queue.push(job(400_000)));
        assert_eq!(Vec::from_iter(dropped), [0, 0, 1, 1, 1]);
        assert!(matches!(queue.pop(Instant::now()), QueueEvent::Job(_)));
        assert_eq!(queue.push(job(400_000)), 0, "there is room again");
    }
}
