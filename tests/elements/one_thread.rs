//! Pipelines of several threads on PoCL's device of one thread, which runs a command in the thread that enqueues it.

use std::{path::Path, process, thread, time::Duration};

use clinspect_testkit::tools::alone;
use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::HistogramResult;

use crate::{
    device::skip,
    frames::{PLAIN, read},
    results::assert_counted,
    support::{Rig, buffer_of, caps_of, judged, noise, smoothed, start},
};

const SIZE: [usize; 2] = [320, 64];
const PIPELINES: usize = 4;
const FRAMES: usize = 300;
/// Longest time of the test, which PoCL would otherwise stop for ever.
const LIMIT: Duration = Duration::from_secs(120);

/// Frames through elements of two threads. New settings are compiled and run on a third one.
fn inspect(number: usize) {
    let device = clinspect_opencl::open("cpu").unwrap();
    let mut frame = noise(Format::Gray8, SIZE, PLAIN);
    frame.bytes.rotate_left(7 * number);
    let masks = [3, 5].map(|taps| judged(&smoothed(&frame, taps), 5.0, 0.0, 10.0).packed);
    let mut rig = Rig::new(
        "clgaussian ! queue ! clhistogram ! clpitchthreshold PUBLISHED pitch-x=5",
        &caps_of(&frame),
    );
    let gaussian = rig.only("clgaussian");
    for (taps, mask) in [3, 5].into_iter().zip(&masks) {
        gaussian.set_property("kernel-size", taps as u32);
        let is_any = |output: &gst::Buffer| masks.contains(&read(output));
        rig.settle(
            || buffer_of(&frame, &device),
            |output| read(output) == *mask,
            is_any,
        );
        for _ in 0..FRAMES {
            let output = rig.pass(buffer_of(&frame, &device));
            assert_eq!(read(&output), *mask, "kernel-size={taps}");
            let counted = &HistogramResult::read(&output)[0];
            assert_counted(&smoothed(&frame, taps), counted, [0, 0, SIZE[0], SIZE[1]]);
        }
    }
}

#[test]
fn pipelines_of_several_threads_share_a_device_of_one_thread() {
    let test = "one_thread::pipelines_of_several_threads_share_a_device_of_one_thread";
    let variables = [
        ("POCL_DEVICES", Path::new("basic")),
        ("CLINSPECT_DEVICE", Path::new("cpu")),
    ];
    if start().is_none() {
        return;
    }
    let devices = clinspect_opencl::devices().unwrap();
    if !devices.iter().any(|device| device.caps.is_cpu) {
        return skip(test, "PoCL is not installed");
    }
    if alone(test, &variables).is_some() {
        return;
    }
    thread::spawn(|| {
        thread::sleep(LIMIT);
        eprintln!("the pipelines have stopped");
        process::abort();
    });
    thread::scope(|scope| {
        for number in 0..PIPELINES {
            scope.spawn(move || inspect(number));
        }
    });
}
