//! Runs compositions, and their paths alone.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use clinspect_testkit::support::Pipeline;
use gst::prelude::*;

use crate::{
    files::Files,
    plan::{Action, Change, Composition, Path, Plan, Reads},
    sinks::{Arrived, CheckingSink, Expected},
    watch::{self, Watch},
};

/// Longest time of a stop.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// Interval between two looks at a pipeline.
const LOOK: Duration = Duration::from_millis(1);
/// Time that a pipeline stays in another state.
const VISIT: Duration = Duration::from_millis(5);

/// What each path gives alone.
#[derive(Default)]
pub struct Alone(HashMap<String, Arc<Expected>>);

impl Alone {
    /// Runs the paths of a composition that did not run yet.
    ///
    /// # Errors
    /// A path fails alone.
    pub fn learn(&mut self, composition: &Composition, files: &Files) -> Result<(), String> {
        for path in composition.pipelines.iter().flat_map(Plan::paths) {
            if let Entry::Vacant(entry) = self.0.entry(path.text.clone()) {
                entry.insert(Arc::new(alone(&path, files)?));
            }
        }
        Ok(())
    }

    fn get(&self, path: &Path) -> Arc<Expected> {
        self.0[&path.text].clone()
    }

    /// Gives a path what another one gives, to see that a wrong frame is noticed.
    pub fn plant(&mut self, path: &Path, other: &Path) {
        let frames = self.get(other);
        self.0.insert(path.text.clone(), frames);
    }
}

/// Runs a path as a pipeline without tees and queues, with a sink that reads everything.
fn alone(path: &Path, files: &Files) -> Result<Expected, String> {
    let text = files.put_into(&format!(
        "{} ! fakesink name=alone sync=false async=false",
        path.text
    ));
    let fail = |why: String| format!("alone, without tee and queue: {why}: {text}");
    let watch = Watch::new(&text, || "a path alone".into());
    watch.step("start");
    let pipeline = launch(&text);
    let checked = CheckingSink::new(&pipeline, "alone", Reads::AtOnce, path.key, None);
    let mut running = Running {
        pipeline,
        sinks: vec![checked],
        actions: VecDeque::new(),
        seen: 0,
        is_complete: true,
        has_actions: false,
        has_ended: false,
    };
    running.go_to(gst::State::Playing).map_err(fail)?;
    while !running.has_ended {
        running.look(&watch).map_err(fail)?;
    }
    let sinks = running.stop(&watch).map_err(fail)?;
    let arrived = std::mem::take(&mut *sinks[0].arrived.lock().unwrap());
    match arrived.failures.first() {
        Some(why) => Err(fail(why.clone())),
        None if arrived.frames.is_empty() => Err(fail("no frame came".into())),
        None => Ok(arrived.frames),
    }
}

/// Runs a composition, and compares all frames with what their paths give alone.
///
/// # Errors
/// The reason with the text of the composition.
pub fn composition(composition: &Composition, alone: &Alone, files: &Files) -> Result<(), String> {
    let what = files.put_into(&composition.to_string());
    let mut all: Vec<Running> = composition
        .pipelines
        .iter()
        .map(|plan| Running::new(plan, alone, files))
        .collect();
    let counts: Vec<_> = all.iter().flat_map(Running::counts).collect();
    let watch = Watch::new(&what, move || {
        let counts = counts.iter().map(|(name, arrived, expected)| {
            // A reader may hold the lock forever.
            let count = arrived.try_lock().map(|arrived| arrived.keys.len());
            let count = count.map_or("?".into(), |count| count.to_string());
            format!("{name} {count} of {expected}")
        });
        counts.collect::<Vec<_>>().join(", ")
    });
    let mut run = || -> Result<(), String> {
        for running in &all {
            watch.step(&format!("start of {}", running.sinks[0].name));
            running.go_to(gst::State::Playing)?;
        }
        watch.step("all play");
        while !all.iter().all(|running| running.has_ended) {
            for running in all.iter_mut().filter(|running| !running.has_ended) {
                running.look(&watch)?;
            }
        }
        Ok(())
    };
    // All are stopped after a failure, too.
    let mut failures: Vec<String> = run().err().into_iter().collect();
    for running in all {
        let (is_complete, has_actions) = (running.is_complete, running.has_actions);
        match running.stop(&watch) {
            Err(why) => failures.push(why),
            Ok(sinks) => failures.extend(
                sinks
                    .iter()
                    .filter_map(|sink| sink.failure(is_complete, !has_actions)),
            ),
        }
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(format!("{}: {what}", failures.join("; "))),
    }
}

fn launch(text: &str) -> Pipeline {
    let pipeline = Pipeline::new(text);
    // Errors of a stop count.
    pipeline.set_auto_flush_bus(false);
    pipeline
}

struct Running {
    pipeline: Pipeline,
    sinks: Vec<CheckingSink>,
    actions: VecDeque<Action>,
    /// Frames at all sinks at the last action.
    seen: usize,
    is_complete: bool,
    has_actions: bool,
    has_ended: bool,
}

