//! Elements in a pipeline, which get one frame after the other, as on a line.

use anyhow::{Context, Result, anyhow};
use gst::prelude::*;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    marks::{Area, Mask, Outcome},
    pictures::Grey,
};

/// Longest wait for a mask; the first one includes the kernels' build.
const MASK_TIMEOUT: gst::ClockTime = gst::ClockTime::from_seconds(120);

/// Sample of a picture of differences where nothing differs.
const NO_DIFFERENCE: u8 = 128;

/// `appsrc ! elements ! appsink`, playing.
pub struct Line {
    pipeline: gst::Pipeline,
    source: gst_app::AppSrc,
    sink: gst_app::AppSink,
}

/// Results of a frame.
pub struct LineVerdict {
    pub mask: Mask,
    pub result: DefectResult,
}

impl LineVerdict {
    /// Whether the frame got the verdict `fail`.
    pub fn is_failed(&self) -> bool {
        self.result.verdict == Verdict::Fail
    }

    /// Whether the frame was not judged.
    pub fn is_unjudged(&self) -> bool {
        self.result.verdict == Verdict::None
    }

    /// What the listed defects find.
    pub fn listed(&self, boxes: &[Area]) -> Outcome {
        let mut outcome = Outcome {
            is_found: vec![false; boxes.len()],
            false_blobs: 0,
        };
        for defect in &self.result.defects {
            let [x0, y0] = [defect.x, defect.y].map(|v| v.max(0) as usize);
            let marked = self.mask.within(Area {
                x0,
                y0,
                x1: x0 + defect.width as usize,
                y1: y0 + defect.height as usize,
            });
            outcome.add(&marked, boxes);
        }
        outcome
    }

    /// The box of the listed defect with the largest difference at one pixel.
    pub fn strongest(&self) -> Option<Area> {
        let defects = self.result.defects.iter();
        let strongest =
            defects.max_by(|a, b| (a.peak_difference.abs()).total_cmp(&b.peak_difference.abs()))?;
        let [x0, y0] = [strongest.x, strongest.y].map(|v| v.max(0) as usize);
        Some(Area {
            x0,
            y0,
            x1: x0 + strongest.width as usize,
            y1: y0 + strongest.height as usize,
        })
    }

    /// What the marks find.
    pub fn outcome(&self, boxes: &[Area], min_area: usize) -> Outcome {
        self.mask.outcome(boxes, min_area)
    }
}

impl Line {
    /// Starts `elements`, which output masks of 8-bit frames; `learn`: the element with the name `judge` learns its limits from the first
    /// frames.
    ///
    /// # Errors
    /// The elements or a device are missing, or the settings are refused.
    pub fn new(elements: &str, size: [usize; 2], learn: bool) -> Result<Self> {
        Self::start(&format!("{elements} ! video/x-bitmask"), size, learn)
    }

    /// Starts `elements`, whose output are differences of 8-bit frames.
    ///
    /// # Errors
    /// The elements or a device are missing, or the settings are refused.
    pub fn of_differences(elements: &str, size: [usize; 2]) -> Result<Self> {
        Self::start(
            &format!("{elements} output=difference ! video/x-raw,format=GRAY8"),
            size,
            false,
        )
    }

    fn start(elements: &str, [width, height]: [usize; 2], learn: bool) -> Result<Self> {
        let description = format!(
            "appsrc name=source format=time caps=video/x-raw,format=GRAY8,width={width},height={height},\
             framerate=0/1 ! {elements} ! appsink name=sink sync=false"
        );
        let pipeline = gst::parse::launch(&description)
            .with_context(|| description.clone())?
            .downcast::<gst::Pipeline>()
            .map_err(|_| anyhow!("no pipeline: {description}"))?;
        let element = |name| {
            let missing = || format!("no element {name} in: {description}");
            pipeline.by_name(name).with_context(missing)
        };
        let line = Self {
            source: element("source")?
                .downcast()
                .map_err(|_| anyhow!("no appsrc"))?,
            sink: element("sink")?
                .downcast()
                .map_err(|_| anyhow!("no appsink"))?,
            pipeline: pipeline.clone(),
        };
        if line.pipeline.set_state(gst::State::Playing).is_err() {
            return Err(line.failure("starting"));
        }
        if learn {
            element("judge")?.emit_by_name::<()>("learn", &[]);
        }
        Ok(line)
    }

    /// Judges a frame.
    ///
    /// # Errors
    /// An element's error, or a mask without its meta.
    pub fn judge(&self, frame: &Grey) -> Result<LineVerdict> {
        let (sample, result) = self.pull(frame)?;
        let buffer = sample.buffer().context("a sample without a buffer")?;
        let caps = sample.caps().and_then(|caps| caps.structure(0));
        let stride: i32 = caps.context("a mask without caps")?.get("stride")?;
        let packed = buffer.map_readable()?;
        Ok(LineVerdict {
            mask: Mask::unpacked(&packed, usize::try_from(stride)?, frame.size),
            result,
        })
    }

    /// The pixel of a frame, column and row, that differs most, and the frame's results.
    ///
    /// # Errors
    /// An element's error, or a picture without its meta.
    pub fn most_different(&self, frame: &Grey) -> Result<([usize; 2], DefectResult)> {
        let (sample, result) = self.pull(frame)?;
        let buffer = sample.buffer().context("a sample without a buffer")?;
        let differences = buffer.map_readable()?;
        let [width, height] = frame.size;
        let stride = width.next_multiple_of(4);
        let place = |at: usize| [at % width, at / width];
        let difference = |at: &usize| {
            let [x, y] = place(*at);
            let level = differences.get(y * stride + x).copied();
            level.unwrap_or(NO_DIFFERENCE).abs_diff(NO_DIFFERENCE)
        };
        let most = (0..width * height).max_by_key(difference);
        Ok((place(most.unwrap_or(0)), result))
    }

    /// Sends a frame and waits for what comes out, with its results.
    fn pull(&self, frame: &Grey) -> Result<(gst::Sample, DefectResult)> {
        let [width, height] = frame.size;
        let stride = width.next_multiple_of(4);
        let mut samples = vec![0; stride * height];
        let rows = samples.chunks_exact_mut(stride);
        for (padded, row) in rows.zip(frame.samples.chunks_exact(width)) {
            padded[..width].copy_from_slice(row);
        }
        let buffer = gst::Buffer::from_slice(samples);
        if self.source.push_buffer(buffer).is_err() {
            return Err(self.failure("pushing a frame"));
        }
        let Some(sample) = self.sink.try_pull_sample(MASK_TIMEOUT) else {
            return Err(self.failure("waiting for a mask"));
        };
        let result = sample.buffer().and_then(|of| DefectResult::read(of).pop());
        Ok((sample, result.context("a frame without GstClDefectMeta")?))
    }

    /// The element's error message, if there is one on the bus.
    fn failure(&self, doing: &str) -> anyhow::Error {
        let message = self.pipeline.bus().and_then(|bus| {
            bus.timed_pop_filtered(gst::ClockTime::from_seconds(1), &[gst::MessageType::Error])
        });
        match message.as_ref().map(|m| m.view()) {
            Some(gst::MessageView::Error(error)) => anyhow!(
                "{doing}: {} ({})",
                error.error(),
                error.debug().unwrap_or_default()
            ),
            _ => anyhow!("{doing}: no answer from the pipeline"),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // A failure cannot be reported here.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}
