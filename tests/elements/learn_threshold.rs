//! The signals `learn` and `forget`, and `output=difference` of `clpitchthreshold` with its metas.

use gst::prelude::*;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    common::panel::PanelSpec,
    content::random,
    frames::{Frame, PLAIN, read},
    oracle::pitch_threshold::{self, compare, difference},
    panels::{DEFAULT, ListSettings, Panels, listed, recommended},
    reference_picture::Folder,
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
fn settings(threshold: f64) -> pitch_threshold::Settings {
    pitch_threshold::Settings {
        pitch_x: 16.0,
        pitch_y: 16.0,
        inward: false,
        edge_margin: 0,
        min_contrast: 0.0,
        scales: 0,
        ..recommended(threshold)
    }
}

fn good(count: usize) -> Vec<Frame> {
    let mut panels = panels();
    (0..count).map(|_| panels.next(0)).collect()
}

/// Pixels that the reference marks at a threshold.
fn marked(frame: &Frame, threshold: f64) -> u64 {
    compare(frame.component(0), &settings(threshold)).defect_pixels
}

/// The lowest multiple of a quarter of a grey level from 0.25 on at which a frame passes, by trying all from above.
fn lowest(passes: impl Fn(f64) -> bool) -> f64 {
    let quarters = (1..=1020).rev().find(|&n| !passes(f64::from(n) / 4.0));
    (f64::from(quarters.unwrap_or(0)) + 1.0) / 4.0
}

/// What the reference finds that frames demand of the threshold, if a pixel fails a frame.
fn strict(frames: &[Frame]) -> Vec<f64> {
    let each = frames.iter();
    each.map(|frame| {
        let differences = difference(frame.component(0), &settings(0.0));
        let largest = differences.into_iter().flatten().map(f64::abs);
        let largest = largest.fold(0.0, f64::max);
        let lowest = (4.0 * largest).floor() / 4.0 + 0.25;
        assert!(marked(frame, lowest) == 0 && marked(frame, lowest - 0.25) > 0);
        lowest
    })
    .collect()
}

/// Learns from frames, and returns the message.
fn learn(rig: &mut Rig, name: &str, frames: &[Frame]) -> gst::Structure {
    let Some(device) = start() else {
        panic!("no device")
    };
    rig.only(name).emit_by_name::<()>("learn", &[]);
    for frame in frames {
        rig.pass(buffer_of(frame, &device));
    }
    let told = rig.told(&format!("{name}-learned"));
    assert_eq!(told.len(), 1, "{told:?}");
    told[0].clone()
}

fn max(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

#[test]
fn limit_is_the_lowest_at_which_every_good_frame_passes() {
    let Some(device) = start() else { return };
    let good = good(4);
    let demands = strict(&good);
    let mut rig = Rig::new(
        &format!("{ELEMENT} learn=learn,frames=3,margin=0"),
        &caps_of(&good[0]),
    );
    let element = rig.only("clpitchthreshold");
    let threshold = || element.property::<f64>("threshold");
    let missing = || {
        let stats = element.property::<gst::Structure>("stats");
        stats.get::<u64>("learn-frames-missing").expect("a count")
    };
    let before = threshold();
    let learning = |output: &gst::Buffer| DefectResult::read(output).remove(0).learning;
    let output = rig.pass(buffer_of(&good[3], &device));
    assert_eq!((learning(&output), missing()), (None, 0));
    element.emit_by_name::<()>("learn", &[]);
    for (n, frame) in good[..2].iter().enumerate() {
        let output = rig.pass(buffer_of(frame, &device));
        assert_eq!(learning(&output), Some([n as u32 + 1, 3]));
        assert_eq!((threshold(), missing()), (before, 2 - n as u64));
    }
    // Frames with other comparisons do not count together.
    element.set_property_from_str("polarity", "dark");
    let output = rig.pass(buffer_of(&good[3], &device));
    assert_eq!(learning(&output), Some([1, 3]));
    element.set_property_from_str("polarity", "both");
    for (n, frame) in good[..3].iter().enumerate() {
        assert_eq!(threshold(), before);
        let output = rig.pass(buffer_of(frame, &device));
        assert_eq!(learning(&output), Some([n as u32 + 1, 3]));
    }
    let learned = threshold();
    assert_eq!(learned, max(&demands[..3]));
    let told = rig.told("clpitchthreshold-learned");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].get::<f64>("threshold"), Ok(learned));
    assert_eq!(told[0].get::<u32>("frames"), Ok(3));
    assert_eq!(told[0].get::<u32>("missing-frames"), Ok(0));
    let set_it = demands[..3].iter().position(|&demand| demand == learned);
    let first = 4;
    let frame = told[0].get::<u64>("threshold-frame");
    assert_eq!(frame, Ok(first + set_it.expect("a frame") as u64));

    // The next frame is judged by it, and learning is over.
    let output = rig.pass(buffer_of(&good[3], &device));
    let result = DefectResult::read(&output).remove(0);
    assert_eq!((result.threshold, result.learning), (learned, None));
    assert_eq!(result.defect_pixels, marked(&good[3], learned));
    assert_eq!((threshold(), missing()), (learned, 0));
}

