//! The GStreamer elements, one folder each, and the templates `base_filter` and `inspector`.

mod arrays;
pub mod base_filter;
pub mod gaussian;
pub mod histogram;
mod inspector;
pub mod mask_unpack;
pub mod pitch_threshold;
mod property_table;
mod specs;
mod told;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex; a value that another thread left in a panic stays usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pad templates of an element whose input and output caps are the same.
fn same_caps_templates(formats: &[gst_video::VideoFormat]) -> Vec<gst::PadTemplate> {
    let caps = gst_video::VideoCapsBuilder::new()
        .format_list(formats.iter().copied())
        .build();
    pad_templates(&caps, &caps)
}

/// Pad templates `sink` and `src`.
fn pad_templates(sink: &gst::Caps, src: &gst::Caps) -> Vec<gst::PadTemplate> {
    [
        ("sink", gst::PadDirection::Sink, sink),
        ("src", gst::PadDirection::Src, src),
    ]
    .into_iter()
    .filter_map(|(name, direction, caps)| {
        gst::PadTemplate::new(name, direction, gst::PadPresence::Always, caps).ok()
    })
    .collect()
}
