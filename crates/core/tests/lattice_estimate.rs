//! The lattice estimator: precise at any angle, none without a pattern, and true to the vectors while they turn.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{convert::Infallible, f64::consts::TAU};

use clinspect_core::{
    lattice_estimate::{
        Crop, LatticeChange, LatticeEstimate, LatticeEstimator, LatticeTracker, Vector, middle,
    },
    pitch::Axis,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Largest error of a vector: what a comparison of 1/256 px and a cell of some tens of pixels need.
const LARGEST_ERROR_PX: f64 = 0.02;
const LARGEST_ERROR_DEGREES: f64 = 0.05;

/// The same of three to five repeats, whose parts at the picture's edges weigh more, as a share of the vector.
const LARGEST_ERROR_OF_FEW: f64 = 1e-3;

/// Standard deviation of the noise, grey levels.
const NOISE: f64 = 4.0;

/// Most of the angles at which patterns are drawn, degrees.
const ANGLES: [f64; 10] = [0.0, 0.5, 1.0, 3.0, 7.0, 12.5, 21.0, 30.0, 38.0, 45.0];

/// A grey picture.
#[derive(Clone)]
struct Picture {
    width: usize,
    height: usize,
    samples: Vec<f32>,
}

impl Picture {
    fn new(width: usize, height: usize, level: impl Fn(f64, f64) -> f64) -> Self {
        let samples = (0..width * height)
            .map(|i| level((i % width) as f64, (i / width) as f64) as f32)
            .collect();
        Self {
            width,
            height,
            samples,
        }
    }

    /// With noise, in whole grey levels of 8 bits.
    fn with_noise(mut self, sigma: f64, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for v in &mut self.samples {
            let noise: f64 = StandardNormal.sample(&mut rng);
            *v = (f64::from(*v) + sigma * noise).round().clamp(0.0, 255.0) as f32;
        }
        self
    }

    fn size(&self) -> [usize; 2] {
        [self.width, self.height]
    }

    fn read(&self) -> impl FnMut(Crop, &mut Vec<f32>) -> Result<(), Infallible> {
        |crop, out| {
            middle(&self.samples, self.width, crop, out);
            Ok(())
        }
    }

    fn lattice(&self) -> Option<LatticeEstimate> {
        let Ok(found) = LatticeEstimator::default().estimate(self.size(), self.read());
        found
    }
}

/// `v`, turned by an angle in degrees.
fn turned([x, y]: Vector, degrees: f64) -> Vector {
    let (sin, cos) = degrees.to_radians().sin_cos();
    [x * cos - y * sin, x * sin + y * cos]
}

fn length(v: Vector) -> f64 {
    v[0].hypot(v[1])
}

/// The coordinates of a place in the lattice of two vectors.
fn coordinates([x, y]: Vector, [a, b]: [Vector; 2]) -> Vector {
    let area = a[0] * b[1] - a[1] * b[0];
    [(x * b[1] - y * b[0]) / area, (a[0] * y - a[1] * x) / area]
}

/// 1 from `start` to `end`, parts of a repeat of `px` pixels, 0 elsewhere; blurred by the optics.
fn inside(t: f64, start: f64, end: f64, px: f64) -> f64 {
    let blur = |distance: f64| match distance * px / 0.45 {
        steps if steps > 30.0 => 1.0,
        steps if steps < -30.0 => 0.0,
        steps => 1.0 / (1.0 + (-steps).exp()),
    };
    let t = t.rem_euclid(1.0);
    [-1.0, 0.0, 1.0]
        .into_iter()
        .map(|shift| blur(t + shift - start) * blur(end - t - shift))
        .sum()
}

/// A panel: a pad and a via in each cell.
fn panel([a, b]: [Vector; 2], size: [usize; 2], phase: Vector) -> Picture {
    Picture::new(size[0], size[1], |x, y| {
        let [u, v] = coordinates([x, y], [a, b]);
        let (u, v) = (u + phase[0], v + phase[1]);
        let pad = inside(u, 0.12, 0.72, length(a)) * inside(v, 0.2, 0.66, length(b));
        let via = inside(u, 0.8, 0.95, length(a)) * inside(v, 0.7, 0.95, length(b));
        60.0 + 110.0 * pad + 60.0 * via
    })
}

/// Plain weave of threads a vector apart: the warp is on top in every second field. Its cell holds two fields.
fn cloth([a, b]: [Vector; 2], size: [usize; 2], phase: Vector) -> Picture {
    Picture::new(size[0], size[1], |x, y| {
        let [u, v] = coordinates([x, y], [a, b]);
        let (u, v) = (u + phase[0], v + phase[1]);
        let round = |t: f64| (std::f64::consts::PI * t.rem_euclid(1.0)).sin();
        let is_warp = (u.floor() + v.floor()).rem_euclid(2.0) == 0.0;
        if is_warp {
            60.0 + 140.0 * round(u) * round(v).sqrt()
        } else {
            60.0 + 100.0 * round(v) * round(u).sqrt()
        }
    })
}

/// How far a vector is from the nearest one of a lattice, px, and by how many degrees it is turned from that.
fn error(found: Vector, lattice: [Vector; 2]) -> (f64, f64) {
    let [i, j] = coordinates(found, lattice).map(f64::round);
    let [a, b] = lattice;
    let near = [i * a[0] + j * b[0], i * a[1] + j * b[1]];
    let turn = (found[1].atan2(found[0]) - near[1].atan2(near[0])).to_degrees();
    let turn = (turn + 180.0).rem_euclid(360.0) - 180.0;
    (length([found[0] - near[0], found[1] - near[1]]), turn.abs())
}

/// Asserts that the vectors span the lattice.
fn assert_lattice(found: Option<LatticeEstimate>, lattice: [Vector; 2], what: &str) {
    let found = found.unwrap_or_else(|| panic!("{what}: no lattice"));
    let b = found
        .b
        .unwrap_or_else(|| panic!("{what}: one vector, {found:?}"));
    for v in [found.a, b] {
        let (px, degrees) = error(v, lattice);
        assert!(
            px <= LARGEST_ERROR_PX && degrees <= LARGEST_ERROR_DEGREES,
            "{what}: {found:?} is {px:.4} px and {degrees:.4}° away from {lattice:?}"
        );
    }
    let area = |a: Vector, b: Vector| (a[0] * b[1] - a[1] * b[0]).abs();
    let (cell, true_cell) = (area(found.a, b), area(lattice[0], lattice[1]));
    assert!(
        (cell / true_cell - 1.0).abs() < 0.02,
        "{what}: {found:?} of {lattice:?}"
    );
    assert!(found.a[0] > 0.0 && b[1] > 0.0, "{what}: {found:?}");
    assert!(found.error_px < LARGEST_ERROR_PX, "{what}: {found:?}");
}

/// The lattice of plain weave.
fn woven([a, b]: [Vector; 2]) -> [Vector; 2] {
    [[a[0] + b[0], a[1] + b[1]], [a[0] - b[0], a[1] - b[1]]]
}

fn phase(rng: &mut ChaCha8Rng) -> Vector {
    [rng.random(), rng.random()]
}

#[test]
fn panel_and_cloth_at_any_angle_are_found_within_a_fiftieth() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let shapes = [
        ([24.7, 0.0], [0.0, 31.3]),
        ([9.4, 0.0], [0.0, 13.2]),
        ([16.0, 0.0], [0.0, 16.0]),
        ([30.0, 0.0], [11.0, 27.0]),
    ];
    for (seed, angle) in (0..).zip(ANGLES) {
        for (a, b) in shapes {
            let lattice = [turned(a, angle), turned(b, angle)];
            let what = format!("{a:?}, {b:?} at {angle}°");
            let picture = panel(lattice, [640, 480], phase(&mut rng)).with_noise(NOISE, seed);
            assert_lattice(picture.lattice(), lattice, &format!("panel of {what}"));
            let threads = lattice.map(|v| v.map(|c| 0.5 * c));
            let picture = cloth(threads, [640, 480], phase(&mut rng)).with_noise(NOISE, seed);
            assert_lattice(
                picture.lattice(),
                woven(threads),
                &format!("cloth of {what}"),
            );
        }
    }
}

