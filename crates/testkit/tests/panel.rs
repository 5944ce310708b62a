//! The panel generator: exact patterns, the requested noise, defects at the reported places.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::{self as common};
use common::panel::{Defect, DefectKind, PanelFrame, PanelGenerator, PanelSpec};

/// No noise, no jitter, no vignetting: the pattern alone.
fn pattern(pitch_x: f64, pitch_y: f64) -> PanelSpec {
    PanelSpec {
        pitch_x,
        pitch_y,
        noise_sigma: 0.0,
        jitter_px: 0.0,
        vignetting: 0.0,
        ..PanelSpec::default()
    }
}

fn generator(spec: PanelSpec, seed: u64) -> PanelGenerator {
    PanelGenerator::new(spec, seed).unwrap()
}

fn noise_free(spec: PanelSpec) -> PanelSpec {
    PanelSpec {
        noise_sigma: 0.0,
        ..spec
    }
}

fn samples(frame: &PanelFrame) -> Vec<i64> {
    (0..frame.width * frame.height)
        .map(|i| i64::from(frame.sample(i % frame.width, i / frame.width).unwrap()))
        .collect()
}

/// docs/semantics.md, `compare=minimum` with matched centre: the 99.9th percentile of the residual,
/// grey levels, along x or (`stride` and `lines` swapped) along y.
fn residual(frame: &PanelFrame, pitch: f64, along_y: bool) -> f64 {
    let values = samples(frame);
    let (len, lines, step, line_step) = if along_y {
        (frame.height, frame.width, frame.width, 1)
    } else {
        (frame.width, frame.height, 1, frame.width)
    };
    let distance = (256.0 * pitch).round() as usize;
    let (whole, fraction) = (distance >> 8, (distance & 255) as i64);
    let used = usize::from(fraction > 0);
    let blur = (fraction * (256 - fraction) + 256) / 512;
    let mut found = Vec::new();
    for line in 0..lines {
        let s = |x: usize| values[line * line_step + x * step];
        for x in whole + used..len - whole - used {
            let left = (256 - fraction) * s(x - whole) + fraction * s(x - whole - used);
            let right = (256 - fraction) * s(x + whole) + fraction * s(x + whole + used);
            let centre = 256 * s(x) + blur * (s(x - 1) - 2 * s(x) + s(x + 1));
            let (a, b) = (centre - left, centre - right);
            found.push(if a.signum() == b.signum() {
                a.abs().min(b.abs())
            } else {
                0
            });
        }
    }
    found.sort_unstable();
    found[found.len() * 999 / 1000] as f64 / 256.0
}

/// One of each kind, far apart, on the default frame.
fn one_of_each() -> [Defect; 8] {
    use DefectKind::*;
    [
        Defect::new(Particle, 100.3, 80.6, 3.0, -80.0),
        Defect::new(Pinhole, 200.2, 80.1, 1.5, 80.0),
        Defect::new(Scratch, 320.0, 80.0, 1.5, 60.0),
        Defect::new(MissingCell, 440.0, 80.0, 0.0, -60.0),
        Defect::new(Bridge, 100.0, 200.0, 2.0, 60.0),
        Defect::new(ColumnLine, 550.4, 0.0, 1.5, -60.0),
        Defect::new(RowLine, 0.0, 400.7, 1.5, 60.0),
        Defect::new(Blob, 300.0, 280.0, 20.0, -60.0),
    ]
}

#[test]
fn frames_same_seed_are_equal() {
    let spec = PanelSpec::default();
    let (mut a, mut b) = (generator(spec, 7), generator(spec, 7));
    assert_eq!(a.clean_frame(), b.clean_frame());
    assert_eq!(
        a.next_frame(&one_of_each()).unwrap(),
        b.next_frame(&one_of_each()).unwrap()
    );
    assert_eq!(a.next_random(6), b.next_random(6));
}

#[test]
fn frame_reached_by_seek_equals_the_streamed_one() {
    let (mut streamed, mut sought) = (
        generator(PanelSpec::default(), 7),
        generator(PanelSpec::default(), 7),
    );
    streamed.clean_frame();
    streamed.next_random(3);
    sought.seek(2);
    assert_eq!(streamed.next_random(5), sought.next_random(5));
}

