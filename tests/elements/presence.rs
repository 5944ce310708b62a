//! Frames in which the pattern is missing: no verdict `pass`, and exact masks.

use std::sync::Arc;

use clinspect_opencl::ClContext;
use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    common::panel::PanelSpec,
    frames::{ARRANGEMENTS, Arrangement, Frame, PLAIN, read},
    oracle::{
        pitch_threshold::{self, Outcome, compare, contrast},
        put,
    },
    panels::{Panels, recommended},
    support::{Rig, buffer_of, caps_of, constant, noise, start},
};

const SIZE: [usize; 2] = [800, 600];
const PITCH: f64 = 16.0;
/// README's recommended smoothing and threshold.
const SMOOTHED: &str = "clgaussian kernel-size=5 sigma=0.8 ! clpitchthreshold threshold=8";

/// The default settings at this threshold for the reference.
fn defaults(threshold: f64, min_contrast: f64) -> pitch_threshold::Settings {
    pitch_threshold::Settings {
        pitch_x: PITCH,
        pitch_y: PITCH,
        min_contrast,
        scales: 0,
        ..recommended(threshold)
    }
}

fn panels(noise_sigma: f64) -> Panels {
    Panels::new(PanelSpec {
        width: SIZE[0],
        height: SIZE[1],
        pitch_x: PITCH,
        pitch_y: PITCH,
        noise_sigma,
        ..PanelSpec::default()
    })
}

/// The frame with each sample replaced by `level(x, y, sample)`.
pub fn changed(frame: &Frame, level: impl Fn(usize, usize, u32) -> u32) -> Frame {
    let mut changed = frame.clone();
    let geometry = frame.geometry(0);
    let samples = frame.component(0);
    let [width, height] = frame.size();
    for y in 0..height {
        for x in 0..width {
            put(
                &mut changed.bytes,
                &geometry,
                x,
                y,
                level(x, y, samples.get(x, y)),
            );
        }
    }
    changed
}

/// What may happen to a line, drawn into a clean frame.
fn scenes(clean: &Frame) -> Vec<(String, Frame)> {
    let mut scenes = Vec::new();
    for (name, level) in [("black", 0), ("white", 255)] {
        for size in [130, 300] {
            let square = |x: usize, y: usize, s: u32| {
                let inside = (200..200 + size).contains(&x) && (150..150 + size).contains(&y);
                if inside { level } else { s }
            };
            scenes.push((
                format!("{name} square of {size} px"),
                changed(clean, square),
            ));
        }
        scenes.push((format!("all {name}"), changed(clean, |_, _, _| level)));
    }
    for rows in [130, 200] {
        let tear = |_: usize, y: usize, s: u32| {
            if (240..240 + rows).contains(&y) {
                20
            } else {
                s
            }
        };
        scenes.push((format!("tear of {rows} rows"), changed(clean, tear)));
    }
    let ended = changed(clean, |_, y, s| if y > 320 { 60 } else { s });
    scenes.push(("a web that ended".into(), ended));
    let flat = Panels::new(PanelSpec {
        width: SIZE[0],
        height: SIZE[1],
        contrast: 0.0,
        ..PanelSpec::default()
    })
    .next(0);
    scenes.push(("flat with noise".into(), flat));
    let half = changed(
        clean,
        |x, _, s| if x >= SIZE[0] / 2 { s * 3 / 10 } else { s },
    );
    scenes.push(("half a frame at 30 % light".into(), half));
    scenes.push(("25 % light".into(), changed(clean, |_, _, s| s / 4)));
    scenes
}

fn verdict(output: &gst::Buffer) -> DefectResult {
    DefectResult::read(output).remove(0)
}

#[test]
fn scenes_without_the_pattern_fail_after_a_good_frame_and_never_pass_as_the_first() {
    let Some(device) = start() else { return };
    let clean = panels(2.0).next(0);
    for pitch in ["pitch-x=16 pitch-y=16", ""] {
        let line = format!("{SMOOTHED} {pitch} min-area=8");
        let mut rig = Rig::new(&line, &caps_of(&clean));
        let first = verdict(&rig.pass(buffer_of(&clean, &device)));
        assert_eq!(
            (first.verdict, first.missing_pixels),
            (Verdict::Pass, 0),
            "{pitch}"
        );
        for (scene, frame) in scenes(&clean) {
            let result = verdict(&rig.pass(buffer_of(&frame, &device)));
            assert_eq!(result.verdict, Verdict::Fail, "{scene} {pitch}");
            assert!(result.missing_pixels > 9_000, "{scene} {pitch}: {result}");
            let mut alone = Rig::new(&line, &caps_of(&frame));
            let result = verdict(&alone.pass(buffer_of(&frame, &device)));
            // An evenly dark first frame shows the pattern: only a frame before tells that light is lost.
            let is_even = scene == "25 % light";
            assert!(
                is_even || result.verdict != Verdict::Pass,
                "{scene} first {pitch}"
            );
        }
        let last = verdict(&rig.pass(buffer_of(&clean, &device)));
        assert_eq!(
            (last.verdict, last.missing_pixels),
            (Verdict::Pass, 0),
            "{pitch}"
        );
    }
}

