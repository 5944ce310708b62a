//! The answer to the machine: exactly one outcome for each frame, by a deadline.

mod actuator;
mod deadlines;
mod frames;
mod input;
mod line;
mod outcome;
mod realtime;
mod release;

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

use clinspect_results::report::{RecipeId, ReportedOutcome};
use plan::{MachineSettings, Trigger};

use crate::{clock, locks::Mutex};
pub use actuator::Actuator;
use frames::{ClosedRecord, Frames, Record};
pub use frames::{MOST_LOST, NotReady};
pub use input::{InputEdge, InputState};
pub use line::{Line, Server, Sink};
pub use outcome::{Answer, CLASSES, Finding, FoundParts, Outcome};
pub use realtime::keep_times;
pub use release::Release;

/// Frames without results that wait to be published. The supervisor takes them every 50 ms.
const MOST_WITHOUT_REPORT: usize = 1 << 16;

/// Gets a sentence for people.
pub type Alarm = Box<dyn Fn(String) + Send>;

/// The frames of one camera between their arrival and their outcomes.
///
/// Answers leave while the frames are locked, so that they leave in order: a [`Sink`] must not call back.
pub struct Machine {
    camera: String,
    line: Arc<Line>,
    frames: Mutex<Frames>,
    /// Numbers by outcome, in the order of [`Outcome::ALL`].
    outcomes: [AtomicU64; Outcome::ALL.len()],
    without_report: Mutex<VecDeque<OutcomeWithoutReport>>,
    unpublished: AtomicU64,
    /// Whether the machine lets the camera drive its output.
    enabled: AtomicBool,
    /// Answers to numbers up to this one do not drive the output.
    begun_after: AtomicU64,
    output: Mutex<Option<Arc<dyn Actuator>>>,
    release: Mutex<Option<Arc<Release>>>,
    input: Mutex<Option<Arc<InputState>>>,
    edges: AtomicU64,
}

/// A frame that has an outcome and gets no results, or a trigger that got no frame.
#[derive(Debug, Clone, PartialEq)]
pub struct OutcomeWithoutReport {
    /// Its number and its outcome.
    pub outcome: ReportedOutcome,
    /// When it arrived, or when the trigger came.
    pub time: SystemTime,
    /// The recipe in force at that time.
    pub recipe: Option<RecipeId>,
}

/// A frame that got its results.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameOutcome {
    /// Its number and its outcome. The outcome may have been given before, and is then no verdict.
    pub outcome: ReportedOutcome,
    /// From its arrival to its results.
    pub latency: Duration,
}

impl Machine {
    /// The frames of a camera of this line.
    pub fn new(camera: &str, line: &Arc<Line>) -> Arc<Self> {
        let machine = Arc::new(Self {
            camera: camera.to_owned(),
            line: line.clone(),
            frames: Mutex::default(),
            outcomes: Default::default(),
            without_report: Mutex::default(),
            unpublished: AtomicU64::new(0),
            enabled: AtomicBool::new(!line.is_commanded()),
            begun_after: AtomicU64::new(0),
            output: Mutex::default(),
            release: Mutex::default(),
            input: Mutex::default(),
            edges: AtomicU64::new(0),
        });
        line.watch(&machine);
        machine
    }

    /// The line of the camera.
    pub fn line(&self) -> &Arc<Line> {
        &self.line
    }

    /// Deadline and trigger for the frames that come from now on.
    pub fn set_settings(&self, settings: MachineSettings) {
        self.frames.lock().settings = settings;
    }

    /// How the camera is triggered, and its deadlines.
    pub fn settings(&self) -> MachineSettings {
        self.frames.lock().settings
    }

    /// The recipe by which frames that arrive from now on are to be judged.
    pub fn set_recipe(&self, recipe: &Option<RecipeId>) {
        self.frames.lock().recipe.clone_from(recipe);
    }

    /// While another recipe comes into force, every frame that arrives gets the outcome `fault`.
    pub fn set_switching(&self, is_switching: bool) {
        self.frames.lock().is_switching = is_switching;
    }

    /// The number of the part that the machine names; frames that arrive and triggers that come from now on carry it.
    pub fn set_part(&self, part: Option<u32>) {
        self.frames.lock().part = part;
    }

    /// Whether the machine lets the camera drive its output; true at the start without a PLC that commands.
    pub fn is_enabled(&self) -> bool {
        self.enabled.load(Relaxed)
    }

    /// Not enabled, the output is at rest. Outcomes are given as before.
    pub fn set_enabled(&self, enabled: bool) {
        // While the output is locked, so that another one has the same.
        let output = self.output.lock();
        self.enabled.store(enabled, Relaxed);
        if let Some(output) = &*output {
            output.set_enabled(enabled);
        }
    }

