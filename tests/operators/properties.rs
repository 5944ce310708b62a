//! Random sizes, strides, formats, regions, pitches and kernels (proptest). The seed is fixed, so
//! every run and every device tests the same cases.

use std::cell::{Cell, RefCell};

use clinspect_core::{
    reference::check_size, scales::MAX_SCALES, surface::ChannelsInUse, variant::GaussianVariant,
};
use clinspect_opencl::frame::{FLAT_FORMATS, FORMATS, LUMA_FORMATS};
use clinspect_operators::{Borders, Compare, NormalizeBy, Polarity};
use gst_video::VideoFormat as Format;
use proptest::{
    prelude::*,
    test_runner::{RngSeed, TestRunner},
};

use crate::{
    content::Content,
    device,
    flat_field::{self, CorrectionCase},
    frames::{Arrangement, Frame, Owner, Split, Stride},
    gaussian, histogram_job,
    pitch_threshold_job::{self, Job},
    reference_job, surface_job,
};

/// Runs `test` on `cases` random values.
fn run<T: std::fmt::Debug>(cases: u32, values: impl Strategy<Value = T>, test: impl Fn(T)) {
    let config = ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(0x0c11_5bec),
        // The binary may run without a source tree.
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    TestRunner::new(config)
        .run(&values, |value| {
            test(value);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

fn arrangements(owners: &'static [Owner]) -> impl Strategy<Value = Arrangement> {
    let stride = prop_oneof![
        Just(Stride::Default),
        (0_usize..70).prop_map(Stride::Padded),
        prop::sample::select(vec![2_usize, 64, 4096]).prop_map(Stride::Multiple),
    ];
    let splits = if owners.len() > 1 {
        vec![Split::Whole, Split::Planes, Split::Middle]
    } else {
        vec![Split::Whole, Split::Planes]
    };
    (
        prop::sample::select(owners),
        prop::sample::select(splits),
        stride,
        0_usize..40,
        0_usize..17,
    )
        .prop_map(|(owner, split, stride, before, base)| Arrangement {
            owner,
            split,
            stride,
            before,
            base,
        })
}

fn frames(formats: Vec<Format>, bit_depth: u32) -> impl Strategy<Value = Frame> {
    (
        prop::sample::select(formats),
        1_usize..150,
        1_usize..30,
        arrangements(&[Owner::Ours, Owner::Foreign, Owner::Mixed]),
        prop::sample::select(Content::ALL.to_vec()),
    )
        .prop_map(move |(format, width, height, arrangement, content)| {
            Frame::showing(format, [width, height], arrangement, content, bit_depth)
        })
}

/// `<x, y, width, height>` inside a frame, from four numbers of 0..1.
fn region([width, height]: [usize; 2], at: [f64; 4]) -> [u32; 4] {
    let inside = |n: usize, from: f64, len: f64| {
        let start = (from * n as f64) as usize;
        (start as u32, 1 + (len * (n - start) as f64) as u32)
    };
    let (x, w) = inside(width, at[0], at[2]);
    let (y, h) = inside(height, at[1], at[3]);
    [x, y, w.min(width as u32 - x), h.min(height as u32 - y)]
}

fn fractions() -> impl Strategy<Value = [f64; 4]> {
    prop::array::uniform4(0.0..1.0)
}

#[test]
fn gaussian_random_frame_equals_reference() {
    let Some(device) = device::open() else { return };
    // Kernels that other tests compile too, because compilation takes longer than the run.
    let values = (
        frames(FORMATS.clone(), 0),
        prop::sample::select(vec![3_usize, 5]),
        prop_oneof![Just(0.0), 0.05..20.0],
        arrangements(&[Owner::Ours]),
    );
    run(150, values, |(input, taps, sigma, output)| {
        gaussian::check(&device, &input, (taps, sigma), &gaussian::CHOICES, output);
    });
}

#[test]
fn gaussian_random_tile_equals_reference() {
    let Some(device) = device::open() else { return };
    let values = (frames(vec![Format::Rgb], 0), 1_usize..40, 1_usize..9);
    run(12, values, |(input, columns, rows)| {
        let choice = (Some(GaussianVariant::Tile { columns, rows }), false);
        let output = Arrangement {
            owner: Owner::Ours,
            ..input.arrangement
        };
        if output.split != Split::Middle {
            gaussian::check(&device, &input, (5, 0.0), &[choice], output);
        }
    });
}

#[test]
fn flat_field_random_frame_equals_reference() {
    let Some(device) = device::open() else { return };
    let wanted = (
        any::<bool>(),
        any::<bool>(),
        0_u32..200,
        prop_oneof![Just(0), 1_u32..65_281],
    );
    let wanted = wanted.prop_map(|(line, has_dark, min_range, target)| CorrectionCase {
        line,
        has_dark,
        target,
        min_range,
    });
    let values = (
        frames(FLAT_FORMATS.clone(), 0),
        wanted,
        arrangements(&[Owner::Ours]),
    );
    run(120, values, |(input, wanted, output)| {
        flat_field::check(&device, &input, &wanted, &flat_field::CHOICES, output);
    });
}

#[test]
fn histogram_random_frame_and_region_equals_reference() {
    let Some(device) = device::open() else { return };
    let bins = prop::sample::select(vec![2_usize, 16, 128, 256]);
    let values = (frames(FORMATS.clone(), 0), bins, fractions());
    run(200, values, |(input, bins, at)| {
        let wanted = histogram_job::CountCase {
            bins,
            bit_depth: 0,
            region: region(input.size(), at),
        };
        histogram_job::check(&device, &input, &wanted, &histogram_job::CHOICES);
    });
}

fn jobs(highest: f64) -> impl Strategy<Value = (Job, Vec<[f64; 4]>)> {
    let pitch = || prop_oneof![1 => Just(0.0), 2 => 1.0..12.0_f64, 1 => 1.0..80.0_f64];
    (
        (pitch(), pitch()),
        prop::sample::subsequence(vec![1_u32, 2, 4, 9], 1..=3),
        0.0..0.5_f64,
        prop::sample::select(vec![Compare::Average, Compare::Minimum]),
        any::<bool>(),
        prop::sample::select(vec![Polarity::Both, Polarity::Bright, Polarity::Dark]),
        prop::collection::vec(fractions(), 0..4),
        (
            prop::sample::select(vec![Borders::Inward, Borders::Skip]),
            prop_oneof![Just(0_u32), Just(2), 0_u32..40],
            prop_oneof![Just(0.0), 0.1..90.0_f64],
            0_usize..5,
            prop::collection::vec(0.005..0.7_f64, 4),
        ),
    )
        .prop_map(
            move |(
                (x, y),
                multiples,
                threshold,
                compare,
                match_center,
                polarity,
                regions,
                (borders, edge_margin, min_contrast, scales, scale_factors),
            )| {
                let threshold = threshold * highest;
                // Thresholds of levels under 1/256 grey level are refused.
                let is_usable = scale_factors.iter().all(|f| f * threshold > 0.01);
                let job = Job {
                    // At least one axis.
                    pitch: [if x + y > 0.0 { x } else { 1.5 }, y],
                    vectors: Vec::new(),
                    multiples,
                    threshold,
                    compare,
                    match_center,
                    polarity,
                    borders,
                    edge_margin,
                    scales: if is_usable { scales } else { 0 },
                    scale_factors,
                    min_contrast,
                    rois: Vec::new(),
                    ignored: Vec::new(),
                    bit_depth: 0,
                };
                (job, regions)
            },
        )
}

#[test]
fn pitch_threshold_random_frame_region_and_mode_equals_reference() {
    let Some(device) = device::open() else { return };
    let values = (frames(LUMA_FORMATS.clone(), 0), jobs(255.0));
    // Points within the frame and up to half its size beyond it.
    let point = || (-0.5..1.5_f64, -0.5..1.5_f64);
    let polygon = prop::collection::vec(point(), 3..6);
    let values = (values, prop::collection::vec(polygon, 0..3));
    run(250, values, |((input, (mut job, regions)), polygons)| {
        let [width, height] = input.size().map(|n| n as f64);
        let numbers = |polygon: &Vec<(f64, f64)>| {
            let points = polygon.iter().map(|(x, y)| [x * width, y * height]);
            points.collect::<Vec<_>>().concat()
        };
        job.ignored = polygons.iter().map(numbers).collect();
        job.rois = regions.iter().map(|&at| region(input.size(), at)).collect();
        pitch_threshold_job::check(&device, &input, &job, &pitch_threshold_job::CHOICES);
    });
}

#[test]
fn pitch_threshold_random_16_bit_frame_equals_reference() {
    let Some(device) = device::open() else { return };
    let formats = vec![Format::Gray16Le, Format::Gray16Be];
    run(
        80,
        (frames(formats, 12), jobs(4095.0)),
        |(input, (mut job, regions))| {
            job.bit_depth = 12;
            job.rois = regions.iter().map(|&at| region(input.size(), at)).collect();
            pitch_threshold_job::check(&device, &input, &job, &pitch_threshold_job::CHOICES);
        },
    );
}

/// In each case the levels have something to mark; the cases above have scales, too, but nearly all of their marks
/// are those of pixels.
#[test]
fn pitch_threshold_random_stained_frame_equals_reference_at_every_level() {
    let Some(device) = device::open() else { return };
    let frames = (
        prop::sample::select(LUMA_FORMATS.to_vec()),
        1_usize..200,
        1_usize..130,
        arrangements(&[Owner::Ours, Owner::Foreign]),
    );
    let pitch = || prop_oneof![1 => Just(0.0), 3 => 1.0..16.0_f64];
    let levels = ([pitch(), pitch()], 1..=MAX_SCALES, 20.0..70.0_f64);
    let cases = Cell::new(0);
    // The cases with pixels of which each level is the finest that marks them.
    let by_level = RefCell::new([0; MAX_SCALES + 1]);
    run(
        250,
        (frames, jobs(255.0), levels),
        |(
            (format, width, height, arrangement),
            (mut job, regions),
            ([x, y], scales, threshold),
        )| {
            let input = Frame::showing(format, [width, height], arrangement, Content::Stained, 0);
            job.pitch = [if x + y > 0.0 { x } else { 1.5 }, y];
            job.scales = scales;
            job.threshold = threshold * f64::from(1_u32 << (8 * (input.kind().size() - 1)));
            // Means of more pixels differ less.
            for (level, factor) in job.scale_factors.iter_mut().enumerate() {
                *factor /= ((level + 1) * (level + 1)) as f64;
            }
            job.rois = (regions.iter().take(1))
                .map(|&at| region(input.size(), at))
                .collect();
            pitch_threshold_job::check(&device, &input, &job, &pitch_threshold_job::CHOICES[..3]);
            cases.set(cases.get() + 1);
            let found = job.levels(&input);
            for (level, cases) in by_level.borrow_mut().iter_mut().enumerate() {
                *cases += u32::from(found.contains(&Some(level as u32)));
            }
        },
    );
    let (found, cases) = (by_level.into_inner(), cases.get());
    let least = [3, 3, 6, 12, 100].map(|part| cases / part);
    assert!(
        found
            .iter()
            .zip(least)
            .all(|(&found, least)| found >= least),
        "of {cases} cases, by level: {found:?}, less than {least:?}"
    );
}

fn reference_jobs() -> impl Strategy<Value = (reference_job::Job, Vec<[f64; 4]>, bool)> {
    let levels = (
        0.0..60.0_f64,
        prop_oneof![Just(0.0), 0.0..5.0_f64],
        0..4_u32,
    );
    let normalize = [NormalizeBy::None, NormalizeBy::Offset, NormalizeBy::Gain];
    let choices = (
        prop::sample::select(vec![Polarity::Both, Polarity::Bright, Polarity::Dark]),
        prop::sample::select(normalize.to_vec()),
        prop::option::of(1..12_u32),
        prop::sample::select(vec![0, 0, 3]),
        [-30..=30_i64, -30..=30_i64],
    );
    let regions = prop::collection::vec(fractions(), 0..3);
    (levels, choices, regions, any::<(bool, u64)>()).prop_map(
        |((threshold, deviation_factor, edge_tolerance), choices, regions, (ignores, seed))| {
            let (polarity, normalize, search_range, opening, moved) = choices;
            let job = reference_job::Job {
                threshold,
                deviation_factor,
                edge_tolerance,
                polarity,
                normalize,
                search_range,
                opening,
                moved: crate::oracle::trained::Motion::shift(moved),
                seed,
                ..reference_job::PLAIN_JOB
            };
            (job, regions, ignores)
        },
    )
}

#[test]
fn comparison_with_a_random_reference_equals_reference() {
    let Some(device) = device::open() else { return };
    let frames = frames(LUMA_FORMATS.to_vec(), 0);
    run(
        200,
        (frames, reference_jobs()),
        |(input, (mut job, regions, ignores))| {
            let [width, height] = input.size();
            job.search_range = (job.search_range)
                .filter(|&range| check_size(input.size(), range as usize).is_ok());
            job.rois = regions.iter().map(|&at| region(input.size(), at)).collect();
            if ignores {
                let (right, bottom) = (width as f64 * 0.7, height as f64 * 0.6);
                job.ignored = vec![vec![2.3, 0.0, right, bottom / 3.0, right / 2.0, bottom]];
            }
            reference_job::check(&device, &input, &job);
        },
    );
}

#[test]
fn random_surface_equals_reference() {
    let Some(device) = device::open() else { return };
    let frames = (
        prop::sample::select(LUMA_FORMATS.to_vec()),
        17_usize..140,
        17_usize..90,
        arrangements(&[Owner::Ours, Owner::Foreign, Owner::Mixed]),
        prop::sample::select(Content::ALL.to_vec()),
    );
    let limits = [0.0..20.0, 0.0..3.0];
    run(
        60,
        (frames, limits, 0_u32..7, prop::option::of(fractions())),
        |((format, width, height, arrangement, content), limits, unused, at)| {
            let size = [width, height];
            let input = Frame::showing(format, size, arrangement, content, 0);
            let job = surface_job::Job {
                channels: ChannelsInUse {
                    novelty: unused & 1 == 0,
                    dark_lines: unused & 2 == 0,
                    bright_lines: unused & 4 == 0,
                },
                limits,
                rois: at.iter().map(|&at| region(size, at)).collect(),
                ..surface_job::JOB
            };
            surface_job::check(&device, &input, &job);
        },
    );
}
