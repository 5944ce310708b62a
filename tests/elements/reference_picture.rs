//! `clreference`: trainings, alignment and brightness, outputs, the file of the model, and refusals.

use std::{path::PathBuf, sync::Arc};

use clinspect_opencl::ClContext;
use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    frames::{Frame, PADDED, PLAIN, read},
    oracle::{
        put,
        trained::{self, Motion, Normalize, Outcome},
    },
    support::{Rig, buffer_of, caps_of, start},
};

pub const SIZE: [usize; 2] = [163, 121];
const SETTINGS: &str = "threshold=20 deviation-factor=4 edge-tolerance=0";

/// Grey levels of a format's samples per level of 8 bits.
pub fn scale(frame: &Frame) -> u32 {
    if frame.kind().size() == 2 { 257 } else { 1 }
}

/// A picture that does not repeat: levels of a lattice of 6 px, with straight lines between them.
pub fn level(x: i64, y: i64) -> u32 {
    let at = |i: i64, j: i64| {
        (crate::content::random(5, 0, (i + 99) as usize, (j + 99) as usize) % 180) as i64 + 30
    };
    let (i, j, fx, fy) = (
        x.div_euclid(6),
        y.div_euclid(6),
        x.rem_euclid(6),
        y.rem_euclid(6),
    );
    let row = |j| at(i, j) * (6 - fx) + at(i + 1, j) * fx;
    ((row(j) * (6 - fy) + row(j + 1) * fy) / 36) as u32
}

/// The picture, moved by (dx, dy), with `change` applied to each sample of 8 bits.
pub fn frame_of(
    format: Format,
    [dx, dy]: [i64; 2],
    change: impl Fn(i64, i64, u32) -> u32,
) -> Frame {
    let arrangement = if dx == 0 { PADDED } else { PLAIN };
    let mut frame = Frame::poisoned(format, SIZE, arrangement, 0x80);
    let geometry = frame.geometry(0);
    let scale = scale(&frame);
    for y in 0..SIZE[1] as i64 {
        for x in 0..SIZE[0] as i64 {
            let value = scale * change(x, y, level(x - dx, y - dy)).min(255);
            put(&mut frame.bytes, &geometry, x as usize, y as usize, value);
        }
    }
    frame
}

pub fn good(format: Format) -> Frame {
    frame_of(format, [0, 0], |_, _, s| s)
}

pub fn with_defect(x: i64, y: i64, s: u32) -> u32 {
    let inside = (40..47).contains(&x) && (60..64).contains(&y);
    if inside { s.saturating_sub(80) + 10 } else { s }
}

/// Noise of up to 3 levels that differs from frame to frame.
pub fn noisy(n: u64) -> impl Fn(i64, i64, u32) -> u32 {
    move |x, y, s| s + crate::content::random(n, 0, x as usize, y as usize) % 4
}

/// An element that was trained with three frames, and the frames.
pub fn trained_rig(line: &str, format: Format, device: &Arc<ClContext>) -> (Rig, Vec<Frame>) {
    let frames: Vec<Frame> = (0..3).map(|n| frame_of(format, [0, 0], noisy(n))).collect();
    let threshold = 20 * scale(&frames[0]);
    let line = format!("clreference name=r train-frames=3 {SETTINGS} threshold={threshold} {line}");
    let mut rig = Rig::new(&line, &caps_of(&frames[0]));
    for frame in &frames {
        let output = rig.pass(buffer_of(frame, device));
        assert_unjudged(&output);
    }
    let told = rig.told("clreference-model");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].get::<u32>("frames"), Ok(3));
    assert!(rig.warnings().is_empty());
    (rig, frames)
}

#[track_caller]
pub fn result(output: &gst::BufferRef) -> DefectResult {
    let mut results = DefectResult::read(output);
    assert_eq!(results.len(), 1);
    results.remove(0)
}

/// A frame that was not compared: the mask is clear.
#[track_caller]
fn assert_unjudged(output: &gst::Buffer) {
    let result = result(output);
    assert_eq!(result.verdict, Verdict::None);
    assert_eq!((result.judged_pixels, result.defect_pixels), (0, 0));
    assert_eq!(result.alignment, None);
    let mask = result.mask.as_ref().map_or_else(|| read(output), read);
    assert!(mask.iter().all(|&byte| byte == 0));
}

