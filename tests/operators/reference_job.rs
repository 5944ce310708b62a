//! `Reference` compared with its sequential reference: masks, counts, lists, pictures and trainings.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{Finder, Limits},
    ignored::{Ignored, Polygon},
    reference::{Model, Warp},
    region::user_region,
    threshold::Reached,
};
use clinspect_opencl::frame::{ClFrame, layout_of};
use clinspect_opencl::{ClContext, Meter, buffer_of};
use clinspect_operators::{
    Align, Inspection, MaskTarget, NormalizeBy, Picture, Polarity, Progress, Reference,
    ReferenceSettings, Subject,
};
use gst_video::VideoFormat as Format;

use crate::{
    SIZES,
    content::{Content, random},
    defects::{ALL, NEAR, assert_listed, rules},
    device,
    frames::{
        ARRANGEMENTS, Frame, OUTPUT_ARRANGEMENTS, OUTPUT_POISON, PADDED, PLAIN, assert_same,
        our_memory, read,
    },
    oracle::{
        defects::{Web, defects},
        ignore, put,
        trained::{self as oracle, Motion, Normalize},
    },
};

const FORMATS: [Format; 5] = [
    Format::Gray8,
    Format::Gray16Le,
    Format::Gray16Be,
    Format::I420,
    Format::Nv12,
];

/// A comparison as a user sets it.
#[derive(Clone, Debug)]
pub struct Job {
    pub threshold: f64,
    pub deviation_factor: f64,
    pub edge_tolerance: u32,
    pub polarity: Polarity,
    /// With `search_range`.
    pub align: Align,
    /// `None`: no alignment.
    pub search_range: Option<u32>,
    pub opening: u32,
    pub normalize: NormalizeBy,
    pub rois: Vec<[u32; 4]>,
    pub ignored: Vec<Vec<f64>>,
    pub bit_depth: u32,
    /// Where the pixels of the model lie in the frame.
    pub moved: Motion,
    /// Of the model.
    pub seed: u64,
}

pub const PLAIN_JOB: Job = Job {
    threshold: 12.0,
    deviation_factor: 1.5,
    edge_tolerance: 0,
    polarity: Polarity::Both,
    align: Align::Translation,
    search_range: None,
    opening: 0,
    normalize: NormalizeBy::None,
    rois: Vec::new(),
    ignored: Vec::new(),
    bit_depth: 0,
    moved: Motion {
        affine: [[0; 3]; 2],
        nodes: Vec::new(),
    },
    seed: 1,
};

/// The motion of a comparison, for the reference.
pub fn motion_of(warp: &Warp) -> Motion {
    let [c, a, b, f, d, e] = warp.coefficients.map(i64::from);
    let rows = warp.nodes.iter().flat_map(|nodes| {
        let row = |row: usize| {
            let at = row * nodes.columns..(row + 1) * nodes.columns;
            let pairs = at.map(|at| [nodes.u[at].into(), nodes.v[at].into()]);
            pairs.collect::<Vec<[i64; 2]>>()
        };
        (0..nodes.rows).map(row).collect::<Vec<_>>()
    });
    Motion {
        affine: [[c, a, b], [f, d, e]],
        nodes: rows.collect(),
    }
}

/// Where the last frame was read.
fn motion(operator: &Reference) -> Motion {
    motion_of(operator.warp().expect("the frame was read"))
}

impl Job {
    /// A model near the frame, in which some pixels differ much and deviations vary.
    pub fn model(&self, input: &Frame) -> Arc<Model> {
        let samples = oracle::moved(input.component(0), &self.moved);
        let bits = 8 * input.kind().size() as u32;
        let highest = (1_i64 << bits) - 1;
        let mut deviation = Vec::new();
        let mean = samples.iter().enumerate().map(|(at, &s)| {
            let [kind, by, v] = [0, 1, 2].map(|n| random(self.seed, n, at, 0));
            let reach = if kind % 4 == 0 { 256 * 60 } else { 256 * 9 };
            let by = (i64::from(by) % (2 * reach)) - reach;
            deviation.push(v % 4000);
            (256 * s + by).clamp(0, 256 * highest) as u32
        });
        let mean = mean.collect();
        let model = Model::new(input.size(), bits, 7, mean, deviation);
        Arc::new(model.expect("a model"))
    }

