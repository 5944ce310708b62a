//! `PitchThreshold::list` compared with the reference, and `Probe` with the frame's samples.

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::{
    components::{Finder, Limits, Listed},
    lattice_estimate::{Crop, middle},
    pitch::Axis,
    pitch_estimate::{MAX_PROBE_LINES, probe_lines},
    variant::PitchThresholdVariant,
    window::Window,
};
use clinspect_opencl::frame::{ClFrame, LUMA_FORMATS, layout_of};
use clinspect_opencl::{ClContext, Meter, buffer_of};
use clinspect_operators::{
    Borders, Compare, Inspection, MaskTarget, MiddleProbe, PitchThreshold, Polarity, Probe, Subject,
};
use gst_video::VideoFormat as Format;

use crate::{
    SIZES,
    content::{Content, random},
    device,
    frames::{
        ARRANGEMENTS, Arrangement, Frame, OUTPUT_ARRANGEMENTS, OUTPUT_POISON, PADDED, PLAIN,
        our_memory,
    },
    oracle::{
        SampleKind,
        defects::{List, Rules, Web, defects_of_web},
        pitch_threshold as oracle, put,
    },
    pitch_threshold_job::{CHOICES, Choice, Job, classic},
};
use clinspect_testkit::picture::{MaskLayout, Picture, equals};

/// List every defect; merge none.
pub const ALL: Limits = Limits {
    min_area: 1,
    merge_distance: 0,
    max_defects: 100_000,
    max_runs: usize::MAX,
    max_defect_rows: u32::MAX,
};
pub const NEAR: Limits = Limits {
    merge_distance: 3,
    ..ALL
};
const LARGE: Limits = Limits { min_area: 4, ..ALL };
/// Fewer defects than most frames here have.
pub const FEW: Limits = Limits {
    min_area: 2,
    merge_distance: 1,
    max_defects: 3,
    ..ALL
};
const LIMITS: [Limits; 4] = [ALL, NEAR, LARGE, FEW];

/// The rules of the reference.
pub fn rules(limits: &Limits) -> Rules {
    Rules {
        min_area: limits.min_area,
        merge_distance: limits.merge_distance,
        max_defects: limits.max_defects,
        max_defect_rows: limits.max_defect_rows,
    }
}

/// The list of the reference.
pub fn expected(input: &Frame, job: &Job, limits: &Limits) -> List {
    expected_of_web(input, job, &[input.size()[1]], limits).remove(0)
}

/// The lists of the reference for strips of a frame that is compared as a whole.
fn expected_of_web(input: &Frame, job: &Job, heights: &[usize], limits: &Limits) -> Vec<List> {
    let samples = input.component(0);
    let settings = job.oracle(input.size());
    let web = Web {
        mask: &oracle::compare(samples, &settings).mask,
        differences: &oracle::difference(samples, &settings),
        levels: &oracle::finest_level(samples, &settings),
        width: samples.width,
    };
    defects_of_web(web, heights, &rules(limits))
}

/// Asserts that the lists are equal, defect by defect.
#[track_caller]
pub fn assert_listed(listed: &Listed, wanted: &List, about: impl Fn() -> String) {
    for (at, (found, wanted)) in listed.defects.iter().zip(&wanted.defects).enumerate() {
        assert!(
            equals(found, wanted),
            "{}, defect {at}: {found:?}, expected {wanted:?}",
            about()
        );
    }
    let found = (listed.defects.len(), listed.overflow, listed.largest_open);
    let wanted = (wanted.defects.len(), wanted.overflow, wanted.largest_open);
    assert_eq!(found, wanted, "{}", about());
}

/// The operator for a job; `None` if the choice must be refused, which is asserted.
#[track_caller]
fn operator(
    device: &Arc<ClContext>,
    input: &Frame,
    job: &Job,
    choice: Choice,
) -> Option<PitchThreshold> {
    let layout = layout_of(&input.info).expect("a layout");
    let made = PitchThreshold::new(device, &layout, &job.settings(input, choice));
    let refused = job.is_blind(input)
        || choice.1 && (input.kind() != SampleKind::U8 || !device::has_images(device))
        || choice.0 == Some(PitchThresholdVariant::Fixed) && input.kind() != SampleKind::U8;
    match made {
        Err(ClError::Refused(_)) if refused => None,
        Ok(operator) if !refused => Some(operator),
        other => panic!("{} {job:?} {choice:?}: {other:?}", input.describe()),
    }
}

