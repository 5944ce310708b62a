//! `operators::PitchThreshold` along vectors of any angle.

use std::sync::Arc;

use clinspect_core::{lattice::Lattice, variant::PitchThresholdVariant};
use clinspect_opencl::{
    ClContext, Meter,
    frame::{LUMA_FORMATS, layout_of},
};
use clinspect_operators::{
    Borders, Compare, Contrast, Inspection, MaskTarget, PitchThreshold, PitchThresholdSettings,
    Polarity, Repeating,
};
use gst_video::VideoFormat as Format;

use crate::{
    SIZES,
    content::{Content, random},
    device,
    frames::{ARRANGEMENTS, Frame, OUTPUT_ARRANGEMENTS, PADDED, PLAIN, read},
    oracle::{pitch_threshold as oracle, put},
    pitch_threshold_job::{Choice, Job, check, classic, whole},
};

/// The kernel for the device, that for any device, and this with images.
const CHOICES: [Choice; 3] = [
    (None, false),
    (Some(PitchThresholdVariant::Bytes), false),
    (None, true),
];

/// Random whole numbers.
pub struct Numbers(usize);

impl Numbers {
    /// Other ones for each seed.
    pub fn new(seed: usize) -> Self {
        Self(seed)
    }

    /// From 0 to `past` - 1.
    pub fn below(&mut self, past: u32) -> u32 {
        self.0 += 1;
        random(19, 0, self.0, 0) % past
    }

    /// In 1/256 px, or whole, from -`most` to `most` px.
    fn length(&mut self, most: u32) -> f64 {
        let step = [1.0, 256.0][self.below(2) as usize];
        let steps = (512.0 * f64::from(most) / step) as u32;
        (f64::from(self.below(steps + 1)) * step / 256.0) - f64::from(most)
    }

    /// A lattice with components of at most this many px.
    pub fn lattice(&mut self, most: u32) -> Lattice {
        loop {
            let a = [self.length(most), self.length(most)];
            let b = [self.length(most), self.length(most)];
            let lattice = match self.below(3) {
                0 => Lattice::new(&[a]),
                _ => Lattice::new(&[a, b]),
            };
            if let Ok(lattice) = lattice {
                return lattice;
            }
        }
    }
}

/// A job with random settings.
fn job(numbers: &mut Numbers, size: [usize; 2], depth: u32) -> Job {
    let [width, height] = size.map(|n| n as u32);
    let most = (width.max(height) / 4).clamp(2, 12);
    let highest = f64::from((1_u32 << depth) - 1);
    let region = |numbers: &mut Numbers| {
        let x = numbers.below(width);
        let y = numbers.below(height);
        [
            x,
            y,
            1 + numbers.below(width - x),
            1 + numbers.below(height - y),
        ]
    };
    Job {
        vectors: numbers.lattice(most).vectors().to_vec(),
        multiples: [vec![1], vec![1, 2], vec![3, 1], vec![2]][numbers.below(4) as usize].clone(),
        threshold: highest * [0.0, 0.07, 0.2, 0.999][numbers.below(4) as usize],
        compare: [Compare::Minimum, Compare::Average][numbers.below(2) as usize],
        match_center: numbers.below(3) > 0,
        polarity: [Polarity::Both, Polarity::Bright, Polarity::Dark][numbers.below(3) as usize],
        borders: [Borders::Inward, Borders::Skip][(numbers.below(4) / 3) as usize],
        edge_margin: [0, 1, 2, 7][numbers.below(4) as usize],
        // Near the deviation of random samples, so that some tiles are missing.
        min_contrast: [0.0, 73.0][numbers.below(2) as usize],
        rois: match numbers.below(3) {
            0 => vec![region(numbers), region(numbers)],
            _ => Vec::new(),
        },
        ignored: match numbers.below(3) {
            0 => vec![vec![1.0, 0.0, 19.0, 1.0, 5.0, 14.0]],
            _ => Vec::new(),
        },
        ..classic(0.0, 0.0)
    }
}

#[test]
fn lattices_on_frames_of_every_format_and_size_equal_reference() {
    let Some(device) = device::open() else { return };
    let mut numbers = Numbers::new(0);
    for (f, &format) in LUMA_FORMATS.iter().enumerate() {
        for (i, &size) in SIZES.iter().enumerate() {
            let arrangement = ARRANGEMENTS[(f + i) % ARRANGEMENTS.len()];
            let input = Frame::showing(format, size, arrangement, Content::Random, 0);
            let depth = 8 * input.kind().size() as u32;
            check(&device, &input, &job(&mut numbers, size, depth), &CHOICES);
        }
    }
}

