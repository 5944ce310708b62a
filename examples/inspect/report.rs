//! Output: a line per frame and a summary, as text or JSON.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{self, IsTerminal, Write},
    time::Instant,
};

use gstclinspect::results::{Defect, DefectResult, Verdict};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::{
    common::panel::PanelFrame,
    failure::Failure,
    panel::is_found,
    pipeline::{Inspected, latency},
};

/// Number of latest latencies kept for the percentiles; bounds the memory of long runs.
const KEPT_LATENCIES: usize = 100_000;

/// A line of JSON.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
    Frame(FrameLine<'a>),
    Summary(Summary),
}

#[derive(Serialize)]
struct FrameLine<'a> {
    frame: u64,
    timestamp_ns: Option<u64>,
    width: u32,
    height: u32,
    format: &'a str,
    /// pass, fail or none; absent if no pitch is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    defect_pixels: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    judged_pixels: Option<u64>,
    /// The largest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    defects: Option<Vec<DefectLine>>,
    /// Whether there are more defects than listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    overflow: Option<bool>,
    /// One value per channel, like all statistics.
    median: Vec<f64>,
    mean: Vec<f64>,
    p5: Vec<f64>,
    p95: Vec<f64>,
    latency_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    planted: Option<Vec<PlantedLine>>,
}

/// A planted defect of a panel frame.
#[derive(Serialize)]
struct PlantedLine {
    kind: &'static str,
    x: f64,
    y: f64,
    found: bool,
    /// Index of the listed defect that matches.
    defect: Option<usize>,
}

/// A listed defect.
#[derive(Serialize)]
struct DefectLine {
    x: u32,
    y: u32,
    width: u32,
    height: u32,
    area: u32,
    centroid: [f32; 2],
    mean_difference: f32,
    peak_difference: f32,
    polarity: i32,
}

impl From<&Defect> for DefectLine {
    fn from(d: &Defect) -> Self {
        Self {
            x: d.x,
            y: d.y,
            width: d.width,
            height: d.height,
            area: d.area,
            centroid: [d.centroid_x, d.centroid_y],
            mean_difference: d.mean_difference,
            peak_difference: d.peak_difference,
            polarity: d.polarity,
        }
    }
}

#[derive(Serialize, Default)]
struct Summary {
    frames: u64,
    passed: u64,
    failed: u64,
    unjudged: u64,
    /// Frames in flight when the source went away.
    lost: u64,
    /// Absent for fewer than two frames; the latencies are absent without frames.
    frames_per_second: Option<f64>,
    latency_ms_p50: Option<f64>,
    latency_ms_p99: Option<f64>,
    latency_ms_longest: Option<f64>,
    /// From the start of the pipeline.
    first_result_ms: Option<f64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    planted: BTreeMap<&'static str, Found>,
    frames_zero_copy: u64,
    frames_wrapped: u64,
    frames_copied: u64,
}

/// Number of planted defects of a kind, and of those with a marked pixel.
#[derive(Serialize, Default, Clone, Copy)]
struct Found {
    planted: u64,
    found: u64,
}

/// Prints frames, and counts for the summary.
pub struct Report {
    json: bool,
    list: bool,
    bar: ProgressBar,
    summary: Summary,
    latencies_ms: VecDeque<f64>,
    started: Option<Instant>,
    /// When the first and the latest result came.
    results: Option<(Instant, Instant)>,
}

impl Report {
    /// A report. On a terminal a progress bar counts to `frames`, if known.
    pub fn new(json: bool, list: bool, frames: Option<u64>) -> Self {
        let bar = match frames {
            Some(frames) if io::stderr().is_terminal() => {
                let bar = ProgressBar::new(frames);
                if let Ok(style) =
                    ProgressStyle::with_template("{bar:40} {pos} of {len} frames, {eta} left")
                {
                    bar.set_style(style);
                }
                bar
            }
            _ => ProgressBar::hidden(),
        };
        Self {
            json,
            list,
            bar,
            summary: Summary::default(),
            latencies_ms: VecDeque::new(),
            started: None,
            results: None,
        }
    }

    /// Number of frames so far.
    pub fn frames(&self) -> u64 {
        self.summary.frames
    }

    /// Notes that a pipeline is about to start.
    pub fn starting(&mut self) {
        self.started.get_or_insert_with(Instant::now);
    }

    /// Prints a remark to the terminal.
    pub fn note(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }

