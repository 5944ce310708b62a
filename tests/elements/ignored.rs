//! The property `ignore`: pixels that are not judged, and files that are refused.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::DefectResult;

use crate::{
    device,
    frames::{Frame, PLAIN, read},
    oracle::{
        ignore::ignored,
        pitch_threshold::{self, Outcome, compare, pack},
    },
    panels::recommended,
    support::{Rig, buffer_of, caps_of, feed, noise, pitch_threshold_settings, start},
};

const SIZE: [usize; 2] = [45, 18];
const LINE: &str = "clpitchthreshold PUBLISHED pitch-x=4 pitch-y=3";

/// A file that is removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(bytes: &[u8]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "clinspect-ignored-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::write(&path, bytes).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn png(image: impl Into<image::DynamicImage>) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let image = image.into();
    image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// Level of the ignored pixels: a blob, a column and the last pixel.
fn level(x: usize, y: usize) -> u8 {
    let blob = (10..21).contains(&x) && (4..9).contains(&y);
    let is_ignored = blob || x == 30 || (x, y) == (SIZE[0] - 1, SIZE[1] - 1);
    // 1 is not 0, however dark.
    u8::from(is_ignored) * (1 + (x % 3) as u8 * 100)
}

fn pixels<T>(sample: impl Fn(u8) -> T) -> Vec<T> {
    let [width, height] = SIZE;
    let rows = (0..height).flat_map(|y| (0..width).map(move |x| level(x, y)));
    rows.map(sample).collect()
}

/// The mask as a file in each format.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let [width, height] = SIZE;
    let (w, h) = (width as u32, height as u32);
    let grey = image::GrayImage::from_raw(w, h, pixels(|v| v)).unwrap();
    // The chunk eXIf with orientation 3 behind the head: upside down in the file.
    let mut turned = png(image::imageops::rotate180(&grey));
    let exif = [
        &b"eXIfMM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x03"[..],
        &[0; 6],
    ];
    let exif = exif.concat();
    let len = (exif.len() as u32 - 4).to_be_bytes();
    let chunk = [&len[..], &exif, &crc(&exif).to_be_bytes()].concat();
    turned.splice(33..33, chunk);
    // Dark in 16 bits: the upper byte is 0.
    let deep =
        image::ImageBuffer::<image::Luma<u16>, _>::from_raw(w, h, pixels(u16::from)).unwrap();
    let color = image::RgbaImage::from_fn(w, h, |x, y| {
        image::Rgba([0, 0, level(x as usize, y as usize), (x * 5) as u8])
    });
    let ascii = |values: Vec<String>, between: &str| -> String {
        let rows = values.chunks(width).map(|row| row.join(between));
        rows.collect::<Vec<_>>().join("\n")
    };
    let bit = |v: u8| u8::from(v != 0).to_string();
    let p4 = pack(&pixels(|v| v != 0), width, height);
    let header = |kind: &str, rest: &str| format!("{kind}\n# a comment\n{width} {height}\n{rest}");
    let text = |head: String, body: String| format!("{head}{body}\n").into_bytes();
    let binary = |head: String, body: &[u8]| [head.as_bytes(), body].concat();
    vec![
        ("PNG that its Exif turns", turned),
        ("PNG, 8 bits", png(grey)),
        ("PNG, 16 bits", png(deep)),
        ("PNG, colours and alpha", png(color)),
        ("P1", text(header("P1", ""), ascii(pixels(bit), " "))),
        (
            "P1 without spaces",
            text(header("P1", ""), ascii(pixels(bit), "")),
        ),
        (
            "P2",
            text(header("P2", "255\n"), ascii(pixels(|v| v.to_string()), " ")),
        ),
        (
            "P2 with a byte order mark and CRLF",
            format!(
                "\u{feff}{}{}\n",
                header("P2", "255\n"),
                ascii(pixels(|v| v.to_string()), " ")
            )
            .replace('\n', "\r\n")
            .into_bytes(),
        ),
        ("P4", binary(header("P4", ""), &p4)),
        ("P5", binary(header("P5", "255\n"), &pixels(|v| v))),
        (
            "P5, 16 bits",
            binary(header("P5", "60000\n"), &pixels(|v| [0, v]).concat()),
        ),
    ]
}

