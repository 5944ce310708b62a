//! Frames for a draft: from a camera that the station runs, or from a camera that only the draft uses.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use clinspect_aravis::{Camera as GenICam, Control};
use gst::prelude::*;
use plan::{CameraConfig, PixelFormat, Source};
use run::{
    frame::Frame,
    pipeline::Front,
    source::set_controls,
    state::{Camera, Status},
    stopped::{StopReason, stopped_by},
};
use serde_json::{Map, Value, json};

/// Longest wait of a look at the bus.
const PACE: Duration = Duration::from_millis(20);

/// Where frames come from.
pub enum Feed {
    /// A camera whose inspection runs: it is only looked at.
    Running(Arc<Camera>),
    /// A camera of the draft's own.
    Own(OwnSource),
}

impl Feed {
    /// The frames of a camera of the draft's own.
    ///
    /// # Errors
    /// A sentence, if the source cannot be made or started.
    pub fn own(config: &CameraConfig) -> Result<Self, String> {
        OwnSource::start(config)
            .map(Self::Own)
            .map_err(|(_, text)| text)
    }

    /// The next frame, waited for up to `limit`; `None` if none comes.
    ///
    /// # Errors
    /// A sentence that says why no frame will come.
    pub fn next(&self, limit: Duration) -> Result<Option<Arc<Frame>>, String> {
        match self {
            Self::Running(camera) => {
                let frame = camera.tap.next(limit);
                match &*camera.status.borrow() {
                    Status::Failed(trouble, text) if frame.is_none() => {
                        Err(format!("{trouble}: {text}"))
                    }
                    _ => Ok(frame),
                }
            }
            Self::Own(own) => own.next(limit).map_err(|(_, text)| text),
        }
    }
}

/// A source that runs for a draft alone; stopped when dropped.
pub struct OwnSource {
    pipeline: gst::Pipeline,
    front: Front,
    sink: gst_app::AppSink,
    bus: gst::Bus,
}

impl OwnSource {
    fn start(config: &CameraConfig) -> Result<Self, StopReason> {
        let front = Front::build(config)?;
        let refused = |error: gst::glib::BoolError| {
            (
                run::state::Trouble::SettingsRefused,
                error.message.into_owned(),
            )
        };
        // A viewer wants the newest frame; older ones go.
        let sink = gst_app::AppSink::builder()
            .sync(false)
            .max_buffers(1)
            .drop(true)
            .caps(front.accepted())
            .build();
        let pipeline = gst::Pipeline::new();
        let mut chain = front.elements();
        chain.push(sink.upcast_ref());
        pipeline.add_many(&chain).map_err(refused)?;
        gst::Element::link_many(&chain).map_err(refused)?;
        drop(chain);
        let bus = pipeline
            .bus()
            .ok_or_else(|| refused(gst::glib::bool_error!("a pipeline has no bus")))?;
        let own = Self {
            pipeline,
            front,
            sink,
            bus,
        };
        match own.pipeline.set_state(gst::State::Playing) {
            Ok(_) => Ok(own),
            Err(_) => Err(own.trouble().unwrap_or_else(|| {
                (
                    run::state::Trouble::CameraLost,
                    "the camera does not start".to_owned(),
                )
            })),
        }
    }

    fn next(&self, limit: Duration) -> Result<Option<Arc<Frame>>, StopReason> {
        let until = Instant::now() + limit;
        loop {
            let wait = gst::ClockTime::try_from(PACE).unwrap_or(gst::ClockTime::ZERO);
            if let Some(sample) = self.sink.try_pull_sample(wait) {
                let Some((buffer, caps)) = sample.buffer_owned().zip(sample.caps()) else {
                    continue;
                };
                let refused = |text: String| (run::state::Trouble::SettingsRefused, text);
                let info = gst_video::VideoInfo::from_caps(caps)
                    .map_err(|_| refused(format!("frames of {caps} cannot be read")))?;
                return Frame::copy_of(&buffer, &info)
                    .map(|frame| Some(Arc::new(frame)))
                    .map_err(refused);
            }
            if let Some(stopped) = self.trouble() {
                return Err(stopped);
            }
            if Instant::now() >= until {
                return Ok(None);
            }
        }
    }

    /// Why the source stopped.
    fn trouble(&self) -> Option<StopReason> {
        let message = self
            .bus
            .pop_filtered(&[gst::MessageType::Error, gst::MessageType::Eos])?;
        Some(match message.view() {
            gst::MessageView::Error(error) => stopped_by(error, self.front.source()),
            _ => (
                run::state::Trouble::CameraLost,
                "the source has ended".to_owned(),
            ),
        })
    }

    /// Sets exposure, gain and black level, if nothing else changes; returns whether it does not.
    ///
    /// # Errors
    /// A sentence, if the camera refuses a value.
    pub fn set_controls(&self, old: &Source, new: &Source) -> Result<bool, String> {
        if !old.is_same_but_for_controls(new) {
            return Ok(false);
        }
        set_controls(new, self.front.source())?;
        Ok(true)
    }

    /// What of a GenICam camera can be set, with the ranges, and its pixel formats; null for other cameras.
    pub fn controls(&self) -> Value {
        let element = self.front.source().by_name(run::source::GENICAM);
        let object = element.and_then(|of| of.property::<Option<gst::glib::Object>>("camera"));
        let Some(camera) = object.and_then(|of| GenICam::of(&of).ok()) else {
            return Value::Null;
        };
        let names = [
            ("exposure", Control::Exposure),
            ("gain", Control::Gain),
            ("black-level", Control::BlackLevel),
        ];
        let controls = names.into_iter().filter_map(|(name, control)| {
            let of = camera.get(control).ok()??;
            Some((
                name.to_owned(),
                json!({ "value": of.value, "least": of.least, "most": of.most }),
            ))
        });
        let formats: Vec<String> = camera.pixel_formats().unwrap_or_default();
        let formats = formats
            .iter()
            .filter(|name| PixelFormat::by_name(name).is_some());
        json!({ "controls": controls.collect::<Map<String, Value>>(), "formats": formats.collect::<Vec<_>>() })
    }
}

impl Drop for OwnSource {
    fn drop(&mut self) {
        // There is nothing to do if the pipeline does not stop.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}
