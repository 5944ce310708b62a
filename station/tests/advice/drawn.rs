//! Drawn panels, labels and webs.

use std::sync::Arc;

use clinspect_testkit::{
    cloth::{ClothSpec, ClothWeb},
    label::{LabelGenerator, LabelSpec},
    panel::{PanelGenerator, PanelSpec},
};
use run::frame::Frame;
use setup::advice::{Advice, Object, Picture, advise, advise_pictures};

pub fn picture(samples: &[u8], width: usize) -> Picture {
    Picture {
        width,
        height: samples.len() / width,
        samples: samples.iter().map(|&sample| f32::from(sample)).collect(),
    }
}

pub fn panels(spec: PanelSpec, seed: u64, count: usize) -> Vec<Picture> {
    let mut generator = PanelGenerator::new(spec, seed).unwrap();
    let frames = (0..count).map(|_| generator.clean_frame());
    frames
        .map(|frame| picture(&frame.samples, frame.width))
        .collect()
}

pub fn labels(spec: LabelSpec, seed: u64, count: usize) -> Vec<Picture> {
    let mut generator = LabelGenerator::new(spec, seed).unwrap();
    let frames = (0..count).map(|_| generator.good());
    frames
        .map(|frame| picture(&frame.samples, frame.width))
        .collect()
}

/// Numbers from 0 to 1.
fn random() -> impl FnMut() -> f32 {
    let mut state = 1_u32;
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    }
}

fn set<'a>(advice: &'a Advice, key: &str) -> &'a serde_json::Value {
    &advice.settings["analysis"][key]
}

fn reason<'a>(advice: &'a Advice, part: &str) -> &'a str {
    let found = advice.reasons.iter().find(|reason| reason.contains(part));
    found.unwrap_or_else(|| panic!("no reason says {part:?}: {:#?}", advice.reasons))
}

#[test]
fn panels_are_a_pattern_with_the_pitches_that_were_drawn() {
    for (pitch_x, pitch_y, noise_sigma, width) in [
        (7.35, 9.1, 4.0, 640),
        (23.4, 18.25, 2.0, 800),
        (12.0, 12.0, 8.0, 641),
    ] {
        let spec = PanelSpec {
            pitch_x,
            pitch_y,
            noise_sigma,
            width,
            ..PanelSpec::default()
        };
        let advice = advise_pictures(&panels(spec, 3, 8), 8).unwrap();
        assert_eq!(advice.object, Object::Pattern, "{advice:?}");
        // One estimate of a panel errs by at most 0.01 px (lab/notes/decisions.md); the middle of eight by less.
        assert!((advice.pitch_x - pitch_x).abs() < 0.01, "{advice:?}");
        assert!((advice.pitch_y - pitch_y).abs() < 0.01, "{advice:?}");
        // Half of the noise is shot noise, so dark places have 0.7 of it.
        assert!(
            (0.6..1.1).contains(&(advice.noise / noise_sigma)),
            "{advice:?}"
        );
        assert_eq!(advice.settings["analyzer"], "pitch");
        assert_eq!(advice.settings["gaussian"]["kernel-size"], 5);
        assert_eq!(*set(&advice, "multiples"), serde_json::json!([1, 4]));
        let written = set(&advice, "pitch-x").as_f64().unwrap();
        assert!((written - pitch_x).abs() < 0.01, "{advice:?}");
        reason(&advice, "each repeat equals the others");
    }
}

#[test]
fn few_repeats_are_told_and_compared_with_their_neighbours_alone() {
    let spec = PanelSpec {
        pitch_x: 61.0,
        pitch_y: 61.0,
        ..PanelSpec::default()
    };
    let advice = advise_pictures(&panels(spec, 4, 6), 8).unwrap();
    assert_eq!(advice.object, Object::Pattern, "{advice:?}");
    assert_eq!(*set(&advice, "multiples"), serde_json::json!([1]));
    reason(&advice, "holds only 8 repeats");
}

#[test]
fn labels_are_the_same_every_time_and_the_search_reaches_their_shifts() {
    let spec = LabelSpec {
        shift_px: 20.0,
        ..LabelSpec::default()
    };
    let advice = advise_pictures(&labels(spec, 5, 8), 8).unwrap();
    assert_eq!(advice.object, Object::Same, "{advice:?}");
    assert_eq!(advice.settings["analyzer"], "reference");
    assert_eq!(*set(&advice, "align"), "translation");
    assert_eq!(*set(&advice, "normalize"), "gain");
    // 17 at a noise of 4 (docs/which-element.md), and the noise is estimated from the darkest tenth.
    assert!(
        (10.0..=20.0).contains(&set(&advice, "threshold").as_f64().unwrap()),
        "{advice:?}"
    );
    assert!(
        set(&advice, "search-range").as_f64().unwrap() >= 20.0,
        "{advice:?}"
    );
}