    /// The machine begins, or begins anew: the output rests, and what has a number up to this one does not drive it.
    pub fn begin_after(&self, newest: u64) {
        let output = self.output.lock();
        self.begun_after.store(newest, Relaxed);
        if let Some(output) = &*output {
            output.rest();
        }
    }

    /// The output that the outcomes drive.
    pub fn set_output(&self, output: Option<Arc<dyn Actuator>>) {
        let mut here = self.output.lock();
        if let Some(output) = &output {
            output.set_enabled(self.is_enabled());
        }
        let before = std::mem::replace(&mut *here, output);
        drop(here);
        // Its end may take seconds, and must not hold up an answer.
        drop(before);
    }

    /// Whether answers reach the line of the output; `None` without an output.
    pub fn is_output_in_force(&self) -> Option<Result<(), String>> {
        self.output.lock().as_ref().map(|of| of.is_in_force())
    }

    /// What triggers the camera at [`Self::arm`].
    pub fn set_release(&self, release: Option<Arc<Release>>) {
        *self.release.lock() = release;
    }

    /// The input whose edges come through [`Self::edge`].
    pub fn set_input(&self, input: Option<Arc<InputState>>) {
        *self.input.lock() = input;
    }

    /// Whether edges at the input reach the station; `None` without an input.
    pub fn is_input_in_force(&self) -> Option<Result<(), String>> {
        self.input.lock().as_ref().map(|of| of.is_in_force())
    }

    /// Frames that wait for their outcome, and triggers that wait for their frame.
    pub fn waiting(&self) -> usize {
        self.frames.lock().waiting()
    }

    /// Time since the arrival of the oldest frame that has no results, also if it has an outcome.
    pub fn oldest(&self) -> Option<Duration> {
        self.frames.lock().oldest(Instant::now())
    }

    /// Numbers by outcome since the start of the station, in the order of [`Outcome::ALL`].
    pub fn outcomes(&self) -> [u64; Outcome::ALL.len()] {
        self.outcomes.each_ref().map(|count| count.load(Relaxed))
    }

    /// Whether [`Self::arm`] would take a trigger now.
    ///
    /// # Errors
    /// Why not.
    pub fn can_arm(&self) -> Result<(), NotReady> {
        self.frames.lock().can_arm(Instant::now())
    }

    /// Takes a trigger: the next frame that arrives belongs to it, and has the number that is returned. If none arrives in
    /// time, the outcome of this number is `lost`. With [`Trigger::Software`] the camera is triggered; the call does not wait.
    ///
    /// # Errors
    /// The trigger is refused, and gets no number.
    pub fn arm(&self) -> Result<u64, NotReady> {
        let mut frames = self.frames.lock();
        let (sequence, due) = frames.arm(Instant::now(), clock::even(), || self.line.next())?;
        let is_own = frames.settings.trigger == Trigger::Software;
        drop(frames);
        self.line.expect(due);
        if is_own {
            match self.release.lock().as_ref() {
                Some(release) => release.fire(sequence),
                None => {
                    self.lose_trigger(sequence);
                    self.fired();
                }
            }
        }
        Ok(sequence)
    }

    /// Edges at the input may not have been seen until now: no edge is taken before their frames must have come.
    pub fn miss_edges(&self) {
        let mut frames = self.frames.lock();
        let lost = frames.miss_edges(Instant::now());
        self.end(lost);
    }

    /// Edges at the input since the start of the station.
    pub fn edges(&self) -> u64 {
        self.edges.load(Relaxed)
    }

    /// Takes an edge at the input: as [`Self::arm`], but the piece is there, so that each edge gets a number. Edges that were
    /// missed before it get one, too.
    ///
    /// # Errors
    /// Nobody can know which frame belongs to the edge: its outcome is `lost`.
    pub fn edge(&self, edge: InputEdge) -> Result<(), NotReady> {
        let mut frames = self.frames.lock();
        let missed = u64::from(edge.missed).min(MOST_LOST);
        self.edges.fetch_add(1, Relaxed);
        let mut taken = Ok(Instant::now());
        for _ in 0..=missed {
            let (now, time) = (Instant::now(), clock::even());
            let (result, lost) = frames.edge(edge.at, (now, time), || self.line.next());
            self.end(lost);
            taken = result;
        }
        drop(frames);
        self.line.expect(taken?);
        Ok(())
    }

    /// The camera is to be triggered for a frame that nobody asks for. Until it has arrived no trigger is taken.
    pub fn expect_first(&self) {
        let mut frames = self.frames.lock();
        let lost = frames.expect_first(Instant::now());
        self.end(lost);
    }

    /// The command to the camera is done, or was not given.
    pub fn fired(&self) {
        self.frames.lock().fired(Instant::now());
    }

    /// Whether this trigger waits for its frame.
    fn is_armed(&self, sequence: u64) -> bool {
        self.frames.lock().is_armed(sequence)
    }

