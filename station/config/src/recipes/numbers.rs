//! Counts of switches, for Prometheus.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Upper ends of the buckets of [`Numbers::buckets`], seconds.
pub const SWITCH_BUCKETS: [f64; 8] = [0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 10.0];

/// Switches since the start of the station.
#[derive(Default)]
pub struct Numbers {
    /// Switches after which all cameras ran under the new recipe.
    pub done: AtomicU64,
    /// Switches after which all cameras were as before.
    pub failed: AtomicU64,
    /// Done switches by bucket of [`SWITCH_BUCKETS`], and above the last.
    pub buckets: [AtomicU64; SWITCH_BUCKETS.len() + 1],
    /// Sum of their times, microseconds.
    pub sum: AtomicU64,
}

impl Numbers {
    /// Counts a switch: how long it took, or that it failed.
    pub fn count(&self, took: Option<Duration>) {
        let Some(took) = took else {
            self.failed.fetch_add(1, Relaxed);
            return;
        };
        let seconds = took.as_secs_f64();
        let bucket = SWITCH_BUCKETS.partition_point(|end| *end < seconds);
        self.buckets[bucket].fetch_add(1, Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.sum.fetch_add(micros, Relaxed);
        self.done.fetch_add(1, Relaxed);
    }
}
