//! `clpitchthreshold pitch-x=-1 pitch-y=-1` on patterns that are turned against rows and columns.

use std::sync::Arc;

use clinspect_opencl::ClContext;
use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    frames::{Frame, PLAIN, read},
    oracle::{
        pitch_threshold::{self, compare, contrast},
        put,
    },
    panels::recommended,
    support::{Rig, buffer_of, caps_of, noise, start},
};

const SIZE: [usize; 2] = [400, 320];
/// The cell, px.
const CELL: [f64; 2] = [17.3, 21.6];
/// Largest error of a vector, px, and of its angle, degrees.
const LARGEST_ERROR_PX: f64 = 0.02;
const LARGEST_ERROR_DEGREES: f64 = 0.05;
const SPOT: [usize; 2] = [231, 127];

/// The vectors of the pattern turned by this angle.
fn turned(degrees: f64) -> [[f64; 2]; 2] {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let [p, q] = CELL;
    [[p * cos, p * sin], [-q * sin, q * cos]]
}

/// A frame of `level(x, y)`, with noise of up to 3 grey levels.
fn drawn(format: Format, level: impl Fn(f64, f64) -> f64) -> Frame {
    let mut frame = noise(format, SIZE, PLAIN);
    let random = noise(Format::Gray8, SIZE, PLAIN);
    for component in 0..if format == Format::Rgb { 3 } else { 1 } {
        let geometry = frame.geometry(component);
        for (x, y) in (0..SIZE[1]).flat_map(|y| (0..SIZE[0]).map(move |x| (x, y))) {
            let noise = f64::from(random.component(0).get(x, y) % 7) - 3.0;
            let level = (level(x as f64, y as f64) + noise)
                .round()
                .clamp(0.0, 255.0);
            put(&mut frame.bytes, &geometry, x, y, level as u32);
        }
    }
    frame
}

/// A turned sheet with a soft dot in each cell; `spot` is darker within 3 px.
fn sheet(format: Format, degrees: f64, spot: Option<[usize; 2]>) -> Frame {
    let [a, b] = turned(degrees);
    drawn(format, |x, y| {
        let wave = |v: [f64; 2]| {
            let turns = (v[0] * x + v[1] * y) / (v[0] * v[0] + v[1] * v[1]);
            0.5 + 0.5 * (std::f64::consts::TAU * turns).cos()
        };
        let near = |[left, top]: [usize; 2]| {
            (x - left as f64).abs() <= 3.0 && (y - top as f64).abs() <= 3.0
        };
        let dark = if spot.is_some_and(near) { 60.0 } else { 0.0 };
        80.0 + 120.0 * wave(a) * wave(b) - dark
    })
}

struct Estimate {
    lattice: Vec<f64>,
    angle: f64,
    error: f64,
    pitches: [f64; 2],
}

fn estimate(fields: &gst::StructureRef) -> Estimate {
    let lattice: gst::Array = fields.get("lattice").unwrap();
    Estimate {
        lattice: lattice.iter().map(|v| v.get().unwrap()).collect(),
        angle: fields.get("angle").unwrap(),
        error: fields.get("standard-error").unwrap(),
        pitches: ["pitch-x", "pitch-y"].map(|name| fields.get(name).unwrap()),
    }
}

fn estimated(rig: &Rig) -> Estimate {
    let estimates: gst::Structure = rig.only("clpitchthreshold").property("estimates");
    estimate(&estimates)
}

/// Asserts that the vectors are those of the pattern turned by this angle.
#[track_caller]
fn assert_turned(vectors: &[f64], degrees: f64) {
    let wanted = turned(degrees);
    assert_eq!(vectors.len(), 4, "{vectors:?}");
    for v in vectors.chunks_exact(2) {
        // Beyond 45° the other vector is nearer to the x axis.
        let away = |w: [f64; 2], sign: f64| (v[0] - sign * w[0]).hypot(v[1] - sign * w[1]);
        let near = wanted
            .into_iter()
            .flat_map(|w| [away(w, 1.0), away(w, -1.0)]);
        let near = near.fold(f64::MAX, f64::min);
        assert!(near <= LARGEST_ERROR_PX, "{vectors:?}, not {wanted:?}");
    }
}

/// Asserts that the mask is that of the vectors in the meta.
#[track_caller]
fn assert_judged_as_told(output: &gst::Buffer, frame: &Frame, good: &Frame) -> DefectResult {
    let result = DefectResult::read(output).remove(0);
    let settings = |vectors: &[[f64; 2]]| pitch_threshold::Settings {
        vectors: vectors.to_vec(),
        scales: 0,
        multiples: vec![1],
        ..recommended(25.0)
    };
    let settings = pitch_threshold::Settings {
        min_contrast: contrast(good.component(0), &settings(&result.lattice)).unwrap() / 2.0,
        ..settings(&result.lattice)
    };
    let expected = compare(frame.component(0), &settings);
    assert_eq!(result.defect_pixels, expected.defect_pixels);
    assert!(read(output) == expected.packed, "another mask");
    result
}

