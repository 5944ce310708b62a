//! An output that tells the machine which piece is good: a pulse for each `pass`, rest for all else.

mod camera_line;
mod gpio;
mod rest;
mod timing;

use std::{
    sync::{Arc, MutexGuard},
    time::{Duration, Instant},
};

pub use camera_line::CameraLine;
pub use gpio::GpioOutput;
use plan::{OutputSettings, Wire};
pub use rest::rest;
use timing::Timing;

use crate::{
    answer::{Actuator, Alarm, Answer, keep_times},
    locks::Monitor,
};

/// Pause between two attempts to set an output that could not be set.
const RETRY: Duration = Duration::from_millis(200);
/// Least time between two alarms for pulses that were left out.
const TELL: Duration = Duration::from_secs(1);
/// Longest wait until the output is at rest and its line is given back: the time after which libaravis gives a camera up.
const REST_LIMIT: Duration = Duration::from_secs(5);

/// Something that is active or at rest.
pub trait Line: Send {
    /// Sets it. May take seconds if a camera does not answer.
    ///
    /// # Errors
    /// It cannot be set, and its level is not known; a sentence. The next call tries again from the start.
    fn set(&mut self, is_active: bool) -> Result<(), String>;
}

/// An output with its thread, which alone sets the line. It is at rest until the first answer, and when this is dropped.
pub struct Output {
    settings: OutputSettings,
    shared: Arc<Monitor<State>>,
}

struct State {
    timing: Timing,
    /// A line to take, or to give the one back that there is.
    next_line: Option<Option<Box<dyn Line>>>,
    /// Whether the thread has a line, or is to take one.
    has_line: bool,
    is_enabled: bool,
    has_overflowed: bool,
    is_over: bool,
    /// Why the line cannot be set.
    trouble: Option<String>,
}

impl Output {
    /// Starts the thread. A line of this PC is at rest soon after; a camera's line comes by [`Self::attach`].
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(settings: OutputSettings, camera: &str, alarm: Alarm) -> std::io::Result<Self> {
        let gpio: Option<Box<dyn Line>> = match &settings.wire {
            Wire::Gpio { gpio, is_inverted } => Some(Box::new(GpioOutput::new(gpio, *is_inverted))),
            Wire::Camera { .. } => None,
        };
        let shared = Arc::new(Monitor::new(State {
            timing: Timing::new(&settings),
            has_line: gpio.is_some(),
            next_line: gpio.map(Some),
            is_enabled: true,
            has_overflowed: false,
            is_over: false,
            trouble: None,
        }));
        let driver = Driver {
            shared: shared.clone(),
            line: None,
            pulse: settings.pulse,
            level: None,
            retry: None,
            missed: 0,
            told: None,
            alarm,
        };
        let thread = std::thread::Builder::new().name(format!("{camera} output"));
        thread.spawn(move || driver.run())?;
        Ok(Self { settings, shared })
    }

    /// What the file says of it.
    pub fn settings(&self) -> &OutputSettings {
        &self.settings
    }

    /// Gives the output its line, which is set to rest.
    pub fn attach(&self, line: Box<dyn Line>) {
        let mut state = self.shared.lock();
        state.timing.clear();
        state.next_line = Some(Some(line));
        state.has_line = true;
        drop(state);
        self.shared.notify();
    }

    /// Sets the line to rest and takes it away. Waits until this is done, for 5 s at most.
    pub fn detach(&self) {
        let mut state = self.shared.lock();
        state.timing.clear();
        state.next_line = Some(None);
        self.wait_for_rest(state);
    }

    fn wait_for_rest(&self, state: MutexGuard<'_, State>) {
        self.shared.notify();
        let end = Instant::now() + REST_LIMIT;
        // A line that cannot be set has its alarm.
        drop(self.shared.wait_while(state, end, |state| state.has_line));
    }
}

impl Actuator for Output {
    fn tell(&self, answer: &Answer) {
        let mut state = self.shared.lock();
        if !state.is_enabled || !state.has_line || state.trouble.is_some() {
            return;
        }
        if !state.timing.add(answer) {
            state.timing.clear();
            state.has_overflowed = true;
        }
        drop(state);
        self.shared.notify();
    }

    fn set_enabled(&self, is_enabled: bool) {
        self.shared.lock().is_enabled = is_enabled;
        if !is_enabled {
            self.rest();
        }
    }

    fn rest(&self) {
        self.shared.lock().timing.clear();
        self.shared.notify();
    }