    /// Prints a frame's line; `panel` is the frame as the generator made it.
    ///
    /// # Errors
    /// The output cannot be written, or the mask cannot be read.
    pub fn frame(
        &mut self,
        inspected: &Inspected,
        panel: Option<&PanelFrame>,
    ) -> Result<(), Failure> {
        let latency_ms = latency(&inspected.passage).as_secs_f64() * 1e3;
        self.count(inspected, latency_ms);
        let planted = match (panel, &inspected.judged) {
            (Some(panel), Some((result, mask))) => Some(self.compare(panel, result, mask)?),
            _ => None,
        };
        let histogram = &inspected.histogram;
        let judged = inspected.judged.as_ref().map(|(result, _)| result);
        let values = |of: fn(&clinspect_core::statistics::Statistics) -> f64| {
            histogram.statistics.iter().map(of).collect::<Vec<f64>>()
        };
        let line = FrameLine {
            frame: inspected.number,
            timestamp_ns: inspected
                .frame
                .buffer()
                .and_then(gst::BufferRef::pts)
                .map(gst::ClockTime::nseconds),
            width: histogram.width,
            height: histogram.height,
            format: &histogram.format,
            verdict: judged.map(|result| result.verdict.name()),
            defect_pixels: judged.map(|result| result.defect_pixels),
            judged_pixels: judged.map(|result| result.judged_pixels),
            defects: judged.map(|result| result.defects.iter().map(DefectLine::from).collect()),
            overflow: judged.map(|result| result.overflow),
            median: values(|s| s.median),
            mean: values(|s| s.mean),
            p5: values(|s| s.p5),
            p95: values(|s| s.p95),
            latency_ms,
            planted,
        };
        let text = if self.json {
            to_json(&Line::Frame(line))?
        } else {
            line.to_text(self.list)
        };
        let written = self.bar.suspend(|| say(&text));
        self.bar.set_position(self.summary.frames);
        written
    }

    fn count(&mut self, inspected: &Inspected, latency_ms: f64) {
        let summary = &mut self.summary;
        summary.frames += 1;
        match inspected.judged.as_ref().map(|(result, _)| result.verdict) {
            Some(Verdict::Pass) => summary.passed += 1,
            Some(Verdict::Fail) => summary.failed += 1,
            Some(Verdict::None) | None => summary.unjudged += 1,
        }
        if self.latencies_ms.len() == KEPT_LATENCIES {
            self.latencies_ms.pop_front();
        }
        self.latencies_ms.push_back(latency_ms);
        let Some(now) = inspected.passage.left else {
            return;
        };
        match &mut self.results {
            Some((_, latest)) => *latest = now,
            None => {
                self.results = Some((now, now));
                summary.first_result_ms = self
                    .started
                    .map(|started| (now - started).as_secs_f64() * 1e3);
            }
        }
    }

    /// Which planted defects have a pixel in the packed mask.
    fn compare(
        &mut self,
        panel: &PanelFrame,
        result: &DefectResult,
        mask: &gst::Buffer,
    ) -> Result<Vec<PlantedLine>, Failure> {
        let mask = mask
            .map_readable()
            .map_err(|_| Failure::Runtime("the mask cannot be read".into()))?;
        let stride = panel.width.div_ceil(8);
        let marked = |x: usize, y: usize| {
            let byte = mask.get(y * stride + x / 8).copied().unwrap_or(0);
            byte >> (7 - x % 8) & 1 == 1
        };
        let lines = panel.planted.iter().map(|defect| {
            let found = is_found(defect, marked);
            let kind = defect.kind.name();
            let count = self.summary.planted.entry(kind).or_default();
            count.planted += 1;
            count.found += u64::from(found);
            PlantedLine {
                kind,
                x: defect.x,
                y: defect.y,
                found,
                defect: found
                    .then(|| result.defects.iter().position(|d| meets(d, defect.bbox)))
                    .flatten(),
            }
        });
        Ok(lines.collect())
    }

    /// Counts frames without a result.
    pub fn lose(&mut self, frames: u64) {
        self.summary.lost += frames;
    }

    /// Adds a pipeline's counts of how frames reached the device.
    pub fn add_stats(&mut self, stats: &gst::Structure) {
        let count = |name: &str| stats.get::<u64>(name).unwrap_or(0);
        self.summary.frames_zero_copy += count("frames-zero-copy");
        self.summary.frames_wrapped += count("frames-wrapped");
        self.summary.frames_copied += count("frames-copied");
    }

    /// Prints the summary.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        let summary = &mut self.summary;
        let sorted = {
            let mut sorted: Vec<f64> = self.latencies_ms.into_iter().collect();
            sorted.sort_by(f64::total_cmp);
            sorted
        };
        summary.latency_ms_p50 = percentile(&sorted, 50);
        summary.latency_ms_p99 = percentile(&sorted, 99);
        summary.latency_ms_longest = sorted.last().copied();
        summary.frames_per_second = self
            .results
            .map(|(first, latest)| (latest - first).as_secs_f64())
            .filter(|&seconds| seconds > 0.0)
            .map(|seconds| (summary.frames - 1) as f64 / seconds);
        if self.json {
            eprintln!("{}", summary.to_text());
            say(&to_json(&Line::Summary(self.summary))?)
        } else {
            say(&summary.to_text())
        }
    }
}

