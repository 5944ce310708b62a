//! The frames of a camera that wait for their outcomes: no clock, no lock, no thread.

use std::{
    collections::VecDeque,
    fmt,
    time::{Duration, Instant, SystemTime},
};

use clinspect_results::report::RecipeId;
use plan::{MachineSettings, Trigger, UninspectedAction};

use super::{Answer, Finding, Outcome};

/// Most frames that get a number for one gap: a camera that numbers its frames wrong must not count for hours.
pub const MOST_LOST: u64 = 1000;

/// Frames in the order of their arrival.
#[derive(Default)]
pub(super) struct Frames {
    pub settings: MachineSettings,
    pub recipe: Option<RecipeId>,
    pub is_switching: bool,
    pub part: Option<u32>,
    open: VecDeque<Record>,
    armed: Option<Record>,
    /// After a trigger without a frame no trigger is taken before this time: its frame may still come.
    not_before: Option<Instant>,
    /// The station's command to the camera is under way: a lost packet is sent again after a while.
    is_firing: bool,
    /// The trigger of that command was lost meanwhile.
    is_lost_while_firing: bool,
    /// A frame is due that nobody asked for.
    is_first_due: bool,
    /// When the newest frame arrived.
    newest: Option<Instant>,
}

/// A frame, or a trigger that waits for its frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    pub sequence: u64,
    /// When the frame arrived, or the trigger came.
    pub arrived: Instant,
    /// The same on the wall clock; of an edge when it was read.
    pub time: SystemTime,
    /// When its outcome must be given.
    due: Option<Instant>,
    pub recipe: Option<RecipeId>,
    /// Given already: `late`, or `fault`.
    pub outcome: Option<Outcome>,
    /// From the arrival to the outcome.
    pub latency: Duration,
    is_triggered: bool,
    /// The edge at the input that asked for it.
    edge: Option<Instant>,
    pub part: Option<u32>,
}

/// A record that will get no result any more, or has got it.
#[derive(Debug, PartialEq)]
pub(super) struct ClosedRecord {
    pub record: Record,
    /// `None` if its outcome was given before.
    pub answer: Option<Answer>,
}

/// Why a trigger is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotReady {
    /// The camera answers for every frame.
    NoTrigger,
    /// Another recipe comes into force.
    Switching,
    /// The frame of the trigger before has not arrived.
    Waiting,
    /// The frame of a trigger before was lost, and may still come.
    AfterLoss,
    /// A frame arrived between the edge and its reading, or could have.
    Overtaken,
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTrigger => {
                "the camera takes no trigger of a PLC; set trigger in [camera.machine]"
            }
            Self::Switching => "another recipe is coming into force",
            Self::Waiting => "the frame of the trigger before has not arrived",
            Self::AfterLoss => "the frame of the trigger before was lost and may still come",
            Self::Overtaken => "the edge was read so late that its frame may have arrived before",
        })
    }
}

impl Frames {
    pub fn waiting(&self) -> usize {
        let open = self.open.iter().filter(|record| record.outcome.is_none());
        open.count() + usize::from(self.armed.is_some())
    }

    pub fn oldest(&self, now: Instant) -> Option<Duration> {
        let oldest = self.open.front()?;
        Some(now.saturating_duration_since(oldest.arrived))
    }

    pub fn can_arm(&self, now: Instant) -> Result<(), NotReady> {
        if !self.settings.trigger.is_commanded() {
            Err(NotReady::NoTrigger)
        } else if self.is_switching {
            Err(NotReady::Switching)
        } else if self.armed.is_some() || self.is_firing || self.is_first_due {
            Err(NotReady::Waiting)
        } else if self.not_before.is_some_and(|end| now < end) {
            Err(NotReady::AfterLoss)
        } else {
            Ok(())
        }
    }

