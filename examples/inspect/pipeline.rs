//! The pipeline: source ! clgaussian ! tee, with a branch to clhistogram and one to
//! clpitchthreshold; each ends in an appsink.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use gst::prelude::*;
use gstclinspect::results::{DefectResult, HistogramResult};

use crate::{failure::Failure, options::Inspection};

/// Most results that wait in an appsink.
const WAITING_RESULTS: u32 = 4;
/// Most frames that wait before a branch; each branch has its own thread.
const QUEUED_FRAMES: u32 = 2;
const STOP_TIMEOUT: gst::ClockTime = gst::ClockTime::from_seconds(10);

/// Records when frames came and went, and numbers them so that results can be matched.
#[derive(Debug, Clone, Default)]
pub struct Passages(Arc<Mutex<Under>>);

#[derive(Debug, Default)]
struct Under {
    next: u64,
    last_entered: Option<Instant>,
    frames: BTreeMap<u64, Passage>,
}

/// Times of one frame in the pipeline.
#[derive(Debug, Clone, Copy)]
pub struct Passage {
    /// When the frame reached clgaussian.
    pub entered: Instant,
    /// When the frame's last result came.
    pub left: Option<Instant>,
}

impl Passages {
    fn lock(&self) -> MutexGuard<'_, Under> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a frame last reached clgaussian.
    pub fn last_entered(&self) -> Option<Instant> {
        self.lock().last_entered
    }

    /// Forgets frames whose results will not come; returns their count. Numbering continues.
    pub fn forget(&self) -> u64 {
        let mut under = self.lock();
        under.last_entered = None;
        std::mem::take(&mut under.frames).len() as u64
    }

    fn enter(&self) -> u64 {
        let mut under = self.lock();
        let now = Instant::now();
        let number = under.next;
        under.next += 1;
        under.last_entered = Some(now);
        under.frames.insert(
            number,
            Passage {
                entered: now,
                left: None,
            },
        );
        number
    }

    fn leave(&self, number: u64) {
        if let Some(passage) = self.lock().frames.get_mut(&number) {
            passage.left = Some(Instant::now());
        }
    }

    fn take(&self, number: u64) -> Option<Passage> {
        self.lock().frames.remove(&number)
    }
}

/// An inspected frame.
#[derive(Debug)]
pub struct Inspected {
    /// Number of frames before, over all restarts of the source.
    pub number: u64,
    /// The output of clgaussian.
    pub frame: gst::Sample,
    /// Its histogram.
    pub histogram: HistogramResult,
    /// Its verdict, defects and packed mask, if a pitch is known.
    pub judged: Option<(DefectResult, gst::Buffer)>,
    /// When the frame entered and when its last result came.
    pub passage: Passage,
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
        let tee = element("tee")?;
        pipeline.add_many([source.upcast_ref(), &gaussian, &tee])?;
        gst::Element::link_many([source.upcast_ref(), &gaussian, &tee])?;

        let histogram = element("clhistogram")?;
        histogram.set_property("device", &inspection.device);
        histogram.set_property("bit-depth", inspection.bit_depth);
        let histograms = branch(&pipeline, &tee, &histogram, None, passages)?;
        let masks = inspection
            .comparison
            .as_ref()
            .map(|comparison| {
                let pitch = element("clpitchthreshold")?;
                pitch.set_property("device", &inspection.device);
                pitch.set_property("bit-depth", inspection.bit_depth);
                pitch.set_property("pitch-x", comparison.pitch_x);
                pitch.set_property("pitch-y", comparison.pitch_y);
                pitch.set_property("threshold", comparison.threshold);
                pitch.set_property_from_str("compare", comparison.compare);
                pitch.set_property("match-center", comparison.match_center);
                pitch.set_property("multiples", gst::Array::new(&comparison.multiples));
                pitch.set_property_from_str("polarity", comparison.polarity);
                pitch.set_property("fail-defect-pixels", comparison.fail_defect_pixels);
                pitch.set_property("min-area", comparison.min_area);
                pitch.set_property("merge-distance", comparison.merge_distance);
                let caps = gst::Caps::new_empty_simple("video/x-bitmask");
                branch(&pipeline, &tee, &pitch, Some(&caps), passages)
            })
            .transpose()?;