/// Runs and lists with a packed mask at an offset in one of our memories.
fn list_packed(
    device: &Arc<ClContext>,
    operator: &mut PitchThreshold,
    input: &Frame,
    frame: &ClFrame,
    limits: &[Limits],
) -> Vec<Listed> {
    const AROUND: usize = 5;
    let meter = Meter::new(false);
    let [width, height] = input.size();
    let len = width.div_ceil(8) * height;
    let bytes = vec![OUTPUT_POISON; len + 2 * AROUND];
    let memory = our_memory(device, &meter, &bytes, 3);
    let target = MaskTarget::Packed {
        buffer: buffer_of(&memory).expect("memory of ours"),
        offset: memory.offset() + AROUND,
    };
    let subject = Subject::whole(frame, input.size()[1], &meter);
    operator.mark(subject, target).expect("the comparison runs");
    limits
        .iter()
        .map(|limits| {
            operator
                .list(subject, target, &mut Finder::default(), limits)
                .expect("the list is made")
        })
        .collect()
}

/// Runs and lists with a GRAY8 mask.
fn list_grey(
    device: &Arc<ClContext>,
    operator: &mut PitchThreshold,
    input: &Frame,
    frame: &ClFrame,
    limits: &[Limits],
) -> Vec<Listed> {
    let meter = Meter::new(false);
    let arrangement = OUTPUT_ARRANGEMENTS[input.size()[0] % OUTPUT_ARRANGEMENTS.len()];
    let mask = Frame::poisoned(Format::Gray8, input.size(), arrangement, OUTPUT_POISON);
    let (mask, _buffer) = mask.output(device);
    let target = MaskTarget::Grey(&mask);
    let subject = Subject::whole(frame, input.size()[1], &meter);
    operator.mark(subject, target).expect("the comparison runs");
    limits
        .iter()
        .map(|limits| {
            operator
                .list(subject, target, &mut Finder::default(), limits)
                .expect("the list is made")
        })
        .collect()
}

/// Compares the lists of every choice and target with the reference; returns the most defects.
#[track_caller]
pub fn check(
    device: &Arc<ClContext>,
    input: &Frame,
    job: &Job,
    choices: &[Choice],
    limits: &[Limits],
) -> usize {
    let wanted: Vec<_> = limits.iter().map(|l| expected(input, job, l)).collect();
    for &choice in choices {
        let wide = matches!(
            choice.0,
            Some(PitchThresholdVariant::Wide | PitchThresholdVariant::Fixed)
        );
        if wide && input.import(device).planes()[0].aligned_len().is_none() {
            // `pitch_threshold_job::check` asserts the refusal.
            continue;
        }
        let Some(mut operator) = operator(device, input, job, choice) else {
            continue;
        };
        let frame = input.import(device);
        for (target, lists) in [
            (
                "packed",
                list_packed(device, &mut operator, input, &frame, limits),
            ),
            (
                "grey",
                list_grey(device, &mut operator, input, &frame, limits),
            ),
        ] {
            for ((listed, wanted), limits) in lists.iter().zip(&wanted).zip(limits) {
                assert_listed(listed, wanted, || {
                    format!(
                        "{} {job:?} {choice:?} {limits:?} {target}",
                        input.describe()
                    )
                });
            }
        }
    }
    wanted.iter().map(|w| w.defects.len()).max().unwrap_or(0)
}

/// A uniform frame with brighter and darker rectangles and crosses.
fn spotted(format: Format, size: [usize; 2], arrangement: Arrangement, bits: u32) -> Frame {
    let mut frame = Frame::showing(format, size, arrangement, Content::Constant(128), bits);
    let geometry = frame.geometry(0);
    let scale = if frame.kind() == SampleKind::U8 {
        1
    } else {
        1 << (if bits == 0 { 16 } else { bits } - 8)
    };
    for spot in 0..(size[0] * size[1] / 150).max(2) {
        let draw = |what: usize, below: usize| random(7, what, spot, size[0]) as usize % below;
        let (left, top) = (draw(0, size[0]), draw(1, size[1]));
        let (width, height) = (1 + draw(2, 7), 1 + draw(3, 5));
        // Levels within a spot differ, so that mean and peak differ.
        let level = scale * (40 + 9 * draw(4, 20) as u32);
        for y in top..(top + height).min(size[1]) {
            for x in left..(left + width).min(size[0]) {
                // Cut corners leave diagonal neighbours.
                if (x + y + spot) % 7 != 0 {
                    let uneven = (x % 3) as u32 * scale;
                    put(&mut frame.bytes, &geometry, x, y, level + uneven);
                }
            }
        }
    }
    frame
}

