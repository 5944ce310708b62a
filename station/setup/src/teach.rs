//! Good pieces are shown, and the limits are learned from them.

use std::{
    path::Path,
    sync::{Arc, MutexGuard},
    thread,
    time::{Duration, Instant},
};

use run::{
    frame::Frame,
    picture_files::PictureFiles,
    recorded::{Label, LabelledFrame},
    source,
    trial::{self, Reference, TeachResult, folder::read_picture},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Draft,
    draft::{Shared, State},
    frames::{Frames, MOST_BYTES},
    settings::LEARNED,
    suspects, words,
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
pub enum TeachTarget {
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
    pub what: Option<TeachTarget>,
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
    /// The kept frames that need much more than the others: perhaps they show a defect.
    pub suspects: Vec<u64>,
    /// What people should know about the frames, as sentences.
    #[serde(skip)]
    remarks: Vec<String>,
    /// The frames are the pictures of a folder, and no live ones.
    #[serde(skip)]
    is_of_folder: bool,
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
    pub fn teach(&self, what: TeachTarget, frames: u32) -> Result<(), String> {
        let most = match what {
            TeachTarget::Limits => MOST,
            TeachTarget::White | TeachTarget::Dark => MOST_AVERAGED,
        };
        if !(1..=most).contains(&frames) {
            return Err(format!("set a number of frames from 1 to {most}"));
        }
        let mut state = self.shared.state();
        let config = state.config.as_ref().ok_or("correct the settings first")?;
        if what != TeachTarget::Limits && config.flat_field.is_none() {
            return Err("switch the flat field on first".to_owned());
        }
        if state.teach.is_learning {
            return Err("limits are being learned; wait for them".to_owned());
        }
        // Each picture teaches once, however fast the folder sends them.
        let folder = source::folder_of(&config.source);
        state.teach.what = Some(what);
        (state.teach.have, state.teach.need) = (0, frames);
        (state.teach.problem, state.teach.done) = (None, None);
        state.teach.is_of_folder = folder.is_some();
        state.teach.remarks.clear();
        state.teach.collected.clear();
        drop(state);
        match folder {
            Some(folder) => {
                let shared = self.shared.clone();
                thread::spawn(move || shared.collect_folder(&folder));
            }
            None => self.shared.state.notify(),
        }
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
        state.teach.what = Some(TeachTarget::Limits);
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

impl State {
    /// Takes a frame for the teaching.
    fn take(&mut self, name: String, frame: &Arc<Frame>) {
        if self.teach.what == Some(TeachTarget::Limits) {
            // A picture that teaches already.
            if self.teach.is_of_folder && self.frames.has_good(frame) {
                self.teach.have += 1;
                return;
            }
            let kept = LabelledFrame {
                name,
                frame: frame.clone(),
                label: Label::Good,
                missed: Vec::new(),
            };
            if let Err(why) = self.frames.keep(kept) {
                self.teach.problem = Some(why);
                self.teach.need = self.teach.have;
                return;
            }
        } else {
            let bytes: usize = self.teach.collected.iter().map(|of| of.bytes()).sum();
            if bytes + frame.bytes() > MOST_BYTES {
                let have = self.teach.have;
                self.teach.problem = Some(format!(
                    "there is room for {have} frames of this size; take so many"
                ));
                self.teach.need = have;
                return;
            }
            self.teach.collected.push(frame.clone());
        }
        self.teach.have += 1;
    }
}

impl Shared {
    /// Takes a live frame for the teaching, if one is wanted.
    pub(super) fn collect(self: &Arc<Self>, frame: &Arc<Frame>) {
        let mut state = self.state();
        let teach = &state.teach;
        let is_early = teach.last.is_some_and(|last| last.elapsed() < PACE);
        if !teach.is_collecting() || teach.is_of_folder || is_early {
            return;
        }
        state.teach.last = Some(Instant::now());
        let name = format!("good piece {}", state.teach.have + 1);
        state.take(name, frame);
        self.go_on(state);
    }

    /// Takes the pictures of a folder for the teaching, each once.
    fn collect_folder(self: Arc<Self>, folder: &Path) {
        let files = PictureFiles::list(folder).unwrap_or_default().pictures;
        let mut unreadable = Vec::new();
        for file in files {
            let read = read_picture(&file);
            let mut state = self.state();
            if !state.teach.is_collecting() {
                return;
            }
            match read {
                Ok(frame) => {
                    let file = file.file_name().unwrap_or_default().to_string_lossy();
                    let name = format!("good piece {} ({file})", state.teach.have + 1);
                    state.take(name, &Arc::new(frame));
                    self.go_on(state);
                }
                Err(why) => unreadable.push(why),
            }
        }
        let mut state = self.state();
        if !state.teach.is_collecting() {
            return;
        }
        let (have, need) = (state.teach.have, state.teach.need);
        state.teach.need = have;
        state.teach.remarks.extend(unreadable);
        if have == 0 {
            let folder = folder.display();
            state.teach.problem = Some(format!(
                "the folder {folder} holds no picture that can be read"
            ));
            return;
        }
        let remark = format!("The folder has no more than {have} pictures; {need} were asked for.");
        state.teach.remarks.push(remark);
        self.go_on(state);
    }

    /// Learns, if all frames are collected.
    fn go_on(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.teach.have < state.teach.need || state.teach.problem.is_some() {
            return;
        }
        state.teach.is_learning = true;
        let what = state.teach.what;
        let collected = std::mem::take(&mut state.teach.collected);
        drop(state);
        match what {
            Some(TeachTarget::White) => self.clone().take(Reference::White, collected),
            Some(TeachTarget::Dark) => self.clone().take(Reference::Dark, collected),
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
    fn learned(&self, taught: Result<TeachResult, String>, ids: &[u64]) {
        let _alone = self.alone();
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
            (None, Some(format!("{LEARNED} {used} good pieces")));
        let piece = |at: usize| {
            let frame = state
                .frames
                .list()
                .iter()
                .find(|of| Some(&of.id) == ids.get(at));
            frame.map(|of| of.name.clone())
        };
        let mut remarks: Vec<String> = (taught.left_out.iter())
            .filter_map(|(at, why)| Some(format!("{} is left out: {why}.", piece(*at)?)))
            .collect();
        let suspects = suspects::of(&taught);
        let warning = taught.warning.as_deref();
        let warning = warning.map(|warning| words::of_the_page(warning, piece));
        let names: Vec<String> = suspects.iter().filter_map(|at| piece(*at)).collect();
        // The element warns of the widest limit, whose piece is among these.
        remarks.extend(match names[..] {
            [] => warning,
            _ => Some(suspects::sentence(&names, used)),
        });
        let suspects = suspects
            .iter()
            .filter_map(|at| ids.get(*at).copied())
            .collect();
        state.teach.suspects = suspects;
        remarks.splice(..0, std::mem::take(&mut state.teach.remarks));
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
        state.teach.problem = (!remarks.is_empty()).then(|| remarks.join(" "));
        let analyzer = state
            .settings
            .get("analyzer")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let analyzer = config::file::ANALYZERS
            .into_iter()
            .find(|of| *of == analyzer)
            .unwrap_or_default();
        let note = note(&state.teach.limits, used, &state.frames);
        let mut settings = state.settings.clone();
        if let Some(analysis) = settings.get_mut("analysis").and_then(Value::as_object_mut) {
            for (name, value) in &taught.properties {
                // A contrast is none of the limits, which may be moved beside it.
                if name != "contrasts" {
                    let note = note.clone();
                    state.notes.insert((analyzer, name.clone()), note);
                }
                analysis.insert(name.clone(), value.clone());
            }
        }
        // The text has the limits now; those of a file would win.
        state.remove_limits_file(&self.folder);
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
