//! What settings say about frames that people have judged.

use clinspect_results::report::Report;
use plan::{Analyzer, CameraConfig};
use serde::Serialize;

use super::Trial;
use crate::recorded::{Label, LabelledFrame};

/// Most good frames that are judged before the first one counts.
const WARM_UP: usize = 16;

/// Frames by their verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Frames that pass.
    pub pass: usize,
    /// Frames that fail.
    pub fail: usize,
    /// Frames that were not judged.
    pub none: usize,
}

impl Counts {
    /// All frames.
    pub fn all(&self) -> usize {
        self.pass + self.fail + self.none
    }
}

/// What settings say about kept frames.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Table {
    /// The good frames.
    pub good: Counts,
    /// The failed frames.
    pub failed: Counts,
    /// One for each frame, in their order.
    pub rows: Vec<Row>,
}

/// What settings say about one frame.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The frame's name.
    pub name: String,
    /// What people say.
    pub label: Label,
    /// What the settings say: `pass`, `fail` or `none`.
    pub verdict: &'static str,
    /// Places where people saw a defect and the inspection did not.
    pub missed: u32,
    /// The results.
    pub report: Report,
}

impl Row {
    /// Whether people and settings agree. A frame that was not judged agrees with nobody.
    pub fn is_right(&self) -> bool {
        match self.label {
            Label::Good => self.verdict == "pass",
            Label::Failed => self.verdict == "fail" && self.missed == 0,
        }
    }
}

/// Judges kept frames. `progress` gets the number of frames done, and returns whether to go on; it is asked before each
/// frame that only warms up, too.
///
/// Settings with estimates first see up to 16 good frames, until one of them is judged, so that the order of the frames
/// decides nothing.
///
/// # Errors
/// A sentence if a frame cannot be judged, or if `progress` stopped the work.
pub fn table(
    config: &CameraConfig,
    kept: &[LabelledFrame],
    progress: &mut dyn FnMut(usize) -> bool,
) -> Result<Table, String> {
    let labels: Vec<Label> = kept.iter().map(|kept| kept.label).collect();
    let mut load = |at: usize| kept.get(at).cloned().ok_or_else(|| "no frame".to_owned());
    table_of(config, &labels, &mut load, progress)
}

/// The same for frames that are loaded one at a time. A frame may be loaded more than once.
///
/// # Errors
/// Those of [`table`], and those of `load`.
pub fn table_of(
    config: &CameraConfig,
    labels: &[Label],
    load: &mut dyn FnMut(usize) -> Result<LabelledFrame, String>,
    progress: &mut dyn FnMut(usize) -> bool,
) -> Result<Table, String> {
    let mut table = Table::default();
    let mut trial: Option<(gst_video::VideoInfo, Trial)> = None;
    for at in 0..labels.len() {
        let kept = load(at)?;
        let info = kept.frame.info();
        let about = |why| format!("{}: {why}", kept.name);
        // Frames of another size or format are another object, of which nothing is known yet.
        let trial = match &mut trial {
            Some((of, trial)) if of == info => trial,
            trial => {
                go_on(progress(table.rows.len()))?;
                let mut new = Trial::start(config, info).map_err(about)?;
                let mut so_far = || progress(table.rows.len());
                warm_up(&mut new, config, info, labels, load, &mut so_far)?;
                &mut trial.insert((info.clone(), new)).1
            }
        };
        let report = trial.judge(&kept.frame).map_err(about)?.report;
        table.add(&kept, report);
        go_on(progress(table.rows.len()))?;
    }
    Ok(table)
}

fn go_on(goes_on: bool) -> Result<(), String> {
    match goes_on {
        true => Ok(()),
        false => Err("the trial was stopped".to_owned()),
    }
}

/// Shows the analyzer good frames until it can judge one.
fn warm_up(
    trial: &mut Trial,
    config: &CameraConfig,
    info: &gst_video::VideoInfo,
    labels: &[Label],
    load: &mut dyn FnMut(usize) -> Result<LabelledFrame, String>,
    so_far: &mut dyn FnMut() -> bool,
) -> Result<(), String> {
    // It estimates nothing.
    if config.analyzer == Analyzer::Reference {
        return Ok(());
    }
    let good = (0..labels.len()).filter(|&at| labels[at] == Label::Good);
    for at in good.take(WARM_UP) {
        go_on(so_far())?;
        let kept = load(at)?;
        if kept.frame.info() != info {
            continue;
        }
        let about = |why| format!("{}: {why}", kept.name);
        if trial.judge(&kept.frame).map_err(about)?.report.verdict != "none" {
            break;
        }
    }
    Ok(())
}

impl Table {
    fn add(&mut self, kept: &LabelledFrame, report: Report) {
        let counts = match kept.label {
            Label::Good => &mut self.good,
            Label::Failed => &mut self.failed,
        };
        match report.verdict {
            "pass" => counts.pass += 1,
            "fail" => counts.fail += 1,
            _ => counts.none += 1,
        }
        let is_missed = |place: &&[u32; 4]| {
            let mut defects = report.inspections.iter().flat_map(|of| &of.defects);
            !defects.any(|of| overlap([of.x, of.y], [of.width, of.height], **place))
        };
        let missed = kept.missed.iter().filter(is_missed).count();
        self.rows.push(Row {
            name: kept.name.clone(),
            label: kept.label,
            verdict: report.verdict,
            missed: u32::try_from(missed).unwrap_or(u32::MAX),
            report,
        });
    }
}

/// Whether a defect's box and a place have a pixel in common.
fn overlap(at: [i32; 2], size: [u32; 2], [x, y, width, height]: [u32; 4]) -> bool {
    let meet = |at: i32, len: u32, from: u32, to: u32| {
        let (at, from) = (i64::from(at), i64::from(from));
        at < from + i64::from(to) && from < at + i64::from(len)
    };
    meet(at[0], size[0], x, width) && meet(at[1], size[1], y, height)
}