fn settings() -> pitch_threshold::Settings {
    pitch_threshold_settings(4.0, 3.0, 10.0)
}

fn expected(frame: &Frame, ignored: Vec<bool>) -> Outcome {
    let settings = pitch_threshold::Settings {
        ignored,
        ..settings()
    };
    compare(frame.component(0), &settings)
}

#[track_caller]
fn assert_judged(output: &gst::Buffer, expected: &Outcome, about: &str) {
    let result = &DefectResult::read(output)[0];
    assert_eq!(result.judged_pixels, expected.judged_pixels, "{about}");
    assert_eq!(
        [result.judged_x, result.judged_y],
        expected.judged_along,
        "{about}"
    );
    assert_eq!(result.defect_pixels, expected.defect_pixels, "{about}");
    assert_eq!(result.missing_pixels, expected.missing_pixels, "{about}");
    assert!(read(output) == expected.packed, "{about}: the mask");
}

#[test]
fn mask_pictures_of_every_format_leave_the_same_pixels_out() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, SIZE, PLAIN);
    let expected = expected(&frame, pixels(|v| v != 0));
    for (kind, bytes) in files() {
        let file = Scratch::new(&bytes);
        let line = format!("{LINE} ignore=ignore,mask={}", file.path());
        let mut rig = Rig::new(&line, &caps_of(&frame));
        assert_judged(&rig.pass(buffer_of(&frame, &device)), &expected, kind);
        assert!(rig.warnings().is_empty(), "{kind}: {:?}", rig.warnings());
    }
}

#[test]
fn polygons_leave_their_pixels_out_in_every_form_of_the_mask() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, SIZE, PLAIN);
    let polygons = vec![
        vec![-3.0, -1.0, 2.5, -1.0, 2.5, 40.0, -3.0, 40.0],
        vec![12.25, 1.0, 40.5, 9.5, 14.0, 16.0, 20.0, 8.0],
    ];
    let expected = expected(&frame, ignored(&polygons, SIZE[0], 0, SIZE[1]));
    let regions =
        "ignore=ignore,regions=<<-3.0,-1,2.5,-1,2.5,40,-3,40>,<12.25,1.0,40.5,9.5,14,16,20,8>>";
    let mut rig = Rig::new(&format!("{LINE} {regions}"), &caps_of(&frame));
    assert_judged(&rig.pass(buffer_of(&frame, &device)), &expected, "packed");
    let grey = gst_video::VideoCapsBuilder::new()
        .format(Format::Gray8)
        .build();
    let mut rig = Rig::between(&format!("{LINE} {regions}"), &caps_of(&frame), &grey);
    let output = read(&rig.pass(buffer_of(&frame, &device)));
    let stride = output.len() / SIZE[1];
    for (row, expected) in output.chunks(stride).zip(expected.mask.chunks(SIZE[0])) {
        assert!(
            row.iter()
                .zip(expected)
                .all(|(&byte, &set)| (byte != 0) == set)
        );
    }
    let line = format!("{LINE} {regions} output=frame");
    let mut rig = Rig::new(&line, &caps_of(&frame));
    let result = DefectResult::read(&rig.pass(buffer_of(&frame, &device))).remove(0);
    assert!(result.mask.as_ref().map(read) == Some(expected.packed));
    assert!(
        result
            .defects
            .iter()
            .map(|d| u64::from(d.area))
            .sum::<u64>()
            <= expected.defect_pixels
    );
}