fn expected(frames: &[Frame], frame: &Frame, shift: [i64; 2], normalize: Normalize) -> Outcome {
    let samples = |frame: &Frame| {
        frame
            .component(0)
            .values()
            .into_iter()
            .map(i64::from)
            .collect()
    };
    let model = trained::train(&frames.iter().map(samples).collect::<Vec<_>>());
    trained::compare(
        frame.component(0),
        &model,
        &trained::Settings {
            threshold: f64::from(20 * scale(frame)),
            deviation_factor: 4.0,
            edge_tolerance: 0,
            bright: true,
            dark: true,
            motion: Motion::shift(shift),
            opens: false,
            normalize,
            rois: Vec::new(),
            ignored: Vec::new(),
            bit_depth: 0,
        },
    )
}

/// Each marked pixel of the frame lies in the box of a listed defect.
#[track_caller]
pub fn assert_mask_in_boxes(found: &DefectResult, mask: &[u8]) {
    let stride = SIZE[0].div_ceil(8);
    let mut marked = 0;
    for (x, y) in (0..SIZE[0]).flat_map(|x| (0..SIZE[1]).map(move |y| (x, y))) {
        if mask[y * stride + x / 8] & (0x80 >> (x % 8)) == 0 {
            continue;
        }
        marked += 1;
        let (x, y) = (x as i32, y as i32);
        let is_in = found.defects.iter().any(|d| {
            (d.x..d.x + d.width as i32).contains(&x) && (d.y..d.y + d.height as i32).contains(&y)
        });
        assert!(is_in, "{x} {y} is in no box of {:?}", found.defects);
    }
    assert_eq!(marked > 0, found.defect_pixels > 0);
}

#[test]
fn trained_element_passes_good_frames_and_marks_a_misprint() {
    let Some(device) = start() else { return };
    for format in [
        Format::Gray8,
        Format::Gray16Le,
        Format::Gray16Be,
        Format::I420,
    ] {
        let (mut rig, frames) = trained_rig("", format, &device);
        let passed = result(&rig.pass(buffer_of(&frame_of(format, [0, 0], noisy(9)), &device)));
        assert_eq!((passed.verdict, passed.defect_pixels), (Verdict::Pass, 0));
        let bad = frame_of(format, [0, 0], with_defect);
        let output = rig.pass(buffer_of(&bad, &device));
        let found = result(&output);
        let wanted = expected(&frames, &bad, [0, 0], Normalize::None);
        assert!(wanted.defect_pixels >= 20);
        assert_eq!(read(&output), wanted.packed, "{format}");
        assert_eq!(found.verdict, Verdict::Fail);
        assert_eq!(found.defect_pixels, wanted.defect_pixels);
        assert_eq!(found.judged_pixels, wanted.judged_pixels);
        assert_eq!(
            (found.pitch_x, found.pitch_y, found.threshold),
            (0.0, 0.0, f64::from(20 * scale(&bad)))
        );
        let defect = &found.defects[0];
        assert!(
            defect.polarity == -1 && defect.mean_difference < -20.0,
            "{defect:?}"
        );
        assert!((40..47).contains(&defect.x) && (60..64).contains(&defect.y));
        let alignment = found.alignment.expect("an alignment");
        assert_eq!((alignment.shift_x, alignment.shift_y), (0.0, 0.0));
        assert!(alignment.matched && alignment.match_score == 1.0);
        let told = rig.told("clreference");
        let fields = told.last().expect("a message");
        assert_eq!(fields.get::<bool>("matched"), Ok(true));
        assert!(
            fields
                .get::<&str>("settings")
                .expect("settings")
                .contains("align=none")
        );
    }
}

#[test]
fn frames_that_moved_or_changed_brightness_are_compared_where_they_fit() {
    let Some(device) = start() else { return };
    let line = "align=translation search-range=8 normalize=gain";
    let (mut rig, frames) = trained_rig(line, Format::Gray8, &device);
    let darker = |x: i64, y: i64, s: u32| with_defect(x - 5, y + 7, s) * 9 / 10;
    let moved = frame_of(Format::Gray8, [5, -7], darker);
    let output = rig.pass(buffer_of(&moved, &device));
    let found = result(&output);
    let alignment = found.alignment.expect("an alignment");
    assert_eq!((alignment.shift_x, alignment.shift_y), (5.0, -7.0));
    assert!(
        alignment.matched && alignment.match_score > 0.9,
        "{alignment:?}"
    );
    let defect = &found.defects[0];
    assert_eq!((found.defects.len(), found.verdict), (1, Verdict::Fail));
    // Coordinates are the frame's.
    assert!(
        (45..52).contains(&defect.x) && (53..57).contains(&defect.y),
        "{defect:?}"
    );
    assert_mask_in_boxes(&found, &read(&output));
    // The training itself is aligned and levelled with its first frame: these frames differ by noise only.
    let wanted = expected(&frames, &moved, [20, -28], Normalize::Gain);
    assert_eq!(found.judged_pixels, wanted.judged_pixels);
}

