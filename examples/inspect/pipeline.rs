//! The pipeline: source ! clgaussian ! tee, with a branch to clhistogram and one to the element that
//! compares; each ends in an appsink.

use std::time::Instant;

use gst::prelude::*;
use gstclinspect::results::{DefectResult, HistogramResult};

use crate::{
    failure::Failure,
    passages::{Passage, Passages},
    settings::{Comparison, Inspection},
};

/// Most results that wait in an appsink.
const WAITING_RESULTS: u32 = 4;
/// The same for histograms of strips, without limit: clpitchthreshold holds strips back until the rows that
/// they need have come, and their histograms wait. The queue before clpitchthreshold limits both.
const WAITING_HISTOGRAMS_OF_STRIPS: u32 = 0;
/// Most frames that wait before a branch; each branch has its own thread.
const QUEUED_FRAMES: u32 = 2;
const STOP_TIMEOUT: gst::ClockTime = gst::ClockTime::from_seconds(10);

/// An inspected frame.
#[derive(Debug)]
pub struct Inspected {
    /// Number of frames before, over all restarts of the source.
    pub number: u64,
    /// The output of clgaussian.
    pub frame: gst::Sample,
    /// Its histogram.
    pub histogram: HistogramResult,
    /// Its verdict and packed mask, unless both pitches are 0.
    pub judged: Option<Judged>,
    /// The frame as the source sent it, and when the frame entered and when its last result came.
    pub passage: Passage,
}

/// What the comparison found in a frame.
#[derive(Debug)]
pub struct Judged {
    /// Verdict and defects.
    pub result: DefectResult,
    /// The packed mask.
    pub mask: gst::Buffer,
}

/// The next event of the pipeline.
#[derive(Debug)]
pub enum Next {
    /// A frame.
    Frame(Box<Inspected>),
    /// No event within the time.
    Nothing,
    /// The source has ended.
    End,
    /// An element failed.
    Failed(ElementFailure),
}

/// An element's error message.
#[derive(Debug)]
pub struct ElementFailure {
    /// Element and text.
    pub text: String,
    /// The source failed, not an inspecting element.
    pub in_source: bool,
    /// The element refuses its settings.
    pub is_usage: bool,
}

impl From<ElementFailure> for Failure {
    fn from(failure: ElementFailure) -> Self {
        if failure.is_usage {
            Self::Usage(failure.text)
        } else {
            Self::Runtime(failure.text)
        }
    }
}

/// A running pipeline; stopped when dropped.
#[derive(Debug)]
pub struct Pipeline {
    pipeline: gst::Pipeline,
    bus: gst::Bus,
    source: gst::Bin,
    gaussian: gst::Element,
    histograms: gst_app::AppSink,
    masks: Option<gst_app::AppSink>,
    passages: Passages,
    /// A frame whose mask has not come yet.
    half: Option<gst::Sample>,
    /// The first error on the bus.
    failed: Option<ElementFailure>,
    /// Warnings and progress on the bus since [`Self::remarks`].
    remarks: Vec<String>,
}

impl Pipeline {
    /// Builds the pipeline behind `source`.
    ///
    /// # Errors
    /// An element is not installed.
    pub fn new(
        source: gst::Bin,
        inspection: &Inspection,
        passages: &Passages,
    ) -> Result<Self, Failure> {
        let pipeline = gst::Pipeline::new();
        let gaussian = element("clgaussian")?;
        gaussian.set_property("device", &inspection.device);
        gaussian.set_property("kernel-size", inspection.kernel_size);
        gaussian.set_property("sigma", inspection.sigma);
        gaussian.set_property("line-scan", inspection.line_scan);
        let tee = element("tee")?;
        pipeline.add_many([source.upcast_ref(), &gaussian, &tee])?;
        gst::Element::link_many([source.upcast_ref(), &gaussian, &tee])?;

        let histogram = element("clhistogram")?;
        histogram.set_property("device", &inspection.device);
        histogram.set_property("bit-depth", inspection.bit_depth);
        let waiting = if inspection.line_scan {
            WAITING_HISTOGRAMS_OF_STRIPS
        } else {
            WAITING_RESULTS
        };
        let histograms = branch(&pipeline, &tee, &histogram, (None, waiting), passages)?;
        let masks = inspection
            .comparison
            .as_ref()
            .map(|comparison| {
                let inspector = inspector(comparison)?;
                inspector.set_property("device", &inspection.device);
                inspector.set_property("bit-depth", inspection.bit_depth);
                let [mm_x, mm_y] = inspection.mm_per_pixel;
                inspector.set_property("mm-per-pixel-x", mm_x);
                inspector.set_property("mm-per-pixel-y", mm_y);
                if inspection.line_scan {
                    inspector.set_property("line-scan", true);
                }
                let caps = gst::Caps::new_empty_simple("video/x-bitmask");
                let limits = (Some(&caps), WAITING_RESULTS);
                branch(&pipeline, &tee, &inspector, limits, passages)
            })
            .transpose()?;

        let numbers = passages.clone();
        probe(&gaussian, "sink", move |buffer| {
            numbers.enter(buffer);
        });
        let bus = pipeline
            .bus()
            .ok_or_else(|| Failure::Runtime("the pipeline has no bus".into()))?;
        Ok(Self {
            pipeline,
            bus,
            source,
            gaussian,
            histograms,
            masks,
            passages: passages.clone(),
            half: None,
            failed: None,
            remarks: Vec::new(),
        })
    }