#[test]
fn ignored_tiles_without_the_pattern_are_not_marked() {
    let Some(device) = start() else { return };
    let size = [256, 128];
    let mut frame = noise(Format::Gray8, size, PLAIN);
    // The right half lacks the pattern.
    for row in frame.bytes.chunks_mut(size[0]) {
        row[128..].fill(20);
    }
    let line = "clpitchthreshold pitch-x=16 pitch-y=16 min-contrast=30 threshold=200";
    for right in [128.0, 200.5, 256.0] {
        let polygons = vec![vec![120.0, 0.0, right, 0.0, right, 128.0, 120.0, 128.0]];
        let settings = pitch_threshold::Settings {
            pitch_x: 16.0,
            pitch_y: 16.0,
            min_contrast: 30.0,
            ignored: ignored(&polygons, size[0], 0, size[1]),
            ..recommended(200.0)
        };
        let expected = compare(frame.component(0), &settings);
        assert_eq!(expected.missing_pixels == 0, right == 256.0);
        let line =
            format!("{line} ignore=ignore,regions=<<120.0,0,{right},0,{right},128,120,128>>");
        let mut rig = Rig::new(&line, &caps_of(&frame));
        assert_judged(&rig.pass(buffer_of(&frame, &device)), &expected, &line);
    }
}

fn masked_by(path: &str) -> String {
    format!("ignore, mask={path}")
}

#[test]
fn ignored_pixels_follow_the_properties_and_refused_ones_go_back() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, SIZE, PLAIN);
    let mut rig = Rig::new(LINE, &caps_of(&frame));
    let element = rig.only("clpitchthreshold");
    let all = expected(&frame, Vec::new());
    assert_judged(
        &rig.pass(buffer_of(&frame, &device)),
        &all,
        "nothing ignored",
    );
    let file = Scratch::new(&files()[0].1);
    element.set_property_from_str("ignore", &masked_by(file.path()));
    let masked = expected(&frame, pixels(|v| v != 0));
    assert_judged(&rig.pass(buffer_of(&frame, &device)), &masked, "a picture");
    for (value, words) in [
        (
            "ignore, mask=/nowhere/mask.png",
            ["ignore: mask", "/nowhere/mask.png"],
        ),
        (
            "ignore, regions=<<0,0,1,1>>",
            ["ignore: regions", "at least three points"],
        ),
        (
            "ignore, regions=<<0,0,1,one>>",
            ["ignore: regions", "is not a number"],
        ),
        ("ignore, mask=<0>", ["ignore: mask", "is not a text"]),
        ("ignore, region=<0>", ["\"region\"", "mask, regions"]),
    ] {
        let before = format!("{:?}", element.property_value("ignore"));
        element.set_property_from_str("ignore", value);
        assert_judged(&rig.pass(buffer_of(&frame, &device)), &masked, value);
        let warnings = rig.warnings();
        assert_eq!(warnings.len(), 1, "{value}: {warnings:?}");
        let text = &warnings[0].text;
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
        assert_eq!(format!("{:?}", element.property_value("ignore")), before);
    }
    element.set_property_from_str("ignore", "ignore");
    let output = rig.pass(buffer_of(&frame, &device));
    assert_judged(&output, &all, "nothing ignored again");
    // The file is read again at new caps, when it may hold another picture.
    element.set_property_from_str("ignore", &masked_by(file.path()));
    fs::write(&file.0, b"P5 3 1 255\n\xff\0\0").unwrap();
    let small = noise(Format::Gray8, [47, 18], PLAIN);
    let pushed = {
        rig.renegotiate(&caps_of(&small));
        rig.push(buffer_of(&small, &device))
    };
    assert!(pushed.is_err());
    let errors = rig.errors();
    let said = |word: &str| errors.iter().any(|e| e.text.contains(word));
    assert!(said("3x1") && said("47x18"), "{errors:?}");
}

