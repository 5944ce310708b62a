//! The contrast of the pattern, which `learn` of `clpitchthreshold` learns with the limits.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    common::panel::PanelSpec,
    frames::{Frame, PLAIN},
    oracle::{
        pitch_threshold::{Settings, contrast},
        put,
    },
    panels::{Panels, recommended},
    reference_picture::Folder,
    support::{Rig, buffer_of, caps_of, start},
    webs::Web,
};

const ELEMENT: &str = "clpitchthreshold pitch-x=16 pitch-y=16 multiples=<1> threshold=60";
/// A limit that sees defects of faint patterns.
const SEEING: &str = "clpitchthreshold pitch-x=16 pitch-y=16 multiples=<1> threshold=15";

/// Good frames whose pattern has these shares of its contrast, percent.
fn frames<const N: usize>(shares: [u32; N]) -> [Frame; N] {
    let mut panels = Panels::new(PanelSpec {
        width: 320,
        height: 240,
        pitch_x: 16.0,
        pitch_y: 16.0,
        noise_sigma: 1.0,
        ..PanelSpec::default()
    });
    shares.map(|share| {
        let mut frame = panels.next(0);
        for sample in &mut frame.bytes {
            *sample = (100 - share + u32::from(*sample) * share / 100) as u8;
        }
        frame
    })
}

/// The contrast of a frame as the definition has it, in the units of a file.
fn defined(frame: &Frame) -> f64 {
    let settings = Settings {
        pitch_x: 16.0,
        pitch_y: 16.0,
        scales: 0,
        ..recommended(60.0)
    };
    let contrast = contrast(frame.component(0), &settings).expect("a pattern");
    (1024.0 * contrast).round() / 1024.0
}

/// The property that `learn` sets.
fn learned(rig: &Rig) -> Vec<f64> {
    let contrasts: gst::Array = rig.only("clpitchthreshold").property("contrasts");
    contrasts.iter().map(|of| of.get().unwrap()).collect()
}

fn in_force(rig: &Rig) -> f64 {
    let estimates: gst::Structure = rig.only("clpitchthreshold").property("estimates");
    estimates.get("contrast").unwrap()
}

#[test]
fn least_contrast_of_the_good_frames_is_learned_with_the_limits() {
    let Some(device) = start() else { return };
    let [full, faint, less, half_of_faint, black] = frames([100, 40, 80, 15, 0]);
    let folder = Folder::new("learned-contrast");
    let line = format!(
        "{ELEMENT} learn=\"learn,frames=3,location=(string){}\"",
        folder.0.join("limits.npz").display()
    );
    let mut rig = Rig::new(&line, &caps_of(&full));
    let judge = |rig: &mut Rig, frame: &Frame| {
        DefectResult::read(&rig.pass(buffer_of(frame, &device))).remove(0)
    };
    let element = rig.only("clpitchthreshold");
    element.emit_by_name::<()>("learn", &[]);
    for frame in [&full, &faint] {
        judge(&mut rig, frame);
    }
    // The last good frame, too, is judged by the contrast of the first one.
    assert_eq!(judge(&mut rig, &faint).verdict, Verdict::Fail);
    assert_eq!(in_force(&rig), defined(&faint));
    assert_eq!(learned(&rig), [defined(&faint)]);
    let told = rig.told("clpitchthreshold-learned").remove(0);
    let told: gst::Array = told.get("contrasts").unwrap();
    assert_eq!(told[0].get::<f64>(), Ok(defined(&faint)));
    for (frame, verdict) in [
        (&full, Verdict::Pass),
        (&faint, Verdict::Pass),
        (&less, Verdict::Pass),
        (&half_of_faint, Verdict::Fail),
        (&black, Verdict::Fail),
    ] {
        let result = judge(&mut rig, frame);
        assert_eq!(result.verdict, verdict);
        assert_eq!(result.missing_pixels > 0, verdict == Verdict::Fail);
    }
    let warnings = rig.warnings();
    assert!(warnings.is_empty(), "{warnings:?}");
    drop(rig);

    // Another start takes the contrast from the file, not from its first frame.
    let mut rig = Rig::new(&line, &caps_of(&full));
    let element = rig.only("clpitchthreshold");
    assert_eq!(in_force(&rig), defined(&faint));
    assert_eq!(learned(&rig), [defined(&faint)]);
    for (frame, verdict) in [(&black, Verdict::Fail), (&faint, Verdict::Pass)] {
        assert_eq!(judge(&mut rig, frame).verdict, verdict);
    }
    element.emit_by_name::<()>("take-contrast", &[]);
    assert!(learned(&rig).is_empty());
    assert_eq!(judge(&mut rig, &faint).verdict, Verdict::Pass);
    judge(&mut rig, &full);
    element.emit_by_name::<()>("take-contrast", &[]);
    judge(&mut rig, &full);
    assert_eq!(judge(&mut rig, &faint).verdict, Verdict::Fail);
    // Without the faint frames the contrast is that of the full one.
    for frame in [1_u64, 2] {
        element.emit_by_name::<()>("forget", &[&frame]);
    }
    judge(&mut rig, &less);
    assert_eq!(in_force(&rig), defined(&full));
    assert_eq!(judge(&mut rig, &faint).verdict, Verdict::Fail);
}

