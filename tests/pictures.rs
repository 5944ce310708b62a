//! The pictures of `inspectoverlay` in docs/images are what `examples/overlay_pictures` makes.
//!
//! `cargo test` builds the example beside this binary; after `cargo test --test pictures` alone it may
//! be missing (`cargo build --examples`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::tools;
use std::path::Path;

use gst::prelude::*;
use tools::{Sandbox, example, has_device, run};

/// Mean difference of samples, levels: versions of the JPEG library round in different ways.
const ROUNDING: f64 = 1.0;

/// A JPEG's samples as RGB.
fn samples(picture: &Path) -> Vec<u8> {
    let line = format!(
        "filesrc location={} ! jpegdec ! videoconvert ! video/x-raw,format=RGB ! appsink name=out",
        picture.display()
    );
    let pipeline = gst::parse::launch(&line).unwrap();
    let pipeline = pipeline.downcast::<gst::Pipeline>().unwrap();
    let out = pipeline.by_name("out").unwrap();
    let out = out.downcast::<gst_app::AppSink>().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let sample = out.try_pull_sample(gst::ClockTime::from_seconds(20));
    pipeline.set_state(gst::State::Null).unwrap();
    let sample = sample.unwrap_or_else(|| panic!("{} is no picture", picture.display()));
    let mapped = sample.buffer().unwrap().map_readable().unwrap();
    mapped.to_vec()
}

#[test]
fn pictures_of_the_documentation_are_what_the_program_makes() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("pictures");
    let mut command = sandbox.command(example("overlay_pictures").to_str().unwrap());
    run(command.arg(sandbox.path())).succeeded();
    for name in ["overlay-frame.jpg", "overlay-mask-pad.jpg"] {
        let shown = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("docs/images")
            .join(name);
        let (made, shown) = (samples(&sandbox.path().join(name)), samples(&shown));
        assert_eq!(made.len(), shown.len(), "{name}");
        let sum: u64 = made
            .iter()
            .zip(&shown)
            .map(|(&a, &b)| u64::from(a.abs_diff(b)))
            .sum();
        let mean = sum as f64 / made.len() as f64;
        assert!(
            mean <= ROUNDING,
            "{name}: {mean} levels; scripts/pictures makes it anew"
        );
    }
}
