//! The lines of the output, as text and as JSON.

use std::collections::BTreeMap;

use gstclinspect::results::{Defect, DefectResult};
use serde::Serialize;

use crate::roll::{RollLine, RollSummary};

/// Space between two columns.
const GAP: &str = "  ";

/// A line of JSON.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Line<'a> {
    Frame(FrameLine<'a>),
    Defect(RollLine),
    Summary(Summary),
}

#[derive(Serialize)]
pub struct FrameLine<'a> {
    pub frame: u64,
    pub timestamp_ns: Option<u64>,
    pub width: u32,
    pub height: u32,
    pub format: &'a str,
    /// pass, fail or none; absent if both pitches are 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defect_pixels: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged_pixels: Option<u64>,
    /// Pixels marked because the pattern is missing there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_pixels: Option<u64>,
    /// Pitch along x, px; 0 = unknown or not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pitch_x: Option<f64>,
    /// Pitch along y, px.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pitch_y: Option<f64>,
    /// The largest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defects: Option<Vec<DefectLine>>,
    /// Whether there are more defects than listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflow: Option<bool>,
    /// One value per channel, like all statistics.
    pub median: Vec<f64>,
    pub mean: Vec<f64>,
    pub p5: Vec<f64>,
    pub p95: Vec<f64>,
    pub latency_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planted: Option<Vec<PlantedLine>>,
}

/// A planted defect of a panel frame.
#[derive(Serialize)]
pub struct PlantedLine {
    pub kind: &'static str,
    pub x: f64,
    pub y: f64,
    pub found: bool,
    /// Index of the listed defect that matches, the largest if there are more.
    pub defect: Option<usize>,
    /// Indices of all that match: a scratch over ink and paper is listed in parts.
    #[serde(skip)]
    pub parts: Vec<usize>,
}

/// A listed defect.
#[derive(Serialize)]
pub struct DefectLine {
    pub x: i32,
    pub y: i32,
    pub width: u32,
    pub height: u32,
    pub area: u32,
    pub centroid: [f32; 2],
    pub mean_difference: f32,
    pub peak_difference: f32,
    pub polarity: i32,
    /// The finest level of the comparison that marks a pixel: 0 = single pixels.
    pub level: u8,
    /// Visibility; absent if the size of a pixel or the mean level is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub semu: Option<f64>,
}

impl DefectLine {
    pub fn new(result: &DefectResult, d: &Defect) -> Self {
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
            level: d.level(),
            semu: result.semu(d),
        }
    }
}

#[derive(Serialize, Default)]
pub struct Summary {
    pub frames: u64,
    pub passed: u64,
    pub failed: u64,
    pub unjudged: u64,
    /// Frames in flight when the source went away.
    pub lost: u64,
    /// Absent if both pitches are 0.
    #[serde(flatten)]
    pub classes: Option<Classes>,
    /// Absent for fewer than two frames; the latencies are absent without frames.
    pub frames_per_second: Option<f64>,
    pub latency_ms_p50: Option<f64>,
    pub latency_ms_p99: Option<f64>,
    pub latency_ms_longest: Option<f64>,
    /// From the start of the pipeline.
    pub first_result_ms: Option<f64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub planted: BTreeMap<&'static str, Found>,
    /// Absent unless frames are strips.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roll: Option<RollSummary>,
    pub frames_zero_copy: u64,
    pub frames_wrapped: u64,
    pub frames_copied: u64,
}

/// Number of defects by polarity, over all frames.
#[derive(Serialize, Default, Clone, Copy)]
pub struct Classes {
    /// All pixels of the defect are brighter than their neighbours.
    pub bright_defects: u64,
    /// All pixels are darker.
    pub dark_defects: u64,
    /// Some pixels are brighter, others are darker.
    pub mixed_defects: u64,
    /// Frames with more defects than the list holds.
    pub frames_with_unlisted_defects: u64,
    /// Pixels marked because the pattern is missing there.
    pub missing_pixels: u64,
    /// Frames with such pixels.
    pub frames_with_missing_pixels: u64,
}

/// Number of planted defects of a kind, and of those with a marked pixel.
#[derive(Serialize, Default, Clone, Copy)]
pub struct Found {
    pub planted: u64,
    pub found: u64,
}

/// The polarity of a listed defect in words.
fn class(polarity: i32) -> &'static str {
    match polarity {
        1 => "bright",
        -1 => "dark",
        _ => "mixed",
    }
}

