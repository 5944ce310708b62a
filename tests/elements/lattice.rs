//! `clpitchthreshold lattice=<ax, ay, bx, by>`: patterns at any angle.

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
    support::{Rig, buffer_of, caps_of, feed, noise, start},
};

const SIZE: [usize; 2] = [360, 280];
const PITCH: f64 = 16.3;

/// The vectors of a square pattern that is turned by this angle.
fn turned(degrees: f64) -> [[f64; 2]; 2] {
    let (sin, cos) = degrees.to_radians().sin_cos();
    [[PITCH * cos, PITCH * sin], [-PITCH * sin, PITCH * cos]]
}

/// A pattern of holes, blurred as by a lens, with noise; `spot` is darker by 60 grey levels within 3 px.
fn sheet(format: Format, degrees: f64, spot: Option<[usize; 2]>) -> Frame {
    let mut frame = noise(format, SIZE, PLAIN);
    let random = noise(Format::Gray8, SIZE, PLAIN);
    let [a, b] = turned(degrees);
    for component in 0..if format == Format::Rgb { 3 } else { 1 } {
        let geometry = frame.geometry(component);
        for (x, y) in (0..SIZE[1]).flat_map(|y| (0..SIZE[0]).map(move |x| (x, y))) {
            let along = |v: [f64; 2]| (v[0] * x as f64 + v[1] * y as f64) / (PITCH * PITCH);
            let wave = |v: [f64; 2]| (std::f64::consts::TAU * along(v)).cos();
            let random = random.component(0).get(x, y);
            let near = |[left, top]: [usize; 2]| x.abs_diff(left) <= 3 && y.abs_diff(top) <= 3;
            let dark = if spot.is_some_and(near) { 60.0 } else { 0.0 };
            let level = 120.0 + 40.0 * wave(a) * wave(b) + f64::from(random % 7) - dark;
            put(&mut frame.bytes, &geometry, x, y, level.round() as u32);
        }
    }
    frame
}

/// A property's value.
fn in_text(vectors: &[[f64; 2]]) -> String {
    let numbers: Vec<String> = vectors.as_flattened().iter().map(f64::to_string).collect();
    format!("<{}>", numbers.join(","))
}

#[test]
fn spot_on_a_turned_pattern_is_found_along_its_vectors_only() {
    let Some(device) = start() else { return };
    let spot = [201, 133];
    let good = sheet(Format::Gray8, 7.0, None);
    let spoiled = sheet(Format::Gray8, 7.0, Some(spot));
    let vectors = turned(7.0);
    let element = format!(
        "clpitchthreshold threshold=25 reports=reports,interval=0 lattice={}",
        in_text(&vectors)
    );
    let mut rig = Rig::new(&element, &caps_of(&good));
    let mut pass = |frame: &Frame| {
        let output = rig.pass(buffer_of(frame, &device));
        let settings = pitch_threshold::Settings {
            vectors: vectors.to_vec(),
            scales: 0,
            ..recommended(25.0)
        };
        // The search for the pattern learns from the good frame, which comes first.
        let settings = pitch_threshold::Settings {
            min_contrast: contrast(good.component(0), &settings).expect("a contrast") / 2.0,
            ..settings
        };
        let expected = compare(frame.component(0), &settings);
        assert_eq!(read(&output), expected.packed);
        let result = DefectResult::read(&output).remove(0);
        assert_eq!(result.judged_pixels, expected.judged_pixels);
        assert_eq!([result.judged_x, result.judged_y], expected.judged_along);
        assert_eq!(result.defect_pixels, expected.defect_pixels);
        assert_eq!(result.lattice, vectors);
        for length in [result.pitch_x, result.pitch_y] {
            assert!((length - PITCH).abs() < 1e-9, "{length}");
        }
        result
    };
    assert_eq!(pass(&good).verdict, Verdict::Pass);
    let found = pass(&spoiled);
    assert_eq!((found.verdict, found.defects.len()), (Verdict::Fail, 1));
    let [x, y] = [found.defects[0].centroid_x, found.defects[0].centroid_y];
    assert!(
        (x - 201.5).abs() < 1.0 && (y - 133.5).abs() < 1.0,
        "({x}, {y})"
    );
    assert!(found.defects[0].peak_difference < -50.0);
    let told = rig.told("clpitchthreshold");
    let lattice: gst::Array = told[0].get("lattice").unwrap();
    let numbers: Vec<f64> = lattice.iter().map(|v| v.get().unwrap()).collect();
    assert_eq!(numbers, vectors.as_flattened());

    // Along rows and columns the good frame differs from itself everywhere.
    let element = "clpitchthreshold threshold=25 pitch-x=16.3 pitch-y=16.3 min-contrast=0";
    let mut rows = Rig::new(element, &caps_of(&good));
    let result = DefectResult::read(&rows.pass(buffer_of(&good, &device))).remove(0);
    assert!(result.defect_pixels > 1000, "{}", result.defect_pixels);
    assert!(result.lattice.is_empty());
}

