//! `cargo bench`: each operator by picture and variant, on the device that `CLINSPECT_DEVICE`
//! names.
//!
//! Frames are resident. `lab/bench` compares with other libraries.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

use clinspect_lab::{baselines, operators, pictures, protocol};
use std::path::{Path, PathBuf};

use clinspect_lab::{Contestant, Error, Skip};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use protocol::{Frame, Settings};

const SIZE: [usize; 2] = [1920, 1080];
const KINDS: [&str; 6] = [
    "constant 128",
    "two values, random",
    "two values, alternating",
    "gradient along x",
    "random",
    "panel",
];

fn device() -> String {
    std::env::var("CLINSPECT_DEVICE").unwrap_or_else(|_| "auto".into())
}

/// A picture in a file, as the workers of lab/bench read it.
fn frame(folder: &Path, kind: &str, channels: usize) -> Result<Frame, Error> {
    let path: PathBuf = folder.join(format!("{kind} {channels}.raw"));
    std::fs::write(&path, pictures::draw(kind, SIZE, channels, "")?)?;
    Ok(Frame {
        path: path.to_string_lossy().into_owned(),
        width: SIZE[0],
        height: SIZE[1],
        channels,
        stride: SIZE[0] * channels,
        base: 0,
    })
}

type Prepare = fn(&str, &Frame, &Settings) -> Result<Box<dyn Contestant>, Error>;

/// Measures one operator with each of its variants, on each picture.
fn measure(
    c: &mut Criterion,
    task: &str,
    channels: usize,
    variants: &[(&str, Prepare, Settings)],
) -> Result<(), Error> {
    let folder = std::env::temp_dir().join(format!("clinspect-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let name = if channels == 1 { "GRAY8" } else { "RGB" };
    let mut group = c.benchmark_group(format!("{task}, {name} 1080p"));
    group.throughput(Throughput::Bytes((SIZE[0] * SIZE[1] * channels) as u64));
    for kind in KINDS {
        let frame = frame(&folder, kind, channels)?;
        for (variant, prepare, settings) in variants {
            let mut contestant = match prepare(task, &frame, settings) {
                Ok(contestant) => contestant,
                Err(why) if why.is::<Skip>() => {
                    eprintln!("{task}, {variant}: skipped: {why}");
                    continue;
                }
                Err(why) => return Err(why),
            };
            let mut failure = None;
            group.bench_function(BenchmarkId::new(*variant, kind), |bench| {
                bench.iter(|| {
                    if let Err(why) = contestant.run() {
                        failure = Some(why);
                    }
                });
            });
            if let Some(why) = failure {
                return Err(why);
            }
        }
    }
    group.finish();
    Ok(std::fs::remove_dir_all(folder)?)
}

fn ours(settings: Settings) -> (Prepare, Settings) {
    (operators::prepare, settings)
}

fn settings() -> Settings {
    Settings {
        device: device(),
        ..Settings::default()
    }
}

fn forced(variant: &str) -> Settings {
    Settings {
        variant: variant.into(),
        ..settings()
    }
}

/// Prefixes each name with a label.
fn labelled<const N: usize>(
    variants: [(&'static str, (Prepare, Settings)); N],
) -> Vec<(&'static str, Prepare, Settings)> {
    variants
        .into_iter()
        .map(|(label, (prepare, settings))| (label, prepare, settings))
        .collect()
}

fn histogram(c: &mut Criterion) {
    let variants = labelled([
        ("auto", ours(settings())),
        ("pairs", ours(forced("pairs"))),
        ("private", ours(forced("private"))),
        ("local", ours(forced("local"))),
        ("banked", ours(forced("banked"))),
    ]);
    run(|| {
        measure(c, "histogram", 1, &variants)?;
        measure(c, "histogram", 3, &variants[..1])
    });
}

fn gaussian(c: &mut Criterion) {
    let sized = |kernel_size, float| Settings {
        kernel_size,
        float,
        ..settings()
    };
    let image = Settings {
        image: true,
        ..settings()
    };
    let published = (baselines::prepare as Prepare, forced("shift"));
    let variants = labelled([
        ("3x3", ours(sized(3, false))),
        ("5x5", ours(sized(5, false))),
        ("3x3 float", ours(sized(3, true))),
        ("3x3 direct", ours(forced("direct"))),
        ("3x3 image", ours(image)),
        ("3x3 published", published),
    ]);
    run(|| {
        measure(c, "gaussian", 1, &variants)?;
        measure(c, "gaussian", 3, &variants[..2])
    });
}

fn pitch(c: &mut Criterion) {
    let average = Settings {
        pitch_x: 7.35,
        ..settings()
    };
    let recommended = Settings {
        pitch_x: 7.35,
        pitch_y: 7.35,
        multiples: vec![1, 4],
        minimum: true,
        match_center: true,
        threshold: 8.0,
        inward: true,
        min_contrast: 5.0,
        ..settings()
    };
    let variants = labelled([
        ("average", ours(average.clone())),
        ("recommended", ours(recommended)),
        (
            "average, published",
            (baselines::prepare as Prepare, average),
        ),
    ]);
    run(|| {
        measure(c, "pitch_threshold", 1, &variants)?;
        measure(c, "pitch_threshold", 3, &variants[..2])
    });
}

/// Prints why a benchmark cannot run, and fails.
fn run(mut benchmark: impl FnMut() -> Result<(), Error>) {
    let done = gst::init().map_err(Error::from).and_then(|()| benchmark());
    if let Err(why) = done {
        eprintln!("cargo bench: {why}");
        std::process::exit(1);
    }
}

criterion_group!(benches, histogram, gaussian, pitch);
criterion_main!(benches);
