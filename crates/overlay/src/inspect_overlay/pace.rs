//! When a live frame is due, and so how long it may wait for its mask.

use std::time::Duration;

/// How late frames come. Times are nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Upstream's latency where the pipeline is live.
    live: Option<gst::ClockTime>,
    /// Between a frame's running time and its arrival, at least.
    least: Option<i64>,
}

impl Pace {
    /// Upstream has told its latency; `None` where it is not live.
    pub fn set_live(&mut self, latency: Option<gst::ClockTime>) {
        self.live = latency;
    }

    /// Frames begin anew.
    pub fn restart(&mut self) {
        self.least = None;
    }

    /// How long a frame that arrives `lateness` after its running time may wait. It counts from
    /// when the frame is due, not from when its turn comes: frames that queued up behind one that
    /// waited must not each wait again.
    pub fn limit(&mut self, lateness: i64, timeout: gst::ClockTime) -> Duration {
        let timeout = Duration::from_nanos(timeout.nseconds());
        let Some(latency) = self.live else {
            return timeout;
        };
        let least = self.least.map_or(lateness, |least| least.min(lateness));
        self.least = Some(least);
        let latency = i64::try_from(latency.nseconds()).unwrap_or(i64::MAX);
        let overdue = lateness.saturating_sub(latency.max(least));
        let overdue = Duration::from_nanos(u64::try_from(overdue).unwrap_or(0));
        timeout.saturating_sub(overdue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const TIMEOUT: gst::ClockTime = gst::ClockTime::from_mseconds(100);

    #[test]
    fn live_frames_wait_until_a_time_after_they_are_due() {
        let mut pace = Pace::default();
        pace.set_live(Some(gst::ClockTime::from_mseconds(33)));
        for (lateness, limit) in [
            (33, 100),
            (20, 100),
            (83, 50),
            (133, 0),
            (1000, 0),
            (-50, 100),
        ] {
            let limit = Duration::from_millis(limit);
            assert_eq!(pace.limit(lateness * MS, TIMEOUT), limit, "{lateness}");
        }
    }

    #[test]
    fn sources_that_understate_their_latency_are_given_it() {
        let mut pace = Pace::default();
        pace.set_live(Some(gst::ClockTime::ZERO));
        assert_eq!(pace.limit(200 * MS, TIMEOUT), Duration::from_millis(100));
        assert_eq!(pace.limit(230 * MS, TIMEOUT), Duration::from_millis(70));
        pace.restart();
        assert_eq!(pace.limit(230 * MS, TIMEOUT), Duration::from_millis(100));
    }

    #[test]
    fn frames_that_are_not_live_wait_as_long_as_they_may() {
        let mut pace = Pace::default();
        assert_eq!(pace.limit(5000 * MS, TIMEOUT), Duration::from_millis(100));
    }
}
