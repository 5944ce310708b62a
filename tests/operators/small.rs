//! Every kernel at small odd sizes. `scripts/check-oclgrind` runs these tests in Oclgrind,
//! an interpreter that checks bounds, races and calls. Names start with `small_`. No OpenCL call
//! may fail here, so that each report is a finding.

use clinspect_core::variant::GaussianVariant;
use clinspect_operators::{Arithmetic, Borders, Compare, Polarity};
use gst_video::VideoFormat as Format;

use crate::{
    content::Content,
    device,
    flat_field::{self, CorrectionCase, WANTED},
    frames::{ARRANGEMENTS, Arrangement, Frame, PADDED, PLAIN},
    gaussian, histogram_job,
    pitch_threshold_job::{self, Job, classic},
    surface_job, texture,
};

const SIZES: [[usize; 2]; 6] = [[1, 1], [2, 2], [15, 1], [1, 15], [17, 5], [33, 3]];

/// Memory that ends right after the last sample, so that any access past it is out of bounds.
const TIGHT: Arrangement = Arrangement {
    base: 0,
    before: 0,
    ..ARRANGEMENTS[5]
};

/// Frames of each size in memory of both owners.
fn frames(format: Format, content: Content) -> impl Iterator<Item = Frame> {
    SIZES.into_iter().enumerate().map(move |(i, size)| {
        let arrangement = [TIGHT, PADDED, PLAIN][i % 3];
        Frame::showing(format, size, arrangement, content, 0)
    })
}

const FORMATS: [Format; 6] = [
    Format::Gray8,
    Format::Rgb,
    Format::Bgrx,
    Format::Nv12,
    Format::Yuy2,
    Format::Gray16Be,
];

#[test]
fn small_gaussian_integer_equals_reference() {
    let Some(device) = device::open() else { return };
    for format in FORMATS {
        for input in frames(format, Content::Random) {
            gaussian::check(&device, &input, (3, 0.0), &gaussian::CHOICES, PLAIN);
        }
        let input = Frame::showing(format, [19, 6], TIGHT, Content::Random, 0);
        gaussian::check(&device, &input, (5, 0.8), &gaussian::CHOICES, PADDED);
    }
}

#[test]
fn small_flat_field_equals_reference() {
    let Some(device) = device::open() else { return };
    for format in [
        Format::Gray8,
        Format::Rgb,
        Format::Bgrx,
        Format::Gbr,
        Format::Gray16Be,
    ] {
        for (n, input) in frames(format, Content::Random).enumerate() {
            let wanted = CorrectionCase {
                line: n % 2 == 0,
                has_dark: n % 3 == 0,
                min_range: 130,
                ..WANTED
            };
            flat_field::check(&device, &input, &wanted, &flat_field::CHOICES, PLAIN);
        }
    }
}

#[test]
fn small_gaussian_of_groups_larger_than_the_frame_equals_reference() {
    let Some(device) = device::open() else { return };
    for [columns, rows] in [[1, 1], [3, 2], [16, 4], [64, 1]] {
        let choice = (Some(GaussianVariant::Tile { columns, rows }), false);
        for input in frames(Format::Rgb, Content::Random) {
            gaussian::check(&device, &input, (3, 0.0), &[choice], PLAIN);
        }
    }
}

#[test]
fn small_gaussian_float_is_equal_in_every_variant() {
    let Some(device) = device::open() else { return };
    for format in [Format::Rgb, Format::Gray16Le] {
        for input in frames(format, Content::Random) {
            let mut outputs = gaussian::CHOICES.into_iter().filter_map(|choice| {
                let s = gaussian::settings(3, 0.0, Arithmetic::Float, choice);
                gaussian::filter(&device, &input, &s, PLAIN)
            });
            let first = outputs.next().expect("a variant that runs");
            assert!(
                outputs.all(|output| output == first),
                "{}",
                input.describe()
            );
        }
    }
}

#[test]
fn small_histogram_equals_reference() {
    let Some(device) = device::open() else { return };
    let few_bins = histogram_job::CountCase {
        bins: 32,
        ..histogram_job::ALL
    };
    // `pairs` only at every other size, because its tables are slow in an interpreter.
    let [auto, pairs, others @ ..] = histogram_job::CHOICES;
    for format in FORMATS {
        for (i, input) in frames(format, Content::Random).enumerate() {
            histogram_job::check(&device, &input, &few_bins, &others);
            if i % 2 == 0 {
                histogram_job::check(&device, &input, &few_bins, &[auto, pairs]);
            }
            // 256 bins of four channels exceed the smallest local memory tested.
            histogram_job::check(&device, &input, &histogram_job::ALL, &others[1..2]);
        }
        let constant = Frame::showing(format, [33, 3], TIGHT, Content::Constant(255), 0);
        histogram_job::check(&device, &constant, &few_bins, &histogram_job::CHOICES);
    }
}