#[test]
fn margin_is_a_share_of_the_largest_value() {
    let Some(_device) = start() else { return };
    let good = good(1);
    let lowest = max(&strict(&good));
    for (margin, expected) in [
        ("margin=0", lowest),
        ("margin=0.5", 1.5 * lowest),
        ("margin=100", 255.0),
        ("frames=1", 1.15 * lowest),
    ] {
        let line = format!("{ELEMENT} learn=learn,frames=1,{margin}");
        let mut rig = Rig::new(&line, &caps_of(&good[0]));
        let told = learn(&mut rig, "clpitchthreshold", &good);
        let learned = told.get::<f64>("threshold").expect("a limit");
        assert!(
            (learned - expected).abs() <= 1.0 / 2048.0,
            "{margin}: {learned}"
        );
        let property = rig.only("clpitchthreshold").property::<f64>("threshold");
        assert_eq!(property, learned);
    }
}

#[test]
fn small_defects_that_may_pass_do_not_raise_the_limit() {
    let Some(_device) = start() else { return };
    let good = good(2);
    let wanted = ListSettings {
        min_area: 3,
        ..DEFAULT
    };
    let demands: Vec<f64> = (good.iter())
        .map(|frame| lowest(|threshold| listed(frame, &settings(threshold), wanted).0.is_empty()))
        .collect();
    let line = format!("{ELEMENT} min-area=3 learn=learn,frames=2,margin=0");
    let mut rig = Rig::new(&line, &caps_of(&good[0]));
    let learned = learn(&mut rig, "clpitchthreshold", &good);
    assert_eq!(learned.get::<f64>("threshold"), Ok(max(&demands)));
    assert!(max(&demands) < max(&strict(&good)));
}

#[test]
fn frames_are_judged_by_the_limits_before_while_limits_are_tried() {
    let Some(device) = start() else { return };
    let frame = panels().next(3);
    let line = "clpitchthreshold pitch-x=16 pitch-y=16 scales=2 min-contrast=5 min-area=3 threshold=30 \
                learn=learn,frames=2";
    for format in ["bitmask", "gray8"] {
        let mask = match format {
            "gray8" => "! capsfilter caps=video/x-raw,format=GRAY8",
            _ => "",
        };
        let judged = |is_learning: bool| {
            let mut rig = Rig::new(&format!("{line} {mask}"), &caps_of(&frame));
            if is_learning {
                (rig.only("clpitchthreshold")).emit_by_name::<()>("learn", &[]);
            }
            let output = rig.pass(buffer_of(&frame, &device));
            let result = DefectResult {
                learning: None,
                ..DefectResult::read(&output).remove(0)
            };
            assert!(!result.defects.is_empty());
            (
                read(&output),
                DefectResult {
                    element: String::new(),
                    ..result
                },
            )
        };
        assert!(judged(true) == judged(false), "{format}");
    }
}