/// The recommended comparison.
fn recommended(threshold: f64) -> Job {
    Job {
        pitch: [7.35, 7.35],
        multiples: vec![1, 4],
        compare: Compare::Minimum,
        match_center: true,
        ..classic(0.0, threshold)
    }
}

#[test]
fn defects_of_every_mode_equal_reference() {
    let Some(device) = device::open() else { return };
    for input in [
        spotted(Format::Gray8, [131, 71], PADDED, 0),
        Frame::showing(Format::Gray8, [101, 67], PADDED, Content::Natural, 0),
    ] {
        for (pitch, vectors, multiples) in [
            ([7.35, 0.0], vec![], vec![1]),
            ([0.0, 6.0], vec![], vec![1, 4]),
            ([7.35, 5.5], vec![], vec![1, 4]),
            ([0.0, 0.0], vec![[7.35, 1.3], [-2.0, 5.5]], vec![1, 4]),
        ] {
            for compare in [Compare::Average, Compare::Minimum] {
                for match_center in [false, true] {
                    for (polarity, borders, min_contrast) in [
                        (Polarity::Both, Borders::Inward, 12.0),
                        (Polarity::Bright, Borders::Skip, 0.0),
                        (Polarity::Dark, Borders::Inward, 6.0),
                    ] {
                        let job = Job {
                            borders,
                            min_contrast,
                            pitch,
                            vectors: vectors.clone(),
                            multiples: multiples.clone(),
                            compare,
                            match_center,
                            polarity,
                            ..classic(0.0, 9.5)
                        };
                        check(&device, &input, &job, &CHOICES[..1], &LIMITS);
                    }
                }
            }
        }
    }
}

#[test]
fn defects_of_every_variant_and_target_equal_reference() {
    let Some(device) = device::open() else { return };
    for &format in LUMA_FORMATS.iter() {
        let input = spotted(format, [97, 41], PADDED, 0);
        let threshold = 10.5 * f64::from(1_u32 << (8 * (input.kind().size() - 1)));
        let lattice = Job {
            vectors: vec![[7.35, 1.3], [-2.0, 5.5]],
            multiples: vec![1],
            ..recommended(threshold / 2.0)
        };
        for job in [recommended(threshold), classic(5.25, threshold), lattice] {
            let most = check(&device, &input, &job, &CHOICES, &LIMITS);
            assert!(
                most > 5,
                "{most} defects of {} say little",
                input.describe()
            );
        }
    }
}

#[test]
fn defects_in_every_arrangement_of_memory_equal_reference() {
    let Some(device) = device::open() else { return };
    for format in [
        Format::Gray8,
        Format::I420,
        Format::Gray16Le,
        Format::Gray16Be,
    ] {
        for arrangement in ARRANGEMENTS {
            let input = spotted(format, [75, 23], arrangement, 0);
            let threshold = 12.0 * f64::from(1_u32 << (8 * (input.kind().size() - 1)));
            check(
                &device,
                &input,
                &classic(4.5, threshold),
                &CHOICES,
                &[ALL, FEW],
            );
        }
    }
}

#[test]
fn defects_of_every_size_of_random_frames_equal_reference() {
    let Some(device) = device::open() else { return };
    for size in SIZES {
        for format in [Format::Gray8, Format::Gray16Be] {
            let input = Frame::showing(format, size, PADDED, Content::Random, 0);
            let highest = f64::from((1_u32 << (8 * input.kind().size())) - 1);
            for (pitch, share) in [([1.0, 0.0], 0.3), ([2.6, 1.5], 0.4), ([0.0, 1.0], 0.0)] {
                let job = Job {
                    pitch,
                    ..classic(0.0, (share * highest).round())
                };
                check(&device, &input, &job, &CHOICES, &LIMITS);
            }
        }
    }
}

#[test]
fn defects_of_12_bit_samples_equal_reference() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray16Le, Format::Gray16Be] {
        let input = spotted(format, [97, 41], PADDED, 12);
        let job = Job {
            bit_depth: 12,
            ..recommended(160.25)
        };
        assert!(check(&device, &input, &job, &CHOICES, &LIMITS) > 5);
    }
}

