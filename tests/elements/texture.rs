//! `cltexture` in harnesses: learning, verdicts, webs, and what it refuses.

use std::sync::Arc;

use clinspect_core::texture::{CHANNEL_NAMES, CHANNELS, LIMITS};
use clinspect_opencl::ClContext;
use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    content::random,
    frames::{Frame, PLAIN, read},
    oracle::{put, texture as oracle},
    reference_picture::Folder,
    support::{Rig, buffer_of, caps_of, constant, noise, start},
};

const SIZE: [usize; 2] = [360, 200];
/// Pitches of the drawn cloth, px.
const PITCHES: [f64; 2] = [8.0, 6.0];

/// What is wrong with a piece of cloth.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// A dark spot of 7x7 pixels.
    Spot,
    /// A thread along x is brighter for 60 pixels.
    Thread,
    /// No cloth in the right third.
    Torn,
}

/// Cloth whose threads wander by parts of a pixel.
fn cloth(seed: u64, size: [usize; 2], fault: Fault) -> Frame {
    let [width, height] = size;
    let mut frame = Frame::poisoned(Format::Gray8, size, PLAIN, 0);
    let geometry = frame.geometry(0);
    let wander = |at: usize, along: usize| {
        let step = f64::from(random(seed, along, at / 16, 3) % 100) / 100.0;
        0.4 * (step - 0.5)
    };
    for y in 0..height {
        for x in 0..width {
            let phase = |at: usize, pitch: f64, across: usize, along: usize| {
                (std::f64::consts::TAU * (at as f64 + wander(across, along)) / pitch).sin()
            };
            let weave = 22.0 * phase(x, PITCHES[0], y, 1) + 18.0 * phase(y, PITCHES[1], x, 2);
            let grain = f64::from(random(seed, x, y, 0) % 25) - 12.0;
            let mut value = 120.0 + weave + grain;
            value += match fault {
                Fault::Spot if (100..107).contains(&x) && (90..97).contains(&y) => -60.0,
                Fault::Thread if (200..260).contains(&x) && (60..64).contains(&y) => 45.0,
                _ => 0.0,
            };
            if fault == Fault::Torn && x > 2 * width / 3 {
                value = 40.0;
            }
            put(
                &mut frame.bytes,
                &geometry,
                x,
                y,
                value.clamp(0.0, 255.0) as u32,
            );
        }
    }
    frame
}

/// Masks with a byte per pixel.
fn grey() -> gst::Caps {
    let caps = gst::Caps::builder("video/x-raw").field("format", "GRAY8");
    caps.build()
}

fn result(buffer: &gst::Buffer) -> DefectResult {
    DefectResult::read(buffer).remove(0)
}

/// A rig that has learned from `frames` pieces of good cloth.
fn learned(description: &str, frames: u64) -> Option<Rig> {
    let device = start()?;
    let description = format!("cltexture learn=learn,frames={frames} {description}");
    let mut rig = Rig::new(&description, &caps_of(&cloth(0, SIZE, Fault::None)));
    for seed in 0..frames {
        let output = rig.pass(buffer_of(&cloth(seed, SIZE, Fault::None), &device));
        let result = result(&output);
        assert_eq!(result.verdict, Verdict::None, "frame {seed}");
        assert_eq!(
            result.learning,
            Some([seed as u32 + 1, frames as u32])
                .filter(|_| seed + 1 < frames)
                .or(result.learning)
        );
    }
    Some(rig)
}

fn thresholds(rig: &Rig) -> Vec<f64> {
    let value = rig.only("cltexture").property::<gst::Array>("thresholds");
    value
        .iter()
        .map(|v| v.get::<f64>().expect("a number"))
        .collect()
}