#[test]
fn panel_parallel_to_the_axes_has_parallel_vectors() {
    let picture = panel([[18.3, 0.0], [0.0, 25.1]], [700, 520], [0.3, 0.1]).with_noise(NOISE, 5);
    let found = picture.lattice().unwrap();
    assert!(found.is_parallel(), "{found:?}");
    assert_eq!(found.angle_degrees(), 0.0);
    let lattice = [[18.3, 0.0], [0.0, 25.1]].map(|v| turned(v, 0.5));
    let found = panel(lattice, [700, 520], [0.3, 0.1]).lattice().unwrap();
    assert!(!found.is_parallel(), "{found:?}");
    assert!((found.angle_degrees() - 0.5).abs() < LARGEST_ERROR_DEGREES);
}

#[test]
fn large_cells_are_found_in_the_halved_frame() {
    for (pitch, angle, level) in [(230.0, 4.0, 1), (230.0, 45.0, 1), (400.0, 10.0, 2)] {
        let lattice = [[pitch, 0.0], [0.0, 0.8 * pitch]].map(|v| turned(v, angle));
        let picture = panel(lattice, [2048, 1536], [0.1, 0.6]).with_noise(NOISE, 2);
        let found = picture.lattice();
        assert_eq!(found.map(|found| found.level), Some(level), "{pitch}");
        let found = found.unwrap();
        for v in [found.a, found.b.unwrap()] {
            let (px, degrees) = error(v, lattice);
            let largest = LARGEST_ERROR_OF_FEW * length(v);
            assert!(
                px <= largest && degrees <= LARGEST_ERROR_DEGREES,
                "{found:?}: {px}, {degrees}"
            );
        }
    }
}

