//! The thread, with a line that notes what is set.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    thread::sleep,
    time::{Duration, Instant},
};

use plan::{MachineSettings, Trigger};

use super::*;
use crate::answer::{self, Finding, Machine, Outcome};

/// A line that notes each level with its time.
#[derive(Clone, Default)]
struct Fake {
    set: Arc<Mutex<Vec<(Instant, bool)>>>,
    fails: Arc<AtomicBool>,
}

impl Line for Fake {
    fn set(&mut self, is_active: bool) -> Result<(), String> {
        if self.fails.load(Relaxed) {
            return Err("broken".to_owned());
        }
        self.set.lock().unwrap().push((Instant::now(), is_active));
        Ok(())
    }
}

impl Fake {
    fn levels(&self) -> Vec<bool> {
        let set = self.set.lock().unwrap();
        set.iter().map(|(_, is_active)| *is_active).collect()
    }

    /// Waits for these levels since the start.
    #[track_caller]
    fn wait_for(&self, levels: &[bool]) {
        let until = Instant::now() + Duration::from_secs(10);
        while self.levels() != levels {
            assert!(
                Instant::now() < until,
                "{:?} is not {levels:?}",
                self.levels()
            );
            sleep(Duration::from_millis(1));
        }
    }
}

fn output(pulse_ms: u64, delay_ms: Option<u64>) -> (Output, Fake, mpsc::Receiver<String>) {
    let settings = OutputSettings {
        wire: Wire::Camera {
            user_output: String::new(),
            line: None,
        },
        pulse: Duration::from_millis(pulse_ms),
        delay: delay_ms.map(Duration::from_millis),
    };
    let (alarms, told) = mpsc::channel();
    let alarm = Box::new(move |text| alarms.send(text).unwrap_or_default());
    let output = Output::start(settings, "left", alarm).unwrap();
    let fake = Fake::default();
    output.attach(Box::new(fake.clone()));
    fake.wait_for(&[false]);
    (output, fake, told)
}

fn answer(outcome: Outcome) -> Answer {
    Answer::of_test(1, outcome, Instant::now(), Duration::ZERO)
}

#[test]
fn a_pulse_has_its_length_and_begins_at_its_time() {
    let (output, fake, _told) = output(30, Some(50));
    let pass = answer(Outcome::Pass);
    output.tell(&pass);
    fake.wait_for(&[false, true, false]);
    let set = fake.set.lock().unwrap();
    let begin = set[1].0 - pass.arrived;
    let length = set[2].0 - set[1].0;
    // Never too early; how late depends on what else runs on this machine.
    assert!(begin >= Duration::from_millis(50), "{begin:?}");
    assert!(length >= Duration::from_millis(29), "{length:?}");
    println!(
        "begins {:?} late, {length:?} long",
        begin - Duration::from_millis(50)
    );
}

#[test]
fn another_outcome_ends_a_pulse_at_once() {
    let (output, fake, _told) = output(60_000, None);
    output.tell(&answer(Outcome::Pass));
    fake.wait_for(&[false, true]);
    output.tell(&answer(Outcome::Pass));
    output.tell(&answer(Outcome::Late));
    fake.wait_for(&[false, true, false]);
}

#[test]
fn not_enabled_it_rests_at_once_and_acts_on_no_answer() {
    let (output, fake, _told) = output(60_000, None);
    output.tell(&answer(Outcome::Pass));
    fake.wait_for(&[false, true]);
    output.set_enabled(false);
    fake.wait_for(&[false, true, false]);
    output.tell(&answer(Outcome::Pass));
    sleep(Duration::from_millis(50));
    output.set_enabled(true);
    sleep(Duration::from_millis(50));
    assert_eq!(fake.levels(), [false, true, false]);
    output.tell(&answer(Outcome::Pass));
    fake.wait_for(&[false, true, false, true]);
}

#[test]
fn at_the_end_and_without_its_line_it_rests_in_the_middle_of_a_pulse() {
    let (output, fake, _told) = output(60_000, None);
    output.tell(&answer(Outcome::Pass));
    fake.wait_for(&[false, true]);
    output.detach();
    assert_eq!(fake.levels(), [false, true, false]);
    assert!(output.is_in_force().is_err());
    output.tell(&answer(Outcome::Pass));
    let again = Fake::default();
    output.attach(Box::new(again.clone()));
    again.wait_for(&[false]);
    output.tell(&answer(Outcome::Pass));
    again.wait_for(&[false, true]);
    drop(output);
    assert_eq!(again.levels(), [false, true, false]);
    assert_eq!(fake.levels(), [false, true, false]);
}