#[test]
fn frames_of_other_seeds_and_numbers_differ() {
    let spec = noise_free(PanelSpec::default());
    let mut first = generator(spec, 1);
    let frame = first.clean_frame();
    assert_ne!(frame.samples, generator(spec, 2).clean_frame().samples);
    assert_ne!(frame.samples, first.clean_frame().samples);
}

#[test]
fn clean_pattern_noise_free_repeats_up_to_interpolation() {
    for pitch in [7.35, 7.5, 16.35, 61.13] {
        for seed in 0..3 {
            let frame = generator(pattern(pitch, pitch), seed).clean_frame();
            for along_y in [false, true] {
                let residual = residual(&frame, pitch, along_y);
                assert!(
                    residual <= 2.0,
                    "pitch {pitch}, seed {seed}, along_y {along_y}: {residual}"
                );
            }
        }
    }
}

#[test]
fn clean_frame_with_jitter_and_vignetting_keeps_residual_along_rows() {
    for pitch in [7.35, 7.5, 16.35, 61.13] {
        let spec = PanelSpec {
            pitch_x: pitch,
            pitch_y: pitch,
            ..noise_free(PanelSpec::default())
        };
        let frame = generator(spec, 0).clean_frame();
        let (x, y) = (
            residual(&frame, pitch, false),
            residual(&frame, pitch, true),
        );
        println!("pitch {pitch}: residual p99.9 {x:.2} along x, {y:.2} along y");
        // Along x a row is compared with itself, so jitter is invisible. Along y the edges of
        // rows 0.03 px apart show: 0.03 px · √2 · 3 sigma · 30 levels per px of slope.
        assert!(x <= 2.0, "pitch {pitch}: {x}");
        assert!(y <= 4.0, "pitch {pitch}: {y}");
    }
}

#[test]
fn residual_sees_a_pitch_that_is_wrong() {
    // Check of the measure: a pitch error of half a pixel must not pass as clean.
    let frame = generator(pattern(7.35, 7.35), 0).clean_frame();
    let x = residual(&frame, 7.85, false);
    let y = residual(&frame, 7.85, true);
    assert!(x > 4.0 && y > 4.0, "{x} along x, {y} along y");
}

#[test]
fn pattern_of_whole_pitch_repeats_exactly() {
    let frame = generator(pattern(8.0, 16.0), 3).clean_frame();
    for y in 0..frame.height - 16 {
        for x in 0..frame.width - 8 {
            assert_eq!(frame.sample(x, y), frame.sample(x + 8, y));
            assert_eq!(frame.sample(x, y), frame.sample(x, y + 16));
        }
    }
}

#[test]
fn pattern_of_real_pitch_repeats_after_whole_pixels() {
    // 20 · 7.35 = 147 and 2 · 7.5 = 15; a sum near ½ may round the other way.
    let frame = generator(pattern(7.35, 7.5), 3).clean_frame();
    let values = samples(&frame);
    for y in 0..frame.height - 15 {
        for x in 0..frame.width - 147 {
            let here = values[y * frame.width + x];
            assert!((here - values[y * frame.width + x + 147]).abs() <= 1);
            assert!((here - values[(y + 15) * frame.width + x]).abs() <= 1);
        }
    }
}

#[test]
fn pattern_levels_are_the_requested_contrast_and_mean() {
    // Many phases, to reach the extremes; half a level of rounding at either end.
    for pitch in [7.35, 61.13] {
        let values = samples(&generator(pattern(pitch, pitch), 1).clean_frame());
        let (low, high) = (values.iter().min().unwrap(), values.iter().max().unwrap());
        assert!(
            (high - low - 120).abs() <= 2,
            "pitch {pitch}: {low}..{high}"
        );
        let mean = values.iter().sum::<i64>() as f64 / values.len() as f64;
        // Cells cut by the border shift the mean of a frame of few cells.
        assert!((mean - 128.0).abs() < 2.5, "pitch {pitch}: mean {mean}");
    }
}