    /// Starts the pipeline; returns whether the source is live.
    ///
    /// # Errors
    /// The message of the element that does not start.
    pub fn start(&mut self) -> Result<bool, ElementFailure> {
        let paused = self.pipeline.set_state(gst::State::Paused);
        let playing = paused.and_then(|_| self.pipeline.set_state(gst::State::Playing));
        match (paused, playing) {
            (Ok(paused), Ok(_)) => Ok(paused == gst::StateChangeSuccess::NoPreroll),
            _ => Err(self.failure().unwrap_or_else(|| ElementFailure {
                text: "the pipeline does not start".into(),
                in_source: false,
                is_usage: false,
            })),
        }
    }

    /// Waits up to `timeout` for the next event. Frames that were inspected before a failure come
    /// first.
    pub fn next(&mut self, timeout: gst::ClockTime) -> Next {
        self.read_bus();
        if self.half.is_none() {
            self.half = self.histograms.try_pull_sample(timeout);
        }
        let Some(frame) = self.half.take() else {
            let ended = self.histograms.is_eos();
            return self.without_frame(ended);
        };
        let mask = match &self.masks {
            None => None,
            Some(masks) => match masks.try_pull_sample(timeout) {
                Some(mask) => Some(mask),
                None => {
                    self.half = Some(frame);
                    let ended = masks.is_eos();
                    return self.without_frame(ended);
                }
            },
        };
        self.join(frame, mask.as_ref())
            .map_or_else(Next::Failed, |inspected| Next::Frame(Box::new(inspected)))
    }

    /// Why a sink has no result; `ended` is its EOS. EOS is read before the bus: an element posts
    /// its error before it ends the stream, so an EOS after an error is not mistaken for a good end.
    fn without_frame(&mut self, ended: bool) -> Next {
        match self.failure() {
            Some(failure) => Next::Failed(failure),
            None if ended => Next::End,
            None => Next::Nothing,
        }
    }

    /// Joins a frame and its two results. Both branches see the same frames in the same order.
    fn join(
        &self,
        frame: gst::Sample,
        mask: Option<&gst::Sample>,
    ) -> Result<Inspected, ElementFailure> {
        let lacks = |what: &str| ElementFailure {
            text: format!("a frame came without {what}"),
            in_source: false,
            is_usage: false,
        };
        let histogram = frame
            .buffer()
            .and_then(|buffer| HistogramResult::read(buffer).pop())
            .ok_or_else(|| lacks("its histogram"))?;
        let judged = mask
            .map(|mask| {
                let buffer = mask.buffer_owned().ok_or_else(|| lacks("its mask"))?;
                let result = DefectResult::read(&buffer).pop();
                let result = result.ok_or_else(|| lacks("its verdict"))?;
                Ok(Judged {
                    result,
                    mask: buffer,
                })
            })
            .transpose()?;
        let number = histogram.frame_number;
        if judged
            .as_ref()
            .is_some_and(|judged| judged.result.frame_number != number)
        {
            return Err(lacks("the result of the same frame beside it"));
        }
        let passage = self
            .passages
            .take(number)
            .ok_or_else(|| lacks("the time at which it entered"))?;
        Ok(Inspected {
            number,
            frame,
            histogram,
            judged,
            passage,
        })
    }

    /// When a frame last came from the source.
    pub fn last_entered(&self) -> Option<Instant> {
        self.passages.last_entered()
    }

    /// How frames reached the device: `stats` of clgaussian.
    pub fn stats(&self) -> gst::Structure {
        self.gaussian.property("stats")
    }

