//! `mean-level` and the visibility of defects that follows from it.

use gst_video::VideoFormat as Format;
use gstclinspect::results::{Defect, DefectResult, semu};

use crate::{
    frames::{Frame, PADDED},
    oracle::{SampleKind, put},
    support::{Rig, buffer_of, caps_of, start},
};

/// Whole tiles of 16x16 pixels, so that none overlaps another.
const SIZE: [usize; 2] = [160, 96];
/// Pixels of 0.125 mm² and tiles of two pitches, whose deviation is 40.
const LINE: &str = "clpitchthreshold pitch-x=8 pitch-y=8 scales=0 edge-margin=0 \
                    reports=reports,interval=0,message-defects=true mm-per-pixel=<0.5,0.25>";

/// A chessboard with a spot of 4x2 pixels that is 40 brighter; without light in `dark` tiles from the left
/// and the top. Samples of more than 8 bits also have lower bits.
fn board(format: Format, bits: u32, dark: [usize; 2]) -> Frame {
    let mut frame = Frame::poisoned(format, SIZE, PADDED, 0);
    let geometry = frame.geometry(0);
    for y in 0..SIZE[1] {
        for x in 0..SIZE[0] {
            let is_dark = x < 16 * dark[0] && y < 16 * dark[1];
            let level = eight_bits(x, y, is_dark);
            let sample = (level << (bits - 8)) | ((1 << (bits - 8)) - 1);
            put(&mut frame.bytes, &geometry, x, y, sample);
        }
    }
    frame
}

fn eight_bits(x: usize, y: usize, is_dark: bool) -> u32 {
    let square = if (x / 4 + y / 4).is_multiple_of(2) {
        60
    } else {
        140
    };
    let spot = (100..104).contains(&x) && (60..62).contains(&y);
    if is_dark {
        7
    } else {
        square + if spot { 40 } else { 0 }
    }
}

/// The result for a frame, and its message.
fn judged(line: &str, frame: &Frame) -> (DefectResult, gst::Structure) {
    let device = start().expect("a device");
    let mut rig = Rig::new(line, &caps_of(frame));
    let output = rig.pass(buffer_of(frame, &device));
    let message = rig.told("clpitchthreshold").remove(0);
    (DefectResult::read(&output).remove(0), message)
}

#[test]
fn mean_level_is_that_of_the_frame_in_grey_levels_of_a_sample() {
    if start().is_none() {
        return;
    }
    for (format, bits) in [
        (Format::Gray8, 8),
        (Format::I420, 8),
        (Format::Gray16Le, 16),
        (Format::Gray16Be, 12),
    ] {
        let frame = board(format, bits, [0, 0]);
        assert_eq!(frame.kind() == SampleKind::U8, bits == 8);
        let scale = f64::from(1_u32 << (bits - 8));
        // The first frame shows the contrast, so the pattern is looked for in both cases.
        for contrast in ["min-contrast=20", "min-contrast=-1"] {
            let line = format!("{LINE} {contrast} threshold={}", 12.0 * scale);
            let line = if bits == 12 {
                format!("{line} bit-depth=12")
            } else {
                line
            };
            let (result, message) = judged(&line, &frame);
            // 8 pixels are 40 brighter than the board.
            let mean = 100.0 + 8.0 * 40.0 / (160.0 * 96.0);
            assert_eq!(result.mean_level, mean * scale, "{format:?} {contrast}");
            assert_eq!(message.get("mean-level"), Ok(result.mean_level));
            assert_eq!(result.defects.len(), 1);
            let spot = &result.defects[0];
            assert_eq!((spot.area, spot.mean_difference), (8, 40.0 * scale as f32));
            // 8 px are 1 mm², where 2.69 % are just noticed.
            let wanted = 100.0 * 40.0 / mean / 2.69;
            let found = result.semu(spot).expect("a visibility");
            assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
            let told = message.get::<gst::Array>("defects").unwrap();
            let told = told[0].get::<gst::Structure>().unwrap();
            assert_eq!(told.get("semu"), Ok(found));
        }
    }
}

#[test]
fn mean_level_leaves_out_tiles_without_the_pattern() {
    if start().is_none() {
        return;
    }
    let line = format!("{LINE} min-contrast=20");
    let (result, _) = judged(&line, &board(Format::Gray8, 8, [4, 2]));
    assert!(result.missing_pixels > 0);
    let tiles = 10.0 * 6.0 - 4.0 * 2.0;
    assert_eq!(result.mean_level, 100.0 + 8.0 * 40.0 / (256.0 * tiles));
    let (missing, stains): (Vec<_>, Vec<_>) =
        (result.defects.iter()).partition(|defect| defect.class == Defect::PATTERN_MISSING);
    assert!(!missing.is_empty() && !stains.is_empty(), "{result}");
    assert!(missing.iter().all(|defect| result.semu(defect).is_none()));
    for stain in stains {
        let contrast = 100.0 * f64::from(stain.mean_difference) / result.mean_level;
        let area = f64::from(stain.area) / 8.0;
        assert_eq!(result.semu(&stain), Some(semu(contrast, area)));
    }
}

#[test]
fn mean_level_is_unknown_without_size_of_a_pixel_search_or_defects() {
    if start().is_none() {
        return;
    }
    let spotted = board(Format::Gray8, 8, [0, 0]);
    for more in [
        "min-contrast=0",
        "min-contrast=20 mm-per-pixel=<0.5,0>",
        "min-contrast=20 mm-per-pixel=<0,0.25>",
        "min-contrast=20 threshold=50",
        "min-contrast=20 limits=limits,max-defects=0",
    ] {
        let (result, message) = judged(&format!("{LINE} {more}"), &spotted);
        assert_eq!(result.mean_level, 0.0, "{more}");
        for defect in message.get::<gst::Array>("defects").unwrap().iter() {
            let defect = defect.get::<gst::Structure>().unwrap();
            assert!(!defect.has_field("semu") && defect.has_field("level"));
        }
    }
    // All tiles lack the pattern.
    let line = format!("{LINE} min-contrast=60");
    let (result, _) = judged(&line, &spotted);
    assert_eq!((result.missing_pixels, result.mean_level), (160 * 96, 0.0));
}