#[test]
fn strips_of_a_web_count_as_frames() {
    let Some(device) = start() else { return };
    let mut good = good(3);
    // A spot that ends at the strip's last row, where the web goes on.
    for row in good[0].bytes.chunks_exact_mut(320).skip(238) {
        row[100..104].fill(255);
    }
    let line = "clpitchthreshold pitch-x=16 pitch-y=0 min-contrast=0 min-area=3 line-scan=true \
                learn=learn,frames=2,margin=0";
    let mut rig = Rig::new(line, &caps_of(&good[0]));
    let element = rig.only("clpitchthreshold");
    element.emit_by_name::<()>("learn", &[]);
    for frame in &good {
        rig.push(buffer_of(frame, &device)).expect("a strip");
    }
    rig.harness().push_event(gst::event::Eos::new());
    let told = rig.told("clpitchthreshold-learned");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].get::<u32>("frames"), Ok(2));
    assert!(told[0].get::<f64>("threshold").unwrap() > 50.0, "{told:?}");
    // Each strip as a frame of its own.
    let demands = good[..2].iter().map(|frame| {
        let mut rig = Rig::new(
            "clpitchthreshold pitch-x=16 pitch-y=0 min-contrast=0 min-area=3 learn=learn,frames=1,margin=0",
            &caps_of(frame),
        );
        let told = learn(&mut rig, "clpitchthreshold", std::slice::from_ref(frame));
        told.get::<f64>("threshold").expect("a limit")
    });
    assert_eq!(
        told[0].get::<f64>("threshold"),
        Ok(max(&demands.collect::<Vec<_>>()))
    );
}

#[test]
fn only_classes_that_fail_a_frame_raise_the_limit() {
    let Some(device) = start() else { return };
    let good = good(1);
    let is_large = |threshold: f64| {
        let (defects, _) = listed(&good[0], &settings(threshold), DEFAULT);
        defects.iter().any(|defect| defect.area > 4)
    };
    let line = format!(
        "{ELEMENT} classes=\"large: area > 4\" fail=fail,classes=large limits=limits,max-defects=100000 \
         learn=learn,frames=1,margin=0"
    );
    let mut rig = Rig::new(&line, &caps_of(&good[0]));
    let learned = learn(&mut rig, "clpitchthreshold", &good);
    let learned = learned.get::<f64>("threshold").expect("a limit");
    assert!(is_large(learned - 0.25) && !is_large(learned), "{learned}");
    assert!(learned < max(&strict(&good)));
    let output = rig.pass(buffer_of(&good[0], &device));
    let result = DefectResult::read(&output).remove(0);
    assert_eq!(result.verdict, Verdict::Pass);
    assert!(result.defect_pixels > 0);
}

#[test]
fn ignored_pixels_do_not_raise_the_limit() {
    let Some(_device) = start() else { return };
    let clean = good(1).remove(0);
    let mut spotted = clean.clone();
    for y in 100..104 {
        for x in 100..104 {
            let width = 320;
            spotted.bytes[y * width + x] = 255;
        }
    }
    let learned = |frame: &Frame, ignored: &str| {
        let line = format!("{ELEMENT} multiples=<1> {ignored} learn=learn,frames=1,margin=0");
        let mut rig = Rig::new(&line, &caps_of(frame));
        let told = learn(&mut rig, "clpitchthreshold", std::slice::from_ref(frame));
        told.get::<f64>("threshold").expect("a limit")
    };
    // A pixel of the spot, or a pixel beside it that has the spot as a neighbour.
    let ignored = "ignore=\"ignore, regions=<<80, 80, 125, 80, 125, 125, 80, 125>>\"";
    assert!(learned(&spotted, "") > 2.0 * learned(&clean, ""));
    assert_eq!(learned(&spotted, ignored), learned(&clean, ignored));
}

