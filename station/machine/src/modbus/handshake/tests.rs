//! The handshake, step by step.

use super::*;
use crate::answer::FoundParts;
use wanted::{CLEAR, ENABLE, RECIPE_REQUEST, RESULT_ACK, TRIGGER};

const TIMEOUT: Duration = Duration::from_millis(1000);

/// A handshake, the camera, and the time.
struct Line {
    handshake: Handshake,
    now: CameraSnapshot,
    time: Instant,
}

/// A camera that runs and would take a trigger.
fn line() -> Line {
    Line {
        handshake: Handshake::new(true, TIMEOUT),
        now: CameraSnapshot {
            is_online: true,
            has_trigger: true,
            can_arm: true,
            heartbeat: 7,
            epoch: 0x0102_0304,
            ..CameraSnapshot::default()
        },
        time: Instant::now(),
    }
}

fn enabled() -> Line {
    let mut line = line();
    line.write(ENABLE);
    line
}

fn answer(sequence: u64, outcome: Outcome) -> Answer {
    let latency = Duration::from_micros(12_345);
    Answer::of_test(sequence, outcome, Instant::now(), latency)
}

impl Line {
    fn write(&mut self, bits: u16) -> WriteEffect {
        self.handshake.write(0, &[bits], &self.now, self.time)
    }

    fn beat(&mut self, beat: u16) {
        self.handshake.write(4, &[beat], &self.now, self.time);
    }

    fn words(&self) -> Inputs {
        self.handshake.inputs(&self.now)
    }

    fn has(&self, bit: u16) -> bool {
        self.words()[0] & bit != 0
    }

    /// The number and the outcome in the registers.
    fn result(&self) -> Option<(u32, u16)> {
        let words = self.words();
        let sequence = u32::from(words[4]) << 16 | u32::from(words[5]);
        self.has(told::RESULT_VALID).then_some((sequence, words[6]))
    }

    fn error(&self) -> u16 {
        assert_eq!(self.has(told::ERROR), self.words()[9] != 0);
        self.words()[9]
    }
}

#[test]
fn trigger_is_acknowledged_until_the_plc_clears_it() {
    let mut line = enabled();
    assert!(line.has(told::READY));
    assert!(line.write(ENABLE | TRIGGER).trigger);
    line.handshake.armed(Some(0x1_0002_0003));
    assert!(line.has(told::TRIGGER_ACK));
    assert_eq!(line.words()[2..4], [2, 3], "the low 32 bits");
    // The level is no second trigger.
    assert!(!line.write(ENABLE | TRIGGER).trigger);
    assert!(line.has(told::TRIGGER_ACK));
    line.write(ENABLE);
    assert!(!line.has(told::TRIGGER_ACK));
    assert_eq!(line.words()[2..4], [0, 0]);
    assert!(line.write(ENABLE | TRIGGER).trigger);
}

#[test]
fn trigger_without_ready_is_refused_and_counts() {
    let refused = |mut line: Line, bits: u16, fault: u16| {
        assert!(!line.write(bits).trigger);
        assert!(!line.has(told::TRIGGER_ACK));
        assert_eq!((line.error(), line.words()[11]), (fault, 1));
    };
    // Ready was not there before this write.
    refused(line(), ENABLE | TRIGGER, 10);
    refused(line(), TRIGGER, 10);
    let with = |change: fn(&mut CameraSnapshot)| {
        let mut line = enabled();
        change(&mut line.now);
        assert!(!line.has(told::READY));
        line
    };
    refused(with(|now| now.is_online = false), ENABLE | TRIGGER, 10);
    refused(with(|now| now.can_arm = false), ENABLE | TRIGGER, 10);
    refused(with(|now| now.is_switching = true), ENABLE | TRIGGER, 10);
    // The write that triggers takes enable back.
    refused(enabled(), TRIGGER, 10);
    let mut every = enabled();
    (every.now.has_trigger, every.now.can_arm) = (false, false);
    assert!(every.has(told::READY));
    refused(every, ENABLE | TRIGGER, 12);
    refused(
        with(|now| (now.is_online, now.has_trigger) = (false, false)),
        ENABLE | TRIGGER,
        10,
    );
    // The camera took another trigger meanwhile.
    let mut line = enabled();
    assert!(line.write(ENABLE | TRIGGER).trigger);
    line.handshake.armed(None);
    assert!(!line.has(told::TRIGGER_ACK));
    assert_eq!((line.error(), line.words()[11]), (10, 1));
}

