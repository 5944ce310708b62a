//! Output: a line per frame and a summary, as text or JSON.

use std::{
    collections::VecDeque,
    io::{self, IsTerminal, Write},
    time::Instant,
};

use gstclinspect::results::{Defect, DefectResult, Verdict};
use indicatif::{ProgressBar, ProgressStyle};

use crate::{
    failure::Failure,
    lines::{DefectLine, FrameLine, Line, PlantedLine, Summary},
    pipeline::Inspected,
    roll::{RollLine, RollSummary},
    simulated::{Shown, is_found, shift},
};

/// Number of latest latencies kept for the percentiles; bounds the memory of long runs.
const KEPT_LATENCIES: usize = 100_000;

/// Prints frames, and counts for the summary.
pub struct Report {
    json: bool,
    list: bool,
    /// Whether frames are strips: their defects are printed as the map of a roll.
    strips: bool,
    /// Whether the heading of the map is printed.
    has_heading: bool,
    bar: ProgressBar,
    /// The pitches of the last frame.
    pitches: [f64; 2],
    summary: Summary,
    latencies_ms: VecDeque<f64>,
    started: Option<Instant>,
    /// When the first and the latest result came.
    results: Option<(Instant, Instant)>,
}

impl Report {
    /// A report. On a terminal a progress bar counts to `frames`, if known.
    pub fn new(json: bool, list: bool, frames: Option<u64>, strips: bool) -> Self {
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
            strips,
            has_heading: false,
            bar,
            pitches: [0.0; 2],
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

    /// Prints a frame's line; `shown` is the frame as the generator made it.
    ///
    /// # Errors
    /// The output cannot be written, or the mask cannot be read.
    pub fn frame(&mut self, inspected: &Inspected, shown: Option<&Shown>) -> Result<(), Failure> {
        let latency_ms = inspected.passage.latency().as_secs_f64() * 1e3;
        self.count(inspected, latency_ms);
        let planted = match (shown, &inspected.judged) {
            (Some(shown), Some(judged)) => {
                Some(self.compare(shown, &judged.result, &judged.mask)?)
            }
            _ => None,
        };
        let histogram = &inspected.histogram;
        let judged = inspected.judged.as_ref().map(|judged| &judged.result);
        if let Some(result) = judged {
            self.note_pitches(inspected.number, [result.pitch_x, result.pitch_y]);
        }
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
            missing_pixels: judged.map(|result| result.missing_pixels),
            pitch_x: judged.map(|result| result.pitch_x),
            pitch_y: judged.map(|result| result.pitch_y),
            defects: judged.map(|result| {
                let defects = result.defects.iter();
                defects.map(|d| DefectLine::new(result, d)).collect()
            }),
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
        } else if self.strips {
            self.bar.set_position(self.summary.frames);
            return Ok(());
        } else if self.summary.frames == 1 {
            format!("{}\n{}", line.header(), line.to_text(self.list))
        } else {
            line.to_text(self.list)
        };
        let written = self.bar.suspend(|| say(&text));
        self.bar.set_position(self.summary.frames);
        written
    }

    /// Prints a line of the roll's map.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn defect(&mut self, line: RollLine) -> Result<(), Failure> {
        let text = if self.json {
            to_json(&Line::Defect(line))?
        } else if self.has_heading {
            line.to_text()
        } else {
            self.has_heading = true;
            format!("{}\n{}", RollLine::HEADER, line.to_text())
        };
        self.bar.suspend(|| say(&text))
    }

    /// Prints the pitches in use when they change: an estimate comes with the frames.
    fn note_pitches(&mut self, frame: u64, pitches: [f64; 2]) {
        if self.pitches != pitches {
            self.pitches = pitches;
            let pitch = |pitch: f64| match pitch {
                0.0 => "none".to_owned(),
                pitch => format!("{pitch:.3} px"),
            };
            let [x, y] = pitches.map(pitch);
            self.note(&format!(
                "pitch from frame {frame} on: {x} along x, {y} along y"
            ));
        }
    }

    fn count(&mut self, inspected: &Inspected, latency_ms: f64) {
        let summary = &mut self.summary;
        summary.frames += 1;
        match inspected.judged.as_ref().map(|j| j.result.verdict) {
            Some(Verdict::Pass) => summary.passed += 1,
            Some(Verdict::Fail) => summary.failed += 1,
            Some(Verdict::None) | None => summary.unjudged += 1,
        }
        if let Some(judged) = &inspected.judged {
            let classes = summary.classes.get_or_insert_default();
            classes.count(&judged.result);
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
        shown: &Shown,
        result: &DefectResult,
        mask: &gst::Buffer,
    ) -> Result<Vec<PlantedLine>, Failure> {
        let mask = mask
            .map_readable()
            .map_err(|_| Failure::Runtime("the mask cannot be read".into()))?;
        let [width, height] = [result.width, result.height].map(|len| len as usize);
        let stride = width.div_ceil(8);
        let [dx, dy] = shift(result);
        let marked = |x: usize, y: usize| {
            let at = x.checked_add_signed(-dx).zip(y.checked_add_signed(-dy));
            let at = at.filter(|&(x, y)| x < width && y < height);
            let byte = at.and_then(|(x, y)| Some((x, mask.get(y * stride + x / 8)?)));
            byte.is_some_and(|(x, byte)| byte >> (7 - x % 8) & 1 == 1)
        };
        let lines = shown.planted.iter().map(|defect| {
            let found = is_found(defect, marked);
            let kind = defect.kind;
            let count = self.summary.planted.entry(kind).or_default();
            count.planted += 1;
            count.found += u64::from(found);
            let listed = result.defects.iter().enumerate();
            let parts: Vec<usize> = listed
                .filter(|(_, d)| found && meets(d, [dx, dy], defect.bbox))
                .map(|(i, _)| i)
                .collect();
            PlantedLine {
                kind,
                x: defect.x,
                y: defect.y,
                found,
                defect: parts.first().copied(),
                parts,
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
    pub fn finish(mut self, roll: Option<RollSummary>) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        let summary = &mut self.summary;
        summary.roll = roll;
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

/// Whether a listed defect's box, moved by `shift`, and x, y, width, height share a pixel.
fn meets(defect: &Defect, shift: [isize; 2], [x, y, width, height]: [usize; 4]) -> bool {
    let overlap = |a: i32, shift: isize, len: u32, b: usize, other: usize| {
        let (a, b) = (i64::from(a) + shift as i64, b as i64);
        a < b + other as i64 && b < a + i64::from(len)
    };
    overlap(defect.x, shift[0], defect.width, x, width)
        && overlap(defect.y, shift[1], defect.height, y, height)
}

fn to_json(line: &Line) -> Result<String, Failure> {
    serde_json::to_string(line).map_err(|error| Failure::Runtime(error.to_string()))
}

fn say(text: &str) -> Result<(), Failure> {
    writeln!(io::stdout(), "{text}")
        .map_err(|error| Failure::Runtime(format!("the output cannot be written: {error}")))
}
