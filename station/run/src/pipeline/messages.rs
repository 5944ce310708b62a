//! The messages of a pipeline's elements.

use std::{path::PathBuf, time::Duration};

use gst::prelude::*;
use machine::{info, warning};

use super::{LearnedProperty, Pipeline};
use crate::{
    secrets,
    state::{Camera, Trouble},
    stopped::{StopReason, stopped_by},
};

impl Pipeline {
    /// Waits up to `limit` for messages.
    ///
    /// # Errors
    /// Why the pipeline stopped.
    pub fn poll(&mut self, limit: Duration, camera: &Camera) -> Result<(), StopReason> {
        let limit = gst::ClockTime::try_from(limit).unwrap_or(gst::ClockTime::SECOND);
        let mut message = self.bus.timed_pop(limit);
        while let Some(next) = message {
            self.take(&next, camera)?;
            message = self.bus.pop();
        }
        Ok(())
    }

    fn take(&mut self, message: &gst::Message, camera: &Camera) -> Result<(), StopReason> {
        match message.view() {
            // Elements that did not start are removed, and the others go on.
            gst::MessageView::Error(_) if self.has_gone(message) => {}
            gst::MessageView::Error(error) => return Err(stopped_by(error, &self.source)),
            gst::MessageView::Eos(_) => {
                let text = "the source has ended".to_owned();
                return Err((Trouble::CameraLost, text));
            }
            gst::MessageView::Warning(warning) => {
                let from = source_name(message);
                let text = secrets::without_users(warning.error().message());
                if self.warned.get(&from) != Some(&text) {
                    if self.is_part(message) {
                        camera.alarm(text.clone());
                    } else {
                        warning!("camera {}: {text}", self.name);
                    }
                    self.warned.insert(from, text);
                }
            }
            gst::MessageView::Info(information) => {
                // The cause of the warning is over, so the next warning is shown again.
                self.warned.remove(&source_name(message));
                info!(
                    "camera {}: {}",
                    self.name,
                    secrets::without_users(information.error().message())
                );
            }
            // Sources post every step of a connection.
            gst::MessageView::Progress(progress) if self.is_part(message) => {
                info!("camera {}: {}", self.name, progress.get().2);
            }
            gst::MessageView::Latency(_) => {
                // Nothing to do if an element refuses: the sink does not synchronise.
                let _ = self.pipeline.recalculate_latency();
            }
            gst::MessageView::Element(element) => {
                // What elements learned that are gone belongs to other settings.
                let is_gone = self.has_gone(message);
                if let Some(structure) = element.structure().filter(|_| !is_gone) {
                    self.element_message(structure, camera);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether one of the station's elements sends a message.
    fn is_part(&self, message: &gst::MessageRef) -> bool {
        let of = message.src();
        (self.parts.iter()).any(|part| Some(part.element.upcast_ref::<gst::Object>()) == of)
    }

    /// Whether one of the station's elements sent a message before it was removed.
    fn has_gone(&self, message: &gst::MessageRef) -> bool {
        let of = message
            .src()
            .and_then(|of| of.downcast_ref::<gst::Element>());
        let pipeline: &gst::Element = self.pipeline.upcast_ref();
        of.is_some_and(|of| of != pipeline && of.parent().is_none())
    }

    /// Raises, logs or keeps the content of an element message.
    fn element_message(&mut self, structure: &gst::StructureRef, camera: &Camera) {
        let name = &self.name;
        match structure.name().as_str() {
            "clhistogram-alarm" => {
                let alarm: String = structure.get("alarm").unwrap_or_default();
                let value: f64 = structure.get("value").unwrap_or_default();
                if structure.get("raised").unwrap_or(true) {
                    camera.alarm(format!("{alarm}: {value:.3}"));
                } else {
                    info!("camera {name}: {alarm} is over");
                }
            }
            "clpitchthreshold-learned"
            | "clreference-learned"
            | "cltexture-learned"
            | "clsurface-learned" => {
                self.learn("threshold", structure.value("threshold"));
                self.learn("deviation-factor", structure.value("deviation-factor"));
                self.learn("scale-factors", structure.value("scale-factors"));
                self.learn("thresholds", structure.value("thresholds"));
                self.learn("component-limits", structure.value("component-limits"));
                self.learn("contrasts", structure.value("contrasts"));
                // It names the frames that set the limits.
                info!("camera {}: {structure}", self.name);
            }
            "clhistogram-reference" => {
                self.learn("alarm-drift-reference", structure.value("reference"));
            }
            "clreference-model" => {
                let frames = structure.get::<u32>("frames").unwrap_or_default();
                info!("camera {name}: a new reference of {frames} frames is in force");
            }
            "clpitchthreshold-limits-saved"
            | "clreference-limits-saved"
            | "cltexture-limits-saved"
            | "clsurface-limits-saved" => {
                let location: String = structure.get("location").unwrap_or_default();
                let location = PathBuf::from(location);
                // The link of a recipe tells people nothing.
                let location = location.canonicalize().unwrap_or(location);
                let location = location.display();
                info!("camera {name}: the learned limits are in the file {location}");
            }
            "clpitchthreshold-pitch" | "cltexture-pitch" | "clflatfield-reference" => {
                info!("camera {name}: {structure}")
            }
            _ => {}
        }
    }

    fn learn<E>(&mut self, name: &'static str, value: Result<&gst::glib::SendValue, E>) {
        if let Ok(value) = value {
            let value = value.clone();
            self.learned.push(LearnedProperty { name, value });
        }
    }
}

fn source_name(message: &gst::MessageRef) -> String {
    message.src().map(|of| of.name().into()).unwrap_or_default()
}
