//! How many cameras a device can take: frames a second of the recommended chain.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use gst::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    devices::Device,
    pipeline,
    probe::Probe,
    report::{Report, Section},
};

/// The sizes, with the words for them.
const SIZES: [([u32; 2], &str); 3] = [
    ([1920, 1080], "1080p"),
    ([2448, 2048], "5 megapixels"),
    ([4096, 3072], "12 megapixels"),
];
/// Frames a second of a camera.
const RATE: f64 = 30.0;
/// The share of the measured rate that the cameras may use.
const MARGIN: f64 = 0.5;
/// Frames before the measurement: the comparison learns the pitch, and compiles its kernels for settings that stayed the
/// same for 30 frames. A slow device gets less, see [`WARM_UP`].
const WARM_UP_FRAMES: u64 = 40;
/// Longest time before the measurement.
const WARM_UP: Duration = Duration::from_secs(4);
/// A measurement takes so long. The best of two counts: a compiler may still run during the first.
const WINDOW: Duration = Duration::from_secs(1);
const WINDOWS: usize = 2;
/// Name of the message with the result.
const MEASURED: &str = "doctor-measured";

/// A child's answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Measured {
    frames_per_second: f64,
    /// Why the verdict was none, if so: then the comparison did less than it does in an inspection.
    not_judged: Option<String>,
}

/// The result for a device and a size.
#[derive(Debug, Serialize)]
struct Speed {
    device: String,
    width: u32,
    height: u32,
    frames_per_second: f64,
    /// With the margin of half.
    cameras_at_30: u32,
}

/// The measurement in the sink's pad.
#[derive(Default)]
struct Counter {
    frames: u64,
    began: Option<Instant>,
    /// The start of the window, and the frames in it.
    window: Option<(Instant, u64)>,
    rates: Vec<f64>,
}

impl Counter {
    /// Counts a frame; the result at the end of the last window.
    fn frame(&mut self) -> Option<f64> {
        let now = Instant::now();
        let began = *self.began.get_or_insert(now);
        self.frames += 1;
        match &mut self.window {
            None => {
                let is_warm = self.frames >= WARM_UP_FRAMES || now - began >= WARM_UP;
                self.window = is_warm.then_some((now, 0));
            }
            Some((start, frames)) => {
                *frames += 1;
                let elapsed = now - *start;
                if elapsed >= WINDOW {
                    self.rates.push(*frames as f64 / elapsed.as_secs_f64());
                    self.window = Some((now, 0));
                }
            }
        }
        (self.rates.len() == WINDOWS).then(|| self.rates.drain(..).fold(0.0, f64::max))
    }
}

/// Measures the recommended chain.
///
/// # Errors
/// An element's own error.
pub fn probe(device: &str, size: [u32; 2]) -> Result<Measured, String> {
    let device = pipeline::device_property(device);
    // The source writes frames in a thread of its own, as a camera's does.
    let chain = format!(
        "queue max-size-buffers=2 max-size-bytes=0 max-size-time=0 ! clgaussian kernel-size=5 sigma=0.8 {device} ! \
         clpitchthreshold {device}"
    );
    let pipeline = pipeline::new(&chain, size, u64::MAX)?;
    let bus = pipeline.bus().ok_or("the pipeline has no bus")?;
    let sink = pipeline.by_name("sink").ok_or("the pipeline has no sink")?;
    let pad = sink.static_pad("sink").ok_or("the sink has no pad")?;
    let counter = Mutex::new(Counter::default());
    let weak = sink.downgrade();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
        let rate = counter.lock().ok().and_then(|mut counter| counter.frame());
        if let (Some(rate), Some(sink)) = (rate, weak.upgrade()) {
            let result = gst::Structure::builder(MEASURED)
                .field("rate", rate)
                .build();
            // A pipeline that stops has no bus.
            let _ = sink.post_message(
                gst::message::Application::builder(result)
                    .src(&sink)
                    .build(),
            );
        }
        gst::PadProbeReturn::Ok
    });
    let _ = pipeline.set_state(gst::State::Playing);
    let mut not_judged = None;
    let result = loop {
        let wanted = [
            gst::MessageType::Error,
            gst::MessageType::Eos,
            gst::MessageType::Element,
            gst::MessageType::Application,
        ];
        let message = bus.timed_pop_filtered(gst::ClockTime::NONE, &wanted);
        let Some(message) = message else {
            break Err("the pipeline ended without a message".into());
        };
        let structure = message.structure();
        let text = |field: &str| structure.and_then(|s| s.get::<String>(field).ok());
        match message.view() {
            gst::MessageView::Error(error) => break Err(pipeline::error_text(error)),
            gst::MessageView::Application(_) => {
                let rate = structure.and_then(|s| s.get::<f64>("rate").ok());
                break rate.ok_or_else(|| "the measurement has no result".into());
            }
            gst::MessageView::Element(_) => {
                if let Some(verdict) = text("verdict") {
                    not_judged = (verdict == "none").then(|| text("summary").unwrap_or_default());
                }
            }
            _ => break Err("the frames ended too early".into()),
        }
    };
    let _ = pipeline.set_state(gst::State::Null);
    result.map(|frames_per_second| Measured {
        frames_per_second,
        not_judged,
    })
}