#[test]
fn noise_measured_sigma_is_the_requested_one() {
    for sigma in [2.0, 4.0, 8.0] {
        let spec = PanelSpec {
            noise_sigma: sigma,
            vignetting: 0.0,
            ..PanelSpec::default()
        };
        let noisy = samples(&generator(spec, 4).clean_frame());
        let clean = samples(&generator(noise_free(spec), 4).clean_frame());
        let len = noisy.len() as f64;
        let differences = || noisy.iter().zip(&clean).map(|(n, c)| (n - c) as f64);
        let mean = differences().sum::<f64>() / len;
        let variance = differences().map(|d| (d - mean) * (d - mean)).sum::<f64>() / len;
        // Both frames are rounded: 1/12 of a squared level each.
        let measured = (variance - 1.0 / 6.0).sqrt();
        assert!(mean.abs() < 0.05 * sigma, "sigma {sigma}: mean {mean}");
        assert!(
            (measured / sigma - 1.0).abs() < 0.05,
            "sigma {sigma}: {measured}"
        );
    }
}

#[test]
fn noise_variance_grows_with_the_signal() {
    let variance = |level: f64| {
        let spec = PanelSpec {
            width: 128,
            contrast: 0.0,
            ..pattern(8.0, 8.0)
        };
        let at = |noise_sigma: f64| PanelSpec {
            noise_sigma,
            mean_level: 100.0,
            ..spec
        };
        // A line wider than the frame shifts the signal above the mean level.
        let frame = generator(at(6.0), 1)
            .next_frame(&[Defect::new(
                DefectKind::ColumnLine,
                63.5,
                0.0,
                256.0,
                level - 100.0,
            )])
            .unwrap();
        let values = samples(&frame);
        let mean = values.iter().sum::<i64>() as f64 / values.len() as f64;
        values
            .iter()
            .map(|&v| (v as f64 - mean).powi(2))
            .sum::<f64>()
            / values.len() as f64
    };
    // Half read, half shot noise at the mean level of 100: 36·(½ + ½·s/100).
    for (level, expected) in [(50.0, 27.0), (150.0, 45.0)] {
        let found: f64 = variance(level);
        assert!(
            (found / expected - 1.0).abs() < 0.05,
            "level {level}: {found}"
        );
    }
}

#[test]
fn defect_of_each_kind_changes_its_box_only() {
    // With jitter and vignetting, which are equal in the clean frame of the same number.
    let spec = noise_free(PanelSpec::default());
    let clean = generator(spec, 11).clean_frame();
    for defect in one_of_each() {
        let frame = generator(spec, 11).next_frame(&[defect]).unwrap();
        let [truth] = frame.planted.as_slice() else {
            panic!("{defect:?} planted {} defects", frame.planted.len());
        };
        let [left, top, width, height] = truth.bbox;
        let mut covered = 0;
        for y in 0..frame.height {
            for x in 0..frame.width {
                let change =
                    i32::from(frame.sample(x, y).unwrap()) - i32::from(clean.sample(x, y).unwrap());
                let inside = (left..left + width).contains(&x) && (top..top + height).contains(&y);
                assert!(inside || change == 0, "{truth:?}: {change} at ({x}, {y})");
                if truth.covers(x, y) {
                    covered += 1;
                    assert!(inside, "{truth:?} covers ({x}, {y})");
                    // At least half of the peak, 10 % vignetting, one level of rounding.
                    let least = 0.45 * truth.peak.abs() - 1.0;
                    let signed = f64::from(change) * truth.contrast.signum();
                    assert!(signed >= least, "{truth:?}: {change} at ({x}, {y})");
                }
            }
        }
        assert!(covered > 0, "{truth:?} covers nothing");
        assert_eq!(truth.pixels().count(), covered);
        assert!(truth.pixels().all(|(x, y)| truth.covers(x, y)));
        assert_eq!(truth.kind, defect.kind);
    }
}