/// The mask of a frame and its counts, as the reference has them.
#[track_caller]
fn assert_exact(output: &gst::Buffer, expected: &Outcome, about: &str) {
    assert!(read(output) == expected.packed, "{about}");
    let result = verdict(output);
    assert_eq!(result.missing_pixels, expected.missing_pixels, "{about}");
    assert_eq!(result.defect_pixels, expected.defect_pixels, "{about}");
    assert_eq!(result.judged_pixels, expected.judged_pixels, "{about}");
    assert_eq!(
        [result.judged_x, result.judged_y],
        expected.judged_along,
        "{about}"
    );
}

fn learned_contrast(element: &gst::Element) -> f64 {
    let estimates: gst::Structure = element.property("estimates");
    estimates.get("contrast").unwrap()
}

#[test]
fn masks_of_scenes_with_the_learned_contrast_equal_the_reference() {
    let Some(device) = start() else { return };
    let clean = panels(2.0).next(0);
    let expected = contrast(clean.component(0), &defaults(12.0, 0.0)).expect("a pattern");
    let mut rig = Rig::new("clpitchthreshold pitch-x=16 pitch-y=16", &caps_of(&clean));
    let element = rig.only("clpitchthreshold");
    let settings = defaults(12.0, expected / 2.0);
    let output = rig.pass(buffer_of(&clean, &device));
    assert_exact(&output, &compare(clean.component(0), &settings), "clean");
    assert_eq!(learned_contrast(&element), expected);
    for (scene, frame) in scenes(&clean) {
        let output = rig.pass(buffer_of(&frame, &device));
        assert_exact(&output, &compare(frame.component(0), &settings), &scene);
    }
}

#[test]
fn no_frame_is_judged_before_the_pattern_is_seen() {
    let Some(device) = start() else { return };
    let clean = panels(4.0).next(0);
    let dark = changed(&clean, |_, _, _| 3);
    let mut rig = Rig::new("clpitchthreshold pitch-x=16 pitch-y=16", &caps_of(&clean));
    let element = rig.only("clpitchthreshold");
    for _ in 0..6 {
        let output = rig.pass(buffer_of(&dark, &device));
        let result = verdict(&output);
        assert_eq!((result.verdict, result.judged_pixels), (Verdict::None, 0));
        assert!(read(&output).iter().all(|&byte| byte == 0));
    }
    let warnings = rig.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0]
            .text
            .contains("no pattern that repeats with pitch-x=16")
    );
    assert_eq!(learned_contrast(&element), 0.0);
    let result = verdict(&rig.pass(buffer_of(&clean, &device)));
    assert_ne!(result.verdict, Verdict::None);
    // From now on darkness is a defect.
    let result = verdict(&rig.pass(buffer_of(&dark, &device)));
    assert_eq!(result.verdict, Verdict::Fail);
    assert_eq!(result.missing_pixels, result.judged_pixels);
}

#[test]
fn contrast_is_kept_until_take_contrast_new_caps_or_another_pitch() {
    let Some(device) = start() else { return };
    let clean = panels(4.0).next(0);
    let faint = changed(&clean, |_, _, s| 100 + s / 3);
    let mut rig = Rig::new("clpitchthreshold pitch-x=16 pitch-y=0", &caps_of(&clean));
    let element = rig.only("clpitchthreshold");
    let mut learned = |frame: &Frame| {
        rig.pass(buffer_of(frame, &device));
        learned_contrast(&element)
    };
    let full = learned(&clean);
    assert!(full > 20.0);
    assert_eq!(learned(&faint), full);
    element.emit_by_name::<()>("take-contrast", &[]);
    let less = learned(&faint);
    assert!(less > 0.0 && less < full / 2.0, "{less} of {full}");
    assert_eq!(learned(&clean), less);
    element.set_property("threshold", 30.0);
    assert_eq!(learned(&clean), less);
    element.set_property("pitch-x", 32.0);
    assert!(learned(&clean) > less);
    element.set_property("min-contrast", 5.0);
    assert_eq!(learned(&clean), 0.0);
}

