//! The label generator: the requested shift and light, misprints at the reported places only.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::label::{LabelFrame, LabelGenerator, LabelSpec, Misprint, MisprintKind};

const KINDS: [MisprintKind; 5] = MisprintKind::ALL;

/// Neither noise nor texture, and every part at its place.
fn quiet() -> LabelSpec {
    LabelSpec {
        jitter_px: 0.0,
        texture_sigma: 0.0,
        noise_sigma: 0.0,
        ..LabelSpec::default()
    }
}

fn generator(spec: LabelSpec, seed: u64) -> LabelGenerator {
    LabelGenerator::new(spec, seed).unwrap()
}

fn misprint(kind: MisprintKind, size_px: f64, contrast: f64) -> Misprint {
    Misprint {
        kind,
        size_px,
        contrast,
    }
}

/// Centre of what is not liner, with weights, px.
fn centroid(frame: &LabelFrame) -> [f64; 2] {
    let mut sums = [0.0; 3];
    for (at, &sample) in frame.samples.iter().enumerate() {
        let weight = f64::from(sample) / frame.light - 110.0;
        let place = [at % frame.width, at / frame.width].map(|at| at as f64);
        sums[0] += weight * place[0];
        sums[1] += weight * place[1];
        sums[2] += weight;
    }
    [sums[0] / sums[2], sums[1] / sums[2]]
}

#[test]
fn frames_depend_on_seed_and_number_alone() {
    let spec = LabelSpec::default();
    let mut first = generator(spec, 5);
    let [a, b] = [first.next_random(4), first.next_random(4)];
    assert_ne!(a.samples, b.samples);
    let mut again = generator(spec, 5);
    again.seek(1);
    assert_eq!(again.next_random(4), b);
    assert_eq!(again.frame_number(), 2);
    assert_ne!(generator(spec, 6).next_random(4).samples, a.samples);
}

#[test]
fn shift_and_light_are_the_reported_ones() {
    // Noise makes the mean of rounded samples exact.
    let spec = LabelSpec {
        noise_sigma: 2.0,
        ..quiet()
    };
    let mut generator = generator(spec, 1);
    let frames: Vec<LabelFrame> = (0..6).map(|_| generator.good()).collect();
    let [x, y] = centroid(&frames[0]);
    for frame in &frames {
        let [there_x, there_y] = centroid(frame);
        let moved = [there_x - x, there_y - y];
        for axis in [0, 1] {
            let reported = frame.shift[axis] - frames[0].shift[axis];
            // Noise of 2.3 levels in 640x480 pixels, 185 px from the centre in the mean, over a sum of
            // 2e7 levels, in two frames, and five times that.
            let difference = (moved[axis] - reported).abs();
            assert!(difference < 0.09, "{moved:?} {reported}");
            assert!(frame.shift[axis].abs() <= 8.0);
        }
        // The liner above the label.
        let liner = &frame.samples[..8 * 640];
        let sum: u32 = liner.iter().map(|&sample| u32::from(sample)).sum();
        let level = f64::from(sum) / liner.len() as f64;
        // Five deviations of the mean of 5120 samples.
        assert!(
            (level - 110.0 * frame.light).abs() < 0.15,
            "{level} {}",
            frame.light
        );
        assert!((0.9..=1.1).contains(&frame.light));
    }
    let spread = |of: fn(&LabelFrame) -> f64| {
        let values = frames.iter().map(of);
        values.clone().fold(f64::MIN, f64::max) - values.fold(f64::MAX, f64::min)
    };
    assert!(spread(|frame| frame.shift[0]) > 4.0 && spread(|frame| frame.light) > 0.05);
}

#[test]
fn misprints_change_the_pixels_of_their_boxes_alone() {
    let spec = LabelSpec {
        light: 0.0,
        ..quiet()
    };
    let mut generator = generator(spec, 2);
    for kind in KINDS {
        for (size, contrast) in [(3.0, 60.0), (8.0, 120.0)] {
            let number = generator.frame_number();
            let clean = generator.good();
            generator.seek(number);
            let bad = generator.label(&[misprint(kind, size, contrast); 3]);
            let name = format!("{} of {size} px in frame {number}", kind.name());
            assert_eq!(bad.planted.len(), 3, "{name}");
            assert_eq!((clean.shift, clean.light), (bad.shift, bad.light));
            let mut largest = [0.0_f64; 3];
            for (at, (&clean, &bad_sample)) in clean.samples.iter().zip(&bad.samples).enumerate() {
                let (x, y) = (at % bad.width, at / bad.width);
                let change = f64::from(bad_sample) - f64::from(clean);
                let inside = bad.planted.iter().position(|planted| {
                    let [left, top, width, height] = planted.bbox;
                    (left..left + width).contains(&x) && (top..top + height).contains(&y)
                });
                let Some(inside) = inside else {
                    assert_eq!(change, 0.0, "{name}: outside, at {x}, {y}");
                    continue;
                };
                let planted = &bad.planted[inside];
                if planted.covers(x, y) {
                    assert!(change.abs() >= 0.5 * planted.peak.abs() - 1.0, "{name}");
                }
                if change.abs() > largest[inside].abs() {
                    largest[inside] = change;
                }
            }
            for (planted, largest) in bad.planted.iter().zip(largest) {
                // Both levels are rounded.
                assert!((planted.peak - largest).abs() <= 1.0, "{name}: {largest}");
                assert!(planted.pixels().count() >= 4, "{name}");
            }
            let sign = match kind {
                MisprintKind::MissingInk => Some(1.0),
                MisprintKind::ExtraInk | MisprintKind::Smear => Some(-1.0),
                _ => None,
            };
            if let Some(sign) = sign {
                for planted in &bad.planted {
                    assert_eq!(planted.peak.signum(), sign, "{name}");
                    // A disc of 3 px reaches most of its contrast through the optics.
                    assert!(
                        planted.peak.abs() > 0.45 * contrast,
                        "{name}: {}",
                        planted.peak
                    );
                    assert!(
                        planted.peak.abs() < 1.01 * contrast,
                        "{name}: {}",
                        planted.peak
                    );
                }
            }
        }
    }
}

