//! What is compiled before the first frame, with empty caches, and the messages about it.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

use gst::prelude::*;
use gst_video::VideoFormat as Format;

use crate::{
    frames::PLAIN,
    gaps::in_process_without_caches,
    support::{Rig, buffer_of, caps_of, noise, start},
};

/// Width and height of frames in which `clhistogram` counts pairs on a CPU.
const SIZE: [usize; 2] = [640, 480];

/// The folders in PoCL's cache of the kernels with machine code, a folder per version; empty on other
/// devices.
fn versions() -> BTreeSet<PathBuf> {
    fn add(folder: &Path, found: &mut BTreeSet<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add(&path, found);
            } else if path.extension().is_some_and(|suffix| suffix == "so") {
                found.insert(folder.to_owned());
            }
        }
    }
    let mut found = BTreeSet::new();
    add(
        Path::new(&env::var_os("POCL_CACHE_DIR").unwrap()),
        &mut found,
    );
    found
}

/// The names of the kernels with machine code.
fn kernels() -> Vec<String> {
    let name = |path: &PathBuf| path.parent()?.file_name()?.to_str().map(str::to_owned);
    let mut names: Vec<String> = versions().iter().filter_map(name).collect();
    names.sort();
    names
}

/// Whether this process has empty caches and a device of PoCL, whose cache shows what is compiled.
fn starts_with_empty_caches(test: &str) -> bool {
    let name = format!("first_start::{test}");
    let is_pocl = |identity: &str| identity.starts_with("Portable Computing Language");
    in_process_without_caches(&name)
        && start().is_some_and(|device| is_pocl(&device.device_identity()))
}

/// The kernel that sums the tables of a histogram.
const MERGE: &str = "histogram_merge";

#[track_caller]
fn assert_compiles(element: &str, expected: &[&str]) {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, SIZE, PLAIN);
    let mut rig = Rig::new(element, &caps_of(&frame));
    rig.pass(buffer_of(&frame, &device));
    // The host sums the tables if it can read them in place.
    let needs_merge = !device.caps().shares_results;
    let expected = expected
        .iter()
        .filter(|&&name| needs_merge || name != MERGE);
    assert_eq!(
        kernels(),
        expected.copied().collect::<Vec<_>>(),
        "{element}"
    );
}

#[test]
fn gaussian_compiles_one_kernel() {
    if starts_with_empty_caches("gaussian_compiles_one_kernel") {
        assert_compiles("clgaussian", &["gaussian_binomial"]);
    }
}

#[test]
fn histogram_compiles_the_counting_kernels_of_all_sizes_and_the_merging_kernel() {
    let test = "histogram_compiles_the_counting_kernels_of_all_sizes_and_the_merging_kernel";
    if starts_with_empty_caches(test) {
        let kernels = ["histogram_bytes", MERGE, "histogram_pairs"];
        assert_compiles("clhistogram", &kernels);
    }
}

#[test]
fn histogram_with_a_strategy_compiles_its_counting_kernel_only() {
    if starts_with_empty_caches("histogram_with_a_strategy_compiles_its_counting_kernel_only") {
        let kernels = [MERGE, "histogram_pairs"];
        assert_compiles("clhistogram strategy=pairs", &kernels);
    }
}

#[test]
fn pitch_threshold_without_a_search_compiles_no_kernel_of_the_search() {
    if starts_with_empty_caches("pitch_threshold_without_a_search_compiles_no_kernel_of_the_search")
    {
        assert_compiles(
            "clpitchthreshold PUBLISHED pitch-x=4.5",
            &["mask_expand", "pitch_threshold_words", "run_differences"],
        );
    }
}

#[test]
fn another_frame_size_compiles_nothing() {
    if !starts_with_empty_caches("another_frame_size_compiles_nothing") {
        return;
    }
    let Some(device) = start() else { return };
    let many_runs = "clpitchthreshold PUBLISHED compare=minimum pitch-x=8 threshold=10";
    for (element, first) in [
        ("clgaussian", [40, 30]),
        // On a CPU frames under 262,144 pixels have a kernel of their own.
        ("clhistogram", [320, 240]),
        ("clhistogram", SIZE),
        (many_runs, [320, 240]),
        ("clpitchthreshold pitch-x=8 pitch-y=8", [320, 240]),
    ] {
        let frame = noise(Format::Gray8, first, PLAIN);
        let mut rig = Rig::new(element, &caps_of(&frame));
        rig.pass(buffer_of(&frame, &device));
        let before = versions();
        // PoCL compiles a kernel again for more than 65534 work-items; these have more marked runs.
        for size in [[641, 479], [1920, 1080], [320, 200]] {
            let frame = noise(Format::Gray8, size, PLAIN);
            rig.renegotiate(&caps_of(&frame));
            rig.pass(buffer_of(&frame, &device));
            assert_eq!(versions(), before, "{element} {size:?}");
        }
    }
}

#[test]
fn reference_compiles_nothing_after_its_start() {
    if !starts_with_empty_caches("reference_compiles_nothing_after_its_start") {
        return;
    }
    let Some(device) = start() else { return };
    let line = "clreference train-frames=2 threshold=1 deviation-factor=0 edge-tolerance=0 align=translation \
                normalize=gain match-score=0 output=difference";
    let frame = noise(Format::Gray8, SIZE, PLAIN);
    let mut rig = Rig::new(line, &caps_of(&frame));
    rig.pass(buffer_of(&frame, &device));
    let before = versions();
    assert!(!before.is_empty());
    for size in [SIZE, [1920, 1080]] {
        // Frames that train, frames that equal the model, and noise with many runs.
        let frame = noise(Format::Gray8, size, PLAIN);
        let mut other = frame.clone();
        other.bytes.rotate_left(3 * size[0] + 5);
        rig.renegotiate(&caps_of(&frame));
        rig.only("clreference").emit_by_name::<()>("train", &[]);
        for frame in [&frame, &frame, &frame, &other] {
            rig.pass(buffer_of(frame, &device));
            assert_eq!(versions(), before, "{size:?}");
        }
    }
}

#[test]
fn long_compilation_posts_progress_from_start_to_complete() {
    if !starts_with_empty_caches("long_compilation_posts_progress_from_start_to_complete") {
        return;
    }
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, SIZE, PLAIN);
    let mut rig = Rig::new("clpitchthreshold name=p", &caps_of(&frame));
    rig.pass(buffer_of(&frame, &device));
    let posted = rig.progress();
    let kinds: Vec<_> = posted.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds.first(), Some(&gst::ProgressType::Start), "{posted:?}");
    assert_eq!(
        kinds.last(),
        Some(&gst::ProgressType::Complete),
        "{posted:?}"
    );
    let steps = &kinds[1..kinds.len() - 1];
    assert!(
        steps
            .iter()
            .all(|kind| *kind == gst::ProgressType::Continue),
        "{posted:?}"
    );
    let expected = "p: compiling pitch_threshold_words".to_owned();
    assert!(
        posted.iter().any(|(_, text)| *text == expected),
        "{posted:?}"
    );

    // The programs are there, so that new caps and new settings compile nothing.
    let larger = noise(Format::Gray8, [800, 600], PLAIN);
    rig.renegotiate(&caps_of(&larger));
    rig.only("clpitchthreshold").set_property("threshold", 99.0);
    rig.pass(buffer_of(&larger, &device));
    assert_eq!(rig.progress(), []);
}
