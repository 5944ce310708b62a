//! Every mode of the pitch comparison compared with the reference.

use clinspect_core::variant::{PitchThresholdVariant, wide_rows};
use clinspect_operators::{Compare, Polarity};
use gst_video::VideoFormat as Format;

use crate::{
    content::{Content, random},
    device,
    frames::{Frame, PADDED, PLAIN},
    pitch_threshold::sparse,
    pitch_threshold_job::{CHOICES, Choice, Job, check, classic},
};

const COMPARES: [Compare; 2] = [Compare::Average, Compare::Minimum];
const POLARITIES: [Polarity; 3] = [Polarity::Both, Polarity::Bright, Polarity::Dark];

/// The kernels that process many pixels at once and have borders of their own.
const FAST: [Choice; 2] = [
    (Some(PitchThresholdVariant::Words), false),
    (Some(PitchThresholdVariant::Wide), false),
];

/// Every combination of comparison, centre and polarity.
fn modes(base: &Job) -> impl Iterator<Item = Job> {
    COMPARES.into_iter().flat_map(move |compare| {
        [false, true].into_iter().flat_map(move |match_center| {
            POLARITIES.into_iter().map(move |polarity| Job {
                compare,
                match_center,
                polarity,
                ..base.clone()
            })
        })
    })
}

#[test]
fn pitch_threshold_every_mode_axis_and_multiple_equals_reference() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray8, [101, 67], PADDED, Content::Natural, 0);
    for pitch in [[7.35, 0.0], [0.0, 7.35], [7.35, 7.35], [7.0, 3.0]] {
        for multiples in [vec![1], vec![1, 4]] {
            let base = Job {
                pitch,
                multiples,
                ..classic(0.0, 9.5)
            };
            for job in modes(&base) {
                check(&device, &input, &job, &CHOICES);
            }
        }
    }
}

#[test]
fn pitch_threshold_every_mode_of_random_samples_equals_reference() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Gray16Le, Format::Gray16Be] {
        let input = Frame::showing(format, [83, 29], PADDED, Content::Random, 0);
        for threshold in [0.0, 0.5, 37.3] {
            let base = Job {
                pitch: [2.7, 1.01],
                multiples: vec![1, 3],
                ..classic(0.0, threshold)
            };
            for job in modes(&base) {
                check(&device, &input, &job, &CHOICES);
            }
        }
    }
}

#[test]
fn pitch_threshold_fractional_threshold_is_rounded_to_a_256th() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray8, [131, 17], PLAIN, Content::Natural, 0);
    for threshold in [0.0, 0.001, 0.002, 0.5, 1.0 / 3.0, 9.998, 9.999, 255.0] {
        for job in modes(&classic(7.35, threshold)) {
            check(&device, &input, &job, &CHOICES);
        }
    }
}

#[test]
fn pitch_threshold_every_fraction_of_a_pixel_equals_reference() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray8, [71, 9], PLAIN, Content::Random, 0);
    for fraction in (0..256).step_by(5).chain([1, 127, 128, 255]) {
        let job = Job {
            match_center: true,
            compare: Compare::Minimum,
            ..classic(4.0 + f64::from(fraction) / 256.0, 40.0)
        };
        check(&device, &input, &job, &CHOICES);
    }
}

/// Random samples of 0 and the highest level: sums reach their extremes.
fn extremes(format: Format, size: [usize; 2]) -> Frame {
    let highest = if format == Format::Gray8 { 255 } else { 65_535 };
    let samples: Vec<(usize, usize, u32)> = (0..size[1])
        .flat_map(|y| (0..size[0]).map(move |x| (x, y)))
        .filter(|&(x, y)| random(7, 0, x, y) & 1 == 1)
        .map(|(x, y)| (x, y, highest))
        .collect();
    sparse(format, size, PADDED, &samples)
}

#[test]
fn pitch_threshold_extreme_samples_at_every_fraction_equal_reference() {
    let Some(device) = device::open() else { return };
    let input = extremes(Format::Gray8, [83, 3]);
    // Thresholds at the limits of 16-bit lanes, and the differences of these samples.
    let thresholds = [0.0, 1.0 / 256.0, 127.5, 254.0 + 255.0 / 256.0, 255.0];
    for fraction in 0..256 {
        let base = Job {
            threshold: thresholds[fraction % thresholds.len()],
            ..classic(5.0 + fraction as f64 / 256.0, 0.0)
        };
        for job in modes(&base).skip(fraction % 3).step_by(3) {
            check(&device, &input, &job, &FAST);
        }
    }
    // A difference equal to the threshold, and 1/256 less and more.
    for fraction in [1, 2, 127, 128, 255] {
        for over in [-1, 0, 1] {
            let threshold = f64::from(255 * fraction + over) / 256.0;
            for job in modes(&classic(
                5.0 + f64::from(fraction) / 256.0,
                threshold.min(255.0),
            )) {
                check(&device, &input, &job, &FAST);
            }
        }
    }
    for format in [Format::Gray16Le, Format::Gray16Be] {
        let input = extremes(format, [83, 3]);
        for (pitch, threshold) in [(5.5, 65_535.0), (5.996, 32_767.5), (5.25, 0.0)] {
            for job in modes(&classic(pitch, threshold)) {
                check(&device, &input, &job, &FAST);
            }
        }
    }
}