#[test]
fn random_lattices_equal_reference() {
    let Some(device) = device::open() else { return };
    let mut numbers = Numbers::new(100_000);
    let mut marked = 0;
    for n in 0..120 {
        let size = [
            1 + numbers.below(99) as usize,
            1 + numbers.below(79) as usize,
        ];
        let format = [Format::Gray8, Format::Gray16Be, Format::Gray16Le][n % 3];
        let input = Frame::showing(format, size, ARRANGEMENTS[n % 5], Content::Random, 0);
        let job = job(&mut numbers, size, 8 * input.kind().size() as u32);
        marked += u32::from(!job.is_blind(&input) && job.expected(&input).defect_pixels > 0);
        check(&device, &input, &job, &CHOICES);
    }
    assert!(marked > 30, "only {marked} frames with marked pixels");
}

/// Also for Oclgrind, which checks every access.
#[test]
fn small_lattices_equal_reference() {
    let Some(device) = device::open() else { return };
    for (format, size) in [
        (Format::Gray8, [37, 9]),
        (Format::Gray16Be, [21, 7]),
        (Format::Gray8, [5, 6]),
    ] {
        let input = Frame::showing(format, size, PADDED, Content::Random, 0);
        let job = Job {
            vectors: vec![[2.5, 0.75], [-1.0, 1.5]],
            multiples: vec![1, 2],
            compare: Compare::Minimum,
            match_center: true,
            borders: Borders::Inward,
            edge_margin: 1,
            min_contrast: 73.0,
            ..classic(0.0, 20.0)
        };
        check(&device, &input, &job, &CHOICES[..2]);
    }
}

/// Samples of 0 and the highest level: sums reach their extremes.
#[test]
fn lattices_on_extreme_samples_equal_reference() {
    let Some(device) = device::open() else { return };
    for (format, highest) in [(Format::Gray8, 255_u32), (Format::Gray16Le, 65_535)] {
        let mut input = Frame::showing(format, [67, 21], PADDED, Content::Constant(0), 0);
        let geometry = input.geometry(0);
        for (x, y) in (0..21).flat_map(|y| (0..67).map(move |x| (x, y))) {
            put(
                &mut input.bytes,
                &geometry,
                x,
                y,
                highest * (random(7, 0, x, y) & 1),
            );
        }
        let highest = f64::from(highest);
        for vectors in [
            [[5.0, 0.5], [-0.5, 3.0]],
            [[5.0625, 0.9375], [0.0625, 3.0]],
            [[4.0, 3.0], [1.996, -3.996]],
        ] {
            for threshold in [
                0.0,
                1.0 / 256.0,
                highest / 2.0,
                highest - 1.0 / 256.0,
                highest,
            ] {
                for compare in [Compare::Minimum, Compare::Average] {
                    let job = Job {
                        vectors: vectors.to_vec(),
                        compare,
                        match_center: threshold < 1.0,
                        borders: Borders::Inward,
                        ..classic(0.0, threshold)
                    };
                    check(&device, &input, &job, &CHOICES);
                }
            }
        }
    }
}

/// The packed mask of a frame.
fn mask(
    device: &Arc<ClContext>,
    input: &Frame,
    settings: &PitchThresholdSettings,
) -> (Vec<u8>, PitchThreshold) {
    let layout = layout_of(&input.info).expect("a layout");
    let mut operator = PitchThreshold::new(device, &layout, settings).expect("an operator");
    let (meter, frame) = (Meter::new(false), input.import(device));
    let output = Frame::poisoned(Format::Gray8, input.size(), OUTPUT_ARRANGEMENTS[0], 0);
    let (grey, buffer) = output.output(device);
    operator
        .mark(whole(input, &frame, &meter), MaskTarget::Grey(&grey))
        .expect("the comparison runs");
    (read(&buffer), operator)
}

#[test]
fn lattice_along_the_axes_is_that_of_the_pitches() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray8, [97, 60], PLAIN, Content::Random, 0);
    let job = Job {
        pitch: [7.35, 5.5],
        borders: Borders::Inward,
        scales: 1,
        ..classic(0.0, 70.0)
    };
    let pitches = job.settings(&input, (None, false));
    let (expected, _) = mask(&device, &input, &pitches);
    assert!(expected.contains(&255));
    for (x, y) in [(7.35, 5.5), (-7.35, 5.5), (7.35, -5.5)] {
        let lattice = PitchThresholdSettings {
            pitch_x: 30.0,
            lattice: Lattice::new(&[[x, 0.0], [0.0, y]]).ok(),
            ..pitches.clone()
        };
        let (own, operator) = mask(&device, &input, &lattice);
        assert_eq!(own, expected);
        assert_eq!(
            (operator.pitches(), operator.lattice()),
            ([7.35, 5.5], None)
        );
    }
}

