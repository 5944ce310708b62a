//! Pitch estimation from frames.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{
    common::panel::PanelSpec,
    content::Content,
    defects::counts,
    frames::{Frame, PADDED, PLAIN, read},
    oracle::{pitch_threshold::compare, put},
    panels::Panels,
    support::{Rig, buffer_of, caps_of, noise, pitch_threshold_settings, start},
};

/// Largest error allowed, px.
const TOLERANCE_PX: f64 = 0.01;

fn panel(size: [usize; 2], pitch: [f64; 2]) -> Panels {
    Panels::new(PanelSpec {
        width: size[0],
        height: size[1],
        pitch_x: pitch[0],
        pitch_y: pitch[1],
        noise_sigma: 8.0,
        ..PanelSpec::default()
    })
}

fn estimated(rig: &Rig) -> [f64; 2] {
    let estimates: gst::Structure = rig.only("clpitchthreshold").property("estimates");
    ["pitch-x", "pitch-y"].map(|name| estimates.get(name).unwrap())
}

/// Counts the notifications of a property.
fn notified(rig: &Rig, name: &str) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    rig.only("clpitchthreshold")
        .connect_notify(Some(name), move |_, _| {
            counter.fetch_add(1, Ordering::SeqCst);
        });
    count
}

#[track_caller]
fn assert_near(actual: f64, pitch: f64) {
    assert!(
        (actual - pitch).abs() <= TOLERANCE_PX,
        "{actual} instead of {pitch}"
    );
}

/// The meta holds the pitch that the frame was judged with.
#[track_caller]
fn assert_judged_as_told(output: &gst::Buffer, frame: &Frame, threshold: f64) -> DefectResult {
    let result = DefectResult::read(output).remove(0);
    let settings = pitch_threshold_settings(result.pitch_x, result.pitch_y, threshold);
    let outcome = compare(frame.component(0), &settings);
    assert_eq!(result.judged_pixels, outcome.judged_pixels);
    assert_eq!(result.defect_pixels, outcome.defect_pixels);
    assert!(read(output) == outcome.packed, "another mask");
    result
}

#[test]
fn estimated_pitches_of_noisy_panels_are_right_from_the_first_frame_on() {
    let Some(device) = start() else { return };
    for (size, pitch) in [
        ([320, 240], [3.1, 4.63]),
        ([640, 480], [7.35, 7.5]),
        ([640, 480], [16.35, 12.08]),
        ([1024, 600], [61.13, 33.3]),
    ] {
        let mut panels = panel(size, pitch);
        let frame = panels.next(3);
        let element = "clpitchthreshold PUBLISHED pitch-x=-1 pitch-y=-1 threshold=40 reports=reports,interval=0";
        let mut rig = Rig::new(element, &caps_of(&frame));
        assert_eq!(estimated(&rig), [0.0, 0.0]);
        let notified = notified(&rig, "estimates");
        let output = rig.pass(buffer_of(&frame, &device));
        let held = estimated(&rig);
        assert_near(held[0], pitch[0]);
        assert_near(held[1], pitch[1]);
        let result = assert_judged_as_told(&output, &frame, 40.0);
        assert_eq!([result.pitch_x, result.pitch_y], held);
        assert!(result.verdict != Verdict::None);

        let mut told = Vec::new();
        while let Some(message) = rig.next_element_message() {
            told.push(message.structure().unwrap().to_owned());
        }
        let names: Vec<&str> = told.iter().map(|s| s.name().as_str()).collect();
        assert_eq!(names, ["clpitchthreshold-pitch", "clpitchthreshold"]);
        assert_eq!(told[0].get::<f64>("pitch-x"), Ok(held[0]));
        assert_eq!(told[0].get::<f64>("pitch-y"), Ok(held[1]));

        // The estimate stays the same while frames differ only by noise.
        for _ in 0..3 {
            let frame = panels.next(0);
            let output = rig.pass(buffer_of(&frame, &device));
            assert_judged_as_told(&output, &frame, 40.0);
        }
        assert_eq!(estimated(&rig), held);
        assert!(rig.told("clpitchthreshold-pitch").is_empty());
        assert_eq!(notified.load(Ordering::SeqCst), 1);
        assert!(rig.warnings().is_empty() && rig.errors().is_empty());
    }
}