#[test]
fn frame_of_something_else_fails_without_a_match() {
    let Some(device) = start() else { return };
    let (mut rig, _) = trained_rig("align=translation output=frame", Format::Gray8, &device);
    let other = frame_of(Format::Gray8, [0, 0], |x, y, _| {
        crate::content::random(3, 0, x as usize, y as usize) % 256
    });
    let found = result(&rig.pass(buffer_of(&other, &device)));
    assert_eq!(found.verdict, Verdict::Fail);
    assert_eq!((found.judged_pixels, found.defect_pixels), (0, 0));
    assert!(!found.alignment.expect("an alignment").matched);
    assert!(
        read(found.mask.as_ref().expect("a mask"))
            .iter()
            .all(|&byte| byte == 0)
    );
    assert!(
        found.summary().contains("does not match"),
        "{}",
        found.summary()
    );
}

#[test]
fn without_a_model_frames_are_unjudged_and_one_warning_says_so() {
    let Some(device) = start() else { return };
    let frame = good(Format::Gray8);
    let mut rig = Rig::new("clreference name=r", &caps_of(&frame));
    for _ in 0..3 {
        assert_unjudged(&rig.pass(buffer_of(&frame, &device)));
    }
    let warnings = rig.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].text.contains("no model"), "{warnings:?}");
    // A training of no frames is refused, and nothing changes.
    rig.only("clreference").emit_by_name::<()>("train", &[]);
    assert_unjudged(&rig.pass(buffer_of(&frame, &device)));
    let warnings = rig.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].text.contains("train-frames"), "{warnings:?}");
}

#[test]
fn signal_begins_another_training_and_the_model_follows_it() {
    let Some(device) = start() else { return };
    let (mut rig, _) = trained_rig("", Format::Gray8, &device);
    let bad = frame_of(Format::Gray8, [0, 0], with_defect);
    let element = rig.only("clreference");
    assert_eq!(
        result(&rig.pass(buffer_of(&bad, &device))).verdict,
        Verdict::Fail
    );
    element.emit_by_name::<()>("train", &[]);
    for _ in 0..3 {
        assert_unjudged(&rig.pass(buffer_of(&bad, &device)));
    }
    // What was a misprint is the model now.
    assert_eq!(
        result(&rig.pass(buffer_of(&bad, &device))).verdict,
        Verdict::Pass
    );
    let before = good(Format::Gray8);
    assert_eq!(
        result(&rig.pass(buffer_of(&before, &device))).verdict,
        Verdict::Fail
    );
}

/// Not the object.
fn other() -> Frame {
    frame_of(Format::Gray8, [0, 0], |x, y, _| {
        crate::content::random(3, 0, x as usize, y as usize) % 256
    })
}

#[track_caller]
fn assert_texts(rig: &Rig, expected: &[&str]) {
    let texts: Vec<String> = rig.warnings().into_iter().map(|w| w.text).collect();
    assert_eq!(texts.len(), expected.len(), "{texts:?}");
    for (text, part) in texts.iter().zip(expected) {
        assert!(text.contains(part), "{text} lacks {part}");
    }
}

