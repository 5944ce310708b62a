//! White and dark references of the flat field, from frames that were collected.

use std::{sync::Arc, time::Duration};

use gst::prelude::*;

use crate::{config::CameraConfig, frame::Frame, pipeline::error_text};

/// Longest wait for the message that a reference was taken.
const LIMIT: gst::ClockTime = gst::ClockTime::from_seconds(30);

/// Averages the frames. The element writes the file that the settings name.
///
/// # Errors
/// A sentence, in the element's words.
pub fn take(
    config: &CameraConfig,
    is_white: bool,
    frames: &[Arc<Frame>],
) -> Result<String, String> {
    let properties = config
        .flat_field
        .as_ref()
        .ok_or("switch the flat field on first")?;
    let refused = |error: gst::glib::BoolError| error.message.into_owned();
    let first = frames.first().ok_or("no frame was collected")?;
    let caps = first.info().to_caps().map_err(refused)?;
    let source = gst_app::AppSrc::builder()
        .format(gst::Format::Time)
        .caps(&caps)
        .build();
    let element = gst::ElementFactory::make("clflatfield")
        .build()
        .map_err(refused)?;
    if let Some(device) = &config.device {
        element.set_property("device", device);
    }
    properties.apply(&element);
    let count = u32::try_from(frames.len()).map_err(|error| error.to_string())?;
    element.set_property("average-frames", count);
    let sink = gst::ElementFactory::make("fakesink")
        .property("sync", false)
        .build()
        .map_err(refused)?;
    let pipeline = gst::Pipeline::new();
    let chain = [source.upcast_ref(), &element, &sink];
    pipeline.add_many(chain).map_err(refused)?;
    gst::Element::link_many(chain).map_err(refused)?;
    let answer = run(&pipeline, &source, &element, is_white, frames);
    // There is nothing to do if the pipeline does not stop.
    let _ = pipeline.set_state(gst::State::Null);
    answer
}

fn run(
    pipeline: &gst::Pipeline,
    source: &gst_app::AppSrc,
    element: &gst::Element,
    is_white: bool,
    frames: &[Arc<Frame>],
) -> Result<String, String> {
    let bus = pipeline.bus().ok_or("a pipeline has no bus")?;
    let started = pipeline.set_state(gst::State::Playing);
    started.map_err(|_| "the flat field does not start".to_owned())?;
    element.emit_by_name::<()>(if is_white { "take-white" } else { "take-dark" }, &[]);
    for (number, frame) in (0_u64..).zip(frames) {
        let mut buffer = frame.buffer().copy();
        buffer
            .make_mut()
            .set_pts(gst::ClockTime::from_mseconds(number));
        source
            .push_buffer(buffer)
            .map_err(|error| error.to_string())?;
    }
    let _ = source.end_of_stream();
    let kinds = [
        gst::MessageType::Element,
        gst::MessageType::Error,
        gst::MessageType::Warning,
        gst::MessageType::Eos,
    ];
    loop {
        let message = bus.timed_pop_filtered(LIMIT, &kinds);
        let message = message.ok_or_else(|| {
            format!(
                "no reference came within {} s",
                Duration::from(LIMIT).as_secs()
            )
        })?;
        match message.view() {
            gst::MessageView::Error(error) => return Err(error_text(error)),
            gst::MessageView::Warning(warning) => return Err(warning.error().message().to_owned()),
            gst::MessageView::Eos(_) => return Err("the reference was not taken".to_owned()),
            gst::MessageView::Element(element) => {
                let said = element
                    .structure()
                    .filter(|of| of.name() == "clflatfield-reference");
                if let Some(said) = said {
                    let mean: f64 = said.get("mean").unwrap_or_default();
                    let kind = if is_white { "white" } else { "dark" };
                    return Ok(format!(
                        "the {kind} reference of {} frames is taken; its mean level is {mean:.1}",
                        frames.len()
                    ));
                }
            }
            _ => {}
        }
    }
}
