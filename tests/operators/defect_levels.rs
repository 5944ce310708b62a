//! The levels of listed defects, and their differences at coarser levels, compared with the reference.

use clinspect_operators::{Borders, Compare, Polarity};
use gst_video::VideoFormat as Format;

use crate::{
    content::{Content, random},
    defects::{ALL, FEW, NEAR, check, expected},
    device,
    frames::{Arrangement, Frame, PADDED},
    oracle::{self, SampleKind},
    pitch_threshold_job::{CHOICES, Job, classic},
};

/// A uniform frame with noise, faint stains and a few clear spots.
fn stained(format: Format, size: [usize; 2], arrangement: Arrangement) -> Frame {
    let mut frame = Frame::showing(format, size, arrangement, Content::Constant(0), 0);
    let geometry = frame.geometry(0);
    let scale = if frame.kind() == SampleKind::U8 {
        1
    } else {
        256
    };
    // Left, top, diameter and difference.
    let stains: Vec<[i64; 4]> = (0..size[0] * size[1] / 1500 + 2)
        .map(|stain| {
            let draw = |what: usize, below: u32| i64::from(random(11, what, stain, 1) % below);
            let sign = if draw(3, 2) == 0 { -1 } else { 1 };
            let (diameter, level) = match stain % 3 {
                0 => (1 + draw(2, 4), 25),
                1 => (6 + draw(2, 6), 7),
                _ => (12 + draw(2, 12), 5),
            };
            let at = [draw(0, size[0] as u32), draw(1, size[1] as u32)];
            [at[0], at[1], diameter, sign * level]
        })
        .collect();
    let mut differences = vec![0; size[0] * size[1]];
    // Of stains over each other the first one is seen.
    for [left, top, diameter, difference] in stains.into_iter().rev() {
        let radius = diameter / 2;
        let side =
            |at: i64, length: usize| (at - radius).max(0)..(at + radius + 1).min(length as i64);
        for y in side(top, size[1]) {
            for x in side(left, size[0]) {
                let [dx, dy] = [2 * (x - left), 2 * (y - top)];
                if dx * dx + dy * dy <= diameter * diameter {
                    differences[y as usize * size[0] + x as usize] = difference;
                }
            }
        }
    }
    for y in 0..size[1] {
        for x in 0..size[0] {
            let noise = i64::from(random(12, x, y, 0) % 7) - 3;
            let level = 120 + noise + differences[y * size[0] + x];
            oracle::put(&mut frame.bytes, &geometry, x, y, scale * level as u32);
        }
    }
    frame
}

fn scaled(pitch: [f64; 2], scales: usize, threshold: f64) -> Job {
    Job {
        pitch,
        scales,
        ..classic(0.0, threshold)
    }
}

/// The levels of the defects that the reference lists.
fn levels(input: &Frame, job: &Job) -> Vec<u32> {
    let mut levels: Vec<u32> = (expected(input, job, &ALL).defects.iter())
        .map(|defect| defect.level)
        .collect();
    levels.sort_unstable();
    levels.dedup();
    levels
}

#[test]
fn levels_of_defects_in_every_mode_equal_reference() {
    let Some(device) = device::open() else { return };
    let input = stained(Format::Gray8, [157, 91], PADDED);
    let mut seen = Vec::new();
    for (pitch, multiples) in [
        ([27.35, 0.0], vec![1]),
        ([0.0, 22.6], vec![1, 2]),
        ([7.35, 5.5], vec![4]),
    ] {
        for compare in [Compare::Average, Compare::Minimum] {
            for (polarity, borders, min_contrast, match_center) in [
                (Polarity::Both, Borders::Inward, 0.0, true),
                (Polarity::Both, Borders::Skip, 2.0, false),
                (Polarity::Dark, Borders::Inward, 1.8, true),
            ] {
                let job = Job {
                    multiples: multiples.clone(),
                    compare,
                    polarity,
                    borders,
                    min_contrast,
                    match_center,
                    ..scaled(pitch, 4, 10.5)
                };
                check(&device, &input, &job, &CHOICES[..1], &[ALL, NEAR, FEW]);
                seen.extend(levels(&input, &job));
            }
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() > 3, "levels {seen:?} say little");
}

#[test]
fn levels_of_defects_in_every_variant_and_format_equal_reference() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Gray16Le, Format::Gray16Be] {
        let input = stained(format, [203, 67], PADDED);
        let scale = f64::from(1_u32 << (8 * (input.kind().size() - 1)));
        let job = Job {
            compare: Compare::Minimum,
            match_center: true,
            borders: Borders::Inward,
            ..scaled([31.35, 12.5], 3, 11.0 * scale)
        };
        let found = levels(&input, &job);
        assert!(found.len() > 1, "levels {found:?} say little");
        check(&device, &input, &job, &CHOICES, &[ALL, NEAR]);
    }
}

