//! Frames of red, green and blue in the elements that mark defects: learning, verdicts, names, files, and refusals.

use std::sync::Arc;

use clinspect_opencl::ClContext;
use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    content::random,
    frames::{Frame, PLAIN},
    oracle::put,
    reference_picture::Folder,
    support::{Rig, buffer_of, caps_of, noise, start},
};

const SIZE: [usize; 2] = [192, 128];
/// More red and less green and blue: the luma changes by 7/256 of a grey level.
const STAIN: [i64; 3] = [40, -20, -3];
const PITCHES: [i64; 2] = [8, 6];

/// The elements, and what they learn from. Each marks the stain below.
const ELEMENTS: [(&str, &str, u64); 3] = [
    (
        "clpitchthreshold",
        "pitch-x=8 pitch-y=6 edge-margin=0 learn=learn,frames=12",
        12,
    ),
    (
        "clreference",
        "deviation-factor=0 train-frames=12 learn=learn,frames=12",
        12,
    ),
    ("cltexture", "pitch-x=8 pitch-y=6 learn=learn,frames=40", 40),
];

/// A woven picture with noise of up to 4 levels in each component; with the stain in a square of 12 px.
fn cloth(format: Format, seed: u64, is_stained: bool) -> Frame {
    let [width, height] = SIZE;
    let mut frame = Frame::poisoned(format, SIZE, PLAIN, 0x80);
    for (component, by) in STAIN.into_iter().enumerate() {
        let geometry = frame.geometry(component);
        for y in 0..height {
            for x in 0..width {
                let thread = |at: usize, pitch: i64| (2 * (at as i64 % pitch) - pitch).abs();
                let weave =
                    (4 + component as i64) * (thread(x, PITCHES[0]) + thread(y, PITCHES[1]));
                let grain = i64::from(random(seed, x, y, component) % 5) - 2;
                let is_inside = (100..112).contains(&x) && (60..72).contains(&y);
                let stain = if is_stained && is_inside { by } else { 0 };
                let value = (70 + weave + grain + stain) as u32;
                put(&mut frame.bytes, &geometry, x, y, value);
            }
        }
    }
    frame
}

fn result(buffer: &gst::Buffer) -> DefectResult {
    DefectResult::read(buffer).remove(0)
}

/// An element that has learned from clean frames, and what it told.
fn learned(
    device: &Arc<ClContext>,
    (factory, settings, frames): (&str, &str, u64),
    more: &str,
) -> (Rig, gst::Structure) {
    let caps = caps_of(&cloth(Format::Rgb, 0, false));
    let mut rig = Rig::new(&format!("{factory} {settings} {more}"), &caps);
    if factory != "cltexture" {
        rig.only(factory).emit_by_name::<()>("learn", &[]);
    }
    for seed in 0..frames {
        rig.pass(buffer_of(&cloth(Format::Rgb, seed, false), device));
    }
    let next = || buffer_of(&cloth(Format::Rgb, frames, false), device);
    let told = rig.told_while(&format!("{factory}-learned"), next);
    // The limits are in force.
    rig.pass(next());
    (rig, told)
}

fn limits(rig: &Rig, factory: &str) -> Vec<f64> {
    let limits = rig.only(factory).property::<gst::Array>("component-limits");
    let limits = limits.iter();
    limits.map(|v| v.get::<f64>().expect("a number")).collect()
}

#[test]
fn stain_of_the_same_luma_fails_and_clean_frames_pass_with_learned_limits() {
    let Some(device) = start() else { return };
    for element @ (factory, ..) in ELEMENTS {
        let (mut rig, told) = learned(&device, element, "");
        let limits = limits(&rig, factory);
        let names = match factory {
            "clpitchthreshold" | "clreference" => {
                ["threshold.red", "threshold.green", "threshold.blue"]
            }
            _ => ["residual-1.red", "residual-1.green", "residual-1.blue"],
        };
        let count = limits.len() / 3;
        // Of clreference the factor comes first.
        let first = usize::from(factory == "clreference");
        for (at, name) in names.into_iter().enumerate() {
            let limit = told.get::<f64>(name);
            assert_eq!(limit, Ok(limits[at * count + first]), "{factory} {told:?}");
        }
        let failed = (100..200).filter(|&seed| {
            let output = rig.pass(buffer_of(&cloth(Format::Rgb, seed, false), &device));
            let found = result(&output);

            found.verdict != Verdict::Pass
        });
        let failed: Vec<u64> = failed.collect();
        assert!(failed.is_empty(), "{factory}: {failed:?}");
        let stained = cloth(Format::Rgb, 300, true);
        let found = result(&rig.pass(buffer_of(&stained, &device)));
        assert_eq!(found.verdict, Verdict::Fail, "{factory}");
        let largest = &found.defects[0];
        let holds = |at: i32, from: i32, length: u32| (from..from + length as i32).contains(&at);
        let is_there = holds(106, largest.x, largest.width) && holds(66, largest.y, largest.height);
        assert!(is_there, "{largest:?}");
        let channel = found.channel(largest).expect("a channel");
        assert!(channel.starts_with("red"), "{factory}: {channel}");
        assert_eq!(largest.component(), Some(0));
        assert!(rig.errors().is_empty());
    }
}