    pub fn settings(&self, input: &Frame, model: Option<Arc<Model>>) -> ReferenceSettings {
        let [width, height] = input.size();
        let polygons = self
            .ignored
            .iter()
            .map(|p| Polygon::new(p).expect("a polygon"));
        let ignored = Ignored::new(width, Some(height), None, polygons.collect());
        ReferenceSettings {
            model,
            threshold: self.threshold,
            deviation_factor: self.deviation_factor,
            edge_tolerance: self.edge_tolerance,
            opening: self.opening,
            polarity: self.polarity,
            align: match self.search_range {
                Some(_) => self.align,
                None => Align::None,
            },
            search_range: self.search_range.unwrap_or(1),
            // Frames of noise are compared too.
            match_score: 0.0,
            normalize: self.normalize,
            train_frames: 3,
            rois: (self.rois.iter())
                .map(|&roi| user_region(roi, width, height).expect("a region inside"))
                .collect(),
            ignored: (!self.ignored.is_empty()).then(|| Arc::new(ignored.expect("no picture"))),
            bit_depth: self.bit_depth,
        }
    }

    pub fn oracle(&self, input: &Frame, motion: Motion) -> oracle::Settings {
        let [width, height] = input.size();
        oracle::Settings {
            threshold: self.threshold,
            deviation_factor: self.deviation_factor,
            edge_tolerance: self.edge_tolerance.into(),
            bright: self.polarity != Polarity::Dark,
            dark: self.polarity != Polarity::Bright,
            motion,
            opens: self.opening > 0,
            normalize: match self.normalize {
                NormalizeBy::None => Normalize::None,
                NormalizeBy::Offset => Normalize::Offset,
                NormalizeBy::Gain => Normalize::Gain,
            },
            rois: self
                .rois
                .iter()
                .map(|roi| roi.map(|v| v as usize))
                .collect(),
            ignored: ignore::ignored(&self.ignored, width, 0, height),
            bit_depth: self.bit_depth,
        }
    }
}

pub fn for_oracle(model: &Model) -> oracle::Model {
    let wide = |values: &[u32]| values.iter().map(|&v| v.into()).collect();
    oracle::Model {
        mean: wide(model.mean()),
        deviation: wide(model.deviation()),
    }
}

/// Runs with a packed mask between poisoned bytes; returns the mask, the count and the list.
fn packed(
    device: &Arc<ClContext>,
    operator: &mut Reference,
    frame: &ClFrame,
    [width, height]: [usize; 2],
    limits: &Limits,
) -> (Vec<u8>, u64, clinspect_core::components::Listed) {
    const BEFORE: usize = 5;
    let meter = Meter::new(false);
    let len = width.div_ceil(8) * height;
    let bytes = vec![OUTPUT_POISON; BEFORE + len + 9];
    let memory = our_memory(device, &meter, &bytes, 3);
    let target = MaskTarget::Packed {
        buffer: buffer_of(&memory).expect("memory of ours"),
        offset: memory.offset() + BEFORE,
    };
    let subject = Subject::whole(frame, height, &meter);
    let marked = operator.mark(subject, target).expect("the comparison runs");
    let mut finder = Finder::default();
    let listed = operator.list(subject, target, &mut finder, limits);
    let bytes = memory.map_readable().expect("a reading map").to_vec();
    let (before, rest) = bytes.split_at(BEFORE);
    let (mask, after) = rest.split_at(len);
    let is_untouched = |bytes: &[u8]| bytes.iter().all(|&byte| byte == OUTPUT_POISON);
    assert!(
        is_untouched(before) && is_untouched(after),
        "bytes around the mask are written"
    );
    (mask.to_vec(), marked.pixels, listed.expect("the list"))
}