#[test]
fn results_come_one_after_the_other_by_levels() {
    let mut line = enabled();
    line.handshake.answer(&answer(1, Outcome::Pass));
    line.handshake.answer(&answer(2, Outcome::Fail));
    assert_eq!(line.result(), Some((1, 1)));
    assert!(line.has(told::PASS) && !line.has(told::REJECT));
    assert_eq!(line.words()[10], 123, "tenths of a millisecond");
    line.write(ENABLE | RESULT_ACK);
    assert_eq!(line.result(), None);
    assert!(!line.has(told::PASS));
    assert_eq!(line.words()[4..8], [0; 4]);
    // It waits until the acknowledgement is taken back.
    line.write(ENABLE | RESULT_ACK);
    assert_eq!(line.result(), None);
    line.write(ENABLE);
    assert_eq!(line.result(), Some((2, 2)));
    assert!(!line.has(told::PASS) && line.has(told::REJECT));
    line.write(ENABLE | RESULT_ACK);
    line.write(ENABLE);
    assert_eq!(line.result(), None);
    // A result that comes while the acknowledgement stands waits too.
    line.write(ENABLE | RESULT_ACK);
    line.handshake.answer(&answer(3, Outcome::Late));
    assert_eq!(line.result(), None);
    line.write(ENABLE);
    assert_eq!(line.result(), Some((3, 4)));
    assert!(line.has(told::LATE));
}

#[test]
fn full_queue_drops_the_new_result_and_counts_it() {
    let mut line = enabled();
    for sequence in 1..=9 {
        assert!(line.has(told::READY), "{sequence}");
        line.handshake.answer(&answer(sequence, Outcome::Pass));
    }
    // One is in the registers, eight wait.
    assert!(!line.has(told::OVERRUN) && !line.has(told::READY));
    line.handshake.answer(&answer(10, Outcome::Pass));
    line.handshake.answer(&answer(11, Outcome::Pass));
    assert!(line.has(told::OVERRUN));
    assert_eq!(line.words()[11], 2);
    for sequence in 1..=9 {
        assert_eq!(line.result(), Some((sequence, 1)));
        line.write(ENABLE | RESULT_ACK);
        line.write(ENABLE);
    }
    assert_eq!(line.result(), None);
    assert!(line.has(told::OVERRUN) && line.has(told::READY));
    line.write(ENABLE | CLEAR);
    assert!(!line.has(told::OVERRUN));
    assert_eq!(line.words()[11], 0);
}

#[test]
fn clear_forgets_results_and_errors() {
    let mut line = enabled();
    line.write(ENABLE | RECIPE_REQUEST);
    line.handshake.switched(Err(Fault::NoRecipe));
    for sequence in 1..=10 {
        line.handshake.answer(&answer(sequence, Outcome::Pass));
    }
    assert_eq!(line.error(), 13);
    line.write(ENABLE | CLEAR);
    assert_eq!(line.words()[0], told::ONLINE | told::READY);
    assert_eq!(
        (line.result(), line.error(), line.words()[11]),
        (None, 0, 0)
    );
    // The level clears nothing.
    line.handshake.answer(&answer(11, Outcome::Pass));
    line.write(ENABLE | CLEAR);
    assert_eq!(line.result(), Some((11, 1)));
}

#[test]
fn without_enable_nothing_is_queued_and_what_waits_goes() {
    let mut line = line();
    line.handshake.answer(&answer(1, Outcome::Pass));
    line.write(ENABLE);
    assert_eq!(line.result(), None);
    for sequence in 2..=4 {
        line.handshake.answer(&answer(sequence, Outcome::Pass));
    }
    line.write(0);
    assert_eq!((line.result(), line.words()[11]), (None, 2));
    line.write(ENABLE);
    assert_eq!(line.result(), None);
}

#[test]
fn outcomes_of_frames_before_enable_or_clear_are_left_out() {
    let mut line = line();
    line.now.newest = 3;
    // The output must know it, too.
    assert!(line.write(ENABLE).begin);
    assert!(!line.write(ENABLE).begin);
    // The frame was in progress when the PLC began: its pass is not of a piece that the PLC has triggered.
    line.handshake.answer(&answer(3, Outcome::Pass));
    assert_eq!(line.result(), None);
    line.handshake.answer(&answer(4, Outcome::Fail));
    assert_eq!(line.result(), Some((4, 2)));
    line.now.newest = 6;
    assert!(line.write(ENABLE | CLEAR).begin);
    line.handshake.answer(&answer(6, Outcome::Pass));
    assert_eq!(line.result(), None);
    // The level forgets nothing more.
    line.now.newest = 7;
    assert!(!line.write(ENABLE | CLEAR).begin);
    line.handshake.answer(&answer(7, Outcome::Fail));
    assert_eq!(line.result(), Some((7, 2)));
    assert_eq!(line.words()[11], 0, "nothing is missed");
}

#[test]
fn answers_that_nobody_asked_for_are_left_out() {
    let mut line = enabled();
    line.handshake.answer(&Answer {
        is_asked_for: false,
        ..answer(1, Outcome::Pass)
    });
    assert_eq!(line.result(), None);
}

#[test]
fn without_commands_the_newest_result_stays() {
    let mut line = line();
    line.handshake = Handshake::new(false, TIMEOUT);
    for sequence in 1..=20 {
        line.handshake.answer(&answer(sequence, Outcome::Pass));
        assert_eq!(line.result(), Some((sequence as u32, 1)));
    }
    assert!(!line.has(told::OVERRUN) && !line.has(told::READY));
    assert_eq!(line.words()[11], 0);
}