#[test]
fn a_line_that_cannot_be_set_has_one_alarm_and_gives_no_pulse_until_it_rested() {
    let (output, fake, told) = output(60_000, None);
    fake.fails.store(true, Relaxed);
    output.tell(&answer(Outcome::Pass));
    let limit = Duration::from_secs(10);
    let alarm = told.recv_timeout(limit).unwrap();
    assert!(
        alarm.starts_with("the output cannot be set: broken; "),
        "{alarm}"
    );
    assert_eq!(output.is_in_force(), Err("broken".to_owned()));
    // Not kept until later, when another piece is there.
    output.tell(&answer(Outcome::Pass));
    sleep(RETRY * 2);
    fake.fails.store(false, Relaxed);
    fake.wait_for(&[false, false]);
    let alarm = told.recv_timeout(limit).unwrap();
    assert!(alarm.contains("can be set again"), "{alarm}");
    assert_eq!(output.is_in_force(), Ok(()));
    output.tell(&answer(Outcome::Pass));
    fake.wait_for(&[false, false, true]);
    assert!(told.try_recv().is_err());
}

#[test]
fn too_many_answers_that_wait_bring_rest_and_an_alarm_and_nobody_waits() {
    let (output, fake, told) = output(10, Some(60_000));
    let begin = Instant::now();
    for _ in 0..30_000 {
        output.tell(&answer(Outcome::Pass));
    }
    let took = begin.elapsed();
    let alarm = told.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(alarm.starts_with("too many answers wait"), "{alarm}");
    assert_eq!(fake.levels(), [false]);
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn a_slow_line_holds_up_no_answer_and_its_late_pulse_is_ended_and_told() {
    struct Slow(Fake);
    impl Line for Slow {
        fn set(&mut self, is_active: bool) -> Result<(), String> {
            self.0.set(is_active)?;
            sleep(Duration::from_millis(300 * u64::from(is_active)));
            Ok(())
        }
    }
    let (output, _, told) = output(50, None);
    let fake = Fake::default();
    output.attach(Box::new(Slow(fake.clone())));
    fake.wait_for(&[false]);
    output.tell(&answer(Outcome::Pass));
    fake.wait_for(&[false, true]);
    let begin = Instant::now();
    output.tell(&answer(Outcome::Pass));
    assert!(begin.elapsed() < Duration::from_millis(200));
    fake.wait_for(&[false, true, false]);
    let alarm = told.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(
        alarm.starts_with("the output cannot be set: a pulse began 300 ms late;"),
        "{alarm}"
    );
    // The pass that came meanwhile would be late, too.
    assert_eq!(fake.levels(), [false, true, false]);
}

#[test]
fn only_frames_that_the_machine_asks_for_drive_the_output_and_only_if_it_is_enabled() {
    let (output, fake, _told) = output(60_000, None);
    let machine = Machine::new("left", &answer::Line::new().unwrap());
    machine.set_settings(MachineSettings {
        trigger: Trigger::Next,
        ..MachineSettings::default()
    });
    machine.set_output(Some(Arc::new(output)));
    let good = Finding {
        verdict: Outcome::Pass,
        ..Finding::NOTHING
    };
    let pass = || {
        let sequence = machine.arrive();
        machine.judge(sequence, &good, &None).unwrap()
    };
    assert_eq!(pass().outcome.outcome, "pass");
    sleep(Duration::from_millis(50));
    assert_eq!(fake.levels(), [false]);
    machine.arm().unwrap();
    pass();
    fake.wait_for(&[false, true]);
    machine.set_enabled(false);
    fake.wait_for(&[false, true, false]);
    machine.arm().unwrap();
    pass();
    // Another output has the same setting.
    let (another, other, _told) = self::output(60_000, None);
    machine.set_output(Some(Arc::new(another)));
    machine.arm().unwrap();
    pass();
    sleep(Duration::from_millis(50));
    assert_eq!(fake.levels(), [false, true, false]);
    assert_eq!(other.levels(), [false]);
    machine.set_enabled(true);
    machine.arm().unwrap();
    pass();
    other.wait_for(&[false, true]);
    machine.arm().unwrap();
    let before = machine.arrive();
    // The machine begins anew: a frame that arrived before does not drive the output.
    machine.begin_after(before);
    other.wait_for(&[false, true, false]);
    machine.judge(before, &good, &None).unwrap();
    sleep(Duration::from_millis(50));
    assert_eq!(other.levels(), [false, true, false]);
    machine.arm().unwrap();
    pass();
    other.wait_for(&[false, true, false, true]);
    machine.set_output(None);
    assert_eq!(other.levels(), [false, true, false, true, false]);
}
