//! The results equal the references in every arrangement of memory.

use gst_video::{VideoFormat as Format, prelude::*};
use gstclinspect::results::{DefectResult, HistogramResult};

use crate::{
    frames::{ARRANGEMENTS, Arrangement, Frame, PLAIN, read},
    oracle::{
        gaussian::gaussian_integer,
        histogram::{Statistics, chroma_region, histogram, statistics},
    },
    support::{Rig, buffer_of, caps_of, judged, noise, start},
};

const SIZE: [usize; 2] = [37, 11];
const FORMATS: [Format; 9] = [
    Format::Gray8,
    Format::Rgb,
    Format::Bgrx,
    Format::Argb,
    Format::I420,
    Format::Nv12,
    Format::Yuy2,
    Format::Gray16Le,
    Format::Gray16Be,
];
const LUMA_FORMATS: [Format; 5] = [
    Format::Gray8,
    Format::I420,
    Format::Nv12,
    Format::Gray16Le,
    Format::Gray16Be,
];

/// Formats of one plane need no test with a memory per plane.
fn arrangements(format: Format) -> impl Iterator<Item = Arrangement> {
    let planes = gst_video::VideoFormatInfo::from_format(format).n_planes();
    ARRANGEMENTS
        .into_iter()
        .filter(move |a| planes > 1 || a.split != crate::frames::Split::Planes)
}

/// Asserts that a buffer holds the Gaussian of `input`.
#[track_caller]
pub fn assert_smoothed(input: &Frame, output: &gst::Buffer, taps: usize, sigma: f64) {
    let mut shown = Frame::poisoned(input.info.format(), input.size(), PLAIN, 0);
    let bytes = read(output);
    assert_eq!(bytes.len(), shown.bytes.len(), "{}", input.describe());
    shown.bytes = bytes;
    for component in 0..input.component_count() {
        assert_eq!(
            shown.component(component).values(),
            gaussian_integer(input.component(component), taps, sigma),
            "{}, component {component}",
            input.describe()
        );
    }
}

/// Asserts that statistics equal the reference.
#[track_caller]
fn assert_statistics(actual: &clinspect_core::statistics::Statistics, expected: &Statistics) {
    assert_eq!(actual.count, expected.count);
    for (actual, expected) in [
        (actual.minimum, expected.minimum),
        (actual.maximum, expected.maximum),
        (actual.median, expected.median),
        (actual.p1, expected.p1),
        (actual.p5, expected.p5),
        (actual.p95, expected.p95),
        (actual.p99, expected.p99),
        (actual.saturated_low, expected.saturated_low),
        (actual.saturated_high, expected.saturated_high),
        (actual.otsu_threshold, expected.otsu_threshold),
    ] {
        assert_eq!(actual, expected);
    }
    // Sums of up to 65 536 terms in another order; each addition rounds by 2^-53.
    for (actual, expected) in [
        (actual.mean, expected.mean),
        (actual.stddev, expected.stddev),
        (actual.entropy, expected.entropy),
        (actual.otsu_separability, expected.otsu_separability),
    ] {
        assert!(
            (actual - expected).abs() <= 1e-11 * expected.abs().max(1.0),
            "{actual} instead of {expected}"
        );
    }
}

/// Asserts that a result is the histogram of the region of `input`.
#[track_caller]
pub fn assert_counted(input: &Frame, result: &HistogramResult, roi: [usize; 4]) {
    assert_eq!(result.statistics.len(), input.component_count());
    for component in 0..input.component_count() {
        let samples = input.component(component);
        let format = input.info.format_info();
        let region = chroma_region(
            roi,
            format.w_sub()[component],
            format.h_sub()[component],
            samples.width,
            samples.height,
        );
        let bins = histogram(samples, region, result.bit_depth, result.bins as usize);
        assert_eq!(
            result.channel(component).unwrap(),
            bins,
            "{}, component {component}",
            input.describe()
        );
        assert_statistics(
            &result.statistics[component],
            &statistics(&bins, result.bit_depth),
        );
    }
}

#[test]
fn gaussian_frames_in_any_memory_equal_the_reference() {
    let Some(device) = start() else { return };
    for format in FORMATS {
        let caps = caps_of(&noise(format, SIZE, PLAIN));
        let mut rig = Rig::new("clgaussian kernel-size=5 sigma=0.8", &caps);
        for arrangement in arrangements(format) {
            let frame = noise(format, SIZE, arrangement);
            let output = rig.pass(buffer_of(&frame, &device));
            assert_smoothed(&frame, &output, 5, 0.8);
        }
        assert!(rig.errors().is_empty());
    }
}

#[test]
fn histogram_frames_in_any_memory_equal_the_reference_and_pass_unchanged() {
    let Some(device) = start() else { return };
    for format in FORMATS {
        let caps = caps_of(&noise(format, SIZE, PLAIN));
        let mut rig = Rig::new("clhistogram bins=64 roi=\"<3,1,30,7>\"", &caps);
        for arrangement in arrangements(format) {
            let frame = noise(format, SIZE, arrangement);
            let output = rig.pass(buffer_of(&frame, &device));
            assert_eq!(read(&output), frame.bytes, "{}", frame.describe());
            let results = HistogramResult::read(&output);
            assert_eq!(results.len(), 1);
            assert_counted(&frame, &results[0], [3, 1, 30, 7]);
        }
    }
}