#[test]
fn small_histogram_of_a_region_equals_reference() {
    let Some(device) = device::open() else { return };
    for format in [Format::Rgb, Format::Yuy2, Format::I420, Format::Gray16Le] {
        let input = Frame::showing(format, [67, 7], TIGHT, Content::TwoRandom, 0);
        for region in [[66, 6, 1, 1], [1, 1, 65, 5]] {
            let wanted = histogram_job::CountCase {
                bins: 16,
                bit_depth: 0,
                region,
            };
            histogram_job::check(&device, &input, &wanted, &histogram_job::CHOICES);
        }
    }
}

#[test]
fn small_pitch_equals_reference() {
    let Some(device) = device::open() else { return };
    for format in [
        Format::Gray8,
        Format::I420,
        Format::Gray16Le,
        Format::Gray16Be,
    ] {
        for input in frames(format, Content::Random).chain([
            Frame::showing(format, [71, 6], TIGHT, Content::Random, 0),
            Frame::showing(format, [64, 5], TIGHT, Content::Random, 0),
        ]) {
            let corner = vec![-1.0, -1.0, 30.0, 0.5, 2.0, 4.0];
            for (pitch, borders, min_contrast, ignored) in [
                ([1.5, 0.0], Borders::Skip, 0.0, vec![corner.clone()]),
                ([0.0, 1.0], Borders::Inward, 0.0, vec![]),
                ([3.25, 1.25], Borders::Inward, 75.0, vec![corner]),
                ([9.0, 0.0], Borders::Inward, 75.0, vec![]),
            ] {
                let job = Job {
                    pitch,
                    borders,
                    min_contrast,
                    ignored,
                    multiples: vec![1, 2],
                    compare: Compare::Minimum,
                    match_center: true,
                    ..classic(0.0, 20.0)
                };
                pitch_threshold_job::check(&device, &input, &job, &pitch_threshold_job::CHOICES);
            }
        }
    }
}

/// Formats whose samples have 8 bits or 16, and their grey levels per grey level of 8 bits.
const SCALED: [(Format, u32); 4] = [
    (Format::Gray8, 1),
    (Format::Nv12, 1),
    (Format::Gray16Le, 256),
    (Format::Gray16Be, 256),
];

/// Jobs along x, along y and along both, with each kind of comparison; `distance` in px.
fn scaled(scales: usize, distance: f64, unit: u32) -> [Job; 4] {
    let base = Job {
        scales,
        scale_factors: vec![0.35, 0.25, 0.15, 0.02],
        ..classic(0.0, 52.0 * f64::from(unit))
    };
    [
        Job {
            pitch: [distance + 0.25, 0.0],
            ..base.clone()
        },
        Job {
            pitch: [0.0, distance],
            compare: Compare::Minimum,
            ..base.clone()
        },
        Job {
            pitch: [distance, distance + 0.5],
            compare: Compare::Minimum,
            polarity: Polarity::Bright,
            match_center: true,
            borders: Borders::Inward,
            ..base.clone()
        },
        Job {
            pitch: [distance / 2.0, distance / 2.0],
            multiples: vec![1, 2],
            ignored: vec![vec![-1.0, -1.0, 4.0, 0.5, 2.0, 4.0]],
            ..base
        },
    ]
}

/// Frames smaller than the windows of a level, single rows and columns, and frames in which all levels judge.
#[test]
fn small_scales_equal_reference() {
    let Some(device) = device::open() else { return };
    let wide = [[77, 1], [1, 77], [79, 75]].map(|size| (size, 13.0));
    let sizes = SIZES.map(|size| (size, 2.0)).into_iter().chain(wide);
    let mut marked = [[0; 5]; 4];
    for (n, (size, distance)) in sizes.enumerate() {
        for (m, (format, unit)) in SCALED.into_iter().enumerate() {
            let arrangement = [TIGHT, PADDED, PLAIN][(n + m) % 3];
            let input = Frame::showing(format, size, arrangement, Content::Stained, 0);
            let jobs = scaled([4, 1, 4, 3][m], distance, unit);
            for (j, (job, marked)) in jobs.iter().zip(&mut marked).enumerate() {
                // The kernels of GPUs, and those of CPUs.
                let choice = pitch_threshold_job::CHOICES[1 + (m + j) % 2];
                pitch_threshold_job::check(&device, &input, job, &[choice]);
                for level in job.levels(&input).into_iter().flatten() {
                    marked[level as usize] += 1;
                }
            }
        }
    }
    // Each job has pixels of which each level is the finest that marks them.
    let is_seen = marked.as_flattened().iter().all(|&pixels| pixels > 0);
    assert!(is_seen, "pixels by job and level: {marked:?}");
}

#[test]
fn small_texture_equals_reference() {
    let Some(device) = device::open() else { return };
    for (format, size, arrangement) in [
        (Format::Gray8, [9, 9], TIGHT),
        (Format::Gray8, [41, 35], PADDED),
        (Format::Gray16Be, [19, 10], TIGHT),
    ] {
        texture::check_small(&device, format, size, arrangement);
    }
}

#[test]
fn small_surface_equals_reference() {
    let Some(device) = device::open() else { return };
    for (format, size, arrangement) in [
        (Format::Gray8, [17, 17], TIGHT),
        (Format::Gray8, [41, 35], PADDED),
        (Format::Gray16Be, [22, 20], TIGHT),
    ] {
        surface_job::check_small(&device, format, size, arrangement);
    }
}
