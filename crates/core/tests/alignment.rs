//! The motion of frames against a model, on drawn pictures with a known motion.
#![allow(clippy::expect_used)]

use clinspect_core::reference::{Aligner, Alignment, Freedom, Step, Warp};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SIZE: [usize; 2] = [320, 240];
const RANGE: usize = 16;

/// Rectangles `x0, y0, x1, y1, level` on a plain ground, which a motion carries along.
struct Drawing(Vec<[f64; 5]>);

impl Drawing {
    fn parts(seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut part = || {
            let [x, y] = [320.0, 240.0].map(|n: f64| random.random_range(-20.0..n));
            let [w, h] = [(); 2].map(|()| random.random_range(6.0..50.0));
            [x, y, x + w, y + h, random.random_range(0.0..220.0)]
        };
        Self((0..60).map(|_| part()).collect())
    }

    /// Edges along x only.
    fn stripes(seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut stripe = || {
            let y = random.random_range(0.0..240.0);
            let height = random.random_range(4.0..30.0);
            [-1e3, y, 1e3, y + height, random.random_range(0.0..220.0)]
        };
        Self((0..6).map(|_| stripe()).collect())
    }

    fn at(&self, x: f64, y: f64) -> f64 {
        let covers = |r: &&[f64; 5]| x >= r[0] && x < r[2] && y >= r[1] && y < r[3];
        self.0.iter().rev().find(covers).map_or(120.0, |r| r[4])
    }

    /// The drawing moved by `motion`, which says where a point of the drawing lies in the picture, under a light of
    /// `gain`, with noise.
    fn seen(&self, motion: [f64; 6], gain: f64, seed: u64) -> Vec<f64> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let [t0, a, b, t3, d, e] = motion;
        let det = a * e - b * d;
        let mut out = Vec::new();
        for y in 0..SIZE[1] {
            for x in 0..SIZE[0] {
                let mut level = 0.0;
                for part in 0..9 {
                    let dx = x as f64 + f64::from(part % 3 - 1) / 3.0 - t0;
                    let dy = y as f64 + f64::from(part / 3 - 1) / 3.0 - t3;
                    level += self.at((e * dx - b * dy) / det, (a * dy - d * dx) / det) / 9.0;
                }
                out.push((gain * level + random.random_range(-4.0..4.0)).clamp(0.0, 255.0));
            }
        }
        out
    }
}

const STILL: [f64; 6] = [0.0, 1.0, 0.0, 0.0, 0.0, 1.0];

/// A turn in degrees, scales along x and y, and a shift, around the middle.
fn motion(turn: f64, scale: [f64; 2], shift: [f64; 2]) -> [f64; 6] {
    let (sin, cos) = turn.to_radians().sin_cos();
    let [a, b, d, e] = [
        cos * scale[0],
        -sin * scale[1],
        sin * scale[0],
        cos * scale[1],
    ];
    let [cx, cy] = SIZE.map(|n| (n as f64 - 1.0) / 2.0);
    [
        cx + shift[0] - a * cx - b * cy,
        a,
        b,
        cy + shift[1] - d * cx - e * cy,
        d,
        e,
    ]
}

/// Sums of 4x4 samples of a picture of bytes.
fn sums(picture: &[f64]) -> Vec<u16> {
    let [width, height] = SIZE;
    let byte = |x: usize, y: usize| picture[y * width + x].round() as u16;
    let block = |x: usize, y: usize| (0..16).map(|i| byte(4 * x + i % 4, 4 * y + i / 4)).sum();
    (0..height / 4)
        .flat_map(|y| (0..width / 4).map(move |x| (x, y)))
        .map(|(x, y)| block(x, y))
        .collect()
}

fn aligner(model: &[f64], freedom: Freedom) -> Aligner {
    Aligner::new(&sums(model), SIZE, RANGE, freedom, |_, _| true).expect("large enough")
}

/// Largest distance of a corner from where it should be, px.
fn corner_error(warp: &Warp, expected: [f64; 6]) -> f64 {
    let found = warp.transform();
    let [right, below] = SIZE.map(|n| n as f64 - 1.0);
    let corners = [[0.0, 0.0], [right, 0.0], [0.0, below], [right, below]];
    let place =
        |t: [f64; 6], [x, y]: [f64; 2]| [t[0] + t[1] * x + t[2] * y, t[3] + t[4] * x + t[5] * y];
    let distance = |corner| {
        let [a, b] = [place(found, corner), place(expected, corner)];
        (a[0] - b[0]).hypot(a[1] - b[1])
    };
    corners.map(distance).into_iter().fold(0.0, f64::max)
}

