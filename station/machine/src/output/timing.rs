//! When the output is active: no clock, no lock, no thread.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use plan::OutputSettings;

use crate::answer::{Answer, Outcome};

/// Most answers that wait for their time: a minute of 150 frames per second.
const MOST_WAITING: usize = 10_000;

/// The answers that wait for their time, and the pulse in progress.
pub(super) struct Timing {
    pulse: Duration,
    delay: Option<Duration>,
    /// In the order of their times.
    waiting: VecDeque<Act>,
    /// The end of the pulse in progress.
    until: Option<Instant>,
}

/// What an answer does to the output.
#[derive(Debug, Clone, Copy)]
struct Act {
    at: Instant,
    is_pass: bool,
}

/// What the output must be now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level {
    pub is_active: bool,
    /// Pulses that were left out because their time was over.
    pub missed: usize,
}

impl Timing {
    pub fn new(settings: &OutputSettings) -> Self {
        Self {
            pulse: settings.pulse,
            delay: settings.delay,
            waiting: VecDeque::new(),
            until: None,
        }
    }

    /// Takes an answer. Returns false if too many wait.
    pub fn add(&mut self, answer: &Answer) -> bool {
        if self.waiting.len() >= MOST_WAITING {
            return false;
        }
        let at = match self.delay {
            Some(delay) => answer.piece_at + delay,
            None => answer.arrived + answer.latency,
        };
        let is_pass = answer.outcome == Outcome::Pass;
        // Almost always the end. An outcome may come before that of a frame that arrived earlier.
        let place = self.waiting.partition_point(|act| act.at <= at);
        self.waiting.insert(place, Act { at, is_pass });
        true
    }

    /// At rest, and nothing waits.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.until = None;
    }

    /// Carries out the answers whose time has come.
    pub fn level(&mut self, now: Instant) -> Level {
        let mut missed = 0;
        while let Some(act) = self.waiting.front().copied().filter(|act| act.at <= now) {
            self.waiting.pop_front();
            let is_late = now >= act.at + self.pulse;
            missed += usize::from(act.is_pass && is_late);
            self.until = (act.is_pass && !is_late).then(|| now + self.pulse);
        }
        self.until = self.until.filter(|until| now < *until);
        Level {
            is_active: self.until.is_some(),
            missed,
        }
    }

    /// When [`Self::level`] changes next.
    pub fn next(&self) -> Option<Instant> {
        let first = self.waiting.front().map(|act| act.at);
        first.into_iter().chain(self.until).min()
    }
}

#[cfg(test)]
mod tests {
    use plan::Wire;

    use super::*;

    const PULSE: u64 = 20;

    struct Line {
        start: Instant,
        timing: Timing,
    }

    impl Line {
        fn new(delay: Option<u64>) -> Self {
            let wire = Wire::Camera {
                user_output: String::new(),
                line: None,
            };
            let settings = OutputSettings {
                wire,
                pulse: Duration::from_millis(PULSE),
                delay: delay.map(Duration::from_millis),
            };
            Self {
                start: Instant::now(),
                timing: Timing::new(&settings),
            }
        }

        fn at(&self, ms: u64) -> Instant {
            self.start + Duration::from_millis(ms)
        }

        /// A frame that arrives and gets its outcome at these times, ms.
        fn answer(&mut self, arrived: u64, told: u64, outcome: Outcome) -> bool {
            let latency = Duration::from_millis(told - arrived);
            let answer = Answer::of_test(1, outcome, self.at(arrived), latency);
            self.timing.add(&answer)
        }

        #[track_caller]
        fn is(&mut self, ms: u64, is_active: bool) {
            let level = self.timing.level(self.at(ms));
            let wanted = Level {
                is_active,
                missed: 0,
            };
            assert_eq!(level, wanted, "at {ms} ms");
        }
    }

    #[test]
    fn pass_gives_a_pulse_and_all_else_is_at_rest() {
        for outcome in Outcome::ALL {
            let is_pass = outcome == Outcome::Pass;
            let mut line = Line::new(None);
            line.is(0, false);
            line.answer(0, 5, outcome);
            line.is(5, is_pass);
            line.is(5 + PULSE - 1, is_pass);
            line.is(5 + PULSE, false);
            assert_eq!(line.timing.next(), None);
        }
    }

    #[test]
    fn pass_in_a_pulse_extends_it_and_another_outcome_ends_it() {
        let mut line = Line::new(None);
        line.answer(0, 0, Outcome::Pass);
        line.is(0, true);
        line.answer(10, 15, Outcome::Pass);
        line.is(15, true);
        line.is(34, true);
        line.is(35, false);
        line.answer(40, 40, Outcome::Pass);
        line.is(40, true);
        for (at, outcome) in [(45, Outcome::Late), (46, Outcome::Pass)] {
            line.answer(at, at, outcome);
            line.is(at, outcome == Outcome::Pass);
        }
        line.answer(47, 47, Outcome::None);
        line.is(47, false);
    }

    #[test]
    fn a_delay_counts_from_the_piece_and_an_outcome_without_one_comes_at_its_time() {
        for (delay, begin) in [(Some(100), 105), (None, 40)] {
            let mut line = Line::new(delay);
            let latency = Duration::from_millis(10);
            let mut answer = Answer::of_test(1, Outcome::Pass, line.at(30), latency);
            answer.piece_at = line.at(5);
            line.timing.add(&answer);
            line.is(begin - 1, false);
            line.is(begin, true);
        }
    }

    #[test]
    fn with_a_delay_the_time_counts_from_the_arrival_and_the_order_is_that_of_the_frames() {
        let mut line = Line::new(Some(100));
        // The second has its outcome first.
        line.answer(10, 20, Outcome::Fail);
        line.answer(0, 30, Outcome::Pass);
        line.is(99, false);
        assert_eq!(line.timing.next(), Some(line.at(100)));
        line.is(100, true);
        line.is(109, true);
        line.is(110, false);
        line.is(119, false);
    }

    #[test]
    fn pulse_whose_time_is_over_is_left_out_and_counted() {
        let mut line = Line::new(None);
        line.answer(0, 0, Outcome::Pass);
        let level = line.timing.level(line.at(PULSE));
        let left_out = Level {
            is_active: false,
            missed: 1,
        };
        assert_eq!(level, left_out);
        // One that is a little late has its whole length.
        line.answer(100, 100, Outcome::Pass);
        line.is(110, true);
        line.is(110 + PULSE - 1, true);
        line.is(110 + PULSE, false);
    }

    #[test]
    fn answers_that_wait_are_bounded() {
        let mut line = Line::new(Some(50_000));
        let taken = (0..20_000).filter(|ms| line.answer(*ms, *ms, Outcome::Pass));
        assert_eq!(taken.count(), MOST_WAITING);
        line.timing.clear();
        assert_eq!(line.timing.next(), None);
    }
}