/// Compares masks, counts, lists and the picture of differences with the reference.
#[track_caller]
pub fn check(device: &Arc<ClContext>, input: &Frame, job: &Job) {
    let model = job.model(input);
    let about = || format!("{} {job:?}", input.describe());
    let layout = layout_of(&input.info).expect("a layout");
    let mut operator =
        match Reference::new(device, &layout, &job.settings(input, Some(model.clone()))) {
            Ok(operator) => operator,
            Err(ClError::Refused(why)) => {
                let all = oracle::compare(
                    input.component(0),
                    &for_oracle(&model),
                    &job.oracle(input, Motion::default()),
                );
                assert_eq!(all.judged_pixels, 0, "{}: {why}", about());
                return;
            }
            Err(error) => panic!("{}: {error}", about()),
        };
    let frame = input.import(device);
    let size @ [width, _] = input.size();
    for limits in [&ALL, &NEAR] {
        let (mask, count, listed) = packed(device, &mut operator, &frame, size, limits);
        let motion = motion(&operator);
        let wanted = oracle::compare(
            input.component(0),
            &for_oracle(&model),
            &job.oracle(input, motion.clone()),
        );
        let differ = (0..mask.len()).find(|&at| mask[at] != wanted.packed[at]);
        if let Some(at) = differ {
            let stride = width.div_ceil(8);
            panic!(
                "{}, {motion:?}: row {}, byte {}: {:08b} instead of {:08b}",
                about(),
                at / stride,
                at % stride,
                mask[at],
                wanted.packed[at]
            );
        }
        assert_eq!(count, wanted.defect_pixels, "{}", about());
        let judged = operator.basis().judged;
        assert_eq!(
            (judged.any, judged.x, judged.y),
            (wanted.judged_pixels, 0, 0),
            "{}",
            about()
        );
        let mut list = defects(
            Web {
                mask: &wanted.mask,
                differences: &wanted.differences,
                levels: &wanted
                    .mask
                    .iter()
                    .map(|&marked| marked.then_some(0))
                    .collect::<Vec<_>>(),
                width,
            },
            &rules(limits),
        );
        for defect in &mut list.defects {
            *defect = motion.place(defect, size);
        }
        assert_listed(&listed, &list, about);
        for (at, _) in wanted.placed.iter().enumerate().filter(|(_, set)| **set) {
            let [x, y] = [(at % width) as i32, (at / width) as i32];
            let is_listed = listed.defects.iter().any(|d| {
                let [right, lower] = [d.x + d.width as i32, d.y + d.height as i32];
                (d.x..right).contains(&x) && (d.y..lower).contains(&y)
            });
            assert!(is_listed, "{}: {x} {y} is in no box", about());
        }
    }
    check_pictures(device, &mut operator, input, job, &model);
}

/// Compares the GRAY8 mask and the drawn pictures with the reference, padding included.
#[track_caller]
fn check_pictures(
    device: &Arc<ClContext>,
    operator: &mut Reference,
    input: &Frame,
    job: &Job,
    model: &Model,
) {
    let size = input.size();
    let meter = Meter::new(false);
    let frame = input.import(device);
    let arrangement = OUTPUT_ARRANGEMENTS[size[0] % OUTPUT_ARRANGEMENTS.len()];
    let bits = match job.bit_depth {
        0 => 8 * input.kind().size() as u32,
        bits => bits,
    };
    let mut draw = |what: &str,
                    draw: &mut dyn FnMut(&mut Reference, &ClFrame),
                    pixels: &dyn Fn(&Reference) -> Vec<u32>| {
        let mut wanted = Frame::poisoned(Format::Gray8, size, arrangement, OUTPUT_POISON);
        let (output, buffer) = wanted.output(device);
        draw(operator, &output);
        wanted.set(&[pixels(operator)], input);
        assert_same(&read(&buffer), &wanted, || {
            format!("{what} of {} {job:?}", input.describe())
        });
    };
    let subject = Subject::whole(&frame, size[1], &meter);
    let outcome = |operator: &Reference| {
        oracle::compare(
            input.component(0),
            &for_oracle(model),
            &job.oracle(input, motion(operator)),
        )
    };
    draw(
        "mask",
        &mut |operator, out| {
            operator
                .mark(subject, MaskTarget::Grey(out))
                .expect("a mask");
        },
        &|operator| {
            outcome(operator)
                .placed
                .iter()
                .map(|&set| if set { 255 } else { 0 })
                .collect()
        },
    );
    draw(
        "model",
        &mut |operator, out| {
            operator
                .draw(subject, Picture::Model, out)
                .expect("a picture")
        },
        &|_| {
            let byte = |&mean: &u32| (((mean + 128) >> 8) >> bits.saturating_sub(8)).min(255);
            model.mean().iter().map(byte).collect()
        },
    );
    for gain in [1.0, 2.5] {
        draw(
            "difference",
            &mut |operator, out| {
                let picture = Picture::Difference(gain);
                operator.draw(subject, picture, out).expect("a picture");
            },
            &|operator| {
                let shade = |d: &Option<f64>| {
                    // Exact: the difference has 8 bits after the point, and the gain has 1.
                    let d = d.unwrap_or(0.0) / f64::from(1 << bits.saturating_sub(8));
                    (128.0 + (d * gain).round()).clamp(0.0, 255.0) as u32
                };
                outcome(operator).differences.iter().map(shade).collect()
            },
        );
    }
}

