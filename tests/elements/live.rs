//! Properties that change while frames flow.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, HistogramResult};

use crate::{
    frames::{Frame, PLAIN, read},
    oracle::{
        gaussian::gaussian_integer,
        pitch_threshold::{Compare, Polarity, compare},
    },
    results::assert_counted,
    support::{
        Rig, buffer_of, caps_of, judged, noise, pitch_threshold_settings, set_unchecked, start,
    },
};

const SIZE: [usize; 2] = [40, 8];

fn frame() -> Frame {
    noise(Format::Gray8, SIZE, PLAIN)
}

#[test]
fn histogram_follows_properties_while_frames_flow() {
    let Some(device) = start() else { return };
    let frame = frame();
    let mut rig = Rig::new("clhistogram", &caps_of(&frame));
    let element = rig.only("clhistogram");
    let mut before = (256, [0, 0, 40, 8]);
    for (bins, roi) in [
        (256, [0, 0, 0, 0]),
        (16, [0, 0, 0, 0]),
        (16, [3, 1, 20, 5]),
        (2, [39, 7, 1, 1]),
        (128, [0, 0, 40, 8]),
    ] {
        element.set_property("bins", bins);
        element.set_property("roi", gst::Array::new(roi));
        let region = if roi == [0; 4] { [0, 0, 40, 8] } else { roi };
        let shows = |output: &gst::Buffer, (bins, region): (u32, [i32; 4])| {
            let result = &HistogramResult::read(output)[0];
            let is = result.bins == bins && result.roi == region.map(|n| n as u32);
            if is {
                assert_counted(&frame, result, region.map(|n| n as usize));
            }
            is
        };
        rig.settle(
            || buffer_of(&frame, &device),
            |output| shows(output, (bins, region)),
            |output| shows(output, before),
        );
        before = (bins, region);
    }
    assert!(rig.warnings().is_empty());
}

#[test]
fn gaussian_follows_properties_while_frames_flow() {
    let Some(device) = start() else { return };
    let frame = frame();
    let mut rig = Rig::new("clgaussian", &caps_of(&frame));
    let element = rig.only("clgaussian");
    let expected = |taps, sigma| gaussian_integer(frame.component(0), taps, sigma);
    let is = |output: &gst::Buffer, levels: &[u32]| {
        let output = read(output);
        output
            .iter()
            .map(|&b| u32::from(b))
            .eq(levels.iter().copied())
    };
    let mut before = expected(3, 0.0);
    for (taps, sigma) in [(3, 0.0), (7, 0.0), (7, 1.5), (31, 5.0), (3, 1000.0)] {
        element.set_property("kernel-size", taps as u32);
        element.set_property("sigma", sigma);
        let wanted = expected(taps, sigma);
        rig.settle(
            || buffer_of(&frame, &device),
            |output| is(output, &wanted),
            |output| is(output, &before),
        );
        before = wanted;
    }
    assert!(rig.warnings().is_empty());
}

#[test]
fn pitch_threshold_follows_properties_at_the_next_frame_or_once_compiled() {
    let Some(device) = start() else { return };
    let frame = frame();
    let mut rig = Rig::new("clpitchthreshold PUBLISHED pitch-x=4", &caps_of(&frame));
    let element = rig.only("clpitchthreshold");
    let mut settings = pitch_threshold_settings(4.0, 0.0, 10.0);
    let mode = |settings: &crate::oracle::pitch_threshold::Settings| {
        (settings.compare, settings.match_center)
    };
    let mut masks = Vec::new();
    let mut last_mode = Some(mode(&settings));
    let mut follow = |element: &gst::Element,
                      settings: &crate::oracle::pitch_threshold::Settings| {
        let expected = compare(frame.component(0), settings);
        let output = rig.pass(buffer_of(&frame, &device));
        let before = std::mem::replace(&mut masks, expected.packed.clone());
        // Kernels are compiled for the mode, so frames keep the old one meanwhile.
        let output = if last_mode.replace(mode(settings)) == Some(mode(settings)) {
            output
        } else {
            let is = |output: &gst::Buffer, mask: &[u8]| read(output) == mask;
            rig.settle(
                || buffer_of(&frame, &device),
                |output| is(output, &expected.packed),
                |output| is(output, &before),
            )
        };
        assert_eq!(read(&output), expected.packed, "{settings:?}");
        let result = &DefectResult::read(&output)[0];
        assert_eq!(result.judged_pixels, expected.judged_pixels);
        assert_eq!(result.threshold, settings.threshold);
        assert_eq!(element.property::<f64>("pitch-y"), settings.pitch_y);
    };
    follow(&element, &settings);
    settings.threshold = 77.25;
    element.set_property("threshold", 77.25);
    follow(&element, &settings);
    settings.pitch_y = 2.5;
    element.set_property("pitch-y", 2.5);
    follow(&element, &settings);
    settings.compare = Compare::Minimum;
    element.set_property_from_str("compare", "minimum");
    follow(&element, &settings);
    settings.match_center = true;
    element.set_property("match-center", true);
    follow(&element, &settings);
    settings.polarity = Polarity::Dark;
    element.set_property_from_str("polarity", "dark");
    follow(&element, &settings);
    settings.rois = vec![[1, 1, 20, 5], [15, 0, 25, 8]];
    element.set_property_from_str("rois", "<<1,1,20,5>,<15,0,25,8>>");
    follow(&element, &settings);
    settings.pitch_x = 0.0;
    element.set_property("pitch-x", 0.0);
    follow(&element, &settings);
    // 2.5 rows are much in a frame of this height.
    let warnings = rig.warnings();
    assert!(
        warnings.iter().all(|w| w.text.contains("less than half")),
        "{warnings:?}"
    );
}