#[test]
fn defects_in_regions_equal_reference() {
    let Some(device) = device::open() else { return };
    let input = spotted(Format::Gray8, [131, 71], PADDED, 0);
    let job = Job {
        rois: vec![[9, 3, 40, 30], [30, 20, 77, 49], [120, 0, 5, 71]],
        ..recommended(8.0)
    };
    assert!(check(&device, &input, &job, &CHOICES, &LIMITS) > 5);
}

#[test]
fn defect_of_no_difference_is_of_mixed_polarity() {
    let Some(device) = device::open() else { return };
    // At T = 0 equal samples are marked: one defect of all judged pixels.
    let input = Frame::showing(Format::Gray8, [40, 9], PADDED, Content::Constant(90), 0);
    for compare in [Compare::Average, Compare::Minimum] {
        let job = Job {
            compare,
            ..classic(3.0, 0.0)
        };
        let defects = expected(&input, &job, &ALL).defects;
        let found: Vec<_> = (defects.iter())
            .map(|d| (d.x, d.area, d.polarity))
            .collect();
        assert_eq!(found, [(3, 306, 0)]);
        check(&device, &input, &job, &CHOICES, &LIMITS);
    }

    // A defect of brighter pixels and of pixels that do not differ is not a bright one.
    let mut input = input;
    let geometry = input.geometry(0);
    put(&mut input.bytes, &geometry, 20, 4, 99);
    let job = Job {
        polarity: Polarity::Bright,
        ..classic(3.0, 0.0)
    };
    let defects = expected(&input, &job, &ALL).defects;
    let found: Vec<_> = (defects.iter())
        .map(|d| (d.peak_difference, d.polarity))
        .collect();
    assert_eq!(found, [(9.0, 0)]);
    check(&device, &input, &job, &CHOICES, &LIMITS);
}

#[test]
fn defect_of_bright_and_dark_pixels_is_of_mixed_polarity() {
    let Some(device) = device::open() else { return };
    let mut input = Frame::showing(Format::Gray8, [60, 9], PADDED, Content::Constant(128), 0);
    let geometry = input.geometry(0);
    // Side by side and one above the other; of two peaks of equal magnitude the first counts.
    for (x, y, value) in [
        (20, 3, 78),
        (20, 4, 178),
        (50, 3, 178),
        (50, 4, 78),
        (30, 4, 178),
        (31, 4, 78),
        (40, 4, 78),
        (41, 4, 178),
    ] {
        put(&mut input.bytes, &geometry, x, y, value);
    }
    let job = Job {
        compare: Compare::Minimum,
        ..classic(6.0, 10.0)
    };
    let defects = expected(&input, &job, &ALL).defects;
    let polarities: Vec<i32> = defects.iter().map(|d| d.polarity).collect();
    assert_eq!(polarities, [0; 4]);
    let peaks: Vec<f64> = defects.iter().map(|d| d.peak_difference).collect();
    assert_eq!(peaks, [-50.0, 50.0, 50.0, -50.0]);
    check(&device, &input, &job, &CHOICES, &LIMITS);
}

#[test]
fn defects_more_than_first_fit_grow_the_memory_and_shrink_again() {
    let Some(device) = device::open() else { return };
    // Some tenth of the noise is marked: more would be one defect, which has few runs of columns.
    let job = classic(1.0, 120.0);
    let size = [257, 61];
    let noise = Frame::showing(Format::Gray8, size, PADDED, Content::Random, 0);
    let spots = spotted(Format::Gray8, size, PADDED, 0);
    let calm = Frame::showing(Format::Gray8, size, PADDED, Content::Constant(9), 0);
    let mut one = operator(&device, &noise, &job, CHOICES[0]).expect("an operator");
    for input in [&spots, &noise, &calm, &spots, &noise] {
        let frame = input.import(&device);
        let wanted = expected(input, &job, &ALL);
        for listed in list_packed(&device, &mut one, input, &frame, &[ALL, ALL]) {
            assert_listed(&listed, &wanted, || input.describe());
        }
    }
    let [width, height] = size;
    let mask = job.expected(&noise).mask;
    let picture = Picture {
        width,
        height,
        mask,
    };
    let tight = MaskLayout { offset: 0, gap: 0 };
    let (mask, stride) = (tight.pack(&picture), tight.stride(width));
    let mut finder = Finder::default();
    let runs = (finder.scan(&mask, stride, width, height, &ALL, true)).len();
    assert!(runs > 1024, "{runs} runs fit at once");
}