#[test]
fn reference_of_every_size_format_and_arrangement_equals_reference() {
    let Some(device) = device::open() else { return };
    for (n, size) in SIZES.into_iter().enumerate() {
        for (k, format) in FORMATS.into_iter().enumerate() {
            let arrangement = ARRANGEMENTS[(3 * n + k) % ARRANGEMENTS.len()];
            let input = Frame::showing(format, size, arrangement, Content::Random, 0);
            check(&device, &input, &PLAIN_JOB);
            // Smaller frames cannot be aligned.
            let size = size.map(|side| side.max(36 + side % 7));
            let input = Frame::showing(format, size, arrangement, Content::Random, 0);
            let job = Job {
                edge_tolerance: 1 + (n % 2) as u32,
                normalize: [NormalizeBy::Offset, NormalizeBy::Gain][k % 2],
                search_range: Some(1 + (n as u32 % 2)),
                moved: Motion::shift([(n as i64 + 1) % 4, -(k as i64)]),
                ..PLAIN_JOB
            };
            check(&device, &input, &job);
        }
    }
}

#[test]
fn reference_with_every_polarity_depth_region_and_ignored_pixel_equals_reference() {
    let Some(device) = device::open() else { return };
    for (format, bit_depth) in [
        (Format::Gray8, 0),
        (Format::Gray16Le, 12),
        (Format::Gray16Be, 0),
    ] {
        for polarity in [Polarity::Both, Polarity::Bright, Polarity::Dark] {
            for content in [
                Content::Natural,
                Content::BeyondDepth,
                Content::Constant(128),
            ] {
                let input = Frame::showing(format, [83, 41], PADDED, content, bit_depth);
                for normalize in [NormalizeBy::None, NormalizeBy::Offset, NormalizeBy::Gain] {
                    let job = Job {
                        polarity,
                        normalize,
                        bit_depth,
                        moved: Motion::shift([
                            -5,
                            if normalize == NormalizeBy::Gain { 7 } else { 0 },
                        ]),
                        search_range: (polarity != Polarity::Dark).then_some(4),
                        rois: vec![[3, 2, 40, 30], [30, 20, 53, 21]],
                        ignored: vec![vec![10.0, 5.0, 33.3, 7.5, 20.0, 25.0]],
                        ..PLAIN_JOB
                    };
                    check(&device, &input, &job);
                }
            }
        }
    }
}

#[test]
fn limits_at_their_edge_are_exact() {
    let Some(device) = device::open() else { return };
    // A mean of 100 and a threshold of 10 mark 111 and 89, but neither 110 nor 90.
    let mut input = Frame::poisoned(Format::Gray8, [8, 1], PLAIN, 0);
    let geometry = input.geometry(0);
    for (x, s) in [89, 90, 100, 110, 111, 0, 255, 100].into_iter().enumerate() {
        put(&mut input.bytes, &geometry, x, 0, s);
    }
    for (mean, expected) in [
        (25_600, 0b1000_1110),
        // The lower limit is 90 1/256, the upper one 110 1/256: 90 is below.
        (25_601, 0b1100_1110),
        (25_599, 0b1001_1110),
    ] {
        let model = Model::new([8, 1], 8, 1, vec![mean; 8], vec![0; 8]).expect("a model");
        let job = Job {
            threshold: 10.0,
            ..PLAIN_JOB
        };
        let settings = job.settings(&input, Some(Arc::new(model)));
        let layout = layout_of(&input.info).expect("a layout");
        let mut operator = Reference::new(&device, &layout, &settings).expect("an operator");
        let (mask, ..) = packed(&device, &mut operator, &input.import(&device), [8, 1], &ALL);
        assert_eq!(mask, [expected], "{mean}");
    }
}

