//! `operators::PitchThreshold`: the golden vectors of docs/semantics.md, the mistakes of published kernels,
//! formats, sizes, memories. The modes are in `pitch_threshold_modes.rs`.

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::{region::Rect, variant::PitchThresholdVariant};
use clinspect_opencl::ClContext;
use clinspect_opencl::frame::{LUMA_FORMATS, layout_of};
use clinspect_operators::{
    Borders, Compare, Contrast, Inspection, PitchThreshold, PitchThresholdSettings, Polarity,
    Repeating,
};
use gst_video::VideoFormat as Format;

use crate::{
    SIZES,
    content::Content,
    device,
    frames::{ARRANGEMENTS, Arrangement, Frame, Owner, PADDED, PLAIN, Split, Stride},
    oracle,
    pitch_threshold_job::{CHOICES, Job, check, classic},
};

/// A GRAY8 frame of zeros with these samples.
fn grey(size: [usize; 2], arrangement: Arrangement, samples: &[(usize, usize, u32)]) -> Frame {
    sparse(Format::Gray8, size, arrangement, samples)
}

pub fn sparse(
    format: Format,
    size: [usize; 2],
    arrangement: Arrangement,
    samples: &[(usize, usize, u32)],
) -> Frame {
    let mut frame = Frame::showing(format, size, arrangement, Content::Constant(0), 0);
    let geometry = frame.geometry(0);
    for &(x, y, value) in samples {
        oracle::put(&mut frame.bytes, &geometry, x, y, value);
    }
    frame
}

/// Asserts the packed mask of one row, for every choice.
#[track_caller]
fn check_golden(device: &Arc<ClContext>, input: &Frame, job: &Job, golden: [u8; 8]) {
    assert_eq!(job.expected(input).packed, golden, "the reference");
    check(device, input, job, &CHOICES);
}

#[test]
fn pitch_threshold_golden_vector_average_marks_the_defect_and_its_ghost() {
    let Some(device) = device::open() else { return };
    let input = grey([64, 1], PLAIN, &[(10, 0, 50), (20, 0, 150), (30, 0, 50)]);
    let job = Job {
        rois: vec![[10, 0, 54, 1]],
        ..classic(10.0, 10.0)
    };
    check_golden(
        &device,
        &input,
        &job,
        [0x00, 0x20, 0x08, 0x02, 0x00, 0x80, 0x00, 0x00],
    );
}

#[test]
fn pitch_threshold_golden_vector_minimum_marks_the_defect_alone() {
    let Some(device) = device::open() else { return };
    let input = grey([64, 1], PLAIN, &[(10, 0, 50), (20, 0, 150), (30, 0, 50)]);
    let job = Job {
        rois: vec![[10, 0, 54, 1]],
        compare: Compare::Minimum,
        ..classic(10.0, 10.0)
    };
    check_golden(
        &device,
        &input,
        &job,
        [0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00],
    );
}

#[test]
fn pitch_threshold_golden_vector_half_pixel_pitch_meets_its_threshold_exactly() {
    let Some(device) = device::open() else { return };
    let samples = [
        (10, 0, 50),
        (11, 0, 100),
        (20, 0, 125),
        (29, 0, 50),
        (30, 0, 100),
    ];
    let input = grey([64, 1], PLAIN, &samples);
    let job = |threshold| Job {
        rois: vec![[10, 0, 54, 1]],
        ..classic(9.5, threshold)
    };
    check_golden(
        &device,
        &input,
        &job(50.0),
        [0x00, 0x10, 0x0c, 0x02, 0x00, 0x00, 0x00, 0x00],
    );
    check_golden(
        &device,
        &input,
        &job(50.01),
        [0x00, 0x10, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00],
    );
}

