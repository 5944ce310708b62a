//! Pictures of differences before the threshold, and the counts from which a threshold is learned, compared with the
//! reference at a threshold of 0, which marks every pixel whose sides agree in sign.

use std::sync::Arc;

use clinspect_core::threshold::Reached;
use clinspect_opencl::frame::layout_of;
use clinspect_opencl::{ClContext, Meter};
use clinspect_operators::{
    Borders, Compare, Inspection, MaskTarget, Picture, PitchThreshold, Polarity,
};
use gst_video::VideoFormat as Format;

use crate::{
    SIZES,
    content::Content,
    device,
    frames::{ARRANGEMENTS, Frame, OUTPUT_ARRANGEMENTS, OUTPUT_POISON, assert_same, read},
    oracle::{SampleKind, pitch_threshold as oracle},
    pitch_threshold_job::{Job, classic, whole},
};

/// Jobs that differ in everything on which a difference depends.
fn jobs(bit_depth: u32) -> Vec<Job> {
    let base = Job {
        bit_depth,
        ..classic(2.35, 9.0)
    };
    vec![
        base.clone(),
        Job {
            pitch: [2.35, 1.6],
            multiples: vec![1, 2],
            compare: Compare::Minimum,
            match_center: true,
            ..base.clone()
        },
        Job {
            pitch: [0.0, 1.25],
            polarity: Polarity::Dark,
            borders: Borders::Inward,
            edge_margin: 1,
            ignored: vec![vec![1.0, 0.0, 9.0, 1.0, 5.0, 4.0]],
            ..base.clone()
        },
        Job {
            vectors: vec![[2.35, 0.8], [-1.1, 1.6]],
            multiples: vec![1, 2],
            compare: Compare::Minimum,
            match_center: true,
            borders: Borders::Inward,
            ..base.clone()
        },
        Job {
            vectors: vec![[-1.0, 1.25]],
            ignored: vec![vec![1.0, 0.0, 9.0, 1.0, 5.0, 4.0]],
            ..base.clone()
        },
        Job {
            compare: Compare::Minimum,
            polarity: Polarity::Bright,
            rois: vec![[1, 0, 9, 3], [5, 2, 20, 2]],
            ..base
        },
    ]
}

/// The operator after a frame was judged; `None` if no pixel can be judged.
fn judged(device: &Arc<ClContext>, input: &Frame, job: &Job) -> Option<PitchThreshold> {
    if job.is_blind(input) {
        return None;
    }
    let layout = layout_of(&input.info).expect("a layout");
    let settings = job.settings(input, (None, false));
    let mut operator = PitchThreshold::new(device, &layout, &settings).expect("an operator");
    let mask = Frame::poisoned(Format::Gray8, input.size(), OUTPUT_ARRANGEMENTS[0], 0);
    let (output, _buffer) = mask.output(device);
    let target = MaskTarget::Grey(&output);
    let meter = Meter::new(false);
    operator
        .mark(whole(input, &input.import(device), &meter), target)
        .expect("the comparison runs");
    Some(operator)
}

/// The differences of all pixels whose sides agree in sign, grey levels.
fn differences(input: &Frame, job: &Job, polarity: Polarity) -> Vec<Option<f64>> {
    let all = Job {
        threshold: 0.0,
        polarity,
        ..job.clone()
    };
    oracle::difference(input.component(0), &all.oracle(input.size()))
}

const FORMATS: [(Format, u32); 4] = [
    (Format::Gray8, 0),
    (Format::Gray16Le, 12),
    (Format::Gray16Be, 0),
    (Format::Nv12, 0),
];

/// Calls `check` with frames of all of these sizes and formats, and a job for each.
fn each_frame(
    sizes: &[[usize; 2]],
    formats: &[(Format, u32)],
    mut check: impl FnMut(&Frame, &Job),
) {
    for &(format, bit_depth) in formats {
        for (n, &size) in sizes.iter().enumerate() {
            let arrangement = ARRANGEMENTS[n % ARRANGEMENTS.len()];
            let frame = Frame::showing(format, size, arrangement, Content::Random, bit_depth);
            let [width, height] = size.map(|size| size as u32);
            for job in jobs(bit_depth) {
                let is_inside = |&[x, y, w, h]: &[u32; 4]| x + w <= width && y + h <= height;
                if job.rois.iter().all(is_inside) {
                    check(&frame, &job);
                }
            }
        }
    }
}

