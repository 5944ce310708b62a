//! `clflatfield`: references, their file, refusals, and what happens to frames.

use std::path::PathBuf;
use std::sync::Arc;

use clinspect_models::{ArrayRef, ModelFile};
use clinspect_opencl::ClContext;
use clinspect_testkit::npz;
use gst::prelude::*;
use gst_video::VideoFormat as Format;

use crate::{
    content::Content,
    frames::{ARRANGEMENTS, Arrangement, Frame, Owner, PADDED, PLAIN, Split, read},
    oracle::{
        flat_field::{Field, average},
        put,
    },
    results::assert_smoothed,
    support::{Rig, buffer_of, caps_of, constant, noise, start},
};

const SIZE: [usize; 2] = [37, 11];
/// Higher than the frame that warms up the kernels.
const HIGH: [usize; 2] = [64, 80];
const FORMATS: [Format; 7] = [
    Format::Gray8,
    Format::Gray16Le,
    Format::Gray16Be,
    Format::Rgb,
    Format::Bgrx,
    Format::Argb,
    Format::Gbr,
];

/// A frame whose components that show light go from `low` to `high`, in 1/255 of the highest level.
fn shade(format: Format, size: [usize; 2], [low, high]: [usize; 2]) -> Frame {
    let mut frame = noise(format, size, PLAIN);
    for c in 0..frame.component_count().min(3) {
        let geometry = frame.geometry(c);
        let most = (1_usize << (8 * frame.kind().size())) - 1;
        for y in 0..geometry.height {
            for x in 0..geometry.width {
                let level = low + (high - low) * ((7 * x + 3 * y + 11 * c) % 50) / 49;
                put(
                    &mut frame.bytes,
                    &geometry,
                    x,
                    y,
                    (level * most / 255) as u32,
                );
            }
        }
    }
    frame
}

/// What the element computes with these references.
fn field(white: &Frame, dark: Option<&Frame>, line: bool) -> Field {
    let colors = white.component_count().min(3);
    let averaged = |frame: &Frame| -> Vec<Vec<u32>> {
        (0..colors)
            .map(|c| average(&[frame.component(c)], line))
            .collect()
    };
    let white_values = averaged(white);
    Field {
        dark: dark.map_or_else(|| vec![vec![0; white_values[0].len()]; colors], averaged),
        white: white_values,
        line,
        target: 0,
        min_range: 8 * 256,
        most: (1 << (8 * white.kind().size())) - 1,
    }
}

/// `input` after the correction.
fn corrected(input: &Frame, field: &Field) -> Frame {
    let mut values: Vec<Vec<u32>> = (0..input.component_count())
        .map(|c| input.component(c).values())
        .collect();
    for (c, values) in values.iter_mut().enumerate().take(field.white.len()) {
        *values = field.correct(c, input.component(c));
    }
    let mut frame = Frame::poisoned(input.info.format(), input.size(), PLAIN, 0);
    frame.set(&values, input);
    frame
}

/// Asserts that a buffer shows the samples of `expected`, in GStreamer's own layout.
#[track_caller]
fn assert_shows(output: &gst::Buffer, expected: &Frame) {
    let mut shown = Frame::poisoned(expected.info.format(), expected.size(), PLAIN, 0);
    shown.bytes = read(output);
    assert_eq!(shown.bytes.len(), expected.bytes.len());
    for c in 0..expected.component_count() {
        let (found, wanted) = (shown.component(c).values(), expected.component(c).values());
        assert_eq!(found, wanted, "{}, component {c}", expected.describe());
    }
}

/// Takes a reference of a frame, and returns its message.
#[track_caller]
fn take(rig: &mut Rig, kind: &str, frame: &Frame, device: &Arc<ClContext>) -> gst::Structure {
    let element = rig.only("clflatfield");
    let frames: u32 = element.property("average-frames");
    element.emit_by_name::<()>(&format!("take-{kind}"), &[]);
    for n in 0..frames {
        assert!(
            rig.told("clflatfield-reference").is_empty(),
            "after {n} frames"
        );
        let output = rig.pass(buffer_of(frame, device));
        assert_eq!(read(&output), frame.bytes);
    }
    let mut told = rig.told("clflatfield-reference");
    assert_eq!(told.len(), 1, "{:?}", rig.warnings());
    let message = told.remove(0);
    assert_eq!(message.get::<&str>("kind").unwrap(), kind);
    assert_eq!(message.get::<u32>("frames").unwrap(), frames);
    message
}

