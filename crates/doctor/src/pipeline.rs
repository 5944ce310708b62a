//! Pipelines of the probes: frames of a pattern through elements on a device.

use gst::prelude::*;

use crate::source::{Frames, Source};

/// Distance after which the pattern repeats, pixels.
const PITCH: usize = 16;
/// Grey levels of the pattern's fields, and of the gaps between them.
const LEVELS: [u8; 2] = [160, 60];
/// The noise is this many grey levels at most.
const NOISE: u32 = 5;

/// A pipeline: the source, `chain` in the notation of gst-launch, and the sink `sink`.
///
/// # Errors
/// An element is missing, or has no such property.
pub fn new(chain: &str, size: [u32; 2], count: u64) -> Result<gst::Pipeline, String> {
    let text = |error: gst::glib::Error| error.message().to_owned();
    let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, size[0], size[1])
        .fps(gst::Fraction::new(30, 1))
        .build()
        .map_err(|error| error.to_string())?;
    let source = Source::new(Frames {
        info,
        samples: pattern(size),
        count,
    });
    let chain = format!("{chain} ! fakesink name=sink sync=false");
    let chain = gst::parse::bin_from_description(&chain, true).map_err(text)?;
    let pipeline = gst::Pipeline::new();
    let failed = |error: gst::glib::BoolError| error.message.to_string();
    pipeline
        .add_many([source.upcast_ref::<gst::Element>(), chain.upcast_ref()])
        .map_err(failed)?;
    source.link(&chain).map_err(failed)?;
    Ok(pipeline)
}

/// A display panel's frame: bright fields, dark gaps and the noise of a sensor.
fn pattern([width, height]: [u32; 2]) -> Vec<u8> {
    let (width, height) = (width as usize, height as usize);
    // A linear congruential generator; its low bits repeat soon.
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 16) % (NOISE + 1)) as u8
    };
    let is_gap = |at: usize| at % PITCH < PITCH / 4;
    let mut samples = Vec::with_capacity(width * height);
    for y in 0..height {
        for x in 0..width {
            samples.push(LEVELS[usize::from(is_gap(x) || is_gap(y))] + noise());
        }
    }
    samples
}

/// The error's text, with the element and what the element says besides.
pub fn error_text(error: &gst::message::Error) -> String {
    error.error().message().to_owned()
}

/// The quoted value of the property `device` in the notation of gst-launch.
pub fn device_property(selector: &str) -> String {
    let quoted = selector.replace('\\', "\\\\").replace('"', "\\\"");
    format!("device=\"{quoted}\"")
}