#[test]
fn forgotten_frame_no_longer_sets_the_limit_and_is_missing() {
    let Some(device) = start() else { return };
    let mut frames = good(5);
    frames[1] = panels().next(3);
    let demands = strict(&frames);
    assert_eq!(max(&demands), demands[1]);
    let line = format!("{ELEMENT} learn=learn,frames=4,margin=0");
    let mut rig = Rig::new(&line, &caps_of(&frames[0]));
    let element = rig.only("clpitchthreshold");
    let learned = learn(&mut rig, "clpitchthreshold", &frames[..4]);
    assert_eq!(learned.get::<f64>("threshold"), Ok(demands[1]));
    let frame = learned.get::<u64>("threshold-frame").expect("a frame");
    assert_eq!(frame, 1);

    element.emit_by_name::<()>("forget", &[&frame]);
    let three = demands[0].max(demands[2]).max(demands[3]);
    // This frame takes the place of the forgotten one.
    let output = rig.pass(buffer_of(&frames[4], &device));
    let result = DefectResult::read(&output).remove(0);
    assert_eq!(
        (result.learning, result.threshold),
        (Some([4, 4]), demands[1])
    );
    let told = rig.told("clpitchthreshold-learned");
    let of = |told: &gst::Structure| {
        let numbers = [told.get::<u32>("frames"), told.get("missing-frames")];
        (told.get::<f64>("threshold").expect("a limit"), numbers)
    };
    assert_eq!(of(&told[0]), (three, [Ok(3), Ok(1)]));
    assert_eq!(of(&told[1]), (three.max(demands[4]), [Ok(4), Ok(0)]));

    element.emit_by_name::<()>("forget", &[&77_u64]);
    rig.pass(buffer_of(&frames[4], &device));
    let warnings = rig.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].text.contains("frame 77"), "{warnings:?}");
}

#[test]
fn each_level_of_scales_has_its_own_limit() {
    let Some(device) = start() else { return };
    let good = good(2);
    let line = format!("{ELEMENT} scales=2 learn=learn,frames=2,margin=0");
    let mut rig = Rig::new(&line, &caps_of(&good[0]));
    let element = rig.only("clpitchthreshold");
    let told = learn(&mut rig, "clpitchthreshold", &good);
    let limit = |name: &str| told.get::<f64>(name).expect("a limit");
    assert_eq!(limit("threshold"), max(&strict(&good)));
    // Pixels are out of the way at a threshold of 255.
    let marked = |at: usize, level: f64| {
        let mut factors = vec![1.0; 2];
        factors[at] = level / 255.0;
        let settings = pitch_threshold::Settings {
            scales: 2,
            scale_factors: factors,
            ..settings(255.0)
        };
        let pixels = |frame: &Frame| compare(frame.component(0), &settings).defect_pixels;
        good.iter().map(pixels).sum::<u64>()
    };
    for (at, name) in ["level-1", "level-2"].into_iter().enumerate() {
        let level = limit(name);
        assert_eq!(marked(at, level), 0, "{name}={level}");
        assert!(marked(at, level - 1.0 / 64.0) > 0, "{name}={level}");
    }
    let factors = element.property::<gst::Array>("scale-factors");
    let factors: Vec<f64> = factors.iter().map(|v| v.get().unwrap()).collect();
    let expected = ["level-1", "level-2"].map(|name| limit(name) / limit("threshold"));
    assert_eq!(factors[..2], expected);
    assert_eq!(factors[2..], [0.15, 0.08]);
    for frame in &good {
        let output = rig.pass(buffer_of(frame, &device));
        let result = DefectResult::read(&output).remove(0);
        assert_eq!((result.verdict, result.defect_pixels), (Verdict::Pass, 0));
    }
}

#[test]
fn frames_that_are_not_judged_do_not_count() {
    let Some(device) = start() else { return };
    let good = good(1).remove(0);
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
    assert_eq!(
        (result.verdict, result.learning),
        (Verdict::None, Some([0, 1]))
    );
    assert_eq!(element.property::<f64>("threshold"), 9.0);
    rig.pass(buffer_of(&good, &device));
    assert_ne!(element.property::<f64>("threshold"), 9.0);
}

