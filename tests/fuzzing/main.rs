//! The bodies of the fuzz targets in `fuzz/` on seeded random bytes, and on the inputs in
//! `seeds/`: past findings, and inputs that reach deep into the code.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::fuzzing as bodies;

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng};

/// Longest input, bytes.
const MAX_LEN: usize = 3000;
/// Most random inputs per target.
const CASES: u32 = 1500;
/// Time limit for the random inputs, for slow or emulated devices.
const TIME: Duration = Duration::from_secs(4);

/// Runs a body on the inputs in `seeds/`, then on random inputs with a fixed seed.
#[track_caller]
fn check(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fuzzing/seeds")
        .join(target);
    let mut kept: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    kept.sort();
    assert!(!kept.is_empty(), "{} is empty", folder.display());
    for path in kept {
        let bytes = fs::read(&path).unwrap();
        run(body, &bytes, &path.display().to_string());
    }
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(0x0c11_5bec);
    let start = Instant::now();
    let mut ran = 0;
    while ran < CASES && start.elapsed() < TIME {
        let mut bytes = vec![0; random.random_range(8..MAX_LEN)];
        random.fill(&mut bytes[..]);
        run(body, &bytes, &format!("random input {ran}"));
        ran += 1;
    }
    assert!(ran > 0);
}

/// Runs a body, and names the input on which it fails.
#[track_caller]
fn run(body: fn(&[u8]), bytes: &[u8], name: &str) {
    if catch_unwind(AssertUnwindSafe(|| body(bytes))).is_err() {
        panic!("on {name}");
    }
}

#[test]
fn any_mask_has_the_references_components() {
    check("components", bodies::components::run);
}

#[test]
fn any_packed_mask_is_unpacked_or_refused() {
    check("mask", bodies::mask::run);
}

#[test]
fn any_meta_of_our_names_is_read_or_left_out() {
    check("metas", bodies::metas::run);
}

#[test]
fn any_event_of_results_is_read_or_left_out() {
    check("events", bodies::events::run);
}

#[test]
fn any_caps_are_answered_within_the_templates() {
    check("caps", bodies::caps::run);
}

#[test]
fn any_video_meta_is_counted_right_or_refused() {
    check("video_meta", bodies::video_meta::run);
}

#[test]
fn any_property_while_frames_flow_leaves_the_element_working() {
    check("properties", bodies::properties::run);
}

#[test]
fn any_frame_of_a_camera_is_unpacked_right_or_refused() {
    check("unpack", bodies::unpack::run);
}

#[test]
fn any_rules_of_classes_are_read_or_refused_with_a_place() {
    check("rules", bodies::rules::run);
}

#[test]
fn any_model_file_is_read_or_refused_with_a_sentence() {
    check("models", bodies::models::run);
}