#[test]
fn turned_scaled_and_shifted_parts_are_found_to_a_fraction_of_a_pixel() {
    let mut errors = Vec::new();
    for seed in 0..40 {
        let mut random = ChaCha8Rng::seed_from_u64(1000 + seed);
        let mut within = |most: f64| random.random_range(-most..most);
        let expected = motion(
            within(3.0),
            [1.0 + within(0.03), 1.0 + within(0.03)],
            [within(16.0), within(16.0)],
        );
        let parts = Drawing::parts(seed);
        let gain = 1.0 + within(0.15);
        let mut aligner = aligner(&parts.seen(STILL, 1.0, 1), Freedom::Affine);
        let found = aligner.find(&sums(&parts.seen(expected, gain, 2)));
        assert_eq!(found.step, Step::Affine, "{seed}");
        errors.push(corner_error(&found.warp, expected));
    }
    errors.sort_by(f64::total_cmp);
    let [median, last] = [errors[20], errors[39]];
    assert!(
        median < 0.15 && last < 0.5,
        "median {median}, largest {last}"
    );
}

/// lab/notes/decisions.md has these figures of more drawings, fine ones too.
#[test]
fn shifts_are_found_to_a_tenth_of_a_pixel_in_the_middle_of_the_frame() {
    for (freedom, median, most) in [(Freedom::Shift, 0.12, 0.18), (Freedom::Affine, 0.06, 0.12)] {
        let mut errors = Vec::new();
        for seed in 0..20 {
            let mut random = ChaCha8Rng::seed_from_u64(3000 + seed);
            let mut within = |most: f64| random.random_range(-most..most);
            let expected = motion(0.0, [1.0; 2], [within(8.0), within(8.0)]);
            let parts = Drawing::parts(seed);
            let mut aligner = aligner(&parts.seen(STILL, 1.0, 1), freedom);
            let found = aligner.find(&sums(&parts.seen(expected, 1.0, 2)));
            let [x, y] = found.warp.shift(SIZE);
            errors.push((x - expected[0]).abs().max((y - expected[3]).abs()));
        }
        errors.sort_by(f64::total_cmp);
        assert!(errors[10] < median && errors[18] < most, "{errors:?}");
    }
}

#[test]
fn covered_tenth_of_the_picture_does_not_move_the_rest() {
    for seed in 0..20 {
        let expected = motion(1.5, [1.01, 0.99], [-9.0, 6.0]);
        let parts = Drawing::parts(seed);
        let mut frame = parts.seen(expected, 1.0, 2);
        let corner = 24 * seed as usize % 150;
        for y in corner..corner + 76 {
            frame[y * SIZE[0] + corner..][..101].fill(250.0);
        }
        let found = aligner(&parts.seen(STILL, 1.0, 1), Freedom::Affine).find(&sums(&frame));
        let error = corner_error(&found.warp, expected);
        assert!(error < 1.0, "{seed}: {error} px");
    }
}

#[test]
fn shift_along_edges_is_not_guessed() {
    for freedom in [Freedom::Shift, Freedom::Affine, Freedom::Local] {
        for seed in 0..20 {
            let stripes = Drawing::stripes(seed);
            let moved = motion(0.0, [1.0; 2], [11.0, 5.5]);
            let mut aligner = aligner(&stripes.seen(STILL, 1.0, 1), freedom);
            let found = aligner.find(&sums(&stripes.seen(moved, 1.0, 2)));
            let [x, y] = found.warp.shift(SIZE);
            assert!(x.abs() < 0.02 && (y - 5.5).abs() < 1.0, "{seed}: {x} {y}");
        }
    }
}

#[test]
fn shift_alone_neither_turns_nor_scales() {
    let parts = Drawing::parts(3);
    let moved = motion(0.0, [1.0; 2], [-13.25, 7.5]);
    let found =
        aligner(&parts.seen(STILL, 1.0, 1), Freedom::Shift).find(&sums(&parts.seen(moved, 1.0, 2)));
    let [x, a, b, y, d, e] = found.warp.transform();
    assert_eq!([a, b, d, e], [1.0, 0.0, 0.0, 1.0]);
    assert_eq!([x, y], [-13.25, 7.5]);
}

/// What is found of a frame against the parts of seed 4.
fn found(frame: &[f64]) -> Alignment {
    aligner(&Drawing::parts(4).seen(STILL, 1.0, 1), Freedom::Local).find(&sums(frame))
}

#[test]
fn picture_without_structure_has_no_motion() {
    let plain = vec![90.0; SIZE[0] * SIZE[1]];
    for frame in [&plain, &Drawing::parts(5).seen(STILL, 1.0, 1)] {
        let found = aligner(&plain, Freedom::Local).find(&sums(frame));
        assert_eq!((found.step, found.score), (Step::None, 0.0));
        assert!(found.warp.is_identity());
    }
    assert_eq!(found(&plain).score, 0.0);
}

