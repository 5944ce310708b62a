//! Judges the kept frames with the settings in force, in the background.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Instant,
};

use run::trial::{self, Counts, Table};
use serde::Serialize;

use super::{Draft, draft::Shared};

/// Defects of a frame that are kept for the page.
const SHOWN: usize = 20;

/// What became of a kept frame.
#[derive(Clone, Serialize)]
pub struct Outcome {
    id: u64,
    verdict: &'static str,
    /// The verdict of the trial before.
    before: Option<&'static str>,
}

/// The state of the trial of the kept frames.
#[derive(Default, Serialize)]
pub struct Tries {
    /// Frames that are judged, and all.
    pub done: usize,
    pub all: usize,
    /// The last whole result, and the revision of the settings that it is of.
    pub good: Counts,
    pub failed: Counts,
    pub rows: Vec<Outcome>,
    pub revision: Option<u64>,
    /// How long it took.
    pub milliseconds: f64,
    pub problem: Option<String>,
    /// Ends the trial that is under way.
    #[serde(skip)]
    stop: Option<Arc<AtomicBool>>,
}

impl Tries {
    /// Whether a page has asked for a trial.
    pub fn is_shown(&self) -> bool {
        self.stop.is_some()
    }

    /// Ends the trial that is under way.
    pub fn stop(&mut self) {
        if let Some(stop) = &self.stop {
            stop.store(true, Relaxed);
        }
    }
}

impl Draft {
    /// Begins to judge all kept frames. A trial that is under way ends.
    pub fn try_all(&self) {
        let stop = Arc::new(AtomicBool::new(false));
        let mut state = self.shared.state();
        state.tries.stop();
        let (ids, kept) = state.frames.tried();
        state.tries.stop = Some(stop.clone());
        state.tries.problem = None;
        (state.tries.done, state.tries.all) = (0, kept.len());
        let (config, revision) = (state.config.clone(), state.revision);
        drop(state);
        let shared = self.shared.clone();
        thread::spawn(move || {
            let started = Instant::now();
            let table = match config {
                Some(config) => trial::table(&config, &kept, &mut |done| {
                    let mut state = shared.state();
                    let goes_on = !stop.load(Relaxed) && !shared.is_over.load(Relaxed);
                    if goes_on {
                        state.tries.done = done;
                    }
                    goes_on
                }),
                None => Err("correct the settings first".to_owned()),
            };
            if !stop.load(Relaxed) {
                let milliseconds = started.elapsed().as_secs_f64() * 1e3;
                shared.tried(table, &ids, (revision, milliseconds));
            }
        });
    }
}

impl Shared {
    fn tried(
        &self,
        table: Result<Table, String>,
        ids: &[u64],
        (revision, milliseconds): (u64, f64),
    ) {
        let mut state = self.state();
        let table = match table {
            Ok(table) => table,
            Err(why) => {
                state.tries.problem = Some(why);
                return;
            }
        };
        let mut rows = Vec::new();
        for (row, id) in table.rows.iter().zip(ids) {
            if let Some(of) = state.frames.by_id(*id) {
                of.before = of.verdict;
                of.verdict = Some(row.verdict);
                rows.push(Outcome {
                    id: *id,
                    verdict: row.verdict,
                    before: of.before,
                });
                of.is_missed = row.missed;
                let judged = row.report.inspections.last();
                let defects = judged.map_or(&[][..], |of| &of.defects);
                of.defects = defects[..defects.len().min(SHOWN)].to_vec();
                of.counts = judged.map(|of| of.counts.clone()).unwrap_or_default();
            }
        }
        state.tries.rows = rows;
        (state.tries.good, state.tries.failed) = (table.good, table.failed);
        (state.tries.revision, state.tries.milliseconds) = (Some(revision), milliseconds);
        state.tries.done = state.tries.all;
    }
}