#[test]
fn pattern_that_fades_and_lamp_that_flickers_never_pass_in_the_dark() {
    let Some(device) = start() else { return };
    let clean = panels(1.0).next(0);
    let at = |light: u32| changed(&clean, |_, _, s| s * light / 1000);
    let mut rig = Rig::new(
        &format!("{SMOOTHED} pitch-x=16 pitch-y=16 min-area=8"),
        &caps_of(&clean),
    );
    let mut told = |light: u32| verdict(&rig.pass(buffer_of(&at(light), &device))).verdict;
    assert_eq!(told(1000), Verdict::Pass);
    for light in (0..1000).rev().step_by(37) {
        let verdict = told(light);
        assert!(
            light > 450 || verdict == Verdict::Fail,
            "{light}: {verdict:?}"
        );
        assert!(
            light < 700 || verdict == Verdict::Pass,
            "{light}: {verdict:?}"
        );
    }
    for light in [1000, 300, 950, 100, 1000, 0] {
        let expected = if light > 500 {
            Verdict::Pass
        } else {
            Verdict::Fail
        };
        assert_eq!(told(light), expected, "{light}");
    }
}

#[test]
fn frames_of_a_tile_or_less_and_16_bits_equal_the_reference() {
    let Some(device) = start() else { return };
    let sizes = [
        [1, 1],
        [7, 3],
        [8, 16],
        [9, 17],
        [33, 15],
        [40, 48],
        [41, 49],
    ];
    for (n, size) in sizes.into_iter().enumerate() {
        for format in [Format::Gray8, Format::Gray16Le] {
            let arrangement: Arrangement = ARRANGEMENTS[n % ARRANGEMENTS.len()];
            let frame = noise(format, size, arrangement);
            let [width, height] = size;
            if width < 3 || height < 1 {
                continue;
            }
            let settings = pitch_threshold::Settings {
                multiples: vec![1],
                pitch_x: 2.5_f64.min((width as f64 - 1.0) / 3.0),
                pitch_y: 0.0,
                ..defaults(12.0, 70.0)
            };
            let line = format!(
                "clpitchthreshold pitch-x={} pitch-y=0 multiples=<1> min-contrast=70",
                settings.pitch_x
            );
            if settings.pitch_x < 1.0 {
                continue;
            }
            let mut rig = Rig::new(&line, &caps_of(&frame));
            let output = rig.pass(buffer_of(&frame, &device));
            let expected = compare(frame.component(0), &settings);
            assert_exact(&output, &expected, &frame.describe());
        }
    }
}

#[test]
fn axis_without_a_pattern_is_info_beside_another_and_a_warning_alone() {
    let Some(device) = start() else { return };
    // Stripes that repeat along x only.
    let stripes = changed(&constant([320, 240], 100), |x, _, _| {
        if x % 12 < 6 { 60 } else { 160 }
    });
    // Each kind of message is read from a bus of its own, because a read drops the other kinds.
    for kind in [gst::MessageType::Info, gst::MessageType::Warning] {
        let mut rig = Rig::new("clpitchthreshold", &caps_of(&stripes));
        let results: Vec<DefectResult> = (0..6)
            .map(|_| verdict(&rig.pass(buffer_of(&stripes, &device))))
            .collect();
        // The estimate is within a thousandth of the true 12 px.
        assert!((results[5].pitch_x - 12.0).abs() < 0.012 && results[5].pitch_y == 0.0);
        assert_eq!(results[5].verdict, Verdict::Pass);
        if kind == gst::MessageType::Info {
            let infos = rig.infos();
            assert_eq!(infos.len(), 1, "{infos:?}");
            assert!(infos[0].text.contains("along columns"), "{infos:?}");
        } else {
            assert!(rig.warnings().is_empty());
        }
    }

    let mut rig = Rig::new("clpitchthreshold", &caps_of(&stripes));
    let flat = constant([320, 240], 100);
    for _ in 0..6 {
        assert_eq!(
            verdict(&rig.pass(buffer_of(&flat, &device))).verdict,
            Verdict::None
        );
    }
    assert_eq!(rig.warnings().len(), 2);
}