#[test]
fn plc_whose_heartbeat_stops_must_begin_anew() {
    let mut line = enabled();
    // A heartbeat that never changed is not watched.
    line.time += TIMEOUT * 10;
    assert!(!line.handshake.expire(line.time));
    line.beat(1);
    line.time += TIMEOUT;
    assert!(!line.handshake.expire(line.time));
    // The same value is no beat.
    line.beat(1);
    for sequence in 1..=3 {
        line.handshake.answer(&answer(sequence, Outcome::Pass));
    }
    line.time += Duration::from_millis(1);
    assert!(line.handshake.expire(line.time));
    assert!(!line.handshake.expire(line.time), "it is told once");
    assert!(line.handshake.is_lost() && !line.has(told::READY));
    assert_eq!(
        (line.result(), line.error(), line.words()[11]),
        (None, 11, 2)
    );
    line.handshake.answer(&answer(4, Outcome::Pass));
    assert_eq!(line.result(), None);
    // enable = 0 without a beat is not enough, nor is a beat while enable stays 1.
    line.write(0);
    assert!(line.handshake.is_lost());
    line.write(ENABLE);
    assert!(!line.handshake.is_enabled());
    line.beat(2);
    assert!(!line.handshake.is_enabled());
    assert!(!line.write(ENABLE | TRIGGER).trigger);
    line.write(0);
    line.write(ENABLE);
    assert!(line.handshake.is_enabled() && line.has(told::READY));
    assert_ne!(line.error(), 0, "the error stays until clear");
    line.write(ENABLE | CLEAR);
    assert_eq!(line.error(), 0);
}

#[test]
fn loss_of_the_heartbeat_is_seen_before_a_late_write_is_obeyed() {
    let mut line = enabled();
    line.beat(1);
    line.time += TIMEOUT * 2;
    // Nobody called `expire` meanwhile.
    assert!(!line.write(ENABLE | TRIGGER).trigger);
    assert!(line.handshake.is_lost());
}

#[test]
fn recipe_request_is_busy_from_its_write_to_its_end() {
    let mut line = enabled();
    let (handshake, now, time) = (&mut line.handshake, line.now, line.time);
    let asked = handshake.write(0, &[ENABLE | RECIPE_REQUEST, 42], &now, time);
    assert_eq!(asked.recipe, Some(42));
    assert!(line.has(told::RECIPE_BUSY) && !line.has(told::READY));
    assert_eq!(line.write(ENABLE | RECIPE_REQUEST).recipe, None, "a level");
    line.now.recipe = 42;
    line.handshake.switched(Ok(()));
    assert!(!line.has(told::RECIPE_BUSY) && !line.has(told::RECIPE_FAILED));
    assert!(line.has(told::READY));
    assert_eq!(line.words()[8], 42);
    for (fault, code) in [
        (Fault::NoRecipe, 13),
        (Fault::TwoRecipes, 14),
        (Fault::SwitchFailed, 15),
    ] {
        line.write(ENABLE);
        assert!(line.write(ENABLE | RECIPE_REQUEST).recipe.is_some());
        assert!(
            !line.has(told::RECIPE_FAILED),
            "the end before is forgotten"
        );
        line.handshake.switched(Err(fault));
        assert!(!line.has(told::RECIPE_BUSY) && line.has(told::RECIPE_FAILED));
        assert_eq!(line.error(), code);
    }
    // While somebody else switches.
    line.write(ENABLE | CLEAR);
    line.now.is_switching = true;
    assert!(line.has(told::RECIPE_BUSY));
    assert_eq!(line.write(ENABLE | RECIPE_REQUEST).recipe, None);
    assert!(line.has(told::RECIPE_FAILED));
    assert_eq!(line.error(), 16);
}

#[test]
fn words_of_the_camera_and_the_station_are_in_their_places() {
    let mut line = enabled();
    line.now = CameraSnapshot {
        is_busy: true,
        trouble: 2,
        recipe: 9,
        ..line.now
    };
    let mut of = answer(0xa000_b000, Outcome::None);
    of.finding.defects = 70_000;
    of.finding.by_class = [1, 2, 3, 4, 5, 6, 7, 65_536];
    of.finding.parts = FoundParts {
        count: 5,
        failed: 2,
        first: [70_001, -2, -9_000],
    };
    of.latency = Duration::from_secs(7);
    of.is_reject = false;
    line.handshake.answer(&of);
    line.handshake
        .write(1, &[5, 0x0001, 0x0002], &line.now, line.time);
    assert_eq!(line.handshake.part(), Some(0x1_0002));
    let ready = told::ONLINE | told::READY | told::BUSY | told::RESULT_VALID | told::ERROR;
    let wanted = [
        ready, 7, 0, 0, 0xa000, 0xb000, 3, 65_535, 9, 2, 65_535, 0, 1, 2, 3, 4, 5, 6, 7, 65_535,
        0x0102, 0x0304, 5, 2, 1, 0x1171, 0xffff, 0xfffe, 0xdcd8,
    ];
    assert_eq!(line.words(), wanted);
    line.write(0);
    line.handshake.write(2, &[0, 0], &line.now, line.time);
    assert_eq!(line.handshake.part(), None);
}