    /// The camera could not be triggered, so no frame comes.
    fn lose_trigger(&self, sequence: u64) {
        let mut frames = self.frames.lock();
        let lost = frames.lose_trigger(sequence, Instant::now());
        self.end(lost);
    }

    /// A frame has arrived from the source. Returns its number.
    pub fn arrive(&self) -> u64 {
        let mut frames = self.frames.lock();
        let now = Instant::now();
        let (sequence, due, answer) = frames.arrive(now, clock::even(), || self.line.next());
        if let Some(answer) = &answer {
            self.tell(answer);
        }
        drop(frames);
        if let Some(due) = due {
            self.line.expect(due);
        }
        sequence
    }

    /// So many frames were lost before they arrived. Each gets a number and the outcome `lost`, up to [`MOST_LOST`]. With a
    /// trigger none does: its loss shows when its frame does not arrive.
    pub fn lose(&self, count: u64) {
        if count == 0 {
            return;
        }
        let mut frames = self.frames.lock();
        let lost = frames.lose(count, Instant::now(), clock::even(), || self.line.next());
        self.end(lost);
    }

    /// A frame has its results. `recipe`: by which it was judged. Frames before it that have none will get none: their outcome
    /// is `fault`. `None` if the frame is not known.
    pub fn judge(
        &self,
        sequence: u64,
        finding: &Finding,
        recipe: &Option<RecipeId>,
    ) -> Option<FrameOutcome> {
        let mut frames = self.frames.lock();
        let now = Instant::now();
        let skipped = frames.skip_to(sequence, now);
        self.end(skipped);
        let ClosedRecord { record, answer } = frames.judge(sequence, finding, recipe, now)?;
        if let Some(answer) = &answer {
            self.tell(answer);
        }
        Some(FrameOutcome {
            latency: now.saturating_duration_since(record.arrived),
            outcome: self.reported(&record),
        })
    }

    /// The pipeline has ended: frames without results get the outcome `fault`, and a trigger without a frame `lost`.
    pub fn abandon(&self) {
        let mut frames = self.frames.lock();
        let abandoned = frames.abandon(Instant::now());
        self.end(abandoned);
    }

    /// Gives the outcomes whose time has come. Returns when to look again.
    fn expire(&self) -> Option<Instant> {
        let mut frames = self.frames.lock();
        let (late, lost) = frames.expire(Instant::now());
        late.iter().for_each(|answer| self.tell(answer));
        self.end(lost);
        frames.next_due()
    }

    /// How many outcomes found `MOST_WITHOUT_REPORT` waiting since the last call, and are not published.
    pub fn take_unpublished(&self) -> u64 {
        self.unpublished.swap(0, Relaxed)
    }

    /// Takes what has an outcome and gets no results.
    pub fn take_outcomes_without_report(&self) -> VecDeque<OutcomeWithoutReport> {
        std::mem::take(&mut *self.without_report.lock())
    }

    /// These get no results. Called while the frames are locked.
    fn end(&self, closed: Vec<ClosedRecord>) {
        for ClosedRecord { record, answer } in closed {
            if let Some(answer) = &answer {
                self.tell(answer);
            }
            let ended = OutcomeWithoutReport {
                outcome: self.reported(&record),
                time: record.time,
                recipe: record.recipe,
            };
            let mut without_report = self.without_report.lock();
            if without_report.len() < MOST_WITHOUT_REPORT {
                without_report.push_back(ended);
            } else {
                // No line of the log: this may be the thread that keeps the deadlines, and the frames are locked.
                self.unpublished.fetch_add(1, Relaxed);
            }
        }
    }

    fn tell(&self, answer: &Answer) {
        self.outcomes[answer.outcome as usize].fetch_add(1, Relaxed);
        let output = self.output.lock();
        if answer.is_asked_for
            && answer.sequence > self.begun_after.load(Relaxed)
            && let Some(output) = &*output
        {
            output.tell(answer);
        }
        drop(output);
        self.line.tell(&self.camera, answer);
    }

    fn reported(&self, record: &Record) -> ReportedOutcome {
        ReportedOutcome {
            epoch: self.line.epoch(),
            sequence: record.sequence,
            // Whoever reports has closed the record.
            outcome: record.outcome.unwrap_or(Outcome::Fault).name(),
            latency_ms: record.latency.as_secs_f64() * 1e3,
            part: record.part,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_that_nobody_takes_are_bounded_and_counted() {
        let machine = Machine::new("left", &Line::new().expect("a line"));
        let rounds = MOST_WITHOUT_REPORT as u64 / MOST_LOST + 1;
        (0..rounds).for_each(|_| machine.lose(MOST_LOST));
        let kept = machine.take_outcomes_without_report().len();
        assert_eq!(kept, MOST_WITHOUT_REPORT);
        let dropped = rounds * MOST_LOST - MOST_WITHOUT_REPORT as u64;
        assert_eq!(
            [machine.take_unpublished(), machine.take_unpublished()],
            [dropped, 0]
        );
    }
}
