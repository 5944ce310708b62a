//! `clreference` with `align=affine` and `align=local`, and with `opening`: frames of good parts, and frames that fit no model.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::Verdict;

use crate::{
    frames::{Frame, PLAIN, read},
    oracle::put,
    reference_picture::{
        SIZE, assert_mask_in_boxes, frame_of, level, noisy, result, trained_rig, with_defect,
    },
    support::{Rig, buffer_of, caps_of, start},
};

const ALIGNMENTS: [&str; 3] = ["translation", "affine", "local"];

fn with(line: &str, align: &str) -> String {
    format!("align={align} search-range=8 {line}")
}

/// A frame that shows `value` at each pixel.
fn picture(value: impl Fn(i64, i64) -> u32) -> Frame {
    frame_of(Format::Gray8, [0, 0], |x, y, _| value(x, y))
}

#[test]
fn good_frames_pass_and_a_misprint_is_marked_where_it_is_under_every_alignment() {
    let Some(device) = start() else { return };
    for align in ALIGNMENTS {
        let (mut rig, _) = trained_rig(&with("", align), Format::Gray8, &device);
        let passed = frame_of(Format::Gray8, [0, 0], noisy(9));
        let passed = result(&rig.pass(buffer_of(&passed, &device)));
        assert_eq!(passed.verdict, Verdict::Pass, "{align}: {passed:?}");
        let alignment = passed.alignment.expect("an alignment");
        assert!(alignment.matched, "{align}: {alignment:?}");
        assert!(alignment.shift_x.abs() < 0.3 && alignment.shift_y.abs() < 0.3);
        let output = rig.pass(buffer_of(
            &frame_of(Format::Gray8, [0, 0], with_defect),
            &device,
        ));
        let found = result(&output);
        assert_eq!(found.verdict, Verdict::Fail, "{align}: {found:?}");
        let defect = &found.defects[0];
        assert!(
            (39..47).contains(&defect.x) && (59..64).contains(&defect.y),
            "{align}: {defect:?}"
        );
        assert_mask_in_boxes(&found, &read(&output));
    }
}

#[test]
fn frames_that_fit_no_model_fail_under_every_alignment() {
    let Some(device) = start() else { return };
    let [width, height] = SIZE.map(|side| side as i64);
    let random = |x: i64, y: i64| crate::content::random(3, 0, x as usize, y as usize) % 256;
    let frames = [
        ("no edges", picture(|_, _| 128)),
        (
            "edges along one axis",
            picture(|_, y| 40 + 20 * (y as u32 % 9)),
        ),
        ("another object", picture(|x, y| level(x + 5000, y - 3000))),
        ("noise", picture(random)),
        (
            "half a part",
            picture(|x, y| if x < width / 2 { level(x, y) } else { 20 }),
        ),
        ("a mirrored part", picture(|x, y| level(width - 1 - x, y))),
        (
            "a part that is upside down",
            picture(|x, y| level(width - 1 - x, height - 1 - y)),
        ),
    ];
    for align in ALIGNMENTS {
        let (mut rig, _) = trained_rig(&with("", align), Format::Gray8, &device);
        for (what, frame) in &frames {
            let output = rig.pass(buffer_of(frame, &device));
            let found = result(&output);
            assert_eq!(found.verdict, Verdict::Fail, "{align}, {what}: {found:?}");
            let alignment = found.alignment.expect("an alignment");
            assert!(
                (0.0..=1.0).contains(&alignment.match_score),
                "{alignment:?}"
            );
            assert!(alignment.shift_x.is_finite() && alignment.shift_y.is_finite());
            if alignment.matched {
                assert!(found.overflow || found.defect_pixels > 0, "{align}, {what}");
            } else {
                assert_eq!((found.judged_pixels, found.defect_pixels), (0, 0));
            }
            if !found.overflow && found.defects.len() < 100 {
                assert_mask_in_boxes(&found, &read(&output));
            }
        }
        // A good frame passes after all of them.
        let good = frame_of(Format::Gray8, [0, 0], noisy(9));
        let passed = result(&rig.pass(buffer_of(&good, &device)));
        assert_eq!(passed.verdict, Verdict::Pass, "{align}");
        assert!(rig.warnings().is_empty());
    }
}