#[test]
fn limits_learned_with_a_model_of_one_frame_are_in_force() {
    let Some(device) = start() else { return };
    let line = "clreference train-frames=1 threshold=200 min-area=4 learn=learn,frames=8";
    let mut rig = Rig::new(line, &caps_of(&cloth(Format::Rgb, 0, false)));
    rig.pass(buffer_of(&cloth(Format::Rgb, 0, false), &device));
    rig.only("clreference").emit_by_name::<()>("learn", &[]);
    for seed in 1..10 {
        rig.pass(buffer_of(&cloth(Format::Rgb, seed, false), &device));
    }
    let told = rig.told("clreference-learned");
    let red = told[0].get::<f64>("threshold.red").expect("a limit");
    assert_eq!(limits(&rig, "clreference")[..2], [4.0, red]);
    let stained = result(&rig.pass(buffer_of(&cloth(Format::Rgb, 20, true), &device)));
    assert_eq!(stained.verdict, Verdict::Fail, "{told:?}");
}

#[test]
fn training_ends_when_other_components_are_judged() {
    let Some(device) = start() else { return };
    let mut rig = Rig::new(
        "clreference train-frames=6",
        &caps_of(&cloth(Format::Rgb, 0, false)),
    );
    for seed in 0..3 {
        rig.pass(buffer_of(&cloth(Format::Rgb, seed, false), &device));
    }
    rig.only("clreference")
        .set_property_from_str("components", "luma");
    for seed in 3..9 {
        let found = result(&rig.pass(buffer_of(&cloth(Format::Rgb, seed, false), &device)));
        assert_eq!(found.verdict, Verdict::None);
    }
    let warnings = rig.warnings();
    let is_told = |text: &str| text.contains("after 3 of 6") && text.contains("components");
    assert!(
        warnings.iter().any(|warning| is_told(&warning.text)),
        "{warnings:?}"
    );
    assert!(rig.told("clreference-model").is_empty());
}

#[test]
fn stain_of_the_same_luma_passes_with_luma_alone() {
    let Some(device) = start() else { return };
    for element @ (factory, ..) in ELEMENTS {
        let (mut rig, _) = learned(&device, element, "components=luma");
        assert!(limits(&rig, factory).is_empty());
        let clean = result(&rig.pass(buffer_of(&cloth(Format::Rgb, 300, false), &device)));
        let stained = result(&rig.pass(buffer_of(&cloth(Format::Rgb, 301, true), &device)));
        assert_eq!(clean.verdict, Verdict::Pass, "{factory}");
        assert_eq!(stained.verdict, Verdict::Pass, "{factory}");
        assert!(
            !stained.channels.iter().any(|name| name.contains("red")),
            "{factory}"
        );
    }
}

#[test]
fn every_format_of_colour_gives_the_same_defects() {
    let Some(device) = start() else { return };
    let mut first: Option<DefectResult> = None;
    for &format in clinspect_opencl::frame::COLOUR_FORMATS.iter() {
        let stained = cloth(format, 5, true);
        let line = "clpitchthreshold pitch-x=8 pitch-y=6 edge-margin=0";
        let mut rig = Rig::new(line, &caps_of(&stained));
        let found = result(&rig.pass(buffer_of(&stained, &device)));
        assert_eq!(found.channels, ["red", "green", "blue"], "{format}");
        let mut found = DefectResult {
            element: String::new(),
            ..found
        };
        found.mask = None;
        assert_eq!(*first.get_or_insert(found.clone()), found, "{format}");
    }
    let first = first.expect("formats");
    assert_eq!(first.verdict, Verdict::Fail);
}

