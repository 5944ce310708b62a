//! Limits that see no defect: frames that would pass get the verdict `none`, with the reason.

use std::sync::Arc;

use clinspect_opencl::ClContext;
use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{BlindLimit, DefectResult, NoneReason, Verdict};

use crate::{
    common::panel::PanelSpec,
    frames::{Frame, PLAIN},
    oracle::pitch_threshold::{self, contrast},
    panels::{Panels, recommended},
    presence::changed,
    reference_picture::{frame_of, trained_rig, with_defect},
    support::{Rig, buffer_of, caps_of, constant, start},
};

const SIZE: [usize; 2] = [320, 240];
const PATTERN: &str = "clpitchthreshold name=e pitch-x=16 pitch-y=16 multiples=<1> min-area=4";

fn panel(format: Format) -> Frame {
    let spec = PanelSpec {
        width: SIZE[0],
        height: SIZE[1],
        pitch_x: 16.0,
        pitch_y: 16.0,
        noise_sigma: 1.0,
        contrast: 60.0,
        ..PanelSpec::default()
    };
    Panels::new(spec).next_as(format, PLAIN, 0)
}

fn result(rig: &mut Rig, frame: &Frame, device: &Arc<ClContext>) -> DefectResult {
    DefectResult::read(&rig.pass(buffer_of(frame, device))).remove(0)
}

fn contrast_of(frame: &Frame) -> f64 {
    let settings = pitch_threshold::Settings {
        pitch_x: 16.0,
        pitch_y: 16.0,
        ..recommended(8.0)
    };
    contrast(frame.component(0), &settings).expect("a pattern")
}

#[track_caller]
fn assert_blind(result: &DefectResult, name: &str, [marks, reach]: [f64; 2]) {
    let blind = BlindLimit {
        name: name.into(),
        marks,
        reach,
    };
    assert_eq!(result.verdict, Verdict::None, "{result}");
    assert_eq!(result.blind.as_ref(), Some(&blind));
    assert_eq!(result.none_reason(), Some(NoneReason::BlindLimit));
    assert!(result.judged_pixels > 0);
}

#[track_caller]
fn assert_sees(result: &DefectResult, verdict: Verdict) {
    assert_eq!(
        (result.verdict, &result.blind),
        (verdict, &None),
        "{result}"
    );
}

#[test]
fn threshold_above_half_of_the_patterns_range_gives_none_until_it_is_lowered() {
    let Some(device) = start() else { return };
    for (format, levels) in [(Format::Gray8, 1.0), (Format::Gray16Le, 256.0)] {
        let clean = panel(format);
        let reach = 3.0 * contrast_of(&clean) * levels;
        let line = format!("{PATTERN} reports=reports,interval=0");
        let mut rig = Rig::new(&line, &caps_of(&clean));
        let element = rig.only("clpitchthreshold");
        // A limit of exactly half of the range sees, and the next multiple of 1/256 does not.
        let last = (256.0 * reach).floor() / 256.0;
        let blind = last + 1.0 / 256.0;
        element.set_property("threshold", last);
        assert_sees(&result(&mut rig, &clean, &device), Verdict::Pass);
        assert!(rig.warnings().is_empty() && rig.infos().is_empty());

        element.set_property("threshold", blind);
        for _ in 0..2 {
            assert_blind(
                &result(&mut rig, &clean, &device),
                "threshold",
                [blind, reach],
            );
        }
        let told = rig.warnings();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].text.contains("no limit sees a defect: threshold"),
            "{told:?}"
        );
        // A missing pattern is found by presence, which has no such limit.
        let dark = constant(SIZE, 0);
        if format == Format::Gray8 {
            assert_sees(&result(&mut rig, &dark, &device), Verdict::Fail);
        }
        assert_blind(
            &result(&mut rig, &clean, &device),
            "threshold",
            [blind, reach],
        );
        assert!(rig.warnings().is_empty() && rig.infos().is_empty());

        element.set_property("threshold", last);
        assert_sees(&result(&mut rig, &clean, &device), Verdict::Pass);
        let told = rig.infos();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].text.contains("see defects again"), "{told:?}");
    }
}