impl Running {
    fn new(plan: &Plan, alone: &Alone, files: &Files) -> Self {
        let pipeline = launch(&files.put_into(&plan.text()));
        let paths = plan.paths();
        let sinks = paths.iter().map(|path| {
            let expected = Some(alone.get(path));
            CheckingSink::new(
                &pipeline,
                &path.sink.name,
                path.sink.reads,
                path.key,
                expected,
            )
        });
        Self {
            sinks: sinks.collect(),
            pipeline,
            actions: plan.actions.iter().copied().collect(),
            seen: 0,
            is_complete: plan.is_complete(),
            has_actions: !plan.actions.is_empty(),
            has_ended: false,
        }
    }

    /// Name, arrivals and number of frames of each sink.
    fn counts(&self) -> impl Iterator<Item = (String, Arc<Mutex<Arrived>>, usize)> {
        self.sinks.iter().map(|sink| {
            let expected = sink.expected.as_ref().map_or(0, |frames| frames.len());
            (sink.name.clone(), sink.arrived.clone(), expected)
        })
    }

    fn go_to(&self, state: gst::State) -> Result<(), String> {
        let begun = Instant::now();
        let changed = self.pipeline.set_state(state);
        let took = begun.elapsed();
        if changed.is_err() {
            let why = self.take_messages().err().unwrap_or_default();
            return Err(format!("the change to {state:?} failed {why}"));
        }
        if state <= gst::State::Ready && took > STOP_LIMIT {
            return Err(format!("the change to {state:?} took {took:?}"));
        }
        Ok(())
    }

    /// Takes messages, ends at EOS, and does what is due.
    fn look(&mut self, watch: &Watch) -> Result<(), String> {
        self.has_ended |= self.take_messages()?;
        if self.has_ended {
            return Ok(());
        }
        let count: usize = self.sinks.iter().map(CheckingSink::count).sum();
        match self.actions.front() {
            Some(action) if count >= self.seen + action.after => {
                let what = action.what;
                self.actions.pop_front();
                watch.step(&format!("{what:?} of {}", self.sinks[0].name));
                self.act(what)?;
                self.seen = self.sinks.iter().map(CheckingSink::count).sum();
            }
            _ => thread::sleep(LOOK),
        }
        Ok(())
    }

    fn act(&mut self, what: Change) -> Result<(), String> {
        match what {
            Change::SeekTo(percent) => {
                let arrived = self.sinks[0].arrived.lock().unwrap();
                let mut times: Vec<gst::ClockTime> = arrived.times.clone();
                drop(arrived);
                let latest = times.last().copied();
                times.retain(|&time| Some(time) <= latest);
                times.sort();
                let at =
                    (times.len() * usize::from(percent) / 100).min(times.len().saturating_sub(1));
                let mut to = times.get(at).copied().unwrap_or_default();
                // Into a frame, which then begins before its segment.
                if let Some(next) = times.get(at + 1).filter(|_| percent % 4 == 2) {
                    to += (*next - to) / 3;
                }
                self.pipeline
                    .seek_simple(gst::SeekFlags::FLUSH, to)
                    .map_err(|_| format!("a seek to {to} was refused"))?;
            }
            Change::Visit(state) => {
                self.go_to(state)?;
                thread::sleep(VISIT);
                // An EOS of before does not end what follows.
                self.take_messages()?;
                self.go_to(gst::State::Playing)?;
            }
            Change::Stop => self.has_ended = true,
        }
        Ok(())
    }

    /// Takes all messages; true if one was EOS.
    fn take_messages(&self) -> Result<bool, String> {
        let mut ended = false;
        while let Some(message) = self.pipeline.bus().unwrap().pop() {
            watch::moved();
            let (kind, why, debug) = match message.view() {
                gst::MessageView::Eos(_) => {
                    ended = true;
                    continue;
                }
                gst::MessageView::Error(error) => ("error", error.error(), error.debug()),
                // A mask without a mark is a frame without contrast.
                gst::MessageView::Warning(warning)
                    if warning
                        .error()
                        .message()
                        .starts_with("no limit sees a defect") =>
                {
                    continue;
                }
                gst::MessageView::Warning(warning) => ("warning", warning.error(), warning.debug()),
                _ => continue,
            };
            let source = message.src().map(|source| source.name().to_string());
            let (source, debug) = (source.unwrap_or_default(), debug.unwrap_or_default());
            return Err(format!("{kind} of {source}: {why} ({debug})"));
        }
        Ok(ended)
    }

    /// Stops, and returns the sinks when all frames were read.
    fn stop(self, watch: &Watch) -> Result<Vec<CheckingSink>, String> {
        watch.step(&format!("stop of {}", self.sinks[0].name));
        self.go_to(gst::State::Null)?;
        self.take_messages()?;
        let mut sinks = self.sinks;
        drop(self.pipeline);
        watch.step(&format!("last reads of {}", sinks[0].name));
        sinks.iter_mut().for_each(CheckingSink::finish);
        Ok(sinks)
    }
}
