//! Latencies of both halves of a run, in a fixed amount of memory.

use std::time::Duration;

/// Ratio of the edges of a bucket.
const STEP: f64 = 1.01;
/// From 1 µs to about 500 s.
const BUCKETS: usize = 2048;

/// Counts of latencies, separately for each half of a run.
pub struct Latencies {
    counts: [Vec<u64>; 2],
    half: usize,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            counts: [vec![0; BUCKETS], vec![0; BUCKETS]],
            half: 0,
        }
    }
}

impl Latencies {
    /// Counts a latency.
    pub fn add(&mut self, took: Duration) {
        let us = (took.as_secs_f64() * 1e6).max(1.0);
        let bucket = (us.ln() / STEP.ln()) as usize;
        self.counts[self.half][bucket.min(BUCKETS - 1)] += 1;
    }

    /// Starts the second half.
    pub fn begin_second_half(&mut self) {
        self.half = 1;
    }

    /// The 99th percentile of each half, µs, to 1 %; infinite without counts.
    pub fn p99_us(&self) -> [f64; 2] {
        self.counts.each_ref().map(|counts| {
            let all: u64 = counts.iter().sum();
            let mut left = all - all / 100;
            let bucket = counts.iter().position(|&count| {
                left = left.saturating_sub(count);
                all > 0 && left == 0
            });
            bucket.map_or(f64::INFINITY, |b| STEP.powi(b as i32 + 1))
        })
    }
}

#[test]
fn latencies_of_both_halves_are_kept_apart() {
    let mut latencies = Latencies::default();
    for number in 0..1000 {
        // Every hundredth latency is long, plus one more.
        let us = if number % 100 == 0 || number == 1 {
            50_000
        } else {
            1000
        };
        latencies.add(Duration::from_micros(us));
    }
    assert_eq!(latencies.p99_us()[1], f64::INFINITY);
    latencies.begin_second_half();
    for _ in 0..500 {
        latencies.add(Duration::from_micros(3000));
    }
    let [first, second] = latencies.p99_us();
    assert!((50_000.0..50_600.0).contains(&first), "{first}");
    assert!((3000.0..3040.0).contains(&second), "{second}");
}
