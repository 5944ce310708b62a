//! Several cameras in one process, each with a pipeline and a device of its own.
//!
//! ```text
//! cargo run --release --example cameras
//! cargo run --release --example cameras -- \
//!     --camera 'aravissrc camera-name=left' --device gpu:0 \
//!     --camera 'aravissrc camera-name=right' --device gpu:1
//! ```
//!
//! A failed camera is reported and restarted after a pause; the others continue. Each
//! camera has a thread that reads its pipeline's bus; GStreamer's threads carry the frames. Cameras
//! on the same device share its context and compiled kernels.

use clinspect_testkit::live;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use clap::Parser;
use gst::prelude::*;
use gstclinspect::results::{DefectResult, Verdict};

use live::{
    running::Running,
    source::{INSPECTION, frames_of},
    stop::{on_ctrl_c, stopped},
};

const POLL: Duration = Duration::from_millis(50);

/// Inspects several cameras at once.
#[derive(Debug, Parser)]
#[command(name = "cameras")]
struct Args {
    /// test, aravis, v4l2, or a gst-launch description without a sink; once per camera
    #[arg(long = "camera", value_name = "SOURCE")]
    cameras: Vec<String>,
    /// Number of simulated cameras, if no --camera is given
    #[arg(long, value_name = "N", default_value_t = 2)]
    test_cameras: usize,
    /// Devices, assigned to the cameras in turn [default: $CLINSPECT_DEVICE, else every device]
    #[arg(long = "device", value_name = "DEVICE")]
    devices: Vec<String>,
    /// Properties of clpitchthreshold, as in gst-launch
    #[arg(long, default_value = INSPECTION)]
    inspection: String,
    /// Frames per camera; 0 = until stopped
    #[arg(long, value_name = "N", default_value_t = 0)]
    frames: u64,
    /// Pause before a failed camera is restarted, seconds
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    pause: f64,
    /// Time between two status lines, seconds
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    interval: f64,
}

/// Counts of one camera.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    frames: u64,
    failed: u64,
    unjudged: u64,
    restarts: u64,
}

struct Camera {
    number: usize,
    description: String,
    device: String,
    /// Frames to inspect, 0 = no end.
    wanted: u64,
    counts: Arc<Mutex<Counts>>,
}

impl Camera {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        lock(&self.counts)
    }

    /// Makes the pipeline without starting it.
    fn pipeline(&self) -> Result<Running> {
        let pipeline =
            Running::new(&self.description).with_context(|| format!("camera {}", self.number))?;
        let inspect: gst::Element = pipeline.get("inspect")?;
        inspect.set_property("device", &self.device);
        let pad = inspect.static_pad("src").context("a filter has a source")?;
        let (counts, wanted) = (self.counts.clone(), self.wanted);
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            let mut counts = lock(&counts);
            if wanted > 0 && counts.frames >= wanted {
                return gst::PadProbeReturn::Drop;
            }
            counts.frames += 1;
            for result in info
                .buffer()
                .into_iter()
                .flat_map(|b| DefectResult::read(b))
            {
                match result.verdict {
                    Verdict::Pass => {}
                    Verdict::Fail => counts.failed += 1,
                    Verdict::None => counts.unjudged += 1,
                }
            }
            gst::PadProbeReturn::Ok
        });
        Ok(pipeline)
    }

    /// Inspects until the stream ends or enough frames are inspected.
    fn run(&self) -> Result<()> {
        let pipeline = self.pipeline()?;
        pipeline.start();
        let run = pipeline.run_while(|| !self.has_enough());
        // A failure after the last frame does not count.
        if self.has_enough() { Ok(()) } else { run }
    }

    fn has_enough(&self) -> bool {
        self.wanted > 0 && self.counts().frames >= self.wanted
    }

    /// Inspects and restarts after failures, with a pause after each.
    fn keep_running(&self, pause: Duration) {
        while let Err(error) = self.run() {
            println!("camera {} failed: {error:#}", self.number);
            let until = Instant::now() + pause;
            while Instant::now() < until && !stopped() {
                thread::sleep(POLL);
            }
            if stopped() {
                break;
            }
            self.counts().restarts += 1;
        }
    }

    fn tell(&self, what: &str) {
        let counts = *self.counts();
        println!(
            "camera {} on {}: {} frames{what}, {} failed, {} unjudged, {} restarts",
            self.number,
            self.device,
            counts.frames,
            counts.failed,
            counts.unjudged,
            counts.restarts
        );
    }
}

fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Every device, as a value of the property `device`.
fn devices() -> Result<Vec<String>> {
    if let Ok(device) = std::env::var("CLINSPECT_DEVICE") {
        return Ok(vec![device]);
    }
    Ok(clinspect_opencl::selectors(&clinspect_opencl::devices()?))
}

fn cameras(args: &Args) -> Result<Vec<Camera>> {
    let sources = match args.cameras.as_slice() {
        [] => vec!["test".to_owned(); args.test_cameras],
        given => given.to_vec(),
    };
    let devices = match args.devices.as_slice() {
        [] => devices()?,
        given => given.to_vec(),
    };
    let camera = |(number, (source, device)): (usize, (&String, &String))| Camera {
        number,
        description: format!(
            "{} ! clpitchthreshold name=inspect post-messages=false {} ! fakesink sync=false",
            frames_of(source),
            args.inspection
        ),
        device: device.clone(),
        wanted: args.frames,
        counts: Arc::default(),
    };
    let pairs = sources.iter().zip(devices.iter().cycle());
    Ok(pairs.enumerate().map(camera).collect())
}

fn main() -> Result<()> {
    let args = Args::parse();
    gst::init()?;
    gstclinspect::register_static()?;
    on_ctrl_c()?;
    let pause = Duration::try_from_secs_f64(args.pause).context("--pause")?;
    let interval = Duration::try_from_secs_f64(args.interval).context("--interval")?;
    let cameras = cameras(&args)?;
    // A description that cannot be parsed is a mistake, not a missing camera.
    for camera in &cameras {
        camera.pipeline()?;
    }
    thread::scope(|scope| {
        let running: Vec<_> = cameras
            .iter()
            .map(|camera| scope.spawn(move || camera.keep_running(pause)))
            .collect();
        let mut before = vec![0; cameras.len()];
        let mut told = Instant::now();
        while running.iter().any(|camera| !camera.is_finished()) {
            thread::sleep(POLL);
            let elapsed = told.elapsed();
            if elapsed < interval {
                continue;
            }
            for (camera, before) in cameras.iter().zip(&mut before) {
                let frames = camera.counts().frames;
                let rate = (frames - *before) as f64 / elapsed.as_secs_f64();
                *before = frames;
                camera.tell(&format!(", {rate:.1}/s"));
            }
            told = Instant::now();
        }
    });
    cameras.iter().for_each(|camera| camera.tell(" in all"));
    Ok(())
}