/// Asserts that a frame is refused with one error that contains every word.
#[track_caller]
fn assert_refused(properties: &str, words: &[&str]) {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, SIZE, PLAIN);
    let line = format!("{LINE} {properties}");
    let fate = feed(&line, &caps_of(&frame), vec![buffer_of(&frame, &device)]);
    assert_eq!(fate.received, 0, "{line}");
    assert_eq!(fate.errors.len(), 1, "{line}: {:?}", fate.errors);
    for word in words {
        let text = &fate.errors[0].text;
        assert!(text.contains(word), "{line}: \"{text}\" lacks {word}");
    }
}

#[test]
fn pictures_that_cannot_be_used_are_refused_with_a_sentence() {
    let file = |bytes: &[u8], words: &[&str]| {
        let file = Scratch::new(bytes);
        let words = [words, &["ignore: mask", file.path()]].concat();
        assert_refused(&format!("ignore=ignore,mask={}", file.path()), &words);
    };
    let reading = "cannot be read";
    assert_refused(
        "ignore=ignore,mask=/nowhere/mask.png",
        &["/nowhere/mask.png", reading, "No such file"],
    );
    assert_refused(
        "ignore=ignore,mask=/dev/zero",
        &["/dev/zero", reading, "not a file"],
    );
    file(b"", &[reading]);
    file(b"GIF89a", &[reading, "PNG, PBM or PGM"]);
    file(b"P5 45 18 255\n\0\0\0", &[reading]);
    let mut cut = files()[0].1.clone();
    cut.truncate(60);
    file(&cut, &[reading]);
    // Small files of large pictures.
    file(
        b"P5 60000 60000 255\n",
        &[reading, "60000x60000", "256 MiB"],
    );
    file(b"P4 4294967295 4294967295\n", &[reading]);
    let mut bomb = png(image::GrayImage::new(45, 18));
    bomb[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
    let crc = crc(&bomb[12..29]).to_be_bytes();
    bomb[29..33].copy_from_slice(&crc);
    file(&bomb, &[reading]);
    let other = Scratch::new(
        b"P5 18 45 255\n"
            .iter()
            .chain(&[0; 810])
            .copied()
            .collect::<Vec<_>>()
            .as_slice(),
    );
    assert_refused(
        &format!("ignore=ignore,mask={}", other.path()),
        &["ignore: mask", "18x45", "the frames have 45x18"],
    );
}

/// The check sum of a PNG chunk.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(!0, step)
}

#[test]
fn polygons_that_cannot_be_used_are_refused_with_a_sentence() {
    assert_refused(
        "ignore=ignore,regions=<<0.0,0.0,1.0,1.0>>",
        &[
            "ignore: regions",
            "polygon 1",
            "4 numbers",
            "at least three points",
        ],
    );
    assert_refused(
        "ignore=ignore,regions=<<0.0,0.0,9.0,0.0,9.0,9.0>,<0.0,0.0,9.0,0.0,9.0,9.0,1.0>>",
        &["ignore: regions", "polygon 2", "7 numbers"],
    );
    assert_refused(
        "ignore=ignore,regions=<<0.0,0.0,9e99,0.0,9.0,9.0>>",
        &["ignore: regions", "polygon 1", "2^45"],
    );
    // Nothing remains.
    assert_refused(
        "ignore=ignore,regions=<<-1.0,-1.0,100.0,-1.0,100.0,100.0,-1.0,100.0>>",
        &["pitch-x", "mask and regions of ignore", "leave pixels"],
    );
}

#[test]
fn a_pipe_as_a_mask_is_refused_and_does_not_block() {
    let path = std::env::temp_dir().join(format!("clinspect-pipe-{}", std::process::id()));
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        device::skip("a pipe as a mask", "mkfifo cannot make one");
        return;
    }
    assert_refused(
        &format!("ignore=ignore,mask={}", path.display()),
        &["not a file"],
    );
    let _ = fs::remove_file(Path::new(&path));
}