#[test]
fn pitch_threshold_every_format_and_size_equals_reference() {
    let Some(device) = device::open() else { return };
    for (f, &format) in LUMA_FORMATS.iter().enumerate() {
        for (i, &size) in SIZES.iter().enumerate() {
            let arrangement = ARRANGEMENTS[(f + i) % ARRANGEMENTS.len()];
            let input = Frame::showing(format, size, arrangement, Content::Random, 0);
            let highest = f64::from((1_u32 << (8 * input.kind().size())) - 1);
            for pitch in [[1.0, 0.0], [0.0, 2.6], [7.35, 1.5]] {
                let job = Job {
                    pitch,
                    ..classic(0.0, 0.2 * highest)
                };
                check(&device, &input, &job, &CHOICES);
                let inward = Job {
                    borders: Borders::Inward,
                    // Near the deviation of random samples, so that some tiles are missing.
                    min_contrast: 73.0,
                    ..job
                };
                check(&device, &input, &inward, &CHOICES);
            }
        }
    }
}

#[test]
fn pitch_threshold_every_arrangement_of_memory_equals_reference() {
    let Some(device) = device::open() else { return };
    for format in [
        Format::Gray8,
        Format::I420,
        Format::Nv12,
        Format::Gray16Le,
        Format::Gray16Be,
    ] {
        for size in [[15, 3], [97, 9]] {
            for arrangement in ARRANGEMENTS {
                let input = Frame::showing(format, size, arrangement, Content::TwoRandom, 0);
                check(&device, &input, &classic(3.3, 20.0), &CHOICES);
            }
        }
    }
}

#[test]
fn pitch_threshold_every_content_equals_reference() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Gray16Le, Format::Gray16Be] {
        for content in Content::ALL {
            let input = Frame::showing(format, [131, 23], PADDED, content, 0);
            let job = Job {
                pitch: [7.35, 7.35],
                compare: Compare::Minimum,
                match_center: true,
                ..classic(0.0, 12.25)
            };
            check(&device, &input, &job, &CHOICES);
        }
    }
}

// ---- borders and presence -------------------------------------------------------------------

#[test]
fn pitch_threshold_inward_in_every_mode_equals_reference() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Gray16Le] {
        let input = Frame::showing(format, [301, 91], PADDED, Content::Random, 0);
        let highest = f64::from((1_u32 << (8 * input.kind().size())) - 1);
        for (compare, match_center) in [
            (Compare::Average, false),
            (Compare::Average, true),
            (Compare::Minimum, false),
            (Compare::Minimum, true),
        ] {
            for (pitch, multiples) in [
                ([7.35, 0.0], vec![1, 4]),
                ([0.0, 7.35], vec![1, 4]),
                // 3 distances and a pixel, one pixel less, and far less.
                ([100.0, 30.0], vec![1]),
                ([100.002, 30.34], vec![1]),
                ([140.0, 44.5], vec![1]),
                // Whole distances, whose double is whole or not.
                ([9.0, 9.5], vec![1, 2]),
            ] {
                let job = Job {
                    pitch,
                    multiples,
                    compare,
                    match_center,
                    borders: Borders::Inward,
                    ..classic(0.0, 0.25 * highest)
                };
                check(&device, &input, &job, &CHOICES);
            }
        }
    }
}

#[test]
fn pitch_threshold_inward_judges_every_pixel_from_three_distances_and_a_pixel() {
    let Some(device) = device::open() else { return };
    let judged = |width: usize| {
        let input = Frame::showing(Format::Gray8, [width, 4], PLAIN, Content::Random, 0);
        let job = Job {
            borders: Borders::Inward,
            ..classic(10.0, 30.0)
        };
        check(&device, &input, &job, &CHOICES);
        job.expected(&input).judged_pixels
    };
    assert_eq!(judged(31), 31 * 4);
    assert!(judged(29) < 29 * 4);
}

