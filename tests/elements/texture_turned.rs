//! `cltexture` on cloth that is turned against rows and columns: vectors that are set, and vectors that are estimated.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    content::random,
    frames::{Frame, PLAIN, read},
    oracle::{put, texture as oracle},
    support::{Rig, buffer_of, caps_of, feed, noise, start},
};

const SIZE: [usize; 2] = [400, 320];
/// The cell of the cloth, px. Turned by 11, 33 and 45 degrees it has no pitch along one axis or both, at 7 degrees pitches at
/// which it is less alike.
const CELL: [f64; 2] = [17.3, 14.6];
/// Cloth varies from repeat to repeat: largest error of a vector, px.
const LARGEST_ERROR_PX: f64 = 0.1;
const SPOT: [usize; 2] = [231, 127];

/// The vectors of the cloth turned by this angle.
fn turned(degrees: f64) -> [[f64; 2]; 2] {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let [p, q] = CELL;
    [[p * cos, p * sin], [-q * sin, q * cos]]
}

/// Turned cloth whose threads wander by parts of a pixel; `spot` is darker within 3 px.
fn cloth(seed: u64, degrees: f64, spot: Option<[usize; 2]>) -> Frame {
    let mut frame = Frame::poisoned(Format::Gray8, SIZE, PLAIN, 0);
    let geometry = frame.geometry(0);
    let (sin, cos) = degrees.to_radians().sin_cos();
    let wander = |at: f64, along: usize| {
        let step = random(seed, along, (at / 16.0 + 100.0) as usize, 3) % 100;
        0.4 * (f64::from(step) / 100.0 - 0.5)
    };
    for (x, y) in (0..SIZE[1]).flat_map(|y| (0..SIZE[0]).map(move |x| (x, y))) {
        let (u, v) = (
            x as f64 * cos + y as f64 * sin,
            y as f64 * cos - x as f64 * sin,
        );
        let wave = |at: f64, pitch: f64| (std::f64::consts::TAU * at / pitch).sin();
        let weave = 22.0 * wave(u + wander(v, 1), CELL[0]) + 18.0 * wave(v + wander(u, 2), CELL[1]);
        let grain = f64::from(random(seed, x, y, 0) % 25) - 12.0;
        let near = |[left, top]: [usize; 2]| x.abs_diff(left) <= 3 && y.abs_diff(top) <= 3;
        let dark = if spot.is_some_and(near) { 60.0 } else { 0.0 };
        let level = (120.0 + weave + grain - dark).clamp(0.0, 255.0);
        put(&mut frame.bytes, &geometry, x, y, level as u32);
    }
    frame
}

fn result(buffer: &gst::Buffer) -> DefectResult {
    DefectResult::read(buffer).remove(0)
}

fn in_text(vectors: &[[f64; 2]]) -> String {
    let numbers: Vec<String> = vectors.as_flattened().iter().map(f64::to_string).collect();
    format!("<{}>", numbers.join(","))
}

fn numbers(array: &gst::Array) -> Vec<f64> {
    array.iter().map(|v| v.get().expect("a number")).collect()
}

/// Asserts that the vectors are those of the cloth turned by this angle.
#[track_caller]
fn assert_turned(vectors: &[f64], degrees: f64) {
    assert_eq!(vectors.len(), 4, "{vectors:?}");
    for v in vectors.chunks_exact(2) {
        let away = |w: [f64; 2]| {
            let away = |sign: f64| (v[0] - sign * w[0]).hypot(v[1] - sign * w[1]);
            away(1.0).min(away(-1.0))
        };
        let [a, b] = turned(degrees).map(away);
        assert!(a.min(b) <= LARGEST_ERROR_PX, "{vectors:?} at {degrees}°");
    }
}

/// The share of good pieces that pass, and whether all spoiled ones fail at the spot.
#[track_caller]
fn assert_inspects(
    rig: &mut Rig,
    device: &std::sync::Arc<clinspect_opencl::ClContext>,
    degrees: f64,
) {
    let mut judge = |seed: u64, spot: Option<[usize; 2]>| {
        result(&rig.pass(buffer_of(&cloth(seed, degrees, spot), device)))
    };
    let passed = (100..106).filter(|&seed| judge(seed, None).verdict == Verdict::Pass);
    assert!(passed.count() >= 5, "{degrees}°");
    for seed in 200..203 {
        let found = judge(seed, Some(SPOT));
        assert_eq!(found.verdict, Verdict::Fail, "{degrees}°");
        let largest = found.defects[0];
        let away = |at: f32, spot: usize| (at - spot as f32).abs();
        let [x, y] = [(largest.centroid_x, SPOT[0]), (largest.centroid_y, SPOT[1])];
        assert!(away(x.0, x.1) < 6.0 && away(y.0, y.1) < 6.0, "{degrees}°");
    }
}