#[test]
fn pitch_threshold_judged_columns_of_every_place_in_a_word_equal_reference() {
    let Some(device) = device::open() else { return };
    for width in (34..=70).chain([95, 96, 97, 128, 129]) {
        let input = Frame::showing(Format::Gray8, [width, 3], PLAIN, Content::Random, 0);
        for pitch in [1.0, 1.5, 3.0] {
            check(&device, &input, &classic(pitch, 40.0), &FAST);
        }
    }
    let input = Frame::showing(Format::Gray8, [131, 3], PLAIN, Content::Random, 0);
    for x in 0..40 {
        for columns in [31, 32, 33, 64, 80] {
            let job = Job {
                rois: vec![[x, 0, columns, 3]],
                ..classic(2.25, 40.0)
            };
            check(&device, &input, &job, &FAST);
        }
    }
}

#[test]
fn pitch_threshold_several_overlapping_regions_equal_reference() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray8, [129, 31], PADDED, Content::Random, 0);
    for rois in [
        vec![[3, 2, 20, 10], [10, 5, 30, 9]],
        vec![[40, 0, 1, 31], [41, 3, 1, 1], [120, 30, 2, 1]],
        vec![[0, 0, 129, 31], [5, 5, 3, 3]],
        vec![[7, 0, 64, 2], [7, 1, 64, 2], [0, 0, 8, 31]],
        vec![[31, 4, 2, 3], [63, 4, 2, 3], [95, 4, 2, 3]],
        // One region in a corner without judged pixels, one with judged pixels.
        vec![[0, 0, 2, 2], [60, 20, 1, 1]],
    ] {
        for pitch in [[3.0, 0.0], [2.5, 4.25]] {
            let job = Job {
                pitch,
                rois: rois.clone(),
                ..classic(0.0, 30.0)
            };
            check(&device, &input, &job, &CHOICES);
        }
    }
}

#[test]
fn pitch_threshold_that_leaves_few_judged_pixels_equals_reference() {
    let Some(device) = device::open() else { return };
    for size in [[33, 3], [64, 5], [97, 40]] {
        let input = Frame::showing(Format::Gray8, size, PADDED, Content::Random, 0);
        let half = size[0] as f64 / 2.0;
        for less in [0.5, 0.7, 1.0, 1.5, 2.25, 9.0] {
            for pitch in [[half - less, 0.0], [half - less, 1.0]] {
                let job = Job {
                    pitch,
                    ..classic(0.0, 50.0)
                };
                check(&device, &input, &job, &CHOICES);
            }
        }
    }
}

#[test]
fn pitch_threshold_in_frames_that_share_work_items_between_rows_equals_reference() {
    let Some(device) = device::open() else { return };
    // 32 work-items of the wide kernel per row; 2, then 8 of them share a row.
    const WIDTH: usize = 16 * 32;
    for times in [2, 8] {
        let height = times * 2048 * device.caps().compute_units / 32 + 5;
        let items = WIDTH / 16 * height;
        assert_eq!(wide_rows(device.caps(), items), times);
        let size = [WIDTH + 3, height];
        let input = Frame::showing(Format::Gray8, size, PLAIN, Content::Random, 0);
        let job = Job {
            pitch: [7.35, 9.6],
            compare: Compare::Minimum,
            match_center: true,
            rois: vec![[0, 0, 300, 77], [40, 70, 475, height as u32 - 71]],
            ..classic(0.0, 100.0)
        };
        check(&device, &input, &job, &FAST);
    }
}

#[test]
fn pitch_threshold_multiple_too_far_for_the_frame_leaves_the_others() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray8, [64, 33], PADDED, Content::Natural, 0);
    for multiples in [vec![1, 100], vec![100, 1], vec![4, 1, 3]] {
        let job = Job {
            pitch: [7.35, 7.35],
            multiples,
            ..classic(0.0, 10.0)
        };
        check(&device, &input, &job, &CHOICES);
    }
}

#[test]
fn pitch_threshold_bit_depth_10_to_14_equals_reference_beyond_it_too() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray16Le, Format::Gray16Be] {
        for bit_depth in [10, 12, 14] {
            for content in [Content::Natural, Content::BeyondDepth] {
                let input = Frame::showing(format, [75, 19], PADDED, content, bit_depth);
                let job = Job {
                    bit_depth,
                    compare: Compare::Minimum,
                    match_center: true,
                    ..classic(7.35, 0.04 * f64::from(1 << bit_depth))
                };
                check(&device, &input, &job, &CHOICES);
            }
        }
    }
}