/// An element that looks for vectors in frames like this one.
fn rig_for(frame: &Frame) -> Rig {
    let element = "clpitchthreshold threshold=25 multiples=<1>";
    Rig::new(element, &caps_of(frame))
}

/// Judges a frame.
fn judged(rig: &mut Rig, frame: &Frame, device: &Arc<ClContext>) -> DefectResult {
    DefectResult::read(&rig.pass(buffer_of(frame, device))).remove(0)
}

#[test]
fn pattern_at_any_angle_is_compared_along_its_vectors_from_the_first_frame_on() {
    let Some(device) = start() else { return };
    for degrees in [1.0, 3.0, 7.0, 21.0, 44.0, -12.0] {
        let good = sheet(Format::Gray8, degrees, None);
        let mut rig = rig_for(&good);
        assert!(estimated(&rig).lattice.is_empty());
        let output = rig.pass(buffer_of(&good, &device));
        let result = assert_judged_as_told(&output, &good, &good);
        assert_eq!(result.verdict, Verdict::Pass, "{degrees}°");
        let held = estimated(&rig);
        assert_turned(&held.lattice, degrees);
        assert_eq!(result.lattice.as_flattened(), held.lattice);
        assert_eq!(held.pitches, [0.0; 2]);
        assert!(
            (held.angle - degrees).abs() <= LARGEST_ERROR_DEGREES,
            "{}",
            held.angle
        );
        assert!(
            held.error > 0.0 && held.error < LARGEST_ERROR_PX,
            "{}",
            held.error
        );
        // A look at messages of one kind drops those of others.
        assert!(rig.warnings().is_empty(), "{degrees}°");

        let spoiled = sheet(Format::Gray8, degrees, Some(SPOT));
        let output = rig.pass(buffer_of(&spoiled, &device));
        let result = assert_judged_as_told(&output, &spoiled, &good);
        assert_eq!(
            (result.verdict, result.defects.len()),
            (Verdict::Fail, 1),
            "{degrees}°"
        );
        assert!((result.defects[0].centroid_x - SPOT[0] as f32).abs() < 1.5);
        assert!(
            rig.warnings().is_empty() && rig.infos().is_empty(),
            "{degrees}°"
        );
        assert!(rig.told("clpitchthreshold-pitch").is_empty());
    }
}

#[test]
fn pieces_at_other_angles_are_compared_along_their_own_vectors() {
    let Some(device) = start() else { return };
    let good = sheet(Format::Gray8, 5.0, None);
    let mut rig = rig_for(&good);
    rig.pass(buffer_of(&good, &device));
    for degrees in [17.0, -31.0, 40.0, 2.0, 29.0, -8.0] {
        for (spot, verdict) in [(None, Verdict::Pass), (Some(SPOT), Verdict::Fail)] {
            let frame = sheet(Format::Gray8, degrees, spot);
            let result = judged(&mut rig, &frame, &device);
            assert_eq!(result.verdict, verdict, "{degrees}°");
            assert_turned(result.lattice.as_flattened(), degrees);
        }
    }
    // No three of them agree.
    assert_turned(&estimated(&rig).lattice, 5.0);
    assert!(rig.warnings().is_empty());
}

#[test]
fn pattern_that_turns_is_followed_and_told_once() {
    let Some(device) = start() else { return };
    let good = sheet(Format::Gray8, 5.0, None);
    let mut rig = rig_for(&good);
    rig.pass(buffer_of(&good, &device));
    let messages = rig.told("clpitchthreshold-pitch");
    assert_eq!(messages.len(), 1);
    assert_turned(&estimate(&messages[0]).lattice, 5.0);
    let frame = sheet(Format::Gray8, 8.0, None);
    for _ in 0..5 {
        let result = judged(&mut rig, &frame, &device);
        assert_eq!(result.verdict, Verdict::Pass);
        assert_turned(result.lattice.as_flattened(), 8.0);
    }
    assert_turned(&estimated(&rig).lattice, 8.0);
    let warnings = rig.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].text.contains("8.0 degrees"), "{warnings:?}");
}

#[test]
fn pattern_that_goes_is_lost_after_five_frames_and_found_again() {
    let Some(device) = start() else { return };
    let good = sheet(Format::Gray8, 7.0, None);
    let mut rig = rig_for(&good);
    rig.pass(buffer_of(&good, &device));
    let gone = noise(Format::Gray8, SIZE, PLAIN);
    for frame in 0..5 {
        assert_turned(&estimated(&rig).lattice, 7.0);
        let result = judged(&mut rig, &gone, &device);
        assert_ne!(result.verdict, Verdict::Pass, "frame {frame}");
    }
    assert!(estimated(&rig).lattice.is_empty());
    for _ in 0..30 {
        rig.pass(buffer_of(&good, &device));
    }
    assert_turned(&estimated(&rig).lattice, 7.0);
    let result = judged(&mut rig, &good, &device);
    assert_eq!(result.verdict, Verdict::Pass);
}

