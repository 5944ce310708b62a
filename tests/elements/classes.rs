//! `classes`, and `classes` of `fail`: which defects count for the verdict, and rules that are refused.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    frames::{Frame, PLAIN},
    support::{Rig, buffer_of, caps_of, constant, feed, noise, start},
};

const LINE: &str = "clpitchthreshold PUBLISHED pitch-x=16 fail=fail,defect-area=0";
const RULES: &str = "scratch: width > 20; dot: area < 10 and mean > 0";

/// A grey frame with a bright dot of 4 pixels and, if `scratch`, a bright line of 30 pixels; the
/// comparison leaves ghosts of both.
fn frame(scratch: bool) -> Frame {
    let mut frame = constant([160, 40], 100);
    let mut paint = |x: usize, y: usize| frame.bytes[y * 160 + x] = 220;
    for (x, y) in [(50, 10), (51, 10), (50, 11), (51, 11)] {
        paint(x, y);
    }
    if scratch {
        (70..100).for_each(|x| paint(x, 30));
    }
    frame
}

fn verdict(output: &gst::Buffer) -> Verdict {
    DefectResult::read(output)[0].verdict
}

#[test]
fn only_named_classes_count_for_the_verdict() {
    let Some(device) = start() else { return };
    let line = format!("{LINE} polarity=bright classes=\"{RULES}\"");
    for (fail_classes, dot_fails, scratch_fails) in [
        ("", true, true),
        ("scratch", false, true),
        ("dot", true, true),
        ("other", false, false),
        ("other, dot", true, true),
    ] {
        let line =
            format!("{line} fail=\"fail,defect-area=0,classes=(string)\\\"{fail_classes}\\\"\"");
        for (scratch, fails) in [(false, dot_fails), (true, scratch_fails)] {
            let frame = frame(scratch);
            let mut rig = Rig::new(&line, &caps_of(&frame));
            let output = rig.pass(buffer_of(&frame, &device));
            let found = verdict(&output) == Verdict::Fail;
            assert_eq!(
                found,
                fails,
                "{fail_classes}, scratch {scratch}: {:?}",
                DefectResult::read(&output)
            );
        }
    }
}

/// A frame with a bright dot of 4x4 pixels, which pixels show, and, if `stained`, a square of 24x24 pixels that is 6
/// grey levels darker, which only means show.
fn stained(stained: bool) -> Frame {
    let mut frame = constant([320, 240], 100);
    let mut paint = |left: usize, top: usize, side: usize, level: u8| {
        for y in top..top + side {
            frame.bytes[320 * y + left..][..side].fill(level);
        }
    };
    paint(210, 90, 4, 160);
    if stained {
        paint(100, 130, 24, 94);
    }
    frame
}

/// How many defects of each class the structure counts.
fn counts(fields: &gst::StructureRef) -> Vec<(String, u32)> {
    let counts = fields.get::<gst::Structure>("class-counts").unwrap();
    let names = counts.fields().map(|name| name.to_string());
    names
        .map(|name| (name.clone(), counts.get(name).unwrap()))
        .collect()
}