/// Tries to take a reference that is refused; returns the warning.
#[track_caller]
fn refused(rig: &mut Rig, kind: &str, frame: &Frame, device: &Arc<ClContext>) -> String {
    let element = rig.only("clflatfield");
    let frames: u32 = element.property("average-frames");
    element.emit_by_name::<()>(&format!("take-{kind}"), &[]);
    for _ in 0..frames {
        rig.pass(buffer_of(frame, device));
    }
    let warnings = rig.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    warnings[0].text.clone()
}

fn count(rig: &Rig, name: &str) -> u64 {
    let stats: gst::Structure = rig.only("clflatfield").property("stats");
    stats.get(name).unwrap()
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("clflatfield-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("line-1.npz")
    }

    fn line(&self) -> String {
        format!(
            "clflatfield average-frames=1 location={}",
            self.file().display()
        )
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn flat_field_without_a_white_reference_passes_frames_with_one_warning() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, SIZE, PLAIN);
    let mut rig = Rig::new("clflatfield", &caps_of(&frame));
    for arrangement in ARRANGEMENTS
        .into_iter()
        .filter(|a| a.split != Split::Planes)
    {
        let buffer = buffer_of(&noise(Format::Gray8, SIZE, arrangement), &device);
        let kept = buffer.clone();
        let output = rig.pass(buffer);
        assert_eq!(output.as_ptr(), kept.as_ptr(), "the same buffer");
    }
    let warnings = rig.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].text.contains("take-white"), "{warnings:?}");
    assert_eq!(count(&rig, "frames-unchanged"), 8);
    assert_eq!(count(&rig, "frames-corrected"), 0);
    // Nobody needs the frames on the device.
    assert_eq!(count(&rig, "frames"), 0);
}

#[test]
fn flat_field_corrects_every_format_with_the_references_that_were_taken() {
    let Some(device) = start() else { return };
    for (n, format) in FORMATS.into_iter().enumerate() {
        let line = n % 2 == 1;
        let (white, dark) = (shade(format, SIZE, [90, 240]), shade(format, SIZE, [0, 40]));
        let mode = if line { "line" } else { "area" };
        let text = format!("clflatfield mode={mode} average-frames=3");
        let mut rig = Rig::new(&text, &caps_of(&white));
        take(&mut rig, "dark", &dark, &device);
        let message = take(&mut rig, "white", &white, &device);
        let expected = field(&white, Some(&dark), line);
        let levels = || {
            expected
                .white
                .iter()
                .flatten()
                .map(|&v| f64::from(v) / 256.0)
        };
        let number = |name: &str| message.get::<f64>(name).unwrap();
        assert_eq!(number("least"), levels().fold(f64::MAX, f64::min));
        assert_eq!(number("largest"), levels().fold(0.0, f64::max));
        // A sum of at most 1221 numbers, each addition rounds by 2^-53.
        let mean = levels().sum::<f64>() / levels().count() as f64;
        assert!((number("mean") - mean).abs() < 1e-9);
        assert_eq!(number("target"), expected.level() as f64 / 256.0);
        assert_eq!(number("saturated"), 0.0);
        assert_eq!(
            message.get::<u64>("bad-samples").unwrap(),
            expected.bad() as u64
        );
        assert_eq!(
            message.get::<u64>("samples").unwrap(),
            levels().count() as u64
        );
        for arrangement in ARRANGEMENTS {
            if white.info.n_planes() == 1 && arrangement.split == Split::Planes {
                continue;
            }
            let input = noise(format, SIZE, arrangement);
            let wanted = corrected(&input, &expected);
            let buffer = buffer_of(&input, &device);
            let kept = buffer.clone();
            let output = rig.pass(buffer);
            assert_shows(&output, &wanted);
            assert_eq!(
                read(&kept),
                input.bytes,
                "somebody else's frame is as it was"
            );
        }
        assert_eq!(count(&rig, "frames-unchanged"), 6);
        assert!(rig.errors().is_empty() && rig.warnings().is_empty());
    }
}