    /// Returns the number, and when its frame must be there.
    pub fn arm(
        &mut self,
        now: Instant,
        time: SystemTime,
        next: impl FnOnce() -> u64,
    ) -> Result<(u64, Instant), NotReady> {
        self.can_arm(now)?;
        let due = now + self.settings.frame_within;
        let mut record = self.record(next(), now, time);
        record.due = Some(due);
        record.is_triggered = true;
        let sequence = record.sequence;
        self.armed = Some(record);
        self.is_firing = self.settings.trigger == Trigger::Software;
        Ok((sequence, due))
    }

    /// An edge came `at` this time, and is read now. Returns when its frame must be there, and what is lost.
    ///
    /// The frame of an edge must arrive before the next edge. Else nobody knows of which edge a frame is: all are lost until
    /// no frame may come any more.
    pub fn edge(
        &mut self,
        at: Instant,
        (now, time): (Instant, SystemTime),
        next: impl FnOnce() -> u64,
    ) -> (Result<Instant, NotReady>, Vec<ClosedRecord>) {
        let due = at + self.settings.frame_within;
        let mut record = self.record(next(), at, time);
        record.due = Some(due);
        (record.is_triggered, record.edge) = (true, Some(at));
        let before = self.armed.take();
        let refused = if before.is_some() {
            NotReady::Waiting
        } else if self.not_before.is_some_and(|end| at < end) {
            NotReady::AfterLoss
        } else if now >= due || self.newest.is_some_and(|newest| at <= newest) {
            NotReady::Overtaken
        } else {
            self.armed = Some(record);
            return (Ok(due), Vec::new());
        };
        let lost = before.into_iter().chain([record]);
        let lost = lost.map(|record| self.lost_trigger(record, now)).collect();
        (Err(refused), lost)
    }

    /// Edges may have come that nobody saw, and their frames may come now. An edge that waits is lost.
    pub fn miss_edges(&mut self, now: Instant) -> Vec<ClosedRecord> {
        if self.settings.trigger != Trigger::Input {
            return Vec::new();
        }
        self.not_before = Some(now + self.settings.frame_within);
        self.lose_armed(now).into_iter().collect()
    }

    fn record(&self, sequence: u64, now: Instant, time: SystemTime) -> Record {
        Record {
            sequence,
            arrived: now,
            time,
            due: None,
            recipe: self.recipe.clone(),
            outcome: None,
            latency: Duration::ZERO,
            is_triggered: false,
            edge: None,
            part: self.part,
        }
    }

    /// Returns the number, when its outcome is due, and an answer if it has one already.
    pub fn arrive(
        &mut self,
        now: Instant,
        time: SystemTime,
        next: impl FnOnce() -> u64,
    ) -> (u64, Option<Instant>, Option<Answer>) {
        // While it is due, no trigger is taken: so the frame belongs to no trigger.
        self.is_first_due = false;
        self.newest = Some(now);
        // One whose time is over is lost, as soon as the thread of the deadlines looks.
        let in_time = |armed: &mut Record| armed.due.is_none_or(|due| now <= due);
        let mut record = match self.armed.take_if(in_time) {
            Some(armed) => Record {
                arrived: now,
                time,
                recipe: self.recipe.clone(),
                ..armed
            },
            None => self.record(next(), now, time),
        };
        record.due = self.settings.deadline.map(|deadline| now + deadline);
        let answer = (self.is_switching)
            .then(|| self.answer(&mut record, Outcome::Fault, Finding::NOTHING, now));
        let told = (record.sequence, record.due, answer);
        self.open.push_back(record);
        told
    }

    pub fn lose(
        &mut self,
        count: u64,
        now: Instant,
        time: SystemTime,
        next: impl Fn() -> u64,
    ) -> Vec<ClosedRecord> {
        if self.settings.trigger != Trigger::Every {
            return Vec::new();
        }
        let lost = (0..count.min(MOST_LOST)).map(|_| {
            let record = self.record(next(), now, time);
            self.close(record, Outcome::Lost, now)
        });
        lost.collect()
    }

    /// Frames come to their results in order, so those before this one will get none.
    pub fn skip_to(&mut self, sequence: u64, now: Instant) -> Vec<ClosedRecord> {
        let mut skipped = Vec::new();
        while let Some(record) = self.pop_if(|first| first.sequence < sequence) {
            skipped.push(self.close(record, Outcome::Fault, now));
        }
        skipped
    }

