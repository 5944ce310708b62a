//! The pictures of `inspectoverlay` in docs/images equal those of `examples/overlay_pictures`.
//!
//! `cargo test` builds the example; before `cargo test --test pictures` alone, run
//! `cargo build --examples`.

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

/// Side of the compared blocks, px; at most the height of a label.
const BLOCK: usize = 12;
/// Largest mean difference of a block, levels. Versions of the JPEG library round differently; a missing
/// letter changes its block by far more.
const MOST: f64 = 6.0;

/// A picture with three bytes per pixel.
#[derive(Clone)]
struct Picture {
    width: usize,
    samples: Vec<u8>,
}

impl Picture {
    /// The largest mean difference of a block, and the position of the block.
    fn worst(&self, other: &Self) -> (f64, [usize; 2]) {
        assert_eq!(
            [self.width, self.samples.len()],
            [other.width, other.samples.len()]
        );
        let columns = self.width.div_ceil(BLOCK);
        let rows = (self.samples.len() / 3 / self.width).div_ceil(BLOCK);
        let mut sums = vec![(0_u64, 0_u64); columns * rows];
        for (at, (&a, &b)) in self.samples.iter().zip(&other.samples).enumerate() {
            let [x, y] = [at / 3 % self.width, at / 3 / self.width];
            let (sum, count) = &mut sums[y / BLOCK * columns + x / BLOCK];
            *sum += u64::from(a.abs_diff(b));
            *count += 1;
        }
        let means = sums.iter().map(|&(sum, count)| sum as f64 / count as f64);
        let (at, worst) = means
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap();
        (worst, [at % columns * BLOCK, at / columns * BLOCK])
    }
}

/// A JPEG as RGB.
fn read(picture: &Path) -> Picture {
    gst::init().unwrap();
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
    let sample = sample.unwrap_or_else(|| panic!("{} is not a picture", picture.display()));
    let info = gst_video::VideoInfo::from_caps(sample.caps().unwrap()).unwrap();
    let mapped = sample.buffer().unwrap().map_readable().unwrap();
    let row = 3 * info.width() as usize;
    let rows = mapped.chunks(info.stride()[0] as usize);
    Picture {
        width: info.width() as usize,
        samples: rows.flat_map(|bytes| &bytes[..row]).copied().collect(),
    }
}

fn shown(name: &str) -> Picture {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images");
    read(&folder.join(name))
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
        let made = read(&sandbox.path().join(name));
        let (worst, [x, y]) = made.worst(&shown(name));
        assert!(
            worst <= MOST,
            "{name} at ({x}, {y}): {worst} levels; scripts/pictures updates the picture"
        );
    }
}

#[test]
fn missing_label_is_seen() {
    let whole = shown("overlay-frame.jpg");
    // The label "3 px +11", and the bare panel eight pitches to its right.
    let (label, bare) = ([211, 30], [270, 30]);
    let mut missing = whole.clone();
    for (x, y) in (0..15).flat_map(|y| (0..54).map(move |x| (x, y))) {
        let at = |[left, top]: [usize; 2]| 3 * ((top + y) * whole.width + left + x);
        let pixel = whole.samples[at(bare)..][..3].to_vec();
        missing.samples[at(label)..][..3].copy_from_slice(&pixel);
    }
    let (worst, place) = missing.worst(&whole);
    assert!(worst > 4.0 * MOST, "{worst} levels at {place:?}");
}