#[test]
fn cloth_passes_after_learning_and_faults_fail() {
    let Some(device) = start() else { return };
    let Some(mut rig) = learned("", 12) else {
        return;
    };
    let told = rig.told("cltexture-learned");
    assert_eq!(told.len(), 1, "{told:?}");
    let limits = thresholds(&rig);
    assert_eq!(limits.len(), LIMITS);
    for (name, limit) in CHANNEL_NAMES.iter().zip(&limits) {
        assert_eq!(told[0].get::<f64>(*name), Ok(*limit));
    }
    let verdict = |rig: &mut Rig, seed: u64, fault: Fault| {
        result(&rig.pass(buffer_of(&cloth(seed, SIZE, fault), &device)))
    };
    let failed =
        (100..130).filter(|&seed| verdict(&mut rig, seed, Fault::None).verdict == Verdict::Fail);
    assert!(failed.count() <= 2);
    for (fault, at) in [(Fault::Spot, [103, 93]), (Fault::Thread, [230, 62])] {
        let result = verdict(&mut rig, 200, fault);
        assert_eq!(result.verdict, Verdict::Fail);
        let largest = result.defects[0];
        let holds =
            |at: u32, from: i32, length: u32| (from..from + length as i32).contains(&(at as i32));
        assert!(holds(at[0], largest.x, largest.width) && holds(at[1], largest.y, largest.height));
        let channel = result.channel(&largest).expect("a channel");
        assert!(CHANNEL_NAMES.contains(&channel), "{channel}");
        let limit = limits[usize::from(largest.level())];
        assert!(f64::from(largest.peak_difference.abs()) > limit);
    }
    let torn = verdict(&mut rig, 300, Fault::Torn);
    assert_eq!(torn.verdict, Verdict::Fail);
    assert!(torn.missing_pixels > 0);
    let black = result(&rig.pass(buffer_of(&constant(SIZE, 0), &device)));
    assert_eq!(black.verdict, Verdict::Fail);
}

#[test]
fn masks_are_those_of_the_definition() {
    let Some(device) = start() else { return };
    let frame = cloth(5, SIZE, Fault::Spot);
    let limits = [6.0, 3.0, 2.0, 1.4, 4.0, 3.0];
    let list = limits.map(|limit: f64| limit.to_string()).join(",");
    for (form, memory) in [
        ("", "buffer"),
        ("noise-from=above", "buffer"),
        ("", "image"),
    ] {
        let mut rig = Rig::between(
            &format!(
                "cltexture pitch-x=8 pitch-y=6 min-contrast=0 thresholds=<{list}> {form} memory-object={memory}"
            ),
            &caps_of(&frame),
            &grey(),
        );
        let output = rig.pass(buffer_of(&frame, &device));
        let settings = oracle::Settings {
            vectors: [[128, 0], [0, 96]],
            thresholds: limits.map(|limit| (256.0 * limit) as i64),
            depth: 8,
            above: form == "noise-from=above",
            rois: Vec::new(),
            ignored: Vec::new(),
        };
        let wanted = oracle::compare(frame.component(0), &settings);
        let mask: Vec<u8> = wanted
            .mask
            .iter()
            .map(|&set| if set { 255 } else { 0 })
            .collect();
        assert_eq!(read(&output), mask, "{form} {memory}");
        let result = result(&output);
        let judged = wanted.judged.iter().filter(|&&judged| judged).count();
        assert_eq!(result.judged_pixels, judged as u64);
        assert_eq!((result.pitch_x, result.pitch_y), (8.0, 6.0));
        assert_eq!(result.channels, CHANNEL_NAMES);
    }
}

#[test]
fn frames_without_a_texture_are_never_judged() {
    let Some(device) = start() else { return };
    for frame in [constant(SIZE, 90), noise(Format::Gray8, SIZE, PLAIN)] {
        let mut rig = Rig::new("cltexture learn=learn,frames=2", &caps_of(&frame));
        for _ in 0..6 {
            let output = rig.pass(buffer_of(&frame, &device));
            assert_eq!(result(&output).verdict, Verdict::None);
        }
        assert!(thresholds(&rig).is_empty());
        assert!(!rig.warnings().is_empty());
    }
}

