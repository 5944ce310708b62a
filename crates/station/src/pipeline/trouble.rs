//! What stopped a pipeline, from the error that an element posted.

use gst::prelude::*;

use crate::state::Trouble;

/// A reason, and its text for people.
pub type Stopped = (Trouble, String);

/// The reason behind an error message. `source` is the camera's part of the pipeline.
pub fn of(message: &gst::message::Error, source: &gst::Bin) -> Stopped {
    let error = message.error();
    let details = message.debug().unwrap_or_default();
    let origin = message.src();
    let in_source = origin.is_some_and(|origin| origin.has_as_ancestor(source));
    let element = origin.and_then(|origin| origin.downcast_ref::<gst::Element>());
    let factory = element.and_then(|element| element.factory());
    let factory = factory.map_or_else(|| "the pipeline".into(), |factory| factory.name());
    // The texts of the base classes name no reason; the last line of the details does.
    let mut text = format!("{factory}: {}", error.message());
    if error.matches(gst::StreamError::Failed)
        && let Some(line) = details.lines().last()
    {
        text = format!("{text} ({line})");
    }
    let is_refused = error.matches(gst::LibraryError::Settings)
        || error.matches(gst::StreamError::Format)
        || error.matches(gst::StreamError::WrongType)
        || error.matches(gst::CoreError::Negotiation)
        || error.matches(gst::ResourceError::Settings)
        || details.contains("not-negotiated");
    let trouble = if is_refused {
        Trouble::SettingsRefused
    } else if in_source || error.matches(gst::StreamError::Failed) {
        // An element that inspects posts StreamError::Failed for a frame that cannot be read.
        Trouble::CameraLost
    } else {
        Trouble::DeviceLost
    };
    (trouble, text)
}