    /// The elements' warnings, and what they compile, since the last call.
    pub fn remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }

    /// The first error on the bus.
    fn failure(&mut self) -> Option<ElementFailure> {
        self.read_bus();
        self.failed.take()
    }

    fn read_bus(&mut self) {
        let kinds = [
            gst::MessageType::Error,
            gst::MessageType::Warning,
            gst::MessageType::Progress,
        ];
        while let Some(message) = self.bus.pop_filtered(&kinds) {
            let name = message.src().map(|source| source.name());
            let name = name.unwrap_or_default();
            match message.view() {
                gst::MessageView::Error(error) if self.failed.is_none() => {
                    self.failed = Some(self.describe(error, &name));
                }
                gst::MessageView::Warning(warning) => {
                    let text = warning.error();
                    (self.remarks).push(format!("warning: {name}: {}", text.message()));
                }
                gst::MessageView::Progress(progress) => {
                    let (_, _, text) = progress.get();
                    self.remarks.push(format!("{name}: {text}"));
                }
                _ => {}
            }
        }
    }

    fn describe(&self, message: &gst::message::Error, name: &str) -> ElementFailure {
        let source = message.src();
        let reason = message.error();
        let mut text = format!("{name}: {}", reason.message());
        // The text of the base classes names no reason; the last line of the details does.
        let details = message.debug();
        if reason.matches(gst::StreamError::Failed)
            && let Some(line) = details.as_ref().and_then(|d| d.lines().last())
        {
            text = format!("{text} ({line})");
        }
        ElementFailure {
            text,
            in_source: source.is_some_and(|source| source.has_as_ancestor(&self.source)),
            is_usage: reason.matches(gst::LibraryError::Settings),
        }
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        // There is nothing to do if the pipeline does not stop.
        let _ = self.pipeline.set_state(gst::State::Null);
        let _ = self.pipeline.state(STOP_TIMEOUT);
    }
}

fn element(name: &str) -> Result<gst::Element, Failure> {
    gst::ElementFactory::make(name).build().map_err(|error| {
        Failure::Runtime(format!(
            "the GStreamer element {name} cannot be made: {}",
            error.message
        ))
    })
}

/// The element that compares, with its settings.
///
/// # Errors
/// A property that the element does not have, or a value that it does not take.
fn inspector(comparison: &Comparison) -> Result<gst::Element, Failure> {
    let wanted = comparison.element;
    let description = format!("{wanted} {} {}", comparison.settings, comparison.properties);
    let refused = |why: &str| Failure::Usage(format!("--inspection: {why}"));
    let element = gst::parse::launch_full(&description, None, gst::ParseFlags::FATAL_ERRORS)
        .map_err(|error| refused(error.message()))?;
    if element
        .factory()
        .is_none_or(|factory| factory.name() != wanted)
    {
        let why = format!("it holds more than properties of {wanted}");
        return Err(refused(&why));
    }
    if let Some(model) = &comparison.model
        && element
            .property::<Option<String>>("location")
            .is_none_or(|location| location.is_empty())
    {
        element.set_property("location", model.path().display().to_string());
    }
    Ok(element)
}

/// A queue, the analyzer and an appsink with these caps and most results behind the tee.
fn branch(
    pipeline: &gst::Pipeline,
    tee: &gst::Element,
    analyzer: &gst::Element,
    (caps, waiting): (Option<&gst::Caps>, u32),
    passages: &Passages,
) -> Result<gst_app::AppSink, Failure> {
    let queue = element("queue")?;
    queue.set_property("max-size-buffers", QUEUED_FRAMES);
    queue.set_property("max-size-bytes", 0_u32);
    queue.set_property("max-size-time", 0_u64);
    // A full sink blocks the branch: nothing is dropped.
    let sink = gst_app::AppSink::builder()
        .sync(false)
        .async_(false)
        .max_buffers(waiting)
        .build();
    sink.set_caps(caps);
    pipeline.add_many([&queue, analyzer, sink.upcast_ref()])?;
    gst::Element::link_many([tee, &queue, analyzer, sink.upcast_ref()])?;
    let numbers = passages.clone();
    probe(analyzer, "src", move |buffer| {
        numbers.leave(buffer.offset())
    });
    Ok(sink)
}

fn probe(
    element: &gst::Element,
    pad: &str,
    seen: impl Fn(&mut gst::Buffer) + Send + Sync + 'static,
) {
    if let Some(pad) = element.static_pad(pad) {
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            if let Some(buffer) = info.buffer_mut() {
                seen(buffer);
            }
            gst::PadProbeReturn::Ok
        });
    }
}
