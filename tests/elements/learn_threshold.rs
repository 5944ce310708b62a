//! `learn-threshold`, and `output=difference` of `clpitchthreshold` with its metas.

use gst::prelude::*;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    common::panel::PanelSpec,
    content::random,
    frames::{Frame, read},
    panels::{Panels, recommended},
    reference::pitch_threshold::{Settings, compare, difference},
    support::{Rig, buffer_of, caps_of, start},
};

const ELEMENT: &str =
    "clpitchthreshold pitch-x=16 pitch-y=16 min-contrast=0 borders=skip edge-margin=0";

fn panels() -> Panels {
    Panels::new(PanelSpec {
        width: 320,
        height: 240,
        pitch_x: 16.0,
        pitch_y: 16.0,
        noise_sigma: 3.0,
        ..PanelSpec::default()
    })
}

/// The settings of [`ELEMENT`] for the reference.
fn settings(threshold: f64) -> Settings {
    Settings {
        pitch_x: 16.0,
        pitch_y: 16.0,
        inward: false,
        edge_margin: 0,
        min_contrast: 0.0,
        scales: 0,
        ..recommended(threshold)
    }
}

/// Marked and judged pixels of frames at a threshold.
fn marked(frames: &[Frame], threshold: f64) -> [u64; 2] {
    let counts = frames.iter().map(|frame| {
        let outcome = compare(frame.component(0), &settings(threshold));
        [outcome.defect_pixels, outcome.judged_pixels]
    });
    counts.fold([0; 2], |[a, b], [c, d]| [a + c, b + d])
}

#[test]
fn learned_threshold_is_the_lowest_that_the_rate_allows() {
    let Some(device) = start() else { return };
    let mut panels = panels();
    let good: Vec<Frame> = (0..4).map(|_| panels.next(0)).collect();
    let mut rig = Rig::new(
        &format!("{ELEMENT} learn=learn,frames=3,rate=200,margin=0"),
        &caps_of(&good[0]),
    );
    let element = rig.only("clpitchthreshold");
    let threshold = || element.property::<f64>("threshold");
    let before = threshold();
    element.emit_by_name::<()>("learn", &[]);
    for frame in &good[..2] {
        rig.pass(buffer_of(frame, &device));
        assert_eq!(threshold(), before);
    }
    // Frames with other comparisons do not count together.
    element.set_property_from_str("polarity", "dark");
    rig.pass(buffer_of(&good[3], &device));
    element.set_property_from_str("polarity", "both");
    for frame in &good[..3] {
        assert_eq!(threshold(), before);
        rig.pass(buffer_of(frame, &device));
    }
    let learned = threshold();
    assert_eq!(learned % 0.25, 0.0);
    let reaches = |threshold: f64| {
        let [marked, judged] = marked(&good[..3], threshold);
        marked as f64 / judged as f64 * 1e6
    };
    assert!(reaches(learned) <= 200.0, "{learned}");
    assert!(reaches(learned - 0.25) > 200.0, "{learned}");

    let told = rig.told("clpitchthreshold-learned");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].get::<f64>("threshold"), Ok(learned));
    assert_eq!(told[0].get::<u32>("frames"), Ok(3));
    assert_eq!(
        told[0].get::<u64>("judged-pixels"),
        Ok(marked(&good[..3], learned)[1])
    );

    // The next frame is judged by it, and learning is over.
    let output = rig.pass(buffer_of(&good[3], &device));
    let result = DefectResult::read(&output).remove(0);
    assert_eq!(result.threshold, learned);
    assert_eq!(result.defect_pixels, marked(&good[3..], learned)[0]);
    assert_eq!(threshold(), learned);
}

#[test]
fn margin_is_added_and_frames_that_are_not_judged_do_not_count() {
    let Some(device) = start() else { return };
    let good = panels().next(0);
    let learned = |margin: f64| {
        let mut rig = Rig::new(
            &format!("{ELEMENT} learn=learn,frames=1,rate=0,margin={margin}"),
            &caps_of(&good),
        );
        let element = rig.only("clpitchthreshold");
        element.emit_by_name::<()>("learn", &[]);
        rig.pass(buffer_of(&good, &device));
        element.property::<f64>("threshold")
    };
    let lowest = learned(0.0);
    assert_eq!(marked(std::slice::from_ref(&good), lowest)[0], 0);
    assert_eq!(learned(2.5), lowest + 2.5);
    assert_eq!(learned(300.0), 255.0);

    // A black frame shows no pattern, so no pixel is compared.
    let mut black = good.clone();
    black.bytes.fill(0);
    let mut rig = Rig::new(
        "clpitchthreshold pitch-x=16 pitch-y=16 learn=learn,frames=1 threshold=9",
        &caps_of(&good),
    );
    let element = rig.only("clpitchthreshold");
    element.emit_by_name::<()>("learn", &[]);
    let output = rig.pass(buffer_of(&black, &device));
    let result = DefectResult::read(&output).remove(0);
    assert_eq!(result.verdict, Verdict::None);
    assert_eq!(element.property::<f64>("threshold"), 9.0);
    rig.pass(buffer_of(&good, &device));
    assert_ne!(element.property::<f64>("threshold"), 9.0);
}

