//! The pitch comparison whose comparisons are constants of the program, compared with the reference.
//! Each job has a program of its own, so they are few and drawn at random.

use clinspect_core::variant::PitchThresholdVariant;
use clinspect_operators::{Borders, Compare, Polarity};
use gst_video::VideoFormat as Format;

use crate::{
    content::{Content, random},
    device,
    frames::{Arrangement, Frame, PADDED, PLAIN, Stride},
    pitch_threshold_job::{Choice, Job, check, classic},
};

pub const FIXED: [Choice; 1] = [(Some(PitchThresholdVariant::Fixed), false)];

/// Rows at multiples of 16 bytes, as the kernel needs them, without and with padding.
pub const FITTING: [Arrangement; 3] = [
    Arrangement {
        stride: Stride::Multiple(16),
        ..PLAIN
    },
    Arrangement {
        stride: Stride::Multiple(64),
        ..PLAIN
    },
    Arrangement {
        stride: Stride::Multiple(4096),
        ..PLAIN
    },
];

/// A number below `limit`.
fn draw(job: usize, what: usize, limit: usize) -> usize {
    random(93, 0, job, what) as usize % limit
}

/// Job number `n`: every mode, borders, distances from one pixel on, several multiples.
fn any(n: usize) -> (Frame, Job) {
    let pick = |what, limit| draw(n, what, limit);
    let size = if n.is_multiple_of(3) {
        [20 + pick(0, 70), 1 + pick(1, 40)]
    } else {
        [100 + pick(0, 300), 20 + pick(1, 100)]
    };
    let content = [Content::Random, Content::Natural, Content::Random][pick(2, 3)];
    let input = Frame::showing(Format::Gray8, size, FITTING[n % FITTING.len()], content, 0);
    let fraction = [0, pick(3, 256), 128][pick(4, 3)];
    let distance = |what, n: usize| {
        let largest = (n / 2).saturating_sub(2).clamp(1, 14);
        (1 + pick(what, largest)) as f64 + fraction as f64 / 256.0
    };
    let pitch = [distance(5, size[0]), distance(6, size[1])];
    let along = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]][pick(7, 3)];
    let job = Job {
        pitch: [pitch[0] * along[0], pitch[1] * along[1]],
        multiples: [vec![1], vec![1, 4], vec![2, 3]][pick(8, 3)].clone(),
        compare: [Compare::Average, Compare::Minimum][pick(9, 2)],
        match_center: pick(10, 2) == 1,
        polarity: [Polarity::Both, Polarity::Bright, Polarity::Dark][pick(11, 3)],
        borders: [Borders::Inward, Borders::Skip][pick(12, 3) / 2],
        edge_margin: pick(13, 4) as u32,
        scales: 0,
        scale_factors: Vec::new(),
        min_contrast: [0.0, 4.0][pick(14, 2)],
        ..classic(0.0, [0.0, 0.5, 9.5, 37.3, 60.0][pick(15, 5)])
    };
    (input, job)
}

#[test]
fn pitch_threshold_of_fixed_comparisons_equals_reference() {
    let Some(device) = device::open() else { return };
    // PoCL compiles a job for seconds.
    let jobs = if device.caps().is_cpu { 12 } else { 48 };
    for n in 0..jobs {
        let (input, job) = any(n);
        check(&device, &input, &job, &FIXED);
    }
}

#[test]
fn pitch_threshold_of_fixed_comparisons_in_regions_equals_reference() {
    let Some(device) = device::open() else { return };
    let size = [203, 61];
    for (n, rois) in [
        vec![[0, 0, 203, 61]],
        vec![[17, 9, 1, 1], [40, 3, 100, 50]],
        vec![[3, 5, 77, 1], [199, 0, 4, 61]],
    ]
    .into_iter()
    .enumerate()
    {
        let input = Frame::showing(Format::Gray8, size, FITTING[n], Content::Random, 0);
        let job = Job {
            pitch: [7.35, 4.6],
            multiples: vec![1, 3],
            rois,
            ..any(1).1
        };
        check(&device, &input, &job, &FIXED);
    }
}

/// Rows that start at other bytes are read by the general kernel.
#[test]
fn pitch_threshold_of_fixed_comparisons_reads_any_layout() {
    let Some(device) = device::open() else { return };
    let odd = Arrangement {
        before: 8,
        stride: Stride::Multiple(16),
        ..PLAIN
    };
    for arrangement in [PADDED, odd, PLAIN] {
        let input = Frame::showing(Format::Gray8, [157, 33], arrangement, Content::Natural, 0);
        check(&device, &input, &classic(7.35, 9.5), &FIXED);
    }
}

#[test]
fn pitch_threshold_of_more_comparisons_than_a_program_holds_equals_reference() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray8, [130, 70], FITTING[0], Content::Natural, 0);
    let job = Job {
        pitch: [2.5, 2.25],
        multiples: vec![1, 2, 3, 4, 5],
        ..classic(0.0, 9.5)
    };
    check(&device, &input, &job, &FIXED);
}

#[test]
fn fixed_comparisons_of_16_bit_samples_are_refused() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray16Le, [64, 9], FITTING[0], Content::Natural, 0);
    check(&device, &input, &classic(7.35, 9.5), &FIXED);
}