#[test]
fn contrast_is_not_learned_where_it_is_set_or_no_good_frame_shows_the_pattern() {
    let Some(device) = start() else { return };
    let [full, faint, black] = frames([100, 40, 0]);
    let learned = |line: &str, good: &Frame| {
        let mut rig = Rig::new(&format!("{line} learn=learn,frames=1"), &caps_of(&full));
        rig.pass(buffer_of(&full, &device));
        let before = in_force(&rig);
        rig.only("clpitchthreshold")
            .emit_by_name::<()>("learn", &[]);
        rig.pass(buffer_of(good, &device));
        assert_eq!(rig.told("clpitchthreshold-learned").len(), 1);
        rig.pass(buffer_of(&full, &device));
        (before, in_force(&rig))
    };
    let (before, after) = learned(ELEMENT, &black);
    assert!(before > 0.0);
    assert_eq!(after, before);
    assert_eq!(learned(ELEMENT, &faint).1, defined(&faint));
    let set = format!("{ELEMENT} min-contrast=5");
    assert_eq!(learned(&set, &faint), (0.0, 0.0));
}

#[test]
fn contrasts_that_are_set_are_in_force_from_the_first_frame_on() {
    let Some(device) = start() else { return };
    let [full, faint, half_of_faint, black] = frames([100, 40, 15, 0]);
    let set = format!("{SEEING} contrasts=<{}>", defined(&faint));
    let mut rig = Rig::new(&set, &caps_of(&full));
    for (frame, verdict) in [
        (&black, Verdict::Fail),
        (&full, Verdict::Pass),
        (&faint, Verdict::Pass),
        (&half_of_faint, Verdict::Fail),
    ] {
        let result = DefectResult::read(&rig.pass(buffer_of(frame, &device))).remove(0);
        assert_eq!(result.verdict, verdict);
    }
    assert_eq!(in_force(&rig), defined(&faint));
    // The first strip of a web waits for no others.
    let [width, rows] = black.size();
    let samples = black.component(0).values().into_iter();
    let web = Web {
        format: Format::Gray8,
        width,
        rows,
        bytes: samples.map(|sample| sample as u8).collect(),
    };
    for (line, is_judged) in [(SEEING, false), (&set, true)] {
        let strips = web.through(&format!("{line} line-scan=true"), rows / 4);
        assert_eq!(strips.len(), 4);
        let mut rig = Rig::new(&format!("{line} line-scan=true"), &web.caps(rows / 4));
        for strip in web.strips(rows / 4) {
            rig.push(strip).unwrap();
        }
        assert_eq!(rig.is_silent(), !is_judged, "{line}");
        for result in strips.iter().flat_map(|strip| DefectResult::read(strip)) {
            assert_eq!(result.verdict == Verdict::None, !is_judged, "{line}");
            assert_eq!(result.missing_pixels > 0, is_judged, "{line}");
        }
    }
}

#[test]
fn contrasts_of_components_are_learned_and_other_numbers_of_them_do_not_count() {
    let Some(device) = start() else { return };
    let grey = frames([100, 40]);
    let [full, faint] = grey.each_ref().map(|grey| {
        let mut frame = Frame::poisoned(Format::Rgb, grey.size(), PLAIN, 90);
        let [red, green] = [frame.geometry(0), frame.geometry(1)];
        let values = grey.component(0).values();
        for (at, &value) in values.iter().enumerate() {
            let (x, y) = (at % grey.size()[0], at / grey.size()[0]);
            put(&mut frame.bytes, &red, x, y, value);
            put(&mut frame.bytes, &green, x, y, 100 + value / 4);
        }
        frame
    });
    let mut rig = Rig::new(&format!("{SEEING} learn=learn,frames=2"), &caps_of(&full));
    let judge = |rig: &mut Rig, frame: &Frame| {
        DefectResult::read(&rig.pass(buffer_of(frame, &device))).remove(0)
    };
    (rig.only("clpitchthreshold")).emit_by_name::<()>("learn", &[]);
    for frame in [&full, &faint] {
        judge(&mut rig, frame);
    }
    let contrasts = learned(&rig);
    let [red, green, blue] = contrasts[..] else {
        panic!("{contrasts:?}")
    };
    assert!(
        red > 3.0 * green && green > 0.0 && blue == 0.0,
        "{contrasts:?}"
    );
    let numbers = format!("contrasts=<{red},{green},{blue}>");
    for (settings, verdict) in [
        (numbers.as_str(), Verdict::Pass),
        (&format!("{numbers} components=luma"), Verdict::Fail),
        ("contrasts=<8.0>", Verdict::Fail),
        ("contrasts=<8.0> components=luma", Verdict::Pass),
    ] {
        let mut rig = Rig::new(&format!("{SEEING} {settings}"), &caps_of(&full));
        assert_eq!(judge(&mut rig, &full).verdict, Verdict::Pass);
        assert_eq!(judge(&mut rig, &faint).verdict, verdict, "{settings}");
    }
}
