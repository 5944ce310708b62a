//! The steps of a run: when each started and ended, and what it moved.

use std::collections::VecDeque;

use clinspect_opencl::{FrameTimeline, Step};
use opencl3::event::Event;
use serde_json::{Value, json};

use crate::Error;

/// Runs whose steps are kept.
const RUNS: usize = 64;

/// A step of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunStep {
    pub name: &'static str,
    /// On any clock that all steps of a run share, ns.
    pub start_ns: u64,
    pub end_ns: u64,
    /// Bytes that the step reads and writes.
    pub moved: usize,
}

impl RunStep {
    /// A command of the device, with its times.
    pub fn of(name: &'static str, event: &Event, moved: usize) -> Result<Self, Error> {
        Ok(Self {
            name,
            start_ns: event.profiling_command_start()?,
            end_ns: event.profiling_command_end()?,
            moved,
        })
    }

    pub fn ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// From the start of the first step to the end of the last one, ns.
pub fn total_ns(steps: &[RunStep]) -> u64 {
    let start = steps.iter().map(|step| step.start_ns).min();
    let end = steps.iter().map(|step| step.end_ns).max();
    start
        .zip(end)
        .map_or(0, |(start, end)| end.saturating_sub(start))
}

/// The steps of one of our elements' frames, whose first kernels write `written` bytes.
pub fn of_frame(frame: &FrameTimeline, written: usize) -> Vec<RunStep> {
    let steps = frame.steps.iter().map(|span| RunStep {
        name: span.step.name(),
        start_ns: span.start_ns,
        end_ns: span.end_ns,
        moved: span.bytes as usize,
    });
    let mut steps: Vec<RunStep> = steps.collect();
    let kernels = steps
        .iter_mut()
        .find(|step| step.name == Step::Kernel.name());
    if let Some(kernels) = kernels {
        kernels.moved += written;
    }
    steps
}

/// The steps of the last runs, without the first run, which warms up.
#[derive(Debug, Default)]
pub struct Steps {
    is_warm: bool,
    runs: VecDeque<Vec<RunStep>>,
}

impl Steps {
    /// Notes a run.
    pub fn note(&mut self, run: Vec<RunStep>) {
        if !self.is_warm || self.runs.len() == RUNS {
            self.is_warm = !self.runs.is_empty();
            self.runs.pop_front();
        }
        self.runs.push_back(run);
    }

    /// The steps of the run whose total is the median: start and end from the run's start, and
    /// duration, ns.
    pub fn about(&self) -> Value {
        let mut runs: Vec<_> = self.runs.iter().collect();
        runs.sort_by_key(|run| total_ns(run));
        let Some(run) = runs.get(runs.len() / 2) else {
            return Value::Null;
        };
        let origin = run.iter().map(|step| step.start_ns).min().unwrap_or(0);
        let steps = run.iter().map(|step| {
            json!({
                "name": step.name,
                "start_ns": step.start_ns.saturating_sub(origin),
                "end_ns": step.end_ns.saturating_sub(origin),
                "ns": step.ns(),
                "moved": step.moved,
            })
        });
        json!({"steps": steps.collect::<Vec<_>>()})
    }
}
