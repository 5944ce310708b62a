//! `clsurface` with frames that nobody should send: what it learns from them, and that it passes none unseen.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use clinspect_opencl::ClContext;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    content::random,
    frames::{Frame, PLAIN, read},
    oracle::put,
    reference_picture::Folder,
    support::{Rig, buffer_of, caps_of, start},
    surface::teach,
};

const SIZE: [usize; 2] = [160, 128];
/// Number of good frames.
const FRAMES: u64 = 10;

/// A picture of a format: `level` tells levels of 8 bits, which `scale` brings to those of the format.
fn picture(format: Format, scale: u32, level: impl Fn(usize, usize) -> u32) -> Frame {
    let mut frame = Frame::poisoned(format, SIZE, PLAIN, 0);
    let geometry = frame.geometry(0);
    for y in 0..SIZE[1] {
        for x in 0..SIZE[0] {
            put(&mut frame.bytes, &geometry, x, y, scale * level(x, y));
        }
    }
    frame
}

fn grey(level: impl Fn(usize, usize) -> u32) -> Frame {
    picture(Format::Gray8, 1, level)
}

/// Grain of `side` pixels along x, and its light.
fn material(seed: u64, side: usize, gain: f64) -> impl Fn(usize, usize) -> u32 {
    move |x, y| {
        let level = 60 + random(seed, x / side, y / 3, 0) % 90 + random(seed, x, y, 1) % 30;
        ((f64::from(level) * gain) as u32).min(255)
    }
}

/// The same with a spot of `level`.
fn spotted(level: u32, of: impl Fn(usize, usize) -> u32) -> impl Fn(usize, usize) -> u32 {
    move |x, y| {
        let is_spot = (70..82).contains(&x) && (51..63).contains(&y);
        if is_spot { level } else { of(x, y) }
    }
}

fn judge(rig: &mut Rig, frame: &Frame, device: &Arc<ClContext>) -> DefectResult {
    DefectResult::read(&rig.pass(buffer_of(frame, device))).remove(0)
}

/// A rig that has learned from these frames, and what it told.
fn learned(good: &[Frame], device: &Arc<ClContext>) -> (Rig, gst::Structure) {
    let text = format!("clsurface learn=learn,frames={}", good.len());
    let mut rig = Rig::new(&text, &caps_of(&good[0]));
    for frame in good {
        assert_eq!(judge(&mut rig, frame, device).verdict, Verdict::None);
    }
    let told = rig.told_while("clsurface-learned", || buffer_of(&good[0], device));
    judge(&mut rig, &good[0], device);
    (rig, told)
}

#[test]
fn noise_alone_is_a_surface_like_any_other() {
    let Some(device) = start() else { return };
    let noise = |seed| move |x, y| 100 + random(seed, x, y, 0) % 60;
    let good: Vec<Frame> = (0..FRAMES).map(|seed| grey(noise(seed))).collect();
    let (mut rig, _) = learned(&good, &device);
    for seed in 20..24 {
        let of = judge(&mut rig, &grey(noise(seed)), &device);
        assert_eq!(of.verdict, Verdict::Pass, "{seed}");
        let of = judge(&mut rig, &grey(spotted(130, noise(seed))), &device);
        assert_eq!(of.verdict, Verdict::Fail, "{seed}");
    }
    assert!(rig.warnings().is_empty());
}

