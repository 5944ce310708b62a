//! A feed of pictures and videos, decoded one after the other.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gst::prelude::*;

use crate::feed::Feed;

/// Longest that decoding one frame may take.
const DECODE_TIMEOUT: Duration = Duration::from_secs(30);
const POLL: gst::ClockTime = gst::ClockTime::from_mseconds(20);

/// Sends every frame of every file.
pub struct FileFeed {
    files: VecDeque<PathBuf>,
    caps: gst::Caps,
    open: Option<Decoder>,
}

impl FileFeed {
    /// A feed of these files in `caps`.
    pub fn new(files: &[PathBuf], caps: &gst::Caps) -> Self {
        Self {
            files: files.iter().cloned().collect(),
            caps: caps.clone(),
            open: None,
        }
    }

    fn decoded(&mut self) -> Result<Option<gst::Sample>, String> {
        loop {
            if let Some(decoder) = &self.open {
                if let Some(sample) = decoder.next()? {
                    return Ok(Some(sample));
                }
                self.open = None;
            }
            match self.files.pop_front() {
                Some(file) => self.open = Some(Decoder::open(&file, &self.caps)?),
                None => return Ok(None),
            }
        }
    }
}

impl Feed for FileFeed {
    fn caps(&self) -> Option<gst::Caps> {
        None
    }

    fn next(
        &mut self,
        _index: u64,
        _pool: Option<&gst::BufferPool>,
    ) -> Result<Option<(gst::Buffer, gst::Caps)>, String> {
        let Some(sample) = self.decoded()? else {
            return Ok(None);
        };
        sample
            .buffer_owned()
            .zip(sample.caps_owned())
            .map(Some)
            .ok_or_else(|| "a decoder sent a frame without data or caps".into())
    }
}

/// A pipeline that decodes one file.
struct Decoder {
    pipeline: gst::Pipeline,
    sink: gst_app::AppSink,
    file: PathBuf,
}

impl Decoder {
    fn open(file: &Path, caps: &gst::Caps) -> Result<Self, String> {
        let cannot = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
        let pipeline = gst::parse::launch(
            "filesrc name=file ! decodebin ! videoconvert ! appsink name=sink sync=false max-buffers=2",
        )
        .map_err(|error| cannot(&error.message()))?
        .downcast::<gst::Pipeline>()
        .map_err(|_| cannot(&"no pipeline"))?;
        let source = pipeline
            .by_name("file")
            .ok_or_else(|| cannot(&"no filesrc"))?;
        source.set_property("location", file);
        let sink = pipeline
            .by_name("sink")
            .and_then(|sink| sink.downcast::<gst_app::AppSink>().ok())
            .ok_or_else(|| cannot(&"no appsink"))?;
        sink.set_caps(Some(caps));
        let decoder = Self {
            pipeline,
            sink,
            file: file.to_owned(),
        };
        if decoder.pipeline.set_state(gst::State::Playing).is_err() {
            return Err(decoder
                .error()
                .unwrap_or_else(|| cannot(&"it does not open")));
        }
        Ok(decoder)
    }

    /// The next frame; `None` after the last one.
    fn next(&self) -> Result<Option<gst::Sample>, String> {
        let started = Instant::now();
        while started.elapsed() < DECODE_TIMEOUT {
            if let Some(sample) = self.sink.try_pull_sample(POLL) {
                return Ok(Some(sample));
            }
            if self.sink.is_eos() {
                return Ok(None);
            }
            // No end of stream comes for a file that cannot be decoded.
            if let Some(why) = self.error() {
                return Err(why);
            }
        }
        Err(format!("{}: decoding takes too long", self.file.display()))
    }

    fn error(&self) -> Option<String> {
        let message = self
            .pipeline
            .bus()?
            .pop_filtered(&[gst::MessageType::Error])?;
        match message.view() {
            gst::MessageView::Error(error) => Some(format!(
                "{}: {}",
                self.file.display(),
                error.error().message()
            )),
            _ => None,
        }
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // The program goes on with the next file even if stopping fails.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}
