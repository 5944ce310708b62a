//! The wall clock compared with the time since the PC's start: a wall clock that is set makes every age wrong.

use std::{
    sync::{Arc, LazyLock},
    time::{Duration, SystemTime},
};

use nix::time::{ClockId, clock_gettime};

/// Differences up to this are corrections of a clock that runs.
const TOLERATED: Duration = Duration::from_secs(600);

/// The same moment on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// The wall clock's time.
    pub wall: SystemTime,
    /// Time since the PC's start, with the time that the PC slept.
    pub running: Duration,
}

impl Moment {
    /// The present moment.
    pub fn now() -> Self {
        // CLOCK_BOOTTIME: after a suspended hour the wall clock is an hour ahead of CLOCK_MONOTONIC.
        let running = clock_gettime(ClockId::CLOCK_BOOTTIME)
            .or_else(|_| clock_gettime(ClockId::CLOCK_MONOTONIC));
        Self {
            wall: SystemTime::now(),
            running: running.map_or(Duration::ZERO, Duration::from),
        }
    }

    /// The time that the wall clock of this moment would show at a later one, had nobody set it.
    pub fn continued(self, later: Self) -> SystemTime {
        let passed = later.running.saturating_sub(self.running);
        self.wall.checked_add(passed).unwrap_or(self.wall)
    }

    /// Whether the wall clock was set, forward or back, between this moment and a later one.
    pub fn jumped_until(self, later: Self) -> bool {
        let expected = self.continued(later);
        let apart = later.wall.duration_since(expected);
        apart.unwrap_or_else(|error| error.duration()) > TOLERATED
    }
}

/// When the station started.
static START: LazyLock<Moment> = LazyLock::new(Moment::now);

/// The time that runs on evenly from the start of the station, whatever happens to the wall clock: for ages, limits and
/// rates.
pub fn even() -> SystemTime {
    START.continued(Moment::now())
}

/// A clock that tells whether somebody set it.
#[derive(Clone)]
pub struct Clock {
    start: Moment,
    now: Arc<dyn Fn() -> Moment + Send + Sync>,
}

impl Clock {
    /// The PC's, since the start of the station.
    pub fn of_the_station() -> Self {
        Self {
            start: *START,
            now: Arc::new(Moment::now),
        }
    }

    /// A clock that shows what a test sets.
    pub fn shown(now: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Self {
            start: now(),
            now: Arc::new(now),
        }
    }

    /// As [`even`].
    pub fn even(&self) -> SystemTime {
        self.start.continued((self.now)())
    }

    /// Whether the wall clock was set since the start. It is right again if it is set back.
    pub fn has_jumped(&self) -> bool {
        self.start.jumped_until((self.now)())
    }

    /// Whether this clock has not reached a time yet: the time is that of another, wrong clock, or this clock is wrong.
    pub fn is_behind(&self, time: SystemTime) -> bool {
        let ahead = time.duration_since(self.even());
        ahead.is_ok_and(|ahead| ahead > TOLERATED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_that_is_set_jumps() {
        let start = Moment::now();
        let hour = Duration::from_secs(3600);
        let after_an_hour = |wall| Moment {
            wall,
            running: start.running + hour,
        };
        let right = start.wall + hour;
        assert!(!start.jumped_until(after_an_hour(right)));
        assert!(!start.jumped_until(after_an_hour(right + TOLERATED)));
        assert!(start.jumped_until(after_an_hour(start.wall + 49 * hour)));
        assert!(start.jumped_until(after_an_hour(start.wall - hour)));
        assert_eq!(start.continued(after_an_hour(start.wall)), right);
    }

    #[test]
    fn time_since_the_start_of_the_pc_includes_its_sleep() {
        let uptime = std::fs::read_to_string("/proc/uptime").expect("the kernel's uptime");
        let seconds: f64 = uptime
            .split_whitespace()
            .next()
            .and_then(|word| word.parse().ok())
            .expect("seconds");
        let apart = Moment::now().running.as_secs_f64() - seconds;
        // The file has two digits after the point; the test may be interrupted between both readings.
        assert!((-0.01..60.0).contains(&apart), "{apart}");
    }
}