#[test]
fn every_kind_finds_a_place_on_every_label() {
    let mut generator = generator(LabelSpec::default(), 3);
    for number in 0..10 {
        for kind in KINDS {
            let frame = generator.label(&[misprint(kind, 3.0 + f64::from(number) / 2.0, 60.0)]);
            assert_eq!(frame.planted.len(), 1, "{} in frame {number}", kind.name());
            let planted = &frame.planted[0];
            assert_eq!(planted.kind, kind);
            let [left, top, width, height] = planted.bbox.map(|at| at as f64);
            assert!((left..left + width).contains(&planted.x) || kind == MisprintKind::Scratch);
            assert!((top - 8.0..top + height + 8.0).contains(&planted.y));
        }
    }
}

#[test]
fn noise_and_texture_have_the_requested_deviation() {
    let spec = LabelSpec {
        texture_sigma: 3.0,
        ..quiet()
    };
    // A clear part of the paper.
    let deviation = |frame: &LabelFrame| {
        let [dx, dy] = frame.shift.map(|shift| shift.round() as isize);
        let area = (34..40).flat_map(|y| (180..600).map(move |x| (x, y)));
        let levels: Vec<f64> = area
            .map(|(x, y)| frame.samples[((y + dy) * 640 + x + dx) as usize])
            .map(|sample| f64::from(sample) / frame.light)
            .collect();
        let mean = levels.iter().sum::<f64>() / levels.len() as f64;
        let sum: f64 = levels.iter().map(|level| (level - mean).powi(2)).sum();
        (sum / levels.len() as f64).sqrt()
    };
    let mut textured = generator(spec, 4);
    let found = (0..8).map(|_| deviation(&textured.good())).sum::<f64>() / 8.0;
    assert!((found - 3.0).abs() < 0.3, "{found}");
    let spec = LabelSpec {
        noise_sigma: 4.0,
        light: 0.0,
        ..quiet()
    };
    // Shot noise is stronger on bright paper than at the mean level of 128.
    let expected = 4.0 * (0.5_f64 + 0.5 * 205.0 / 128.0).sqrt();
    let found = deviation(&generator(spec, 4).good());
    assert!((found - expected).abs() < 0.3, "{found} {expected}");
}

#[test]
fn the_bar_code_reads_as_its_digits() {
    let spec = LabelSpec {
        shift_px: 0.0,
        light: 0.0,
        ..quiet()
    };
    let frame = generator(spec, 1).good();
    let row = &frame.samples[320 * 640 + 30..320 * 640 + 440];
    let mut runs = Vec::new();
    for part in row.chunk_by(|a, b| (*a < 122) == (*b < 122)) {
        runs.push(part.len());
    }
    // Quiet zones at both ends; four narrow elements at the start, three at the stop.
    let elements = &runs[1..runs.len() - 1];
    assert_eq!(elements.len(), 4 + 70 + 3, "{runs:?}");
    let wide: Vec<usize> = elements.iter().map(|&len| usize::from(len > 5)).collect();
    assert_eq!((&wide[..4], &wide[74..]), (&[0; 4][..], &[1, 0, 0][..]));
    // Weights 1 2 4 7 and parity; 11 stands for 0.
    let digit = |elements: Vec<usize>| {
        let weights = [1, 2, 4, 7, 0];
        let sum: usize = elements
            .iter()
            .zip(weights)
            .map(|(wide, weight)| wide * weight)
            .sum();
        assert_eq!(elements.iter().sum::<usize>(), 2);
        sum % 11
    };
    let digits: Vec<usize> = wide[4..74]
        .chunks_exact(10)
        .flat_map(|pair| [0, 1].map(|at| digit(pair.iter().skip(at).step_by(2).copied().collect())))
        .collect();
    assert_eq!(digits, [1, 4, 0, 0, 6, 3, 8, 1, 3, 3, 3, 9, 3, 1]);
}

#[test]
fn wrong_specifications_are_refused_with_the_range() {
    let good = LabelSpec::default();
    for (spec, word) in [
        (LabelSpec { width: 319, ..good }, "width is 319, give 320"),
        (
            LabelSpec {
                height: 9000,
                ..good
            },
            "height is 9000",
        ),
        (
            LabelSpec { light: 0.6, ..good },
            "light is 0.6, give 0 to 0.5",
        ),
        (
            LabelSpec {
                shift_px: f64::NAN,
                ..good
            },
            "shift_px is NaN",
        ),
    ] {
        let Err(why) = LabelGenerator::new(spec, 1) else {
            panic!("{word}");
        };
        assert!(why.contains(word), "{why}");
    }
    // The print grows with the frame.
    let large = LabelSpec {
        width: 1920,
        height: 1080,
        ..good
    };
    let frame = generator(large, 1).next_random(6);
    assert_eq!((frame.samples.len(), frame.planted.len()), (1920 * 1080, 6));
}
