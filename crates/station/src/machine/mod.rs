//! The answer to the machine: exactly one outcome for each frame, by a deadline.

mod deadlines;
mod frames;
mod line;
mod outcome;
mod realtime;
mod release;
mod settings;
mod tag;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

use gstinspectpublish::report::{RecipeId, ReportedOutcome};

use crate::{
    clock,
    input::{self, Came},
    output::Output,
};
use frames::{Closed, Frames, Record};
pub use frames::{MOST_LOST, NotReady};
pub use line::{Line, Sink};
pub use outcome::{Answer, CLASSES, Finding, Outcome};
pub use realtime::keep_times;
pub use release::Release;
pub use settings::{OfNone, Settings, Trigger};
pub use tag::Tag;

/// Frames without results that wait to be published. The supervisor takes them every 50 ms.
const MOST_UNANSWERED: usize = 1 << 16;

/// The frames of one camera between their arrival and their outcomes.
///
/// Answers leave while the frames are locked, so that they leave in order: a [`Sink`] must not call back.
pub struct Machine {
    camera: String,
    line: Arc<Line>,
    frames: Mutex<Frames>,
    /// Numbers by outcome, in the order of [`Outcome::ALL`].
    outcomes: [AtomicU64; Outcome::ALL.len()],
    unanswered: Mutex<VecDeque<Unanswered>>,
    /// Whether the machine lets the camera drive its output.
    enabled: AtomicBool,
    /// Answers to numbers up to this one do not drive the output.
    begun_after: AtomicU64,
    output: Mutex<Option<Arc<Output>>>,
    release: Mutex<Option<Arc<Release>>>,
    input: Mutex<Option<Arc<input::State>>>,
    edges: AtomicU64,
}

/// A frame that has an outcome and gets no results, or a trigger that got no frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Unanswered {
    /// Its number and its outcome.
    pub outcome: ReportedOutcome,
    /// When it arrived, or when the trigger came.
    pub time: SystemTime,
    /// The recipe in force at that time.
    pub recipe: Option<RecipeId>,
}