#[test]
fn frame_in_which_the_pattern_is_missing_in_part_has_its_demand_and_its_marks() {
    let Some(device) = start() else { return };
    let mut panels = panels();
    let good = panels.next(0);
    let mut part = good.clone();
    for row in part.bytes.chunks_exact_mut(320).take(64) {
        row[..64].fill(100);
    }
    let learned = |frame: &Frame, contrast: &str| {
        let line = format!(
            "clpitchthreshold pitch-x=16 pitch-y=16 min-area=3 borders=skip {contrast} learn=learn,frames=1,margin=0"
        );
        let mut rig = Rig::new(&line, &caps_of(frame));
        rig.only("clpitchthreshold")
            .emit_by_name::<()>("learn", &[]);
        let output = rig.pass(buffer_of(frame, &device));
        let threshold = rig.only("clpitchthreshold").property::<f64>("threshold");
        (
            threshold,
            DefectResult::read(&output).remove(0).missing_pixels,
        )
    };
    let (with, missing) = learned(&part, "min-contrast=5");
    let (without, _) = learned(&part, "min-contrast=0");
    assert!(missing > 0);
    assert_eq!(with, without);
}

#[test]
fn stream_too_short_to_learn_is_told() {
    let Some(device) = start() else { return };
    let good = good(3);
    let trained = "clreference train-frames=1 match-score=0";
    for (line, name) in [(ELEMENT, "clpitchthreshold"), (trained, "clreference")] {
        for (wanted, words) in [(3, Some("after 2 of 3 good frames")), (2, None)] {
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
            .contains("after 0 of 24 good frames"),
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
fn threshold_of_a_trained_picture_is_learned_where_it_decides_alone() {
    let Some(device) = start() else { return };
    let base = panels().next(0);
    let good: Vec<Frame> = (0..5).map(|n| with_noise(&base, n)).collect();
    let mut rig = Rig::new(
        "clreference train-frames=2 edge-tolerance=0 deviation-factor=0 learn=learn,frames=2,margin=0",
        &caps_of(&base),
    );
    let element = rig.only("clreference");
    let threshold = || element.property::<f64>("threshold");
    for frame in &good[..2] {
        rig.pass(buffer_of(frame, &device));
    }
    let before = threshold();
    element.emit_by_name::<()>("learn", &[]);
    rig.pass(buffer_of(&good[2], &device));
    assert_eq!(threshold(), before);
    rig.pass(buffer_of(&good[3], &device));
    let learned = threshold();
    assert_ne!(learned, before);
    let told = rig.told("clreference-learned");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].get::<f64>("threshold"), Ok(learned));
    assert!(!told[0].has_field("deviation-factor"));

    // The frames themselves have no marks, and a quarter of a level less marks some.
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

#[test]
fn threshold_is_learned_where_one_trained_picture_has_no_deviations() {
    let Some(device) = start() else { return };
    let base = panels().next(0);
    let good: Vec<Frame> = (0..6).map(|n| with_noise(&base, n)).collect();
    let mut rig = Rig::new(
        "clreference train-frames=1 edge-tolerance=0 threshold=0 learn=learn,frames=5",
        &caps_of(&base),
    );
    let element = rig.only("clreference");
    element.emit_by_name::<()>("learn", &[]);
    for frame in &good {
        rig.pass(buffer_of(frame, &device));
    }
    let told = rig.told("clreference-learned");
    assert_eq!(told.len(), 1, "{told:?}");
    let learned = told[0].get::<f64>("threshold").expect("a threshold");
    assert!(0.0 < learned && learned < 60.0, "{learned}");
    assert!(!told[0].has_field("deviation-factor"));
    assert_eq!(element.property::<f64>("threshold"), learned);
    assert_eq!(element.property::<f64>("deviation-factor"), 4.0);
    assert!(rig.warnings().is_empty());
    let outputs = (0..3).map(|_| rig.pass(buffer_of(&good[3], &device)));
    let verdicts: Vec<_> = outputs
        .map(|output| DefectResult::read(&output).remove(0).verdict)
        .collect();
    assert_eq!(verdicts[2], gstclinspect::results::Verdict::Pass);
}

#[test]
fn factor_of_a_trained_picture_is_learned_above_its_threshold() {
    let Some(device) = start() else { return };
    let base = panels().next(0);
    let mut good: Vec<Frame> = (0..24).map(|n| with_noise(&base, n)).collect();
    // One frame is far from the others, and the next one is nearer.
    for (n, by) in [(9, 90), (13, 60)] {
        let byte = &mut good[n].bytes[5000];
        *byte = if *byte > 127 { *byte - by } else { *byte + by };
    }
    let mut rig = Rig::new(
        "clreference train-frames=4 threshold=2 edge-tolerance=0 learn=learn,frames=20",
        &caps_of(&base),
    );
    let element = rig.only("clreference");
    for frame in &good[..4] {
        rig.pass(buffer_of(frame, &device));
    }
    element.emit_by_name::<()>("learn", &[]);
    for frame in &good[4..24] {
        rig.pass(buffer_of(frame, &device));
    }
    let told = rig.told("clreference-learned");
    assert_eq!(told.len(), 1, "{told:?}");
    let factor = told[0].get::<f64>("deviation-factor").expect("a factor");
    assert_eq!(element.property::<f64>("deviation-factor"), factor);
    assert_eq!(told[0].get::<u64>("deviation-factor-frame"), Ok(13));
    assert_eq!(element.property::<f64>("threshold"), 2.0);

    // Of 20 frames ⌊0.05·20⌋ = 1 may demand more than 1/1.1 of the factor.
    let mut failed = |factor: f64| {
        element.set_property("deviation-factor", factor);
        let mut failed = 0;
        for _ in 0..2 {
            let outputs = good[4..24]
                .iter()
                .map(|frame| rig.pass(buffer_of(frame, &device)));
            let verdicts = outputs.map(|output| DefectResult::read(&output).remove(0).verdict);
            failed = verdicts.filter(|&verdict| verdict == Verdict::Fail).count();
        }
        failed
    };
    assert_eq!(failed(factor / 1.1 + 0.001), 1);
    assert_eq!(failed(factor / 1.1 - 1.0 / 64.0), 2);
}

/// The lowest factor in 1/64 at which no pixel of a frame is marked beside the model of others.
fn lowest_factor(frame: &Frame, others: &[&Frame], threshold: f64) -> f64 {
    let n = others.len() as u64;
    let largest = (0..frame.bytes.len()).map(|at| {
        let samples = others.iter().map(|other| u64::from(other.bytes[at]));
        let [sum, squares] = samples.fold([0; 2], |[a, b], s| [a + s, b + s * s]);
        let mean = (512 * sum + n) / (2 * n);
        let deviation = ((65536.0 * (n * squares - sum * sum) as f64).sqrt() as u64) / n;
        let distance = (256 * u64::from(frame.bytes[at])).abs_diff(mean);
        let passes = |sixty_fourths: u32| {
            let scaled = (f64::from(sixty_fourths) / 64.0 * deviation as f64).round() as u64;
            distance <= scaled.max((256.0 * threshold) as u64)
        };
        (1..64_000).find(|&factor| passes(factor)).unwrap_or(64_000)
    });
    f64::from(largest.max().expect("pixels")) / 64.0
}

#[test]
fn frames_of_a_training_are_judged_by_what_the_others_trained() {
    let Some(device) = start() else { return };
    let base = panels().next(0);
    let good: Vec<Frame> = (0..7).map(|n| with_noise(&base, n)).collect();
    let line = "clreference train-frames=6 threshold=3 edge-tolerance=0 learn=learn,frames=6";
    let mut rig = Rig::new(line, &caps_of(&base));
    let element = rig.only("clreference");
    element.emit_by_name::<()>("learn", &[]);
    for (n, frame) in good[..6].iter().enumerate() {
        let output = rig.pass(buffer_of(frame, &device));
        let result = DefectResult::read(&output).remove(0);
        let counted = if n < 5 { 0 } else { 6 };
        assert_eq!(result.learning, Some([counted, 6]));
        assert_eq!(result.training, Some([n as u32 + 1, 6]));
    }
    let demands = (0..6).map(|n| {
        let others: Vec<&Frame> = (0..6).filter(|&m| m != n).map(|m| &good[m]).collect();
        lowest_factor(&good[n], &others, 3.0)
    });
    let demands: Vec<f64> = demands.collect();
    let told = rig.told_while("clreference-learned", || buffer_of(&good[6], &device));
    let factor = told.get::<f64>("deviation-factor").expect("a factor");
    assert!(
        (factor - 1.1 * max(&demands)).abs() <= 1.0 / 2048.0,
        "{factor} {demands:?}"
    );
    let frame = told.get::<u64>("deviation-factor-frame").expect("a frame");
    assert_eq!(demands[frame as usize], max(&demands));
    // The model that all of them trained is in force.
    let output = rig.pass(buffer_of(&good[6], &device));
    let result = DefectResult::read(&output).remove(0);
    assert_eq!((result.learning, result.judged_pixels), (None, 320 * 240));
}

/// A piece of a rough surface, such as cast metal: no two are alike, and none has an edge.
fn rough(piece: u64) -> Frame {
    let mut frame = Frame::poisoned(gst_video::VideoFormat::Gray8, [500, 1216], PLAIN, 0x80);
    let stride = frame.info.stride()[0] as usize;
    for (y, row) in frame.bytes.chunks_mut(stride).enumerate() {
        for (x, sample) in row.iter_mut().enumerate() {
            let grain = random(piece, 0, x / 3, y / 3) % 40;
            *sample = (90 + grain + random(piece, 1, x, y) % 16) as u8;
        }
    }
    frame
}

/// All frames of a training were judged while its last frame waited: a second a frame on a surface of 500x1216 pixels.
#[test]
fn frames_wait_less_than_a_second_while_those_of_a_training_are_judged() {
    let Some(device) = start() else { return };
    let pieces: Vec<Frame> = (0..12).map(rough).collect();
    let line = "clreference train-frames=12 align=affine match-score=0 learn=learn,frames=12";
    let mut factors = Vec::new();
    for ends_at_once in [false, true] {
        let mut rig = Rig::new(line, &caps_of(&pieces[0]));
        rig.only("clreference").emit_by_name::<()>("learn", &[]);
        let mut told = Vec::new();
        let mut judged = Vec::new();
        for (n, frame) in pieces.iter().chain(&pieces).enumerate() {
            let began = std::time::Instant::now();
            let output = rig.pass(buffer_of(frame, &device));
            let waited = began.elapsed();
            // Less than a second on a PC that does nothing else.
            assert!(waited.as_secs_f64() < 2.0, "frame {n} waited {waited:?}");
            if n + 1 == pieces.len() && ends_at_once {
                assert!(rig.harness().push_event(gst::event::Eos::new()));
            }
            while let Some(message) = rig.next_element_message() {
                let fields = message.structure().unwrap().to_owned();
                match fields.name().as_str() {
                    "clreference-learning" => judged.push(fields.get::<u32>("frames").unwrap()),
                    "clreference-learned" => told.push(fields),
                    _ => {}
                }
            }
            if n + 1 < pieces.len() {
                continue;
            }
            // Those that were not judged yet count already.
            let result = DefectResult::read(&output).remove(0);
            assert_eq!(result.learning, Some([12, 12]), "frame {n}");
            if !told.is_empty() {
                break;
            }
        }
        assert!(judged.is_sorted(), "{judged:?}");
        assert_eq!(judged.last(), Some(&12));
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].get::<u32>("frames"), Ok(12));
        factors.push(told[0].get::<f64>("deviation-factor").unwrap());
    }
    assert_eq!(factors[0], factors[1]);
}