#[test]
fn score_tells_another_object_and_half_a_part_from_the_part() {
    let parts = Drawing::parts(4);
    let same = found(&parts.seen(motion(-1.0, [1.0; 2], [3.0, -3.0]), 0.9, 2));
    assert!(same.score > 0.9 && same.misfit < 8.0, "{same:?}");
    let other = found(&Drawing::parts(5).seen(STILL, 1.0, 2));
    assert!(other.score < 0.3, "{}", other.score);
    let mut mirrored = parts.seen(STILL, 1.0, 2);
    for row in mirrored.chunks_exact_mut(SIZE[0]) {
        row.reverse();
    }
    let mirrored = found(&mirrored).score;
    assert!(mirrored < 0.3, "{mirrored}");
    let mut half = parts.seen(STILL, 1.0, 2);
    half[SIZE[0] * SIZE[1] / 2..].fill(120.0);
    let half = found(&half);
    assert!(half.score > 0.3 && half.score < 0.7, "{}", half.score);
    assert!(half.misfit > same.misfit);
}

#[test]
fn pixels_that_are_not_judged_do_not_count() {
    let parts = Drawing::parts(6);
    // A third of the frame shows another picture.
    let other = Drawing::parts(7).seen(motion(0.0, [1.0; 2], [14.0, -14.0]), 1.0, 3);
    let expected = motion(0.8, [1.0, 1.01], [4.0, 2.0]);
    let mut frame = parts.seen(expected, 1.0, 2);
    let rows = SIZE[0] * 80;
    frame[..rows].copy_from_slice(&other[..rows]);
    let model = sums(&parts.seen(STILL, 1.0, 1));
    let mut aligner =
        Aligner::new(&model, SIZE, RANGE, Freedom::Affine, |_, y| y >= 90).expect("large enough");
    let found = aligner.find(&sums(&frame));
    assert!(corner_error(&found.warp, expected) < 0.5);
    assert!(found.score > 0.9, "{}", found.score);
}

#[test]
fn local_shifts_follow_what_the_affine_motion_leaves() {
    let parts = Drawing::parts(8);
    // The right half lies 1 px lower.
    let still = parts.seen(STILL, 1.0, 2);
    let lower = parts.seen(motion(0.0, [1.0; 2], [0.0, 1.0]), 1.0, 2);
    let frame: Vec<f64> = (still.iter().zip(&lower).enumerate())
        .map(|(i, (&a, &b))| if i % SIZE[0] < SIZE[0] / 2 { a } else { b })
        .collect();
    let found = aligner(&parts.seen(STILL, 1.0, 1), Freedom::Local).find(&sums(&frame));
    assert!(found.warp.nodes.is_some());
    let down = |x| found.warp.displacement(x, 120)[1];
    assert!(
        down(40).abs() < 128 && (down(280) - 256).abs() < 128,
        "{} {}",
        down(40),
        down(280)
    );
    let largest = found.warp.largest_local();
    assert!(largest > 0.1 && largest <= 2.0, "{largest}");
}

#[test]
fn frames_that_cannot_be_aligned_are_refused_with_their_size() {
    let of = |size: [usize; 2], range| {
        let sums = vec![0; size[0] / 4 * (size[1] / 4)];
        Aligner::new(&sums, size, range, Freedom::Affine, |_, _| true).map(|_| ())
    };
    assert_eq!(of([64, 64], 16), Ok(()));
    let why = of([63, 400], 16).expect_err("too small");
    assert!(why.contains("63x400") && why.contains("64x64"), "{why}");
    let why = of([20_000, 64], 16).expect_err("too large");
    assert!(why.contains("20000x64"), "{why}");
}

#[test]
fn odd_sizes_have_nodes_for_each_tile() {
    for size in [[161, 97], [67, 300], [350, 66]] {
        let sums: Vec<u16> = (0..size[0] / 4 * (size[1] / 4))
            .map(|i| (i * 7919 % 4000) as u16)
            .collect();
        let mut aligner =
            Aligner::new(&sums, size, 8, Freedom::Local, |_, _| true).expect("large enough");
        let found = aligner.find(&sums);
        assert!(found.score > 0.99, "{size:?}: {}", found.score);
        let nodes = found.warp.nodes.expect("local shifts");
        assert_eq!([nodes.columns, nodes.rows], size.map(|n| n.div_ceil(32)));
        assert_eq!(nodes.u.len(), nodes.columns * nodes.rows);
    }
}