#[test]
fn pitch_threshold_frames_in_any_memory_equal_the_reference() {
    let Some(device) = start() else { return };
    for format in LUMA_FORMATS {
        let bits = 8 * noise(format, [1, 1], PLAIN).kind().size();
        let threshold = f64::from(40 << (bits - 8));
        let caps = caps_of(&noise(format, SIZE, PLAIN));
        let line =
            format!("clpitchthreshold PUBLISHED pitch-x=5.5 pitch-y=2 threshold={threshold}");
        let mut rig = Rig::new(&line, &caps);
        for arrangement in arrangements(format) {
            let frame = noise(format, SIZE, arrangement);
            let expected = judged(&frame, 5.5, 2.0, threshold);
            assert!(expected.defect_pixels > 0);
            let output = rig.pass(buffer_of(&frame, &device));
            assert_eq!(read(&output), expected.packed, "{}", frame.describe());
            let results = DefectResult::read(&output);
            assert_eq!(results.len(), 1);
            assert_eq!(results[0].defect_pixels, expected.defect_pixels);
            assert_eq!(results[0].judged_pixels, expected.judged_pixels);
        }
    }
}

#[test]
fn gaussian_downstream_that_takes_video_meta_reads_the_same_pixels() {
    let Some(device) = start() else { return };
    let frame = noise(Format::I420, [35, 7], PLAIN);
    let mut rig = Rig::new("clgaussian", &caps_of(&frame));
    rig.harness()
        .add_propose_allocation_meta(gst_video::VideoMeta::meta_api(), None);
    let output = rig.pass(buffer_of(&frame, &device));
    let meta = output.meta::<gst_video::VideoMeta>();
    let shown = meta.map(|m| (m.offset().to_vec(), m.stride().to_vec()));
    let (offsets, strides) =
        shown.unwrap_or_else(|| (frame.info.offset().to_vec(), frame.info.stride().to_vec()));
    let bytes = read(&output);
    for component in 0..3 {
        let expected = gaussian_integer(frame.component(component), 3, 0.0);
        let width = frame.component(component).width;
        for (at, value) in expected.into_iter().enumerate() {
            let place = offsets[component] + at / width * strides[component] as usize + at % width;
            assert_eq!(u32::from(bytes[place]), value, "component {component}");
        }
    }
}

#[test]
fn elements_size_and_format_change_mid_stream_every_frame_is_right() {
    let Some(device) = start() else { return };
    let sizes = [[64, 8], [37, 9], [13, 1], [128, 3], [9, 40], [12, 2]];
    for (element, formats) in [
        ("clgaussian", &FORMATS[..]),
        ("clhistogram bins=16", &FORMATS[..]),
        (
            "clpitchthreshold PUBLISHED pitch-x=3 threshold=30",
            &LUMA_FORMATS[..],
        ),
    ] {
        let mut rig: Option<Rig> = None;
        for round in 0..2 * formats.len() {
            let format = formats[round % formats.len()];
            let size = sizes[round % sizes.len()];
            let frame = noise(format, size, ARRANGEMENTS[round % 4]);
            let rig = match &mut rig {
                Some(rig) => {
                    rig.renegotiate(&caps_of(&frame));
                    rig
                }
                None => rig.insert(Rig::new(element, &caps_of(&frame))),
            };
            for _ in 0..2 {
                let output = rig.pass(buffer_of(&frame, &device));
                match element.split(' ').next().unwrap() {
                    "clgaussian" => assert_smoothed(&frame, &output, 3, 0.0),
                    "clhistogram" => {
                        let results = HistogramResult::read(&output);
                        assert_counted(&frame, &results[0], [0, 0, size[0], size[1]]);
                    }
                    _ => assert_eq!(read(&output), judged(&frame, 3.0, 0.0, 30.0).packed),
                }
            }
            assert!(rig.errors().is_empty());
        }
    }
}

#[test]
fn elements_memory_object_image_equals_the_reference() {
    let Some(device) = start() else { return };
    if !crate::device::has_images(&device) {
        return crate::device::skip("elements with images", "the device has no images");
    }
    let frame = noise(Format::Gray8, SIZE, ARRANGEMENTS[3]);
    let caps = caps_of(&frame);
    let mut rig = Rig::new("clgaussian memory-object=image", &caps);
    assert_smoothed(&frame, &rig.pass(buffer_of(&frame, &device)), 3, 0.0);
    let mut rig = Rig::new("clhistogram memory-object=image", &caps);
    let output = rig.pass(buffer_of(&frame, &device));
    assert_counted(&frame, &HistogramResult::read(&output)[0], [0, 0, 37, 11]);
    let mut rig = Rig::new(
        "clpitchthreshold PUBLISHED pitch-x=4.25 memory-object=image",
        &caps,
    );
    let output = rig.pass(buffer_of(&frame, &device));
    assert_eq!(read(&output), judged(&frame, 4.25, 0.0, 10.0).packed);
    let stats: gst::Structure = rig.only("clpitchthreshold").property("stats");
    assert_eq!(stats.get::<u64>("image-copies"), Ok(1));
}