/// The nearest-rank percentile of sorted values.
fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// Whether a listed defect's box and x, y, width, height share a pixel.
fn meets(defect: &Defect, [x, y, width, height]: [usize; 4]) -> bool {
    let overlap = |a: u32, len: u32, b: usize, other: usize| {
        (a as usize) < b + other && b < a as usize + len as usize
    };
    overlap(defect.x, defect.width, x, width) && overlap(defect.y, defect.height, y, height)
}

fn to_json(line: &Line) -> Result<String, Failure> {
    serde_json::to_string(line).map_err(|error| Failure::Runtime(error.to_string()))
}

fn say(text: &str) -> Result<(), Failure> {
    writeln!(io::stdout(), "{text}")
        .map_err(|error| Failure::Runtime(format!("the output cannot be written: {error}")))
}

impl FrameLine<'_> {
    fn to_text(&self, list: bool) -> String {
        let mut text = format!("frame {:6}  ", self.frame);
        if let (Some(verdict), Some(pixels), Some(defects)) =
            (self.verdict, self.defect_pixels, &self.defects)
        {
            let more = if self.overflow == Some(true) { "+" } else { "" };
            let count = defects.len();
            text += &format!("{verdict:4}  {count:3}{more} defects  {pixels:6} defect pixels  ");
        }
        let medians: Vec<String> = self.median.iter().map(f64::to_string).collect();
        text += &format!("median {}  {:6.2} ms", medians.join("/"), self.latency_ms);
        if let Some(planted) = &self.planted {
            let found = planted.iter().filter(|defect| defect.found).count();
            text += &format!("  {found} of {} planted found", planted.len());
        }
        if list {
            text += &self.list();
        }
        text
    }

    /// A line per listed defect, and per planted one that was missed.
    fn list(&self) -> String {
        let planted = self.planted.as_deref().unwrap_or(&[]);
        let mut text = String::new();
        for (i, d) in self.defects.iter().flatten().enumerate() {
            text += &format!(
                "\n    at {:4}, {:4}  {:3} x {:3}  area {:5}  mean {:+6.1}  peak {:+6.1}",
                d.x, d.y, d.width, d.height, d.area, d.mean_difference, d.peak_difference
            );
            let kinds: Vec<&str> = planted
                .iter()
                .filter(|p| p.defect == Some(i))
                .map(|p| p.kind)
                .collect();
            match (self.planted.is_some(), kinds.is_empty()) {
                (true, true) => text += "  not planted",
                (true, false) => text += &format!("  {}", kinds.join(", ")),
                (false, _) => {}
            }
        }
        for p in planted.iter().filter(|p| !p.found) {
            text += &format!("\n    at {:4.0}, {:4.0}  {} MISSED", p.x, p.y, p.kind);
        }
        text
    }
}

impl Summary {
    fn to_text(&self) -> String {
        let mut text = format!("{} frames", self.frames);
        if let Some(rate) = self.frames_per_second {
            text += &format!(", {rate:.1} frames/s");
        }
        if let (Some(p50), Some(p99), Some(longest)) = (
            self.latency_ms_p50,
            self.latency_ms_p99,
            self.latency_ms_longest,
        ) {
            text += &format!(", latency p50 {p50:.2} ms, p99 {p99:.2} ms, longest {longest:.2} ms");
        }
        if let Some(first) = self.first_result_ms {
            text += &format!(", first result after {first:.0} ms");
        }
        if self.passed + self.failed > 0 {
            text += &format!("\n{} passed, {} failed", self.passed, self.failed);
        }
        if self.lost > 0 {
            text += &format!(
                "\n{} lost, because they were in flight when the source went away",
                self.lost
            );
        }
        text += &format!(
            "\nframes read in place {}, wrapped in place {}, copied to the device {}",
            self.frames_zero_copy, self.frames_wrapped, self.frames_copied
        );
        if !self.planted.is_empty() {
            let total = self
                .planted
                .values()
                .fold(Found::default(), |sum, kind| Found {
                    planted: sum.planted + kind.planted,
                    found: sum.found + kind.found,
                });
            text += &format!(
                "\nplanted defects with a marked pixel: {} of {}",
                total.found, total.planted
            );
            for (kind, count) in &self.planted {
                text += &format!("\n  {kind:12} {:5} of {:5}", count.found, count.planted);
            }
        }
        text
    }
}