#[test]
fn a_label_that_is_turned_needs_affine() {
    let frames = labels(LabelSpec::default(), 6, 4);
    let turned = frames
        .iter()
        .enumerate()
        .map(|(number, frame)| turned(frame, 0.004 * number as f32));
    let advice = advise_pictures(&turned.collect::<Vec<_>>(), 8).unwrap();
    assert_eq!(
        (advice.object, set(&advice, "align")),
        (Object::Same, &"affine".into()),
        "{advice:?}"
    );
    reason(&advice, "turn and stretch");
}

/// A picture turned about its middle by an angle in radians; nearest neighbours.
fn turned(frame: &Picture, angle: f32) -> Picture {
    let [middle_x, middle_y] = [frame.width as f32 / 2.0, frame.height as f32 / 2.0];
    let (sin, cos) = angle.sin_cos();
    let mut turned = frame.clone();
    for (at, sample) in turned.samples.iter_mut().enumerate() {
        let [x, y] = [
            (at % frame.width) as f32 - middle_x,
            (at / frame.width) as f32 - middle_y,
        ];
        let from = [x * cos - y * sin + middle_x, x * sin + y * cos + middle_y];
        let [x, y] = [
            from[0].clamp(0.0, frame.width as f32 - 1.0),
            from[1].clamp(0.0, frame.height as f32 - 1.0),
        ];
        *sample = frame.row(y as usize)[x as usize];
    }
    turned
}

#[test]
fn one_picture_again_and_again_is_told_to_be_no_proof() {
    let label = labels(LabelSpec::default(), 7, 1).remove(0);
    let advice = advise_pictures(&vec![label; 8], 8).unwrap();
    assert_eq!(advice.object, Object::Same, "{advice:?}");
    reason(&advice, "did not move between the pictures");
    // A pattern stays a pattern.
    let panel = panels(PanelSpec::default(), 7, 1).remove(0);
    let advice = advise_pictures(&vec![panel; 8], 8).unwrap();
    assert_eq!(advice.object, Object::Pattern, "{advice:?}");
    reason(&advice, "did not move between the pictures");
    // And frames that move are not told so.
    let advice = advise_pictures(&panels(PanelSpec::default(), 7, 8), 8).unwrap();
    assert!(
        !advice.reasons.concat().contains("did not move"),
        "{advice:?}"
    );
}

/// The cell of a sheet, px.
const CELL: [f64; 2] = [17.3, 21.6];

/// The vectors of a sheet at an angle in degrees, clockwise.
fn vectors(degrees: f64) -> [[f64; 2]; 2] {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let [p, q] = CELL;
    [[p * cos, p * sin], [-q * sin, q * cos]]
}

/// Sheets with a soft dot in each cell, a picture for each angle; with `wander` places far from each other lose their step.
fn sheets(angles: &[f64], wander: f64) -> Vec<Picture> {
    let mut noise = random();
    let size = [520, 440];
    let mut sheet = |degrees: &f64| {
        let [a, b] = vectors(*degrees);
        let samples = (0..size[0] * size[1]).map(|at| {
            let [x, y] = [(at % size[0]) as f64, (at / size[0]) as f64];
            let slow = wander * ((x / 61.0).sin() + (y / 53.0).sin());
            let wave = |v: [f64; 2]| {
                let along = (v[0] * x + v[1] * y) / v[0].hypot(v[1]) + slow;
                0.5 + 0.5 * (std::f64::consts::TAU * along / v[0].hypot(v[1])).cos()
            };
            (80.0 + 120.0 * wave(a) * wave(b)) as f32 + 12.0 * (noise() - 0.5)
        });
        Picture {
            width: size[0],
            height: size[1],
            samples: samples.collect(),
        }
    };
    angles.iter().map(&mut sheet).collect()
}

/// Asserts that these are the vectors of the sheet; one estimate errs by at most 0.02 px.
#[track_caller]
fn assert_vectors(found: &serde_json::Value, degrees: f64) {
    let found: Vec<f64> = serde_json::from_value(found.clone()).unwrap();
    let drawn = vectors(degrees);
    assert_eq!(found.len(), 4, "{found:?}");
    for (found, drawn) in found.iter().zip(drawn.as_flattened()) {
        assert!((found - drawn).abs() < 0.02, "{found} {drawn:?}");
    }
}

#[test]
fn turned_sheets_are_a_pattern_with_the_vectors_that_were_drawn() {
    for degrees in [-21.0, 1.5, 34.0] {
        let advice = advise_pictures(&sheets(&[degrees; 4], 0.0), 8).unwrap();
        assert_eq!(advice.object, Object::Pattern, "{advice:?}");
        assert_vectors(set(&advice, "lattice"), degrees);
        assert_vectors(&advice.lattice.clone().into(), degrees);
        assert_eq!([advice.pitch_x, advice.pitch_y], [0.0; 2]);
        assert_eq!(*set(&advice, "pitch-x"), serde_json::Value::Null);
        reason(&advice, &format!("at {degrees:.1}° to the rows."));
        reason(&advice, "each repeat equals the others");
    }
}