#[test]
fn parallel_pattern_is_compared_at_its_pitches() {
    let Some(device) = start() else { return };
    let frame = sheet(Format::Gray8, 0.0, None);
    let mut rig = rig_for(&frame);
    for _ in 0..3 {
        let result = judged(&mut rig, &frame, &device);
        assert_eq!(result.verdict, Verdict::Pass);
        assert!(result.lattice.is_empty());
        let held = estimated(&rig);
        assert!(held.lattice.is_empty() && held.angle == 0.0);
        assert_eq!([result.pitch_x, result.pitch_y], held.pitches);
        for (pitch, wanted) in held.pitches.into_iter().zip(CELL) {
            assert!((pitch - wanted).abs() < 0.01, "{pitch}");
        }
    }
    assert!(rig.warnings().is_empty());
}

#[test]
fn lines_that_repeat_along_one_axis_only_are_compared_along_their_normal() {
    let Some(device) = start() else { return };
    // Along columns the lines repeat after 487 px.
    let normal = turned(2.0)[0];
    let lines = drawn(Format::Gray8, |x, y| {
        let turns = (normal[0] * x + normal[1] * y) / (CELL[0] * CELL[0]);
        120.0 + 50.0 * (std::f64::consts::TAU * turns).cos()
    });
    let mut rig = rig_for(&lines);
    let result = judged(&mut rig, &lines, &device);
    assert_eq!(result.verdict, Verdict::Pass);
    let [[x, y]] = result.lattice[..] else {
        panic!("{:?}", result.lattice)
    };
    assert!(
        (x - normal[0]).hypot(y - normal[1]) < LARGEST_ERROR_PX,
        "({x}, {y})"
    );
}

#[test]
fn components_of_a_turned_pattern_are_compared_along_the_vectors_of_its_luma() {
    let Some(device) = start() else { return };
    let good = sheet(Format::Rgb, 33.0, None);
    let mut rig = rig_for(&good);
    for (frame, verdict) in [
        (&good, Verdict::Pass),
        (&sheet(Format::Rgb, 33.0, Some(SPOT)), Verdict::Fail),
    ] {
        let result = judged(&mut rig, frame, &device);
        assert_eq!(result.verdict, verdict);
        assert_turned(result.lattice.as_flattened(), 33.0);
    }
}

#[test]
fn limit_is_learned_from_pieces_at_several_angles() {
    let Some(device) = start() else { return };
    let first = sheet(Format::Gray8, 5.0, None);
    let mut rig = Rig::new(
        "clpitchthreshold multiples=<1> learn=learn,frames=4",
        &caps_of(&first),
    );
    for degrees in [5.0, 17.0, -31.0, 40.0] {
        rig.pass(buffer_of(&sheet(Format::Gray8, degrees, None), &device));
    }
    for (spot, verdict) in [(None, Verdict::Pass), (Some(SPOT), Verdict::Fail)] {
        let frame = sheet(Format::Gray8, 23.0, spot);
        let result = judged(&mut rig, &frame, &device);
        assert!(
            (2.0..25.0).contains(&result.threshold),
            "{}",
            result.threshold
        );
        assert_eq!(result.verdict, verdict);
    }
}

#[test]
fn pitch_that_is_turned_against_the_pattern_is_told_once_with_the_angle() {
    let Some(device) = start() else { return };
    let pitches = format!("pitch-x={} pitch-y={}", CELL[0], CELL[1]);
    for (settings, degrees, told) in [
        (pitches.as_str(), 3.0, Some("pitch-x=17.3")),
        ("pitch-x=0 pitch-y=21.6", -3.0, Some("pitch-y=21.6")),
        // Blocks of pixels lie along rows and columns.
        ("scales=2", 3.0, Some("pitch-x=")),
        (&pitches, 0.0, None),
        ("pitch-x=34.6 pitch-y=0", 0.0, None),
        ("lattice=<17.3,0.0,0.0,21.6>", 3.0, None),
    ] {
        let frame = sheet(Format::Gray8, degrees, None);
        let element = format!("clpitchthreshold threshold=60 multiples=<1> {settings}");
        let mut rig = Rig::new(&element, &caps_of(&frame));
        for _ in 0..6 {
            rig.pass(buffer_of(&frame, &device));
        }
        let warnings = rig.warnings();
        let turned: Vec<_> = (warnings.iter())
            .filter(|warning| warning.text.contains("turned against"))
            .collect();
        match told {
            None => assert!(turned.is_empty(), "{settings}: {turned:?}"),
            Some(pitch) => {
                assert_eq!(turned.len(), 1, "{settings}: {warnings:?}");
                let angle = format!("by {degrees:.1} degrees");
                let text = &turned[0].text;
                assert!(text.contains(pitch) && text.contains(&angle), "{text}");
            }
        }
    }
}
