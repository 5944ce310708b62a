//! `output=frame`: frames pass unchanged, with the results as metas.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::DefectResult;

use crate::{
    defects::{assert_boxes, assert_records, assert_regions},
    frames::{ARRANGEMENTS, Frame, PLAIN, read},
    oracle::pitch_threshold::compare,
    panels::{DEFAULT, RECOMMENDED, listed, recommended, spotted},
    support::{Pipeline, Rig, buffer_at, buffer_of, caps_of, constant, start},
};

const SIZE: [usize; 2] = [131, 79];
const THRESHOLD: f64 = 14.0;

fn element(scale: f64) -> String {
    let threshold = THRESHOLD * scale;
    format!("clpitchthreshold name=p {RECOMMENDED} threshold={threshold}")
}

/// Factor from 8 bits to the samples of a frame.
fn scale(frame: &Frame) -> f64 {
    f64::from(1_u32 << (8 * (frame.kind().size() - 1)))
}

/// The mask in the meta.
#[track_caller]
fn mask_of(buffer: &gst::BufferRef) -> Vec<u8> {
    let results = DefectResult::read(buffer);
    assert_eq!(results.len(), 1);
    read(results[0].mask.as_ref().expect("a mask in the meta"))
}

/// Compares a frame's metas with the references.
#[track_caller]
fn assert_judged(output: &gst::BufferRef, frame: &Frame) {
    let settings = recommended(THRESHOLD * scale(frame));
    assert_judged_and_converted(output, frame);
    assert_regions(output, &listed(frame, &settings, DEFAULT).0);
}

/// The same after a converter, which drops the parameters of regions of interest.
#[track_caller]
fn assert_judged_and_converted(output: &gst::BufferRef, frame: &Frame) {
    let settings = recommended(THRESHOLD * scale(frame));
    let outcome = compare(frame.component(0), &settings);
    let (wanted, overflow) = listed(frame, &settings, DEFAULT);
    assert!(!wanted.is_empty());
    assert_eq!(mask_of(output), outcome.packed, "{}", frame.describe());
    assert_records(output, &wanted);
    assert_boxes(output, &wanted);
    let result = &DefectResult::read(output)[0];
    assert_eq!(result.defect_pixels, outcome.defect_pixels);
    assert_eq!(result.judged_pixels, outcome.judged_pixels);
    assert_eq!(result.overflow, overflow);
    assert_eq!(result.element, "p");
}

#[test]
fn frames_pass_unchanged_with_mask_list_and_regions() {
    let Some(device) = start() else { return };
    let mut panels = spotted(SIZE);
    for format in [
        Format::Gray8,
        Format::I420,
        Format::Nv12,
        Format::Gray16Le,
        Format::Gray16Be,
    ] {
        let caps = caps_of(&panels.next_as(format, PLAIN, 0));
        let scale = scale(&panels.next_as(format, PLAIN, 0));
        let mut frames = Rig::new(&format!("{} output=frame", element(scale)), &caps);
        let mut masks = Rig::new(&element(scale), &caps);
        for arrangement in ARRANGEMENTS {
            let frame = panels.next_as(format, arrangement, 5);
            let output = frames.pass(buffer_of(&frame, &device));
            assert!(
                read(&output) == frame.bytes,
                "{} is changed",
                frame.describe()
            );
            assert_judged(&output, &frame);
            assert_eq!(frames.output_caps(), caps);
            let mask = masks.pass(buffer_of(&frame, &device));
            assert_eq!(mask_of(&output), read(&mask));
            let both = [&output, &mask].map(|b| DefectResult::read(b).remove(0));
            assert!(both[1].mask.is_none());
            assert_eq!(both[0].defects, both[1].defects);
        }
    }
}

#[test]
fn writable_frame_is_not_copied_and_a_shared_one_stays_as_it_was() {
    let Some(device) = start() else { return };
    let frame = spotted(SIZE).next(5);
    let mut rig = Rig::new(&format!("{} output=frame", element(1.0)), &caps_of(&frame));
    let address = |buffer: &gst::Buffer| buffer.peek_memory(0).as_ptr() as usize;

    let own = buffer_at(&frame, &device, 20);
    let before = address(&own);
    let output = rig.pass(own);
    assert_eq!(address(&output), before);
    assert_judged(&output, &frame);

    let held = buffer_at(&frame, &device, 40);
    let output = rig.pass(held.clone());
    assert_judged(&output, &frame);
    assert_eq!(output.pts(), Some(gst::ClockTime::from_mseconds(40)));
    assert!(DefectResult::read(&held).is_empty());
    assert_regions(&held, &[]);
    assert!(read(&held) == frame.bytes && read(&output) == frame.bytes);
}

#[test]
fn masks_stay_as_they_are_while_frames_are_held_and_after_the_element() {
    let Some(device) = start() else { return };
    let mut panels = spotted(SIZE);
    let frames: Vec<Frame> = (0..12).map(|_| panels.next(3)).collect();
    let mut rig = Rig::new(
        &format!("{} output=frame", element(1.0)),
        &caps_of(&frames[0]),
    );
    let outputs: Vec<gst::Buffer> = frames
        .iter()
        .map(|frame| rig.pass(buffer_of(frame, &device)))
        .collect();
    for (output, frame) in outputs.iter().zip(&frames) {
        assert_judged(output, frame);
    }
    drop(rig);
    for (output, frame) in outputs.iter().zip(&frames) {
        assert_judged(output, frame);
    }
}