#[test]
fn grating_at_any_angle_has_one_vector_normal_to_its_lines() {
    for angle in [0.0, 1.0, 7.0, 21.0, 45.0, 63.0, 90.0, 118.0, 179.0] {
        for period in [5.3, 12.0, 31.7] {
            let normal = turned([period, 0.0], angle);
            let picture = Picture::new(560, 500, |x, y| {
                let t = (x * normal[0] + y * normal[1]) / (period * period);
                70.0 + 100.0 * inside(t, 0.2, 0.6, period)
            });
            let found = picture.with_noise(NOISE, 3).lattice();
            let found = found.unwrap_or_else(|| panic!("{period} at {angle}°: none"));
            assert_eq!(found.b, None, "{period} at {angle}°: {found:?}");
            // A second vector of any length along the lines: either sense of the one vector is right.
            let (px, degrees) = error(found.a, [normal, turned([1e3, 0.0], angle + 90.0)]);
            assert!(
                px <= LARGEST_ERROR_PX && degrees <= LARGEST_ERROR_DEGREES,
                "{period} at {angle}°: {found:?}, {px:.4} px, {degrees:.4}°"
            );
            assert!(
                (length(found.a) / period - 1.0).abs() < 0.01,
                "{period} at {angle}°: {found:?}"
            );
        }
    }
}

#[test]
fn chessboard_has_the_lattice_of_its_equal_squares() {
    for angle in [0.0, 3.0, 30.0, 45.0] {
        for side in [8.0, 17.3, 26.0] {
            let squares = [[side, 0.0], [0.0, side]].map(|v| turned(v, angle));
            let picture = Picture::new(512, 512, |x, y| {
                let [u, v] = coordinates([x, y], squares).map(|t| t / 2.0);
                let [u, v] = [u, v].map(|t| 2.0 * inside(t, 0.25, 0.75, 2.0 * side) - 1.0);
                120.0 + 60.0 * u * v
            });
            let found = picture.with_noise(NOISE, 4).lattice();
            assert_lattice(
                found,
                woven(squares),
                &format!("squares of {side} at {angle}°"),
            );
        }
    }
}

#[test]
fn cell_of_threads_in_other_colours_is_the_whole_repeat() {
    for (angle, colours) in [(0.0, 2), (7.0, 2), (21.0, 3), (45.0, 3)] {
        let lattice = [[12.0, 0.0], [0.0, 13.0]].map(|v| turned(v, angle));
        let picture = Picture::new(640, 640, |x, y| {
            let [u, v] = coordinates([x, y], lattice);
            let dark = 45.0 * (u.floor() as i64).rem_euclid(colours) as f64 / (colours - 1) as f64;
            let pad = inside(u, 0.15, 0.85, 12.0) * inside(v, 0.2, 0.7, 13.0);
            60.0 + (120.0 - dark) * pad
        });
        let whole = [lattice[0].map(|c| c * colours as f64), lattice[1]];
        let found = picture.with_noise(NOISE, 6).lattice();
        assert_lattice(found, whole, &format!("{colours} colours at {angle}°"));
    }
}

