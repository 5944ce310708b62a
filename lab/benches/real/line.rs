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

    /// What the marks find.
    pub fn outcome(&self, boxes: &[Area], min_area: usize) -> Outcome {
        self.mask.outcome(boxes, min_area)
    }
}

impl Line {
    /// Starts `elements` on 8-bit frames; `learn`: the element with the name `judge` learns its limits from the first
    /// frames.
    ///
    /// # Errors
    /// The elements or a device are missing, or the settings are refused.
    pub fn new(elements: &str, [width, height]: [usize; 2], learn: bool) -> Result<Self> {
        let description = format!(
            "appsrc name=source format=time caps=video/x-raw,format=GRAY8,width={width},height={height},\
             framerate=0/1 ! {elements} ! video/x-bitmask ! appsink name=sink sync=false"
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
        let buffer = gst::Buffer::from_slice(frame.samples.clone());
        if self.source.push_buffer(buffer).is_err() {
            return Err(self.failure("pushing a frame"));
        }
        let Some(sample) = self.sink.try_pull_sample(MASK_TIMEOUT) else {
            return Err(self.failure("waiting for a mask"));
        };
        let buffer = sample.buffer().context("a sample without a buffer")?;
        let caps = sample.caps().and_then(|caps| caps.structure(0));
        let stride: i32 = caps.context("a mask without caps")?.get("stride")?;
        let result = DefectResult::read(buffer).pop();
        let packed = buffer.map_readable()?;
        Ok(LineVerdict {
            mask: Mask::unpacked(&packed, usize::try_from(stride)?, frame.size),
            result: result.context("a mask without GstClDefectMeta")?,
        })
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