    pub fn judge(
        &mut self,
        sequence: u64,
        finding: &Finding,
        recipe: &Option<RecipeId>,
        now: Instant,
    ) -> Option<ClosedRecord> {
        let mut record = self.pop_if(|first| first.sequence == sequence)?;
        if record.outcome.is_some() {
            return Some(ClosedRecord {
                record,
                answer: None,
            });
        }
        let (outcome, finding) = if record.recipe != *recipe {
            (Outcome::Fault, Finding::NOTHING)
        } else if record.due.is_some_and(|due| now > due) {
            (Outcome::Late, Finding::NOTHING)
        } else {
            (finding.verdict, *finding)
        };
        let answer = Some(self.answer(&mut record, outcome, finding, now));
        Some(ClosedRecord { record, answer })
    }

    pub fn abandon(&mut self, now: Instant) -> Vec<ClosedRecord> {
        self.is_first_due = false;
        let mut abandoned = self.skip_to(u64::MAX, now);
        abandoned.extend(self.lose_armed(now));
        abandoned
    }

    pub fn is_armed(&self, sequence: u64) -> bool {
        let armed = self.armed.as_ref();
        armed.is_some_and(|armed| armed.sequence == sequence)
    }

    /// The camera could not be triggered.
    pub fn lose_trigger(&mut self, sequence: u64, now: Instant) -> Vec<ClosedRecord> {
        let lost = self.armed.take_if(|armed| armed.sequence == sequence);
        let lost = lost.map(|record| self.lost_trigger(record, now));
        lost.into_iter().collect()
    }

    /// Returns the answers of frames that are late, and the trigger that got no frame in time.
    pub fn expire(&mut self, now: Instant) -> (Vec<Answer>, Vec<ClosedRecord>) {
        let is_due = |due: &Option<Instant>| due.is_some_and(|due| due <= now);
        let mut late = Vec::new();
        let mut open = std::mem::take(&mut self.open);
        for record in open.iter_mut().filter(|record| record.outcome.is_none()) {
            if is_due(&record.due) {
                late.push(self.answer(record, Outcome::Late, Finding::NOTHING, now));
            }
        }
        self.open = open;
        let mut lost = Vec::new();
        if let Some(record) = self.armed.take_if(|armed| is_due(&armed.due)) {
            lost.push(self.lost_trigger(record, now));
        }
        (late, lost)
    }

    pub fn next_due(&self) -> Option<Instant> {
        let open = self.open.iter().filter(|record| record.outcome.is_none());
        let all = open.chain(&self.armed);
        all.filter_map(|record| record.due).min()
    }

    /// The first record, if it is one of these.
    fn pop_if(&mut self, is_one: impl FnOnce(&Record) -> bool) -> Option<Record> {
        self.open.front().is_some_and(is_one).then_some(())?;
        self.open.pop_front()
    }

    /// The trigger or the edge that waits for its frame gets none.
    fn lose_armed(&mut self, now: Instant) -> Option<ClosedRecord> {
        let armed = self.armed.take()?;
        Some(self.lost_trigger(armed, now))
    }

    fn lost_trigger(&mut self, record: Record, now: Instant) -> ClosedRecord {
        self.is_lost_while_firing |= self.is_firing;
        self.not_before = Some(now + self.settings.frame_within);
        self.close(record, Outcome::Lost, now)
    }

    /// The camera is triggered for a frame that nobody asks for. A trigger that waits for its frame is lost: this frame could
    /// be taken for it.
    pub fn expect_first(&mut self, now: Instant) -> Vec<ClosedRecord> {
        self.is_first_due = true;
        self.lose_armed(now).into_iter().collect()
    }

    /// The command to the camera is done, or was not given. The camera may have obeyed it just now.
    pub fn fired(&mut self, now: Instant) {
        self.is_firing = false;
        if std::mem::take(&mut self.is_lost_while_firing) {
            self.not_before = Some(now + self.settings.frame_within);
        }
    }