/// A frame that only the element has is corrected in its memory, without a map, a copy or a transfer.
#[test]
fn flat_field_corrects_in_place_what_is_ours_to_write() {
    let Some(device) = start() else { return };
    let white = shade(Format::Rgb, HIGH, [90, 240]);
    let mut rig = Rig::new("clflatfield average-frames=1", &caps_of(&white));
    take(&mut rig, "white", &white, &device);
    let names = [
        "host-maps",
        "frame-uploads",
        "frame-downloads",
        "frames-copied",
    ];
    let before = names.map(|name| count(&rig, name));
    for arrangement in [PLAIN, PADDED] {
        let input = noise(Format::Rgb, HIGH, arrangement);
        let mut expected = input.clone();
        let field = field(&white, None, false);
        let values: Vec<Vec<u32>> = (0..3)
            .map(|c| field.correct(c, input.component(c)))
            .collect();
        expected.set(&values, &input);
        let buffer = buffer_of(&input, &device);
        let memory = buffer.peek_memory(0).as_ptr();
        let output = rig.pass(buffer);
        assert_eq!(output.peek_memory(0).as_ptr(), memory);
        assert_eq!(names.map(|name| count(&rig, name)), before);
        // Padding is as it was.
        assert_eq!(read(&output), expected.bytes);
    }
    // Of a frame that a branch of a tee has too, or of a part of memory, the original stays.
    let input = noise(Format::Rgb, HIGH, PLAIN);
    let wanted = corrected(&input, &field(&white, None, false));
    let buffer = buffer_of(&input, &device);
    let part = buffer
        .copy_region(gst::BufferCopyFlags::MEMORY, ..)
        .unwrap();
    for (kept, sent) in [(buffer.clone(), buffer.clone()), (buffer, part)] {
        let output = rig.pass(sent);
        assert_shows(&output, &wanted);
        assert_eq!(read(&kept), input.bytes);
    }
}

#[test]
fn flat_field_tells_of_a_missing_file_and_of_a_stream_too_short_for_a_reference() {
    let Some(device) = start() else { return };
    let white = shade(Format::Gray8, SIZE, [90, 240]);
    let line = "clflatfield average-frames=3 location=no-such.npz";
    let mut rig = Rig::new(line, &caps_of(&white));
    rig.pass(buffer_of(&white, &device));
    let missing = rig.warnings();
    assert_eq!(missing.len(), 1, "{missing:?}");
    let words = "the file no-such.npz does not exist";
    assert!(missing[0].text.contains(words), "{missing:?}");
    let element = rig.only("clflatfield");
    element.emit_by_name::<()>("take-white", &[]);
    rig.pass(buffer_of(&white, &device));
    assert!(rig.harness().push_event(gst::event::Eos::new()));
    let short = rig.warnings();
    assert_eq!(short.len(), 1, "{short:?}");
    let words = "after 1 of 3 frames of the white reference";
    assert!(short[0].text.contains(words), "{short:?}");
}

#[test]
fn flat_field_refuses_references_that_cannot_be_right_and_keeps_the_one_before() {
    let Some(device) = start() else { return };
    let white = shade(Format::Gray8, SIZE, [90, 240]);
    let mut rig = Rig::new("clflatfield average-frames=2", &caps_of(&white));
    let text = refused(&mut rig, "white", &constant(SIZE, 3), &device);
    assert!(
        text.contains("there is none") && text.contains("turn the lamp on"),
        "{text}"
    );
    // Still without a reference, and this is told once.
    rig.pass(buffer_of(&white, &device));
    assert!(rig.warnings()[0].text.contains("no white reference"));
    let dark = shade(Format::Gray8, SIZE, [10, 20]);
    take(&mut rig, "dark", &dark, &device);
    take(&mut rig, "white", &white, &device);
    let input = noise(Format::Gray8, SIZE, PLAIN);
    let wanted = corrected(&input, &field(&white, Some(&dark), false));
    let mut bright = white.clone();
    // 5 of 407 samples are 1.2 %.
    for byte in bright.bytes.iter_mut().take(5) {
        *byte = 255;
    }
    for (kind, frame, words) in [
        ("white", &bright, "saturated"),
        ("white", &constant(SIZE, 5), "darker than the dark"),
        ("white", &constant(SIZE, 19), "turn the lamp on"),
        ("dark", &constant(SIZE, 250), "darker than the dark"),
        ("dark", &constant(SIZE, 235), "darker than the dark"),
    ] {
        let text = refused(&mut rig, kind, frame, &device);
        assert!(
            text.contains(words) && text.contains("stays in force"),
            "{text}"
        );
        assert!(
            text.contains(&format!("the {kind} reference was not taken")),
            "{text}"
        );
        assert_shows(&rig.pass(buffer_of(&input, &device)), &wanted);
    }
    // Less than 1 %.
    bright.bytes[0] = 200;
    take(&mut rig, "white", &bright, &device);
}