        let numbers = passages.clone();
        probe(&gaussian, "sink", move |buffer| {
            let number = numbers.enter();
            // Frames that this program made have their number already; setting it would copy them.
            if buffer.offset() != number {
                buffer.make_mut().set_offset(number);
            }
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
        })
    }

    /// Starts the pipeline; returns whether the source is live.
    ///
    /// # Errors
    /// The message of the element that does not start.
    pub fn start(&self) -> Result<bool, ElementFailure> {
        let refused = |_| {
            self.failure().unwrap_or_else(|| ElementFailure {
                text: "the pipeline does not start".into(),
                in_source: false,
                is_usage: false,
            })
        };
        let paused = self
            .pipeline
            .set_state(gst::State::Paused)
            .map_err(refused)?;
        self.pipeline
            .set_state(gst::State::Playing)
            .map_err(refused)?;
        Ok(paused == gst::StateChangeSuccess::NoPreroll)
    }

    /// Waits up to `timeout` for the next event. Frames that were inspected before a failure come
    /// first.
    pub fn next(&mut self, timeout: gst::ClockTime) -> Next {
        if self.half.is_none() {
            self.half = self.histograms.try_pull_sample(timeout);
        }
        let Some(frame) = self.half.take() else {
            return self.without_frame(&self.histograms);
        };
        let mask = match &self.masks {
            None => None,
            Some(masks) => match masks.try_pull_sample(timeout) {
                Some(mask) => Some(mask),
                None => {
                    self.half = Some(frame);
                    return self.without_frame(masks);
                }
            },
        };
        self.join(frame, mask.as_ref())
            .map_or_else(Next::Failed, |inspected| Next::Frame(Box::new(inspected)))
    }

    /// Why `sink` has no result. EOS is read before the bus: an element posts its error before it
    /// ends the stream, so an EOS after an error is not mistaken for a good end.
    fn without_frame(&self, sink: &gst_app::AppSink) -> Next {
        let ended = sink.is_eos();
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
                let result = DefectResult::read(&buffer)
                    .pop()
                    .ok_or_else(|| lacks("its verdict"))?;
                Ok((result, buffer))
            })
            .transpose()?;
        let number = histogram.frame_number;
        if judged
            .as_ref()
            .is_some_and(|(result, _)| result.frame_number != number)
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

    /// The first error on the bus.
    fn failure(&self) -> Option<ElementFailure> {
        let message = self.bus.pop_filtered(&[gst::MessageType::Error])?;
        let gst::MessageView::Error(error) = message.view() else {
            return None;
        };
        let source = message.src();
        let name = source.map(|source| source.name()).unwrap_or_default();
        let reason = error.error();
        let mut text = format!("{name}: {}", reason.message());
        // The text of the base classes names no reason; the last line of the details does.
        let details = error.debug();
        if reason.matches(gst::StreamError::Failed)
            && let Some(line) = details.as_ref().and_then(|d| d.lines().last())
        {
            text = format!("{text} ({line})");
        }
        Some(ElementFailure {
            text,
            in_source: source.is_some_and(|source| source.has_as_ancestor(&self.source)),
            is_usage: reason.matches(gst::LibraryError::Settings),
        })
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

/// A queue, the analyzer and an appsink behind the tee.
fn branch(
    pipeline: &gst::Pipeline,
    tee: &gst::Element,
    analyzer: &gst::Element,
    caps: Option<&gst::Caps>,
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
        .max_buffers(WAITING_RESULTS)
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

/// Time from entering to the last result.
pub fn latency(passage: &Passage) -> Duration {
    passage
        .left
        .map_or(Duration::ZERO, |left| left - passage.entered)
}
