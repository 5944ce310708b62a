//! Readers, writers and kernels on one buffer behind a tee, on a device with memory of its own: hundreds of frames, which
//! equal those of the CPU.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use clinspect_testkit::support::Pipeline;
use gst::prelude::*;

use crate::{
    cases::GPU,
    child, layer,
    stand::{fingerprint, results},
};

const FRAMES: usize = 500;
/// Less than the time after which a silent child is ended.
const LIMIT: gst::ClockTime = gst::ClockTime::from_seconds(50);

/// Names, and what is behind the source. Sinks whose names begin with `reads` map the frame, the others read results only.
pub const ALL: &[(&str, &str)] = &[
    (
        "a kernel and a reader",
        "video/x-raw,format=GRAY8 ! clgaussian ! tee name=t \
         t. ! queue ! clhistogram ! SINK name=keeps \
         t. ! queue ! videoconvert ! video/x-raw,format=RGB ! SINK name=reads",
    ),
    (
        "two readers",
        "video/x-raw,format=GRAY8 ! clgaussian ! tee name=t \
         t. ! queue ! videoconvert ! video/x-raw,format=RGB ! SINK name=reads-rgb \
         t. ! queue ! videoflip method=horizontal-flip ! SINK name=reads-flipped",
    ),
    (
        "a kernel and a writer, which gets a copy",
        "video/x-raw,format=I420 ! clgaussian ! tee name=t \
         t. ! queue ! clhistogram ! SINK name=keeps \
         t. ! queue ! videobalance brightness=0.1 ! SINK name=reads",
    ),
    (
        "two kernels and a reader",
        "video/x-raw,format=GRAY8 ! clgaussian ! tee name=t \
         t. ! queue ! clhistogram ! SINK name=keeps-counts \
         t. ! queue ! clpitchthreshold pitch-x=8 min-contrast=0 ! video/x-bitmask ! SINK name=keeps-defects \
         t. ! queue max-size-buffers=1 ! SINK name=reads",
    ),
    (
        "two kernels and a reader on a frame of the source",
        "video/x-raw,format=GRAY8 ! tee name=t \
         t. ! queue ! clhistogram ! SINK name=keeps \
         t. ! queue ! clgaussian ! SINK name=reads-smoothed \
         t. ! queue ! SINK name=reads",
    ),
];

/// Runs a pipeline on the CPU, and on a device with memory of its own.
///
/// # Errors
/// An element's error, or the first frame that differs.
pub fn try_one(line: &str) -> Result<(), String> {
    layer::set_rules("");
    let expected = frames(line)?;
    layer::settle();
    layer::set_rules(GPU);
    let found = frames(line)?;
    layer::settle();
    for (sink, expected) in expected {
        let found = &found[&sink];
        if (found.len(), expected.len()) != (FRAMES, FRAMES) {
            let counts = format!("{} and {}", found.len(), expected.len());
            return Err(format!("{sink}: {counts} of {FRAMES} frames"));
        }
        if let Some(number) = (0..FRAMES).find(|&number| found[number] != expected[number]) {
            return Err(format!("{sink}: frame {number} differs"));
        }
    }
    Ok(())
}

/// What arrives at each sink.
fn frames(line: &str) -> Result<BTreeMap<String, Vec<u64>>, String> {
    let line = line.replace("SINK", "fakesink sync=false async=false");
    let line = line.replacen(" !", ",width=320,height=240,framerate=25/1 !", 1);
    let pipeline = Pipeline::new(&format!(
        "videotestsrc num-buffers={FRAMES} pattern=ball ! {line}"
    ));
    let arrived = Arc::<Mutex<BTreeMap<String, Vec<u64>>>>::default();
    for sink in pipeline.iterate_sinks().into_iter().flatten() {
        let (arrived, name) = (arrived.clone(), sink.name().to_string());
        let reads = name.starts_with("reads");
        let pad = sink.static_pad("sink").unwrap();
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            let buffer = info.buffer().unwrap();
            let found = match reads {
                true => fingerprint(buffer),
                false => results(buffer),
            };
            let mut arrived = arrived.lock().unwrap();
            // A frame that cannot be read is missing.
            arrived.entry(name.clone()).or_default().extend(found);
            gst::PadProbeReturn::Ok
        });
    }
    pipeline
        .set_state(gst::State::Playing)
        .map_err(|why| why.to_string())?;
    let ends = [gst::MessageType::Eos, gst::MessageType::Error];
    let bus = pipeline.bus().unwrap();
    let Some(end) = bus.timed_pop_filtered(LIMIT, &ends) else {
        let counts: Vec<String> = (arrived.lock().unwrap().iter())
            .map(|(sink, frames)| format!("{sink} {}", frames.len()))
            .collect();
        child::give_up(&format!("no end within {LIMIT}: {}", counts.join(", ")));
    };
    if let gst::MessageView::Error(error) = end.view() {
        return Err(error.to_string());
    }
    pipeline
        .set_state(gst::State::Null)
        .map_err(|why| why.to_string())?;
    let arrived = std::mem::take(&mut *arrived.lock().unwrap());
    Ok(arrived)
}