#[test]
fn components_change_while_frames_flow() {
    let Some(device) = start() else { return };
    let stained = cloth(Format::Bgrx, 5, true);
    let line = "clpitchthreshold pitch-x=8 pitch-y=6 edge-margin=0";
    let mut rig = Rig::new(line, &caps_of(&stained));
    let mut verdict = |components: &str| {
        rig.only("clpitchthreshold")
            .set_property_from_str("components", components);
        let settled =
            |buffer: &gst::Buffer| result(buffer).channels.is_empty() == (components == "luma");
        for _ in 0..100 {
            let output = rig.pass(buffer_of(&stained, &device));
            if settled(&output) {
                return result(&output).verdict;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("components={components} is not in force")
    };
    assert_eq!(verdict("auto"), Verdict::Fail);
    assert_eq!(verdict("luma"), Verdict::Pass);
    assert_eq!(verdict("each"), Verdict::Fail);
}

#[test]
fn unusable_components_are_refused() {
    let Some(device) = start() else { return };
    for (element, format, words) in [
        (
            "clpitchthreshold pitch-x=8 components=each",
            Format::Gray8,
            "components=each needs",
        ),
        (
            "clreference components=each",
            Format::I420,
            "components=each needs",
        ),
        (
            "clpitchthreshold pitch-x=8 component-limits=<1.0,2.0>",
            Format::Rgb,
            "component-limits: 2 numbers are not",
        ),
        (
            "clpitchthreshold pitch-x=8 contrasts=<1.0,2.0>",
            Format::Rgb,
            "contrasts: 2 numbers are no",
        ),
        (
            "clpitchthreshold pitch-x=8 contrasts=<1.0,256.0,0.0>",
            Format::Rgb,
            "contrasts: 256 is no contrast",
        ),
        (
            "clpitchthreshold pitch-x=8 contrasts=<0.0>",
            Format::Gray8,
            "contrasts: a pattern is seen",
        ),
        (
            "clreference component-limits=<1.0,-2.0,3.0,1.0,1.0,1.0>",
            Format::Rgb,
            "component-limits: -2 is no limit",
        ),
    ] {
        let frame = noise(format, [64, 48], PLAIN);
        let mut rig = Rig::new(element, &caps_of(&frame));
        assert!(rig.push(buffer_of(&frame, &device)).is_err(), "{element}");
        let errors = rig.errors();
        assert!(
            errors.iter().any(|error| error.text.contains(words)),
            "{errors:?}"
        );
    }
}

#[test]
fn model_of_other_components_is_refused_with_what_to_do() {
    let Some(device) = start() else { return };
    let folder = Folder::new("colour");
    let path = folder.0.join("cloth.npz");
    let line = |more: &str| {
        format!(
            "clreference location={} deviation-factor=0 {more}",
            path.display()
        )
    };
    let frame =
        |seed: u64, is_stained: bool| buffer_of(&cloth(Format::Rgb, seed, is_stained), &device);
    let caps = caps_of(&cloth(Format::Rgb, 0, false));
    let trained = |components: &str| {
        let _ = std::fs::remove_file(&path);
        let mut rig = Rig::new(
            &line(&format!("train-frames=2 components={components}")),
            &caps,
        );
        rig.pass(frame(0, false));
        rig.pass(frame(1, false));
        // A stop waits for the file.
        drop(rig);
        assert!(path.exists());
    };
    for (components, other, words) in [
        ("each", "luma", "the model is of red, green and blue"),
        ("luma", "each", "the model is of grey"),
    ] {
        trained(components);
        let mut rig = Rig::new(&line(&format!("components={other}")), &caps);
        let verdict = result(&rig.pass(frame(2, true))).verdict;
        assert_eq!(verdict, Verdict::None);
        let warnings = rig.warnings();
        let is_told = |text: &str| text.contains(words) && text.contains("set components=");
        assert!(
            warnings.iter().any(|warning| is_told(&warning.text)),
            "{warnings:?}"
        );
        let mut rig = Rig::new(&line(&format!("components={components}")), &caps);
        let clean = result(&rig.pass(frame(3, false))).verdict;
        let stained = result(&rig.pass(frame(4, true))).verdict;
        assert_eq!(clean, Verdict::Pass);
        assert_eq!(
            stained == Verdict::Fail,
            components == "each",
            "{components}"
        );
    }
}

#[test]
fn components_lie_where_the_luma_was_found() {
    let Some(device) = start() else { return };
    // A picture that does not repeat, of which blue shows nothing.
    let picture = |dx: i64, is_stained: bool| {
        let mut frame = Frame::poisoned(Format::Rgb, SIZE, PLAIN, 0);
        for component in 0..3 {
            let geometry = frame.geometry(component);
            for y in 0..SIZE[1] {
                for x in 0..SIZE[0] {
                    let (i, j) = ((x as i64 - dx + 64) as usize / 5, y / 5);
                    let level = 40 + random(3, i, j, component) % 120;
                    let is_inside = (100..112).contains(&x) && (60..72).contains(&y);
                    let value = match component {
                        2 if is_stained && is_inside => 130,
                        2 => 90,
                        _ => level,
                    };
                    put(&mut frame.bytes, &geometry, x, y, value);
                }
            }
        }
        frame
    };
    let line = "clreference train-frames=1 align=translation search-range=8 threshold=10 deviation-factor=0 \
                edge-tolerance=0";
    let mut rig = Rig::new(line, &caps_of(&picture(0, false)));
    rig.pass(buffer_of(&picture(0, false), &device));
    let clean = result(&rig.pass(buffer_of(&picture(3, false), &device)));
    let shift = clean.alignment.expect("an alignment");
    assert_eq!((shift.shift_x, shift.shift_y), (3.0, 0.0));
    assert_eq!((clean.verdict, clean.defect_pixels), (Verdict::Pass, 0));
    let stained = result(&rig.pass(buffer_of(&picture(3, true), &device)));
    assert_eq!(stained.verdict, Verdict::Fail);
    assert_eq!(stained.channel(&stained.defects[0]), Some("blue"));
}