#[test]
fn frames_without_a_cell_teach_nothing_and_pass_none() {
    let Some(device) = start() else { return };
    // The two cells at each edge are not judged, and there is no other.
    let mut small = Frame::poisoned(Format::Gray8, [19, 19], PLAIN, 0);
    let geometry = small.geometry(0);
    for (x, y) in (0..19 * 19).map(|n| (n % 19, n / 19)) {
        put(&mut small.bytes, &geometry, x, y, random(1, x, y, 0) % 200);
    }
    let mut rig = Rig::new("clsurface learn=learn,frames=2", &caps_of(&small));
    let begun = Instant::now();
    let warnings = loop {
        let of = judge(&mut rig, &small, &device);
        assert_eq!((of.verdict, of.judged_pixels), (Verdict::None, 0));
        let warnings = rig.warnings();
        if !warnings.is_empty() || begun.elapsed() > Duration::from_secs(60) {
            break warnings;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(
        warnings[0].text.contains("nothing was learned"),
        "{warnings:?}"
    );
    assert!(rig.told("clsurface-learned").is_empty());
}

#[test]
fn good_frames_of_two_materials_teach_both() {
    let Some(device) = start() else { return };
    let good: Vec<Frame> = (0..12)
        .map(|n| grey(material(n, if n % 4 < 2 { 2 } else { 5 }, 1.0)))
        .collect();
    let (mut rig, _) = learned(&good, &device);
    for side in [2, 5] {
        for seed in 30..33 {
            let of = judge(&mut rig, &grey(material(seed, side, 1.0)), &device);
            assert_eq!(of.verdict, Verdict::Pass, "{side} {seed}");
            let spot = grey(spotted(250, material(seed, side, 1.0)));
            assert_eq!(
                judge(&mut rig, &spot, &device).verdict,
                Verdict::Fail,
                "{side} {seed}"
            );
        }
    }
    assert!(rig.warnings().is_empty());
    // Each half of these frames has shown one material, so the limit is that of a stranger. The message tells it.
    let turns: Vec<Frame> = (0..12)
        .map(|n| grey(material(n, if n % 2 == 0 { 2 } else { 5 }, 1.0)))
        .collect();
    let novelty = |told: &gst::Structure| told.get::<f64>("novelty").expect("a limit");
    let (_, strange) = learned(&turns, &device);
    let (_, own) = learned(&good, &device);
    println!(
        "limits: {} of both in each half, {} of one in each",
        novelty(&own),
        novelty(&strange)
    );
    assert!(novelty(&strange) > novelty(&own));
}

#[test]
fn light_may_change_by_a_factor_of_two_and_a_spot_still_fails() {
    let Some(device) = start() else { return };
    let good: Vec<Frame> = (0..FRAMES)
        .map(|seed| grey(material(seed, 2, 1.0)))
        .collect();
    let (mut rig, _) = learned(&good, &device);
    for gain in [0.5, 0.7, 1.0, 1.4, 2.0] {
        for seed in 30..34 {
            let of = judge(&mut rig, &grey(material(seed, 2, gain)), &device);
            assert_eq!(of.verdict, Verdict::Pass, "{gain} {seed}");
            let spot = (119.0 * gain) as u32;
            let of = judge(
                &mut rig,
                &grey(spotted(spot, material(seed, 2, gain))),
                &device,
            );
            assert_eq!(of.verdict, Verdict::Fail, "{gain} {seed}");
        }
    }
}

#[test]
fn samples_of_10_to_16_bits_are_judged_as_those_of_8_by_the_same_file() {
    let Some(device) = start() else { return };
    let folder = Folder::new("surface-depths");
    let path = folder.0.join("surface.npz");
    teach(&path, "channels=novelty+dark-lines", &device);
    let level = |x, y| spotted(119, material(70, 2, 1.0))(x, y);
    let mask_of = |frame: &Frame, depth: u32| {
        let text = format!(
            "clsurface channels=novelty+dark-lines bit-depth={depth} learn=\"learn,location=(string){}\"",
            path.display()
        );
        let mut rig = Rig::new(&text, &caps_of(frame));
        let output = rig.pass(buffer_of(frame, &device));
        let of = DefectResult::read(&output).remove(0);
        (read(&output), of.verdict, of.judged_pixels)
    };
    let wanted = mask_of(&grey(level), 0);
    assert_eq!(wanted.1, Verdict::Fail);
    for (format, depth) in [
        (Format::Gray16Le, 10),
        (Format::Gray16Be, 12),
        (Format::Gray16Le, 14),
        (Format::Gray16Le, 16),
    ] {
        let frame = picture(format, 1 << (depth - 8), level);
        assert_eq!(mask_of(&frame, depth), wanted, "{format:?} {depth}");
    }
}
