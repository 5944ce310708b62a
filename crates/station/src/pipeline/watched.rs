//! When frames left the inspection: written by the streaming threads, read by the supervisor.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Times of the last frames.
pub struct Watched {
    started: Instant,
    /// Milliseconds from the start to the last result, plus 1; 0 before the first.
    left: AtomicU64,
    /// Results.
    pub frames: AtomicU64,
    /// A result that takes longer than this is late, microseconds; 0 = not known.
    pub latency_limit: AtomicU64,
    /// The pipeline is ending: what still comes is no longer the newest result.
    pub is_over: AtomicBool,
}

impl Watched {
    /// A pipeline that starts now.
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            left: AtomicU64::new(0),
            frames: AtomicU64::new(0),
            latency_limit: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    /// Notes a result.
    pub fn leave(&self) {
        self.left.store(self.now(), Ordering::Relaxed);
        self.frames.fetch_add(1, Ordering::Relaxed);
    }

    /// Time since the last result, or since the start.
    pub fn silence(&self) -> Duration {
        let last = self.left.load(Ordering::Relaxed).saturating_sub(1);
        Duration::from_millis(self.now() - 1).saturating_sub(Duration::from_millis(last))
    }

    /// Whether there was a result.
    pub fn has_results(&self) -> bool {
        self.left.load(Ordering::Relaxed) > 0
    }
}
