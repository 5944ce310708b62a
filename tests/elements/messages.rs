//! Messages on the bus.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::HistogramResult;

use crate::{
    frames::PLAIN,
    support::{Rig, buffer_at, buffer_of, caps_of, constant, judged, noise, start},
};

const SIZE: [usize; 2] = [40, 6];

#[track_caller]
fn assert_times(message: &gst::Structure, ms: u64) {
    let time = Ok(gst::ClockTime::from_mseconds(ms));
    for name in ["timestamp", "stream-time", "running-time"] {
        assert_eq!(message.get::<gst::ClockTime>(name), time, "{name}");
    }
    let duration = Ok(gst::ClockTime::from_mseconds(10));
    assert_eq!(message.get::<gst::ClockTime>("duration"), duration);
}

#[test]
fn histogram_message_holds_times_and_scalars_but_no_bins() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Rgb, SIZE, PLAIN);
    let mut rig = Rig::new("clhistogram name=h", &caps_of(&frame));
    let output = rig.pass(buffer_at(&frame, &device, 500));
    let told = rig.told("clhistogram");
    assert_eq!(told.len(), 1);
    let message = &told[0];
    assert_times(message, 500);
    assert_eq!(message.get::<&str>("element"), Ok("h"));
    assert_eq!(message.get::<u64>("frame-number"), Ok(0));
    assert!(!message.has_field("bins-data"));
    let result = &HistogramResult::read(&output)[0];
    let medians = message.get::<gst::Array>("median").unwrap();
    let medians: Vec<f64> = medians.iter().map(|v| v.get().unwrap()).collect();
    let expected: Vec<f64> = result.statistics.iter().map(|s| s.median).collect();
    assert_eq!(medians, expected);
}

#[test]
fn histogram_message_bins_are_an_array_per_channel() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Rgb, SIZE, PLAIN);
    let mut rig = Rig::new(
        "clhistogram bins=8 reports=reports,message-bins=true",
        &caps_of(&frame),
    );
    let output = rig.pass(buffer_at(&frame, &device, 0));
    let message = &rig.told("clhistogram")[0];
    let result = &HistogramResult::read(&output)[0];
    let channels = message.get::<gst::Array>("bins-data").unwrap();
    assert_eq!(channels.len(), 3);
    for (channel, bins) in channels.iter().enumerate() {
        let bins = bins.get::<gst::Array>().unwrap();
        let bins: Vec<u32> = bins.iter().map(|v| v.get().unwrap()).collect();
        assert_eq!(bins, result.channel(channel).unwrap());
    }
}

#[test]
fn pitch_threshold_message_holds_times_scalars_and_verdict() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, SIZE, PLAIN);
    let mut rig = Rig::new(
        "clpitchthreshold name=p PUBLISHED pitch-x=4.5",
        &caps_of(&frame),
    );
    rig.pass(buffer_at(&frame, &device, 40));
    let expected = judged(&frame, 4.5, 0.0, 10.0);
    let told = rig.told("clpitchthreshold");
    assert_eq!(told.len(), 1);
    let message = &told[0];
    assert_times(message, 40);
    assert_eq!(message.get::<&str>("element"), Ok("p"));
    assert_eq!(message.get::<&str>("verdict"), Ok("fail"));
    assert_eq!(message.get::<f64>("pitch-x"), Ok(4.5));
    assert_eq!(
        message.get::<u64>("defect-pixels"),
        Ok(expected.defect_pixels)
    );
    assert_eq!(
        message.get::<u64>("judged-pixels"),
        Ok(expected.judged_pixels)
    );
}

/// Timestamps, ms, of the frames (0, 10, ... 90 ms) that have a message.
fn told_at(element: &str) -> Option<Vec<u64>> {
    let device = start()?;
    let frame = constant(SIZE, 7);
    let mut rig = Rig::new(element, &caps_of(&frame));
    for ms in (0..100).step_by(10) {
        rig.pass(buffer_at(&frame, &device, ms));
    }
    let name = element.split(' ').next().unwrap();
    let times = rig.told(name).into_iter().map(|message| {
        let time = message.get::<gst::ClockTime>("timestamp").unwrap();
        time.mseconds()
    });
    Some(times.collect())
}