#[test]
fn a_fault_among_the_good_frames_can_be_forgotten() {
    let Some(device) = start() else { return };
    let good = |seed: u64| buffer_of(&cloth(seed, SIZE, Fault::None), &device);
    let mut rig = Rig::new(
        "cltexture learn=learn,frames=6",
        &caps_of(&cloth(0, SIZE, Fault::None)),
    );
    let mut numbers = Vec::new();
    for seed in 0..5 {
        numbers.push(result(&rig.pass(good(seed))).frame_number);
    }
    let fault = result(&rig.pass(buffer_of(&cloth(5, SIZE, Fault::Spot), &device)));
    let blind = thresholds(&rig);
    let told = rig.told("cltexture-learned").remove(0);
    assert_eq!(told.get::<u64>("residual-9-frame"), Ok(fault.frame_number));
    let spot = |rig: &mut Rig| result(&rig.pass(buffer_of(&cloth(77, SIZE, Fault::Spot), &device)));
    assert_eq!(
        spot(&mut rig).verdict,
        Verdict::Pass,
        "the limits hide the spot"
    );
    rig.only("cltexture")
        .emit_by_name::<()>("forget", &[&fault.frame_number]);
    rig.pass(good(6));
    let seeing = thresholds(&rig);
    assert!(seeing[2] < 0.8 * blind[2], "{seeing:?} {blind:?}");
    assert_eq!(spot(&mut rig).verdict, Verdict::Fail);
}

/// `cltexture` that learns from six frames and keeps the limits in a file.
fn with_file(path: &std::path::Path, size: [usize; 2]) -> Rig {
    let line = format!(
        "cltexture learn=\"learn,frames=6,location=(string){}\"",
        path.display()
    );
    Rig::new(&line, &caps_of(&cloth(0, size, Fault::None)))
}

#[test]
fn limits_of_a_file_are_taken_and_nothing_is_learned_unasked() {
    let Some(device) = start() else { return };
    let folder = Folder::new("texture-limits");
    let path = folder.0.join("limits.npz");
    let pass = |rig: &mut Rig, seed: u64, fault: Fault| {
        result(&rig.pass(buffer_of(&cloth(seed, SIZE, fault), &device)))
    };
    let mut rig = with_file(&path, SIZE);
    for seed in 0..6 {
        pass(&mut rig, seed, Fault::None);
    }
    let limits = thresholds(&rig);
    let told = rig.told("cltexture-learned").remove(0);
    let of_message = told.get::<gst::Array>("thresholds").expect("thresholds");
    let of_message: Vec<f64> = of_message.iter().map(|v| v.get().unwrap()).collect();
    assert_eq!(of_message, limits);
    drop(rig);

    // Another start with as many bad frames: had it learned, the last one would pass.
    let mut rig = with_file(&path, SIZE);
    for seed in 0..8 {
        let result = pass(&mut rig, seed, Fault::Spot);
        assert_eq!((result.verdict, result.learning), (Verdict::Fail, None));
    }
    assert_eq!(thresholds(&rig), limits);
    assert!(rig.told("cltexture-learned").is_empty());
    assert!(rig.warnings().is_empty());

    // A frame of the first start is forgotten. The next good one takes its place.
    let element = rig.only("cltexture");
    element.emit_by_name::<()>("forget", &[&2_u64]);
    let taking = pass(&mut rig, 20, Fault::None);
    assert_eq!(taking.learning, Some([6, 6]));
    let told = rig.told("cltexture-learned");
    let missing = told.iter().map(|told| told.get::<u32>("missing-frames"));
    assert_eq!(missing.collect::<Vec<_>>(), [Ok(1), Ok(0)]);
    let without = thresholds(&rig);
    assert_ne!(without, limits);
    drop(rig);
    let mut rig = with_file(&path, SIZE);
    assert_eq!(pass(&mut rig, 1, Fault::Spot).verdict, Verdict::Fail);
    assert_eq!(thresholds(&rig), without);

    // The signal begins anew, and the limits in force judge until the last frame.
    rig.only("cltexture").emit_by_name::<()>("learn", &[]);
    for seed in 30..36 {
        let result = pass(&mut rig, seed, Fault::None);
        assert_ne!(result.verdict, Verdict::None);
        assert_eq!(result.learning, Some([seed as u32 - 29, 6]));
    }
    let anew = thresholds(&rig);
    assert_ne!(anew, without);
    drop(rig);
    let mut rig = with_file(&path, SIZE);
    pass(&mut rig, 1, Fault::None);
    assert_eq!(thresholds(&rig), anew);
}

