//! The comparison across scales whose levels are made and judged in one launch, compared with the reference.
//! Each job has a program of its own, so they are few and drawn at random.

use std::{cell::Cell, rc::Rc, sync::Arc};

use clinspect_core::{
    mask::packed_stride, scale_tiles::TILE_GROUP, scales::MAX_SCALES, window::Window,
};
use clinspect_opencl::{
    ClContext, Compiling, Meter, buffer_of, frame::layout_of, observe_compiler,
};
use clinspect_operators::{
    Borders, Compare, Inspection, MaskTarget, PitchThreshold, Polarity, Subject,
};
use gst_video::VideoFormat as Format;

use crate::{
    content::{Content, random},
    defects, device,
    frames::{Arrangement, Frame, our_memory},
    pitch_threshold_fixed::{FITTING, FIXED},
    pitch_threshold_job::{CHOICES, Job, check, classic},
};

/// A frame whose last row, too, has whole 16 bytes: other frames are read by the general kernels.
fn showing([width, height]: [usize; 2], arrangement: Arrangement, content: Content) -> Frame {
    let size = [width.next_multiple_of(16), height];
    Frame::showing(Format::Gray8, size, arrangement, content, 0)
}

/// Job number `n`: every mode, distances up to several tiles, regions, ignored pixels, 1 to 4 levels.
fn any(n: usize) -> (Frame, Job) {
    let draw = |what: usize, limit: usize| random(94, 0, n, what) as usize % limit;
    let size = match n % 4 {
        0 => [1 + draw(0, 40), 1 + draw(1, 40)],
        1 => [513 + draw(0, 60), 40 + draw(1, 60)],
        2 => [90 + draw(0, 60), 257 + draw(1, 60)],
        _ => [100 + draw(0, 200), 60 + draw(1, 140)],
    };
    // Of random samples the levels alone mark blocks, many of them by little; of stained ones pixels are marked, too.
    let is_random = draw(24, 2) == 0;
    let content = [Content::Stained, Content::Random][usize::from(is_random)];
    let input = showing(size, FITTING[n % FITTING.len()], content);
    let size = input.size();
    let distance = |what, n: usize| {
        let largest = (n / 6).clamp(1, 30);
        (1 + draw(what, largest)) as f64 + [0.0, 0.35, 0.5][draw(what + 1, 3)]
    };
    let along = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]][draw(2, 4)];
    let region = |at: usize| {
        let [x, y] = [draw(at, size[0]), draw(at + 1, size[1])];
        [
            x,
            y,
            1 + draw(at + 2, size[0] - x),
            1 + draw(at + 3, size[1] - y),
        ]
        .map(|n| n as u32)
    };
    let job = Job {
        pitch: [
            distance(3, size[0]) * along[0],
            distance(5, size[1]) * along[1],
        ],
        multiples: [vec![1], vec![1, 2], vec![2]][draw(7, 3)].clone(),
        compare: [Compare::Average, Compare::Minimum][draw(8, 2)],
        match_center: draw(9, 2) == 1,
        polarity: [Polarity::Both, Polarity::Bright, Polarity::Dark][draw(10, 3)],
        borders: [Borders::Inward, Borders::Skip][draw(11, 2)],
        scales: 1 + (n + n / 4) % MAX_SCALES,
        scale_factors: if is_random {
            vec![0.12, 0.045, 0.02, 0.01]
        } else {
            vec![0.45, 0.15, 0.05, 0.01]
        },
        min_contrast: [0.0, 2.0][draw(12, 2)],
        rois: (0..draw(13, 3)).map(|n| region(14 + 4 * n)).collect(),
        ignored: if draw(22, 3) == 0 {
            vec![vec![3.0, 3.0, 30.0, 9.0, 8.0, 25.0]]
        } else {
            Vec::new()
        },
        ..classic(
            0.0,
            if is_random {
                250.0
            } else {
                [25.0, 45.0][draw(23, 2)]
            },
        )
    };
    (input, job)
}

/// Fails unless an operator judges the levels of its first frame in tiles. The general kernels, which judge them wherever
/// tiles cannot, give the same results.
#[track_caller]
fn assert_in_tiles(device: &Arc<ClContext>, input: &Frame, job: &Job) {
    if device.caps().max_work_group < TILE_GROUP {
        return device::skip("levels in tiles", "the device has no work-group for a tile");
    }
    let layout = layout_of(&input.info).unwrap();
    let settings = job.settings(input, FIXED[0]);
    let mut operator = PitchThreshold::new(device, &layout, &settings).unwrap();
    let window = Window::frame(input.size()[1]);
    let (_, [in_tiles, _]) = mask_of(device, &mut operator, input, &window);
    assert!(in_tiles, "{} {job:?}", input.describe());
}

#[test]
fn levels_in_tiles_equal_reference() {
    let Some(device) = device::open() else { return };
    // PoCL compiles a job for seconds.
    let jobs = if device.caps().is_cpu { 8 } else { 24 };
    let mut found = [0; MAX_SCALES + 1];
    for n in 0..jobs {
        let (input, job) = any(n);
        check(&device, &input, &job, &FIXED);
        if !job.is_blind(&input) {
            assert_in_tiles(&device, &input, &job);
        }
        let levels = job.levels(&input);
        for (level, jobs) in found.iter_mut().enumerate() {
            *jobs += usize::from(levels.contains(&Some(level as u32)));
        }
    }
    // Most jobs have fewer levels than 3.
    let least = [4, 4, 5, 10, 24].map(|part| jobs / part);
    assert!(
        found.iter().zip(least).all(|(&n, least)| n >= least),
        "jobs by level: {found:?}"
    );
}