#[test]
fn levels_of_defects_in_regions_and_beside_ignored_pixels_equal_reference() {
    let Some(device) = device::open() else { return };
    let input = stained(Format::Gray8, [157, 91], PADDED);
    let job = Job {
        rois: vec![[9, 3, 60, 80], [70, 20, 80, 69]],
        ignored: vec![vec![30.0, 10.0, 60.0, 12.0, 40.0, 40.0]],
        ..scaled([27.35, 0.0], 3, 10.5)
    };
    let found = levels(&input, &job);
    assert!(found.len() > 1, "levels {found:?} say little");
    check(&device, &input, &job, &CHOICES, &[ALL, NEAR]);
}

/// A CPU looks for blocks that may be marked in groups of 128, and sums up to 1024 blocks together.
#[test]
fn levels_of_wide_frames_equal_reference() {
    let Some(device) = device::open() else { return };
    for width in [2 * 128 + 31, 1039, 2077] {
        let size = [width, 53];
        for (input, threshold) in [
            (stained(Format::Gray8, size, PADDED), 7.0),
            (
                Frame::showing(Format::Gray8, size, PADDED, Content::Random, 0),
                95.0,
            ),
            (
                Frame::showing(Format::Gray8, size, PADDED, Content::TwoRandom, 0),
                200.0,
            ),
        ] {
            for (compare, polarity, match_center) in [
                (Compare::Minimum, Polarity::Both, true),
                (Compare::Average, Polarity::Bright, false),
                (Compare::Average, Polarity::Dark, true),
            ] {
                let job = Job {
                    compare,
                    polarity,
                    match_center,
                    ..scaled([7.35, 5.5], 3, threshold)
                };
                check(&device, &input, &job, &CHOICES[..1], &[FEW]);
            }
        }
    }
}

/// A work-item of a GPU judges eight rows of blocks where a level has 2^18 blocks or more.
#[test]
fn large_levels_equal_reference() {
    let Some(device) = device::open() else { return };
    for (format, compare, polarity, rois) in [
        (
            Format::Gray8,
            Compare::Minimum,
            Polarity::Both,
            vec![[9, 3, 1000, 700], [70, 760, 961, 280]],
        ),
        (Format::Gray16Le, Compare::Average, Polarity::Dark, vec![]),
    ] {
        let input = stained(format, [1031, 1049], PADDED);
        let scale = f64::from(1_u32 << (8 * (input.kind().size() - 1)));
        let job = Job {
            compare,
            polarity,
            match_center: true,
            ignored: vec![vec![30.0, 10.0, 60.0, 12.0, 40.0, 40.0]],
            rois,
            ..scaled([27.35, 22.6], 3, 10.5 * scale)
        };
        let found = levels(&input, &job);
        assert!(found.len() > 2, "levels {found:?} say little");
        check(&device, &input, &job, &[CHOICES[0], CHOICES[3]], &[FEW]);
    }
}

#[test]
fn small_levels_equal_reference() {
    let Some(device) = device::open() else { return };
    for (format, size, pitch, scales, threshold) in [
        (Format::Gray8, [331, 17], [17.35, 0.0], 1, 10.5),
        (Format::Gray8, [101, 61], [21.35, 14.5], 2, 10.5),
        (Format::Gray16Le, [101, 61], [21.35, 14.5], 2, 10.5 * 256.0),
    ] {
        let input = stained(format, size, PADDED);
        let job = Job {
            compare: Compare::Minimum,
            match_center: true,
            ..scaled(pitch, scales, threshold)
        };
        let found = levels(&input, &job);
        assert!(
            found.iter().any(|&level| level > 0),
            "levels {found:?} say little"
        );
        check(&device, &input, &job, &CHOICES[..1], &[ALL]);
    }
}