#[test]
fn clean_frame_carries_a_clear_mask() {
    let Some(device) = start() else { return };
    let mut panels = spotted(SIZE);
    let (bad, clean) = (panels.next(5), constant(SIZE, 77));
    let mut rig = Rig::new(&format!("{} output=frame", element(1.0)), &caps_of(&bad));
    // More frames than the pool's buffers, so that mask memory is reused.
    for _ in 0..4 {
        assert_judged(&rig.pass(buffer_of(&bad, &device)), &bad);
        let output = rig.pass(buffer_of(&clean, &device));
        assert!(mask_of(&output).iter().all(|&byte| byte == 0));
        assert_records(&output, &[]);
        assert_regions(&output, &[]);
    }
}

#[test]
fn size_changes_in_the_stream_change_the_mask_with_it() {
    let Some(device) = start() else { return };
    let mut rig: Option<Rig> = None;
    for size in [[131, 79], [90, 101], [131, 79]] {
        let frame = spotted(size).next(4);
        let rig = match &mut rig {
            Some(rig) => {
                rig.renegotiate(&caps_of(&frame));
                rig
            }
            None => rig.insert(Rig::new(
                &format!("{} output=frame", element(1.0)),
                &caps_of(&frame),
            )),
        };
        let output = rig.pass(buffer_of(&frame, &device));
        assert_eq!(rig.output_caps(), caps_of(&frame));
        assert_judged(&output, &frame);
    }
}

#[test]
fn what_was_found_survives_queue_tee_and_videoconvert() {
    let Some(device) = start() else { return };
    let frame = spotted(SIZE).next(5);
    for rest in [
        "queue",
        "identity",
        "clgaussian",
        "clhistogram",
        "queue ! videoconvert ! capsfilter caps=video/x-raw,format=RGB",
        "videoconvert ! capsfilter caps=video/x-raw,format=I420 ! queue",
    ] {
        let line = format!("{} output=frame ! {rest}", element(1.0));
        let mut rig = Rig::new(&line, &caps_of(&frame));
        let output = rig.pass(buffer_of(&frame, &device));
        if rest.contains("videoconvert") {
            assert_judged_and_converted(&output, &frame);
        } else {
            assert_judged(&output, &frame);
        }
    }
}

#[test]
fn branches_of_a_tee_get_the_frame_and_its_defects_each() {
    let Some(device) = start() else { return };
    let frame = spotted(SIZE).next(5);
    let pipeline = Pipeline::new(&format!(
        "appsrc name=in format=time ! {} output=frame ! tee name=t ! queue ! \
         appsink name=a sync=false t. ! queue ! videoconvert ! video/x-raw,format=RGB ! \
         appsink name=b sync=false",
        element(1.0)
    ));
    let input: gst_app::AppSrc = pipeline.get("in");
    input.set_caps(Some(&caps_of(&frame)));
    pipeline.set_state(gst::State::Playing).unwrap();
    for number in 0..4 {
        let buffer = buffer_at(&frame, &device, 10 * number);
        input.push_buffer(buffer).unwrap();
    }
    input.end_of_stream().unwrap();
    for name in ["a", "b"] {
        let sink: gst_app::AppSink = pipeline.get(name);
        for number in 0..4 {
            let sample = sink.pull_sample().unwrap();
            let buffer = sample.buffer().unwrap();
            match name {
                "a" => assert_judged(buffer, &frame),
                _ => assert_judged_and_converted(buffer, &frame),
            }
            assert_eq!(DefectResult::read(buffer)[0].frame_number, number);
        }
    }
}

#[test]
fn two_elements_of_output_frame_append_a_meta_each() {
    let Some(device) = start() else { return };
    let frame = spotted(SIZE).next(5);
    let line = "clpitchthreshold name=a PUBLISHED pitch-x=7.35 threshold=30 output=frame ! \
                clpitchthreshold name=b PUBLISHED pitch-y=7.35 pitch-x=0 threshold=30 output=frame";
    let mut rig = Rig::new(line, &caps_of(&frame));
    let results = DefectResult::read(&rig.pass(buffer_of(&frame, &device)));
    let found: Vec<(&str, [f64; 2])> = results
        .iter()
        .map(|r| (r.element.as_str(), [r.pitch_x, r.pitch_y]))
        .collect();
    assert_eq!(found, [("a", [7.35, 0.0]), ("b", [0.0, 7.35])]);
    assert!(results.iter().all(|result| result.mask.is_some()));
}

#[test]
fn frames_of_a_source_that_takes_our_pool_are_not_copied() {
    let Some(device) = start() else { return };
    // If host and device share no memory, the list downloads each mask.
    let masks = if device.caps().shares_host_memory {
        0
    } else {
        6
    };
    let pipeline = Pipeline::new(
        "videotestsrc num-buffers=6 ! video/x-raw,format=GRAY8,width=320,height=48 ! \
         clpitchthreshold name=p PUBLISHED pitch-x=8 output=frame ! fakesink sync=false",
    );
    pipeline.set_state(gst::State::Playing).unwrap();
    assert_eq!(pipeline.wait_for_end().type_(), gst::MessageType::Eos);
    let stats: gst::Structure = pipeline.get::<gst::Element>("p").property("stats");
    for (name, expected) in [
        ("frames", 6),
        ("frames-zero-copy", 6),
        ("frames-copied", 0),
        ("frame-downloads", masks),
    ] {
        assert_eq!(stats.get::<u64>(name), Ok(expected), "{stats}");
    }
}