#[test]
fn file_that_cannot_be_used_is_not_replaced_unasked() {
    let Some(device) = start() else { return };
    let folder = Folder::new("texture-other-limits");
    let path = folder.0.join("limits.npz");
    std::fs::write(&path, b"not an archive").expect("a file");
    let mut rig = with_file(&path, SIZE);
    let pass = |rig: &mut Rig, seed: u64| {
        result(&rig.pass(buffer_of(&cloth(seed, SIZE, Fault::None), &device)))
    };
    for seed in 0..8 {
        let result = pass(&mut rig, seed);
        assert_eq!((result.verdict, result.learning), (Verdict::None, None));
    }
    let warnings = rig.warnings();
    assert!(warnings[0].text.contains("limits.npz"), "{warnings:?}");
    assert!(thresholds(&rig).is_empty());
    assert_eq!(std::fs::read(&path).expect("the file"), b"not an archive");
    rig.only("cltexture").emit_by_name::<()>("learn", &[]);
    for seed in 0..6 {
        pass(&mut rig, seed);
    }
    assert_eq!(thresholds(&rig).len(), LIMITS);
    drop(rig);
    let mut rig = with_file(&path, SIZE);
    assert_ne!(pass(&mut rig, 9).verdict, Verdict::None);
}

#[test]
fn strips_of_a_web_have_the_marks_of_one_frame() {
    let Some(device) = start() else { return };
    let tall = [SIZE[0], 800];
    let cloth = cloth(9, tall, Fault::Thread).component(0).values();
    for format in [Format::Gray8, Format::Rgb] {
        let mut frame = Frame::poisoned(format, tall, PLAIN, 0);
        // The components differ in brightness and contrast.
        let of = |component: u32| {
            cloth
                .iter()
                .map(move |&v| v / (1 + component) + 9 * component)
        };
        let components: Vec<Vec<u32>> = (0..3).map(|at| of(at).collect()).collect();
        frame.set(&components[..frame.component_count()], &frame.clone());
        for repeats in ["pitch-x=8 pitch-y=6", "lattice=<7.9,1.1,-1.3,5.9>"] {
            check_strips(&device, &frame, repeats);
        }
    }
}

/// Compares the marks of strips with those of the whole frame.
fn check_strips(device: &Arc<ClContext>, frame: &Frame, repeats: &str) {
    let limits = "thresholds=<5.0,2.6,1.8,1.3,4.0,2.5>";
    let settings = format!("{repeats} min-contrast=0 {limits}");
    let mut whole = Rig::between(&format!("cltexture {settings}"), &caps_of(frame), &grey());
    let wanted = read(&whole.pass(buffer_of(frame, device)));
    assert!(wanted.contains(&255));
    for rows in [50, 160] {
        let format = frame.info.format();
        let components = (0..frame.component_count()).map(|at| frame.component(at).values());
        let components: Vec<Vec<u32>> = components.collect();
        let pixels = SIZE[0] * rows;
        let strips: Vec<Frame> = (0..components[0].len() / pixels)
            .map(|n| {
                let mut strip = Frame::poisoned(format, [SIZE[0], rows], PLAIN, 0);
                let of = |all: &Vec<u32>| all[n * pixels..(n + 1) * pixels].to_vec();
                let own: Vec<Vec<u32>> = components.iter().map(of).collect();
                strip.set(&own, &strip.clone());
                strip
            })
            .collect();
        let line = format!("cltexture line-scan=true {settings}");
        let mut rig = Rig::between(&line, &caps_of(&strips[0]), &grey());
        for strip in &strips {
            rig.push(buffer_of(strip, device)).expect("a strip");
        }
        rig.harness().push_event(gst::event::Eos::new());
        let mut found = Vec::new();
        while found.len() < wanted.len() {
            found.extend(read(&rig.harness().pull().expect("a mask")));
        }
        assert!(found == wanted, "strips of {rows} rows");
    }
}