#[test]
fn pitch_threshold_tiles_without_the_pattern_are_marked_on_every_frame() {
    let Some(device) = device::open() else { return };
    let pattern = |x: usize, y: usize| 100 + 40 * u32::from(x % 8 < 4) + 20 * u32::from(y % 12 < 6);
    for format in [Format::Gray8, Format::Gray16Le] {
        for size in [[200, 120], [203, 123], [131, 17], [9, 130]] {
            for arrangement in [PLAIN, PADDED, ARRANGEMENTS[5]] {
                let mut input = Frame::showing(format, size, arrangement, Content::Constant(0), 0);
                let geometry = input.geometry(0);
                let depth = 8 * input.kind().size() as u32;
                for y in 0..size[1] {
                    for x in 0..size[0] {
                        // A hole of 60 x 50 pixels, 20 rows at the end, and darkness from the right.
                        let is_gone = (40..100).contains(&x) && (30..80).contains(&y)
                            || y + 20 >= size[1] && y > 20;
                        let level = if is_gone { 60 } else { pattern(x, y) };
                        let level = if x + 40 > size[0] && x > 30 {
                            level / 8
                        } else {
                            level
                        };
                        oracle::put(&mut input.bytes, &geometry, x, y, level << (depth - 8));
                    }
                }
                let highest = f64::from((1_u32 << depth) - 1);
                for (pitch, borders) in [
                    ([8.0, 0.0], Borders::Skip),
                    ([0.0, 12.0], Borders::Inward),
                    ([8.0, 12.0], Borders::Inward),
                    ([16.0, 24.0], Borders::Inward),
                ] {
                    let [width, height] = size;
                    if (width as f64) < 2.0 * pitch[0] + 1.0
                        || (height as f64) < 2.0 * pitch[1] + 1.0
                    {
                        continue;
                    }
                    let job = Job {
                        pitch,
                        borders,
                        min_contrast: 5.0,
                        rois: vec![[0, 0, width as u32 - 3, height as u32]],
                        ..classic(0.0, 0.3 * highest)
                    };
                    // The narrow frame lies left of the hole.
                    assert_eq!(
                        job.expected(&input).missing_pixels > 0,
                        width > 9 || pitch[1] > 20.0
                    );
                    check(&device, &input, &job, &CHOICES);
                }
            }
        }
    }
}

#[test]
fn pitch_threshold_contrast_is_learned_where_the_pattern_is_seen() {
    let Some(device) = device::open() else { return };
    let learn = |input: &Frame, job: &Job| -> Vec<Option<f64>> {
        let layout = layout_of(&input.info).expect("a layout");
        let choices = [
            None,
            Some(PitchThresholdVariant::Bytes),
            Some(PitchThresholdVariant::Words),
        ];
        choices
            .into_iter()
            .map(|variant| {
                let settings = PitchThresholdSettings {
                    contrast: Contrast::Unknown,
                    ..job.settings(input, (variant, false))
                };
                let mut operator = PitchThreshold::new(&device, &layout, &settings).expect("runs");
                assert_eq!(operator.basis().judged.any, 0);
                let meter = clinspect_opencl::Meter::new(false);
                operator
                    .learn_contrast(&input.import(&device), layout.height, [false; 2], &meter)
                    .expect("looks for the pattern")
            })
            .collect()
    };
    let stripes = |format, period: [usize; 2]| {
        let mut input = Frame::showing(format, [157, 90], PADDED, Content::Constant(0), 0);
        let geometry = input.geometry(0);
        let depth = 8 * input.kind().size() as u32;
        for y in 0..90 {
            for x in 0..157 {
                let level = 90
                    + 70 * u32::from(2 * (x % period[0]) < period[0])
                    + 31 * u32::from(2 * (y % period[1]) < period[1])
                    + ((x * 7 + y * 13) % 5) as u32;
                oracle::put(&mut input.bytes, &geometry, x, y, level << (depth - 8));
            }
        }
        input
    };
    let job = |pitch| Job {
        pitch,
        ..classic(0.0, 10.0)
    };
    for format in [Format::Gray8, Format::Gray16Be] {
        let input = stripes(format, [12, 10]);
        for pitch in [
            [12.0, 0.0],
            [0.0, 10.0],
            [12.0, 10.0],
            [12.25, 9.9],
            [24.0, 10.0],
        ] {
            let expected = oracle::pitch_threshold::contrast(
                input.component(0),
                &job(pitch).oracle(input.size()),
            );
            assert!(
                expected.is_some_and(|contrast| contrast > 10.0),
                "{pitch:?} {expected:?}"
            );
            assert_eq!(
                learn(&input, &job(pitch)),
                [expected; 3],
                "{format:?} {pitch:?}"
            );
        }
        for pitch in [[6.0, 0.0], [6.0, 10.0], [18.0, 0.0]] {
            assert_eq!(
                learn(&input, &job(pitch)),
                [None; 3],
                "{format:?} {pitch:?}"
            );
        }
    }
    let noise = Frame::showing(Format::Gray8, [157, 90], PLAIN, Content::Random, 0);
    assert_eq!(learn(&noise, &job([12.0, 0.0])), [None; 3]);
    let flat = Frame::showing(Format::Gray8, [157, 90], PLAIN, Content::Constant(128), 0);
    assert_eq!(learn(&flat, &job([12.0, 0.0])), [None; 3]);
}

