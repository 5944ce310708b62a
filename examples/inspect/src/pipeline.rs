//! The pipeline: source ! clgaussian ! clhistogram ! clpitchthreshold or clreference ! appsink, or source ! clhistogram !
//! cltexture ! appsink.

use anyhow::{Context, Error, Result};
use gst::prelude::*;

use crate::{Args, Usage, source::Source};

/// A camera does not wait for the inspection, unless four frames wait.
const QUEUE: &str = "queue max-size-buffers=4 max-size-bytes=0 max-size-time=0";
/// Removes the camera's noise, and keeps defects of a few pixels.
const SMOOTHING: &str = "clgaussian name=gaussian kernel-size=5 sigma=0.8 !";
/// For camera noise of about four grey levels. Both pitches are estimated from the frames.
const PITCH: &str = "clpitchthreshold threshold=12 merge-distance=3";
/// For prints that move by some pixels under a light that changes (docs/quality.md, "Labels").
const REFERENCE: &str =
    "clreference threshold=14 align=translation normalize=gain edge-tolerance=1 merge-distance=3";
/// Smooths frames itself.
const TEXTURE: &str = "cltexture merge-distance=3";
const POLL: gst::ClockTime = gst::ClockTime::from_mseconds(500);

/// The next event of the pipeline; `Nothing` after half a second (`POLL`) without one.
pub enum Next {
    /// An inspected frame, with its results as metas.
    Frame(gst::Sample),
    Nothing,
    End,
    SourceFailed(Error),
    Failed(Error),
}

/// A pipeline; stopped when dropped.
pub struct Pipeline {
    pipeline: gst::Pipeline,
    bus: gst::Bus,
    results: gst_app::AppSink,
    /// The first error on the bus.
    failed: Option<Next>,
}

impl Pipeline {
    /// Builds the pipeline.
    pub fn new(source: &Source, args: &Args) -> Result<Self> {
        let (smoothing, comparison) = match args {
            Args { train: Some(_), .. } => (SMOOTHING, REFERENCE),
            Args {
                texture: Some(_), ..
            } => ("", TEXTURE),
            _ => (SMOOTHING, PITCH),
        };
        // Only what the user wrote as a description becomes text of the pipeline.
        let description = format!(
            "{} ! videoconvert ! video/x-raw,format={{GRAY8,GRAY16_LE}} ! {QUEUE} ! {smoothing} \
             clhistogram name=histogram ! {comparison} name=inspector output=frame {} ! \
             appsink name=results sync=false max-buffers=4",
            source.description, args.inspection
        );
        let flags = gst::ParseFlags::FATAL_ERRORS;
        let pipeline = gst::parse::launch_full(&description, None, flags)
            .map_err(|error| Usage(format!("{} in: {description}", error.message())))?;
        let pipeline = pipeline.downcast::<gst::Pipeline>();
        let pipeline = pipeline.ok().context("several elements are a pipeline")?;
        let element = |name: &str| pipeline.by_name(name).context("an element of the pipeline");
        let bit_depth: u32 = element("inspector")?.property("bit-depth");
        element("histogram")?.set_property("bit-depth", bit_depth);
        let (gaussian, inspector) = (pipeline.by_name("gaussian"), element("inspector")?);
        if let Some(device) = &args.device {
            let elements = [&element("histogram")?, &inspector];
            for element in elements.into_iter().chain(&gaussian) {
                element.set_property("device", device);
            }
        }
        if args.line_scan {
            for element in [&inspector].into_iter().chain(&gaussian) {
                element.set_property("line-scan", true);
            }
        }
        // The file outlives a restart of the source. `--inspection` may name another one.
        let is_named = |path: String| !path.is_empty();
        let file = |name: &str| {
            let file = args.output.clone().unwrap_or_default().join(name);
            let file = file.to_str().map(str::to_owned);
            file.context("the folder's name is no UTF-8; choose another name")
        };
        if let Some(frames) = args.train {
            inspector.set_property("train-frames", frames);
            if !(inspector.property::<Option<String>>("location")).is_some_and(is_named) {
                inspector.set_property("location", file("reference.npz")?);
            }
        }
        if let Some(frames) = args.texture {
            let mut learn: gst::Structure = inspector.property("learn");
            learn.set("frames", frames);
            if !learn.get("location").is_ok_and(is_named) {
                learn.set("location", file("texture.npz")?);
            }
            inspector.set_property("learn", learn);
        }
        source.feed(&pipeline);
        let results = element("results")?.downcast().ok().context("an appsink")?;
        let bus = pipeline.bus().context("a pipeline has a bus")?;
        Ok(Self {
            pipeline,
            bus,
            results,
            failed: None,
        })
    }

    /// Starts the pipeline; returns whether the source is live. [`Self::next`] returns a failure.
    pub fn start(&mut self) -> bool {
        let paused = self.pipeline.set_state(gst::State::Paused);
        let playing = paused.and_then(|_| self.pipeline.set_state(gst::State::Playing));
        self.read_bus();
        if let Err(error) = playing {
            self.failed.get_or_insert(Next::Failed(error.into()));
        }
        paused == Ok(gst::StateChangeSuccess::NoPreroll)
    }

    /// Waits for the next event. Frames that were inspected before a failure come first.
    pub fn next(&mut self) -> Next {
        let sample = self.results.try_pull_sample(POLL);
        // An element posts its error before it ends the stream, so the end is read first.
        let is_end = self.results.is_eos();
        self.read_bus();
        match sample {
            Some(sample) => Next::Frame(sample),
            None if self.failed.is_none() && is_end => Next::End,
            None => self.failed.take().unwrap_or(Next::Nothing),
        }
    }

    /// Ends the stream; frames in the pipeline are still inspected.
    pub fn end(&self) {
        self.pipeline.send_event(gst::event::Eos::new());
    }

    /// Takes the first error from the bus, and prints warnings.
    fn read_bus(&mut self) {
        while let Some(message) = self.bus.pop() {
            let name = message.src().map(|from| from.name()).unwrap_or_default();
            match message.view() {
                gst::MessageView::Error(error) => {
                    self.failed.get_or_insert_with(|| failed(error, &name));
                }
                gst::MessageView::Warning(warning) => {
                    eprintln!("warning: {name}: {}", warning.error().message());
                }
                _ => {}
            }
        }
    }
}

fn failed(message: &gst::message::Error, name: &str) -> Next {
    let error = message.error();
    let mut text = format!("{name}: {}", error.message());
    // The text of the base classes names no reason; the last line of the details does.
    let details = message.debug().unwrap_or_default();
    if error.matches(gst::StreamError::Failed) {
        text += &format!(" ({})", details.lines().last().unwrap_or_default());
    }
    let is_ours = ["gaussian", "histogram", "inspector"].contains(&name);
    // An element of ours misses nothing but the device.
    if error.matches(gst::LibraryError::Settings)
        || is_ours && error.matches(gst::ResourceError::NotFound)
    {
        return Next::Failed(Usage(text).into());
    }
    let failed = [Next::SourceFailed, Next::Failed][usize::from(is_ours)];
    failed(Error::msg(text))
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        // There is nothing to do if the pipeline does not stop.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}