#[test]
fn training_equals_reference_and_is_aligned_with_its_first_frame() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Gray16Be, Format::I420] {
        for (align, search_range, normalize) in [
            (Align::None, None, NormalizeBy::None),
            (Align::Translation, Some(3), NormalizeBy::Gain),
            (Align::Affine, Some(3), NormalizeBy::Offset),
            (Align::Local, Some(3), NormalizeBy::None),
        ] {
            let frames: Vec<Frame> = [Content::Natural, Content::Random, Content::HalfRandom]
                .map(|content| Frame::showing(format, [71, 66], PADDED, content, 0))
                .into();
            let job = Job {
                align,
                search_range,
                normalize,
                ..PLAIN_JOB
            };
            let layout = layout_of(&frames[0].info).expect("a layout");
            let meter = Meter::new(false);
            let settings = job.settings(&frames[0], None);
            let operator = Reference::new(&device, &layout, &settings).expect("an operator");
            let mut training = operator.training().expect("a training");
            let first = oracle::train(&[oracle::moved(frames[0].component(0), &Motion::default())]);
            let mut read: Vec<Vec<i64>> = Vec::new();
            for (n, input) in frames.iter().enumerate() {
                let frame = input.import(&device);
                let progress = training.add(&frame, &meter).expect("a frame");
                // The shift is that of a comparison with a model of the first frame.
                let model = Model::new(
                    input.size(),
                    8 * input.kind().size() as u32,
                    1,
                    first.mean.iter().map(|&v| v as u32).collect(),
                    vec![0; first.mean.len()],
                );
                let settings = job.settings(input, Some(Arc::new(model.expect("a model"))));
                let mut aligned = Reference::new(&device, &layout, &settings).expect("an operator");
                packed(&device, &mut aligned, &frame, input.size(), &ALL);
                let motion = if n == 0 {
                    Motion::default()
                } else {
                    motion(&aligned)
                };
                let samples = oracle::moved(input.component(0), &motion);
                let wanted = job.oracle(input, motion);
                let judged = oracle::compare(input.component(0), &first, &wanted).differences;
                let judged: Vec<bool> = judged.iter().map(Option::is_some).collect();
                let normalize = if n == 0 {
                    Normalize::None
                } else {
                    wanted.normalize
                };
                let highest = (1 << (8 * input.kind().size())) - 1;
                read.push(oracle::levelled(
                    &samples, &first, &judged, normalize, highest,
                ));
                assert_eq!(progress, Progress::Added, "{n}");
            }
            let model = training.model(&meter).expect("a model");
            assert_eq!(
                for_oracle(&model),
                oracle::train(&read),
                "{format} {align:?}"
            );
        }
    }
}

#[test]
fn without_a_model_and_during_a_training_nothing_is_judged() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray8, [45, 17], PADDED, Content::Random, 0);
    let layout = layout_of(&input.info).expect("a layout");
    for model in [None, Some(PLAIN_JOB.model(&input))] {
        let settings = PLAIN_JOB.settings(&input, model);
        let mut operator = Reference::new(&device, &layout, &settings).expect("an operator");
        operator.set_blind(true);
        let frame = input.import(&device);
        let (mask, count, listed) = packed(&device, &mut operator, &frame, input.size(), &ALL);
        assert!(mask.iter().all(|&byte| byte == 0));
        assert_eq!(
            (count, operator.basis().judged.any, listed.defects.len()),
            (0, 0, 0)
        );
        assert_eq!(operator.basis().alignment, None);
    }
}