impl Classes {
    /// Counts a frame's defects.
    pub fn count(&mut self, result: &DefectResult) {
        for defect in &result.defects {
            match class(defect.polarity) {
                "bright" => self.bright_defects += 1,
                "dark" => self.dark_defects += 1,
                _ => self.mixed_defects += 1,
            }
        }
        self.frames_with_unlisted_defects += u64::from(result.overflow);
        self.missing_pixels += result.missing_pixels;
        self.frames_with_missing_pixels += u64::from(result.missing_pixels > 0);
    }

    fn to_text(self) -> String {
        let more = match self.frames_with_unlisted_defects {
            0 => String::new(),
            frames => format!(" (and unlisted defects in {frames} frames)"),
        };
        format!(
            "\ndefects by polarity{more}\n  bright           {:6}\n  dark             {:6}\n  \
             mixed            {:6}\n  pattern missing  {:6} px in {} frames",
            self.bright_defects,
            self.dark_defects,
            self.mixed_defects,
            self.missing_pixels,
            self.frames_with_missing_pixels
        )
    }
}

impl FrameLine<'_> {
    /// Headings of the cells, with units; cells are aligned to the right.
    fn headings(&self) -> Vec<&'static str> {
        let mut headings = vec![" frame"];
        if self.verdict.is_some() {
            headings.extend(["verdict", "defects", "marked [px]", "missing [px]"]);
        }
        headings.extend(["median [levels]", "latency [ms]"]);
        if self.planted.is_some() {
            headings.push("planted found");
        }
        headings
    }

    /// The header of the frames' lines.
    pub fn header(&self) -> String {
        self.headings().join(GAP)
    }

    /// The cells under [`Self::header`], and with `list` a line per defect.
    pub fn to_text(&self, list: bool) -> String {
        let mut cells = vec![self.frame.to_string()];
        if let (Some(verdict), Some(marked), Some(missing), Some(defects)) = (
            self.verdict,
            self.defect_pixels,
            self.missing_pixels,
            &self.defects,
        ) {
            let more = if self.overflow == Some(true) { "+" } else { "" };
            cells.extend([
                verdict.to_owned(),
                format!("{}{more}", defects.len()),
                marked.to_string(),
                missing.to_string(),
            ]);
        }
        let medians: Vec<String> = self.median.iter().map(f64::to_string).collect();
        cells.push(medians.join("/"));
        cells.push(format!("{:.2}", self.latency_ms));
        if let Some(planted) = &self.planted {
            let found = planted.iter().filter(|defect| defect.found).count();
            cells.push(format!("{found} of {}", planted.len()));
        }
        let aligned = cells
            .iter()
            .zip(self.headings())
            .map(|(cell, heading)| format!("{cell:>0$}", heading.len()));
        let mut text = aligned.collect::<Vec<_>>().join(GAP);
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
                "\n    at {:4}, {:4} px  {:3} x {:3} px  area {:5} px  {:6}  mean {:+6.1} levels  peak {:+6.1} levels",
                d.x,
                d.y,
                d.width,
                d.height,
                d.area,
                class(d.polarity),
                d.mean_difference,
                d.peak_difference
            );
            if d.level > 0 {
                text += &format!("  level {}", d.level);
            }
            if let Some(semu) = d.semu {
                text += &format!("  {semu:.1} SEMU");
            }
            let kinds: Vec<&str> = planted
                .iter()
                .filter(|p| p.parts.contains(&i))
                .map(|p| p.kind)
                .collect();
            match (self.planted.is_some(), kinds.is_empty()) {
                (true, true) => text += "  not planted",
                (true, false) => text += &format!("  {}", kinds.join(", ")),
                (false, _) => {}
            }
        }
        for p in planted.iter().filter(|p| !p.found) {
            text += &format!("\n    at {:4.0}, {:4.0} px  {} MISSED", p.x, p.y, p.kind);
        }
        text
    }
}

impl Summary {
    pub fn to_text(&self) -> String {
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
        if let Some(classes) = self.classes {
            text += &format!(
                "\n{} passed, {} failed, {} without a verdict",
                self.passed, self.failed, self.unjudged
            );
            text += &classes.to_text();
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
        if let Some(roll) = &self.roll {
            text += &roll.to_text();
        }
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
