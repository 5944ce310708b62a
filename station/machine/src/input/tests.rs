//! The thread, with edges that a test gives.

use std::{
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    time::{Duration, Instant},
};

use plan::{Gpio, GpioLine, MachineSettings, Trigger};

use super::*;
use crate::answer::{Answer, Finding, Line, Outcome};

/// Edges and failures, as a test sends them.
struct Fake(Receiver<Result<InputEdge, String>>);

impl Edges for Fake {
    fn open(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn next(&mut self, limit: Duration) -> Result<Option<InputEdge>, String> {
        match self.0.recv_timeout(limit) {
            Ok(came) => came.map(Some),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
        }
    }
}

struct Bench {
    machine: Arc<Machine>,
    edges: Sender<Result<InputEdge, String>>,
    answers: Receiver<Answer>,
    alarms: Receiver<String>,
    _input: Input,
}

const LIMIT: Duration = Duration::from_secs(10);
const PASS: Finding = Finding {
    verdict: Outcome::Pass,
    ..Finding::NOTHING
};

fn settings(frame_within: Duration) -> MachineSettings {
    MachineSettings {
        trigger: Trigger::Input,
        frame_within,
        ..MachineSettings::default()
    }
}

impl Bench {
    /// An input whose line has been open for long.
    fn new(frame_within: Duration) -> Self {
        // No edge is taken for this time after the line is opened.
        let bench = Self::opened(Duration::ZERO);
        std::thread::sleep(Duration::from_millis(50));
        bench.machine.set_settings(settings(frame_within));
        bench
    }

    fn opened(frame_within: Duration) -> Self {
        let line = Line::new().unwrap();
        let (told, answers) = mpsc::channel();
        line.set_sink(Box::new(move |_, answer| {
            let _ = told.send(*answer);
        }));
        let machine = Machine::new("left", &line);
        machine.set_settings(settings(frame_within));
        let of_line = InputSettings {
            gpio: Gpio {
                chip: "/dev/gpiochip0".into(),
                line: GpioLine::Number(0),
            },
            edge: Edge::Rising,
        };
        let (edges, given) = mpsc::channel();
        let (alarm, alarms) = mpsc::channel();
        let alarm = Box::new(move |text| {
            let _ = alarm.send(text);
        });
        let fake = Box::new(Fake(given));
        let input = Input::start(&of_line, fake, "left", &machine, alarm).unwrap();
        Self {
            machine,
            edges,
            answers,
            alarms,
            _input: input,
        }
    }

    fn edge(&self, missed: u32) -> Instant {
        let at = Instant::now();
        self.edges.send(Ok(InputEdge { at, missed })).unwrap();
        at
    }

    /// Waits until an edge waits for its frame.
    #[track_caller]
    fn wait_for_edge(&self) {
        let until = Instant::now() + LIMIT;
        while self.machine.waiting() == 0 {
            assert!(Instant::now() < until, "no edge waits for its frame");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[track_caller]
    fn answer(&self) -> Answer {
        self.answers.recv_timeout(LIMIT).unwrap()
    }
}

#[test]
fn frame_after_an_edge_is_its_frame_and_delays_count_from_the_edge() {
    let bench = Bench::new(LIMIT);
    let stray = bench.machine.arrive();
    bench.machine.judge(stray, &PASS, &None).unwrap();
    assert!(!bench.answer().is_asked_for);
    let at = bench.edge(0);
    bench.wait_for_edge();
    let sequence = bench.machine.arrive();
    bench.machine.judge(sequence, &PASS, &None).unwrap();
    let answer = bench.answer();
    assert_eq!((answer.sequence, answer.outcome), (2, Outcome::Pass));
    assert!(answer.is_asked_for);
    assert_eq!(answer.piece_at, at);
    assert!(answer.arrived > at);
    assert!(bench.machine.is_input_in_force() == Some(Ok(())));
}

#[test]
fn frame_of_an_edge_before_the_line_was_opened_is_not_taken_for_the_first_edge() {
    let bench = Bench::opened(LIMIT);
    std::thread::sleep(Duration::from_millis(50));
    bench.edge(0);
    // At once, and not because no frame came.
    let answer = bench.answers.recv_timeout(LIMIT / 2).unwrap();
    assert_eq!(answer.outcome, Outcome::Lost);
}

#[test]
fn edges_that_the_kernel_could_not_keep_are_lost_with_the_one_that_tells_of_them() {
    let bench = Bench::new(LIMIT);
    bench.edge(2);
    let answers = [(); 3].map(|()| bench.answer());
    assert!(
        answers
            .iter()
            .all(|of| of.outcome == Outcome::Lost && of.is_asked_for)
    );
    assert_eq!(answers.map(|of| of.sequence), [1, 2, 3]);
    let alarm = bench.alarms.recv_timeout(LIMIT).unwrap();
    assert!(
        alarm.starts_with("edges at the input that count as lost: 3; the newest because the frame of the trigger before"),
        "{alarm}"
    );
    // People are told once.
    bench.edge(0);
    assert_eq!(bench.answer().sequence, 4);
    assert!(bench.alarms.try_recv().is_err());
}

#[test]
fn line_that_cannot_be_read_is_told_until_it_can_and_edges_meanwhile_may_have_been_missed() {
    let bench = Bench::new(LIMIT);
    bench.edge(0);
    bench.wait_for_edge();
    bench.edges.send(Err("unplugged".to_owned())).unwrap();
    let alarm = bench.alarms.recv_timeout(LIMIT).unwrap();
    assert!(
        alarm.starts_with("the input cannot be read: unplugged;"),
        "{alarm}"
    );
    assert_eq!(bench.answer().outcome, Outcome::Lost);
    let alarm = bench.alarms.recv_timeout(LIMIT).unwrap();
    assert_eq!(alarm, "the input can be read again and is in force");
    assert_eq!(bench.machine.is_input_in_force(), Some(Ok(())));
    // The frame of an edge that nobody saw may come now.
    bench.edge(0);
    let answer = bench.answer();
    assert_eq!((answer.sequence, answer.outcome), (2, Outcome::Lost));
}