#[test]
fn limits_are_looked_at_again_when_the_contrast_is_another_one() {
    let Some(device) = start() else { return };
    let clean = panel(Format::Gray8);
    let faint = changed(&clean, |_, _, sample| 96 + sample / 4);
    let contrasts = [&clean, &faint].map(contrast_of);
    let [high, low] = contrasts.map(|contrast| 3.0 * contrast);
    let threshold = ((high + low) / 2.0).floor();
    let line = format!("{PATTERN} threshold={threshold} reports=reports,interval=0");
    let mut rig = Rig::new(&line, &caps_of(&clean));
    for _ in 0..2 {
        assert_sees(&result(&mut rig, &clean, &device), Verdict::Pass);
    }
    let element = rig.only("clpitchthreshold");
    element.emit_by_name::<()>("take-contrast", &[]);
    for _ in 0..2 {
        let of = result(&mut rig, &faint, &device);
        assert_blind(&of, "threshold", [threshold, low]);
    }
    let told = rig.told("clpitchthreshold");
    for (message, contrast) in [(&told[0], contrasts[0]), (&told[3], contrasts[1])] {
        let settings: &str = message.get("settings").expect("settings");
        let wanted = format!("min-contrast={:.3} ", contrast / 2.0);
        assert!(settings.contains(&wanted), "{settings}");
    }
}

#[test]
fn message_has_the_reason() {
    let Some(device) = start() else { return };
    let clean = panel(Format::Gray8);
    let line = format!("{PATTERN} threshold=255 reports=reports,interval=0");
    let mut rig = Rig::new(&line, &caps_of(&clean));
    rig.pass(buffer_of(&clean, &device));
    let told = rig.told("clpitchthreshold");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].get::<&str>("verdict"), Ok("none"));
    assert_eq!(told[0].get::<&str>("blind-limit"), Ok("threshold"));
    assert_eq!(told[0].get::<f64>("blind-limit-marks"), Ok(255.0));
    let summary = told[0].get::<&str>("summary").expect("a summary");
    assert!(
        summary.starts_with("none: threshold marks differences from 255.0"),
        "{summary}"
    );
}

#[test]
fn level_with_a_lower_limit_sees_in_the_place_of_the_pixels() {
    let Some(device) = start() else { return };
    let clean = panel(Format::Gray8);
    let reach = 3.0 * contrast_of(&clean);
    let threshold = (reach + 4.0).floor();
    for (factor, sees) in [(0.9, true), (1.0, false), (3.0, false)] {
        let line = format!(
            "{PATTERN} threshold={threshold} scales=1 scale-factors=\"<(double){factor}>\" limits=limits,max-defects=0"
        );
        let mut rig = Rig::new(&line, &caps_of(&clean));
        let of = result(&mut rig, &clean, &device);
        if sees {
            assert_sees(&of, Verdict::Pass);
        } else {
            assert_blind(&of, "threshold", [threshold, reach]);
        }
    }
}

#[test]
fn without_a_measured_contrast_every_limit_sees() {
    let Some(device) = start() else { return };
    let clean = panel(Format::Gray8);
    for (min_contrast, sees) in [("-1", false), ("0", true), ("1", true)] {
        // A higher one is refused.
        let line = format!("{PATTERN} min-contrast={min_contrast} threshold=255");
        let mut rig = Rig::new(&line, &caps_of(&clean));
        let of = result(&mut rig, &clean, &device);
        assert_eq!(
            (of.verdict == Verdict::Pass, of.blind.is_none()),
            (sees, sees),
            "{of}"
        );
    }
}