#[test]
fn refused_settings_warn_once_and_leave_frames_inspected_as_before() {
    let Some(device) = start() else { return };
    let frame = frame();

    let mut rig = Rig::new("clhistogram bins=16", &caps_of(&frame));
    let element = rig.only("clhistogram");
    for (name, value, word) in [
        ("bins", "100", "bins"),
        ("bins", "512", "bins"),
        ("roi", "<0,0,41,8>", "roi"),
        ("roi", "<5,5,0,1>", "roi"),
        ("bit-depth", "12", "bit-depth"),
    ] {
        let before = element.property_value(name);
        element.set_property_from_str(name, value);
        for _ in 0..3 {
            let results = HistogramResult::read(&rig.pass(buffer_of(&frame, &device)));
            assert_eq!(results[0].bins, 16);
            assert_counted(&frame, &results[0], [0, 0, 40, 8]);
        }
        let warnings = rig.warnings();
        assert_eq!(warnings.len(), 1, "{name}={value}: {warnings:?}");
        assert!(warnings[0].text.contains(word), "{warnings:?}");
        element.set_property_from_value(name, &before);
        rig.pass(buffer_of(&frame, &device));
        assert!(rig.warnings().is_empty());
    }

    let mut rig = Rig::new("clgaussian kernel-size=5", &caps_of(&frame));
    rig.only("clgaussian").set_property("kernel-size", 4_u32);
    for _ in 0..3 {
        let output = read(&rig.pass(buffer_of(&frame, &device)));
        let expected = gaussian_integer(frame.component(0), 5, 0.0);
        assert!(output.iter().map(|&b| u32::from(b)).eq(expected));
    }
    assert_eq!(rig.warnings().len(), 1);

    let mut rig = Rig::new("clpitchthreshold PUBLISHED pitch-x=4", &caps_of(&frame));
    let element = rig.only("clpitchthreshold");
    let expected = judged(&frame, 4.0, 0.0, 10.0).packed;
    for (name, value, word) in [
        ("pitch-x", "20", "judged"),
        ("pitch-x", "0", "pitch"),
        ("pitch-x", "0.5", "pitch-x"),
        ("threshold", "256", "threshold"),
        ("rois", "<<0,0,41,1>>", "rois"),
        ("rois", "<<0,0,4,8>>", "judged"),
        ("multiples", "<0>", "multiples"),
        ("bit-depth", "9", "bit-depth"),
    ] {
        let before = element.property_value(name);
        element.set_property_from_str(name, value);
        for _ in 0..3 {
            assert_eq!(read(&rig.pass(buffer_of(&frame, &device))), expected);
        }
        let warnings = rig.warnings();
        assert_eq!(warnings.len(), 1, "{name}={value}: {warnings:?}");
        assert!(warnings[0].text.contains(word), "{warnings:?}");
        element.set_property_from_value(name, &before);
    }
    assert!(rig.errors().is_empty());
}

#[test]
fn values_that_are_no_numbers_or_regions_change_nothing() {
    let Some(device) = start() else { return };
    let frame = frame();
    for (factory, line, name) in [
        ("clgaussian", "clgaussian sigma=2.5", c"sigma"),
        (
            "clpitchthreshold",
            "clpitchthreshold PUBLISHED pitch-x=4",
            c"pitch-x",
        ),
        (
            "clpitchthreshold",
            "clpitchthreshold PUBLISHED pitch-x=4",
            c"pitch-y",
        ),
        (
            "clpitchthreshold",
            "clpitchthreshold PUBLISHED pitch-x=4",
            c"threshold",
        ),
    ] {
        let mut rig = Rig::new(line, &caps_of(&frame));
        let element = rig.only(factory);
        let expected = read(&rig.pass(buffer_of(&frame, &device)));
        let property = name.to_str().unwrap();
        let before = element.property::<f64>(property);
        // GObject refuses these values with a warning on stderr.
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.5] {
            set_unchecked(&element, name, &value.to_value());
        }
        assert_eq!(element.property::<f64>(property), before, "{property}");
        assert_eq!(read(&rig.pass(buffer_of(&frame, &device))), expected);
    }
    for (factory, line, name, values) in [
        (
            "clhistogram",
            "clhistogram roi=<1,1,9,3>",
            "roi",
            &["<1,2,3>", "<-1,0,4,4>", "<1,2,3,4,5>"][..],
        ),
        (
            "clpitchthreshold",
            "clpitchthreshold PUBLISHED pitch-x=4 rois=<<1,1,30,3>>",
            "rois",
            &["<<1,2,3>>", "<<-1,0,4,4>>"][..],
        ),
        (
            "clpitchthreshold",
            "clpitchthreshold PUBLISHED pitch-x=4",
            "multiples",
            &["<-1>"][..],
        ),
    ] {
        let mut rig = Rig::new(line, &caps_of(&frame));
        let element = rig.only(factory);
        let before = element.property_value(name).serialize().unwrap();
        let expected = read(&rig.pass(buffer_of(&frame, &device)));
        for value in values {
            element.set_property_from_str(name, value);
            for _ in 0..2 {
                assert_eq!(read(&rig.pass(buffer_of(&frame, &device))), expected);
            }
            let warnings = rig.warnings();
            assert_eq!(warnings.len(), 1, "{name}={value}: {warnings:?}");
            assert!(warnings[0].text.contains(name));
            let now = element.property_value(name).serialize().unwrap();
            assert_eq!(now, before, "{name}={value}");
        }
        assert!(rig.warnings().is_empty());
    }
}
