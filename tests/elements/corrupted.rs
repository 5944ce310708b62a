//! Frames that their source flags as corrupted: told, counted, never passed by default, never learned from.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, HistogramResult, Verdict};

use crate::{
    frames::{Frame, PLAIN},
    support::{Rig, buffer_of, caps_of, constant, noise, start},
    webs::Web,
};

const SIZE: [usize; 2] = [64, 32];

/// The buffer, flagged as aravis and decoders flag it.
fn flagged(mut buffer: gst::Buffer) -> gst::Buffer {
    let flags = gst::BufferFlags::CORRUPTED;
    buffer.make_mut().set_flags(flags);
    buffer
}

fn is_flagged(buffer: &gst::Buffer) -> bool {
    buffer.flags().contains(gst::BufferFlags::CORRUPTED)
}

fn counted(rig: &Rig, factory: &str) -> u64 {
    let stats = rig.only(factory).property::<gst::Structure>("stats");
    stats.get("frames-corrupted").unwrap()
}

#[test]
fn corrupted_frame_fails_and_is_told_and_counted() {
    let Some(device) = start() else { return };
    let clean = constant(SIZE, 90);
    let inspector = "clpitchthreshold pitch-x=8 min-contrast=0";
    for (line, verdict) in [
        (inspector.to_owned(), Verdict::Fail),
        (
            format!("{inspector} fail=fail,corrupted=false"),
            Verdict::Pass,
        ),
        (
            format!("{inspector} fail=fail,defect-count=5"),
            Verdict::Fail,
        ),
    ] {
        let mut rig = Rig::new(&line, &caps_of(&clean));
        let mut results = Vec::new();
        for corrupted in [false, true, false] {
            let buffer = buffer_of(&clean, &device);
            let output = rig.pass(if corrupted { flagged(buffer) } else { buffer });
            assert_eq!(is_flagged(&output), corrupted, "{line}");
            let result = DefectResult::read(&output).remove(0);
            assert_eq!(result.corrupted, corrupted, "{line}");
            results.push(result.verdict);
        }
        assert_eq!(results, [Verdict::Pass, verdict, Verdict::Pass], "{line}");
        let told = rig.told("clpitchthreshold");
        let fields: Vec<(bool, bool)> = told
            .iter()
            .map(|message| {
                let summary = message.get::<&str>("summary").unwrap();
                (
                    message.get("corrupted").unwrap(),
                    summary.contains("corrupted"),
                )
            })
            .collect();
        let both = |corrupted| (corrupted, corrupted);
        assert_eq!(fields, [false, true, false].map(both), "{line}");
        assert_eq!(counted(&rig, "clpitchthreshold"), 1, "{line}");
    }
}

#[test]
fn corrupted_frame_without_a_judged_pixel_fails() {
    let Some(device) = start() else { return };
    let grey = constant(SIZE, 90);
    let mut rig = Rig::new("clpitchthreshold", &caps_of(&grey));
    let output = rig.pass(flagged(buffer_of(&grey, &device)));
    assert_eq!(DefectResult::read(&output)[0].verdict, Verdict::Fail);
}

#[test]
fn flag_passes_every_element() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, SIZE, PLAIN);
    for line in [
        "clgaussian",
        "clhistogram",
        "clflatfield",
        "clpitchthreshold pitch-x=8 output=frame",
        "clpitchthreshold pitch-x=8 output=difference",
        "clpitchthreshold pitch-x=8 ! video/x-bitmask ! clmaskunpack",
        "clreference output=frame",
        "clsurface output=frame",
        "cltexture pitch-x=4 pitch-y=4 output=frame",
        "clgaussian ! clhistogram ! clpitchthreshold pitch-x=8 output=frame ! inspectoverlay",
    ] {
        let mut rig = Rig::new(line, &caps_of(&frame));
        let output = rig.pass(flagged(buffer_of(&frame, &device)));
        assert!(is_flagged(&output), "{line}");
        let output = rig.pass(buffer_of(&frame, &device));
        assert!(!is_flagged(&output), "{line}");
    }
}

