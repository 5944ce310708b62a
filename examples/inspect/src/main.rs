//! Inspects a camera, files or any GStreamer source: a base for an application.
//!
//! `cargo run --release -p inspect -- --help` lists the options. The elements are linked into the program.

mod pictures;
mod pipeline;
mod report;
mod source;

use std::{
    fs,
    path::PathBuf,
    process::{ExitCode, exit},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Error, Result, anyhow};
use clap::Parser;
use gstclinspect::results::Verdict;

use pipeline::{Next, Pipeline};
use report::Report;
use source::Source;

/// The first frame of a live source may take so long: kernels are compiled meanwhile.
const FIRST_SILENCE: Duration = Duration::from_secs(15);

const EXAMPLES: &str = "\
Examples:
  inspect --source 'v4l2src ! image/jpeg ! jpegdec' --json
  inspect --source photos/*.png --output failed
  inspect --source camera --inspection 'pitch-x=61.13 pitch-y=0 threshold=20'
  inspect --source camera --train 50 --output out    a reference, learned from the first 50 frames
  inspect --source camera --texture 30 --output out  cloth, with limits learned from the first 30 frames
  inspect --source camera --line-scan                a line camera: frames are strips of a web

Exit code: 0 after the last frame or Ctrl-C, 1 when inspecting failed, 2 for arguments that cannot work.";

/// Inspects frames with OpenCL: smooths them, compares the repeating pattern with itself (or frames with a
/// trained reference, or a texture with itself), and prints a verdict per frame.
///
/// The verdict is none while no repeating pattern is found, and while the reference is trained or limits are learned.
#[derive(Debug, Parser)]
#[command(name = "inspect", after_help = EXAMPLES)]
struct Args {
    /// camera (aravissrc: GigE Vision and USB3 Vision), PNG files, or a gst-launch description without a sink
    #[arg(long, num_args = 1.., required = true, value_name = "SOURCE")]
    source: Vec<String>,
    /// auto, gpu, cpu, gpu:1, or part of a device's name [default: $CLINSPECT_DEVICE, else auto]
    #[arg(long)]
    device: Option<String>,
    /// Frames to inspect; 0 = until the source ends
    #[arg(long, value_name = "N", default_value_t = 0)]
    frames: u64,
    /// Compare with a reference (clreference) instead of with the repeating pattern (clpitchthreshold): with
    /// reference.npz in the folder of --output, else learned from the first N frames, which must be good
    #[arg(long, value_name = "N", requires = "output")]
    train: Option<u32>,
    /// Compare cloth or another natural texture with itself (cltexture): with the limits of texture.npz in the folder of
    /// --output, else learned from the first N frames, which must be good
    #[arg(long, value_name = "N", requires = "output", conflicts_with = "train")]
    texture: Option<u32>,
    /// Properties of clpitchthreshold, clreference or cltexture as in gst-launch, added to the defaults of this program
    #[arg(long, value_name = "PROPERTIES", default_value = "")]
    inspection: String,
    /// Frames are strips of a web, as line cameras send them; a defect is listed once, wherever it is cut
    #[arg(long)]
    line_scan: bool,
    /// Write a JSON object per frame and one at the end to stdout
    #[arg(long)]
    json: bool,
    /// Folder for failed frames, with the marked pixels in red and a box around each defect (PNG)
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// At most this many failed frames are saved
    #[arg(long, value_name = "N", default_value_t = 100)]
    pictures: usize,
    /// Seconds without a result after which a live source is started again; 0 = never
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    silence: u32,
}

/// Arguments that cannot work.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

/// Set by Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    let Err(error) = run(&Args::parse()) else {
        return ExitCode::SUCCESS;
    };
    eprintln!("inspect: {error:#}");
    ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
}

fn run(args: &Args) -> Result<()> {
    gst::init()?;
    gstclinspect::register_static()?;
    ctrlc::set_handler(|| {
        // The second Ctrl-C ends the program at once.
        if STOP.swap(true, Relaxed) {
            exit(130);
        }
    })?;
    let source = Source::new(&args.source);
    if let Some(folder) = &args.output {
        fs::create_dir_all(folder)
            .map_err(|error| Usage(format!("--output {}: {error}", folder.display())))?;
    }
    let mut session = Session {
        args,
        waits: source.is_camera(),
        source,
        saved: 0,
        report: Report::default(),
    };
    let result = session.inspect();
    if result.is_ok() || session.report.frames > 0 {
        session.report.finish(args.json)?;
    }
    result
}

/// A run, over all restarts of the source.
struct Session<'a> {
    args: &'a Args,
    source: Source,
    /// Whether to wait for a source that goes away: a camera, or a live source that has sent frames.
    waits: bool,
    /// Failed frames saved so far.
    saved: usize,
    report: Report,
}

impl Session<'_> {
    fn inspect(&mut self) -> Result<()> {
        while !STOP.load(Relaxed) {
            let Some(why) = self.watch(Pipeline::new(&self.source, self.args)?)? else {
                break;
            };
            self.report.restarts += 1;
            eprintln!("waiting for the source: {why:#}");
            sleep(Duration::from_secs(1));
        }
        Ok(())
    }

    /// Takes results until the pipeline ends; returns why the source is to be started again.
    fn watch(&mut self, mut pipeline: Pipeline) -> Result<Option<Error>> {
        let silence = Duration::from_secs(self.args.silence.into());
        let (mut last, mut most) = (Instant::now(), silence.max(FIRST_SILENCE));
        let is_live = pipeline.start();
        loop {
            match pipeline.next() {
                Next::Frame(sample) => {
                    (last, most) = (Instant::now(), silence);
                    self.waits |= is_live;
                    self.take(sample)?;
                    if self.report.frames == self.args.frames {
                        return Ok(None);
                    }
                }
                Next::Nothing if is_live && !silence.is_zero() && last.elapsed() > most => {
                    return Ok(Some(anyhow!("no result for {most:?}")));
                }
                Next::Nothing => {}
                Next::End if self.source.is_camera() => {
                    return Ok(Some(anyhow!("the stream has ended")));
                }
                Next::End => return Ok(None),
                Next::SourceFailed(why) if self.waits => return Ok(Some(why)),
                Next::SourceFailed(why) | Next::Failed(why) => return Err(why),
            }
            if STOP.load(Relaxed) {
                // Frames in the pipeline are still inspected.
                pipeline.end();
                while let Next::Frame(sample) = pipeline.next() {
                    self.take(sample)?;
                }
                return Ok(None);
            }
        }
    }

    /// Prints the results of a frame, and saves the frame if it failed.
    fn take(&mut self, sample: gst::Sample) -> Result<()> {
        let name = format!("frame-{:06}.png", self.report.frames);
        let has_failed = self.report.frame(&sample, self.args.json)? == Verdict::Fail;
        let is_saved = has_failed && self.saved < self.args.pictures;
        if let Some(folder) = self.args.output.as_ref().filter(|_| is_saved) {
            self.saved += 1;
            pictures::save(&folder.join(name), &sample)?;
        }
        Ok(())
    }
}