#[test]
fn sheets_at_several_angles_are_measured_by_the_inspection() {
    let advice = advise_pictures(&sheets(&[12.0, 15.0, 9.0, 12.0], 0.0), 8).unwrap();
    assert_eq!(advice.object, Object::Pattern, "{advice:?}");
    assert_vectors(&advice.lattice.clone().into(), 12.0);
    assert_eq!(*set(&advice, "lattice"), serde_json::Value::Null);
    assert_eq!([set(&advice, "pitch-x"), set(&advice, "pitch-y")], [-1, -1]);
    reason(&advice, "others repeat at other angles");
}

#[test]
fn turned_repeats_that_lose_their_step_make_a_texture() {
    let advice = advise_pictures(&sheets(&[28.0; 4], 2.5), 8).unwrap();
    assert_eq!(advice.object, Object::Texture, "{advice:?}");
    assert_eq!(advice.lattice.len(), 4);
    assert_eq!([set(&advice, "pitch-x"), set(&advice, "pitch-y")], [-1, -1]);
    reason(&advice, "no two repeats are alike");
}

/// Stripes nearly along the columns have one vector, which is normal to them, because they repeat along no column.
#[test]
fn turned_stripes_have_one_vector() {
    let drawn = [13.99, 0.49];
    let mut noise = random();
    let stripes = (0..4).map(|number| {
        let samples = (0..640 * 480).map(|at| {
            let [x, y] = [(at % 640) as f32, (at / 640) as f32];
            let phase = (drawn[0] * x + drawn[1] * y) / 196.0 + 0.3 * number as f32;
            120.0 + 50.0 * (phase * std::f32::consts::TAU).sin() + 8.0 * noise()
        });
        Picture {
            width: 640,
            height: 480,
            samples: samples.collect(),
        }
    });
    let advice = advise_pictures(&stripes.collect::<Vec<_>>(), 8).unwrap();
    assert_eq!(advice.object, Object::Pattern, "{advice:?}");
    let found: Vec<f64> = serde_json::from_value(set(&advice, "lattice").clone()).unwrap();
    let [x, y] = found[..] else {
        panic!("{found:?}")
    };
    let is_near = |found: f64, drawn: f32| (found - f64::from(drawn)).abs() < 0.02;
    assert!(is_near(x, drawn[0]) && is_near(y, drawn[1]), "{found:?}");
}

fn strips(spec: ClothSpec, count: u64) -> Vec<Picture> {
    let width = spec.width;
    let mut web = ClothWeb::new(spec, 8).unwrap();
    let strips = (0..count).map(|strip| {
        let mut samples = Vec::new();
        (0..480).for_each(|row| web.row(strip * 5000 + row, &mut samples));
        picture(&samples, width)
    });
    strips.collect()
}

/// The web's threads wander too little to lose their step, so it is judged as a pattern; both pitches are right.
#[test]
fn a_drawn_web_repeats_along_both_axes() {
    let spec = ClothSpec {
        defects: false,
        ..ClothSpec::default()
    };
    let advice = advise_pictures(&strips(spec, 6), 8).unwrap();
    assert_ne!(advice.object, Object::Same, "{advice:?}");
    assert!((advice.pitch_x - 16.35).abs() < 0.02, "{advice:?}");
    assert!((advice.pitch_y - 16.35).abs() < 0.02, "{advice:?}");
}

#[test]
fn threads_that_lose_their_step_make_a_texture_which_learns_its_limits() {
    let spec = ClothSpec {
        defects: false,
        wander_px: 3.0,
        ..ClothSpec::default()
    };
    let advice = advise_pictures(&strips(spec, 6), 8).unwrap();
    assert_eq!(advice.object, Object::Texture, "{advice:?}");
    assert!((advice.pitch_x - 16.35).abs() < 0.3, "{advice:?}");
    assert_eq!(advice.settings["gaussian"], serde_json::Value::Null);
    assert_eq!(advice.settings["analyzer"], "texture");
    assert_eq!(*set(&advice, "pitch-x"), -1);
    reason(&advice, "no two repeats are alike");
}

