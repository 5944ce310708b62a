//! Why a pipeline stopped.

use gst::prelude::*;

use crate::state::Trouble;

/// Why a pipeline stopped, and a text for people.
pub type StopReason = (Trouble, String);

/// The reason behind an error message. `bin` is the camera's part of the pipeline.
pub fn stopped_by(message: &gst::message::Error, bin: &gst::Bin) -> StopReason {
    let error = message.error();
    let details = message.debug().unwrap_or_default();
    let origin = message.src();
    let in_source = origin.is_some_and(|origin| origin.has_as_ancestor(bin));
    let text = error_text(message);
    if in_source && let Some(text) = held_by_another(&text) {
        return (Trouble::CameraLost, text);
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

/// An error message as a sentence.
pub fn error_text(message: &gst::message::Error) -> String {
    let error = message.error();
    let details = message.debug().unwrap_or_default();
    let element = message
        .src()
        .and_then(|of| of.downcast_ref::<gst::Element>());
    let factory = element.and_then(|element| element.factory());
    let factory = factory.map_or_else(|| "the pipeline".into(), |factory| factory.name());
    // The texts of the base classes name no reason; the last line of the details does.
    let text = format!("{factory}: {}", error.message());
    match details.lines().last() {
        Some(line) if error.matches(gst::StreamError::Failed) => format!("{text} ({line})"),
        _ => text,
    }
}

/// What a camera's refusal means if another program controls it: a GigE camera obeys one program, and either refuses the
/// others or does not answer when they write. It answers when they look for it.
pub fn held_by_another(text: &str) -> Option<String> {
    let text_lower = text.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text_lower.contains(word));
    let is_held = has(&["write_register", "write_memory"])
        && has(&["timeout", "access-denied", "access_denied", "access denied"])
        || has(&["not controller", "not-controller", "can't control"]);
    is_held.then(|| {
        format!(
            "the camera answers, but takes no settings: probably another program, station or table of the file controls it. \
             End the other one; the camera is free some seconds later ({text})"
        )
    })
}