#[test]
fn flat_field_frames_that_change_while_averaging_end_the_average() {
    let Some(device) = start() else { return };
    let white = shade(Format::Gray8, SIZE, [90, 240]);
    let mut rig = Rig::new("clflatfield average-frames=3", &caps_of(&white));
    take(&mut rig, "white", &white, &device);
    rig.only("clflatfield")
        .emit_by_name::<()>("take-white", &[]);
    rig.pass(buffer_of(&white, &device));
    let other = shade(Format::Gray8, [40, 5], [90, 240]);
    rig.renegotiate(&caps_of(&other));
    let frames: Vec<gst::Buffer> = (0..4)
        .map(|_| rig.pass(buffer_of(&other, &device)))
        .collect();
    assert!(frames.iter().all(|frame| read(frame) == other.bytes));
    let warnings = rig.warnings();
    let texts: Vec<&str> = warnings.iter().map(|w| w.text.as_str()).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].contains("from 37x11 to 40x5"), "{texts:?}");
    assert!(texts[1].contains("another size"), "{texts:?}");
    // The reference is in force again for frames of its size.
    rig.renegotiate(&caps_of(&white));
    let input = noise(Format::Gray8, SIZE, PLAIN);
    let wanted = corrected(&input, &field(&white, None, false));
    assert_shows(&rig.pass(buffer_of(&input, &device)), &wanted);
    assert!(rig.warnings().is_empty() && rig.errors().is_empty());
}

#[test]
fn flat_field_file_keeps_the_references_over_a_restart() {
    let Some(device) = start() else { return };
    for format in [Format::Gray16Be, Format::Bgrx] {
        let folder = Folder::new(format.to_str());
        let (white, dark) = (shade(format, SIZE, [90, 240]), shade(format, SIZE, [0, 40]));
        let expected = field(&white, Some(&dark), false);
        let mut rig = Rig::new(&folder.line(), &caps_of(&white));
        take(&mut rig, "dark", &dark, &device);
        take(&mut rig, "white", &white, &device);
        drop(rig);
        let file = ModelFile::open(&folder.file()).unwrap();
        let found = if format == Format::Bgrx {
            let array = file.array::<3>("white").unwrap();
            assert_eq!(array.shape, [11, 37, 3]);
            // Red, green and blue, whatever the order in memory.
            (0..3)
                .map(|c| array.samples.iter().skip(c).step_by(3).copied().collect())
                .collect()
        } else {
            let array = file.array::<2>("white").unwrap();
            assert_eq!(array.shape, [11, 37]);
            vec![array.samples]
        };
        assert_eq!(found, expected.white);
        let mut rig = Rig::new(&folder.line(), &caps_of(&white));
        let input = noise(format, SIZE, PLAIN);
        assert_shows(
            &rig.pass(buffer_of(&input, &device)),
            &corrected(&input, &expected),
        );
        assert!(rig.warnings().is_empty());
        // One of another size is refused, with both sizes.
        let other = shade(format, [40, 5], [90, 240]);
        let mut rig = Rig::new(&folder.line(), &caps_of(&other));
        let output = rig.pass(buffer_of(&other, &device));
        assert_eq!(read(&output), other.bytes);
        let warnings = rig.warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let text = &warnings[0].text;
        assert!(
            text.contains("[11, 37") && text.contains("[5, 40"),
            "{text}"
        );
    }
}

