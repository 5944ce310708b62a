//! The pitch estimator: precise on panels, no pitch without a pattern; its probe lines and tracker.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::{self as common};
use std::f64::consts::TAU;
use std::path::PathBuf;

use clinspect_core::pitch_estimate::{
    Lines, MAX_PROBE_LINES, MIN_PERIODS, PROBE_BUNDLE, PitchChange, PitchEstimate, PitchEstimator,
    PitchTracker, probe_lines,
};
use common::panel::{PanelFrame, PanelGenerator, PanelSpec};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// The largest error allowed, px.
const LARGEST_ERROR_PX: f64 = 0.01;
/// Least confidence on panels at noise σ = 8; photographs stay far below it.
const LEAST_PANEL_CONFIDENCE: f64 = 0.75;

/// A grey picture with any range of levels.
#[derive(Clone)]
struct Picture {
    width: usize,
    height: usize,
    samples: Vec<f32>,
}

impl Picture {
    fn new(width: usize, height: usize, level: impl Fn(usize, usize) -> f32) -> Self {
        let samples = (0..width * height)
            .map(|i| level(i % width, i / width))
            .collect();
        Self {
            width,
            height,
            samples,
        }
    }

    fn of(frame: &PanelFrame) -> Self {
        Self::new(frame.width, frame.height, |x, y| {
            f32::from(frame.sample(x, y).unwrap())
        })
    }

    fn map(&self, level: impl Fn(usize, usize, f32) -> f32) -> Self {
        Self::new(self.width, self.height, |x, y| {
            level(x, y, self.samples[y * self.width + x])
        })
    }

    /// The probe lines along an axis, and their length.
    fn lines(&self, axis: Axis) -> (Vec<f32>, usize) {
        match axis {
            Axis::X => {
                let row = |y: usize| &self.samples[y * self.width..][..self.width];
                let rows = probe_lines(self.height);
                (
                    rows.into_iter().flat_map(row).copied().collect(),
                    self.width,
                )
            }
            Axis::Y => {
                let columns = probe_lines(self.width).into_iter();
                let column = |x| (0..self.height).map(move |y| self.samples[y * self.width + x]);
                (columns.flat_map(column).collect(), self.height)
            }
        }
    }