    fn close(&self, mut record: Record, outcome: Outcome, now: Instant) -> ClosedRecord {
        let answer = (record.outcome.is_none())
            .then(|| self.answer(&mut record, outcome, Finding::NOTHING, now));
        ClosedRecord { record, answer }
    }

    /// Gives a record its outcome.
    fn answer(
        &self,
        record: &mut Record,
        outcome: Outcome,
        finding: Finding,
        now: Instant,
    ) -> Answer {
        record.outcome = Some(outcome);
        record.latency = now.saturating_duration_since(record.arrived);
        let is_ignored =
            outcome == Outcome::None && self.settings.none == UninspectedAction::Ignore;
        Answer {
            sequence: record.sequence,
            outcome,
            is_asked_for: record.is_triggered || self.settings.trigger == Trigger::Every,
            is_reject: outcome != Outcome::Pass && !is_ignored,
            finding,
            part: record.part,
            arrived: record.arrived,
            latency: record.latency,
            piece_at: record.edge.unwrap_or(record.arrived),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const PASS: Finding = Finding {
        verdict: Outcome::Pass,
        ..Finding::NOTHING
    };
    const MS: Duration = Duration::from_millis(1);

    const NONE: [u64; 0] = [];

    /// Frames on a clock of the test's own.
    struct Bench {
        frames: Frames,
        start: Instant,
        numbers: Cell<u64>,
    }

    impl Bench {
        fn new(trigger: Trigger) -> Self {
            let settings = MachineSettings {
                deadline: Some(50 * MS),
                trigger,
                frame_within: 200 * MS,
                ..MachineSettings::default()
            };
            Self {
                frames: Frames {
                    settings,
                    ..Frames::default()
                },
                start: Instant::now(),
                numbers: Cell::new(0),
            }
        }

        fn at(&self, ms: u32) -> Instant {
            self.start + ms * MS
        }

        fn arrive(&mut self, ms: u32) -> (u64, Option<Answer>) {
            let (now, numbers) = (self.at(ms), &self.numbers);
            let next = || numbers.replace(numbers.get() + 1) + 1;
            let (sequence, _, answer) = self.frames.arrive(now, SystemTime::now(), next);
            (sequence, answer)
        }

        fn arm(&mut self, ms: u32) -> Result<u64, NotReady> {
            let (now, numbers) = (self.at(ms), &self.numbers);
            let next = || numbers.replace(numbers.get() + 1) + 1;
            let armed = self.frames.arm(now, SystemTime::now(), next);
            armed.map(|(sequence, _)| sequence)
        }

        /// Reads at `read` an edge that came at `ms`. Returns the numbers that are lost.
        fn edge(&mut self, ms: u32, read: u32) -> Vec<u64> {
            let (at, now, numbers) = (self.at(ms), self.at(read), &self.numbers);
            let next = || numbers.replace(numbers.get() + 1) + 1;
            let (_, lost) = self.frames.edge(at, (now, SystemTime::now()), next);
            let lost = lost.into_iter().filter_map(|of| of.answer);
            lost.map(|of| of.sequence).collect()
        }

        /// The outcome that a pass gives, if it is the first one of this number.
        fn judge(&mut self, sequence: u64, ms: u32) -> Option<Outcome> {
            let now = self.at(ms);
            let closed = self.frames.judge(sequence, &PASS, &None, now);
            closed.expect("a known number").answer.map(|of| of.outcome)
        }

        fn expire(&mut self, ms: u32) -> Vec<(u64, Outcome)> {
            let (late, lost) = self.frames.expire(self.at(ms));
            let lost = lost.into_iter().filter_map(|of| of.answer);
            let all = late.into_iter().chain(lost);
            all.map(|of| (of.sequence, of.outcome)).collect()
        }
    }

    #[test]
    fn a_number_has_one_outcome_whatever_comes_after_it() {
        let mut bench = Bench::new(Trigger::Every);
        let numbers = [0, 10, 20].map(|ms| bench.arrive(ms).0);
        assert_eq!(numbers, [1, 2, 3]);
        assert_eq!(bench.judge(1, 49), Some(Outcome::Pass));
        assert_eq!(bench.frames.next_due(), Some(bench.at(60)));
        assert_eq!(bench.expire(59), []);
        assert_eq!(bench.expire(60), [(2, Outcome::Late)]);
        assert_eq!(bench.expire(61), []);
        // The verdict comes after all, and drives nothing.
        assert_eq!(bench.judge(2, 62), None);
        let abandoned = bench.frames.abandon(bench.at(63));
        let outcomes = abandoned.iter().map(|of| of.answer.map(|of| of.outcome));
        assert_eq!(Vec::from_iter(outcomes), [Some(Outcome::Fault)]);
        assert_eq!(bench.frames.waiting(), 0);
        assert_eq!(bench.frames.next_due(), None);
    }

    #[test]
    fn a_verdict_behind_its_deadline_is_late_though_the_thread_has_not_looked() {
        let mut bench = Bench::new(Trigger::Every);
        bench.arrive(0);
        bench.arrive(0);
        assert_eq!(bench.judge(1, 50), Some(Outcome::Pass));
        assert_eq!(bench.judge(2, 51), Some(Outcome::Late));
    }

    #[test]
    fn a_frame_that_was_dropped_on_the_way_is_a_fault_when_the_next_one_is_judged() {
        let mut bench = Bench::new(Trigger::Every);
        for ms in 0..3 {
            bench.arrive(ms);
        }
        assert_eq!(bench.expire(50), [(1, Outcome::Late)]);
        let skipped = bench.frames.skip_to(3, bench.at(50));
        let outcomes = skipped.iter().map(|of| of.answer.map(|of| of.outcome));
        // The first one was late before.
        assert_eq!(Vec::from_iter(outcomes), [None, Some(Outcome::Fault)]);
        assert_eq!(bench.judge(3, 50), Some(Outcome::Pass));
    }

    #[test]
    fn frames_under_another_recipe_than_at_their_arrival_are_faults() {
        let mut bench = Bench::new(Trigger::Every);
        bench.arrive(0);
        let name = "cloth".to_owned();
        let recipe = Some(RecipeId {
            hash: String::new(),
            name,
        });
        let closed = bench.frames.judge(1, &PASS, &recipe, bench.at(1));
        let answer = closed.and_then(|of| of.answer).expect("an answer");
        assert_eq!((answer.outcome, answer.is_reject), (Outcome::Fault, true));
        bench.frames.is_switching = true;
        let (_, answer) = bench.arrive(2);
        assert_eq!(answer.map(|of| of.outcome), Some(Outcome::Fault));
        assert_eq!(bench.judge(2, 3), None);
    }

    #[test]
    fn a_trigger_gives_its_number_to_the_next_frame_and_is_lost_without_one() {
        let mut bench = Bench::new(Trigger::Next);
        let (stray, _) = bench.arrive(0);
        bench.frames.part = Some(9);
        assert_eq!(bench.arm(1), Ok(2));
        bench.frames.part = None;
        assert_eq!(bench.arm(2), Err(NotReady::Waiting));
        assert_eq!(bench.arrive(3).0, 2);
        let strays = bench.frames.judge(stray, &PASS, &None, bench.at(4));
        let strays = strays.and_then(|of| of.answer).expect("an answer");
        assert!(!strays.is_asked_for);
        // The deadline counts from the arrival, which was at 3.
        let asked = bench.frames.judge(2, &PASS, &None, bench.at(53));
        let asked = asked.and_then(|of| of.answer).expect("an answer");
        let told = (asked.outcome, asked.is_asked_for, asked.part);
        assert_eq!(told, (Outcome::Pass, true, Some(9)));
        assert_eq!(bench.arm(60), Ok(3));
        assert_eq!(bench.expire(259), []);
        assert_eq!(bench.expire(260), [(3, Outcome::Lost)]);
        // Its frame may still come, and must not be taken for the next trigger's.
        assert_eq!(bench.arm(459), Err(NotReady::AfterLoss));
        assert_eq!(bench.arm(460), Ok(4));
    }

    #[test]
    fn a_frame_that_comes_too_late_is_nobodys_though_the_thread_has_not_looked() {
        for trigger in [Trigger::Next, Trigger::Input] {
            let mut bench = Bench::new(trigger);
            match trigger {
                Trigger::Input => assert_eq!(bench.edge(0, 0), NONE),
                _ => assert_eq!(bench.arm(0), Ok(1)),
            }
            assert_eq!(bench.arrive(201).0, 2);
            assert_eq!(bench.expire(202), [(1, Outcome::Lost)]);
            let closed = bench.frames.judge(2, &PASS, &None, bench.at(203));
            let answer = closed.and_then(|of| of.answer).expect("an answer");
            assert!(!answer.is_asked_for);
        }
    }

    #[test]
    fn an_edge_gives_its_number_to_the_next_frame_though_a_recipe_comes_into_force() {
        let mut bench = Bench::new(Trigger::Input);
        assert_eq!(bench.arm(0), Err(NotReady::NoTrigger));
        assert_eq!(bench.edge(0, 1), NONE);
        assert_eq!(bench.arrive(20).0, 1);
        let closed = bench.frames.judge(1, &PASS, &None, bench.at(70));
        let answer = closed.and_then(|of| of.answer).expect("an answer");
        // The deadline counts from the arrival, a delay from the edge.
        assert_eq!((answer.outcome, answer.is_asked_for), (Outcome::Pass, true));
        assert_eq!(
            (answer.arrived, answer.piece_at),
            (bench.at(20), bench.at(0))
        );
        bench.frames.is_switching = true;
        assert_eq!(bench.edge(100, 101), NONE);
        let (sequence, answer) = bench.arrive(120);
        assert_eq!(
            (sequence, answer.map(|of| of.outcome)),
            (2, Some(Outcome::Fault))
        );
    }

    #[test]
    fn a_frame_that_may_be_of_two_edges_is_of_none() {
        let mut bench = Bench::new(Trigger::Input);
        assert_eq!(bench.edge(0, 0), NONE);
        assert_eq!(bench.edge(100, 100), [1, 2]);
        // The frames of both may come until 300.
        assert_eq!(bench.edge(299, 299), [3]);
        assert_eq!(bench.edge(498, 498), [4]);
        assert!(bench.arrive(500).1.is_none());
        assert_eq!(bench.edge(698, 698), NONE);
        assert_eq!(bench.arrive(700).0, 6);
        assert_eq!(
            [5, 6].map(|of| bench.judge(of, 701)),
            [Some(Outcome::Late), Some(Outcome::Pass)]
        );
        assert_eq!(bench.edge(720, 720), NONE);
        assert_eq!(bench.expire(919), []);
        assert_eq!(bench.expire(920), [(7, Outcome::Lost)]);
        assert_eq!(bench.edge(1119, 1119), [8]);
    }

    #[test]
    fn edges_that_nobody_saw_take_the_time_of_their_frames() {
        let mut bench = Bench::new(Trigger::Input);
        assert_eq!(bench.edge(0, 0), NONE);
        let missed = bench.frames.miss_edges(bench.at(10));
        let outcomes = missed.iter().map(|of| of.answer.map(|of| of.outcome));
        assert_eq!(Vec::from_iter(outcomes), [Some(Outcome::Lost)]);
        assert_eq!(bench.edge(209, 209), [2]);
        assert_eq!(bench.edge(409, 409), NONE);
        assert_eq!(bench.arrive(420).0, 3);
        // Also if none waits.
        assert!(bench.frames.miss_edges(bench.at(430)).is_empty());
        assert_eq!(bench.edge(629, 629), [4]);
        let mut commanded = Bench::new(Trigger::Next);
        assert_eq!(commanded.arm(0), Ok(1));
        assert!(commanded.frames.miss_edges(commanded.at(1)).is_empty());
        assert_eq!(commanded.arrive(2).0, 1);
    }

    #[test]
    fn an_edge_that_is_read_when_its_time_is_over_is_lost() {
        let mut bench = Bench::new(Trigger::Input);
        assert_eq!(bench.edge(0, 200), [1]);
        assert_eq!(bench.edge(400, 599), NONE);
    }

    #[test]
    fn an_edge_that_is_read_behind_a_frame_is_lost() {
        let mut bench = Bench::new(Trigger::Input);
        let (stray, _) = bench.arrive(10);
        assert_eq!(bench.edge(9, 11), [2]);
        let closed = bench.frames.judge(stray, &PASS, &None, bench.at(12));
        let answer = closed.and_then(|of| of.answer).expect("an answer");
        assert!(!answer.is_asked_for);
        assert_eq!(bench.edge(210, 210), [3]);
        assert_eq!(bench.edge(410, 410), NONE);
    }

    #[test]
    fn no_trigger_is_taken_while_a_command_to_the_camera_is_under_way_or_its_frame_may_come() {
        let mut bench = Bench::new(Trigger::Software);
        assert_eq!(bench.arm(0), Ok(1));
        assert_eq!(bench.expire(200), [(1, Outcome::Lost)]);
        // The time after the loss is over, but a packet of the command was lost and is sent again.
        assert_eq!(bench.arm(400), Err(NotReady::Waiting));
        bench.frames.fired(bench.at(500));
        assert_eq!(bench.arm(699), Err(NotReady::AfterLoss));
        assert_eq!(bench.arm(700), Ok(2));
        bench.frames.fired(bench.at(701));
        assert_eq!(bench.arrive(702).0, 2);
        assert_eq!(bench.arm(703), Ok(3));
    }

    #[test]
    fn a_frame_that_the_station_wants_is_not_taken_for_a_trigger() {
        let mut bench = Bench::new(Trigger::Software);
        assert_eq!(bench.arm(0), Ok(1));
        bench.frames.fired(bench.at(1));
        let lost = bench.frames.expect_first(bench.at(2));
        let lost = lost.iter().map(|of| of.answer.map(|of| of.outcome));
        assert_eq!(Vec::from_iter(lost), [Some(Outcome::Lost)]);
        assert_eq!(bench.arm(300), Err(NotReady::Waiting));
        let (first, _) = bench.arrive(301);
        let first = bench
            .frames
            .judge(first, &PASS, &None, bench.at(302))
            .and_then(|of| of.answer);
        assert_eq!(first.map(|of| of.is_asked_for), Some(false));
        assert_eq!(bench.arm(303), Ok(3));
    }

    #[test]
    fn lost_frames_have_numbers_only_where_every_frame_counts() {
        for (trigger, numbers) in [(Trigger::Every, 2), (Trigger::Next, 0)] {
            let mut bench = Bench::new(trigger);
            let now = bench.at(0);
            let next = || bench.numbers.replace(bench.numbers.get() + 1);
            let lost = bench.frames.lose(2, now, SystemTime::now(), next);
            assert_eq!(lost.len(), numbers);
        }
        let mut bench = Bench::new(Trigger::Every);
        let lost = bench
            .frames
            .lose(u64::MAX, bench.at(0), SystemTime::now(), || 1);
        assert_eq!(lost.len() as u64, MOST_LOST);
    }

    #[test]
    fn only_a_pass_is_no_reject_unless_none_is_ignored() {
        for (of_none, rejects) in [
            (UninspectedAction::Reject, true),
            (UninspectedAction::Ignore, false),
        ] {
            let mut bench = Bench::new(Trigger::Every);
            bench.frames.settings.none = of_none;
            let mut is_reject = |verdict| {
                let (sequence, _) = bench.arrive(0);
                let finding = Finding { verdict, ..PASS };
                let closed = bench
                    .frames
                    .judge(sequence, &finding, &None, bench.start + MS);
                closed.and_then(|of| of.answer).map(|of| of.is_reject)
            };
            assert_eq!(is_reject(Outcome::Pass), Some(false));
            assert_eq!(is_reject(Outcome::Fail), Some(true));
            assert_eq!(is_reject(Outcome::None), Some(rejects));
        }
    }
}