#[test]
fn flat_field_files_that_are_hostile_or_useless_are_refused_with_a_sentence() {
    let Some(device) = start() else { return };
    let folder = Folder::new("hostile");
    let white = shade(Format::Gray8, SIZE, [90, 240]);
    let u32s = |value: u32| npz::u32_npy("(11, 37)", &[value; 407]);
    let files: [(Vec<u8>, &str); 7] = [
        (b"no archive".to_vec(), "line-1.npz"),
        (npz::archive(&[("other.npy", u32s(9))], true), "neither"),
        (npz::archive(&[("white.npy", u32s(65_281))], true), "65281"),
        (
            npz::archive(&[("white.npy", u32s(100))], true),
            "turn the lamp on",
        ),
        (
            npz::archive(
                &[("white.npy", u32s(9000)), ("dark.npy", u32s(9001))],
                false,
            ),
            "darker",
        ),
        (
            npz::archive(
                &[("white.npy", npz::u32_npy("(407,)", &[9000; 407]))],
                false,
            ),
            "dimension",
        ),
        (
            npz::archive(
                &[("white.npy", npz::u32_npy("(11, 9223372036854775807)", &[1]))],
                true,
            ),
            "line-1.npz",
        ),
    ];
    for (bytes, words) in files {
        std::fs::write(folder.file(), bytes).unwrap();
        let mut rig = Rig::new(&folder.line(), &caps_of(&white));
        let output = rig.pass(buffer_of(&white, &device));
        assert_eq!(read(&output), white.bytes);
        let warnings = rig.warnings();
        assert_eq!(warnings.len(), 1, "{words}: {warnings:?}");
        assert!(warnings[0].text.contains(words), "{words}: {warnings:?}");
        // A new reference replaces the file.
        take(&mut rig, "white", &white, &device);
        assert!(ModelFile::open(&folder.file()).is_ok_and(|file| file.has("white")));
    }
}

#[test]
fn flat_field_file_that_cannot_be_written_keeps_the_reference_before() {
    let Some(device) = start() else { return };
    let folder = Folder::new("unwritable");
    let white = shade(Format::Gray8, SIZE, [90, 240]);
    let samples = &field(&white, None, false).white[0];
    let array = ArrayRef {
        name: "white",
        shape: &[11, 37],
        samples,
    };
    clinspect_models::write(&folder.file(), &[array]).unwrap();
    let mut rig = Rig::new(&folder.line(), &caps_of(&white));
    let input = noise(Format::Gray8, SIZE, PLAIN);
    let wanted = corrected(&input, &field(&white, None, false));
    assert_shows(&rig.pass(buffer_of(&input, &device)), &wanted);
    std::fs::remove_dir_all(&folder.0).unwrap();
    let text = refused(
        &mut rig,
        "white",
        &shade(Format::Gray8, SIZE, [50, 60]),
        &device,
    );
    assert!(
        text.contains("stays in force") && text.contains("line-1.npz"),
        "{text}"
    );
    assert_shows(&rig.pass(buffer_of(&input, &device)), &wanted);
}

#[test]
fn flat_field_settings_change_the_next_frames_or_are_put_back() {
    let Some(device) = start() else { return };
    let white = shade(Format::Gray8, SIZE, [90, 240]);
    let mut rig = Rig::new("clflatfield average-frames=1", &caps_of(&white));
    take(&mut rig, "white", &white, &device);
    let element = rig.only("clflatfield");
    let input = noise(Format::Gray8, SIZE, PLAIN);
    let mut wanted = field(&white, None, false);
    for (target, min_range) in [(0.0, 120.0), (99.25, 8.0), (300.0, 60.0)] {
        element.set_property("target", target);
        element.set_property("min-range", min_range);
        (wanted.target, wanted.min_range) = ((256.0 * target) as u32, (256.0 * min_range) as u32);
        let output = rig.pass(buffer_of(&input, &device));
        assert_shows(&output, &corrected(&input, &wanted));
    }
    assert!(rig.warnings().is_empty());
    element.set_property("min-range", 200.0);
    let output = rig.pass(buffer_of(&input, &device));
    assert_shows(&output, &corrected(&input, &wanted));
    let warnings = rig.warnings();
    assert!(
        warnings.len() == 1 && warnings[0].text.contains("min-range=200"),
        "{warnings:?}"
    );
    assert_eq!(element.property::<f64>("min-range"), 60.0);
}