    fn is_in_force(&self) -> Result<(), String> {
        let state = self.shared.lock();
        match &state.trouble {
            Some(why) => Err(why.clone()),
            None if !state.has_line => Err("the camera does not run".to_owned()),
            None => Ok(()),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_over = true;
        self.wait_for_rest(state);
    }
}

/// What the thread owns.
struct Driver {
    shared: Arc<Monitor<State>>,
    line: Option<Box<dyn Line>>,
    /// Length of a pulse.
    pulse: Duration,
    /// As it was set; `None`: not known.
    level: Option<bool>,
    /// When to try again.
    retry: Option<Instant>,
    /// Pulses that were left out, and have no alarm yet.
    missed: usize,
    /// When an alarm was last raised for what was left out.
    told: Option<Instant>,
    alarm: Alarm,
}

/// What the thread does next.
enum Task {
    Set(bool),
    TakeLine(Option<Box<dyn Line>>),
    Tell(String),
    End,
}

impl Driver {
    fn run(mut self) {
        keep_times();
        loop {
            match self.next_task() {
                Task::Set(is_active) => self.set(is_active),
                Task::TakeLine(line) => self.take_line(line),
                Task::Tell(text) => (self.alarm)(text),
                Task::End => break self.take_line(None),
            }
        }
    }

    /// Waits for something to do.
    fn next_task(&mut self) -> Task {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        loop {
            if state.is_over {
                state.next_line = None;
                return Task::End;
            }
            if let Some(line) = state.next_line.take() {
                return Task::TakeLine(line);
            }
            let now = Instant::now();
            let level = state.timing.level(now);
            self.missed += level.missed;
            let is_due = self.retry.is_none_or(|retry| retry <= now);
            if self.line.is_some() && self.level != Some(level.is_active) && is_due {
                return Task::Set(level.is_active);
            }
            // Telling may take long, and must not make a pulse longer.
            let may_tell = !level.is_active && self.told.is_none_or(|told| now >= told + TELL);
            if may_tell && (state.has_overflowed || self.missed > 0) {
                self.told = Some(now);
            }
            if may_tell && std::mem::take(&mut state.has_overflowed) {
                let text = "too many answers wait for the output; it is at rest, and the pieces of these answers get no pulse";
                return Task::Tell(text.to_owned());
            }
            if may_tell && self.missed > 0 {
                let missed = std::mem::take(&mut self.missed);
                let text = format!(
                    "pulses left out because their time was over: {missed}; see what holds up this PC or the camera's \
                     network"
                );
                return Task::Tell(text);
            }
            let next = state.timing.next().into_iter().chain(self.retry).min();
            state = shared.wait(state, next);
        }
    }

    /// After a failure only rest is tried, until that succeeds: [`Output::tell`] takes no answers meanwhile.
    fn set(&mut self, is_active: bool) {
        let Some(line) = &mut self.line else {
            return;
        };
        let begun = Instant::now();
        let set = line.set(is_active).and_then(|()| {
            let took = begun.elapsed();
            // The level came when another piece may be there.
            (!is_active || took < self.pulse)
                .then_some(())
                .ok_or_else(|| format!("a pulse began {} ms late", took.as_millis()))
        });
        match set {
            Ok(()) => {
                (self.level, self.retry) = (Some(is_active), None);
                if self.shared.lock().trouble.take().is_some() {
                    (self.alarm)("the output can be set again and is in force".to_owned());
                }
            }
            Err(why) => {
                // A pulse that may have begun must end at once.
                let pause = if is_active { Duration::ZERO } else { RETRY };
                (self.level, self.retry) = (None, Some(Instant::now() + pause));
                let mut state = self.shared.lock();
                state.timing.clear();
                let is_new = state.trouble.replace(why.clone()).is_none();
                drop(state);
                if is_new {
                    (self.alarm)(format!(
                        "the output cannot be set: {why}; it gives no pulse until it can be set to rest"
                    ));
                }
            }
        }
    }

    /// Sets the line before to rest, and takes another one.
    fn take_line(&mut self, line: Option<Box<dyn Line>>) {
        if self.line.is_some() && self.level != Some(false) {
            self.set(false);
        }
        (self.level, self.retry) = (None, None);
        self.line = line;
        let mut state = self.shared.lock();
        state.trouble = None;
        // Another one may have come meanwhile.
        state.has_line = self.line.is_some() || matches!(state.next_line, Some(Some(_)));
        drop(state);
        self.shared.notify();
    }
}

#[cfg(test)]
mod tests;