/// The picture smoothed along both axes over `2·grain + 1` pixels, in units of its standard deviation.
fn grained(width: usize, height: usize, grain: usize, seed: u64) -> Picture {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut v: Vec<f64> = (0..width * height)
        .map(|_| StandardNormal.sample(&mut rng))
        .collect();
    for (count, step, lines, next) in [(width, 1, height, width), (height, width, width, 1)] {
        for line in 0..lines {
            let old: Vec<f64> = (0..count).map(|i| v[line * next + i * step]).collect();
            for i in 0..count {
                let near = i.saturating_sub(grain)..(i + grain + 1).min(count);
                let n = (near.len() as f64).sqrt();
                v[line * next + i * step] = near.map(|i| old[i]).sum::<f64>() / n;
            }
        }
    }
    Picture::new(width, height, |x, y| {
        128.0 + 30.0 * v[y as usize * width + x as usize]
    })
}

#[test]
fn picture_without_repetition_has_no_lattice() {
    let noise = grained(640, 480, 0, 9);
    let grey = |x: f64, y: f64| f64::from(noise.samples[(y * 640.0 + x) as usize]) - 128.0;
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    let waves: Vec<(f64, f64)> = (0..12)
        .map(|_| (rng.random_range(0.0..180.0), rng.random_range(10.0..30.0)))
        .collect();
    let wave = |x: f64, y: f64, angle: f64, period: f64| {
        let [u, _] = turned([x, y], angle);
        (TAU * u / period).cos()
    };
    let pictures = [
        ("black", Picture::new(640, 480, |_, _| 0.0)),
        ("white of 16 bits", Picture::new(640, 480, |_, _| 65_535.0)),
        ("a third", Picture::new(640, 480, |_, _| 1.0 / 3.0)),
        ("not a number", Picture::new(640, 480, |_, _| f64::NAN)),
        (
            "gradient",
            Picture::new(640, 480, |x, y| (x / 3.37 + y / 7.1).round()),
        ),
        (
            "gradient and noise",
            Picture::new(640, 480, |x, y| (x / 4.0 + 0.05 * grey(x, y)).round()),
        ),
        (
            "edge",
            Picture::new(640, 480, |x, y| if x + y > 500.0 { 200.0 } else { 30.0 }),
        ),
        (
            "cross",
            Picture::new(640, 480, |x, y| {
                if x == 300.0 || y == 200.0 {
                    255.0
                } else {
                    30.0
                }
            }),
        ),
        (
            "rings",
            Picture::new(640, 480, |x, y| {
                128.0 + 60.0 * (TAU * (x - 320.0).hypot(y - 240.0) / 14.0).cos()
            }),
        ),
        (
            "zone plate",
            Picture::new(640, 480, |x, y| {
                128.0 + 60.0 * (((x - 320.0).powi(2) + (y - 240.0).powi(2)) / 400.0).cos()
            }),
        ),
        (
            "waves of any direction and length",
            Picture::new(640, 480, |x, y| {
                let waves = waves
                    .iter()
                    .map(|&(angle, period)| wave(x, y, angle, period));
                128.0 + 15.0 * waves.sum::<f64>()
            }),
        ),
    ];
    for (name, picture) in pictures {
        assert_eq!(picture.lattice(), None, "{name}");
    }
    for (seed, grain) in (0..).zip([0, 1, 2, 4, 9, 20, 40]) {
        for seed in [seed, seed + 100, seed + 200] {
            let found = grained(700, 520, grain, seed).lattice();
            assert_eq!(found, None, "noise of grain {grain}, seed {seed}");
        }
    }
}

