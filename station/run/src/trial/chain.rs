//! The pipeline of a trial: `appsrc ! elements that inspect ! appsink`.

use std::time::{Duration, Instant};

use clinspect_results::{HistogramResult, report::Report, time};
use gst::{glib, prelude::*};
use plan::CameraConfig;

use super::{Mask, TrialResult};
use crate::{frame::Frame, pipeline::Part, stopped::error_text};

/// Longest wait for a result. The driver may compile kernels before the first one.
const LIMIT: Duration = Duration::from_secs(60);
/// How often the wait looks for an error.
const LOOK: gst::ClockTime = gst::ClockTime::from_mseconds(50);

/// A pipeline that runs; stopped when dropped.
pub(super) struct Chain {
    pipeline: gst::Pipeline,
    bus: gst::Bus,
    source: gst_app::AppSrc,
    sink: gst_app::AppSink,
    pub parts: Vec<Part>,
    pub analyzer: gst::Element,
    /// The messages of the elements, until they are cleared.
    pub messages: Vec<gst::Structure>,
    /// The last warning of an element, until it is cleared.
    pub warning: Option<String>,
    frames: u64,
}

impl Chain {
    /// Starts it with the settings as they are.
    pub fn start(config: &CameraConfig) -> Result<Self, String> {
        Self::build(config).map_err(|error| error.message.into_owned())
    }

    fn build(config: &CameraConfig) -> Result<Self, glib::BoolError> {
        let source = gst_app::AppSrc::builder().format(gst::Format::Time).build();
        let sink = gst_app::AppSink::builder().sync(false).build();
        let parts = Part::make_all(config)?;
        let lacks = || glib::bool_error!("the pipeline lacks an analyzer");
        let analyzer = parts.last().ok_or_else(lacks)?.element.clone();
        let pipeline = gst::Pipeline::new();
        let mut elements: Vec<&gst::Element> = vec![source.upcast_ref()];
        elements.extend(parts.iter().map(|part| &part.element));
        elements.push(sink.upcast_ref());
        pipeline.add_many(&elements)?;
        gst::Element::link_many(&elements)?;
        let bus = pipeline.bus().ok_or_else(lacks)?;
        let chain = Self {
            bus,
            source,
            sink,
            parts,
            analyzer,
            messages: Vec::new(),
            warning: None,
            frames: 0,
            pipeline,
        };
        let started = chain.pipeline.set_state(gst::State::Playing);
        started.map_err(|_| {
            let why = chain.error_on_bus();
            let why = why.unwrap_or_else(|| "the pipeline for the trial does not start".to_owned());
            glib::BoolError::new(why, file!(), module_path!(), line!())
        })?;
        Ok(chain)
    }

    fn error_on_bus(&self) -> Option<String> {
        let message = self.bus.pop_filtered(&[gst::MessageType::Error])?;
        match message.view() {
            gst::MessageView::Error(error) => Some(error_text(error)),
            _ => None,
        }
    }

    /// Whether the elements can use their settings, as far as no frame decides.
    ///
    /// # Errors
    /// An element's own words.
    pub fn check(&self) -> Result<(), String> {
        let mut elements = self.parts.iter().map(|part| &part.element);
        elements.try_for_each(gstclinspect::check_settings)
    }

    /// Inspects a frame, and waits for its result. `number` becomes its frame number.
    ///
    /// # Errors
    /// A sentence. The chain is then of no more use.
    pub fn judge(&mut self, frame: &Frame, number: u64) -> Result<TrialResult, String> {
        let caps = frame.info().to_caps().map_err(|error| error.to_string())?;
        if self.source.caps().as_ref() != Some(&caps) {
            self.source.set_caps(Some(&caps));
        }
        // It shares the frame's memory.
        let mut buffer = frame.buffer().copy();
        let of_buffer = buffer.make_mut();
        of_buffer.set_pts(gst::ClockTime::from_mseconds(self.frames));
        of_buffer.set_offset(number);
        self.frames += 1;
        if self.source.push_buffer(buffer).is_err() {
            self.listen()?;
            return Err("the pipeline for the trial has stopped".to_owned());
        }
        let end = Instant::now() + LIMIT;
        let sample = loop {
            if let Some(sample) = self.sink.try_pull_sample(LOOK) {
                break sample;
            }
            self.listen()?;
            if Instant::now() > end {
                return Err(format!(
                    "the frame was not judged within {} s",
                    LIMIT.as_secs()
                ));
            }
        };
        self.listen()?;
        let nothing = || "the frame came back without results".to_owned();
        let buffer = sample.buffer().ok_or_else(nothing)?;
        let now = time::iso_8601(std::time::SystemTime::now());
        let report = Report::of(buffer, None, now).ok_or_else(nothing)?;
        let of_mask = report.inspections.last().ok_or_else(nothing)?;
        let bits = buffer.map_readable().map_err(|error| error.to_string())?;
        let mask = Mask {
            width: of_mask.width,
            height: of_mask.height,
            bits: bits.to_vec(),
        };
        Ok(TrialResult {
            mask,
            histogram: HistogramResult::read(buffer).pop(),
            report,
            warning: self.warning.clone(),
        })
    }

    /// Takes what the elements said.
    ///
    /// # Errors
    /// An element's error, as a sentence.
    fn listen(&mut self) -> Result<(), String> {
        while let Some(message) = self.bus.pop() {
            self.take(&message)?;
        }
        Ok(())
    }

    fn take(&mut self, message: &gst::Message) -> Result<(), String> {
        match message.view() {
            gst::MessageView::Error(error) => return Err(error_text(error)),
            gst::MessageView::Warning(warning) => {
                let error = warning.error();
                let text = error.message().to_owned();
                if error.matches(gst::ResourceError::Write) {
                    return Err(text);
                }
                self.warning = Some(text);
            }
            gst::MessageView::Element(element) => {
                (self.messages).extend(element.structure().map(ToOwned::to_owned));
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the analyzer has posted a message of this name since the last one was forgotten.
    ///
    /// # Errors
    /// A sentence if an element has failed.
    pub fn has_said(&mut self, name: &str) -> Result<bool, String> {
        self.listen()?;
        Ok(self.messages.iter().any(|message| message.name() == name))
    }

    /// A message of an element, for which it waits up to `limit`.
    ///
    /// # Errors
    /// A sentence if it does not come, or if the element says why.
    pub fn message(&mut self, name: &str, limit: Duration) -> Result<gst::Structure, String> {
        let end = Instant::now() + limit;
        loop {
            self.listen()?;
            if let Some(found) = self.messages.iter().find(|message| message.name() == name) {
                return Ok(found.clone());
            }
            if Instant::now() > end {
                let nothing = || format!("no message {name} came within {} s", limit.as_secs());
                return Err(self.warning.clone().unwrap_or_else(nothing));
            }
            if let Some(message) = self.bus.timed_pop(LOOK) {
                self.take(&message)?;
            }
        }
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        // There is nothing to do if the pipeline does not stop.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}
