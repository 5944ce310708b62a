//! `bench_worker pipelines`: the rows of cameras that share a process, without the driver.

use clap::Args;

use crate::{
    Contestant, Error,
    cameras::{Cameras, percentile},
    device::Device,
    limits::Upload,
    pictures,
    protocol::{Frame, Settings},
};

/// The chain that docs/benchmarks.md is about; `THRESHOLD` stands for a number.
const CHAIN: &str = "clgaussian kernel-size=5 sigma=0.8 ! clhistogram reports=reports,messages=false ! \
    clpitchthreshold pitch-x=7.35 pitch-y=7.35 threshold=THRESHOLD reports=reports,messages=false";
/// The comparison alone, for frames of noise.
const COMPARISON: &str =
    "clpitchthreshold pitch-x=7.35 pitch-y=7.35 threshold=THRESHOLD reports=reports,messages=false";
/// Runs of the limit, of which the fastest counts.
const LIMIT_RUNS: usize = 5;

/// Measures one to many pipelines in this process; a line per row.
///
/// Full speed: frames/s of all pipelines, as a part of the copies of such frames to the device per second (`bus`), and the
/// frames of the slowest pipeline over the mean (`fair`). At a camera's pace: frames/s, and the 50th and 99th percentile of
/// the time from the chain's sink pad to its source pad, and to the mask on the host.
///
/// At full speed each pipeline's own thread makes the frames, as a camera's element does.
///
/// `in-place`: frames are in memory of the pool that the first element proposes, and mapped for writing each time, as a
/// camera's driver writes them; the writing itself is not included. `plain`: frames are in other memory of the process.
#[derive(Debug, Args)]
pub struct Rows {
    /// OpenCL device, as the elements' property
    #[arg(long, default_value = "auto")]
    device: String,
    /// Numbers of pipelines
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,16")]
    pipelines: Vec<usize>,
    /// Sizes of frames, GRAY8
    #[arg(long, value_delimiter = ',', default_value = "1920x1080,4096x3072")]
    sizes: Vec<String>,
    /// Memory of the frames: in-place, plain
    #[arg(long, value_delimiter = ',', default_value = "in-place,plain")]
    sources: Vec<String>,
    /// Seconds of a row at full speed; 0 leaves full speed out
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Seconds of a row at a camera's pace; 0 leaves the pace out
    #[arg(long, default_value_t = 4.0)]
    paced_seconds: f64,
    /// A camera's frames per second
    #[arg(long, default_value_t = 25)]
    rate: u64,
    /// All cameras send at the same moment, instead of one after the other within a period
    #[arg(long)]
    together: bool,
    /// Frames: unmarked (a panel without a mark, as most frames of a line), defects (some marks in each), noise (marks
    /// all over the frame)
    #[arg(long, value_delimiter = ',', default_value = "unmarked,defects,noise")]
    frames: Vec<String>,
    /// Other elements between source and sink than those for each kind of frames
    #[arg(long)]
    chain: Option<String>,
}

/// What a kind of frames shows, and the elements that it passes.
fn kind(name: &str) -> Result<(&'static str, String), Error> {
    let (picture, chain, threshold) = match name {
        "unmarked" => ("clean panel", CHAIN, 120),
        "defects" => ("clean panel", CHAIN, 8),
        "noise" => ("random", COMPARISON, 120),
        _ => return Err(format!("no frames are called {name}").into()),
    };
    Ok((picture, chain.replace("THRESHOLD", &threshold.to_string())))
}

/// Prints the rows.
///
/// # Errors
/// An argument is wrong, or a pipeline fails.
pub fn print(rows: &Rows) -> Result<(), Error> {
    println!("{}", clinspect_opencl::open(&rows.device)?.device_name());
    let scratch = std::env::temp_dir().join(format!("bench_worker-{}.raw", std::process::id()));
    let printed = rows.sizes.iter().try_for_each(|name| {
        let (width, height) = name.split_once('x').ok_or("a size is WIDTHxHEIGHT")?;
        let (width, height): (usize, usize) = (width.parse()?, height.parse()?);
        let size = [width, height];
        let frame = Frame {
            path: scratch.display().to_string(),
            width,
            height,
            channels: 1,
            stride: width,
            base: 0,
        };
        let bus = bus(&rows.device, &vec![0; width * height])?;
        println!("{name} bus {bus:.0} frames/s");
        for frames in &rows.frames {
            let (picture, chain) = kind(frames)?;
            let chain = on_device(rows.chain.as_ref().unwrap_or(&chain), &rows.device);
            std::fs::write(&scratch, pictures::draw(picture, size, 1, "")?)?;
            for source in &rows.sources {
                for &pipelines in &rows.pipelines {
                    let row = row(rows, &frame, &chain, source, pipelines, bus)?;
                    println!("{name} {frames} {source} {pipelines} {row}");
                }
            }
        }
        Ok(())
    });
    // It exists only if a picture was drawn.
    let _ = std::fs::remove_file(&scratch);
    printed
}

fn row(
    rows: &Rows,
    frame: &Frame,
    chain: &str,
    source: &str,
    pipelines: usize,
    bus: f64,
) -> Result<String, Error> {
    let settings = Settings {
        device: rows.device.clone(),
        pipeline: chain.to_owned(),
        source: match source {
            "in-place" => "proposed".into(),
            "plain" => "system".into(),
            _ => return Err(format!("no source is called {source}").into()),
        },
        variant: "read".into(),
        pipelines,
        together: rows.together,
        ..Settings::default()
    };
    let mut parts = Vec::new();
    if rows.seconds > 0.0 {
        let seconds = rows.seconds;
        let full = Cameras::new(
            frame,
            &Settings {
                seconds,
                ..settings.clone()
            },
        )?
        .measure()?;
        parts.push(format!(
            "full speed: {:.0} frames/s, {:.2} of bus, fair {:.2}",
            full.frames_per_s,
            full.frames_per_s / bus,
            full.fairness
        ));
    }
    if rows.paced_seconds > 0.0 {
        let (rate, seconds) = (rows.rate, rows.paced_seconds);
        let paced = Cameras::new(
            frame,
            &Settings {
                rate,
                seconds,
                ..settings
            },
        )?
        .measure()?;
        let ms = |of: &[u64], percent| percentile(of, percent) as f64 / 1e6;
        parts.push(format!(
            "{rate}/s: {:.0} frames/s, passed p50 {:.3} p99 {:.3} ms, read p50 {:.3} p99 {:.3} ms",
            paced.frames_per_s,
            ms(&paced.passed, 50),
            ms(&paced.passed, 99),
            ms(&paced.read, 50),
            ms(&paced.read, 99),
        ));
    }
    Ok(parts.join(" | "))
}

/// Copies of a frame to the device per second.
fn bus(device: &str, picture: &[u8]) -> Result<f64, Error> {
    let mut upload = Upload::new(Device::open(device)?, picture)?;
    let mut fastest = u64::MAX;
    for _ in 0..LIMIT_RUNS {
        fastest = fastest.min(upload.run()?.wall_ns);
    }
    Ok(1e9 / fastest.max(1) as f64)
}

/// The pipeline, with the property `device` set on each of our elements.
fn on_device(pipeline: &str, device: &str) -> String {
    let parts = pipeline.split('!').map(|part| {
        let part = part.trim();
        match part.split_once(' ').unwrap_or((part, "")) {
            (name, rest) if name.starts_with("cl") => format!("{name} device=\"{device}\" {rest}"),
            _ => part.to_owned(),
        }
    });
    parts.collect::<Vec<_>>().join(" ! ")
}