#[test]
fn settings_that_cannot_compare_are_refused() {
    if start().is_none() {
        return;
    }
    let caps = caps_of(&constant(SIZE, 0));
    let small = caps_of(&constant([8, 8], 0));
    for (settings, caps, word) in [
        ("pitch-x=0 pitch-y=6", &caps, "pitch-x=0"),
        ("pitch-x=8 pitch-y=1.5", &caps, "pitch-y=1.5"),
        ("pitch-x=180 pitch-y=6", &caps, "more than two pitches"),
        ("pitch-x=2 pitch-y=2", &small, "4 pixels at each border"),
        ("thresholds=<1.0,2.0>", &caps, "set 6 numbers"),
        (
            "thresholds=<1.0,2.0,3.0,4.0,5.0,-1.0>",
            &caps,
            "set 6 numbers",
        ),
        (
            "thresholds=<1.0,2.0,3.0,4.0,5.0,6.0,0.0>",
            &caps,
            "flatness",
        ),
        ("rois=<<0,0,3,200>>", &caps, "no pixel"),
    ] {
        let mut rig = Rig::new(&format!("cltexture {settings}"), caps);
        let frame = gst::Buffer::with_size(SIZE[0] * SIZE[1]).expect("memory");
        let _ = rig.push(frame);
        let errors = rig.errors();
        let is_told = errors
            .iter()
            .any(|error| format!("{error:?}").contains(word));
        assert!(is_told, "{settings}: {errors:?}");
    }
    assert_eq!(CHANNELS, 6);
}

#[test]
fn thresholds_that_no_texture_reaches_give_none_until_they_are_lowered() {
    let Some(device) = start() else { return };
    let Some(mut rig) = learned("", 12) else {
        return;
    };
    let clean = cloth(40, SIZE, Fault::None);
    let spot = cloth(41, SIZE, Fault::Spot);
    let judge = |rig: &mut Rig, frame: &Frame| {
        let of = result(&rig.pass(buffer_of(frame, &device)));
        (of.verdict, of.blind)
    };
    assert_eq!(judge(&mut rig, &clean), (Verdict::Pass, None));
    assert!(rig.warnings().is_empty());
    let element = rig.only("cltexture");
    let limits = thresholds(&rig);
    let set = |factors: [f64; CHANNELS]| {
        let mut limits = limits.clone();
        for (limit, factor) in limits.iter_mut().zip(factors) {
            *limit *= factor;
        }
        element.set_property("thresholds", gst::Array::new(limits));
    };
    set([100.0; CHANNELS]);
    for frame in [&clean, &spot] {
        let (verdict, blind) = judge(&mut rig, frame);
        let blind = blind.expect("a reason");
        assert_eq!(verdict, Verdict::None);
        assert!(
            CHANNEL_NAMES.contains(&&*blind.name) && blind.marks > blind.reach,
            "{blind:?}"
        );
        // The standard deviation of the weave and the grain is about 21.
        assert!((55.0..75.0).contains(&blind.reach), "{blind:?}");
    }
    // Cloth that is torn is found by its flatness.
    assert_eq!(
        judge(&mut rig, &cloth(42, SIZE, Fault::Torn)).0,
        Verdict::Fail
    );
    assert_eq!(rig.warnings().len(), 1);
    // One channel that sees is enough.
    set([100.0, 100.0, 100.0, 1.0, 100.0, 100.0]);
    assert_eq!(judge(&mut rig, &clean), (Verdict::Pass, None));
    assert_eq!(rig.infos().len(), 1);
    set([1.0; CHANNELS]);
    assert_eq!(judge(&mut rig, &spot).0, Verdict::Fail);
}