/// Compares the pictures of frames with the reference; returns the number of pixels that differ from 128.
fn check_pictures(
    device: &Arc<ClContext>,
    sizes: &[[usize; 2]],
    formats: &[(Format, u32)],
) -> usize {
    let mut seen = 0;
    each_frame(sizes, formats, |input, job| {
        let Some(mut operator) = judged(device, input, job) else {
            return;
        };
        let bits = match (input.kind(), job.bit_depth) {
            (SampleKind::U8, _) => 8,
            (_, 0) => 16,
            (_, depth) => depth,
        };
        for gain in [1.0, 3.5, 0.0] {
            let arrangement = OUTPUT_ARRANGEMENTS[input.size()[0] % OUTPUT_ARRANGEMENTS.len()];
            let mut wanted =
                Frame::poisoned(Format::Gray8, input.size(), arrangement, OUTPUT_POISON);
            let (output, buffer) = wanted.output(device);
            let (frame, meter) = (input.import(device), Meter::new(false));
            let picture = Picture::Difference(gain);
            operator
                .draw(whole(input, &frame, &meter), picture, &output)
                .expect("the picture is drawn");
            // f64::round rounds half away from zero, too.
            let pixels: Vec<u32> = differences(input, job, Polarity::Both)
                .into_iter()
                .map(|d| {
                    let level = d.unwrap_or(0.0) / f64::from(1_u32 << (bits - 8));
                    (128.0 + (level * gain).round()).clamp(0.0, 255.0) as u32
                })
                .collect();
            seen += pixels.iter().filter(|&&pixel| pixel != 128).count();
            wanted.set(&[pixels], input);
            assert_same(&read(&buffer), &wanted, || {
                format!("differences of {} {job:?} gain {gain}", input.describe())
            });
        }
    });
    seen
}

/// Compares the counts of frames with the reference; returns the number of judged pixels.
fn check_reached(device: &Arc<ClContext>, sizes: &[[usize; 2]], formats: &[(Format, u32)]) -> u64 {
    let mut seen = 0;
    each_frame(sizes, formats, |input, job| {
        let Some(mut operator) = judged(device, input, job) else {
            return;
        };
        let bits = match (input.kind(), job.bit_depth) {
            (SampleKind::U8, _) => 8,
            (_, 0) => 16,
            (_, depth) => depth,
        };
        let mut actual = Reached::default();
        let frame = input.import(device);
        for _ in 0..2 {
            let is_counted = operator
                .count_reached(whole(input, &frame, &Meter::new(false)), &mut actual)
                .expect("the pixels are counted");
            assert!(is_counted);
        }
        let last = Reached::last(bits);
        let outcome = job.expected(input);
        let mut counts = vec![0_u32; last + 2];
        let reached = differences(input, job, job.polarity);
        for (d, is_judged) in reached.into_iter().zip(&outcome.judged) {
            if *is_judged {
                let quarters = (4.0 * d.unwrap_or(0.0).abs()).floor() as usize;
                counts[quarters.min(last)] += 1;
                counts[last + 1] += 1;
            }
        }
        seen += outcome.judged_pixels;
        let mut expected = Reached::default();
        expected.add(&counts);
        expected.add(&counts);
        assert_eq!(actual, expected, "{} {job:?}", input.describe());
    });
    seen
}

#[test]
fn difference_picture_of_every_format_equals_reference() {
    let Some(device) = device::open() else { return };
    let seen = check_pictures(&device, &SIZES, &FORMATS);
    assert!(seen > 10_000, "only {seen} pixels differ");
}

#[test]
fn reached_thresholds_of_every_format_equal_reference() {
    let Some(device) = device::open() else { return };
    let seen = check_reached(&device, &SIZES, &FORMATS);
    assert!(seen > 10_000, "only {seen} pixels are judged");
}

#[test]
fn small_differences_equal_reference() {
    let Some(device) = device::open() else { return };
    let (sizes, formats) = ([[33, 7], [3, 7]], &FORMATS[..2]);
    assert!(check_pictures(&device, &sizes, formats) > 100);
    assert!(check_reached(&device, &sizes, formats) > 100);
}