#[test]
fn frame_of_something_else_is_not_matched() {
    let Some(device) = device::open() else { return };
    let good = Frame::showing(Format::Gray8, [160, 120], PLAIN, Content::Natural, 0);
    let other = Frame::showing(Format::Gray8, [160, 120], PLAIN, Content::Random, 0);
    let layout = layout_of(&good.info).expect("a layout");
    let job = Job {
        search_range: Some(8),
        ..PLAIN_JOB
    };
    let settings = ReferenceSettings {
        match_score: 0.3,
        ..job.settings(&good, Some(job.model(&good)))
    };
    let mut operator = Reference::new(&device, &layout, &settings).expect("an operator");
    for (input, is_matched) in [(&good, true), (&other, false)] {
        let frame = input.import(&device);
        let (mask, count, _) = packed(&device, &mut operator, &frame, input.size(), &ALL);
        let found = operator.basis().alignment.expect("an alignment");
        assert_eq!(found.is_matched, is_matched, "{found:?}");
        assert_eq!(operator.basis().judged.any > 0, is_matched);
        assert!(is_matched || count == 0 && mask.iter().all(|&byte| byte == 0));
        if is_matched {
            // Noise of up to 60 grey levels is in the model.
            assert!(
                found.shift.iter().all(|shift| shift.abs() <= 0.25),
                "{found:?}"
            );
        }
    }
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray8, [45, 17], PLAIN, Content::Random, 0);
    let layout = layout_of(&input.info).expect("a layout");
    let refused = |job: &Job, model: Option<Arc<Model>>, word: &str| match Reference::new(
        &device,
        &layout,
        &job.settings(&input, model),
    ) {
        Err(ClError::Refused(why)) => assert!(why.contains(word), "{why}"),
        other => panic!("{word}: {other:?}"),
    };
    let job = |change: &dyn Fn(&mut Job)| {
        let mut job = PLAIN_JOB;
        change(&mut job);
        job
    };
    refused(&job(&|job| job.threshold = 300.0), None, "threshold=300");
    refused(&job(&|job| job.bit_depth = 12), None, "bit-depth=12");
    for align in [Align::Translation, Align::Affine, Align::Local] {
        let small = job(&|job| (job.align, job.search_range) = (align, Some(4)));
        refused(&small, None, "40x40");
    }
    refused(&job(&|job| job.opening = 2), None, "opening=2");
    let all = vec![vec![-1.0, -1.0, 99.0, -1.0, 99.0, 99.0, -1.0, 99.0]];
    let blind = job(&|job| job.ignored = all.clone());
    refused(&blind, Some(PLAIN_JOB.model(&input)), "no pixel");
    let other = Model::new([44, 17], 8, 1, vec![0; 44 * 17], vec![0; 44 * 17]).expect("a model");
    refused(&PLAIN_JOB, Some(Arc::new(other)), "44x17");
    let words = Model::new([45, 17], 16, 1, vec![0; 45 * 17], vec![0; 45 * 17]).expect("a model");
    refused(&PLAIN_JOB, Some(Arc::new(words)), "16-bit");
}

/// The counts that a threshold is learned from, by comparing at every threshold.
fn reached(input: &Frame, model: &Model, job: &Job, motion: &Motion) -> Reached {
    let bits = match job.bit_depth {
        0 => 8 * input.kind().size() as u32,
        bits => bits,
    };
    let last = Reached::last(bits);
    let at = |quarters: usize| {
        let threshold = quarters as f64 / 4.0;
        let job = Job {
            threshold,
            ..job.clone()
        };
        oracle::compare(
            input.component(0),
            &for_oracle(model),
            &job.oracle(input, motion.clone()),
        )
    };
    let mut counts = vec![0; last + 2];
    counts[last + 1] = at(0).judged_pixels as u32;
    let mut marked = at(0).defect_pixels as u32;
    for (quarters, count) in counts[..last].iter_mut().enumerate() {
        if marked == 0 {
            break;
        }
        let next = at(quarters + 1).defect_pixels as u32;
        *count = marked - next;
        marked = next;
    }
    counts[last] += marked;
    let mut reached = Reached::default();
    reached.add(&counts);
    reached.add(&counts);
    reached
}

#[test]
fn reached_thresholds_of_a_reference_equal_those_of_all_comparisons() {
    let Some(device) = device::open() else { return };
    let meter = Meter::new(false);
    let mut seen = 0.0;
    for (format, bit_depth) in [(Format::Gray8, 0), (Format::Gray16Le, 10)] {
        for (edge_tolerance, polarity, normalize, moved) in [
            (0, Polarity::Both, NormalizeBy::None, [0, 0]),
            (2, Polarity::Bright, NormalizeBy::Gain, [0, 0]),
            (1, Polarity::Dark, NormalizeBy::Offset, [5, -3]),
        ] {
            let job = Job {
                edge_tolerance,
                polarity,
                normalize,
                bit_depth,
                moved: Motion::shift(moved),
                search_range: (moved != [0, 0]).then_some(4),
                ignored: vec![vec![3.0, 2.0, 20.0, 2.0, 11.0, 15.0]],
                ..PLAIN_JOB
            };
            let input = Frame::showing(format, [71, 67], PADDED, Content::Natural, bit_depth);
            let model = job.model(&input);
            let layout = layout_of(&input.info).expect("a layout");
            let settings = job.settings(&input, Some(model.clone()));
            let mut operator = Reference::new(&device, &layout, &settings).expect("an operator");
            let frame = input.import(&device);
            let mut counted = Reached::default();
            let subject = Subject::whole(&frame, input.size()[1], &meter);
            // No frame was compared yet.
            let is_counted = operator.count_reached(subject, &mut counted);
            assert!(!is_counted.expect("no failure"));
            packed(&device, &mut operator, &frame, input.size(), &ALL);
            for _ in 0..2 {
                let is_counted = operator.count_reached(subject, &mut counted);
                assert!(is_counted.expect("the pixels are counted"));
            }
            assert_eq!(
                counted,
                reached(&input, &model, &job, &motion(&operator)),
                "{format:?} {job:?}"
            );
            seen += counted.peak();
        }
    }
    assert!(seen > 20.0, "all thresholds are near 0: {seen}");
}