#[test]
fn stream_too_short_to_learn_a_threshold_is_told() {
    let Some(device) = start() else { return };
    let mut panels = panels();
    let good: Vec<Frame> = (0..3).map(|_| panels.next(0)).collect();
    let trained = "clreference train-frames=1 match-score=0";
    for (line, name) in [(ELEMENT, "clpitchthreshold"), (trained, "clreference")] {
        for (wanted, words) in [(3, Some("after 2 of 3 judged frames")), (2, None)] {
            let line = format!("{line} learn=learn,frames={wanted}");
            let mut rig = Rig::new(&line, &caps_of(&good[0]));
            rig.pass(buffer_of(&good[0], &device));
            (rig.only(name)).emit_by_name::<()>("learn", &[]);
            for frame in &good[1..] {
                rig.pass(buffer_of(frame, &device));
            }
            let early = rig.warnings();
            assert!(
                early
                    .iter()
                    .all(|early| !early.text.contains("stream ended")),
                "{early:?}"
            );
            assert!(rig.harness().push_event(gst::event::Eos::new()));
            let short = rig.warnings();
            assert_eq!(short.len(), words.iter().len(), "{line}: {short:?}");
            assert!(
                short
                    .iter()
                    .all(|short| short.text.contains(words.unwrap())),
                "{short:?}"
            );
        }
    }
    // The signal came after the last frame.
    let mut rig = Rig::new(ELEMENT, &caps_of(&good[0]));
    rig.pass(buffer_of(&good[0], &device));
    (rig.only("clpitchthreshold")).emit_by_name::<()>("learn", &[]);
    rig.harness().push_event(gst::event::Eos::new());
    let short = rig.warnings();
    assert!(
        short[short.len() - 1]
            .text
            .contains("after 0 of 25 judged frames"),
        "{short:?}"
    );
}

#[test]
fn difference_output_is_a_picture_with_the_metas_of_the_frame() {
    let Some(device) = start() else { return };
    let frame = panels().next(5);
    let mut rig = Rig::new(
        &format!("{ELEMENT} threshold=12 output=difference difference-gain=4"),
        &caps_of(&frame),
    );
    let output = rig.pass(buffer_of(&frame, &device));
    let expected: Vec<u8> = difference(frame.component(0), &settings(0.0))
        .into_iter()
        .map(|d| (128.0 + (4.0 * d.unwrap_or(0.0)).round()).clamp(0.0, 255.0) as u8)
        .collect();
    let outcome = compare(frame.component(0), &settings(12.0));
    assert!(outcome.defect_pixels > 0);
    let result = DefectResult::read(&output).remove(0);
    assert_eq!(result.defect_pixels, outcome.defect_pixels);
    let mask = result.mask.as_ref().expect("a packed mask in the meta");
    assert_eq!(
        mask.map_readable().expect("a map").as_slice(),
        outcome.packed
    );
    assert!(
        read(&output)[..expected.len()] == expected,
        "another picture"
    );
}

#[test]
fn threshold_of_a_trained_picture_is_learned_from_frames_after_the_training() {
    let Some(device) = start() else { return };
    let mut panels = panels();
    // A panel that does not move, with the noise of each frame.
    let base = panels.next(0);
    let good: Vec<Frame> = (0..5).map(|n| with_noise(&base, n)).collect();
    let mut rig = Rig::new(
        "clreference train-frames=2 edge-tolerance=0 deviation-factor=0 learn=learn,frames=2,rate=0,margin=0",
        &caps_of(&base),
    );
    let element = rig.only("clreference");
    let threshold = || element.property::<f64>("threshold");
    let before = threshold();
    element.emit_by_name::<()>("learn", &[]);
    // Frames of a training are not compared, so they do not count.
    for frame in &good[..3] {
        rig.pass(buffer_of(frame, &device));
        assert_eq!(threshold(), before);
    }
    rig.pass(buffer_of(&good[3], &device));
    let learned = threshold();
    assert_ne!(learned, before);
    let told = rig.told("clreference-learned");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].get::<f64>("threshold"), Ok(learned));
    assert_eq!(told[0].get::<u64>("judged-pixels"), Ok(2 * 320 * 240));

    // At a rate of 0 the frames themselves have no marks, and a quarter of a level less marks some.
    let mut marked = |threshold: f64| {
        element.set_property("threshold", threshold);
        let outputs = good[2..4]
            .iter()
            .map(|frame| rig.pass(buffer_of(frame, &device)));
        let pixels = outputs.map(|output| DefectResult::read(&output).remove(0).defect_pixels);
        pixels.sum::<u64>()
    };
    // The limits for other thresholds are computed while frames flow.
    let settled = |marked: &mut dyn FnMut(f64) -> u64, threshold: f64| {
        (0..3).map(|_| marked(threshold)).last()
    };
    assert_eq!(settled(&mut marked, learned), Some(0));
    assert!(settled(&mut marked, learned - 0.25) > Some(0));
}

/// The frame with other samples at some places.
fn with_noise(frame: &Frame, seed: u64) -> Frame {
    let mut noisy = frame.clone();
    for (at, byte) in noisy.bytes.iter_mut().enumerate() {
        let by = random(seed, at, 0, 0) % 9;
        *byte = byte.saturating_add(by as u8);
    }
    noisy
}