#[test]
fn estimation_along_x_is_the_default_and_along_y_is_asked_for() {
    let Some(device) = start() else { return };
    let frame = panel([320, 240], [7.35, 9.2]).next(0);
    for (settings, axes) in [
        ("", [true, false]),
        ("pitch-x=0 pitch-y=-1", [false, true]),
        ("pitch-x=7.35 pitch-y=-1", [false, true]),
    ] {
        let line = format!("clpitchthreshold PUBLISHED {settings} threshold=40");
        let mut rig = Rig::new(&line, &caps_of(&frame));
        let output = rig.pass(buffer_of(&frame, &device));
        assert_judged_as_told(&output, &frame, 40.0);
        for (axis, pitch) in [7.35, 9.2].into_iter().enumerate() {
            let held = estimated(&rig)[axis];
            if axes[axis] {
                assert_near(held, pitch);
            } else {
                assert_eq!(held, 0.0, "{settings}");
            }
        }
    }
}

#[test]
fn estimation_works_on_every_luma_format_and_memory() {
    let Some(device) = start() else { return };
    for format in [Format::I420, Format::Gray16Le, Format::Gray16Be] {
        let frame = panel([320, 240], [7.35, 9.2]).next_as(format, PADDED, 0);
        let threshold = 40.0 * f64::from(1_u32 << (8 * (frame.kind().size() - 1)));
        for output in ["mask", "frame"] {
            let line = format!(
                "clpitchthreshold PUBLISHED pitch-y=-1 threshold={threshold} output={output}"
            );
            let mut rig = Rig::new(&line, &caps_of(&frame));
            let output = rig.pass(buffer_of(&frame, &device));
            let [x, y] = estimated(&rig);
            assert_near(x, 7.35);
            assert_near(y, 9.2);
            let result = &DefectResult::read(&output)[0];
            assert_eq!([result.pitch_x, result.pitch_y], [x, y]);
        }
    }
}

#[test]
fn frames_without_a_pattern_warn_once_and_are_not_judged() {
    let Some(device) = start() else { return };
    let size = [320, 240];
    let gradient = |content| Frame::showing(Format::Gray8, size, PLAIN, content, 0);
    for (frame, about) in [
        (noise(Format::Gray8, size, PLAIN), "noise"),
        (gradient(Content::GradientX), "gradient along x"),
        (gradient(Content::GradientY), "gradient along y"),
        (gradient(Content::Constant(90)), "one level"),
    ] {
        for (settings, word, count) in [
            ("pitch-x=-1", "pitch-x", 1),
            ("pitch-x=0 pitch-y=-1", "pitch-y", 1),
            ("pitch-x=-1 pitch-y=-1", "pitch-", 2),
        ] {
            let line = format!("clpitchthreshold PUBLISHED {settings} reports=reports,interval=0");
            let mut rig = Rig::new(&line, &caps_of(&frame));
            for _ in 0..40 {
                let output = rig.pass(buffer_of(&frame, &device));
                assert!(read(&output).iter().all(|&byte| byte == 0), "{about}");
                let result = &DefectResult::read(&output)[0];
                assert_eq!(result.verdict, Verdict::None, "{about}");
                assert_eq!((result.judged_pixels, result.defect_pixels), (0, 0));
                assert_eq!([result.pitch_x, result.pitch_y], [0.0, 0.0]);
            }
            let warnings = rig.warnings();
            assert_eq!(warnings.len(), count, "{about}, {settings}: {warnings:?}");
            assert!(warnings.iter().all(|w| w.text.contains(word)));
            assert_eq!(estimated(&rig), [0.0, 0.0]);
            assert_eq!(counts(&rig), [0, 0, 40]);
            let told = rig.told("clpitchthreshold");
            assert!(told.iter().all(|m| m.get::<&str>("verdict") == Ok("none")));
            assert!(rig.errors().is_empty());
        }
    }
}