/// Dots of two lattices over each other, the second one of another pitch and turned by an angle in degrees.
fn moire(pitches: [f64; 2], angle: f64) -> (Picture, [[Vector; 2]; 2]) {
    let lattice = |pitch: f64, angle| [[pitch, 0.0], [0.0, pitch]].map(|v| turned(v, angle));
    let lattices = [lattice(pitches[0], 1.0), lattice(pitches[1], 1.0 + angle)];
    let picture = Picture::new(640, 480, |x, y| {
        let dots = lattices.map(|lattice| {
            let [u, v] = coordinates([x, y], lattice);
            let px = length(lattice[0]);
            inside(u, 0.2, 0.7, px) * inside(v, 0.2, 0.7, px)
        });
        60.0 + 80.0 * (dots[0] + dots[1])
    });
    (picture.with_noise(NOISE, 7), lattices)
}

#[test]
fn moire_of_like_lattices_has_the_lattice_between_them() {
    for (pitches, angle) in [
        ([11.0, 11.9], 2.0),
        ([11.0, 11.9], 5.0),
        ([20.0, 20.4], 3.0),
    ] {
        let (picture, lattices) = moire(pitches, angle);
        let found = picture.lattice().unwrap();
        for v in [found.a, found.b.unwrap()] {
            for lattice in lattices {
                let (px, _) = error(v, lattice);
                assert!(px < 0.08 * length(v), "{pitches:?}, {angle}°: {found:?}");
            }
        }
    }
}

#[test]
fn frame_of_fewer_than_three_repeats_or_too_small_has_no_lattice() {
    let found = |size: [usize; 2], pitch: f64| {
        let lattice = [[pitch, 0.0], [0.0, pitch]].map(|v| turned(v, 7.0));
        panel(lattice, size, [0.2, 0.9]).lattice()
    };
    for size in [
        [0, 0],
        [1, 1],
        [1, 900],
        [3, 3],
        [15, 15],
        [47, 640],
        [640, 47],
    ] {
        assert_eq!(found(size, 8.0), None, "{size:?}");
    }
    for (size, pitch) in [([48, 48], 17.0), ([100, 100], 34.5), ([300, 200], 70.0)] {
        assert_eq!(found(size, pitch), None, "{size:?}, {pitch} px");
    }
    for (size, pitch) in [([48, 48], 8.0), ([49, 211], 9.0), ([101, 103], 16.0)] {
        assert!(found(size, pitch).is_some(), "{size:?}, {pitch} px");
    }
}

/// Reads crops of a picture, and counts them.
struct Reader {
    crops: Vec<u32>,
}

impl Reader {
    fn follow(
        &mut self,
        estimator: &mut LatticeEstimator,
        held: &LatticeEstimate,
        picture: &Picture,
    ) -> Option<LatticeEstimate> {
        self.crops.clear();
        let Ok(found) = estimator.follow(held, picture.size(), |crop, out| {
            self.crops.push(crop.level);
            picture.read()(crop, out)
        });
        found
    }
}

#[test]
fn pattern_that_turns_is_followed() {
    let shape = [[21.4, 0.0], [0.0, 17.8]];
    let mut estimator = LatticeEstimator::default();
    let mut reader = Reader { crops: Vec::new() };
    let mut held: Option<LatticeEstimate> = None;
    for frame in 0..24 {
        let angle = 40.0 + 0.4 * f64::from(frame);
        let lattice = shape.map(|v| turned(v, angle));
        let picture = panel(lattice, [768, 576], [0.1 * f64::from(frame), 0.4]);
        let picture = picture.with_noise(NOISE, frame as u64);
        let found = match held {
            None => picture.lattice(),
            Some(held) => reader.follow(&mut estimator, &held, &picture),
        };
        assert_lattice(found, lattice, &format!("frame {frame}"));
        assert!(held.is_none() || reader.crops == [0]);
        held = found;
    }
    // A jump is estimated anew, with one picture read.
    let lattice = shape.map(|v| turned(v, 12.0));
    let picture = panel(lattice, [768, 576], [0.7, 0.4]).with_noise(NOISE, 99);
    let found = reader.follow(&mut estimator, &held.unwrap(), &picture);
    assert_lattice(found, lattice, "after the jump");
    assert_eq!(reader.crops, [0]);
    // The pattern is gone, and comes back.
    let gone = grained(768, 576, 1, 3);
    assert_eq!(reader.follow(&mut estimator, &held.unwrap(), &gone), None);
    let found = reader.follow(&mut estimator, &held.unwrap(), &picture);
    assert_lattice(found, lattice, "after the gap");
}

