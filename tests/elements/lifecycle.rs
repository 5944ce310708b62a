//! Starts, stops, and recovery after a fault.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::HistogramResult;

use crate::{
    frames::PLAIN,
    support::{Pipeline, buffer_of, caps_of, faults, noise, start},
};

const CHAIN: &str =
    "clgaussian name=g ! clhistogram name=h ! clpitchthreshold name=p PUBLISHED pitch-x=4";

#[test]
fn chain_started_and_stopped_over_and_over_runs_every_time() {
    if start().is_none() {
        return;
    }
    let line = format!(
        "videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8,width=64,height=16 ! {CHAIN} ! \
         fakesink sync=false"
    );
    let pipeline = Pipeline::new(&line);
    for _ in 0..20 {
        pipeline.set_state(gst::State::Playing).unwrap();
        assert_eq!(pipeline.wait_for_end().type_(), gst::MessageType::Eos);
        pipeline.set_state(gst::State::Null).unwrap();
        let stats: gst::Structure = pipeline.get::<gst::Element>("p").property("stats");
        assert_eq!(stats.get::<u64>("frames"), Ok(3));
    }
    // Stop while frames are in flight.
    pipeline
        .iterate_sources()
        .into_iter()
        .flatten()
        .for_each(|source| source.set_property("num-buffers", -1));
    for _ in 0..10 {
        pipeline.set_state(gst::State::Playing).unwrap();
        pipeline.set_state(gst::State::Null).unwrap();
    }
}

#[test]
fn flushing_seeks_lose_no_pipeline() {
    if start().is_none() {
        return;
    }
    let line = format!(
        "videotestsrc num-buffers=400 ! video/x-raw,format=GRAY8,width=64,height=16 ! {CHAIN} ! \
         fakesink sync=false"
    );
    let pipeline = Pipeline::new(&line);
    pipeline.set_state(gst::State::Playing).unwrap();
    for _ in 0..20 {
        // The source refuses a seek after EOS; that is not a failure.
        let _ = pipeline.seek_simple(gst::SeekFlags::FLUSH, gst::ClockTime::ZERO);
    }
    assert_eq!(pipeline.wait_for_end().type_(), gst::MessageType::Eos);
    pipeline.set_state(gst::State::Null).unwrap();
}

#[test]
fn element_goes_on_after_a_fault_and_a_restart() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, [40, 8], PLAIN);
    let line = format!("appsrc name=in format=time ! {CHAIN} ! appsink name=out sync=false");
    let pipeline = Pipeline::new(&line);
    let input: gst_app::AppSrc = pipeline.get("in");
    let output: gst_app::AppSink = pipeline.get("out");
    input.set_caps(Some(&caps_of(&frame)));
    for _ in 0..3 {
        pipeline.set_state(gst::State::Playing).unwrap();
        for number in 0..2 {
            input.push_buffer(buffer_of(&frame, &device)).unwrap();
            let sample = output.pull_sample().unwrap();
            let result = &HistogramResult::read(sample.buffer().unwrap())[0];
            // Counts restart at every start.
            assert_eq!(result.frame_number, number);
        }
        input
            .push_buffer(gst::Buffer::with_size(10).unwrap())
            .unwrap();
        assert_eq!(pipeline.wait_for_end().type_(), gst::MessageType::Error);
        pipeline.set_state(gst::State::Null).unwrap();
        // Ignore the error that the source posts.
        faults(&pipeline.bus().unwrap(), gst::MessageType::Error);
    }
}

#[test]
fn many_pipelines_at_once_find_what_one_finds() {
    if start().is_none() {
        return;
    }
    let line = format!(
        "videotestsrc num-buffers=8 pattern=ball ! video/x-raw,format=GRAY8,width=96,height=64 ! \
         {CHAIN} ! appsink name=out sync=false max-buffers=20"
    );
    let collect = |pipeline: &Pipeline| -> Vec<(Vec<u8>, Vec<u32>)> {
        let output: gst_app::AppSink = pipeline.get("out");
        std::iter::from_fn(|| output.pull_sample().ok())
            .map(|sample| {
                let buffer = sample.buffer().unwrap();
                let mask = buffer.map_readable().unwrap().to_vec();
                (mask, HistogramResult::read(buffer)[0].counts.clone())
            })
            .collect()
    };
    let run = || {
        let pipeline = Pipeline::new(&line);
        pipeline.set_state(gst::State::Playing).unwrap();
        pipeline
    };
    let alone = run();
    let expected = collect(&alone);
    assert_eq!(expected.len(), 8);
    alone.set_state(gst::State::Null).unwrap();
    let together: Vec<Pipeline> = (0..4).map(|_| run()).collect();
    for pipeline in together {
        assert!(collect(&pipeline) == expected, "other pixels than alone");
    }
}