#[test]
fn strips_of_a_web_get_none() {
    let Some(device) = start() else { return };
    let clean = panel(Format::Gray8);
    for (threshold, expected) in [(40, Verdict::Pass), (250, Verdict::None)] {
        let line = format!("{PATTERN} line-scan=true threshold={threshold}");
        let mut rig = Rig::new(&line, &caps_of(&clean));
        for _ in 0..3 {
            rig.push(buffer_of(&clean, &device))
                .expect("a strip is taken");
        }
        rig.harness().push_event(gst::event::Eos::new());
        for _ in 0..3 {
            let of = DefectResult::read(&rig.harness().pull().expect("a strip")).remove(0);
            assert_eq!(
                (of.verdict, of.blind.is_some()),
                (expected, threshold == 250),
                "{of}"
            );
        }
    }
}

#[test]
fn learning_that_ends_blind_names_the_frame() {
    let Some(device) = start() else { return };
    let clean = panel(Format::Gray8);
    let mut spoiled = clean.clone();
    let geometry = spoiled.geometry(0);
    for (x, y) in (100..130).flat_map(|x| (80..110).map(move |y| (x, y))) {
        let level = if (x / 5 + y / 5) % 2 == 0 { 255 } else { 0 };
        crate::oracle::put(&mut spoiled.bytes, &geometry, x, y, level);
    }
    let line = format!("{PATTERN} learn=learn,frames=3");
    let mut rig = Rig::new(&line, &caps_of(&clean));
    assert_sees(&result(&mut rig, &clean, &device), Verdict::Pass);
    let element = rig.only("clpitchthreshold");
    element.emit_by_name::<()>("learn", &[]);
    for frame in [&clean, &spoiled, &clean] {
        result(&mut rig, frame, &device);
    }
    let frame = 2_u64;
    let warnings = rig.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let text = &warnings[0].text;
    assert!(
        text.contains("a learned limit sees no defect: threshold"),
        "{text}"
    );
    assert!(
        text.contains(&format!("take out frame {frame} with the signal forget")),
        "{text}"
    );
    // Without that frame the limit sees.
    let of = result(&mut rig, &spoiled, &device);
    assert_eq!(of.none_reason(), Some(NoneReason::BlindLimit), "{of}");
    element.emit_by_name::<()>("forget", &[&frame]);
    // The limits are computed again before this frame, which takes the place of the other one, and hold after it.
    result(&mut rig, &clean, &device);
    assert_sees(&result(&mut rig, &spoiled, &device), Verdict::Fail);
}

#[test]
fn reference_with_a_limit_above_half_of_the_models_range_gives_none() {
    let Some(device) = start() else { return };
    for format in [Format::Gray8, Format::Gray16Le] {
        let (mut rig, frames) = trained_rig("", format, &device);
        let spoiled = frame_of(format, [0, 0], with_defect);
        let element = rig.only("clreference");
        assert_sees(&result(&mut rig, &frames[0], &device), Verdict::Pass);
        assert_sees(&result(&mut rig, &spoiled, &device), Verdict::Fail);
        let scale = if format == Format::Gray8 { 1.0 } else { 257.0 };
        element.set_property("threshold", 120.0 * scale);
        for frame in [&frames[0], &spoiled] {
            let of = result(&mut rig, frame, &device);
            let blind = of.blind.clone().expect("a reason");
            assert_eq!((of.verdict, &*blind.name), (Verdict::None, "threshold"));
            assert!(
                blind.reach < 100.0 * scale && blind.marks > 120.0 * scale,
                "{blind:?}"
            );
        }
        assert_eq!(rig.warnings().len(), 1);
        element.set_property("threshold", 20.0 * scale);
        assert_sees(&result(&mut rig, &spoiled, &device), Verdict::Fail);
        assert_sees(&result(&mut rig, &frames[0], &device), Verdict::Pass);
        assert_eq!(rig.infos().len(), 1);
        // The deviations of noise are small, so it takes a large factor.
        element.set_property("deviation-factor", 999.0);
        let of = result(&mut rig, &frames[0], &device);
        let blind = of.blind.clone().expect("a reason");
        assert_eq!(
            (of.verdict, &*blind.name),
            (Verdict::None, "deviation-factor")
        );
    }
}
