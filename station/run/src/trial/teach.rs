//! Limits and models from good frames, learned by the analyzer itself.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use clinspect_models::ModelFile;
use clinspect_results::report::Report;
use gst::prelude::*;
use plan::{Analyzer, CameraConfig, model_file};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{chain::Chain, settings};
use crate::frame::Frame;

/// Fewest good frames.
const LEAST: usize = 2;
/// How often the frames are shown. Those before the first estimate of a pitch count only then.
const PASSES: usize = 3;
/// Longest wait for what an analyzer says after the last frame. It may judge every frame again.
const LIMIT: Duration = Duration::from_secs(60);
/// In the file of learned limits, 1 is so many units.
const UNITS: f64 = 1024.0;

/// What an analyzer learned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TeachResult {
    /// The limits.
    pub limits: Vec<Limit>,
    /// The properties of the analyzer that hold them, as in the file.
    pub properties: Map<String, Value>,
    /// The file of the model, if the analyzer compares with one.
    pub model: Option<PathBuf>,
    /// What each frame demands; the frames that were learned from.
    pub demands: Vec<Demands>,
    /// Frames that could not be used: places in the list, and why.
    pub left_out: Vec<(usize, String)>,
    /// What the analyzer warns of.
    pub warning: Option<String>,
}

/// A learned limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// Its name, such as `threshold` or `level-1`.
    pub name: String,
    /// Its value, with the margin; the unit is that of the property.
    pub value: f64,
    /// The frame that set it: its place in the list.
    pub frame: usize,
}

/// What one frame demands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Demands {
    /// The frame's place in the list.
    pub frame: usize,
    /// The lowest limits at which it passes, without a margin, in the order of [`TeachResult::limits`].
    pub values: Vec<f64>,
}

/// Learns limits, and the model of `clreference` and `clsurface`, from good frames. `files` is the folder for a model; it must exist. The
/// files that the camera's settings name are neither read nor written. `progress` gets the number of frames that count,
/// and returns whether to go on.
///
/// # Errors
/// A sentence if there are too few frames, if too few of them can be judged, or if `progress` stopped the work.
pub fn teach(
    config: &CameraConfig,
    frames: &[Arc<Frame>],
    files: &Path,
    progress: &mut dyn FnMut(usize) -> bool,
) -> Result<TeachResult, String> {
    let Scratch(scratch) = &Scratch::new(files)?;
    let (mut all, mut left_out) = of_one_kind(frames);
    let mut chain = None;
    // At most twice: with all frames, and with those that count.
    loop {
        if all.len() < LEAST {
            return Err(too_few(frames.len(), &left_out));
        }
        // Pitches that are estimated are known now.
        let mut now = match chain.take() {
            Some(chain) if config.analyzer != Analyzer::Reference => chain,
            _ => Chain::start(&of_teaching(config, all.len(), scratch)?)?,
        };
        set_frames(&now.analyzer, all.len());
        now.messages.clear();
        now.analyzer.emit_by_name::<()>("learn", &[]);
        if config.analyzer == Analyzer::Reference {
            // All frames but those that were left out may have made a model before.
            now.analyzer.emit_by_name::<()>("train", &[]);
        }
        let counted = feed(&mut now, frames, &all, progress)?;
        if counted.len() == all.len() {
            if learns_beside_frames(config.analyzer) {
                let learned = format!("{}-learned", config.analyzer.factory());
                judge_on(&mut now, &learned, frames, &all)?;
            }
            return learned(now, config, scratch, files, left_out);
        }
        let why = now.warning.as_deref().unwrap_or(NOT_FOUND);
        let uncounted = all.iter().filter(|at| !counted.contains(at));
        left_out.extend(uncounted.map(|at| (*at, why.to_owned())));
        all = counted;
        all.sort_unstable();
        chain = Some(now);
    }
}

/// The settings with which an analyzer learns from so many frames.
fn of_teaching(
    config: &CameraConfig,
    frames: usize,
    scratch: &Path,
) -> Result<CameraConfig, String> {
    let mut config = settings::one_by_one(config);
    settings::set_learn(&mut config.analysis, |learn| {
        learn.set("frames", u32::try_from(frames).unwrap_or(u32::MAX));
        learn.set("location", scratch.join(LIMITS).display().to_string());
    });
    if config.analyzer == Analyzer::Reference {
        let model = quoted(&scratch.join(MODEL))?;
        config.analysis.set("location", model);
        config.analysis.set("train-frames", frames.to_string());
    }
    Ok(config)
}