#[test]
fn lattice_of_negative_vectors_marks_the_same_pixels() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray16Be, [97, 60], PLAIN, Content::Random, 0);
    let marked = |vectors: &[[f64; 2]]| {
        let job = Job {
            vectors: vectors.to_vec(),
            borders: Borders::Inward,
            compare: Compare::Minimum,
            match_center: true,
            edge_margin: 1,
            ..classic(0.0, 9000.0)
        };
        mask(&device, &input, &job.settings(&input, (None, false))).0
    };
    let expected = marked(&[[7.35, 1.5], [-2.25, 6.0]]);
    assert!(expected.contains(&255));
    assert_eq!(marked(&[[-7.35, -1.5], [-2.25, 6.0]]), expected);
    assert_eq!(marked(&[[7.35, 1.5], [2.25, -6.0]]), expected);
}

/// Waves along two directions that are not at right angles, and some noise.
fn waves(format: Format, lattice: &[[f64; 2]; 2]) -> Frame {
    let mut input = Frame::showing(format, [157, 110], PADDED, Content::Constant(0), 0);
    let [[ax, ay], [bx, by]] = *lattice;
    let det = ax * by - ay * bx;
    let geometry = input.geometry(0);
    let depth = 8 * input.kind().size() as u32;
    for (x, y) in (0..110).flat_map(|y| (0..157).map(move |x| (x, y))) {
        let (u, v) = (x as f64, y as f64);
        let turns = [(u * by - v * bx) / det, (v * ax - u * ay) / det];
        let wave: f64 = turns
            .iter()
            .map(|t| (std::f64::consts::TAU * t).cos())
            .sum();
        let level = (110.0 + 40.0 * wave) as u32 + random(3, 0, x, y) % 7;
        put(&mut input.bytes, &geometry, x, y, level << (depth - 8));
    }
    input
}

#[test]
fn lattice_contrast_is_learned_where_the_pattern_repeats_along_each_vector() {
    let Some(device) = device::open() else { return };
    const VECTORS: [[f64; 2]; 2] = [[12.3, 3.1], [-4.0, 10.6]];
    for format in [Format::Gray8, Format::Gray16Be] {
        let input = waves(format, &VECTORS);
        let layout = layout_of(&input.info).expect("a layout");
        for (vectors, is_seen) in [
            (VECTORS.to_vec(), true),
            (VECTORS[..1].to_vec(), true),
            // Two times A, and A plus B.
            (vec![[24.6, 6.2], [8.3, 13.7]], true),
            (vec![[12.3, 3.1], [-8.0, 7.0]], false),
            (vec![[6.1, 1.5], [-4.0, 10.6]], false),
        ] {
            let job = Job {
                vectors,
                ..classic(0.0, 10.0)
            };
            let settings = PitchThresholdSettings {
                contrast: Contrast::Unknown,
                ..job.settings(&input, (None, false))
            };
            let mut operator = PitchThreshold::new(&device, &layout, &settings).expect("runs");
            assert_eq!(operator.basis().judged.any, 0);
            let meter = Meter::new(false);
            let learned = operator
                .learn_contrast(&input.import(&device), layout.height, [false; 2], &meter)
                .expect("looks for the pattern");
            let wanted = oracle::contrast(input.component(0), &job.oracle(input.size()));
            assert_eq!(wanted.is_some(), is_seen, "{job:?}");
            assert_eq!(learned, wanted, "{job:?}");
        }
    }
}

#[test]
fn lattice_that_cannot_be_compared_along_is_refused_with_a_sentence() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray8, [97, 60], PLAIN, Content::Random, 0);
    let layout = layout_of(&input.info).expect("a layout");
    let refusal = |change: &dyn Fn(&mut PitchThresholdSettings), vectors: &[[f64; 2]]| {
        let job = Job {
            vectors: vectors.to_vec(),
            ..classic(0.0, 10.0)
        };
        let mut settings = job.settings(&input, (None, false));
        change(&mut settings);
        match PitchThreshold::new(&device, &layout, &settings) {
            Err(clinspect_core::ClError::Refused(why)) => why,
            other => panic!("not refused: {other:?}"),
        }
    };
    let too_long = refusal(&|_| {}, &[[9.0, 1.0], [-3.0, 31.0]]);
    assert!(
        too_long.contains("the vector (-3, 31) of lattice"),
        "{too_long}"
    );
    assert!(too_long.contains("3 columns and 31 rows"), "{too_long}");
    let scales = refusal(&|s| s.scales = 2, &[[9.0, 1.0]]);
    assert!(
        scales.contains("scales=2") && scales.contains("lattice=<9, 1>"),
        "{scales}"
    );
    let multiples = refusal(&|s| s.multiples = vec![1, 4_000_000], &[[9.0, 1.0]]);
    assert!(multiples.contains("times 4000000"), "{multiples}");
}