/// A training that went on until it had enough frames took faulty ones that came behind its good ones.
#[test]
fn training_ends_with_its_number_of_frames_and_names_those_that_it_left_out() {
    let Some(device) = start() else { return };
    let (frame, other) = (good(Format::Gray8), other());
    let bad = frame_of(Format::Gray8, [0, 0], with_defect);
    let line = format!("clreference train-frames=5 {SETTINGS} align=translation");
    let trained = || {
        let mut rig = Rig::new(&line, &caps_of(&frame));
        let frames = [&frame, &other, &frame, &other, &frame];
        for (frame, added) in frames.iter().zip([1, 1, 2, 2, 3]) {
            let output = rig.pass(buffer_of(frame, &device));
            assert_unjudged(&output);
            assert_eq!(result(&output).training, Some([added, 5]));
        }
        rig
    };
    assert_texts(
        &trained(),
        &[
            "frame 2 of the training is left out, because it does not match the first one",
            "used 3 of its 5 frames, and left out number 2, 4 (counted from 1)",
        ],
    );
    let mut rig = trained();
    let told = rig.told("clreference-model");
    assert_eq!(told[0].get::<u32>("frames"), Ok(3));
    let left_out = told[0].get::<gst::Array>("left-out").unwrap();
    let left_out: Vec<u32> = left_out.iter().map(|n| n.get().unwrap()).collect();
    assert_eq!(left_out, [2, 4]);
    for (frame, verdict) in [(&bad, Verdict::Fail), (&frame, Verdict::Pass)] {
        let output = rig.pass(buffer_of(frame, &device));
        assert_eq!(result(&output).verdict, verdict);
    }
}

#[test]
fn training_in_which_too_few_frames_remain_makes_no_model() {
    let Some(device) = start() else { return };
    let (frame, other) = (good(Format::Gray8), other());
    for frames in [
        &[&frame, &other][..],
        &[&frame, &other, &other, &frame],
        // The first one is wrong.
        &[&other, &frame, &frame],
    ] {
        let wanted = frames.len();
        let line = format!("clreference train-frames={wanted} {SETTINGS} align=translation");
        let mut rig = Rig::new(&line, &caps_of(&frame));
        for frame in frames.iter().chain(&[&frame, &frame]) {
            assert_unjudged(&rig.pass(buffer_of(frame, &device)));
        }
        let ended = format!(
            "ended without a model: only {} of its {wanted} frames",
            wanted / 2
        );
        assert_texts(&rig, &["does not match", &ended, "there is no model"]);
        assert_eq!(rig.told("clreference-model").len(), 0);
    }
}

/// Samples of 10 and 12 bits in 16 bits, and 8 bits with an amplitude of 1 grey level.
#[test]
fn frames_with_too_little_contrast_to_be_aligned_are_told_with_the_bits_that_they_fill() {
    let Some(device) = start() else { return };
    for (format, divisor, line, remedy) in [
        (
            Format::Gray16Le,
            64,
            "",
            "fill 10 of 16 bits: set bit-depth",
        ),
        (
            Format::Gray16Be,
            16,
            "",
            "fill 12 of 16 bits: set bit-depth",
        ),
        (Format::Gray8, 100, "", "more contrast"),
        (
            Format::Gray16Le,
            6400,
            "bit-depth=10",
            "fill 4 of 10 bits: set bit-depth",
        ),
    ] {
        for align in ["translation", "affine", "local"] {
            let mut frame = good(format);
            let geometry = frame.geometry(0);
            for (x, y) in (0..SIZE[0]).flat_map(|x| (0..SIZE[1]).map(move |y| (x, y))) {
                let value = scale(&frame) * level(x as i64, y as i64) / divisor;
                put(&mut frame.bytes, &geometry, x, y, value);
            }
            let line = format!(
                "clreference train-frames=2 threshold=20 align={align} search-range=8 {line}"
            );
            let mut rig = Rig::new(&line, &caps_of(&frame));
            for _ in 0..2 {
                assert_unjudged(&rig.pass(buffer_of(&frame, &device)));
            }
            assert_texts(
                &rig,
                &[
                    "frame 1 of the training is left out, because it has too little contrast",
                    "without a model",
                ],
            );
            let mut rig = Rig::new(&line, &caps_of(&frame));
            rig.pass(buffer_of(&frame, &device));
            assert_texts(&rig, &[remedy]);
            if remedy.contains("16 bits") {
                let bits = if divisor == 64 { 10 } else { 12 };
                let mut rig = Rig::new(&format!("{line} bit-depth={bits}"), &caps_of(&frame));
                rig.pass(buffer_of(&frame, &device));
                rig.pass(buffer_of(&frame, &device));
                assert_eq!(rig.told("clreference-model").len(), 1);
            }
        }
    }
}