#[test]
fn defects_at_most_as_many_as_wanted_overflow_only_beyond() {
    let Some(device) = device::open() else { return };
    let input = spotted(Format::Gray8, [131, 71], PADDED, 0);
    let job = recommended(8.0);
    let all = expected(&input, &job, &ALL).defects.len();
    for (max_defects, overflow) in [(all, false), (all + 1, false), (all - 1, true), (1, true)] {
        let limits = Limits { max_defects, ..ALL };
        assert_eq!(expected(&input, &job, &limits).overflow, overflow);
        check(&device, &input, &job, &CHOICES[..1], &[limits]);
    }
}

#[test]
fn defects_of_a_web_of_strips_equal_reference() {
    let Some(device) = device::open() else { return };
    // Without a comparison along y each strip has the mask and the differences of the whole web.
    let job = classic(4.5, 12.0);
    const ROWS: usize = 9;
    let web = spotted(Format::Gray8, [131, 8 * ROWS], PADDED, 0);
    let strips: Vec<Frame> = (0..8)
        .map(|strip| {
            let size = [131, ROWS];
            let mut frame = Frame::showing(Format::Gray8, size, PADDED, Content::Constant(0), 0);
            let geometry = frame.geometry(0);
            for y in 0..ROWS {
                for x in 0..131 {
                    let value = web.component(0).get(x, strip * ROWS + y);
                    put(&mut frame.bytes, &geometry, x, y, value);
                }
            }
            frame
        })
        .collect();
    let mut operator = operator(&device, &strips[0], &job, CHOICES[0]).expect("an operator");
    let meter = Meter::new(false);
    let mask = our_memory(&device, &meter, &[0; 17 * ROWS], 0);
    let target = MaskTarget::Packed {
        buffer: buffer_of(&mask).expect("memory of ours"),
        offset: mask.offset(),
    };
    let short = Limits {
        max_defect_rows: 4,
        ..NEAR
    };
    for limits in LIMITS.into_iter().chain([short]) {
        let wanted = expected_of_web(&web, &job, &[ROWS; 8], &limits);
        assert!(wanted.iter().any(|list| list.largest_open > 0));
        let mut finder = Finder::default();
        for (at, (strip, wanted)) in strips.iter().zip(&wanted).enumerate() {
            let frame = strip.import(&device);
            let subject = Subject::whole(&frame, ROWS, &meter);
            operator.mark(subject, target).expect("the comparison runs");
            let window = Window {
                ends: at == 7,
                ..subject.window
            };
            let listed = operator
                .list(Subject { window, ..subject }, target, &mut finder, &limits)
                .expect("the list is made");
            assert_listed(&listed, wanted, || format!("{limits:?}, strip {at}"));
        }
    }
}

// ---- probe lines ----------------------------------------------------------------------------

/// Compares the lines of both axes with the frame's samples.
#[track_caller]
fn check_probe(device: &Arc<ClContext>, input: &Frame) {
    let layout = layout_of(&input.info).expect("a layout");
    let samples = input.component(0);
    let meter = Meter::new(false);
    for axis in [Axis::X, Axis::Y] {
        let mut probe = Probe::new(device, &layout, axis).expect("a probe");
        let (across, length) = match axis {
            Axis::X => (samples.height, samples.width),
            Axis::Y => (samples.width, samples.height),
        };
        assert_eq!(probe.length(), length);
        let wanted: Vec<f32> = probe_lines(across)
            .into_iter()
            .flat_map(|line| (0..length).map(move |i| (line, i)))
            .map(|(line, i)| match axis {
                Axis::X => samples.get(i, line),
                Axis::Y => samples.get(line, i),
            })
            .map(|value| value as f32)
            .collect();
        let frame = input.import(device);
        for run in 0..2 {
            let lines = probe.run(&frame, &meter).expect("the probe runs");
            assert!(
                lines == wanted,
                "{} {axis:?}, run {run}: other lines",
                input.describe()
            );
        }
    }
}