#[test]
fn pitch_set_and_estimated_again_while_playing_is_followed() {
    let Some(device) = start() else { return };
    let mut panels = panel([320, 240], [7.35, 9.2]);
    let first = panels.next(2);
    let mut rig = Rig::new("clpitchthreshold PUBLISHED threshold=40", &caps_of(&first));
    let element = rig.only("clpitchthreshold");
    let mut pass = |rig: &mut Rig| {
        let frame = panels.next(2);
        let output = rig.pass(buffer_of(&frame, &device));
        assert_judged_as_told(&output, &frame, 40.0)
    };
    for round in 0..2 {
        let result = pass(&mut rig);
        assert_near(result.pitch_x, 7.35);
        assert_eq!(estimated(&rig)[0], result.pitch_x, "round {round}");

        element.set_property("pitch-x", 14.7);
        let result = pass(&mut rig);
        assert_eq!(result.pitch_x, 14.7);
        assert_eq!(estimated(&rig), [0.0, 0.0]);

        element.set_property("pitch-y", -1.0);
        let result = pass(&mut rig);
        assert_eq!(result.pitch_x, 14.7);
        assert_near(result.pitch_y, 9.2);
        assert_near(estimated(&rig)[1], 9.2);

        element.set_property("pitch-y", 0.0);
        element.set_property("pitch-x", -1.0);
    }
    assert!(rig.warnings().is_empty() && rig.errors().is_empty());
    // A comparison along neither axis is refused; the estimated pitch stays in force.
    pass(&mut rig);
    element.set_property("pitch-x", 0.0);
    assert_near(pass(&mut rig).pitch_x, 7.35);
    assert_eq!(rig.warnings().len(), 1);
}

#[test]
fn other_settings_changed_while_playing_keep_the_estimated_pitch() {
    let Some(device) = start() else { return };
    let mut panels = panel([320, 240], [7.35, 9.2]);
    let frame = panels.next(2);
    let mut rig = Rig::new("clpitchthreshold PUBLISHED threshold=40", &caps_of(&frame));
    rig.pass(buffer_of(&frame, &device));
    let held = estimated(&rig)[0];
    rig.only("clpitchthreshold").set_property("threshold", 25.5);
    let frame = panels.next(2);
    let output = rig.pass(buffer_of(&frame, &device));
    assert_eq!(assert_judged_as_told(&output, &frame, 25.5).pitch_x, held);
    assert_eq!(estimated(&rig)[0], held);
}

#[test]
fn pitch_that_changes_in_the_stream_is_followed() {
    let Some(device) = start() else { return };
    let size = [320, 120];
    let mut panels = panel(size, [7.35, 7.35]);
    let frame = panels.next(0);
    let mut rig = Rig::new("clpitchthreshold PUBLISHED threshold=60", &caps_of(&frame));
    let notified = notified(&rig, "estimates");
    for _ in 0..5 {
        rig.pass(buffer_of(&panels.next(0), &device));
    }
    assert_near(estimated(&rig)[0], 7.35);
    assert_eq!(rig.told("clpitchthreshold-pitch").len(), 1);

    // Three estimates that agree: one frame in thirty is examined, and after it the next two.
    let mut panels = panel(size, [9.2, 7.35]);
    let frames: Vec<Frame> = (0..5).map(|_| panels.next(0)).collect();
    for number in 0..100 {
        rig.pass(buffer_of(&frames[number % frames.len()], &device));
    }
    assert_near(estimated(&rig)[0], 9.2);
    let frame = &frames[0];
    let output = rig.pass(buffer_of(frame, &device));
    let result = assert_judged_as_told(&output, frame, 60.0);
    assert_eq!(result.verdict, Verdict::Pass);
    let told = rig.told("clpitchthreshold-pitch");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].get::<f64>("pitch-x"), Ok(estimated(&rig)[0]));
    assert_eq!(notified.load(Ordering::SeqCst), 2);
}

/// Cloth behind a line camera: yarns along x at a pitch of 9.3 px, along y at one that follows the line's speed. The
/// phase wanders by 0.3 rad root mean square per pitch.
fn cloth(pitch_y: f64, seed: u64) -> Frame {
    const SIZE: [usize; 2] = [512, 256];
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut wander = |length: usize, pitch: f64| -> Vec<f64> {
        let mut phase = 0.0;
        let levels = (0..length).map(|_| {
            let uniform = rng.random_range(-1.0..1.0) * f64::sqrt(3.0);
            phase += std::f64::consts::TAU / pitch + 0.3 / pitch.sqrt() * uniform;
            f64::cos(phase)
        });
        levels.collect()
    };
    let (warp, weft) = (wander(SIZE[0], 9.3), wander(SIZE[1], pitch_y));
    let mut frame = Frame::showing(Format::Gray8, SIZE, PLAIN, Content::Constant(0), 0);
    let geometry = frame.geometry(0);
    for (y, weft) in weft.iter().enumerate() {
        for (x, warp) in warp.iter().enumerate() {
            let level = 110.0 + 25.0 * (warp + weft) + rng.random_range(-14.0..14.0);
            let level = level.round().clamp(0.0, 255.0) as u32;
            put(&mut frame.bytes, &geometry, x, y, level);
        }
    }
    frame
}