#[test]
fn other_caps_end_a_training_and_leave_the_model() {
    let Some(device) = start() else { return };
    let (mut rig, frames) = trained_rig("", Format::Gray8, &device);
    let small = Frame::showing(
        Format::Gray8,
        [64, 48],
        PLAIN,
        crate::content::Content::Random,
        0,
    );
    rig.only("clreference").emit_by_name::<()>("train", &[]);
    assert_unjudged(&rig.pass(buffer_of(&frames[0], &device)));
    rig.renegotiate(&caps_of(&small));
    assert_unjudged(&rig.pass(buffer_of(&small, &device)));
    let warnings: Vec<String> = rig.warnings().into_iter().map(|w| w.text).collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].contains("the training ended after 1 of 3 frames"),
        "{warnings:?}"
    );
    assert!(
        warnings[1].contains("163x121") && warnings[1].contains("64x48"),
        "{warnings:?}"
    );
    rig.renegotiate(&caps_of(&frames[0]));
    assert_eq!(
        result(&rig.pass(buffer_of(&frames[1], &device))).verdict,
        Verdict::Pass
    );
}

#[test]
fn every_output_carries_the_same_mask() {
    let Some(device) = start() else { return };
    let bad = frame_of(Format::Gray8, [0, 0], with_defect);
    for (output, wanted) in [
        ("mask", "video/x-bitmask"),
        ("mask", "video/x-raw,format=GRAY8"),
        ("mask", "image/x-portable-bitmap"),
        ("frame", "ANY"),
        ("model", "ANY"),
        ("difference", "ANY"),
    ] {
        let frames: Vec<Frame> = (0..3)
            .map(|n| frame_of(Format::Gray8, [0, 0], noisy(n)))
            .collect();
        let line =
            format!("clreference train-frames=3 {SETTINGS} output={output} difference-gain=2");
        let wanted_caps: gst::Caps = wanted.parse().unwrap();
        let mut rig = Rig::between(&line, &caps_of(&bad), &wanted_caps);
        for frame in &frames {
            rig.pass(buffer_of(frame, &device));
        }
        let sent = rig.pass(buffer_of(&bad, &device));
        let outcome = expected(&frames, &bad, [0, 0], Normalize::None);
        let found = result(&sent);
        assert_eq!(
            found.defect_pixels, outcome.defect_pixels,
            "{output} {wanted}"
        );
        let bytes = read(&sent);
        let shown = |frame_bytes: &[u8]| {
            let mut shown = Frame::poisoned(Format::Gray8, SIZE, PLAIN, 0);
            shown.bytes = frame_bytes.to_vec();
            shown.component(0).values()
        };
        match (output, wanted) {
            ("mask", "video/x-bitmask") => assert_eq!(bytes, outcome.packed),
            ("mask", "image/x-portable-bitmap") => assert!(bytes.ends_with(&outcome.packed)),
            ("mask", _) => {
                let grey: Vec<u32> = outcome
                    .mask
                    .iter()
                    .map(|&set| if set { 255 } else { 0 })
                    .collect();
                assert_eq!(shown(&bytes), grey);
            }
            _ => {
                let mask = found.mask.as_ref().expect("a mask in the meta");
                assert_eq!(read(mask), outcome.packed, "{output}");
            }
        }
        if output == "model" {
            let mean = |at: usize| {
                let sum: u32 = frames.iter().map(|f| f.component(0).values()[at]).sum();
                (2 * sum + 3) / 6
            };
            let pixels = shown(&bytes);
            for at in (0..pixels.len()).step_by(101) {
                assert_eq!(pixels[at], mean(at), "{at}");
            }
        }
        if output == "difference" {
            let shade = |d: &Option<f64>| {
                (128.0 + (2.0 * d.unwrap_or(0.0)).round()).clamp(0.0, 255.0) as u32
            };
            assert_eq!(
                shown(&bytes),
                outcome.differences.iter().map(shade).collect::<Vec<_>>()
            );
        }
    }
}

fn array<'a>(
    name: &'a str,
    shape: &'a [usize],
    samples: &'a [u32],
) -> clinspect_models::ArrayRef<'a> {
    clinspect_models::ArrayRef {
        name,
        shape,
        samples,
    }
}