// ---- mistakes that published kernels make ---------------------------------------------------

#[test]
fn pitch_threshold_taps_never_leave_their_row() {
    let Some(device) = device::open() else { return };
    // Rows without padding, so that a tap outside the row reads the next row; at most one column is judged.
    let tight = Arrangement {
        owner: Owner::Foreign,
        split: Split::Whole,
        stride: Stride::Padded(0),
        before: 0,
        base: 0,
    };
    for (width, pitch, judged) in [(21, 10.0, 1), (20, 10.0, 0), (21, 9.5, 1), (20, 9.996, 0)] {
        let input = Frame::showing(Format::Gray8, [width, 5], tight, Content::Random, 0);
        let job = classic(pitch, 0.0);
        assert_eq!(job.expected(&input).judged_pixels, 5 * judged);
        check(&device, &input, &job, &CHOICES);
    }
}

#[test]
fn pitch_threshold_region_7_to_70_keeps_its_last_columns() {
    let Some(device) = device::open() else { return };
    // At T = 0 every judged pixel is marked.
    let input = Frame::showing(Format::Gray8, [80, 2], PLAIN, Content::Random, 0);
    let job = Job {
        rois: vec![[7, 0, 64, 2]],
        ..classic(3.0, 0.0)
    };
    let expected = job.expected(&input);
    assert!((7..=70).all(|x| expected.mask[x]) && !expected.mask[71]);
    check(&device, &input, &job, &CHOICES);
}

#[test]
fn pitch_threshold_rows_of_a_width_that_is_no_multiple_of_8_share_no_byte() {
    let Some(device) = device::open() else { return };
    for width in [9, 12, 15, 31, 33, 39] {
        let input = Frame::showing(Format::Gray8, [width, 7], PLAIN, Content::Random, 0);
        check(&device, &input, &classic(2.0, 0.0), &CHOICES);
    }
}

#[test]
fn pitch_threshold_source_stride_is_not_taken_as_the_width() {
    let Some(device) = device::open() else { return };
    for padding in [1, 3, 64, 4000] {
        let arrangement = Arrangement {
            stride: Stride::Padded(padding),
            ..PADDED
        };
        let input = Frame::showing(Format::Gray8, [40, 9], arrangement, Content::Random, 0);
        for pitch in [[4.5, 0.0], [0.0, 3.0]] {
            let job = Job {
                pitch,
                ..classic(0.0, 60.0)
            };
            check(&device, &input, &job, &CHOICES);
        }
    }
}

#[test]
fn pitch_threshold_bytes_outside_the_region_are_written() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray8, [120, 9], PLAIN, Content::Random, 0);
    let job = Job {
        rois: vec![[50, 4, 5, 1]],
        ..classic(3.0, 0.0)
    };
    assert_eq!(job.expected(&input).defect_pixels, 5);
    // `check` poisons the mask first and compares every byte.
    check(&device, &input, &job, &CHOICES);
}

#[test]
fn pitch_threshold_difference_is_not_cut_to_8_bits() {
    let Some(device) = device::open() else { return };
    let job = |threshold| Job {
        polarity: Polarity::Bright,
        ..classic(10.0, threshold)
    };
    // E/512 is 255 and more than 255·256 before it is scaled; then exactly 256 levels.
    let input = grey([40, 1], PLAIN, &[(20, 0, 255)]);
    assert_eq!(job(255.0).expected(&input).defect_pixels, 1);
    check(&device, &input, &job(255.0), &CHOICES);
    for format in [Format::Gray16Le, Format::Gray16Be] {
        let input = sparse(format, [40, 1], PLAIN, &[(20, 0, 256)]);
        for (threshold, marked) in [(1.0, 1), (256.0, 1), (256.01, 0)] {
            assert_eq!(job(threshold).expected(&input).defect_pixels, marked);
            check(&device, &input, &job(threshold), &CHOICES);
        }
    }
}