#[test]
fn rules_may_ask_for_the_level_that_found_a_defect() {
    let Some(device) = start() else { return };
    let line = "clpitchthreshold pitch-x=40 pitch-y=40 multiples=<1> threshold=12 min-contrast=0 \
                reports=reports,interval=0,message-defects=true \
                classes=\"stain: level >= 1; dot: level < 1\" fail=fail,classes=stain";
    for (scales, is_stained, stains) in [(3, true, 1), (3, false, 0), (0, true, 0)] {
        let about = format!("scales={scales}, stained: {is_stained}");
        let frame = stained(is_stained);
        let mut rig = Rig::new(&format!("{line} scales={scales}"), &caps_of(&frame));
        let output = rig.pass(buffer_of(&frame, &device));
        let result = DefectResult::read(&output).remove(0);
        let found: Vec<(&str, bool)> = (result.defects.iter())
            .map(|defect| (result.class_name(defect.class), defect.level() > 0))
            .collect();
        // Larger defects come first.
        let wanted = [("stain", true), ("dot", false)];
        assert_eq!(found, wanted[1 - stains..], "{about}: {result}");
        let verdict = if stains > 0 {
            Verdict::Fail
        } else {
            Verdict::Pass
        };
        assert_eq!(result.verdict, verdict, "{about}");

        let told = rig.told("clpitchthreshold").remove(0);
        let stats: gst::Structure = rig.only("clpitchthreshold").property("stats");
        let wanted = [
            ("other", 0),
            ("stain", stains as u32),
            ("dot", 1),
            ("pattern-missing", 0),
        ]
        .map(|(name, count)| (name.to_string(), count));
        assert_eq!(counts(&told), wanted, "{about}");
        let counted: u64 = (stats
            .get::<gst::Structure>("class-counts")
            .unwrap()
            .get("stain"))
        .unwrap();
        assert_eq!(counted, stains as u64, "{about}");
        let defects = told.get::<gst::Array>("defects").unwrap();
        for (value, defect) in defects.iter().zip(&result.defects) {
            let fields = value.get::<gst::Structure>().unwrap();
            assert_eq!(fields.get("level"), Ok(u32::from(defect.level())));
            assert_eq!(
                fields.get("class-name"),
                Ok(result.class_name(defect.class))
            );
        }
    }
}

#[test]
fn rules_follow_the_properties_and_refused_ones_go_back() {
    let Some(device) = start() else { return };
    let frame = frame(false);
    let mut rig = Rig::new(&format!("{LINE} polarity=bright"), &caps_of(&frame));
    let element = rig.only("clpitchthreshold");
    assert_eq!(
        verdict(&rig.pass(buffer_of(&frame, &device))),
        Verdict::Fail
    );
    element.set_property("classes", RULES);
    element.set_property_from_str("fail", "fail, classes=scratch");
    assert_eq!(
        verdict(&rig.pass(buffer_of(&frame, &device))),
        Verdict::Pass
    );
    for (name, value, words) in [
        (
            "classes",
            "scratch: widht > 20",
            ["rule 1, column 10", "\"widht\" is no feature"],
        ),
        (
            "classes",
            "dot: area < 10",
            ["fail: classes", "\"scratch\""],
        ),
        (
            "fail",
            "fail, classes=\"scratch,burr\"",
            ["fail: classes", "\"burr\""],
        ),
        (
            "fail",
            "fail, defect-count=no",
            ["fail: defect-count: false is not", "-1 or more"],
        ),
    ] {
        let rules =
            || ["classes", "fail"].map(|name| format!("{:?}", element.property_value(name)));
        let before = rules();
        element.set_property_from_str(name, value);
        assert_eq!(
            verdict(&rig.pass(buffer_of(&frame, &device))),
            Verdict::Pass
        );
        let warnings = rig.warnings();
        assert_eq!(warnings.len(), 1, "{value}: {warnings:?}");
        for word in words {
            assert!(
                warnings[0].text.contains(word),
                "{} lacks {word}",
                warnings[0].text
            );
        }
        assert_eq!(rules(), before, "{value}");
    }
    assert_eq!(
        verdict(&rig.pass(buffer_of(&frame, &device))),
        Verdict::Pass
    );
    assert!(rig.warnings().is_empty());
}

#[test]
fn rules_that_cannot_be_read_are_refused_at_the_start() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, [160, 40], PLAIN);
    for (properties, words) in [
        (
            "classes=\"a: area <\"",
            ["classes: rule 1, column 10", "a number"],
        ),
        ("fail=fail,classes=a", ["fail: classes", "\"a\""]),
    ] {
        let line = format!("{LINE} {properties}");
        let fate = feed(&line, &caps_of(&frame), vec![buffer_of(&frame, &device)]);
        assert_eq!((fate.received, fate.errors.len()), (0, 1), "{line}");
        for word in words {
            assert!(
                fate.errors[0].text.contains(word),
                "{} lacks {word}",
                fate.errors[0].text
            );
        }
    }
}