#[test]
fn turned_cloth_is_learned_and_inspected() {
    let Some(device) = start() else { return };
    for degrees in [2.6, 7.0, 11.0, 33.0, 45.0] {
        let mut rig = Rig::new(
            "cltexture learn=learn,frames=8",
            &caps_of(&cloth(0, degrees, None)),
        );
        for seed in 0..8 {
            rig.pass(buffer_of(&cloth(seed, degrees, None), &device));
        }
        assert_eq!(rig.told("cltexture-learned").len(), 1, "{degrees}°");
        assert_inspects(&mut rig, &device, degrees);
        if degrees > 10.0 {
            let output = rig.pass(buffer_of(&cloth(9, degrees, None), &device));
            assert_turned(result(&output).lattice.as_flattened(), degrees);
        }
        assert!(rig.warnings().is_empty(), "{degrees}°");
    }
}

#[test]
fn vectors_of_turned_cloth_are_told() {
    let Some(device) = start() else { return };
    let frame = cloth(1, 33.0, None);
    let mut rig = Rig::new("cltexture learn=learn,frames=2", &caps_of(&frame));
    let output = rig.pass(buffer_of(&frame, &device));
    let held: gst::Structure = rig.only("cltexture").property("estimates");
    let lattice = numbers(&held.get("lattice").expect("vectors"));
    assert_turned(&lattice, 33.0);
    assert_eq!(result(&output).lattice.as_flattened(), lattice);
    assert!((held.get::<f64>("angle").expect("an angle") - 33.0).abs() < 0.3);
    assert!(held.get::<f64>("contrast").expect("a contrast") > 10.0);
    let told = rig.told("cltexture-pitch");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(numbers(&told[0].get("lattice").expect("vectors")), lattice);
}

#[test]
fn parallel_cloth_is_compared_at_its_pitches() {
    let Some(device) = start() else { return };
    let frame = cloth(1, 0.0, None);
    let mut rig = Rig::new("cltexture learn=learn,frames=2", &caps_of(&frame));
    for seed in 0..3 {
        let result = result(&rig.pass(buffer_of(&cloth(seed, 0.0, None), &device)));
        assert!(result.lattice.is_empty());
        for (pitch, wanted) in [(result.pitch_x, CELL[0]), (result.pitch_y, CELL[1])] {
            assert!((pitch - wanted).abs() < 0.05, "{pitch}");
        }
    }
}

#[test]
fn cloth_that_turns_is_followed() {
    let Some(device) = start() else { return };
    let mut rig = Rig::new(
        "cltexture learn=learn,frames=6",
        &caps_of(&cloth(0, 0.0, None)),
    );
    let lattice = |rig: &mut Rig, seed: u64, degrees: f64| {
        let output = rig.pass(buffer_of(&cloth(seed, degrees, None), &device));
        result(&output).lattice.as_flattened().to_vec()
    };
    for seed in 0..6 {
        assert!(lattice(&mut rig, seed, 0.0).is_empty(), "frame {seed}");
    }
    // The pitches are held, but the frame repeats better along its vectors. One frame may pass before a look.
    lattice(&mut rig, 6, 9.0);
    for seed in 7..12 {
        assert_turned(&lattice(&mut rig, seed, 9.0), 9.0);
    }
    assert_inspects(&mut rig, &device, 9.0);
    lattice(&mut rig, 12, 14.0);
    assert_turned(&lattice(&mut rig, 13, 14.0), 14.0);
    for seed in 14..50 {
        lattice(&mut rig, seed, 0.0);
    }
    assert!(lattice(&mut rig, 50, 0.0).is_empty());
}

