//! Settings whose kernels are not cached: frames continue while the compiler works.

use std::{
    env, fs,
    time::{Duration, Instant},
};

use clinspect_testkit::tools::alone;
use gst::prelude::*;
use gst_video::VideoFormat as Format;

use crate::{
    frames::{PLAIN, read},
    oracle::gaussian::{gaussian_f64, gaussian_integer},
    support::{Rig, buffer_of, caps_of, noise, start},
};

/// 30 frames per second.
const FRAME_TIME: Duration = Duration::from_micros(33_333);

/// Whether this is the process of `test` that has empty caches of its own; starts it otherwise.
pub fn in_process_without_caches(test: &str) -> bool {
    let name = test.replace("::", "-");
    let caches = env::temp_dir().join(format!("clinspect-{name}-{}", std::process::id()));
    let variables = ["POCL_CACHE_DIR", "CUDA_CACHE_PATH", "CLINSPECT_CACHE_DIR"]
        .map(|name| (name, caches.as_path()));
    fs::create_dir_all(&caches).unwrap();
    let printed = alone(test, &variables);
    fs::remove_dir_all(&caches).unwrap();
    for line in printed.iter().flat_map(|text| text.lines()) {
        if line.starts_with("gap:") {
            eprintln!("{line}");
        }
    }
    printed.is_none()
}

#[test]
fn never_compiled_settings_let_frames_go_on() {
    if !in_process_without_caches("gaps::never_compiled_settings_let_frames_go_on") {
        return;
    }
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, [128, 64], PLAIN);
    let mut rig = Rig::new("clgaussian", &caps_of(&frame));
    let element = rig.only("clgaussian");
    let expected = |taps: usize, float: bool| -> (Vec<f64>, f64) {
        if float {
            (gaussian_f64(frame.component(0), taps, 0.0), 1.0)
        } else {
            let levels = gaussian_integer(frame.component(0), taps, 0.0);
            (levels.into_iter().map(f64::from).collect(), 0.0)
        }
    };
    let shows = |output: &[u8], (levels, tolerance): &(Vec<f64>, f64)| {
        let near = |(&byte, level): (&u8, &f64)| (f64::from(byte) - level).abs() <= *tolerance;
        output.iter().zip(levels).all(near)
    };
    // Each needs a program that is not compiled yet.
    let integer = (5..=31).step_by(2).map(|taps| (taps, false));
    let settings: Vec<(usize, bool)> = integer
        .chain((3..=13).step_by(2).map(|n| (n, true)))
        .collect();
    let count = settings.len();
    assert_eq!(count, 20);
    // The slow references are computed before any time is taken.
    let settings: Vec<_> = settings
        .into_iter()
        .map(|(taps, float)| (taps, float, expected(taps, float)))
        .collect();

    let mut before = expected(3, false);
    let mut last = None;
    let mut longest = Duration::ZERO;
    let mut due = Instant::now();
    let mut frames = 0;
    for (taps, float, wanted) in settings {
        let arithmetic = if float { "float" } else { "integer" };
        element.set_property_from_str("arithmetic", arithmetic);
        element.set_property("kernel-size", taps as u32);
        let set = Instant::now();
        loop {
            let output = read(&rig.pass(buffer_of(&frame, &device)));
            let now = Instant::now();
            if let Some(last) = last.replace(now) {
                longest = longest.max(now - last);
            }
            frames += 1;
            due = (due + FRAME_TIME).max(now);
            std::thread::sleep(due - now);
            if shows(&output, &wanted) {
                break;
            }
            assert!(
                shows(&output, &before),
                "{taps} taps: neither the old nor the new pixels"
            );
            assert!(
                set.elapsed() < Duration::from_secs(20),
                "{taps} taps: never in force"
            );
        }
        before = wanted;
    }
    eprintln!("gap: longest {longest:?} in {frames} frames");
    assert!(rig.warnings().is_empty());
    assert!(
        frames > 3 * count,
        "frames wait for the compiler: {frames} for {count} settings"
    );
    // The gap has no limit here: drivers load machine code under a lock that every launch takes
    // (lab/notes/reliability.md has the figures).
}