#[test]
fn likeness_is_the_correlation_of_the_prepared_picture() {
    let lattice = [[12.0, 3.5], [-4.25, 10.0]];
    let [[ax, ay], [bx, by]] = lattice;
    let area = ax * by - ay * bx;
    let picture = Picture::new(300, 240, |x, y| {
        let turns = [(x * by - y * bx) / area, (y * ax - x * ay) / area];
        let [a, b] = turns.map(|t| (TAU * t).cos());
        120.0 + 40.0 * (a + b)
    });
    let mut estimator = LatticeEstimator::default();
    let Ok(found) = estimator.estimate(picture.size(), picture.read());
    let found = found.unwrap();
    let likeness = |v: Vector| estimator.likeness(v, &found);
    for v in [[0.0, 0.0], found.a, found.b.unwrap(), [-24.0, -7.0]] {
        assert!(likeness(v) > 0.95, "{v:?}: {}", likeness(v));
    }
    // Half of one vector: its wave is turned over, that of the other one is not.
    assert!(likeness([6.0, 1.75]).abs() < 0.1);
    assert!(likeness([3.875, 6.75]) < -0.9);
    // Beyond a third of the sides.
    assert_eq!(likeness([101.0, 0.0]), 0.0);
}

#[test]
fn edges_along_rows_do_not_shift_the_followed_vectors() {
    // Whole pixels: every fourth row meets the edges of all squares at the same distance.
    for [x, y] in [[8, 8], [16, 12], [12, 20], [9, 16]] {
        let picture = Picture::new(640, 480, |u, v| {
            let odd = ((u as usize / x) + (v as usize / y)) % 2 == 1;
            if odd { 150.0 } else { 90.0 }
        });
        let held = picture.lattice().unwrap();
        let mut reader = Reader { crops: Vec::new() };
        for seed in [1, 2] {
            let found = reader.follow(
                &mut LatticeEstimator::default(),
                &held,
                &picture.clone().with_noise(NOISE, seed),
            );
            let [x, y] = [x as f64, y as f64];
            assert_lattice(found, [[x, y], [x, -y]], &format!("{x} × {y}"));
        }
    }
}

#[test]
fn large_cells_are_followed_in_the_halved_frame() {
    let mut estimator = LatticeEstimator::default();
    let mut reader = Reader { crops: Vec::new() };
    let pictures = [4.0, 4.3].map(|angle| {
        let lattice = [[230.0, 0.0], [0.0, 184.0]].map(|v| turned(v, angle));
        (panel(lattice, [2048, 1536], [0.1, 0.6]), lattice)
    });
    let held = pictures[0].0.lattice().unwrap();
    let (picture, lattice) = &pictures[1];
    let found = reader.follow(&mut estimator, &held, picture).unwrap();
    assert_eq!(reader.crops, [1]);
    let (px, degrees) = error(found.a, *lattice);
    let largest = LARGEST_ERROR_OF_FEW * length(found.a);
    assert!(px < largest && degrees < LARGEST_ERROR_DEGREES, "{found:?}");
}

#[test]
fn estimator_used_again_gives_what_a_new_one_gives() {
    let mut used = LatticeEstimator::default();
    for (size, pitch, angle) in [
        ([640, 480], 22.0, 3.0),
        ([120, 333], 9.0, 33.0),
        ([48, 48], 8.0, 0.0),
        ([1300, 700], 120.0, 10.0),
    ] {
        let lattice = [[pitch, 0.0], [0.0, 1.1 * pitch]].map(|v| turned(v, angle));
        let picture = panel(lattice, size, [0.2, 0.5]).with_noise(NOISE, 8);
        let Ok(again) = used.estimate(picture.size(), picture.read());
        assert_eq!(again, picture.lattice(), "{size:?}");
    }
}

/// Whole grey levels that a program in any language draws alike: phases in 1/65536 of a repeat, triangles, and a hash as noise.
struct Exact {
    size: [usize; 2],
    /// Phase per pixel along x and y, of the first vector and of the second; 0 for lines.
    phases: [[i64; 2]; 2],
}