#[test]
fn masks_along_a_set_lattice_are_those_of_the_definition() {
    let Some(device) = start() else { return };
    let frame = cloth(5, 21.0, Some(SPOT));
    let vectors = turned(21.0);
    let limits = [6.0, 3.0, 2.0, 1.4, 4.0, 3.0];
    let list = limits.map(|limit: f64| limit.to_string()).join(",");
    for (form, memory) in [
        ("", "buffer"),
        ("noise-from=above", "buffer"),
        ("", "image"),
    ] {
        let mut rig = Rig::between(
            &format!(
                "cltexture pitch-x=0 lattice={} min-contrast=0 thresholds=<{list}> {form} memory-object={memory}",
                in_text(&vectors)
            ),
            &caps_of(&frame),
            &gst::Caps::builder("video/x-raw")
                .field("format", "GRAY8")
                .build(),
        );
        let output = rig.pass(buffer_of(&frame, &device));
        let settings = oracle::Settings {
            vectors: vectors.map(|v| v.map(|c| (16.0 * c).round() as i64)),
            thresholds: limits.map(|limit| (256.0 * limit) as i64),
            depth: 8,
            above: form == "noise-from=above",
            rois: Vec::new(),
            ignored: Vec::new(),
        };
        let wanted = oracle::compare(frame.component(0), &settings);
        let mask: Vec<u8> = (wanted.mask.iter())
            .map(|&set| if set { 255 } else { 0 })
            .collect();
        assert!(mask.contains(&255));
        assert_eq!(read(&output), mask, "{form} {memory}");
        let result = result(&output);
        assert_eq!(result.lattice, vectors);
        assert!((result.pitch_x - CELL[0]).abs() < 1e-9);
    }
}

#[test]
fn cloth_without_a_lattice_is_never_judged() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, SIZE, PLAIN);
    let mut rig = Rig::new(
        "cltexture lattice=<8.7,2.1,-2.1,8.7> learn=learn,frames=2",
        &caps_of(&frame),
    );
    for _ in 0..5 {
        let output = rig.pass(buffer_of(&frame, &device));
        assert_eq!(result(&output).verdict, Verdict::None);
    }
    assert!(!rig.warnings().is_empty());
}

#[test]
fn texture_lattice_appears_and_goes_while_frames_flow() {
    let Some(device) = start() else { return };
    let frame = cloth(3, 7.0, None);
    let mut rig = Rig::new(
        "cltexture pitch-x=9 pitch-y=7 min-contrast=0 thresholds=<20.0,20.0,20.0,20.0,20.0,20.0>",
        &caps_of(&frame),
    );
    let element = rig.only("cltexture");
    let is = |output: &gst::Buffer, lattice: &[[f64; 2]]| result(output).lattice == lattice;
    let vectors = turned(7.0);
    let mut before: Vec<[f64; 2]> = Vec::new();
    for wanted in [vectors.to_vec(), Vec::new(), vectors.to_vec()] {
        element.set_property("lattice", gst::Array::new(wanted.as_flattened()));
        rig.settle(
            || buffer_of(&frame, &device),
            |output| is(output, &wanted),
            |output| is(output, &before),
        );
        before = wanted;
    }
    // Vectors that cannot be used cause one warning, and the property tells those in use again.
    element.set_property("lattice", gst::Array::new([9.0, 0.0, 18.0, 0.0]));
    let output = rig.pass(buffer_of(&frame, &device));
    assert!(is(&output, &vectors));
    let warnings = rig.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].text.contains("are parallel"), "{warnings:?}");
    assert_eq!(
        numbers(&element.property("lattice")),
        vectors.as_flattened()
    );
}

#[test]
fn texture_lattice_that_cannot_be_used_is_refused_with_one_sentence() {
    let Some(device) = start() else { return };
    let frame = cloth(0, 7.0, None);
    for (settings, word) in [
        ("lattice=<16>", "lattice has 1 numbers; set four"),
        ("lattice=<16,0,3>", "lattice has 3 numbers"),
        (
            "lattice=<0.5,0.9,9,0>",
            "(0.5, 0.9) is shorter than 1 pixel",
        ),
        (
            "lattice=<1.5,0.9,9,0>",
            "(1.5, 0.9) of lattice is shorter than 2",
        ),
        ("lattice=<1e9,0>", "longer than any frame"),
        ("lattice=<9,1,-27,-3>", "are parallel"),
        (
            "lattice=<16,1,-3,160.5>",
            "the vector (-3, 160.5) of lattice",
        ),
    ] {
        let element = format!("cltexture {settings}");
        let fate = feed(&element, &caps_of(&frame), vec![buffer_of(&frame, &device)]);
        assert_eq!((fate.received, fate.errors.len()), (0, 1), "{settings}");
        assert!(fate.errors[0].text.contains(word), "{:?}", fate.errors);
    }
}