#[test]
fn change_of_the_line_speed_is_told_and_followed_and_scatter_is_not() {
    let Some(device) = start() else { return };
    let mut rig = Rig::new("clpitchthreshold threshold=60", &caps_of(&cloth(7.12, 0)));
    for seed in 0..95 {
        let output = rig.pass(buffer_of(&cloth(7.12, seed), &device));
        let result = DefectResult::read(&output).remove(0);
        assert_ne!(result.verdict, Verdict::None, "frame {seed}");
    }
    assert!((estimated(&rig)[1] - 7.12).abs() < 0.15);
    assert!(rig.warnings().is_empty());
    let before = estimated(&rig);
    let contrast = |rig: &Rig| -> f64 {
        let estimates: gst::Structure = rig.only("clpitchthreshold").property("estimates");
        estimates.get("contrast").unwrap()
    };
    assert!(contrast(&rig) > 0.0);
    // One frame in thirty is examined, and after it the next ones.
    for seed in 100..133 {
        rig.pass(buffer_of(&cloth(11.0, seed), &device));
    }
    let held = estimated(&rig);
    assert!(
        (held[1] - 11.0).abs() < 0.3 && held[0] == before[0],
        "{held:?}"
    );
    let warnings = rig.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let text = &warnings[0].text;
    let told = format!(
        "along columns changed from {:.3} to {:.3} pixels",
        before[1], held[1]
    );
    assert!(text.contains(&told), "{text}");
    // The contrast was learned anew.
    assert!(contrast(&rig) > 0.0);
    let output = rig.pass(buffer_of(&cloth(11.0, 200), &device));
    assert_ne!(DefectResult::read(&output)[0].verdict, Verdict::None);
}

#[test]
fn pattern_that_goes_away_is_told_and_found_again() {
    let Some(device) = start() else { return };
    let size = [320, 120];
    let mut panels = panel(size, [7.35, 7.35]);
    let pattern = panels.next(0);
    let blank = noise(Format::Gray8, size, PLAIN);
    let mut rig = Rig::new(
        "clpitchthreshold PUBLISHED threshold=60",
        &caps_of(&pattern),
    );
    rig.pass(buffer_of(&pattern, &device));
    assert_near(estimated(&rig)[0], 7.35);
    for _ in 0..200 {
        rig.pass(buffer_of(&blank, &device));
    }
    assert_eq!(estimated(&rig), [0.0, 0.0]);
    assert_eq!(rig.warnings().len(), 1);
    let output = rig.pass(buffer_of(&blank, &device));
    assert_eq!(DefectResult::read(&output)[0].verdict, Verdict::None);
    for _ in 0..35 {
        rig.pass(buffer_of(&pattern, &device));
    }
    assert_near(estimated(&rig)[0], 7.35);
    assert!(rig.warnings().is_empty());
}

#[test]
fn size_change_estimates_anew() {
    let Some(device) = start() else { return };
    let frame = panel([320, 240], [7.35, 9.2]).next(0);
    let mut rig = Rig::new("clpitchthreshold PUBLISHED threshold=40", &caps_of(&frame));
    rig.pass(buffer_of(&frame, &device));
    assert_near(estimated(&rig)[0], 7.35);
    let frame = panel([400, 120], [12.6, 9.2]).next(0);
    rig.renegotiate(&caps_of(&frame));
    let output = rig.pass(buffer_of(&frame, &device));
    assert_near(estimated(&rig)[0], 12.6);
    assert_judged_as_told(&output, &frame, 40.0);
}

#[test]
fn frames_too_small_for_a_pattern_are_not_judged() {
    let Some(device) = start() else { return };
    for size in [[1, 1], [15, 1], [1, 15], [8, 8]] {
        let frame = noise(Format::Gray8, size, PLAIN);
        let mut rig = Rig::new("clpitchthreshold PUBLISHED pitch-y=-1", &caps_of(&frame));
        for _ in 0..6 {
            let output = rig.pass(buffer_of(&frame, &device));
            assert_eq!(DefectResult::read(&output)[0].verdict, Verdict::None);
        }
        assert_eq!(rig.warnings().len(), 2);
    }
}