#[test]
fn training_with_frames_without_edges_lets_nothing_pass() {
    let Some(device) = start() else { return };
    for align in ALIGNMENTS {
        let frame = picture(|_, _| 128);
        let line = format!("clreference train-frames=1 {}", with("", align));
        let mut rig = Rig::new(&line, &caps_of(&frame));
        for _ in 0..3 {
            let found = result(&rig.pass(buffer_of(&frame, &device)));
            assert_ne!(found.verdict, Verdict::Pass, "{align}");
        }
    }
}

#[test]
fn alignment_with_a_model_without_edges_is_refused_and_frames_go_on_as_before() {
    let Some(device) = start() else { return };
    let frame = picture(|_, _| 128);
    let mut rig = Rig::new("clreference train-frames=1", &caps_of(&frame));
    rig.pass(buffer_of(&frame, &device));
    rig.pass(buffer_of(&frame, &device));
    let element = rig.only("clreference");
    for align in ALIGNMENTS {
        element.set_property_from_str("align", align);
        let found = result(&rig.pass(buffer_of(&frame, &device)));
        assert_eq!(found.verdict, Verdict::Pass, "{align}");
        let warnings = rig.warnings();
        assert_eq!(warnings.len(), 1, "{align}: {warnings:?}");
        let text = &warnings[0].text;
        assert!(text.contains("the model has too little contrast"), "{text}");
    }
}

#[test]
fn frames_too_small_to_be_turned_are_refused_with_what_to_do() {
    let Some(device) = start() else { return };
    let frame = Frame::poisoned(Format::Gray8, [80, 63], PLAIN, 0x80);
    let mut rig = Rig::new("clreference train-frames=1", &caps_of(&frame));
    rig.pass(buffer_of(&frame, &device));
    let element = rig.only("clreference");
    element.set_property_from_str("align", "affine");
    rig.pass(buffer_of(&frame, &device));
    let warnings = rig.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let text = &warnings[0].text;
    assert!(
        text.contains("80x63") && text.contains("set align="),
        "{text}"
    );
}

#[test]
fn opening_leaves_out_thin_marks_and_keeps_spots() {
    let Some(device) = start() else { return };
    for align in ["none", "affine"] {
        let (mut rig, _) = trained_rig(&with("opening=3", align), Format::Gray8, &device);
        let change = |is_marked: fn(i64, i64) -> bool| {
            frame_of(Format::Gray8, [0, 0], move |x, y, s| {
                if is_marked(x, y) { (s + 110) % 256 } else { s }
            })
        };
        let scratch = change(|x, y| (20..70).contains(&x) && (50..52).contains(&y));
        let found = result(&rig.pass(buffer_of(&scratch, &device)));
        assert_eq!(
            (found.verdict, found.defect_pixels),
            (Verdict::Pass, 0),
            "{align}"
        );
        let mut frame = scratch;
        let geometry = frame.geometry(0);
        for (x, y) in (100..103).flat_map(|x| (70..73).map(move |y| (x, y))) {
            put(
                &mut frame.bytes,
                &geometry,
                x,
                y,
                (level(x as i64, y as i64) + 110) % 256,
            );
        }
        let output = rig.pass(buffer_of(&frame, &device));
        let found = result(&output);
        assert_eq!((found.verdict, found.defects.len()), (Verdict::Fail, 1));
        let defect = &found.defects[0];
        assert_eq!((defect.x, defect.y, defect.area), (100, 70, 9), "{align}");
        assert_mask_in_boxes(&found, &read(&output));
    }
}