#[test]
fn pitch_threshold_weights_sum_to_256_on_a_constant_frame() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Gray16Le] {
        let input = Frame::showing(format, [97, 33], PADDED, Content::Constant(255), 0);
        for pitch in [3.004, 3.25, 3.5, 3.996] {
            // θ = 1: one 256th of a level would be marked.
            let job = Job {
                pitch: [pitch, pitch],
                match_center: true,
                ..classic(0.0, 1.0 / 256.0)
            };
            assert_eq!(job.expected(&input).defect_pixels, 0);
            check(&device, &input, &job, &CHOICES);
        }
    }
}

// ---- refusals -------------------------------------------------------------------------------

#[track_caller]
fn assert_refused(
    device: &Arc<ClContext>,
    input: &Frame,
    settings: &PitchThresholdSettings,
    word: &str,
) {
    match PitchThreshold::new(device, &layout_of(&input.info).unwrap(), settings) {
        Err(ClError::Refused(text)) => assert!(text.contains(word), "{text}"),
        other => panic!("{settings:?}: {other:?} is no refusal"),
    }
}

#[test]
fn pitch_threshold_settings_that_mean_nothing_are_refused() {
    let Some(device) = device::open() else { return };
    let input = Frame::poisoned(Format::Gray8, [32, 9], PLAIN, 0);
    let good = classic(4.0, 10.0).settings(&input, CHOICES[0]);
    let refused = |change: &dyn Fn(&mut PitchThresholdSettings), word: &str| {
        let mut settings = good.clone();
        change(&mut settings);
        assert_refused(&device, &input, &settings, word);
    };
    refused(&|s| s.pitch_x = 0.0, "no pitch is set");
    refused(&|s| s.pitch_x = -1.0, "no pitch is set");
    for pitch in [0.5, f64::NAN, f64::INFINITY, 1e30] {
        refused(&|s| s.pitch_x = pitch, "pitch-x");
        refused(&|s| s.pitch_y = pitch, "pitch-y");
    }
    refused(&|s| s.multiples.clear(), "multiples");
    refused(&|s| s.multiples = vec![1, 0], "multiples");
    for threshold in [-0.1, 255.1, f64::NAN, f64::INFINITY] {
        refused(&|s| s.threshold = threshold, "threshold");
    }
    refused(&|s| s.bit_depth = 10, "bit-depth");
    refused(
        &|s| (s.image, s.variant) = (true, Some(PitchThresholdVariant::Words)),
        "image",
    );
}

#[test]
fn pitch_threshold_so_wide_that_nothing_can_be_judged_is_refused() {
    let Some(device) = device::open() else { return };
    let input = Frame::poisoned(Format::Gray8, [32, 9], PLAIN, 0);
    let job = |pitch, rois: &[Rect]| PitchThresholdSettings {
        pitch_x: pitch,
        rois: rois.to_vec(),
        ..classic(1.0, 10.0).settings(&input, CHOICES[0])
    };
    for pitch in [15.51, 16.0, 31.0, 4000.0] {
        assert_refused(&device, &input, &job(pitch, &[]), "can be judged");
    }
    // One direction can be judged, the other cannot: defects along the other would pass.
    for (pitch_x, pitch_y, name) in [(16.0, 2.0, "pitch-x"), (10.0, 5.0, "pitch-y")] {
        let settings = PitchThresholdSettings {
            pitch_y,
            ..job(pitch_x, &[])
        };
        assert_refused(&device, &input, &settings, name);
    }
    // The frame has judged pixels, the region has none.
    let settings = job(10.0, &[Rect::new(0, 0, 10, 9), Rect::new(22, 0, 10, 9)]);
    assert_refused(&device, &input, &settings, "can be judged");
    let whole = job(10.0, &[]);
    assert_eq!(
        whole.judged_pixels(&whole.comparisons().unwrap(), 32, 9),
        12 * 9
    );
}
