//! What is printed: the results of each frame, as text or as JSON, and a summary.

use std::io::{Write, stdout};

use anyhow::{Context, Result};
use gstclinspect::results::{Defect, DefectResult, HistogramResult, Verdict};
use serde_json::{Value, json};

/// Counts and prints verdicts.
#[derive(Default)]
pub struct Report {
    /// Frames inspected so far, over all restarts of the source.
    pub frames: u64,
    passed: u64,
    failed: u64,
    /// How often the source was started again.
    pub restarts: u64,
}

impl Report {
    /// Prints the results of a frame; returns its verdict.
    pub fn frame(&mut self, sample: &gst::Sample, is_json: bool) -> Result<Verdict> {
        let buffer = sample.buffer().context("a sample without a frame")?;
        let result = DefectResult::read(buffer).pop();
        let mut result = result.context("a frame without a verdict")?;
        // The element counts from 0 again after a restart.
        result.frame_number = self.frames;
        if is_json {
            let histogram = HistogramResult::read(buffer).pop();
            let histogram = histogram.context("a frame without a histogram")?;
            writeln!(stdout(), "{}", json(&result, &histogram, buffer.pts()))?;
        } else {
            write!(stdout(), "{result}")?;
        }
        self.frames += 1;
        self.passed += u64::from(result.verdict == Verdict::Pass);
        self.failed += u64::from(result.verdict == Verdict::Fail);
        Ok(result.verdict)
    }

    /// Prints the summary.
    pub fn finish(&self, is_json: bool) -> Result<()> {
        let (frames, passed, failed) = (self.frames, self.passed, self.failed);
        let (unjudged, restarts) = (frames - passed - failed, self.restarts);
        if is_json {
            let sum = json!({
                "type": "summary", "frames": frames, "passed": passed, "failed": failed,
                "unjudged": unjudged, "restarts": restarts,
            });
            return Ok(writeln!(stdout(), "{sum}")?);
        }
        let verdicts = format!("{passed} passed, {failed} failed, {unjudged} without a verdict");
        Ok(writeln!(stdout(), "{frames} frames: {verdicts}")?)
    }
}

fn json(r: &DefectResult, histogram: &HistogramResult, time: Option<gst::ClockTime>) -> Value {
    let statistics = &histogram.statistics;
    json!({
        "type": "frame", "frame": r.frame_number, "timestamp_ns": time.map(gst::ClockTime::nseconds),
        "width": r.width, "height": r.height, "format": histogram.format,
        "verdict": r.verdict.name(), "judged_pixels": r.judged_pixels,
        "defect_pixels": r.defect_pixels, "missing_pixels": r.missing_pixels,
        // Of a line camera: the web, and the strip's first row, counted from the web's first.
        "web": r.web, "first_line": r.first_line,
        "pitch": [r.pitch_x, r.pitch_y], "shift": r.alignment.map(|a| [a.shift_x, a.shift_y]),
        "rotation_degrees": r.alignment.map(|a| a.rotation_degrees()), "scale": r.alignment.map(|a| a.scale()),
        "median": statistics.iter().map(|s| s.median).collect::<Vec<_>>(),
        "mean": statistics.iter().map(|s| s.mean).collect::<Vec<_>>(),
        "defects": r.defects.iter().map(|d| defect(r, d)).collect::<Vec<_>>(),
        "overflow": r.overflow,
    })
}

fn defect(result: &DefectResult, d: &Defect) -> Value {
    json!({
        "id": d.id, "class": result.class_name(d.class), "area": d.area, "level": d.level(),
        "x": d.x, "y": d.y, "width": d.width, "height": d.height,
        "x_mm": result.x_mm(d), "y_m": result.y_m(d), "semu": result.semu(d),
        "mean_difference": d.mean_difference, "peak_difference": d.peak_difference,
    })
}