    fn pitch(&self, axis: Axis) -> Option<PitchEstimate> {
        let (samples, length) = self.lines(axis);
        PitchEstimator::default().estimate(&Lines {
            samples: &samples,
            length,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Axis {
    X,
    Y,
}

const AXES: [Axis; 2] = [Axis::X, Axis::Y];

/// The hardest supported panels: noise σ = 8, default jitter and vignetting.
fn noisy(width: usize, height: usize, pitch_x: f64, pitch_y: f64) -> PanelSpec {
    PanelSpec {
        width,
        height,
        pitch_x,
        pitch_y,
        noise_sigma: 8.0,
        ..PanelSpec::default()
    }
}

fn generator(spec: PanelSpec, seed: u64) -> PanelGenerator {
    PanelGenerator::new(spec, seed).unwrap()
}

/// A panel of one pitch along both axes; odd seeds have 20 defects.
fn panel(pitch: f64, seed: u64) -> Picture {
    let (width, height) = if pitch > 100.0 {
        (1920, 1080)
    } else {
        (1280, 1024)
    };
    let mut generator = generator(noisy(width, height, pitch, pitch), seed);
    Picture::of(&if seed.is_multiple_of(2) {
        generator.clean_frame()
    } else {
        generator.next_random(20)
    })
}

fn assert_pitch(picture: &Picture, axis: Axis, pitch: f64, what: &str) {
    let found = picture.pitch(axis);
    let error = found.map(|found| (found.pitch_px - pitch).abs());
    assert!(
        error.is_some_and(|error| error <= LARGEST_ERROR_PX),
        "{what}, pitch {pitch} along {axis:?}: {found:?}"
    );
}

fn normal(rng: &mut ChaCha8Rng) -> f32 {
    StandardNormal.sample(rng)
}

/// Lines of a periodic cell (level over phase in turns) at a pitch, blurred by optics of σ = 0.85 px,
/// scaled to a contrast per line, with noise σ = 8.
fn lines_of(cell: impl Fn(f64) -> f64, pitch: f64, length: usize, seed: u64) -> Vec<f32> {
    const LINES: usize = 48;
    let steps = ((pitch * 16.0) as usize).max(128);
    let raw: Vec<f64> = (0..steps)
        .map(|i| cell((i as f64 + 0.5) / steps as f64))
        .collect();
    let sigma = 0.85 * steps as f64 / pitch;
    let reach = (4.0 * sigma) as i64;
    let weights: Vec<f64> = (-reach..=reach)
        .map(|i| (-0.5 * (i as f64 / sigma).powi(2)).exp())
        .collect();
    let sum: f64 = weights.iter().sum();
    let blurred: Vec<f64> = (0..steps as i64)
        .map(|i| {
            let at = |j: usize| raw[(i + j as i64 - reach).rem_euclid(steps as i64) as usize];
            let mean: f64 = weights.iter().enumerate().map(|(j, w)| w * at(j)).sum();
            mean / sum
        })
        .collect();
    let low = blurred.iter().copied().fold(f64::INFINITY, f64::min);
    let high = blurred.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let phase: f64 = rng.random();
    (0..LINES)
        .flat_map(|_| {
            let contrast = 60.0 + 60.0 * rng.random::<f64>();
            (0..length)
                .map(|x| {
                    let position = (x as f64 / pitch + phase).fract() * steps as f64;
                    let (i, t) = (position as usize, position.fract());
                    let level = (1.0 - t) * blurred[i % steps] + t * blurred[(i + 1) % steps];
                    (40.0 + contrast * (level - low) / (high - low)) as f32 + 8.0 * normal(&mut rng)
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

fn inside(t: f64, start: f64, end: f64) -> f64 {
    f64::from((start..end).contains(&t))
}

// Precision.

#[test]
fn panel_of_any_pitch_is_found_within_a_hundredth() {
    const PITCHES: [f64; 44] = [
        3.0, 3.1, 3.25, 3.37, 3.5, 3.77, 4.0, 4.2, 4.5, 4.83, 5.0, 5.5, 6.0, 6.41, 7.0, 7.35, 7.5,
        8.0, 9.03, 10.0, 11.11, 12.25, 13.7, 15.0, 16.35, 18.2, 20.0, 22.2, 25.5, 28.28, 33.3,
        36.6, 40.0, 50.0, 61.13, 75.25, 80.0, 99.9, 120.0, 133.3, 150.7, 170.2, 185.5, 200.0,
    ];
    let check = |pitch: f64| {
        for seed in 0..5 {
            let picture = panel(pitch, 17 * pitch as u64 + seed);
            for axis in AXES {
                assert_pitch(&picture, axis, pitch, "panel");
                let confidence = picture.pitch(axis).unwrap().confidence;
                assert!(
                    (LEAST_PANEL_CONFIDENCE..=1.0).contains(&confidence),
                    "pitch {pitch} along {axis:?}: confidence {confidence}"
                );
            }
        }
    };
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || {
                PITCHES
                    .iter()
                    .skip(half)
                    .step_by(2)
                    .copied()
                    .for_each(check)
            });
        }
    });
}

#[test]
fn panel_of_different_pitches_keeps_the_axes_apart() {
    for (pitch_x, pitch_y) in [(7.35, 22.05), (61.13, 7.35), (16.35, 16.4)] {
        let picture = Picture::of(&generator(noisy(1280, 1024, pitch_x, pitch_y), 5).clean_frame());
        assert_pitch(&picture, Axis::X, pitch_x, "own pitch");
        assert_pitch(&picture, Axis::Y, pitch_y, "own pitch");
    }
}

#[test]
fn panel_in_a_small_frame_is_found() {
    for (width, height, pitch) in [(128, 96, 3.37), (320, 240, 16.35), (640, 480, 7.35)] {
        let picture = Picture::of(&generator(noisy(width, height, pitch, pitch), 6).clean_frame());
        for axis in AXES {
            assert_pitch(&picture, axis, pitch, "small frame");
        }
    }
}

#[test]
fn panel_with_border_over_three_tenths_is_found_within_a_hundredth() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let noise: Vec<f32> = (0..4096).map(|_| 20.0 + 3.0 * normal(&mut rng)).collect();
    for (pitch, seed) in [
        (3.37, 0),
        (7.35, 1),
        (16.35, 2),
        (61.13, 3),
        (99.9, 5),
        (150.7, 8),
    ] {
        let bare = panel(pitch, seed);
        let (width, height) = (bare.width, bare.height);
        for side in 0..4 {
            let covered = bare.map(|x, y, level| {
                let border = match side {
                    0 => 10 * x < 3 * width,
                    1 => 10 * x > 7 * width,
                    2 => 10 * y < 3 * height,
                    _ => 10 * y > 7 * height,
                };
                if border {
                    noise[(31 * x + 17 * y) % noise.len()]
                } else {
                    level
                }
            });
            for axis in AXES {
                assert_pitch(&covered, axis, pitch, &format!("border {side}"));
            }
        }
    }
}

#[test]
fn panel_partly_saturated_is_found_within_a_hundredth() {
    for (pitch, seed) in [(3.37, 0), (7.35, 1), (33.3, 2), (99.9, 3)] {
        let bare = panel(pitch, seed);
        let width = bare.width as f32;
        let glare = bare.map(|x, y, level| {
            let (dx, dy) = (x as f32 / 400.0 - 1.5, y as f32 / 300.0 - 1.2);
            if dx * dx + dy * dy < 0.5 {
                255.0
            } else {
                level
            }
        });
        let overexposed =
            bare.map(|x, _, level| (level * (1.0 + x as f32 / width)).round().min(255.0));
        for axis in AXES {
            assert_pitch(&glare, axis, pitch, "glare");
            assert_pitch(&overexposed, axis, pitch, "overexposed on one side");
        }
    }
}

#[test]
fn panel_in_uneven_light_is_found_within_a_hundredth() {
    for (pitch, seed) in [(3.37, 0), (7.35, 1), (33.3, 2), (99.9, 3), (150.7, 4)] {
        let bare = panel(pitch, seed);
        let (width, height) = (bare.width as f32, bare.height as f32);
        let shaded = bare.map(|x, y, level| {
            (level * (0.5 + 0.5 * x as f32 / width) * (0.7 + 0.3 * y as f32 / height)).round()
        });
        let stray = bare.map(|x, y, level| {
            (0.5 * level + 100.0 * x as f32 / width + 20.0 * y as f32 / height).round()
        });
        for axis in AXES {
            assert_pitch(&shaded, axis, pitch, "shaded");
            assert_pitch(&stray, axis, pitch, "stray light");
        }
    }
}

#[test]
fn panel_of_any_bit_depth_is_found_within_a_hundredth() {
    for bit_depth in [10, 12, 16] {
        for pitch in [4.5, 7.35, 61.13] {
            let spec = PanelSpec {
                bit_depth,
                ..noisy(1280, 1024, pitch, pitch)
            };
            let picture = Picture::of(&generator(spec, 9).clean_frame());
            for axis in AXES {
                assert_pitch(&picture, axis, pitch, &format!("{bit_depth} bits"));
            }
        }
    }
}

#[test]
fn estimate_of_another_level_scale_is_the_same() {
    let picture = panel(61.13, 4);
    let scales = [(1e-4, 0.0), (257.0, 0.0), (1.0 / 255.0, 10.0), (1e6, -1e7)];
    for axis in AXES {
        let original = picture.pitch(axis).unwrap();
        for (gain, offset) in scales {
            let scaled = picture.map(|_, _, level| gain * level + offset);
            let found = scaled.pitch(axis).unwrap();
            assert!(
                (found.pitch_px - original.pitch_px).abs() < 1e-3,
                "{gain}·s + {offset}: {found:?} for {original:?}"
            );
        }
    }
}

#[test]
fn cell_with_similar_parts_is_not_taken_for_one_part() {
    type Cell = fn(f64) -> f64;
    let cells: [(&str, Cell); 6] = [
        ("three bars within 5 %", |t| {
            0.97 * inside(t, 0.05, 0.33) + inside(t, 0.36, 0.64) + 0.95 * inside(t, 0.67, 0.95)
        }),
        ("two bars within 15 %", |t| {
            0.85 * inside(t, 0.05, 0.45) + inside(t, 0.55, 0.95)
        }),
        ("line", |t| inside(t, 0.4, 0.48)),
        ("sine", |t| 0.5 + 0.5 * (TAU * t).cos()),
        ("sine with its fourth harmonic", |t| {
            0.5 + 0.4 * (TAU * t).cos() + 0.1 * (4.0 * TAU * t).cos()
        }),
        ("ramp", |t| t),
    ];
    for (name, cell) in cells {
        for (i, pitch) in [3.3, 7.1, 9.7, 17.3, 31.4, 64.6, 95.2]
            .into_iter()
            .enumerate()
        {
            let samples = lines_of(cell, pitch, 1280, i as u64);
            let found = PitchEstimator::default().estimate(&Lines {
                samples: &samples,
                length: 1280,
            });
            assert!(
                found.is_some_and(|found| (found.pitch_px - pitch).abs() < 0.02),
                "{name}, pitch {pitch}: {found:?}"
            );
        }
    }
}

#[test]
fn estimator_used_again_gives_what_a_new_one_gives() {
    let mut estimator = PitchEstimator::default();
    for (pitch, seed) in [(7.35, 0), (150.7, 1), (61.13, 2), (3.37, 3)] {
        let picture = panel(pitch, seed);
        for axis in AXES {
            let (samples, length) = picture.lines(axis);
            let lines = Lines {
                samples: &samples,
                length,
            };
            assert_eq!(estimator.estimate(&lines), picture.pitch(axis));
        }
    }
}

/// Yarns wander: the phase changes by 0.5 rad root mean square per pitch, in all lines alike. The correlation is about
/// 0.7 at one pitch, 0.5 at four and 0.2 at twelve.
#[test]
fn cloth_that_keeps_its_phase_for_a_few_pitches_is_found() {
    for (seed, (pitch, length)) in [(7.1, 256), (13.4, 256), (9.4, 2952), (5.6, 1024)]
        .into_iter()
        .enumerate()
    {
        let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
        let mut phase = 0.0;
        let yarns: Vec<f64> = (0..length)
            .map(|_| {
                phase += TAU / pitch + 0.5 / f64::sqrt(pitch) * f64::from(normal(&mut rng));
                phase.cos()
            })
            .collect();
        let mut samples = Vec::new();
        for _ in 0..192 {
            samples.extend(
                yarns
                    .iter()
                    .map(|level| 100.0 + 30.0 * *level as f32 + 10.0 * normal(&mut rng)),
            );
        }
        let found = PitchEstimator::default().estimate(&Lines {
            samples: &samples,
            length,
        });
        // The mean pitch of the yarns.
        let mean = TAU * length as f64 / phase;
        assert!(
            found.is_some_and(|found| (found.pitch_px - mean).abs() < 0.02 * mean),
            "pitch {mean}: {found:?}"
        );
    }
}

// No pattern, no pitch.

/// Decodes PNGs in a folder named by the environment; `None` (a visible skip) without it.
fn photographs() -> Option<Vec<(String, Picture)>> {
    let Some(folder) = std::env::var_os("CLINSPECT_PHOTOGRAPHS").map(PathBuf::from) else {
        let required = std::env::var("CLINSPECT_REQUIRE_DEVICE").is_ok_and(|v| v == "1");
        assert!(!required, "CLINSPECT_PHOTOGRAPHS is not set");
        eprintln!("SKIPPED: CLINSPECT_PHOTOGRAPHS names no folder of PNGs");
        return None;
    };
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "png"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no PNG in {}", folder.display());
    let open = |path: &PathBuf| {
        let image = image::open(path).unwrap().to_luma8();
        let (width, height) = (image.width() as usize, image.height() as usize);
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let samples = image.into_raw();
        let picture = Picture::new(width, height, |x, y| f32::from(samples[y * width + x]));
        (name, picture)
    };
    Some(paths.iter().map(open).collect())
}

/// The picture at half size, by 2 × 2 means.
fn halved(picture: &Picture) -> Picture {
    let at = |x: usize, y: usize| picture.samples[y * picture.width + x];
    Picture::new(picture.width / 2, picture.height / 2, |x, y| {
        let (x, y) = (2 * x, 2 * y);
        (0.25 * (at(x, y) + at(x + 1, y) + at(x, y + 1) + at(x + 1, y + 1))).round()
    })
}

fn quarters(picture: &Picture) -> impl Iterator<Item = Picture> {
    let (width, height) = (picture.width / 2, picture.height / 2);
    (0..4).map(move |quarter| {
        let (left, top) = (quarter % 2 * width, quarter / 2 * height);
        Picture::new(width, height, |x, y| {
            picture.samples[(top + y) * picture.width + left + x]
        })
    })
}

#[test]
fn photograph_in_any_cut_has_no_pitch() {
    for (name, picture) in photographs().into_iter().flatten() {
        let half = halved(&picture);
        let cuts = quarters(&picture).chain(quarters(&half));
        for (cut, picture) in [picture.clone(), half.clone()]
            .into_iter()
            .chain(cuts)
            .enumerate()
        {
            for axis in AXES {
                assert_eq!(picture.pitch(axis), None, "{name}, cut {cut}, {axis:?}");
            }
        }
    }
}

#[test]
fn noise_of_any_grain_has_no_pitch() {
    for (seed, grain) in [0usize, 1, 3, 10, 40].into_iter().enumerate() {
        let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
        let white: Vec<f32> = (0..640 * 480).map(|_| normal(&mut rng)).collect();
        let picture = Picture::new(640, 480, |x, y| {
            let row = &white[y * 640..][..640];
            let near = &row[x.saturating_sub(grain)..(x + grain + 1).min(640)];
            (128.0 + 40.0 * near.iter().sum::<f32>() / (near.len() as f32).sqrt()).round()
        });
        for axis in AXES {
            assert_eq!(picture.pitch(axis), None, "grain {grain}, {axis:?}");
        }
    }
}

/// Cloth, water, rows of plants: nearly periodic over short distances only.
#[test]
fn texture_that_forgets_its_phase_has_no_pitch() {
    for (seed, pitch) in [10.0, 30.0].into_iter().enumerate() {
        let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
        let mut samples = Vec::new();
        for _ in 0..64 {
            let mut phase = 0.0;
            samples.extend((0..1920).map(|_| {
                // By 0.7 rad per period, root mean square.
                phase += TAU / pitch + 0.7 / f64::sqrt(pitch) * f64::from(normal(&mut rng));
                (128.0 + 60.0 * phase.cos()) as f32
            }));
        }
        let found = PitchEstimator::default().estimate(&Lines {
            samples: &samples,
            length: 1920,
        });
        assert_eq!(found, None, "about {pitch} px");
    }
}

/// The same samples in every line: with more lines a chance correlation looks more certain.
#[test]
fn barcode_has_no_pitch() {
    for seed in 0..20 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut code = Vec::new();
        while code.len() < 1280 {
            let (width, level) = (rng.random_range(2..20), rng.random_range(0..5));
            code.extend(std::iter::repeat_n(50.0 * level as f32, width));
        }
        let picture = Picture::new(1280, 64, |x, _| code[x]);
        assert_eq!(picture.pitch(Axis::X), None, "seed {seed}");
    }
}

#[test]
fn picture_without_repetition_has_no_pitch() {
    let flat = |level: f32| move |_: usize, _: usize| level;
    let noise: Vec<f32> = {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        (0..640 * 480).map(|_| normal(&mut rng)).collect()
    };
    let grey = |x: usize, y: usize| noise[y * 640 + x];
    let pictures: [(&str, Picture); 16] = [
        ("black", Picture::new(640, 480, flat(0.0))),
        ("grey", Picture::new(640, 480, flat(128.0))),
        ("white of 16 bits", Picture::new(640, 480, flat(65_535.0))),
        ("a third", Picture::new(640, 480, flat(1.0 / 3.0))),
        (
            "grey and noise",
            Picture::new(640, 480, |x, y| (128.0 + 2.0 * grey(x, y)).round()),
        ),
        // Quantised to grey levels, these two are staircases of even steps.
        (
            "gradient along x",
            Picture::new(640, 480, |x, _| (x as f32 / 5.0).floor()),
        ),
        (
            "gradient along both",
            Picture::new(640, 480, |x, y| (x as f32 / 3.37 + y as f32 / 7.1).round()),
        ),
        (
            "gradient of 16 bits",
            Picture::new(640, 480, |x, y| (102.4 * (x + y) as f32).round()),
        ),
        (
            "gradient and noise",
            Picture::new(640, 480, |x, y| (x as f32 / 4.0 + 0.5 * grey(x, y)).round()),
        ),
        (
            "wedge",
            Picture::new(640, 480, |x, y| ((x / 40 + y / 40) * 8) as f32),
        ),
        (
            "wedge and noise",
            Picture::new(640, 480, |x, y| ((x / 40 + y / 40) * 8) as f32 + grey(x, y)),
        ),
        (
            "edge",
            Picture::new(640, 480, |x, y| if x + y > 500 { 200.0 } else { 30.0 }),
        ),
        (
            "straight edge and noise",
            Picture::new(640, 480, |x, y| {
                (if x > 300 && y > 200 { 200.0 } else { 30.0 }) + 8.0 * grey(x, y)
            }),
        ),
        (
            "line",
            Picture::new(
                640,
                480,
                |x, y| {
                    if x == 300 || y == 200 { 255.0 } else { 30.0 }
                },
            ),
        ),
        (
            "two lines",
            Picture::new(640, 480, |x, y| {
                if [200, 400].contains(&x) || [150, 300].contains(&y) {
                    255.0
                } else {
                    30.0
                }
            }),
        ),
        (
            "three uneven lines",
            Picture::new(640, 480, |x, y| {
                if [100, 290, 500].contains(&x) || [90, 210, 350].contains(&y) {
                    255.0
                } else {
                    30.0
                }
            }),
        ),
    ];
    for (name, picture) in pictures {
        for axis in AXES {
            assert_eq!(picture.pitch(axis), None, "{name}, {axis:?}");
        }
    }
}

/// The estimate must not be a third of the pitch, the distance to the next bar.
#[test]
fn panel_of_fewer_than_three_periods_has_no_pitch() {
    for (seed, pitch) in [180.0, 200.0, 240.0, 300.0, 400.0, 512.0]
        .into_iter()
        .enumerate()
    {
        for sigma in [2.0, 8.0] {
            let spec = PanelSpec {
                noise_sigma: sigma,
                ..noisy(512, 512, pitch, pitch)
            };
            let picture = Picture::of(&generator(spec, seed as u64).clean_frame());
            for axis in AXES {
                assert!(512.0 / pitch < MIN_PERIODS);
                assert_eq!(picture.pitch(axis), None, "pitch {pitch} along {axis:?}");
            }
        }
    }
}

#[test]
fn lines_that_cannot_be_judged_have_no_pitch() {
    let mut estimator = PitchEstimator::default();
    let wave: Vec<f32> = (0..640).map(|x| (x as f32 * 0.9).cos()).collect();
    let mut broken = wave.clone();
    broken[100] = f32::NAN;
    let mut infinite = wave.clone();
    infinite[100] = f32::INFINITY;
    let cases: [(&[f32], usize); 9] = [
        (&[], 0),
        (&[], 100),
        (&wave, 0),
        (&wave, 1),
        (&wave, 15),
        (&wave[..99], 100),
        (&wave, usize::MAX),
        (&broken, 320),
        (&infinite, 320),
    ];
    for (samples, length) in cases {
        let found = estimator.estimate(&Lines { samples, length });
        assert_eq!(found, None, "{} samples of {length}", samples.len());
    }
    // The estimator keeps its precision and handles the shortest lines.
    for length in 16..80 {
        estimator.estimate(&Lines {
            samples: &wave,
            length,
        });
    }
    let lines = Lines {
        samples: &wave,
        length: 640,
    };
    let found = estimator.estimate(&lines).unwrap();
    assert!((found.pitch_px - TAU / 0.9).abs() < 0.01, "{found:?}");
}

// Probe lines.

#[test]
fn probe_lines_of_any_frame_are_within_it_and_ascend() {
    for count in (0..3 * MAX_PROBE_LINES).chain([1080, 1920, 4096, 65_536, 1 << 31]) {
        let lines = probe_lines(count);
        assert_eq!(lines.len(), count.min(MAX_PROBE_LINES), "of {count}");
        assert!(lines.windows(2).all(|pair| pair[0] < pair[1]), "of {count}");
        assert!(lines.last().is_none_or(|&last| last < count), "of {count}");
    }
}

#[test]
fn probe_lines_of_a_large_frame_are_bundles_spread_over_it() {
    for count in [480, 1080, 1920, 3072, 16_384] {
        let lines = probe_lines(count);
        let (bundles, rest) = lines.as_chunks::<PROBE_BUNDLE>();
        assert!(rest.is_empty());
        let gap = 2 * count / bundles.len();
        assert!(lines[0] < gap && count - lines[lines.len() - 1] <= gap);
        for bundle in bundles {
            assert_eq!(bundle[PROBE_BUNDLE - 1] - bundle[0], PROBE_BUNDLE - 1);
        }
        for pair in bundles.windows(2) {
            assert!(pair[1][0] - pair[0][0] <= gap, "of {count}");
        }
    }
}

/// Bundles at multiples of the pitch would all hit the same part of a cell; if that is the dark grid, they
/// see no pattern.
#[test]
fn probe_lines_of_a_large_frame_meet_every_part_of_a_cell() {
    let count = 1920;
    let lines = probe_lines(count);
    let spacing = count * PROBE_BUNDLE / MAX_PROBE_LINES;
    for divisor in [1, 2, 4] {
        let pitch = spacing as f64 / f64::from(divisor);
        let mut parts = [false; 4];
        for &line in &lines {
            parts[((line as f64 / pitch).fract() * 4.0) as usize] = true;
        }
        assert_eq!(parts, [true; 4], "pitch {pitch}");
    }
}

// Tracker.

fn seen(pitch_px: f64) -> Option<PitchEstimate> {
    Some(PitchEstimate {
        pitch_px,
        confidence: 0.9,
    })
}

#[test]
fn tracker_first_estimate_is_found_at_once() {
    let mut tracker = PitchTracker::default();
    assert_eq!(tracker.pitch(), None);
    assert_eq!(tracker.update(None), PitchChange::None);
    assert_eq!(tracker.update(seen(7.35)), PitchChange::Found(7.35));
    assert_eq!(tracker.pitch(), Some(7.35));
}

#[test]
fn tracker_with_noisy_estimates_holds_still() {
    let mut tracker = PitchTracker::default();
    tracker.update(seen(7.35));
    for i in 0..200 {
        let estimate = 7.35 + LARGEST_ERROR_PX * f64::from(i % 5 - 2);
        assert_eq!(tracker.update(seen(estimate)), PitchChange::None);
        assert_eq!(tracker.pitch(), Some(7.35));
    }
}

#[test]
fn tracker_with_single_outliers_holds_still() {
    let mut tracker = PitchTracker::default();
    tracker.update(seen(7.35));
    for outlier in [9.0, 22.05, 3.0] {
        for _ in 0..2 {
            assert_eq!(tracker.update(seen(outlier)), PitchChange::None);
        }
        assert_eq!(tracker.update(seen(7.35)), PitchChange::None);
    }
    for i in 0..50 {
        // No three estimates agree.
        assert_eq!(tracker.update(seen(8.0 + f64::from(i))), PitchChange::None);
    }
    assert_eq!(tracker.pitch(), Some(7.35));
}

#[test]
fn tracker_with_agreeing_estimates_moves_to_their_mean() {
    let mut tracker = PitchTracker::default();
    tracker.update(seen(7.35));
    assert_eq!(tracker.update(seen(7.41)), PitchChange::None);
    assert_eq!(tracker.update(seen(7.42)), PitchChange::None);
    let PitchChange::Moved { from, to } = tracker.update(seen(7.40)) else {
        panic!("three agreeing estimates did not move it");
    };
    assert!(from == 7.35 && (to - 7.41).abs() < 1e-9, "{from} {to}");
    assert_eq!(tracker.pitch(), Some(to));
}

#[test]
fn tracker_of_a_slow_drift_follows_in_steps() {
    let mut tracker = PitchTracker::default();
    let mut moves = 0;
    for i in 0..1000 {
        let pitch = 7.35 + 0.0005 * f64::from(i);
        moves += i32::from(matches!(
            tracker.update(seen(pitch)),
            PitchChange::Moved { .. }
        ));
        assert!((tracker.pitch().unwrap() - pitch).abs() < 0.04, "{i}");
    }
    assert!((10..=20).contains(&moves), "{moves}");
}

#[test]
fn tracker_over_a_gap_keeps_the_pitch_then_loses_it() {
    let mut tracker = PitchTracker::default();
    tracker.update(seen(7.35));
    for _ in 0..20 {
        for _ in 0..4 {
            assert_eq!(tracker.update(None), PitchChange::None);
            assert_eq!(tracker.pitch(), Some(7.35));
        }
        assert_eq!(tracker.update(seen(7.35)), PitchChange::None);
    }
    for _ in 0..4 {
        assert_eq!(tracker.update(None), PitchChange::None);
    }
    assert_eq!(tracker.update(None), PitchChange::Lost);
    assert_eq!(tracker.pitch(), None);
    assert_eq!(tracker.update(None), PitchChange::None);
    assert_eq!(tracker.update(seen(22.05)), PitchChange::Found(22.05));
}

#[test]
fn tracker_gap_between_differing_estimates_does_not_add_them_up() {
    let mut tracker = PitchTracker::default();
    tracker.update(seen(7.35));
    for _ in 0..10 {
        tracker.update(seen(9.0));
        tracker.update(seen(9.0));
        assert_eq!(tracker.update(None), PitchChange::None);
        assert_eq!(tracker.pitch(), Some(7.35));
    }
}

/// Estimates of a natural texture, whose standard deviation is a share of the pitch.
fn scattered(pitch: f64, share: f64, rng: &mut ChaCha8Rng) -> Option<PitchEstimate> {
    seen(pitch * (1.0 + share * f64::from(normal(rng))))
}

#[test]
fn tracker_of_a_natural_texture_holds_still() {
    let mut moves = 0;
    for seed in 0..40 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut tracker = PitchTracker::default();
        tracker.update(seen(7.12));
        for look in 0..200 {
            if let PitchChange::Moved { from, to } = tracker.update(scattered(7.12, 0.01, &mut rng))
            {
                // Before the scatter is known, three estimates may agree by chance.
                assert!(look < 4, "seed {seed}, look {look}: {from} {to}");
                moves += 1;
            }
        }
    }
    assert!(moves <= 1, "{moves}");
}

/// The first estimate may be two standard deviations off.
#[test]
fn tracker_of_a_natural_texture_corrects_a_bad_first_estimate() {
    for seed in 0..40 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut tracker = PitchTracker::default();
        let changes = (0..200).map(|_| tracker.update(scattered(7.12, 0.01, &mut rng)));
        let moves = changes
            .filter(|c| matches!(c, PitchChange::Moved { .. }))
            .count();
        let error = (tracker.pitch().unwrap() / 7.12 - 1.0).abs();
        assert!(moves <= 2 && error < 0.02, "seed {seed}: {moves}, {error}");
    }
}

#[test]
fn tracker_of_a_natural_texture_follows_a_change_of_the_line_speed() {
    let (mut runs, mut prompt) = (0, 0);
    for seed in 0..40 {
        for before in [1, 2, 5, 50] {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut tracker = PitchTracker::default();
            for _ in 0..before {
                tracker.update(scattered(7.12, 0.01, &mut rng));
            }
            let held = tracker.pitch().unwrap();
            let changes: Vec<_> = (0..6)
                .map(|_| tracker.update(scattered(11.0, 0.01, &mut rng)))
                .collect();
            let first = changes
                .iter()
                .position(|c| *c != PitchChange::None)
                .unwrap();
            let PitchChange::Moved { from, to } = changes[first] else {
                panic!("seed {seed}, {before} estimates before: {changes:?}");
            };
            assert!(from == held && (to - 11.0).abs() < 0.3, "{from} {to}");
            runs += 1;
            prompt += usize::from(first == 2);
        }
    }
    assert!(
        20 * prompt >= 19 * runs,
        "{prompt} of {runs} after three estimates"
    );
}

#[test]
fn tracker_of_a_natural_texture_follows_a_slow_drift() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut tracker = PitchTracker::default();
    for look in 0..1000 {
        let pitch = 7.12 + 0.003 * f64::from(look);
        tracker.update(scattered(pitch, 0.01, &mut rng));
        let error = (tracker.pitch().unwrap() / pitch - 1.0).abs();
        assert!(error < 0.045, "look {look}: {error}");
    }
}