#[test]
fn components_of_a_turned_pattern_are_compared_along_its_vectors() {
    let Some(device) = start() else { return };
    let vectors = in_text(&turned(33.0));
    let good = sheet(Format::Rgb, 33.0, None);
    let element = format!("clpitchthreshold threshold=25 lattice={vectors}");
    let mut rig = Rig::new(&element, &caps_of(&good));
    for (frame, verdict) in [
        (&good, Verdict::Pass),
        (&sheet(Format::Rgb, 33.0, Some([90, 77])), Verdict::Fail),
    ] {
        let result = DefectResult::read(&rig.pass(buffer_of(frame, &device))).remove(0);
        assert_eq!(result.verdict, verdict);
    }
}

#[test]
fn threshold_is_learned_along_vectors() {
    let Some(device) = start() else { return };
    let good = sheet(Format::Gray8, -20.0, None);
    let element = format!(
        "clpitchthreshold lattice={} learn=learn,frames=1",
        in_text(&turned(-20.0))
    );
    let mut rig = Rig::new(&element, &caps_of(&good));
    rig.pass(buffer_of(&good, &device));
    let again = DefectResult::read(&rig.pass(buffer_of(&good, &device))).remove(0);
    assert_eq!(again.verdict, Verdict::Pass);
    assert!(
        (2.0..15.0).contains(&again.threshold),
        "{}",
        again.threshold
    );
    let spoiled = sheet(Format::Gray8, -20.0, Some([150, 190]));
    let found = DefectResult::read(&rig.pass(buffer_of(&spoiled, &device))).remove(0);
    assert_eq!((found.verdict, found.defects.len()), (Verdict::Fail, 1));
}

#[test]
fn lattice_appears_and_goes_while_frames_flow() {
    let Some(device) = start() else { return };
    let frame = sheet(Format::Gray8, 0.0, None);
    let mut rig = Rig::new(
        "clpitchthreshold threshold=25 pitch-x=16.3 pitch-y=16.3 multiples=<1>",
        &caps_of(&frame),
    );
    let element = rig.only("clpitchthreshold");
    let is = |output: &gst::Buffer, lattice: &[[f64; 2]]| {
        DefectResult::read(output)[0].lattice == lattice
    };
    let vectors = [[PITCH, PITCH], [-PITCH, PITCH]];
    let mut before: Vec<[f64; 2]> = Vec::new();
    for wanted in [vectors.to_vec(), Vec::new(), vectors.to_vec()] {
        element.set_property("lattice", gst::Array::new(wanted.as_flattened()));
        let output = rig.settle(
            || buffer_of(&frame, &device),
            |output| is(output, &wanted),
            |output| is(output, &before),
        );
        assert_eq!(DefectResult::read(&output)[0].verdict, Verdict::Pass);
        before = wanted;
    }
    // Vectors that cannot be used cause one warning, and the property tells those in use again.
    element.set_property("lattice", gst::Array::new([16.3, 0.0, 32.6, 0.0]));
    let output = rig.pass(buffer_of(&frame, &device));
    assert!(is(&output, &vectors));
    let warnings = rig.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].text.contains("are parallel"), "{warnings:?}");
    let numbers: gst::Array = element.property("lattice");
    let numbers: Vec<f64> = numbers.iter().map(|v| v.get().unwrap()).collect();
    assert_eq!(numbers, vectors.as_flattened());
}

#[test]
fn lattice_that_cannot_be_used_is_refused_with_one_sentence() {
    let Some(device) = start() else { return };
    let frame = sheet(Format::Gray8, 7.0, None);
    for (settings, word) in [
        ("lattice=<16>", "lattice has 1 numbers; set four"),
        ("lattice=<16,0,3>", "lattice has 3 numbers"),
        (
            "lattice=<0.5,0.9,9,0>",
            "(0.5, 0.9) is shorter than 1 pixel",
        ),
        ("lattice=<1e9,0>", "longer than any frame"),
        ("lattice=<9,1,-27,-3>", "are parallel"),
        ("lattice=<9,1> scales=1", "scales=1 compares blocks"),
        (
            "lattice=<16,1,-3,140.5>",
            "the vector (-3, 140.5) of lattice",
        ),
    ] {
        let element = format!("clpitchthreshold {settings}");
        let fate = feed(&element, &caps_of(&frame), vec![buffer_of(&frame, &device)]);
        assert_eq!((fate.received, fate.errors.len()), (0, 1), "{settings}");
        assert!(fate.errors[0].text.contains(word), "{:?}", fate.errors);
    }
}