#[test]
fn probe_every_format_size_and_arrangement_gives_the_lines() {
    let Some(device) = device::open() else { return };
    for &format in LUMA_FORMATS.iter() {
        for (i, &size) in SIZES.iter().enumerate() {
            let arrangement = ARRANGEMENTS[i % ARRANGEMENTS.len()];
            let input = Frame::showing(format, size, arrangement, Content::Random, 0);
            check_probe(&device, &input);
        }
    }
    for arrangement in ARRANGEMENTS {
        for format in [Format::Gray8, Format::I420, Format::Gray16Be] {
            check_probe(
                &device,
                &Frame::showing(format, [97, 35], arrangement, Content::Random, 0),
            );
        }
    }
}

/// Compares the crops of all levels with the means of the frame's samples.
#[track_caller]
fn check_middle(device: &Arc<ClContext>, input: &Frame) {
    let layout = layout_of(&input.info).expect("a layout");
    let samples = input.component(0);
    let all: Vec<u16> = (0..samples.height)
        .flat_map(|y| (0..samples.width).map(move |x| (x, y)))
        .map(|(x, y)| u16::try_from(samples.get(x, y)).expect("16 bits"))
        .collect();
    let meter = Meter::new(false);
    let mut probe = MiddleProbe::new(device, &layout).expect("a probe");
    let frame = input.import(device);
    for level in 0..4 {
        let Some(crop) = Crop::of([samples.width, samples.height], level) else {
            continue;
        };
        let mut wanted = Vec::new();
        middle(&all, samples.width, crop, &mut wanted);
        assert_eq!(wanted.len(), crop.width * crop.height);
        for run in 0..2 {
            let mut read = vec![7.0; 3];
            (probe.read(&frame, crop, &mut read, &meter)).expect("the probe runs");
            assert!(
                read == wanted,
                "{} {crop:?}, run {run}: other samples",
                input.describe()
            );
        }
    }
}

#[test]
fn probe_of_the_middle_gives_the_means_of_blocks() {
    let Some(device) = device::open() else { return };
    for arrangement in ARRANGEMENTS {
        for format in [
            Format::Gray8,
            Format::Nv12,
            Format::Gray16Be,
            Format::Gray16Le,
        ] {
            let size = [97, 53];
            check_middle(
                &device,
                &Frame::showing(format, size, arrangement, Content::Random, 0),
            );
        }
    }
    for size in [[513, 48], [700, 1100], [1033, 521], [4101, 101]] {
        check_middle(
            &device,
            &Frame::showing(Format::Gray8, size, PADDED, Content::Random, 0),
        );
    }
    let white = Frame::showing(Format::Gray16Le, [2050, 601], PADDED, Content::Random, 0);
    check_middle(&device, &white);
}

#[test]
fn probe_takes_a_bounded_number_of_lines_spread_over_the_frame() {
    let Some(device) = device::open() else { return };
    for size in [[129, 640], [640, 129], [1000, 700]] {
        for across in size {
            let lines = probe_lines(across);
            assert_eq!(lines.len(), across.min(MAX_PROBE_LINES));
            assert!(lines.windows(2).all(|w| w[0] < w[1]) && lines[lines.len() - 1] < across);
        }
        check_probe(
            &device,
            &Frame::showing(Format::Gray8, size, PADDED, Content::Random, 0),
        );
    }
}

// ---- small sizes, for Oclgrind --------------------------------------------------------------

#[test]
fn small_defects_equal_reference() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Gray16Le, Format::Gray16Be] {
        for (i, size) in [[15, 1], [1, 15], [17, 5], [33, 3], [71, 6]]
            .into_iter()
            .enumerate()
        {
            let arrangement = [ARRANGEMENTS[5], PADDED, PLAIN][i % 3];
            let input = Frame::showing(format, size, arrangement, Content::Random, 0);
            let job = Job {
                pitch: [3.25, 1.25],
                multiples: vec![1, 2],
                compare: Compare::Minimum,
                match_center: true,
                ..classic(0.0, 20.0)
            };
            check(&device, &input, &job, &CHOICES, &[ALL, FEW]);
        }
    }
}

#[test]
fn small_probe_gives_the_lines() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Nv12, Format::Gray16Be] {
        for (i, size) in [[1, 1], [15, 1], [1, 15], [33, 5]].into_iter().enumerate() {
            let arrangement = [ARRANGEMENTS[5], PADDED, PLAIN][i % 3];
            check_probe(
                &device,
                &Frame::showing(format, size, arrangement, Content::Random, 0),
            );
        }
    }
}