/// A folder of its own that is removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("clreference-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn model_in_a_file_is_in_force_from_the_first_frame_on() {
    let Some(device) = start() else { return };
    let folder = Folder::new("round-trip");
    let path = folder.0.join("label.npz");
    let location = format!("location={}", path.display());
    for format in [Format::Gray8, Format::Gray16Be] {
        let _ = std::fs::remove_file(&path);
        let (rig, frames) = trained_rig(&location, format, &device);
        // The stop waits until the model is on the disk.
        drop(rig);
        let bad = frame_of(format, [0, 0], with_defect);
        let threshold = 20 * scale(&bad);
        let line =
            format!("clreference train-frames=3 {SETTINGS} threshold={threshold} {location}");
        let mut rig = Rig::new(&line, &caps_of(&bad));
        let output = rig.pass(buffer_of(&bad, &device));
        let wanted = expected(&frames, &bad, [0, 0], Normalize::None);
        assert_eq!(read(&output), wanted.packed, "{format}");
        assert_eq!(result(&output).verdict, Verdict::Fail);
        assert!(rig.warnings().is_empty());
        assert!(rig.told("clreference-model").is_empty());
    }
    // The file is one of NumPy, with one row of the array per row of the frame.
    let file = clinspect_models::ModelFile::open(&path).expect("a model");
    assert_eq!(file.shape::<2>("mean").expect("means"), [SIZE[1], SIZE[0]]);
    assert_eq!(file.scalar("frames").expect("a number"), 3);
}

#[test]
fn missing_file_and_a_stream_too_short_for_a_training_are_told() {
    let Some(device) = start() else { return };
    let frame = good(Format::Gray8);
    let mut rig = Rig::new("clreference location=no-such.npz", &caps_of(&frame));
    assert_unjudged(&rig.pass(buffer_of(&frame, &device)));
    let missing = rig.warnings();
    assert_eq!(missing.len(), 1, "{missing:?}");
    let words = "the file no-such.npz does not exist";
    assert!(missing[0].text.contains(words), "{missing:?}");
    let mut rig = Rig::new("clreference train-frames=3", &caps_of(&frame));
    for _ in 0..2 {
        assert_unjudged(&rig.pass(buffer_of(&frame, &device)));
    }
    assert!(rig.warnings().is_empty());
    assert!(rig.harness().push_event(gst::event::Eos::new()));
    let short = rig.warnings();
    assert_eq!(short.len(), 1, "{short:?}");
    let words = "after 2 of 3 frames of the training";
    assert!(short[0].text.contains(words), "{short:?}");
}

#[test]
fn summary_of_a_training_says_how_many_frames_it_has() {
    let Some(device) = start() else { return };
    let frame = good(Format::Gray8);
    let mut rig = Rig::new(
        "clreference train-frames=2 reports=reports,interval=0",
        &caps_of(&frame),
    );
    let in_metas = [0; 3].map(|_| {
        let output = rig.pass(buffer_of(&frame, &device));
        DefectResult::read(&output)[0].summary()
    });
    let told = rig.told("clreference");
    let texts: Vec<&str> = told.iter().map(|m| m.get("summary").unwrap()).collect();
    assert_eq!(texts, in_metas);
    let training = [
        "none: training, 1 of 2 frames",
        "none: training, 2 of 2 frames",
    ];
    assert_eq!(texts[..2], training);
    assert!(texts[2].starts_with("pass"), "{texts:?}");

    // Without a training the reason is another one.
    let mut rig = Rig::new("clreference train-frames=0", &caps_of(&frame));
    rig.pass(buffer_of(&frame, &device));
    let text = rig.told("clreference")[0].get::<String>("summary");
    assert_eq!(text.unwrap(), "none: no pixel could be judged");
}

/// The file with arrays of numbers with a fraction.
fn of_floats(file: &[u8]) -> Vec<u8> {
    let mut floats = file.to_vec();
    for at in 0..file.len() - 3 {
        if &file[at..at + 3] == b"<u4" {
            floats[at + 1] = b'f';
        }
    }
    assert_ne!(floats, file);
    floats
}