/// A motion of the middle of a frame: a shift in 1/4 px, a turn in 1/1000 and scales in 1/1000.
fn turned([width, height]: [usize; 2], shift: [i64; 2], turn: i64, scales: [i64; 2]) -> Motion {
    let [x, y] = [width, height].map(|n| n as i64 / 2);
    let per_mille = |v: i64| v * (1 << 20) / 1000;
    let terms = [
        [per_mille(scales[0]), -per_mille(turn)],
        [per_mille(turn), per_mille(scales[1])],
    ];
    let along = |axis: usize| {
        let [a, b] = terms[axis];
        [(shift[axis] << 18) - a * x - b * y, a, b]
    };
    Motion {
        affine: [along(0), along(1)],
        nodes: Vec::new(),
    }
}

#[test]
fn turned_and_stretched_frames_equal_reference() {
    let Some(device) = device::open() else { return };
    let mut seen = [0; 3];
    for (n, size) in [[64, 64], [131, 97], [200, 66], [321, 243]]
        .into_iter()
        .enumerate()
    {
        for (k, format) in FORMATS.into_iter().enumerate() {
            for align in [Align::Affine, Align::Local] {
                let content = [Content::Natural, Content::Random][(n + k) % 2];
                let arrangement = ARRANGEMENTS[(3 * n + k) % ARRANGEMENTS.len()];
                let input = Frame::showing(format, size, arrangement, content, 0);
                let job = Job {
                    align,
                    search_range: Some(8),
                    opening: [0, 3][k % 2],
                    threshold: [2.0, 12.0][n % 2],
                    edge_tolerance: (k % 3) as u32,
                    normalize: [NormalizeBy::None, NormalizeBy::Gain][n % 2],
                    rois: [vec![], vec![[5, 3, 50, 40]]][(n + k) / 3 % 2].clone(),
                    ignored: [vec![], vec![vec![1.0, 1.0, 60.0, 9.0, 20.0, 45.0]]][k % 2].clone(),
                    moved: turned(size, [9, -14], 12 - 9 * n as i64, [10, -5 * k as i64]),
                    ..PLAIN_JOB
                };
                check(&device, &input, &job);
                let layout = layout_of(&input.info).expect("a layout");
                let settings = job.settings(&input, Some(job.model(&input)));
                let mut operator =
                    Reference::new(&device, &layout, &settings).expect("an operator");
                packed(&device, &mut operator, &input.import(&device), size, &ALL);
                let warp = operator.warp().expect("a warp");
                let [.., e] = warp.coefficients;
                seen[0] += usize::from(e != 0);
                seen[1] += usize::from(warp.nodes.is_some());
                seen[2] += usize::from(operator.basis().judged.any > 0);
                let found = operator.basis().alignment.expect("an alignment");
                assert_eq!(found.transform, warp.transform());
                assert_eq!(found.largest_local_shift, warp.largest_local());
            }
        }
    }
    assert!(seen.iter().all(|&count| count > 5), "{seen:?}");
}