/// One frame for Oclgrind, which takes long.
#[test]
fn small_levels_in_tiles_equal_reference() {
    let Some(device) = device::open() else { return };
    let input = showing([70, 45], FITTING[0], Content::Stained);
    let job = Job {
        pitch: [7.35, 5.5],
        scales: 3,
        scale_factors: vec![0.45, 0.15, 0.05],
        ..classic(0.0, 45.0)
    };
    check(&device, &input, &job, &FIXED);
    assert_in_tiles(&device, &input, &job);
    assert!(job.levels(&input).contains(&Some(3)));
}

/// Frames of which pixels are marked, of which levels alone mark blocks, and without marks, one after the other.
#[test]
fn marks_in_tiles_are_those_of_the_frame() {
    let Some(device) = device::open() else { return };
    let size = [304, 120];
    let frame = |content| showing(size, FITTING[0], content);
    let job = Job {
        scales: 2,
        scale_factors: vec![0.2, 0.05],
        multiples: vec![1, 2],
        compare: Compare::Minimum,
        ..classic(21.35, 90.0)
    };
    let strong = Job {
        threshold: 40.0,
        ..job.clone()
    };
    for job in [job, strong] {
        let inputs = [
            Content::Stained,
            Content::Constant(90),
            Content::GradientX,
            Content::Stained,
        ]
        .map(frame);
        let layout = layout_of(&inputs[0].info).unwrap();
        let settings = job.settings(&inputs[0], FIXED[0]);
        let window = Window::frame(size[1]);
        let mut operator = PitchThreshold::new(&device, &layout, &settings).unwrap();
        // Frames without marks are judged in tiles alone. So is the first one with marks, but for its repaired picture.
        let launched = [1, 2, 0].map(|at| mask_of(&device, &mut operator, &inputs[at], &window).1);
        assert_eq!(launched, [[true, false], [false; 2], [false, true]]);
        let mut operator = PitchThreshold::new(&device, &layout, &settings).unwrap();
        for (at, input) in inputs.iter().enumerate() {
            let expected = job.expected(input);
            let (mask, launched) = mask_of(&device, &mut operator, input, &window);
            // Behind a frame with marked blocks, and for repaired pictures, the general kernels judge.
            assert_eq!(launched, [at == 0; 2], "frame {at}");
            let marked: u32 = mask.iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(u64::from(marked), expected.defect_pixels, "frame {at}");
            assert_eq!(marked > 0, at % 3 == 0, "frame {at}");
            defects::check(&device, input, &job, &FIXED, &[defects::ALL]);
        }
    }
}

/// The packed mask of a window, and whether the operator's first launch of the kernel for tiles, and of the general kernels,
/// judged its levels.
fn mask_of(
    device: &Arc<ClContext>,
    operator: &mut PitchThreshold,
    input: &Frame,
    window: &Window,
) -> (Vec<u8>, [bool; 2]) {
    let meter = Meter::new(true);
    let memory = our_memory(
        device,
        &meter,
        &vec![0; packed_stride(input.size()[0]) * window.rows],
        0,
    );
    let target = MaskTarget::Packed {
        buffer: buffer_of(&memory).unwrap(),
        offset: memory.offset(),
    };
    let launched = Rc::new(Cell::new([false; 2]));
    let seen = launched.clone();
    let observe = move |compiling| {
        let [in_tiles, in_general] = seen.get();
        seen.set([
            in_tiles || compiling == Compiling::Kernel("scales_tiles"),
            in_general || compiling == Compiling::Kernel("scales_first"),
        ]);
    };
    observe_compiler(observe, || {
        let subject = Subject {
            frame: &input.import(device),
            window: *window,
            meter: &meter,
        };
        operator.mark(subject, target)
    })
    .unwrap();
    let mask = memory.map_readable().unwrap().to_vec();
    (mask, launched.get())
}

/// Strips of a web, which begin at any row of it, and windows of a few rows. The width is no multiple of 16; the row
/// behind the windows holds what the kernel reads beyond their last sample.
#[test]
fn levels_in_tiles_of_a_window_equal_those_of_the_general_kernels() {
    let Some(device) = device::open() else { return };
    let size = [203, 131];
    let input = Frame::showing(Format::Gray8, size, FITTING[0], Content::Random, 0);
    let job = Job {
        scales: 3,
        scale_factors: vec![0.12, 0.045, 0.02],
        multiples: vec![1, 2],
        ..Job {
            pitch: [17.35, 12.5],
            ..classic(0.0, 250.0)
        }
    };
    let layout = layout_of(&input.info).unwrap();
    let operator =
        |choice| PitchThreshold::new(&device, &layout, &job.settings(&input, choice)).unwrap();
    for (first, rows, web_row, ends) in [
        (0, 60, 0, false),
        (40, 50, 5, false),
        (61, 1, 1003, false),
        (90, 40, 64, true),
    ] {
        let window = Window {
            first,
            rows,
            height: size[1] - 1,
            web_row,
            is_web: true,
            ends,
        };
        // New ones: behind a frame with marked blocks the general kernels judge the levels.
        let [(found, launched), (wanted, general)] = [FIXED[0], CHOICES[1]]
            .map(|choice| mask_of(&device, &mut operator(choice), &input, &window));
        assert!(launched[0] && !general[0], "{window:?}");
        assert!(found == wanted, "{window:?}");
        assert!(
            wanted.iter().any(|&byte| byte != 0),
            "{window:?} has no mark"
        );
    }
}