/// `learn` is emitted again because the first frames were not good after all.
#[test]
fn frames_of_a_training_do_not_count_for_a_learn_after_it() {
    let Some(device) = start() else { return };
    let pieces: Vec<Frame> = (0..12).map(rough).collect();
    let line = "clreference train-frames=12 match-score=0 learn=learn,frames=12";
    let mut rig = Rig::new(line, &caps_of(&pieces[0]));
    let element = rig.only("clreference");
    element.emit_by_name::<()>("learn", &[]);
    for frame in &pieces {
        rig.pass(buffer_of(frame, &device));
    }
    element.emit_by_name::<()>("learn", &[]);
    for (n, frame) in pieces[..3].iter().enumerate() {
        let output = rig.pass(buffer_of(frame, &device));
        let result = DefectResult::read(&output).remove(0);
        assert_eq!(result.learning, Some([n as u32 + 1, 12]));
    }
}

#[test]
fn limits_are_saved_with_their_frames_and_read_at_the_start() {
    let Some(device) = start() else { return };
    let folder = Folder::new("learned-limits");
    let path = folder.0.join("limits.npz");
    let mut frames = good(3);
    frames.insert(1, panels().next(3));
    let demands = strict(&frames);
    let line = format!(
        "{ELEMENT} scales=1 learn=\"learn,frames=3,margin=0,location=(string){}\"",
        path.display()
    );
    let caps = caps_of(&frames[0]);
    let mut rig = Rig::new(&line, &caps);
    assert!(rig.warnings().is_empty());
    let told = learn(&mut rig, "clpitchthreshold", &frames[..3]);
    let level = told.get::<f64>("level-1").expect("a limit");
    drop(rig);

    // Another start has the limits, and may forget a frame of the first one.
    let mut rig = Rig::new(&line, &caps);
    let element = rig.only("clpitchthreshold");
    let output = rig.pass(buffer_of(&frames[3], &device));
    let result = DefectResult::read(&output).remove(0);
    assert_eq!((result.threshold, result.learning), (demands[1], None));
    let factor = || {
        let factors = element.property::<gst::Array>("scale-factors");
        factors[0].get::<f64>().unwrap()
    };
    assert_eq!(factor(), level / demands[1]);
    element.emit_by_name::<()>("forget", &[&1_u64]);
    rig.pass(buffer_of(&frames[3], &device));
    let last = demands[0].max(demands[2]).max(demands[3]);
    assert_eq!(element.property::<f64>("threshold"), last);
    let told = rig.told("clpitchthreshold-learned");
    assert_eq!(told[0].get::<u32>("missing-frames"), Ok(1));
    assert_eq!(told[1].get::<f64>("threshold"), Ok(last));
    drop(rig);
    let mut rig = Rig::new(&line, &caps);
    rig.pass(buffer_of(&frames[3], &device));
    assert_eq!(
        rig.only("clpitchthreshold").property::<f64>("threshold"),
        last
    );
}