#[test]
fn comparison_that_reaches_less_than_half_of_the_pixels_is_told_once() {
    let Some(device) = start() else { return };
    let line = "clpitchthreshold pitch-x=40 pitch-y=0 multiples=<1,4> borders=skip min-contrast=0";
    let frame = noise(Format::Gray8, [320, 48], PLAIN);
    let mut rig = Rig::new(line, &caps_of(&frame));
    for _ in 0..3 {
        rig.pass(buffer_of(&frame, &device));
    }
    let warnings = rig.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].text.contains("multiple 4 of pitch-x=40"),
        "{warnings:?}"
    );
}

#[test]
fn refused_values_go_back_and_do_not_stop_the_stream_at_new_caps() {
    let Some(device) = start() else { return };
    let check = |line: &str, name: &str, value: &str, device: &Arc<ClContext>| {
        let small = noise(Format::Gray8, [64, 48], PLAIN);
        let mut rig = Rig::new(line, &caps_of(&small));
        let element = rig.only(line.split(' ').next().unwrap());
        let text = |element: &gst::Element| element.property_value(name).serialize().unwrap();
        let before = text(&element);
        let notified = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let count = notified.clone();
        element.connect_notify(Some(name), move |_, _| {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        });
        rig.pass(buffer_of(&small, device));
        element.set_property_from_str(name, value);
        rig.pass(buffer_of(&small, device));
        assert_eq!(rig.warnings().len(), 1, "{line} {name}={value}");
        assert_eq!(text(&element), before, "{line} {name}={value}");
        // One for the set, one for the way back.
        assert_eq!(notified.load(std::sync::atomic::Ordering::Relaxed), 2);
        let large = noise(Format::Gray8, [80, 56], PLAIN);
        rig.harness().set_src_caps(caps_of(&large));
        rig.pass(buffer_of(&large, device));
        assert!(
            rig.errors().is_empty() && rig.warnings().is_empty(),
            "{line}"
        );
    };
    check("clhistogram", "bins", "100", &device);
    check("clhistogram", "roi", "<0,0,65,48>", &device);
    check("clgaussian", "kernel-size", "4", &device);
    let pitch = "clpitchthreshold PUBLISHED pitch-x=4";
    check(pitch, "rois", "<<0,0,65,1>>", &device);
    check(pitch, "pitch-x", "60", &device);
    check(pitch, "multiples", "<0>", &device);
}

#[test]
fn device_of_a_running_element_is_refused_at_once() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, [64, 48], PLAIN);
    for line in [
        "clgaussian",
        "clhistogram",
        "clpitchthreshold PUBLISHED pitch-x=4",
    ] {
        let mut rig = Rig::new(line, &caps_of(&frame));
        let element = rig.only(line.split(' ').next().unwrap());
        rig.pass(buffer_of(&frame, &device));
        let before: String = element.property("device");
        element.set_property("device", "no such device");
        let warnings = rig.warnings();
        assert_eq!(warnings.len(), 1, "{line}: {warnings:?}");
        assert!(
            warnings[0].text.contains("set it to READY first"),
            "{warnings:?}"
        );
        assert_eq!(element.property::<String>("device"), before);
    }
}

#[test]
fn messages_begin_with_a_line_for_people_and_name_the_settings_in_force() {
    let Some(device) = start() else { return };
    let clean = panels(1.0).next(0);
    let hole = changed(&clean, |x, y, s| if x < 300 && y < 200 { 0 } else { s });
    let mut rig = Rig::new(
        &format!("{SMOOTHED} pitch-x=16 pitch-y=16 reports=reports,interval=0"),
        &caps_of(&clean),
    );
    for frame in [&clean, &hole] {
        rig.pass(buffer_of(frame, &device));
    }
    let told = rig.told("clpitchthreshold");
    let texts: Vec<&str> = told.iter().map(|m| m.get("summary").unwrap()).collect();
    assert!(
        texts[0].starts_with("pass: 0 defects, 0 of 479984 judged pixels marked"),
        "{texts:?}"
    );
    assert!(texts[1].starts_with("fail: 1 defect, "), "{texts:?}");
    assert!(texts[1].contains("the pattern is missing on"), "{texts:?}");
    let settings: &str = told[1].get("settings").unwrap();
    assert!(
        settings.starts_with(
            "compare=minimum match-center=true multiples=[1, 4] scales=0 scale-factors=[0.6, 0.3, 0.15, 0.08] \
             polarity=both borders=inward"
        ),
        "{settings}"
    );
    assert!(!told[1].has_field("defects"));
    assert_eq!(told[1].fields().next().unwrap(), "summary");
}