/// A path as the value of a property.
pub(super) fn quoted(path: &Path) -> Result<String, String> {
    let text = path.display().to_string().to_value().serialize();
    text.map(Into::into).map_err(|error| error.to_string())
}

fn set_frames(analyzer: &gst::Element, frames: usize) {
    let mut learn: gst::Structure = analyzer.property("learn");
    learn.set("frames", u32::try_from(frames).unwrap_or(u32::MAX));
    analyzer.set_property("learn", learn);
}

/// Shows the frames until each of them counts, or no more of them do. Returns those that count.
fn feed(
    chain: &mut Chain,
    frames: &[Arc<Frame>],
    all: &[usize],
    progress: &mut dyn FnMut(usize) -> bool,
) -> Result<Vec<usize>, String> {
    let mut counted = Vec::new();
    let mut rest = all.to_vec();
    for _ in 0..PASSES {
        let before = counted.len();
        for at in std::mem::take(&mut rest) {
            let report = chain.judge(&frames[at], at as u64);
            let report = report
                .map_err(|why| format!("frame {}: {why}", at + 1))?
                .report;
            match frames_so_far(&report) {
                Some(number) if number == counted.len() + 1 => counted.push(at),
                // Another pitch, for instance: what the frames before it demand does not count.
                Some(1) => {
                    rest.append(&mut counted);
                    counted.push(at);
                }
                _ => rest.push(at),
            }
            if !progress(counted.len()) {
                return Err("teaching was stopped".to_owned());
            }
        }
        if rest.is_empty() || counted.len() <= before {
            break;
        }
    }
    Ok(counted)
}

/// Whether an analyzer goes on learning after its last good frame, and says so with a later one.
fn learns_beside_frames(analyzer: Analyzer) -> bool {
    match analyzer {
        Analyzer::Reference | Analyzer::Surface => true,
        Analyzer::Pitch | Analyzer::Texture => false,
    }
}

/// Shows frames while the analyzer learns from those that it has, until it has said what it learned.
fn judge_on(
    chain: &mut Chain,
    learned: &str,
    frames: &[Arc<Frame>],
    all: &[usize],
) -> Result<(), String> {
    let end = Instant::now() + LIMIT;
    for &at in all.iter().cycle() {
        if chain.has_said(learned)? || Instant::now() > end {
            break;
        }
        chain.judge(&frames[at], at as u64)?;
    }
    Ok(())
}

/// Good frames so far, this one included.
fn frames_so_far(report: &Report) -> Option<usize> {
    let progress = report.training().or_else(|| report.learning())?;
    Some(progress.frames as usize)
}

/// Said of frames that do not count, if the analyzer says nothing.
const NOT_FOUND: &str = "the object is not found in it";

fn too_few(all: usize, left_out: &[(usize, String)]) -> String {
    if all < LEAST {
        return format!("teaching needs at least {LEAST} good frames, and there are {all}");
    }
    let usable = all - left_out.len();
    let why = left_out.last().map_or(NOT_FOUND, |(_, why)| why);
    format!("only {usable} of {all} frames can be learned from: {why}")
}

/// The frames of the size and format that most have, and the others with what they are.
fn of_one_kind(frames: &[Arc<Frame>]) -> (Vec<usize>, Vec<(usize, String)>) {
    let kind = |frame: &Frame| {
        let info = frame.info();
        format!("{}x{} {}", info.width(), info.height(), info.format())
    };
    let kinds: Vec<String> = frames.iter().map(|frame| kind(frame)).collect();
    let count = |kind: &String| kinds.iter().filter(|of| *of == kind).count();
    // The first of those that are equally frequent.
    let most = kinds.iter().rev().max_by_key(|kind| count(kind));
    let most = most.cloned().unwrap_or_default();
    let (alike, others): (Vec<_>, Vec<_>) =
        (kinds.into_iter().enumerate()).partition(|(_, kind)| *kind == most);
    let why = |kind: String| format!("it is {kind}, and most are {most}");
    (
        alike.into_iter().map(|(at, _)| at).collect(),
        others
            .into_iter()
            .map(|(at, kind)| (at, why(kind)))
            .collect(),
    )
}