#[test]
fn disc_through_optics_keeps_its_volume_and_centre() {
    // The optics conserve light: the sum of the change is contrast · area.
    let spec = PanelSpec {
        contrast: 0.0,
        bit_depth: 16,
        ..pattern(8.0, 8.0)
    };
    let clean = generator(spec, 1).clean_frame();
    for (diameter, x0, y0) in [(1.5, 60.25, 50.5), (3.0, 61.6, 50.0), (12.0, 62.1, 53.9)] {
        let defect = Defect::new(DefectKind::Particle, x0, y0, diameter, 80.0);
        let frame = generator(spec, 1).next_frame(&[defect]).unwrap();
        let (mut volume, mut x_sum, mut y_sum) = (0.0, 0.0, 0.0);
        for y in 0..frame.height {
            for x in 0..frame.width {
                let change =
                    f64::from(frame.sample(x, y).unwrap()) - f64::from(clean.sample(x, y).unwrap());
                volume += change / 256.0;
                x_sum += change / 256.0 * x as f64;
                y_sum += change / 256.0 * y as f64;
            }
        }
        let area = std::f64::consts::PI * diameter * diameter / 4.0;
        // 1 % is cut off at the rim, 1 % is due to the grid of 1/8 px.
        assert!(
            (volume / (80.0 * area) - 1.0).abs() < 0.02,
            "diameter {diameter}: {volume} for {}",
            80.0 * area
        );
        assert!((x_sum / volume - x0).abs() < 0.02, "diameter {diameter}");
        assert!((y_sum / volume - y0).abs() < 0.02, "diameter {diameter}");
    }
}

#[test]
fn missing_cell_at_full_contrast_leaves_the_grid() {
    let spec = pattern(61.13, 61.13);
    let cell = Defect::new(DefectKind::MissingCell, 320.0, 240.0, 0.0, -1000.0);
    let frame = generator(spec, 2).next_frame(&[cell]).unwrap();
    let truth = &frame.planted[0];
    let lowest = samples(&frame).into_iter().min().unwrap();
    for y in -20i32..=20 {
        for x in -20i32..=20 {
            let at = |centre: f64, offset: i32| (centre.round() as i32 + offset) as usize;
            let level = frame.sample(at(truth.x, x), at(truth.y, y)).unwrap();
            // The defect has harmonics above half a cycle per pixel, the pattern has none.
            assert!((i64::from(level) - lowest) <= 4, "{level} at ({x}, {y})");
        }
    }
}

#[test]
fn random_defects_keep_their_distance() {
    let spec = PanelSpec::default();
    let mut generator = generator(spec, 21);
    let mut kinds = std::collections::HashSet::new();
    for _ in 0..30 {
        let frame = generator.next_random(6);
        assert_eq!(frame.planted.len(), 6, "frame {}", frame.frame_number);
        for (i, a) in frame.planted.iter().enumerate() {
            kinds.insert(a.kind);
            for b in &frame.planted[..i] {
                let gap = |axis: usize, pitch: f64| {
                    let (a0, b0) = (a.bbox[axis], b.bbox[axis]);
                    let (a1, b1) = (a0 + a.bbox[axis + 2], b0 + b.bbox[axis + 2]);
                    (a0.max(b0) as f64 - a1.min(b1) as f64) / pitch
                };
                let (x, y) = (gap(0, spec.pitch_x), gap(1, spec.pitch_y));
                assert!(x >= 5.0 || y >= 5.0, "{a:?}\n{b:?}");
                // Two defects on a line are at least 2·4 cells apart.
                assert!(x >= 0.0 || y >= 8.0, "{a:?}\n{b:?}");
                assert!(y >= 0.0 || x >= 8.0, "{a:?}\n{b:?}");
            }
        }
    }
    assert_eq!(kinds.len(), DefectKind::ALL.len(), "{kinds:?}");
}

#[test]
fn random_defects_without_room_are_fewer() {
    let spec = PanelSpec {
        width: 64,
        height: 48,
        ..PanelSpec::default()
    };
    let planted = generator(spec, 1).next_random(50).planted.len();
    assert!(planted < 50);
    assert!(
        generator(spec, 1)
            .next_random_of(&[], 5, 60.0)
            .planted
            .is_empty()
    );
}

