//! Good pieces are shown, and the limits are learned from them.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Draft,
    draft::Shared,
    frames::{Frames, MOST_BYTES},
    settings::LEARNED,
};
use crate::{
    frame::Frame,
    trial::{self, Kept, Label, Reference, Taught},
};

/// Least time between two frames that teach: the next frames of a camera show the same piece.
const PACE: Duration = Duration::from_millis(200);
/// Most frames of one teaching.
const MOST: u32 = 500;
/// Most frames of a reference of the light: all are kept until then.
const MOST_AVERAGED: u32 = 64;

/// What is taught.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// The limits of the analyzer, and the model of `clreference`.
    Limits,
    /// The white reference of the flat field.
    White,
    /// The dark reference of the flat field.
    Dark,
}

/// A limit that was learned.
#[derive(Debug, Clone, Serialize)]
pub struct Limit {
    pub name: String,
    pub value: f64,
    /// The kept frame that set it.
    pub frame: Option<u64>,
}

/// The state of the teaching.
#[derive(Default, Serialize)]
pub struct Teach {
    pub what: Option<What>,
    /// Frames so far, and all that were asked for.
    pub have: u32,
    pub need: u32,
    /// Whether limits are being computed.
    pub is_learning: bool,
    pub limits: Vec<Limit>,
    /// What each kept frame demands, by its number and the limit's name.
    pub demands: Vec<(u64, Vec<f64>)>,
    /// Why nothing was learned, or what was learned, as a sentence.
    pub problem: Option<String>,
    pub done: Option<String>,
    #[serde(skip)]
    collected: Vec<Arc<Frame>>,
    #[serde(skip)]
    last: Option<Instant>,
}

impl Teach {
    /// Whether frames are being collected.
    pub fn is_collecting(&self) -> bool {
        self.what.is_some() && self.have < self.need
    }
}

impl Draft {
    /// Begins to collect live frames; then the limits are learned.
    ///
    /// # Errors
    /// A sentence.
    pub fn teach(&self, what: What, frames: u32) -> Result<(), String> {
        let most = match what {
            What::Limits => MOST,
            What::White | What::Dark => MOST_AVERAGED,
        };
        if !(1..=most).contains(&frames) {
            return Err(format!("set a number of frames from 1 to {most}"));
        }
        let mut state = self.shared.state();
        let config = state.config.as_ref().ok_or("correct the settings first")?;
        if what != What::Limits && config.flat_field.is_none() {
            return Err("switch the flat field on first".to_owned());
        }
        if state.teach.is_learning {
            return Err("limits are being learned; wait for them".to_owned());
        }
        state.teach.what = Some(what);
        (state.teach.have, state.teach.need) = (0, frames);
        (state.teach.problem, state.teach.done) = (None, None);
        state.teach.collected.clear();
        drop(state);
        self.shared.wake.notify_all();
        Ok(())
    }

    /// Ends the collecting; nothing is learned.
    pub fn stop_teaching(&self) {
        let mut state = self.shared.state();
        state.teach.need = state.teach.have;
    }

    /// Learns again from the good frames that are kept.
    ///
    /// # Errors
    /// A sentence.
    pub fn teach_again(&self) -> Result<(), String> {
        let mut state = self.shared.state();
        if state.teach.is_learning {
            return Err("limits are being learned; wait for them".to_owned());
        }
        if state.frames.good().0.is_empty() {
            return Err("no good frame is kept".to_owned());
        }
        state.teach.what = Some(What::Limits);
        state.teach.is_learning = true;
        drop(state);
        self.shared.clone().learn();
        Ok(())
    }
}

/// A remark for the file: how many pieces taught, and which of them set each limit.
fn note(limits: &[Limit], pieces: usize, frames: &Frames) -> String {
    let set = limits.iter().filter_map(|limit| {
        let frame = frames.list().iter().find(|of| Some(of.id) == limit.frame)?;
        Some(format!("{} by {}", limit.name, frame.name))
    });
    let set = set.collect::<Vec<_>>().join(", ");
    format!("{LEARNED} {pieces} good pieces. Set: {set}.")
}