#[test]
fn frame_that_equals_its_model_is_found_where_it_is() {
    let Some(device) = device::open() else { return };
    for (n, size) in [[64, 64], [67, 65], [130, 71], [197, 102]]
        .into_iter()
        .enumerate()
    {
        for (k, format) in FORMATS.into_iter().enumerate() {
            let arrangement = ARRANGEMENTS[(3 * n + k) % ARRANGEMENTS.len()];
            // Cameras of 10 bits in 16.
            let bit_depth = [0, 10][usize::from(format == Format::Gray16Le)];
            let input = Frame::showing(format, size, arrangement, Content::Random, bit_depth);
            let job = Job {
                align: Align::Affine,
                search_range: Some(4),
                bit_depth,
                ..PLAIN_JOB
            };
            let samples = oracle::moved(input.component(0), &Motion::default());
            let mean = samples.iter().map(|&s| 256 * s as u32).collect();
            let bits = 8 * input.kind().size() as u32;
            let model = Model::new(size, bits, 1, mean, vec![0; samples.len()]);
            let model = Arc::new(model.expect("a model"));
            let layout = layout_of(&input.info).expect("a layout");
            let settings = job.settings(&input, Some(model));
            let mut operator = Reference::new(&device, &layout, &settings).expect("an operator");
            packed(&device, &mut operator, &input.import(&device), size, &ALL);
            let found = operator.basis().alignment.expect("an alignment");
            assert!(found.score > 0.9999, "{format} {size:?}: {found:?}");
            assert!(
                found.shift.iter().all(|along| along.abs() < 0.02),
                "{found:?}"
            );
        }
    }
}

#[test]
fn marks_of_a_moved_frame_are_gone_in_the_next_one() {
    let Some(device) = device::open() else { return };
    let size = [90, 70];
    let frames = [Content::Random, Content::Natural, Content::HalfRandom]
        .map(|content| Frame::showing(Format::Gray8, size, PADDED, content, 0));
    for align in [Align::Translation, Align::Affine] {
        let job = Job {
            align,
            search_range: Some(4),
            moved: Motion::shift([6, -5]),
            ..PLAIN_JOB
        };
        let model = job.model(&frames[1]);
        let layout = layout_of(&frames[0].info).expect("a layout");
        let settings = job.settings(&frames[0], Some(model.clone()));
        let mut operator = Reference::new(&device, &layout, &settings).expect("an operator");
        for n in [0, 1, 2, 0] {
            let frame = frames[n].import(&device);
            let (mask, count, _) = packed(&device, &mut operator, &frame, size, &ALL);
            let settings = job.oracle(&frames[n], motion(&operator));
            let samples = frames[n].component(0);
            let wanted = oracle::compare(samples, &for_oracle(&model), &settings);
            assert!(wanted.defect_pixels > 0);
            assert_eq!(count, wanted.defect_pixels, "{align:?} {n}");
            assert!(mask == wanted.packed, "{align:?} {n}");
        }
    }
}

#[test]
fn opened_marks_equal_reference() {
    let Some(device) = device::open() else { return };
    let mut kept = 0;
    for (n, size) in SIZES.into_iter().enumerate() {
        let input = Frame::showing(Format::Gray8, size, PLAIN, Content::Random, 0);
        for deviation_factor in [0.0, 1.5] {
            // Most pixels are marked, so that squares are.
            let job = Job {
                opening: 3,
                threshold: [0.0, 1.0, 3.0][n % 3],
                deviation_factor,
                ..PLAIN_JOB
            };
            check(&device, &input, &job);
            let model = for_oracle(&job.model(&input));
            let settings = job.oracle(&input, Motion::default());
            let opened = oracle::compare(input.component(0), &model, &settings).defect_pixels;
            let plain = oracle::Settings {
                opens: false,
                ..settings
            };
            let all = oracle::compare(input.component(0), &model, &plain).defect_pixels;
            kept += usize::from(0 < opened && opened < all);
        }
    }
    assert!(kept >= 5, "{kept}");
}

#[test]
fn small_warp_equals_reference() {
    let Some(device) = device::open() else { return };
    for (format, align, opening) in [
        (Format::Gray8, Align::Local, 3),
        (Format::Gray16Be, Align::Affine, 0),
    ] {
        let input = Frame::showing(format, [65, 64], PADDED, Content::Random, 0);
        let job = Job {
            align,
            opening,
            search_range: Some(2),
            threshold: 1.0,
            ..PLAIN_JOB
        };
        check(&device, &input, &job);
    }
}

#[test]
fn small_reference_equals_reference() {
    let Some(device) = device::open() else { return };
    for (format, size) in [
        (Format::Gray8, [33, 7]),
        (Format::Gray16Be, [17, 5]),
        (Format::Gray8, [3, 7]),
    ] {
        let input = Frame::showing(format, size, PADDED, Content::Random, 0);
        for (edge_tolerance, normalize) in [(0, NormalizeBy::None), (1, NormalizeBy::Gain)] {
            let job = Job {
                edge_tolerance,
                normalize,
                ..PLAIN_JOB
            };
            check(&device, &input, &job);
        }
    }
}