#[test]
fn model_that_cannot_be_used_is_refused_and_never_replaced_by_a_training_of_its_own() {
    let Some(device) = start() else { return };
    let folder = Folder::new("refused");
    let path = folder.0.join("label.npz");
    let frame = good(Format::Gray8);
    let pixels = SIZE[0] * SIZE[1];
    let of = |width: usize, height: usize, mean: u32, bits: u32| {
        let (shape, means) = ([height, width], vec![mean; width * height]);
        let arrays = [
            array("mean", &shape[..], &means[..]),
            array("deviation", &shape[..], &means[..]),
            array("frames", &[], &[5][..]),
            array("bits", &[], std::slice::from_ref(&bits)),
        ];
        clinspect_models::write(&path, &arrays).expect("a file");
        std::fs::read(&path).expect("the file")
    };
    let whole = of(SIZE[0], SIZE[1], 1000, 8);
    for (bytes, word) in [
        (of(SIZE[1], SIZE[0], 1000, 8), "121x163"),
        (of(SIZE[0], SIZE[1], 1000, 16), "16-bit"),
        (of(SIZE[0], SIZE[1], 256 * 256, 8), "65536"),
        // The bits of an undefined number, and numbers with a fraction.
        (of(SIZE[0], SIZE[1], f32::NAN.to_bits(), 8), "above 65280"),
        (of_floats(&whole), "label.npz"),
        (whole[..whole.len() / 2].to_vec(), "label.npz"),
        (b"not an archive".to_vec(), "label.npz"),
        (Vec::new(), "label.npz"),
    ] {
        std::fs::write(&path, &bytes).unwrap();
        let line = format!(
            "clreference train-frames=1 {SETTINGS} location={}",
            path.display()
        );
        let mut rig = Rig::new(&line, &caps_of(&frame));
        for _ in 0..2 {
            assert_unjudged(&rig.pass(buffer_of(&frame, &device)));
        }
        let warnings = rig.warnings();
        assert_eq!(warnings.len(), 1, "{word}: {warnings:?}");
        assert!(warnings[0].text.contains(word), "{word}: {warnings:?}");
        assert_eq!(
            std::fs::read(&path).unwrap(),
            bytes,
            "{word}: the file was changed"
        );
        // The user asks for a new model.
        rig.only("clreference").emit_by_name::<()>("train", &[]);
        assert_unjudged(&rig.pass(buffer_of(&frame, &device)));
        assert_eq!(
            result(&rig.pass(buffer_of(&frame, &device))).verdict,
            Verdict::Pass
        );
        drop(rig);
        let file = clinspect_models::ModelFile::open(&path).expect("a model");
        assert_eq!(
            file.array::<2>("mean").expect("means").samples.len(),
            pixels
        );
    }
}

#[test]
fn model_that_cannot_be_saved_is_in_use() {
    let Some(device) = start() else { return };
    let frame = good(Format::Gray8);
    let line = format!("clreference train-frames=1 {SETTINGS} location=/proc/no-folder/label.npz");
    let mut rig = Rig::new(&line, &caps_of(&frame));
    assert_unjudged(&rig.pass(buffer_of(&frame, &device)));
    assert_eq!(
        result(&rig.pass(buffer_of(&frame, &device))).verdict,
        Verdict::Pass
    );
    let began = std::time::Instant::now();
    let warnings = loop {
        let warnings = rig.warnings();
        if !warnings.is_empty() || began.elapsed().as_secs() > 20 {
            break warnings;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].text.contains("was not saved"), "{warnings:?}");
}

#[test]
fn settings_that_do_not_fit_are_refused_while_frames_flow() {
    let Some(device) = start() else { return };
    let (mut rig, _) = trained_rig("", Format::Gray8, &device);
    let element = rig.only("clreference");
    let passed = result(&rig.pass(buffer_of(&good(Format::Gray8), &device)));
    assert_eq!(passed.verdict, Verdict::Pass);
    for (name, value, word) in [
        ("threshold", "300", "threshold=300"),
        ("bit-depth", "12", "bit-depth=12"),
        ("opening", "2", "opening=2"),
        ("rois", "<<100,0,100,10>>", "outside"),
    ] {
        let before = element.property_value(name);
        element.set_property_from_str(name, value);
        let found = result(&rig.pass(buffer_of(&good(Format::Gray8), &device)));
        assert_eq!(found.verdict, Verdict::Pass);
        let warnings = rig.warnings();
        assert_eq!(warnings.len(), 1, "{name}: {warnings:?}");
        assert!(warnings[0].text.contains(word), "{warnings:?}");
        if name != "rois" {
            assert_eq!(
                format!("{:?}", element.property_value(name)),
                format!("{before:?}")
            );
        }
        element.set_property_from_str("rois", "<>");
    }
    // Another threshold is in force for the next frame.
    element.set_property("threshold", 75.0);
    let found = result(&rig.pass(buffer_of(
        &frame_of(Format::Gray8, [0, 0], with_defect),
        &device,
    )));
    assert_eq!((found.verdict, found.threshold), (Verdict::Pass, 75.0));
}