#[test]
fn messages_come_at_most_once_per_interval() {
    for element in ["clhistogram", "clpitchthreshold PUBLISHED pitch-x=4"] {
        for (setting, expected) in [
            ("", vec![0]),
            ("reports=reports,interval=30000000", vec![0, 30, 60, 90]),
            ("reports=reports,interval=25000000", vec![0, 30, 60, 90]),
            ("reports=reports,interval=0", (0..100).step_by(10).collect()),
            ("reports=reports,messages=false", vec![]),
            ("reports=reports,messages=false,interval=0", vec![]),
        ] {
            let Some(told) = told_at(&format!("{element} {setting}")) else {
                return;
            };
            assert_eq!(told, expected, "{element} {setting}");
        }
    }
}

#[test]
fn pitch_threshold_tells_every_change_of_the_verdict() {
    let Some(device) = start() else { return };
    let good = constant(SIZE, 7);
    let bad = noise(Format::Gray8, SIZE, PLAIN);
    let line = "clpitchthreshold PUBLISHED pitch-x=4 reports=reports,interval=50000000";
    let mut rig = Rig::new(line, &caps_of(&good));
    let frames = [
        &good, &good, &bad, &bad, &good, &good, &good, &good, &good, &good, &bad,
    ];
    for (number, frame) in frames.into_iter().enumerate() {
        rig.pass(buffer_at(frame, &device, 10 * number as u64));
    }
    let told: Vec<(u64, String)> = rig
        .told("clpitchthreshold")
        .iter()
        .map(|m| {
            (
                m.get::<u64>("frame-number").unwrap(),
                m.get::<String>("verdict").unwrap(),
            )
        })
        .collect();
    let expected = [
        (0, "pass"),
        (2, "fail"),
        (4, "pass"),
        (9, "pass"),
        (10, "fail"),
    ];
    assert_eq!(told.len(), expected.len(), "{told:?}");
    for ((number, verdict), expected) in told.iter().zip(expected) {
        assert_eq!((*number, verdict.as_str()), expected);
    }
}

#[test]
fn pitch_threshold_fails_a_frame_above_the_limit_only() {
    let Some(device) = start() else { return };
    let bad = noise(Format::Gray8, SIZE, PLAIN);
    let marked = judged(&bad, 4.0, 0.0, 10.0).defect_pixels as i64;
    for (limit, verdict) in [
        (marked, "pass"),
        (marked - 1, "fail"),
        (0, "fail"),
        (-1, "pass"),
    ] {
        let line = format!(
            "clpitchthreshold PUBLISHED pitch-x=4 \
             fail=fail,defect-pixels={limit},defect-count=-1"
        );
        let mut rig = Rig::new(&line, &caps_of(&bad));
        rig.pass(buffer_of(&bad, &device));
        let told = rig.told("clpitchthreshold");
        assert_eq!(told[0].get::<&str>("verdict"), Ok(verdict), "{limit}");
    }
}

#[test]
fn messages_are_readable_as_text() {
    let Some(device) = start() else { return };
    let frame = constant(SIZE, 7);
    let mut rig = Rig::new(
        "clhistogram ! clpitchthreshold PUBLISHED pitch-x=4",
        &caps_of(&frame),
    );
    rig.pass(buffer_at(&frame, &device, 0));
    while let Some(message) = rig.next_element_message() {
        let text = message.structure().unwrap().to_string();
        let back = text.parse::<gst::Structure>().unwrap();
        assert_eq!(back.name(), message.structure().unwrap().name());
        let source = message.src().unwrap().name();
        assert_eq!(back.get::<String>("element").unwrap(), source.as_str());
    }
}