#[test]
fn frame_of_sixteen_bits_holds_the_same_pattern() {
    for bit_depth in [10, 12, 16] {
        let spec = PanelSpec {
            bit_depth,
            ..noise_free(PanelSpec::default())
        };
        let deep = generator(spec, 5).clean_frame();
        let flat = generator(noise_free(PanelSpec::default()), 5).clean_frame();
        assert_eq!(deep.samples.len(), 2 * deep.width * deep.height);
        let scale = (1u32 << (bit_depth - 8)) as f64;
        for (deep, flat) in samples(&deep).into_iter().zip(samples(&flat)) {
            // Half a level of rounding at either depth.
            let difference = (deep as f64 / scale - flat as f64).abs();
            assert!(difference <= 0.5 + 0.5 / scale, "{deep} against {flat}");
        }
    }
}

#[test]
fn frame_of_small_and_odd_sizes_is_whole() {
    for (width, height) in [(1, 1), (15, 1), (1, 15), (17, 13)] {
        let spec = PanelSpec {
            width,
            height,
            ..PanelSpec::default()
        };
        let mut generator = generator(spec, 1);
        assert_eq!(generator.clean_frame().samples.len(), width * height);
        assert_eq!(generator.next_random(3).samples.len(), width * height);
    }
}

#[test]
fn spec_out_of_range_is_refused() {
    let spec = PanelSpec::default();
    let nan = f64::NAN;
    for (field, bad) in [
        ("width", PanelSpec { width: 0, ..spec }),
        (
            "height",
            PanelSpec {
                height: 70_000,
                ..spec
            },
        ),
        (
            "pitch_x",
            PanelSpec {
                pitch_x: 2.0,
                ..spec
            },
        ),
        (
            "pitch_x",
            PanelSpec {
                pitch_x: nan,
                ..spec
            },
        ),
        (
            "pitch_y",
            PanelSpec {
                pitch_y: f64::INFINITY,
                ..spec
            },
        ),
        (
            "psf_sigma_px",
            PanelSpec {
                psf_sigma_px: -0.1,
                ..spec
            },
        ),
        (
            "noise_sigma",
            PanelSpec {
                noise_sigma: -1.0,
                ..spec
            },
        ),
        (
            "jitter_px",
            PanelSpec {
                jitter_px: 3.0,
                ..spec
            },
        ),
        (
            "vignetting",
            PanelSpec {
                vignetting: 1.5,
                ..spec
            },
        ),
        (
            "contrast",
            PanelSpec {
                contrast: nan,
                ..spec
            },
        ),
        (
            "mean_level",
            PanelSpec {
                mean_level: 256.0,
                ..spec
            },
        ),
        (
            "bit_depth",
            PanelSpec {
                bit_depth: 7,
                ..spec
            },
        ),
        (
            "bit_depth",
            PanelSpec {
                bit_depth: 17,
                ..spec
            },
        ),
    ] {
        let message = PanelGenerator::new(bad, 1).err().unwrap_or_default();
        assert!(message.starts_with(field), "{field}: {message:?}");
    }
}

#[test]
fn defect_out_of_range_is_refused_and_costs_no_frame() {
    let mut panel = generator(PanelSpec::default(), 1);
    let good = Defect::new(DefectKind::Particle, 100.0, 100.0, 3.0, 60.0);
    for bad in [
        Defect {
            x: f64::NAN,
            ..good
        },
        Defect { x: -500.0, ..good },
        Defect { y: 1e300, ..good },
        Defect {
            size_px: 0.0,
            ..good
        },
        Defect {
            size_px: 1e9,
            ..good
        },
        Defect {
            contrast: 0.0,
            ..good
        },
        Defect {
            contrast: f64::INFINITY,
            ..good
        },
        good.with_line(f64::NAN, 0.0),
        good.with_line(30.0, f64::NAN),
    ] {
        assert!(panel.next_frame(&[good, bad]).is_err(), "{bad:?}");
    }
    let frame = panel.next_frame(&[good]).unwrap();
    assert_eq!(frame.frame_number, 0);
}
