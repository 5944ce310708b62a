//! The wall clock compared with the monotonic one: a jump makes every age wrong.

use std::{
    sync::LazyLock,
    time::{Duration, Instant, SystemTime},
};

/// Differences up to this are corrections of a clock that runs.
const TOLERATED: Duration = Duration::from_secs(600);

/// The same moment on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub wall: SystemTime,
    pub monotonic: Instant,
}

impl Moment {
    pub fn now() -> Self {
        Self {
            wall: SystemTime::now(),
            monotonic: Instant::now(),
        }
    }

    /// The time that the wall clock of this moment would show now, had nobody set it.
    pub fn continued(self, monotonic: Instant) -> SystemTime {
        let passed = monotonic.saturating_duration_since(self.monotonic);
        self.wall.checked_add(passed).unwrap_or(self.wall)
    }

    /// Whether the wall clock was set, forward or back, between this moment and a later one.
    pub fn jumped_until(self, later: Self) -> bool {
        let expected = self.continued(later.monotonic);
        let apart = later.wall.duration_since(expected);
        apart.unwrap_or_else(|error| error.duration()) > TOLERATED
    }
}

/// When the station started.
static START: LazyLock<Moment> = LazyLock::new(Moment::now);

/// The time that runs on evenly from the start of the station, whatever happens to the wall clock: for ages, limits and
/// rates.
pub fn even() -> SystemTime {
    START.continued(Instant::now())
}

/// Whether the wall clock was set since the first call. It is right again if it is set back.
pub fn has_jumped() -> bool {
    START.jumped_until(Moment::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_that_is_set_jumps() {
        let start = Moment::now();
        let hour = Duration::from_secs(3600);
        let later = |wall, monotonic| Moment { wall, monotonic };
        let monotonic = start.monotonic + hour;
        assert!(!start.jumped_until(later(start.wall + hour, monotonic)));
        assert!(!start.jumped_until(later(start.wall + hour + TOLERATED, monotonic)));
        assert!(start.jumped_until(later(start.wall + 49 * hour, monotonic)));
        assert!(start.jumped_until(later(start.wall - hour, monotonic)));
        assert_eq!(start.continued(monotonic), start.wall + hour);
    }
}