/// Strips of a web are corrected by the column, and the web is smoothed as one.
#[test]
fn flat_field_of_lines_before_a_web_equals_the_web_in_one_piece() {
    let Some(device) = start() else { return };
    let rows = [7, 10, 12];
    let whole = noise(Format::Gray8, [45, 840], PLAIN);
    let white = shade(Format::Gray8, [45, 840], [90, 240]);
    // The reference of a strip is the same for every height, as rows are equal.
    let level = |x: usize| 90 + (7 * x % 50) as u8;
    let even = |height: usize| {
        let mut frame = white.clone();
        frame = Frame::poisoned(frame.info.format(), [45, height], PLAIN, 0);
        let geometry = frame.geometry(0);
        for y in 0..height {
            for x in 0..45 {
                put(&mut frame.bytes, &geometry, x, y, level(x).into());
            }
        }
        frame
    };
    let field = field(&even(2), None, true);
    let mut expected = Frame::poisoned(Format::Gray8, [45, 840], PLAIN, 0);
    expected.set(&[field.correct(0, whole.component(0))], &whole);
    for height in rows {
        let line =
            "clflatfield mode=line average-frames=2 ! clgaussian kernel-size=5 line-scan=true";
        let strip = even(height);
        let mut rig = Rig::new(line, &caps_of(&strip));
        rig.only("clflatfield")
            .emit_by_name::<()>("take-white", &[]);
        for offset in 0..2 {
            let mut buffer = buffer_of(&strip, &device);
            buffer.make_mut().set_offset(offset);
            rig.push(buffer).unwrap();
        }
        assert_eq!(rig.told("clflatfield-reference").len(), 1);
        let stride = whole.geometry(0).stride;
        for (n, part) in whole.bytes.chunks(stride * height).enumerate() {
            let mut frame = Frame::poisoned(Format::Gray8, [45, height], PLAIN, 0);
            frame.bytes.copy_from_slice(part);
            let mut buffer = buffer_of(&frame, &device);
            // A gap in the offsets begins another web.
            buffer.make_mut().set_offset(100 + n as u64);
            rig.push(buffer).unwrap();
        }
        rig.harness().push_event(gst::event::Eos::new());
        let mut found: Vec<u8> = Vec::new();
        while let Some(output) = rig.harness().try_pull() {
            found.extend(read(&output));
        }
        let smoothed = gst::Buffer::from_slice(found.split_off(2 * stride * height));
        assert_smoothed(&expected, &smoothed, 5, 0.0);
    }
}

#[test]
fn flat_field_reads_images_too() {
    let Some(device) = start() else { return };
    let white = shade(Format::Rgb, SIZE, [90, 240]);
    let mut rig = Rig::new(
        "clflatfield average-frames=1 memory-object=image",
        &caps_of(&white),
    );
    take(&mut rig, "white", &white, &device);
    let input = Frame::showing(Format::Rgb, SIZE, PADDED, Content::Natural, 0);
    let output = rig.pass(buffer_of(&input, &device));
    let mut expected = input.clone();
    let field = field(&white, None, false);
    let values: Vec<Vec<u32>> = (0..3)
        .map(|c| field.correct(c, input.component(c)))
        .collect();
    expected.set(&values, &input);
    assert_eq!(read(&output), expected.bytes);
}

/// A frame that is shorter than its caps is an error, also while frames pass unchanged.
#[test]
fn flat_field_short_frames_are_refused() {
    let Some(device) = start() else { return };
    let frame = noise(
        Format::Gray8,
        SIZE,
        Arrangement {
            owner: Owner::Foreign,
            ..PLAIN
        },
    );
    let mut rig = Rig::new("clflatfield", &caps_of(&frame));
    let mut short = buffer_of(&frame, &device);
    short.make_mut().set_size(100);
    assert_eq!(rig.push(short), Err(gst::FlowError::Error));
    assert!(rig.errors()[0].text.contains("100 bytes"));
}
