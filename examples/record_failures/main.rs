//! Records failed frames, with the frames before and after them, as PNG pictures or as Matroska.
//!
//! ```text
//! cargo run --release --example record_failures -- --output failures
//! cargo run --release --example record_failures -- --format mkv --before 50 --after 50 \
//!     --output failures v4l2src ! videoconvert ! clpitchthreshold output=frame
//! ```
//!
//! The words after the options are a pipeline as for `gst-launch-1.0`, without a sink. Its frames
//! must carry a `GstClDefectMeta` (`clpitchthreshold output=frame`). Without these words the
//! program inspects a chessboard on which a spot appears for a while. Separate threads write the
//! recordings, so a slow disk never blocks the inspection.

use clinspect_testkit::live;
mod recording;

use std::{collections::VecDeque, path::PathBuf};

use anyhow::{Context, Result, bail};
use clap::Parser;
use gstclinspect::results::{DefectResult, Verdict};

use live::frames::Frames;
use recording::{Format, Recording};

/// 60 frames of a repeating pattern; frames 20 to 24 have a bright spot.
const PATTERN: &str = "compositor name=mix sink_1::xpos=170 sink_1::ypos=122 ! \
    video/x-raw,format=I420,width=320,height=240,framerate=30/1 ! \
    clpitchthreshold output=frame \
    videotestsrc num-buffers=60 pattern=checkers-8 ! \
    video/x-raw,format=I420,width=320,height=240,framerate=30/1 ! mix. \
    videotestsrc num-buffers=5 pattern=white timestamp-offset=666666667 ! \
    video/x-raw,format=I420,width=6,height=4,framerate=30/1 ! mix.";

#[derive(Parser)]
#[command(about = "Records failed frames with those before and after them")]
struct Options {
    /// Folder for the recordings; created if it is missing
    #[arg(long, default_value = "failures")]
    output: PathBuf,
    /// png: a picture per frame; mkv: a film per failure
    #[arg(long, value_enum, default_value = "png")]
    format: Format,
    /// Frames kept from before a failure
    #[arg(long, default_value_t = 10)]
    before: usize,
    /// Frames recorded after the last failed one
    #[arg(long, default_value_t = 10)]
    after: usize,
    /// Pipeline as for gst-launch-1.0, without a sink
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pipeline: Vec<String>,
}

/// The latest frames, and the current recording.
struct Recorder {
    options: Options,
    before: VecDeque<gst::Sample>,
    recording: Option<Recording>,
    /// Frames still to record after the last failed one.
    left: usize,
    recordings: Vec<Recording>,
}

impl Recorder {
    fn frame(&mut self, sample: gst::Sample) -> Result<bool> {
        let buffer = sample.buffer().context("a sample without a frame")?;
        let results = DefectResult::read(buffer);
        let Some(result) = results.first() else {
            bail!(
                "a frame carries no GstClDefectMeta: put clpitchthreshold output=frame into the pipeline"
            );
        };
        let failed = results.iter().any(|result| result.verdict == Verdict::Fail);
        let number = result.frame_number;
        if failed && self.recording.is_none() {
            let first = self.options.output.join(format!("failure-{number:06}"));
            let room = self.options.before + self.options.after + 1;
            let mut recording = Recording::start(first, self.options.format, room)?;
            self.before
                .drain(..)
                .for_each(|sample| recording.add(sample, false));
            self.recording = Some(recording);
        }
        if failed {
            self.left = self.options.after + 1;
        }
        match &mut self.recording {
            Some(recording) => {
                recording.add(sample, failed);
                self.left -= 1;
                if self.left == 0 {
                    self.end_recording();
                }
            }
            None => self.keep(&sample)?,
        }
        Ok(failed)
    }

    /// Keeps a copy of a frame, in case one of the next frames fails. Not the buffer itself:
    /// cameras have few buffers and need them back.
    fn keep(&mut self, sample: &gst::Sample) -> Result<()> {
        if self.options.before == 0 {
            return Ok(());
        }
        if self.before.len() == self.options.before {
            self.before.pop_front();
        }
        let buffer = sample
            .buffer()
            .context("a sample without a frame")?
            .copy_deep()?;
        let copy = gst::Sample::builder().buffer(&buffer);
        let copy = match sample.caps() {
            Some(caps) => copy.caps(&caps.to_owned()).build(),
            None => copy.build(),
        };
        self.before.push_back(copy);
        Ok(())
    }

    fn end_recording(&mut self) {
        if let Some(mut recording) = self.recording.take() {
            recording.end();
            self.recordings.push(recording);
        }
    }
}

fn main() -> Result<()> {
    let options = Options::parse();
    gst::init()?;
    gstclinspect::register_static()?;
    std::fs::create_dir_all(&options.output)
        .with_context(|| format!("cannot create {}", options.output.display()))?;
    let line = match &options.pipeline[..] {
        [] => PATTERN.to_owned(),
        words => words.join(" "),
    };
    let frames = Frames::of(&line)?;
    let mut recorder = Recorder {
        options,
        before: VecDeque::new(),
        recording: None,
        left: 0,
        recordings: Vec::new(),
    };
    let (mut seen, mut failed) = (0_u64, 0_u64);
    while let Some(sample) = frames.next() {
        seen += 1;
        failed += u64::from(recorder.frame(sample)?);
    }
    recorder.end_recording();
    let closed = frames.close();
    for recording in recorder.recordings {
        println!("{}", recording.finish()?);
    }
    println!("{seen} frames, {failed} failed");
    closed
}
