//! Elements on different devices that pass frames to each other.
//!
//! PoCL offers a second device only if an environment variable is set before it starts, so the test starts
//! its own binary again.

use std::process::Command;

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::HistogramResult;

use crate::{
    device::skip,
    frames::{ARRANGEMENTS, PLAIN, read},
    results::assert_counted,
    support::{Rig, buffer_of, caps_of, judged, noise, register, smoothed, start},
};

const SIZE: [usize; 2] = [68, 21];
const FRAMES: usize = 12;
/// Set in the process that the test starts.
const CHILD: &str = "CLINSPECT_TWO_DEVICES";

/// Frames through a chain whose elements alternate between two devices.
fn exchange(one: &str, other: &str) {
    let line = format!(
        "clgaussian device=\"{one}\" ! clhistogram device=\"{other}\" ! \
         clgaussian device=\"{other}\" ! clpitchthreshold device=\"{one}\" PUBLISHED pitch-x=5"
    );
    let owner = clinspect_opencl::open(one).unwrap();
    for arrangement in [PLAIN, ARRANGEMENTS[1]] {
        let frame = noise(Format::Gray8, SIZE, arrangement);
        let once = smoothed(&frame, 3);
        let twice = smoothed(&once, 3);
        let expected = judged(&twice, 5.0, 0.0, 10.0).packed;
        let mut rig = Rig::new(&line, &caps_of(&frame));
        for _ in 0..FRAMES {
            let mask = rig.pass(buffer_of(&frame, &owner));
            assert_eq!(read(&mask), expected, "{line}");
            let counted = &HistogramResult::read(&mask)[0];
            assert_counted(&once, counted, [0, 0, SIZE[0], SIZE[1]]);
        }
        for factory in ["clhistogram", "clpitchthreshold"] {
            let stats: gst::Structure = rig.only(factory).property("stats");
            assert_eq!(stats.get::<u64>("frames"), Ok(FRAMES as u64));
            // Memory of another device counts as host memory.
            assert_eq!(stats.get::<u64>("frames-zero-copy"), Ok(0), "{factory}");
        }
        drop(owner.clone());
    }
}

#[test]
fn elements_of_different_devices_share_frames() {
    if std::env::var_os(CHILD).is_none() {
        if start().is_none() {
            return;
        }
        let run = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "two_devices::elements_of_different_devices_share_frames",
            ])
            .args(["--nocapture"])
            .env(CHILD, "1")
            .env("POCL_DEVICES", "pthread basic")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{text}");
        if text.contains("SKIP") {
            skip(
                "elements_of_different_devices_share_frames",
                "there is one device",
            );
        }
        return;
    }
    register();
    let devices = clinspect_opencl::devices().unwrap();
    let cpus = devices.iter().filter(|device| device.caps.is_cpu);
    let units: Vec<usize> = cpus.map(|device| device.caps.compute_units).collect();
    assert!(
        units.is_sorted_by(|first, next| first >= next),
        "cpu:0 does not use all processors: {units:?}"
    );
    // By number, because GPUs of one model have the same name.
    let (mut gpus, mut cpus) = (0.., 0..);
    let selectors: Vec<String> = devices
        .iter()
        .filter_map(|device| match (device.is_gpu, device.caps.is_cpu) {
            (true, _) => Some(format!("gpu:{}", gpus.next()?)),
            (_, true) => Some(format!("cpu:{}", cpus.next()?)),
            _ => None,
        })
        .collect();
    let mut pairs = 0;
    for one in &selectors {
        for other in selectors.iter().filter(|other| *other != one) {
            exchange(one, other);
            pairs += 1;
        }
    }
    if pairs == 0 {
        skip("exchange", &format!("the only device is {selectors:?}"));
    }
}
