//! The file of what was learned of a surface.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{env, fs, process, sync::Arc};

use clinspect_core::surface::{CHANNELS, ChannelsInUse, DIMENSIONS, FEATURES, Model, PROTOTYPES};
use clinspect_models::ArrayRef;
use clinspect_operators::{LearnedSurface, read_surface, write_surface};

const NOVELTY: ChannelsInUse = ChannelsInUse {
    novelty: true,
    dark_lines: false,
    bright_lines: false,
};
const ALSO_DARK: ChannelsInUse = ChannelsInUse {
    dark_lines: true,
    ..NOVELTY
};

#[test]
fn file_holds_what_was_learned_and_is_refused_if_it_does_not_fit() {
    let folder = env::temp_dir().join(format!("clinspect-surface-{}", process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("leather.npz");
    assert_eq!(read_surface(&path, NOVELTY), Ok(None));
    let mean = std::array::from_fn(|i| 100 - 20 * i as i32);
    let weights = std::array::from_fn(|i| [8 * i as i32 - 100; DIMENSIONS]);
    let prototypes = (0..PROTOTYPES as i32).map(|k| [8 * k - 600; DIMENSIONS]);
    let model = Model::new(mean, weights, prototypes.collect()).expect("a model");
    let learned = LearnedSurface {
        model: Arc::new(model),
        limits: vec![12.5],
    };
    write_surface(&path, &learned, NOVELTY).expect("a file");
    assert_eq!(read_surface(&path, NOVELTY), Ok(Some(learned.clone())));
    let why = read_surface(&path, ALSO_DARK).expect_err("other channels");
    let has = why.contains("no limit of dark-0") && why.contains("leather.npz");
    assert!(has, "{why}");
    assert!(write_surface(&path, &learned, ALSO_DARK).is_err());

    let numbers = |count: usize, value: u32| vec![value; count];
    for (mean, prototype, part) in [
        (
            26,
            0,
            "the array \"surface_mean\" has the shape [26] instead of [27]",
        ),
        (27, 1024, "prototypes has 1024"),
        (27, 1023_u32.wrapping_neg() - 1, "prototypes has -1024"),
    ] {
        let samples = [
            numbers(mean, 0),
            numbers(FEATURES * DIMENSIONS, 0),
            numbers(PROTOTYPES * DIMENSIONS, prototype),
            numbers(CHANNELS, 256),
        ];
        let shapes: [&[usize]; 4] = [
            &[mean],
            &[FEATURES, DIMENSIONS],
            &[PROTOTYPES, DIMENSIONS],
            &[CHANNELS],
        ];
        let names = [
            "surface_mean",
            "surface_weights",
            "surface_prototypes",
            "surface_limits",
        ];
        let arrays: [ArrayRef; 4] = std::array::from_fn(|i| ArrayRef {
            name: names[i],
            shape: shapes[i],
            samples: &samples[i],
        });
        clinspect_models::write(&path, &arrays).expect("a file");
        let why = read_surface(&path, NOVELTY).expect_err("no model");
        assert!(why.contains(part) && why.contains("learn again"), "{why}");
        clinspect_models::write(&path, &arrays[1..]).expect("a file");
        let why = read_surface(&path, NOVELTY).expect_err("no mean");
        assert!(why.contains("surface_mean"), "{why}");
    }
    fs::remove_dir_all(&folder).expect("the folder");
}
