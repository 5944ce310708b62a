//! The frames of a camera that wait for their outcomes: no clock, no lock, no thread.

use std::{
    collections::VecDeque,
    fmt,
    time::{Instant, SystemTime},
};

use gstinspectpublish::report::RecipeId;

use super::{Answer, Finding, OfNone, Outcome, Settings, Trigger};

/// Most frames that get a number for one gap: a camera that numbers its frames wrong must not count for hours.
pub const MOST_LOST: u64 = 1000;

/// Frames in the order of their arrival.
#[derive(Default)]
pub(super) struct Frames {
    pub settings: Settings,
    pub recipe: Option<RecipeId>,
    pub is_switching: bool,
    pub part: Option<u32>,
    open: VecDeque<Record>,
    armed: Option<Record>,
    /// After a trigger without a frame no trigger is taken before this time: its frame may still come.
    not_before: Option<Instant>,
}

/// A frame, or a trigger that waits for its frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    pub sequence: u64,
    /// When the frame arrived, or the trigger came.
    pub arrived: Instant,
    /// The same on the wall clock.
    pub time: SystemTime,
    /// When its outcome must be given.
    due: Option<Instant>,
    pub recipe: Option<RecipeId>,
    /// Given already: `late`, or `fault`.
    pub outcome: Option<Outcome>,
    is_triggered: bool,
    pub part: Option<u32>,
}

/// A record that will get no result any more, or has got it.
#[derive(Debug, PartialEq)]
pub(super) struct Closed {
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
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTrigger => "the camera has no trigger; set trigger in [camera.machine]",
            Self::Switching => "another recipe is coming into force",
            Self::Waiting => "the frame of the trigger before has not arrived",
            Self::AfterLoss => "the frame of the trigger before was lost and may still come",
        })
    }
}

impl Frames {
    pub fn waiting(&self) -> usize {
        let open = self.open.iter().filter(|record| record.outcome.is_none());
        open.count() + usize::from(self.armed.is_some())
    }

    pub fn can_arm(&self, now: Instant) -> Result<(), NotReady> {
        if self.settings.trigger == Trigger::Every {
            Err(NotReady::NoTrigger)
        } else if self.is_switching {
            Err(NotReady::Switching)
        } else if self.armed.is_some() {
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
        Ok((sequence, due))
    }

    fn record(&self, sequence: u64, now: Instant, time: SystemTime) -> Record {
        Record {
            sequence,
            arrived: now,
            time,
            due: None,
            recipe: self.recipe.clone(),
            outcome: None,
            is_triggered: false,
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
        let mut record = match self.armed.take() {
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
    ) -> Vec<Closed> {
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
    pub fn skip_to(&mut self, sequence: u64, now: Instant) -> Vec<Closed> {
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
    ) -> Option<Closed> {
        let mut record = self.pop_if(|first| first.sequence == sequence)?;
        if record.outcome.is_some() {
            return Some(Closed {
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
        Some(Closed { record, answer })
    }

    pub fn abandon(&mut self, now: Instant) -> Vec<Closed> {
        let mut abandoned = self.skip_to(u64::MAX, now);
        if let Some(record) = self.armed.take() {
            abandoned.push(self.lost_trigger(record, now));
        }
        abandoned
    }

    pub fn is_armed(&self, sequence: u64) -> bool {
        let armed = self.armed.as_ref();
        armed.is_some_and(|armed| armed.sequence == sequence)
    }

    /// The camera could not be triggered.
    pub fn lose_trigger(&mut self, sequence: u64, now: Instant) -> Vec<Closed> {
        let lost = self.armed.take_if(|armed| armed.sequence == sequence);
        let lost = lost.map(|record| self.lost_trigger(record, now));
        lost.into_iter().collect()
    }

    /// Returns the answers of frames that are late, and the trigger that got no frame in time.
    pub fn expire(&mut self, now: Instant) -> (Vec<Answer>, Vec<Closed>) {
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

    fn lost_trigger(&mut self, record: Record, now: Instant) -> Closed {
        self.not_before = Some(now + self.settings.frame_within);
        self.close(record, Outcome::Lost, now)
    }

    fn close(&self, mut record: Record, outcome: Outcome, now: Instant) -> Closed {
        let answer = (record.outcome.is_none())
            .then(|| self.answer(&mut record, outcome, Finding::NOTHING, now));
        Closed { record, answer }
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
        let is_ignored = outcome == Outcome::None && self.settings.none == OfNone::Ignore;
        Answer {
            sequence: record.sequence,
            outcome,
            is_asked_for: record.is_triggered || self.settings.trigger == Trigger::Every,
            is_reject: outcome != Outcome::Pass && !is_ignored,
            finding,
            part: record.part,
            arrived: record.arrived,
            latency: now.saturating_duration_since(record.arrived),
        }
    }
}
