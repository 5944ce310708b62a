//! One recording: a thread that encodes and writes frames.

use std::{
    path::PathBuf,
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread::{self, JoinHandle},
};

use anyhow::{Context, Result, anyhow, bail};
use gst::prelude::*;

/// Longest time that the last bytes may take to reach the disk.
const END_TIMEOUT: gst::ClockTime = gst::ClockTime::from_seconds(30);
/// Frames that may wait for the encoder, besides those of one failure.
const SLACK: usize = 64;

/// How frames are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A PNG picture per frame.
    Png,
    /// A Matroska film of JPEG pictures.
    Mkv,
}

impl Format {
    /// The files of a recording: of all frames, or numbered by frame.
    fn files(self, name: &std::path::Path) -> PathBuf {
        let mut files = name.to_owned().into_os_string();
        files.push(match self {
            Self::Png => "-%04d.png",
            Self::Mkv => ".mkv",
        });
        files.into()
    }

    fn writer(self) -> &'static str {
        match self {
            Self::Png => "pngenc ! multifilesink name=files",
            Self::Mkv => "jpegenc quality=95 ! matroskamux ! filesink name=files",
        }
    }
}

/// A running recording.
pub struct Recording {
    files: PathBuf,
    frames: u64,
    failed: u64,
    /// Frames left out because writing was too slow.
    dropped: u64,
    sender: Option<SyncSender<gst::Sample>>,
    writer: JoinHandle<Result<()>>,
}

impl Recording {
    /// Starts to write files of this name; up to `room` frames may wait for the disk.
    ///
    /// # Errors
    /// An element is not installed.
    pub fn start(name: PathBuf, format: Format, room: usize) -> Result<Self> {
        let files = format.files(&name);
        let line = format!(
            "appsrc name=frames format=time ! videoconvert ! {}",
            format.writer()
        );
        let pipeline = gst::parse::launch(&line)?
            .downcast::<gst::Pipeline>()
            .map_err(|_| anyhow!("no pipeline: {line}"))?;
        let sink = pipeline
            .by_name("files")
            .context("the pipeline has a sink")?;
        sink.set_property(
            "location",
            files.to_str().context("the folder's name is not UTF-8")?,
        );
        let (sender, receiver) = sync_channel(room + SLACK);
        let writer = thread::spawn(move || {
            let written = write(&pipeline, &receiver);
            pipeline.set_state(gst::State::Null)?;
            written
        });
        Ok(Self {
            files,
            frames: 0,
            failed: 0,
            dropped: 0,
            sender: Some(sender),
            writer,
        })
    }

    /// Records a frame; never waits for the disk.
    pub fn add(&mut self, sample: gst::Sample, failed: bool) {
        self.frames += 1;
        self.failed += u64::from(failed);
        let sent = self.sender.as_ref().map(|sender| sender.try_send(sample));
        if let Some(Err(TrySendError::Full(_))) = sent {
            self.dropped += 1;
        }
    }

    /// Ends the recording: no more frames come.
    pub fn end(&mut self) {
        self.sender = None;
    }

    /// Waits until everything is written; returns a line that describes the recording.
    ///
    /// # Errors
    /// The frames could not be encoded or written.
    pub fn finish(mut self) -> Result<String> {
        self.end();
        let place = self.files.display();
        match self.writer.join() {
            Ok(written) => written.with_context(|| format!("{place} was not written"))?,
            Err(_) => bail!("the thread that writes {place} ended"),
        }
        let (frames, failed) = (self.frames - self.dropped, self.failed);
        let lost = match self.dropped {
            0 => String::new(),
            n => format!(", {n} left out because the disk is slow"),
        };
        Ok(format!("{place}: {frames} frames, {failed} failed{lost}"))
    }
}

/// Writes frames until the sender is gone. Timestamps start at the first frame.
fn write(pipeline: &gst::Pipeline, samples: &Receiver<gst::Sample>) -> Result<()> {
    let appsrc = pipeline.by_name("frames").and_downcast::<gst_app::AppSrc>();
    let appsrc = appsrc.context("the pipeline has an appsrc")?;
    appsrc.set_block(true);
    pipeline.set_state(gst::State::Playing)?;
    let mut first = None;
    for sample in samples {
        let mut buffer = sample.buffer_owned().context("a sample without a frame")?;
        let pts = buffer.pts();
        first = first.or(pts);
        buffer
            .make_mut()
            .set_pts(pts.zip(first).map(|(pts, first)| pts.saturating_sub(first)));
        buffer.make_mut().set_dts(None);
        let sent = gst::Sample::builder().buffer(&buffer);
        let sent = match sample.caps() {
            Some(caps) => sent.caps(&caps.to_owned()).build(),
            None => sent.build(),
        };
        if appsrc.push_sample(&sent).is_err() {
            break;
        }
    }
    let _ = appsrc.end_of_stream();
    let kinds = [gst::MessageType::Eos, gst::MessageType::Error];
    let bus = pipeline.bus().context("a pipeline has a bus")?;
    let last = bus
        .timed_pop_filtered(END_TIMEOUT, &kinds)
        .context("the disk does not answer")?;
    match last.view() {
        gst::MessageView::Error(error) => bail!("{}", error.error().message()),
        _ => Ok(()),
    }
}