#[test]
fn file_of_other_limits_is_refused_and_the_properties_stay() {
    let Some(device) = start() else { return };
    let folder = Folder::new("other-limits");
    let path = folder.0.join("limits.npz");
    let frame = good(1).remove(0);
    let learn_with = format!(
        "learn=\"learn,frames=1,location=(string){}\"",
        path.display()
    );
    let line = format!("{ELEMENT} threshold=77 {learn_with}");
    let mut rig = Rig::new(&line, &caps_of(&frame));
    learn(&mut rig, "clpitchthreshold", std::slice::from_ref(&frame));
    drop(rig);
    let whole = std::fs::read(&path).expect("the file");

    let refused = |line: &str, frame: &Frame, words: &str| {
        let mut rig = Rig::new(line, &caps_of(frame));
        rig.pass(buffer_of(frame, &device));
        let warnings = rig.warnings();
        let told = warnings
            .iter()
            .any(|warning| warning.text.contains("limits.npz") && warning.text.contains(words));
        assert!(told, "{words}: {warnings:?}");
    };
    let mut small = Panels::new(PanelSpec {
        width: 160,
        height: 120,
        ..PanelSpec::default()
    });
    refused(&line, &small.next(0), "frames of [320, 240] pixels");
    let deep = panels().next_as(gst_video::VideoFormat::Gray16Le, PLAIN, 0);
    refused(&line, &deep, "8-bit samples");
    let levels = format!("{line} scales=2");
    refused(&levels, &frame, "\"threshold;level-1;level-2\"");
    let other = format!("clreference train-frames=1 deviation-factor=0 {learn_with}");
    refused(&other, &frame, "of the element \"clpitchthreshold\"");
    for (bytes, words) in [
        (&whole[..whole.len() / 2], "cut short"),
        (b"not an archive", "not an .npz file"),
    ] {
        std::fs::write(&path, bytes).expect("a file");
        refused(&line, &frame, words);
    }
    let mut rig = Rig::new(&line, &caps_of(&frame));
    rig.pass(buffer_of(&frame, &device));
    assert_eq!(
        rig.only("clpitchthreshold").property::<f64>("threshold"),
        77.0
    );
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