/// A frame that got its results.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
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
            unanswered: Mutex::default(),
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

    fn frames(&self) -> MutexGuard<'_, Frames> {
        lock(&self.frames)
    }

    /// Deadline and trigger for the frames that come from now on.
    pub fn set_settings(&self, settings: Settings) {
        self.frames().settings = settings;
    }

    /// How the camera is triggered, and its deadlines.
    pub fn settings(&self) -> Settings {
        self.frames().settings
    }

    /// The recipe by which frames that arrive from now on are to be judged.
    pub fn set_recipe(&self, recipe: &Option<RecipeId>) {
        self.frames().recipe.clone_from(recipe);
    }

    /// While another recipe comes into force, every frame that arrives gets the outcome `fault`.
    pub fn set_switching(&self, is_switching: bool) {
        self.frames().is_switching = is_switching;
    }

    /// The number of the part that the machine names; frames that arrive and triggers that come from now on carry it.
    pub fn set_part(&self, part: Option<u32>) {
        self.frames().part = part;
    }

    /// Whether the machine lets the camera drive its output; true at the start without a PLC that commands.
    pub fn is_enabled(&self) -> bool {
        self.enabled.load(Relaxed)
    }

    /// Not enabled, the output is at rest. Outcomes are given as before.
    pub fn set_enabled(&self, enabled: bool) {
        // While the output is locked, so that another one has the same.
        let output = lock(&self.output);
        self.enabled.store(enabled, Relaxed);
        if let Some(output) = &*output {
            output.set_enabled(enabled);
        }
    }

    /// The machine begins, or begins anew: the output rests, and what has a number up to this one does not drive it.
    pub fn begin_after(&self, newest: u64) {
        let output = lock(&self.output);
        self.begun_after.store(newest, Relaxed);
        if let Some(output) = &*output {
            output.rest();
        }
    }

    /// The output that the outcomes drive.
    pub fn set_output(&self, output: Option<Arc<Output>>) {
        let mut here = lock(&self.output);
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
        lock(&self.output).as_ref().map(|of| of.is_in_force())
    }

    /// What triggers the camera at [`Self::arm`].
    pub fn set_release(&self, release: Option<Arc<Release>>) {
        *lock(&self.release) = release;
    }

    /// The input whose edges come through [`Self::edge`].
    pub fn set_input(&self, input: Option<Arc<input::State>>) {
        *lock(&self.input) = input;
    }

    /// Whether edges at the input reach the station; `None` without an input.
    pub fn is_input_in_force(&self) -> Option<Result<(), String>> {
        lock(&self.input).as_ref().map(|of| of.is_in_force())
    }

    /// Frames that wait for their outcome, and triggers that wait for their frame.
    pub fn waiting(&self) -> usize {
        self.frames().waiting()
    }

    /// Time since the arrival of the oldest frame that has no results, also if it has an outcome.
    pub fn oldest(&self) -> Option<Duration> {
        self.frames().oldest(Instant::now())
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
        self.frames().can_arm(Instant::now())
    }

    /// Takes a trigger: the next frame that arrives belongs to it, and has the number that is returned. If none arrives in
    /// time, the outcome of this number is `lost`. With [`Trigger::Software`] the camera is triggered; the call does not wait.
    ///
    /// # Errors
    /// The trigger is refused, and gets no number.
    pub fn arm(&self) -> Result<u64, NotReady> {
        let mut frames = self.frames();
        let (sequence, due) = frames.arm(Instant::now(), clock::even(), || self.line.next())?;
        let is_own = frames.settings.trigger == Trigger::Software;
        drop(frames);
        self.line.expect(due);
        if is_own {
            match lock(&self.release).as_ref() {
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
        let mut frames = self.frames();
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
    pub fn edge(&self, came: Came) -> Result<(), NotReady> {
        let mut frames = self.frames();
        let missed = u64::from(came.missed).min(MOST_LOST);
        self.edges.fetch_add(1, Relaxed);
        let mut taken = Ok(Instant::now());
        for _ in 0..=missed {
            let (now, time) = (Instant::now(), clock::even());
            let (result, lost) = frames.edge(came.at, (now, time), || self.line.next());
            self.end(lost);
            taken = result;
        }
        drop(frames);
        self.line.expect(taken?);
        Ok(())
    }

    /// The camera is to be triggered for a frame that nobody asks for. Until it has arrived no trigger is taken.
    pub fn expect_first(&self) {
        let mut frames = self.frames();
        let lost = frames.expect_first(Instant::now());
        self.end(lost);
    }

    /// The command to the camera is done, or was not given.
    pub fn fired(&self) {
        self.frames().fired(Instant::now());
    }

    /// Whether this trigger waits for its frame.
    fn is_armed(&self, sequence: u64) -> bool {
        self.frames().is_armed(sequence)
    }

    /// The camera could not be triggered, so no frame comes.
    fn lose_trigger(&self, sequence: u64) {
        let mut frames = self.frames();
        let lost = frames.lose_trigger(sequence, Instant::now());
        self.end(lost);
    }

    /// A frame has arrived from the source. Returns its number.
    pub fn arrive(&self) -> u64 {
        let mut frames = self.frames();
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
        let mut frames = self.frames();
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
    ) -> Option<Judged> {
        let mut frames = self.frames();
        let now = Instant::now();
        let skipped = frames.skip_to(sequence, now);
        self.end(skipped);
        let Closed { record, answer } = frames.judge(sequence, finding, recipe, now)?;
        if let Some(answer) = &answer {
            self.tell(answer);
        }
        Some(Judged {
            latency: now.saturating_duration_since(record.arrived),
            outcome: self.reported(&record),
        })
    }

    /// The pipeline has ended: frames without results get the outcome `fault`, and a trigger without a frame `lost`.
    pub fn abandon(&self) {
        let mut frames = self.frames();
        let abandoned = frames.abandon(Instant::now());
        self.end(abandoned);
    }

    /// Gives the outcomes whose time has come. Returns when to look again.
    fn expire(&self) -> Option<Instant> {
        let mut frames = self.frames();
        let (late, lost) = frames.expire(Instant::now());
        late.iter().for_each(|answer| self.tell(answer));
        self.end(lost);
        frames.next_due()
    }

    /// Takes what has an outcome and gets no results.
    pub fn take_unanswered(&self) -> VecDeque<Unanswered> {
        std::mem::take(&mut *lock(&self.unanswered))
    }

    /// These get no results. Called while the frames are locked.
    fn end(&self, closed: Vec<Closed>) {
        for Closed { record, answer } in closed {
            if let Some(answer) = &answer {
                self.tell(answer);
            }
            let ended = Unanswered {
                outcome: self.reported(&record),
                time: record.time,
                recipe: record.recipe,
            };
            let mut unanswered = lock(&self.unanswered);
            if unanswered.len() < MOST_UNANSWERED {
                unanswered.push_back(ended);
            } else {
                crate::warning!(
                    "camera {}: the outcome {} of number {} is not published: too many wait",
                    self.camera,
                    ended.outcome.outcome,
                    ended.outcome.sequence
                );
            }
        }
    }

    fn tell(&self, answer: &Answer) {
        self.outcomes[answer.outcome as usize].fetch_add(1, Relaxed);
        let output = lock(&self.output);
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

/// Locks, even if a thread panicked while it held the lock.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