impl Shared {
    /// Takes a live frame for the teaching, if one is wanted.
    pub(super) fn collect(self: &Arc<Self>, frame: &Arc<Frame>) {
        let mut state = self.state();
        let teach = &state.teach;
        if !teach.is_collecting() || teach.last.is_some_and(|last| last.elapsed() < PACE) {
            return;
        }
        state.teach.last = Some(Instant::now());
        if state.teach.what == Some(What::Limits) {
            let kept = Kept {
                name: format!("good piece {}", state.teach.have + 1),
                frame: frame.clone(),
                label: Label::Good,
                missed: Vec::new(),
            };
            if let Err(why) = state.frames.keep(kept) {
                state.teach.problem = Some(why);
                state.teach.need = state.teach.have;
                return;
            }
        } else {
            let bytes: usize = state.teach.collected.iter().map(|of| of.bytes()).sum();
            if bytes + frame.bytes() > MOST_BYTES {
                let have = state.teach.have;
                state.teach.problem = Some(format!(
                    "there is room for {have} frames of this size; take so many"
                ));
                state.teach.need = have;
                return;
            }
            state.teach.collected.push(frame.clone());
        }
        state.teach.have += 1;
        if state.teach.have < state.teach.need {
            return;
        }
        state.teach.is_learning = true;
        let what = state.teach.what;
        let collected = std::mem::take(&mut state.teach.collected);
        drop(state);
        match what {
            Some(What::White) => self.clone().take(Reference::White, collected),
            Some(What::Dark) => self.clone().take(Reference::Dark, collected),
            _ => self.clone().learn(),
        }
    }

    /// Learns limits from the good frames, in a thread of its own.
    fn learn(self: Arc<Self>) {
        thread::spawn(move || {
            let (config, ids, frames) = {
                let state = self.state();
                let (ids, frames) = state.frames.good();
                (state.config.clone(), ids, frames)
            };
            let taught = match config {
                Some(config) => trial::teach(&config, &frames, &self.folder, &mut |_| {
                    !self.is_over.load(std::sync::atomic::Ordering::Relaxed)
                }),
                None => Err("correct the settings first".to_owned()),
            };
            self.learned(taught, &ids);
        });
    }

    /// Puts what was learned into the settings.
    fn learned(&self, taught: Result<Taught, String>, ids: &[u64]) {
        let mut state = self.state();
        state.teach.is_learning = false;
        let taught = match taught {
            Ok(taught) => taught,
            Err(why) => {
                state.teach.problem = Some(why);
                return;
            }
        };
        let used = ids.len() - taught.left_out.len();
        (state.teach.problem, state.teach.done) =
            (None, Some(format!("learned from {used} good pieces")));
        state.teach.limits = (taught.limits.iter())
            .map(|limit| Limit {
                name: limit.name.clone(),
                value: limit.value,
                frame: ids.get(limit.frame).copied(),
            })
            .collect();
        state.teach.demands = (taught.demands.iter())
            .filter_map(|of| Some((*ids.get(of.frame)?, of.values.clone())))
            .collect();
        state.teach.problem.clone_from(&taught.warning);
        let analyzer = state
            .settings
            .get("analyzer")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let analyzer = super::settings::ANALYZERS
            .into_iter()
            .find(|of| *of == analyzer)
            .unwrap_or_default();
        let note = note(&state.teach.limits, used, &state.frames);
        let mut settings = state.settings.clone();
        if let Some(analysis) = settings.get_mut("analysis").and_then(Value::as_object_mut) {
            for (name, value) in &taught.properties {
                let note = note.clone();
                state.notes.insert((analyzer, name.clone()), note);
                analysis.insert(name.clone(), value.clone());
            }
        }
        // The text has the limits now; those of a file would win.
        let _ = std::fs::remove_file(self.folder.join(super::draft::limits_file(&state.name)));
        let (name, notes) = (state.name.clone(), state.notes.clone());
        let inherits = state.inherits;
        super::settings::write(
            &settings,
            &notes,
            super::draft::table_of(&mut state.document, &name),
            inherits,
        );
        state.settings = settings;
        drop(state);
        // The elements gave these values, so they take them.
        if let Err(mistakes) = self.check() {
            let texts = mistakes.into_iter().map(|of| of.text);
            self.state().teach.problem = Some(texts.collect::<Vec<_>>().join("; "));
        }
        // A new model is read at a start.
        self.renew_files();
    }

    /// Averages the frames into a reference of the flat field, in a thread of its own.
    fn take(self: Arc<Self>, reference: Reference, frames: Vec<Arc<Frame>>) {
        thread::spawn(move || {
            let config = self.state().config.clone();
            let taken = match config {
                Some(config) => trial::take(&config, reference, &frames, &self.folder),
                None => Err("correct the settings first".to_owned()),
            };
            let mut state = self.state();
            state.teach.is_learning = false;
            match taken {
                Ok(taken) => {
                    (state.teach.problem, state.teach.done) = (None, Some(taken.summary));
                }
                Err(why) => state.teach.problem = Some(why),
            }
            drop(state);
            self.renew_files();
        });
    }
}
