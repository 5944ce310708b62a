//! The sinks of a pipeline, which compare each frame with the expected one.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, mpsc},
    thread::{self, JoinHandle},
};

use gst::prelude::*;

use crate::{fingerprint::Fingerprint, plan::Reads, watch};

/// Frames that wait for a thread that reads later.
const WAITING: usize = 4;
/// Failures of a sink that are told.
const TOLD: usize = 3;

/// The frames of a path by their keys.
pub type Expected = BTreeMap<u64, Fingerprint>;

/// What tells frames apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The timestamp, ns.
    Time,
    /// The offset: the source's number of the frame. The timestamps of a live source depend on its start.
    Number,
}

impl Key {
    fn of(self, buffer: &gst::Buffer) -> Option<u64> {
        match self {
            Self::Time => buffer.pts().map(gst::ClockTime::nseconds),
            Self::Number => Some(buffer.offset()),
        }
    }

    /// Where a seek finds the frame.
    fn time(self, buffer: &gst::Buffer) -> Option<gst::ClockTime> {
        match self {
            Self::Time => buffer.pts(),
            Self::Number => Some(buffer.duration()? * buffer.offset()),
        }
    }
}

/// What arrived at a sink.
#[derive(Debug, Default)]
pub struct Arrived {
    /// In the order in which frames arrived.
    pub keys: Vec<u64>,
    /// Where a seek finds them.
    pub times: Vec<gst::ClockTime>,
    /// Frames of which nothing was expected.
    pub frames: Expected,
    pub failures: Vec<String>,
}

/// A sink that checks frames.
pub struct CheckingSink {
    pub name: String,
    pub arrived: Arc<Mutex<Arrived>>,
    /// What may arrive; `None` while that is not known yet.
    pub expected: Option<Arc<Expected>>,
    reader: Option<JoinHandle<()>>,
}

impl CheckingSink {
    /// Watches the sink of this name.
    pub fn new(
        pipeline: &gst::Pipeline,
        name: &str,
        reads: Reads,
        key: Key,
        expected: Option<Arc<Expected>>,
    ) -> Self {
        let arrived = Arc::<Mutex<Arrived>>::default();
        let check = {
            let (arrived, expected) = (arrived.clone(), expected.clone());
            move |buffer: &gst::Buffer, caps: &gst::Caps| {
                let found = Fingerprint::of(buffer, caps, reads != Reads::Never);
                let mut arrived = arrived.lock().unwrap();
                arrived.check(key.of(buffer), found, expected.as_deref());
            }
        };
        let pad = pipeline.by_name(name).unwrap().static_pad("sink").unwrap();
        let (sender, receiver) = mpsc::sync_channel::<(gst::Buffer, gst::Caps)>(WAITING);
        let later = check.clone();
        let reader = (reads == Reads::Later).then(|| {
            thread::spawn(move || {
                receiver
                    .iter()
                    .for_each(|(buffer, caps)| later(&buffer, &caps))
            })
        });
        let count = arrived.clone();
        pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
            watch::moved();
            let (Some(buffer), Some(caps)) = (info.buffer().cloned(), pad.current_caps()) else {
                return gst::PadProbeReturn::Ok;
            };
            let mut arrived = count.lock().unwrap();
            arrived.keys.extend(key.of(&buffer));
            arrived.times.extend(key.time(&buffer));
            drop(arrived);
            match reads {
                Reads::Later => sender.send((buffer, caps)).unwrap(),
                Reads::AtOnce | Reads::Never => check(&buffer, &caps),
            }
            gst::PadProbeReturn::Ok
        });
        Self {
            name: name.to_owned(),
            arrived,
            expected,
            reader,
        }
    }

    /// Number of frames so far.
    pub fn count(&self) -> usize {
        self.arrived.lock().unwrap().keys.len()
    }

    /// Waits until every frame was read; the pipeline is gone.
    pub fn finish(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
    }

    /// What is wrong with what arrived. If `complete`, no frame may be missing; if `in_order`, timestamps must rise.
    pub fn failure(&self, complete: bool, in_order: bool) -> Option<String> {
        let arrived = self.arrived.lock().unwrap();
        let expected = self.expected.as_deref()?;
        let missing = || expected.len() - arrived.keys.len().min(expected.len());
        let why = if !arrived.failures.is_empty() {
            arrived.failures.join(", ")
        } else if in_order && !arrived.keys.is_sorted_by(|a, b| a < b) {
            "frames came twice or out of order".into()
        } else if complete && arrived.keys.len() != expected.len() {
            format!("{} of {} frames are missing", missing(), expected.len())
        } else {
            return None;
        };
        Some(format!("{}: {why}", self.name))
    }
}

impl Arrived {
    fn check(
        &mut self,
        key: Option<u64>,
        found: Result<Fingerprint, String>,
        expected: Option<&Expected>,
    ) {
        let failure = match (key, found) {
            (None, _) => Some("a frame without timestamp".into()),
            (Some(key), Err(why)) => Some(format!("frame {key} cannot be read: {why}")),
            (Some(key), Ok(found)) => match expected.map(|expected| expected.get(&key)) {
                Some(None) => Some(format!("no frame {key} is expected")),
                Some(Some(expected)) => found
                    .difference(expected)
                    .map(|how| format!("frame {key} has {how}")),
                None => {
                    self.frames.insert(key, found);
                    None
                }
            },
        };
        if self.failures.len() < TOLD {
            self.failures.extend(failure);
        }
    }
}
