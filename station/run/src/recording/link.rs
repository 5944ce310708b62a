//! The link from the parts of a recorder to its camera: counters, alarms, and whether recording is
//! stopped.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use machine::locks::Mutex;

use crate::state::{Camera, Counters};

/// The link of one recorder to its camera.
///
/// A writer may outlast its recorder, if the disk is slow. The link is cut then, so that the numbers
/// of the camera are those of the next recorder alone.
pub(super) struct Link {
    /// `None` after the cut.
    camera: Mutex<Option<Arc<Camera>>>,
    is_stopped: AtomicBool,
}

impl Link {
    pub fn new(camera: Arc<Camera>) -> Self {
        Self {
            camera: Mutex::new(Some(camera)),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// The camera; `None` after the cut.
    pub fn camera(&self) -> Option<Arc<Camera>> {
        self.camera.lock().clone()
    }

    /// Whether the folder or the disk refuses the recordings of this recorder.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Relaxed)
    }

    /// Sets whether the folder or the disk refuses recordings.
    pub fn set_stopped(&self, is_stopped: bool) {
        self.is_stopped.store(is_stopped, Relaxed);
        self.change(|counters| counters.recording_stopped.store(is_stopped, Relaxed));
    }

    /// Sets the length of the queue.
    pub fn set_queued(&self, count: usize) {
        self.change(|counters| counters.recording_queue.store(count as u64, Relaxed));
    }

    /// Adds frames to a counter.
    pub fn count(&self, of: fn(&Counters) -> &AtomicU64, frames: usize) {
        self.change(|counters| {
            of(counters).fetch_add(frames as u64, Relaxed);
        });
    }

    /// The recorder ends: nothing waits any more, and nothing is stopped.
    pub fn cut(&self) {
        if let Some(camera) = self.camera.lock().take() {
            camera.counters.recording_queue.store(0, Relaxed);
            camera.counters.recording_stopped.store(false, Relaxed);
        }
    }

    /// Under the lock, so that no change comes after the cut.
    fn change(&self, change: impl FnOnce(&Counters)) {
        if let Some(camera) = &*self.camera.lock() {
            change(&camera.counters);
        }
    }
}