/// Adds the section.
pub fn examine(report: &mut Report, limit: Duration, devices: &[Device]) {
    let mut section = Section::new("speed", "Frames a second of clgaussian ! clpitchthreshold");
    let mut speeds = Vec::new();
    for device in devices {
        let Device { selector, name, .. } = device;
        for (size, words) in SIZES {
            let probe = Probe::Speed {
                device: selector.clone(),
                size,
            };
            match probe.ask_device(limit, device) {
                Ok((measured, mended)) => {
                    let Measured {
                        frames_per_second,
                        not_judged,
                    } = measured;
                    if let Some(mended) = mended {
                        section.note(format!("{words} on {selector} ({name}): {mended}"));
                    }
                    section.ok(format!(
                        "{selector}: {}",
                        in_words(frames_per_second, words)
                    ));
                    if let Some(why) = not_judged {
                        section.note(format!(
                            "{words} on {selector}: the frames were not judged ({why})"
                        ));
                    }
                    speeds.push(Speed {
                        device: selector.clone(),
                        width: size[0],
                        height: size[1],
                        frames_per_second,
                        cameras_at_30: cameras(frames_per_second),
                    });
                }
                Err(trouble) => section.fault(
                    format!("{words} on {selector} ({name}): no measurement: {trouble}"),
                    device.advice(devices),
                ),
            }
        }
    }
    if devices.is_empty() {
        section.note("not measured: there is no device on which all operators work");
    } else {
        section.note(
            "all devices and programs share the PC's cores and memory: the figures of two devices do not add up, and \
             other programs make them smaller",
        );
    }
    section.set_data(&speeds);
    report.add(section);
}

/// Cameras that a measured rate is enough for.
fn cameras(frames_per_second: f64) -> u32 {
    (frames_per_second * MARGIN / RATE).floor() as u32
}

/// What a measured rate means for cameras of a size.
fn in_words(frames_per_second: f64, size: &str) -> String {
    const NUMBERS: [&str; 13] = [
        "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    let measured = format!("{frames_per_second:.0} frames/s measured");
    match cameras(frames_per_second) {
        0 => format!(
            "no camera of {size} at 30 frames/s; one at {:.0} frames/s with a margin of half ({frames_per_second:.0} \
             frames/s measured)",
            (frames_per_second * MARGIN).floor()
        ),
        1 => format!("one camera of {size} at 30 frames/s with a margin of half ({measured})"),
        number => {
            let word = NUMBERS
                .get(number as usize)
                .map_or_else(|| number.to_string(), ToString::to_string);
            format!("{word} cameras of {size} at 30 frames/s with a margin of half ({measured})")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_how_many_cameras_fit() {
        let words = |rate| in_words(rate, "5 megapixels");
        assert_eq!(
            words(146.0),
            "two cameras of 5 megapixels at 30 frames/s with a margin of half (146 frames/s measured)"
        );
        assert_eq!(
            words(119.9),
            "one camera of 5 megapixels at 30 frames/s with a margin of half (120 frames/s measured)"
        );
        assert_eq!(
            words(60.0),
            "one camera of 5 megapixels at 30 frames/s with a margin of half (60 frames/s measured)"
        );
        assert_eq!(
            words(23.9),
            "no camera of 5 megapixels at 30 frames/s; one at 11 frames/s with a margin of half (24 frames/s measured)"
        );
        assert!(
            words(12000.0).starts_with("200 cameras of"),
            "{}",
            words(12000.0)
        );
    }
}