impl Exact {
    fn picture(&self) -> Picture {
        let triangle = |t: i64| ((t & 65_535) - 32_768).abs() >> 7;
        let [u, v] = self.phases;
        let level = |x: i64, y: i64| {
            let n = (x as u32)
                .wrapping_mul(374_761_393)
                .wrapping_add((y as u32).wrapping_mul(668_265_263));
            let n = (n ^ (n >> 13)).wrapping_mul(1_274_126_177);
            let first = triangle(x * u[0] + y * u[1]);
            let cell = if v == [0, 0] {
                first >> 1
            } else {
                (first * triangle(x * v[0] + y * v[1])) >> 9
            };
            40 + cell + i64::from((n >> 16) & 15)
        };
        let [width, height] = self.size;
        Picture::new(width, height, |x, y| level(x as i64, y as i64) as f64)
    }
}

fn sum(picture: &Picture) -> f64 {
    picture.samples.iter().map(|&v| f64::from(v)).sum()
}

#[test]
fn estimates_are_those_of_another_implementation() {
    // The size, phases, sum of the levels, and vectors of a program in NumPy, which was written before this one. Its picture and
    // transforms are of f64, the picture here is of f32: 2^-24 of a level of 200 moves a peak of curvature 0.01 by 0.001 px.
    const ALIKE_PX: f64 = 1e-3;
    let saved = [
        (
            [600, 500],
            [[2763, -411], [507, 3001]],
            23_629_282.0,
            [[23.13492, -3.90775], [3.16996, 21.29986]],
        ),
        (
            [520, 640],
            [[7001, 150], [-3500, 6011]],
            26_200_263.0,
            [[9.24516, 5.38312], [-0.23077, 10.76806]],
        ),
        (
            [700, 512],
            [[3100, 900], [0, 0]],
            39_783_088.0,
            [[19.49713, 5.66008], [0.0, 0.0]],
        ),
        (
            [400, 300],
            [[4096, 0], [0, 3277]],
            9_474_830.0,
            [[15.99169, 0.0], [0.0, 19.96801]],
        ),
    ];
    for (size, phases, levels, vectors) in saved {
        let picture = Exact { size, phases }.picture();
        assert_eq!(sum(&picture), levels, "{phases:?}");
        let found = picture.lattice().unwrap();
        let found = [found.a, found.b.unwrap_or_default()];
        for (found, saved) in found.into_iter().zip(vectors) {
            let away = length([found[0] - saved[0], found[1] - saved[1]]);
            assert!(away < ALIKE_PX, "{phases:?}: {found:?}, not {saved:?}");
        }
    }
}

#[test]
fn followed_vectors_are_those_of_another_implementation() {
    let size = [600, 500];
    let [before, now] = [[[2763, -411], [507, 3001]], [[2760, -440], [530, 2996]]]
        .map(|phases| Exact { size, phases }.picture());
    assert_eq!(sum(&now), 23_635_343.0);
    let held = before.lattice().unwrap();
    let mut reader = Reader { crops: Vec::new() };
    let found = reader
        .follow(&mut LatticeEstimator::default(), &held, &now)
        .unwrap();
    for (found, saved) in [
        (found.a, [23.089_150, -4.083_083]),
        (found.b.unwrap(), [3.392_856, 21.271_146]),
    ] {
        let away = length([found[0] - saved[0], found[1] - saved[1]]);
        assert!(away < 1e-3, "{found:?}, not {saved:?}");
    }
}

/// Of vectors of 20 and 16 px, turned by an angle in degrees.
fn seen(angle: f64) -> LatticeEstimate {
    LatticeEstimate {
        a: turned([20.0, 0.0], angle),
        b: Some(turned([0.0, 16.0], angle)),
        error_px: 0.001,
        level: 0,
    }
}