#[test]
fn histogram_of_a_corrupted_frame_raises_no_alarm_and_is_no_reference() {
    let Some(device) = start() else { return };
    let line = "clhistogram alarm-over-exposed=0.5 alarm-drift=20";
    let mut rig = Rig::new(line, &caps_of(&constant(SIZE, 0)));
    rig.only("clhistogram")
        .emit_by_name::<()>("take-reference", &[]);
    let output = rig.pass(flagged(buffer_of(&constant(SIZE, 255), &device)));
    let result = HistogramResult::read(&output).remove(0);
    assert!(result.corrupted && result.alarms.is_empty());
    assert_eq!(rig.told("clhistogram-reference").len(), 0);
    assert_eq!(counted(&rig, "clhistogram"), 1);
    let output = rig.pass(buffer_of(&constant(SIZE, 100), &device));
    assert!(!HistogramResult::read(&output)[0].corrupted);
    let told = rig.told("clhistogram-reference");
    let reference = told[0].get::<gst::Array>("reference").unwrap();
    assert_eq!(reference[0].get::<f64>().unwrap(), 100.0);
}

#[test]
fn training_leaves_corrupted_frames_out() {
    let Some(device) = start() else { return };
    let good = constant(SIZE, 100);
    let mut rig = Rig::new(
        "clreference train-frames=2 threshold=5 edge-tolerance=0 deviation-factor=0",
        &caps_of(&good),
    );
    let mut verdict = |frame: &Frame, corrupted: bool| {
        let buffer = buffer_of(frame, &device);
        let output = rig.pass(if corrupted { flagged(buffer) } else { buffer });
        DefectResult::read(&output).remove(0).verdict
    };
    assert_eq!(verdict(&good, false), Verdict::None);
    assert_eq!(verdict(&constant(SIZE, 200), true), Verdict::Fail);
    assert_eq!(verdict(&good, false), Verdict::None);
    // With the corrupted frame the mean would be 150.
    assert_eq!(verdict(&good, false), Verdict::Pass);
}

#[test]
fn learned_limit_leaves_corrupted_frames_out() {
    let Some(device) = start() else { return };
    let good = constant(SIZE, 100);
    let line = "clpitchthreshold pitch-x=8 min-contrast=0 learn=learn,frames=2";
    let mut rig = Rig::new(line, &caps_of(&good));
    let element = rig.only("clpitchthreshold");
    element.emit_by_name::<()>("learn", &[]);
    rig.pass(buffer_of(&good, &device));
    rig.pass(flagged(buffer_of(
        &noise(Format::Gray8, SIZE, PLAIN),
        &device,
    )));
    assert_eq!(rig.told("clpitchthreshold-learned").len(), 0);
    rig.pass(buffer_of(&good, &device));
    assert!(element.property::<f64>("threshold") < 2.0);
}

#[test]
fn flat_field_reference_leaves_corrupted_frames_out() {
    let Some(device) = start() else { return };
    let white = constant(SIZE, 100);
    let mut rig = Rig::new("clflatfield average-frames=2 target=200", &caps_of(&white));
    rig.only("clflatfield")
        .emit_by_name::<()>("take-white", &[]);
    rig.pass(buffer_of(&white, &device));
    rig.pass(flagged(buffer_of(&constant(SIZE, 220), &device)));
    rig.pass(buffer_of(&white, &device));
    let output = rig.pass(buffer_of(&white, &device));
    assert_eq!(output.map_readable().unwrap()[0], 200);
}

#[test]
fn strips_that_depend_on_a_corrupted_one_are_corrupted() {
    let Some(device) = start() else { return };
    const ROWS: usize = 32;
    let web = Web::cloth(Format::Gray8, 96, 8 * ROWS, 3);
    let strips: Vec<Frame> = web
        .bytes
        .chunks(96 * ROWS)
        .map(|bytes| {
            let mut frame = constant([96, ROWS], 0);
            frame.bytes.copy_from_slice(bytes);
            frame
        })
        .collect();
    // Rows 10 away are compared: of each neighbour some rows.
    let line = "clpitchthreshold line-scan=true pitch-x=0 pitch-y=10 multiples=<1> min-contrast=0";
    let mut rig = Rig::new(line, &caps_of(&strips[0]));
    for (i, strip) in strips.iter().enumerate() {
        let buffer = buffer_of(strip, &device);
        let buffer = if i == 3 { flagged(buffer) } else { buffer };
        rig.push(buffer).unwrap();
    }
    rig.harness().push_event(gst::event::Eos::new());
    let mut corrupted = Vec::new();
    for _ in &strips {
        let output = rig.harness().pull().unwrap();
        corrupted.push(DefectResult::read(&output)[0].corrupted);
    }
    let expected = [false, false, true, true, true, false, false, false];
    assert_eq!(corrupted, expected);
    assert_eq!(counted(&rig, "clpitchthreshold"), 1);
}