/// Collects what the analyzer says.
fn learned(
    mut chain: Chain,
    config: &CameraConfig,
    scratch: &Path,
    files: &Path,
    left_out: Vec<(usize, String)>,
) -> Result<TeachResult, String> {
    let name = config.analyzer.factory();
    let message = chain.message(&format!("{name}-learned"), LIMIT)?;
    chain.message(&format!("{name}-limits-saved"), LIMIT)?;
    let saved = match config.analyzer {
        // What a frame demands is not in its file, which has the model.
        Analyzer::Surface => LimitsFile::named_by(&message),
        _ => LimitsFile::read(&scratch.join(LIMITS))?,
    };
    let keep = |from: &str, what| {
        let file = files.join(model_file(&config.name, what));
        let moved = fs::rename(scratch.join(from), &file);
        moved.map_err(|why| format!("the model cannot be written: {}: {why}", file.display()))?;
        Ok::<_, String>(file)
    };
    let model = match config.analyzer {
        Analyzer::Reference => {
            chain.message(&format!("{name}-saved"), LIMIT)?;
            Some(keep(MODEL, "reference")?)
        }
        // The file of its limits has the model, too.
        Analyzer::Surface => Some(keep(LIMITS, "limits")?),
        Analyzer::Pitch | Analyzer::Texture => None,
    };
    let limits = saved.names.iter().filter_map(|name| {
        let frame: u64 = message.get(format!("{name}-frame")).ok()?;
        Some(Limit {
            name: name.clone(),
            value: message.get(name.as_str()).ok()?,
            frame: usize::try_from(frame).ok()?,
        })
    });
    Ok(TeachResult {
        limits: limits.collect(),
        properties: properties(&message),
        model,
        demands: saved.demands,
        left_out,
        warning: chain.warning.clone(),
    })
}

/// The properties that hold the learned limits.
fn properties(message: &gst::StructureRef) -> Map<String, Value> {
    let mut properties = Map::new();
    for name in ["threshold", "deviation-factor"] {
        if let Ok(value) = message.get::<f64>(name) {
            properties.insert(name.to_owned(), value.into());
        }
    }
    for name in [
        "scale-factors",
        "thresholds",
        "component-limits",
        "contrasts",
    ] {
        if let Ok(values) = message.get::<gst::Array>(name) {
            let values = values.iter().filter_map(|value| value.get::<f64>().ok());
            properties.insert(name.to_owned(), values.collect());
        }
    }
    properties
}

/// A file of learned limits.
struct LimitsFile {
    names: Vec<String>,
    demands: Vec<Demands>,
}

impl LimitsFile {
    /// The names of the limits for which a message tells the frame.
    fn named_by(message: &gst::StructureRef) -> Self {
        let names = message
            .fields()
            .filter_map(|field| field.strip_suffix("-frame"));
        Self {
            names: names.map(str::to_owned).collect(),
            demands: Vec::new(),
        }
    }

    fn read(path: &Path) -> Result<Self, String> {
        let file = ModelFile::open(path).map_err(|error| error.to_string())?;
        let words = |name| file.array::<1>(name).map_err(|error| error.to_string());
        let table = |name| file.array::<2>(name).map_err(|error| error.to_string());
        let letters = words("names")?.samples.into_iter();
        let names: String = letters.filter_map(char::from_u32).collect();
        let names: Vec<String> = names.split(';').map(str::to_owned).collect();
        let (numbers, peaks) = (table("numbers")?.samples, table("peaks")?.samples);
        let each = numbers.chunks(2).zip(peaks.chunks(names.len()));
        let demands = each.map(|(number, peaks)| Demands {
            // The low word: a list has no more frames.
            frame: number.first().map_or(0, |&low| low as usize),
            values: peaks
                .iter()
                .map(|&units| f64::from(units) / UNITS)
                .collect(),
        });
        let mut demands: Vec<Demands> = demands.collect();
        demands.sort_by_key(|of| of.frame);
        Ok(Self { names, demands })
    }
}

/// Files in a [`Scratch`].
const LIMITS: &str = "limits.npz";
const MODEL: &str = "model.npz";

/// A folder for what an analyzer writes while it learns; removed when dropped.
pub(super) struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(files: &Path) -> Result<Self, String> {
        use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            ".teaching-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Relaxed)
        );
        let path = files.join(name);
        let made = fs::create_dir(&path);
        made.map_err(|why| format!("the folder {} cannot be made: {why}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left is small, and its name says what it is.
        let _ = fs::remove_dir_all(&self.0);
    }
}