#[test]
fn tracker_holds_a_lattice_until_three_frames_agree_on_another() {
    let mut tracker = LatticeTracker::default();
    assert_eq!(tracker.update(Some(seen(3.0))), LatticeChange::Found);
    assert_eq!(tracker.of_frame(), Some(seen(3.0)));
    // 0.01° are 0.003 px: noise.
    assert_eq!(tracker.update(Some(seen(3.01))), LatticeChange::None);
    assert_eq!(
        (tracker.of_frame(), tracker.is_settled()),
        (Some(seen(3.0)), true)
    );
    // Pieces that lie otherwise are compared along their own vectors, and change nothing.
    for angle in [10.0, -25.0, 40.0, 17.0, -3.0] {
        assert_eq!(
            tracker.update(Some(seen(angle))),
            LatticeChange::None,
            "{angle}°"
        );
        let own = tracker.of_frame().unwrap();
        assert!(length([own.a[0] - seen(angle).a[0], own.a[1] - seen(angle).a[1]]) < 1e-9);
        assert_eq!(tracker.held(), Some(&seen(3.0)));
        assert!(!tracker.is_settled());
    }
    for frame in 0..3 {
        let change = tracker.update(Some(seen(5.0)));
        let is_moved = matches!(change, LatticeChange::Moved { from, to }
            if from == seen(3.0) && from.has_moved_far(&to) && (to.angle_degrees() - 5.0).abs() < 1e-6);
        assert_eq!(is_moved, frame == 2, "{change:?}");
    }
    assert!(tracker.update(Some(seen(5.0))) == LatticeChange::None && tracker.is_settled());
}

#[test]
fn tracker_over_a_gap_keeps_the_lattice_then_loses_it() {
    let mut tracker = LatticeTracker::default();
    assert_eq!(tracker.update(None), LatticeChange::None);
    tracker.update(Some(seen(7.0)));
    for _ in 0..4 {
        assert_eq!(tracker.update(None), LatticeChange::None);
        assert_eq!(tracker.of_frame(), Some(seen(7.0)));
    }
    assert_eq!(tracker.update(Some(seen(7.0))), LatticeChange::None);
    for frame in 0..5 {
        let wanted = if frame == 4 {
            LatticeChange::Lost
        } else {
            LatticeChange::None
        };
        assert_eq!(tracker.update(None), wanted);
    }
    assert_eq!(tracker.held(), None);
    assert_eq!(tracker.update(Some(seen(7.0))), LatticeChange::Found);
}

#[test]
fn tracker_of_a_square_lattice_keeps_its_vectors_at_45_degrees() {
    // At 45° either vector may be the one nearer to the x axis.
    let square = |angle: f64| LatticeEstimate {
        b: Some(turned([0.0, 20.0], angle)),
        ..seen(angle)
    };
    let other = |angle: f64| LatticeEstimate {
        a: turned([20.0, 0.0], angle - 90.0),
        b: Some(turned([20.0, 0.0], angle)),
        ..seen(angle)
    };
    let mut tracker = LatticeTracker::default();
    tracker.update(Some(square(44.995)));
    for frame in 0..10 {
        let found = if frame % 2 == 0 {
            other(45.005)
        } else {
            square(44.995)
        };
        assert_eq!(tracker.update(Some(found)), LatticeChange::None);
        assert!(tracker.is_settled());
    }
}

#[test]
fn pitches_are_turned_against_a_lattice_that_is_not_near_them() {
    let angle = |found: LatticeEstimate, pitches| {
        let turned = found.turned_against(pitches);
        turned.map(|(axis, degrees)| (axis, (1000.0 * degrees).round() / 1000.0))
    };
    for degrees in [0.5, 3.0, -3.0, 21.0] {
        assert_eq!(angle(seen(degrees), [20.0, 16.0]), Some((Axis::X, degrees)));
        assert_eq!(angle(seen(degrees), [0.0, 16.0]).map(|(axis, _)| axis), {
            // 16 px turned by half a degree are 0.14 px.
            (degrees.abs() > 0.5).then_some(Axis::Y)
        });
        assert_eq!(angle(seen(degrees), [0.0, 0.0]), None);
    }
    assert_eq!(angle(seen(3.0), [0.0, 16.0]), Some((Axis::Y, 3.0)));
    for pitches in [[20.0, 16.0], [40.0, 0.0], [20.05, 16.1], [19.0, 32.0]] {
        assert_eq!(angle(seen(0.0), pitches), None, "{pitches:?}");
        assert_eq!(angle(seen(0.2), pitches), None, "{pitches:?}");
    }
    // The pitch along a row of cloth whose cell is oblique.
    let cloth = LatticeEstimate {
        a: [10.0, 8.0],
        b: Some([-10.0, 8.0]),
        ..seen(0.0)
    };
    assert_eq!(angle(cloth, [20.0, 16.0]), None);
    let lines = LatticeEstimate {
        b: None,
        ..seen(3.0)
    };
    assert_eq!(angle(lines, [20.0, 16.0]), None);
}