#[test]
fn stripes_repeat_along_one_axis_and_the_other_is_not_compared() {
    let mut noise = random();
    let stripes = (0..4).map(|number| {
        let samples = (0..640 * 480).map(|at| {
            let phase = (at % 640) as f32 / 10.5 + 0.3 * number as f32;
            120.0 + 50.0 * (phase * std::f32::consts::TAU).sin() + 8.0 * noise()
        });
        Picture {
            width: 640,
            height: 480,
            samples: samples.collect(),
        }
    });
    let advice = advise_pictures(&stripes.collect::<Vec<_>>(), 8).unwrap();
    assert_eq!(
        (advice.object, advice.pitch_y),
        (Object::Pattern, 0.0),
        "{advice:?}"
    );
    assert!((advice.pitch_x - 10.5).abs() < 0.01, "{advice:?}");
    assert_eq!(*set(&advice, "pitch-y"), 0.0);
}

#[test]
fn noise_alone_and_unlike_pictures_get_no_advice_and_a_sentence() {
    let mut random = random();
    let mut noise = || {
        let samples = (0..320 * 240).map(|_| 100.0 + 30.0 * random());
        Picture {
            width: 320,
            height: 240,
            samples: samples.collect(),
        }
    };
    let pictures: Vec<Picture> = (0..4).map(|_| noise()).collect();
    let why = advise_pictures(&pictures, 8).unwrap_err();
    assert!(
        why.starts_with("nothing repeats within the pictures"),
        "{why}"
    );
    let why = advise_pictures(&pictures[..1], 8).unwrap_err();
    assert!(why.ends_with("take 4 or more"), "{why}");
    let small = Picture {
        width: 63,
        height: 100,
        samples: vec![0.0; 6300],
    };
    let why = advise_pictures(&[small.clone(), small], 8).unwrap_err();
    assert!(why.contains("63x100"), "{why}");
    let other = Picture {
        width: 240,
        height: 320,
        ..pictures[0].clone()
    };
    let why = advise_pictures(&[pictures[0].clone(), other], 8).unwrap_err();
    assert!(why.contains("several sizes"), "{why}");
}

/// Grain of some pixels: noise, smoothed twice.
fn grain(size: [usize; 2], random: &mut impl FnMut() -> f32) -> Picture {
    let [width, height] = size;
    let mut samples: Vec<f32> = (0..width * height).map(|_| 1500.0 * random()).collect();
    for _ in 0..2 {
        let at = |x: usize, y: usize| samples[y % height * width + x % width];
        let mean = |x, y| (0..25).map(|n| at(x + n % 5, y + n / 5)).sum::<f32>() / 25.0;
        samples = (0..width * height)
            .map(|n| mean(n % width, n / width))
            .collect();
    }
    let with_noise = samples.iter().map(|sample| sample - 630.0 + 8.0 * random());
    Picture {
        width,
        height,
        samples: with_noise.collect(),
    }
}

#[test]
fn grain_without_a_repeat_is_a_surface() {
    let mut random = random();
    let pictures: Vec<Picture> = (0..4).map(|_| grain([320, 240], &mut random)).collect();
    let advice = advise_pictures(&pictures, 8).unwrap();
    assert_eq!(advice.object, Object::Surface, "{advice:?}");
    assert_eq!([advice.pitch_x, advice.pitch_y], [0.0; 2]);
    let expected = serde_json::json!({ "gaussian": null, "analyzer": "surface", "analysis": {} });
    assert_eq!(advice.settings, expected);
    reason(&advice, "Nothing repeats");
    reason(&advice, "let it lie in the same place in each picture");
    // The same grain each time is one object.
    let same = vec![pictures[0].clone(); 4];
    assert_eq!(advise_pictures(&same, 8).unwrap().object, Object::Same);
}

/// The same panel in 8 and in 12 bits, as frames.
#[test]
fn thresholds_are_in_grey_levels_of_the_cameras_samples() {
    gst::init().unwrap();
    let of = |bit_depth: u32| {
        let spec = PanelSpec {
            bit_depth,
            ..PanelSpec::default()
        };
        let mut generator = PanelGenerator::new(spec, 11).unwrap();
        let frames = (0..4).map(|_| {
            let panel = generator.clean_frame();
            let format = if bit_depth > 8 {
                gst_video::VideoFormat::Gray16Le
            } else {
                gst_video::VideoFormat::Gray8
            };
            let info = gst_video::VideoInfo::builder(format, 640, 480)
                .build()
                .unwrap();
            Arc::new(Frame::copy_of(&gst::Buffer::from_slice(panel.samples), &info).unwrap())
        });
        advise(&frames.collect::<Vec<_>>()).unwrap()
    };
    let [of_8, of_12] = [of(8), of(12)];
    assert!(
        (of_8.noise - of_12.noise).abs() < 0.05 * of_8.noise,
        "{of_8:?} {of_12:?}"
    );
    let [of_8, of_12] = [of_8, of_12].map(|advice| set(&advice, "threshold").as_f64().unwrap());
    // Thresholds are in steps of half a grey level of 8 bits.
    assert!((of_12 / 16.0 - of_8).abs() <= 0.5, "{of_8} {of_12}");
}
