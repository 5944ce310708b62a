//! Records the failed frames of a camera, and frames before and after them: a PNG with the pixels
//! and a JSON file with the results, in a folder of bounded size.
//!
//! The streaming thread copies a frame and goes on. A thread of the recorder compresses and writes.

mod folder;
mod link;
mod png_text;
mod queue;
mod writer;

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering::Relaxed},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use gstinspectpublish::report::Report;

use crate::{clock::Clock, frame::Frame, state::Camera};
pub use folder::Role;
pub(crate) use folder::{Named, base_name, name_of_png, png_file, replace, verdict_file};
use link::Link;
use queue::{Job, Queue};
use writer::Writer;

/// Maximum of [`Settings::before`] and [`Settings::after`].
pub const MOST_AROUND: u32 = 50;
/// Frames that wait to be written. All frames before a failure fit.
const QUEUE_FRAMES: usize = 128;
/// Their bytes.
const QUEUE_BYTES: usize = 256 << 20;
/// Bytes of the frames that are kept in case that the next one fails.
const BEFORE_BYTES: usize = 128 << 20;
/// Time between two attempts after the folder or the disk refused a recording.
const RETRY: Duration = Duration::from_secs(60);
/// How long the end of a recorder waits for the frames in its queue to be written.
const END_LIMIT: Duration = Duration::from_secs(5);

/// What is recorded, and how much of it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The folder. It is made if it is missing and its parent exists.
    pub folder: PathBuf,
    /// Frames before a failed one that are recorded too, at most 50.
    pub before: u32,
    /// Frames after a failed one that are recorded too, at most 50.
    pub after: u32,
    /// Recordings that are kept; 0: no limit.
    pub max_count: u64,
    /// Hours that recordings are kept; 0: no limit.
    pub max_age_hours: u32,
    /// Bytes of the recordings that are kept; 0: no limit.
    pub max_bytes: u64,
}

impl Settings {
    /// Recordings in this folder, with the defaults.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            before: 0,
            after: 0,
            max_count: 10_000,
            max_age_hours: 0,
            max_bytes: 10_000_000_000,
        }
    }

    /// # Errors
    /// A sentence that names the mistake.
    pub fn check(&self) -> Result<(), String> {
        if self.folder.as_os_str().is_empty() {
            return Err("folder is empty; set the folder for the recordings".into());
        }
        for (name, value) in [("before", self.before), ("after", self.after)] {
            if value > MOST_AROUND {
                return Err(format!(
                    "{name} = {value} is too large; set a number from 0 to {MOST_AROUND}"
                ));
            }
        }
        Ok(())
    }
}

/// Records the failed frames of one camera.
pub struct Recorder {
    settings: Settings,
    camera: Arc<Camera>,
    link: Arc<Link>,
    around: Mutex<Around>,
    queue: Arc<Queue>,
    writer: Option<JoinHandle<()>>,
}

/// The frames around a failed one.
#[derive(Default)]
struct Around {
    /// The last frames, which are not recorded yet.
    before: VecDeque<Job>,
    /// Their bytes.
    bytes: usize,
    /// Frames that are still to be recorded after the last failed one.
    after: u32,
    /// Whether an alarm says that this format cannot be recorded.
    is_refusal_raised: bool,
}

impl Recorder {
    /// Starts the thread that writes. It removes what a crash left in the folder, and recordings
    /// beyond the limits. A missing folder is no error here: the thread raises an alarm, and tries
    /// again each minute.
    ///
    /// # Errors
    /// A sentence if the settings or the camera's name cannot be used.
    pub fn new(settings: Settings, camera: Arc<Camera>) -> anyhow::Result<Self> {
        Self::with_retry(settings, camera, RETRY)
    }

    /// Like [`Recorder::new`], with another time between two attempts.
    ///
    /// # Errors
    /// A sentence if the settings or the camera's name cannot be used.
    pub fn with_retry(
        settings: Settings,
        camera: Arc<Camera>,
        retry: Duration,
    ) -> anyhow::Result<Self> {
        settings.check().map_err(anyhow::Error::msg)?;
        ensure!(
            folder::is_camera_name(&camera.name),
            "the camera's name {:?} cannot be part of a file name; use letters, digits, - and _",
            camera.name
        );
        let link = Arc::new(Link::new(camera.clone()));
        let queue = Arc::new(Queue::new(link.clone(), QUEUE_FRAMES, QUEUE_BYTES));
        let name = &camera.name;
        let clock = Clock::of_the_station();
        let writer = Writer::new(&settings, name, link.clone(), queue.clone(), retry, clock);
        let thread = std::thread::Builder::new()
            .name("recording".into())
            .spawn(move || writer.run())
            .context("cannot start the thread that records frames")?;
        Ok(Self {
            settings,
            camera,
            link,
            around: Mutex::default(),
            queue,
            writer: Some(thread),
        })
    }

    /// What it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Takes notice of a frame, in the order of the stream. The frame is copied if it is recorded, or
    /// if frames before a failed one are.
    ///
    /// It is a copy because the memory of most cameras is a pool of few buffers: a reference to
    /// a frame that waits here would be missing there, and the camera would lose frames.
    ///
    /// The planes must lie in the buffer, as they do after an element that inspects.
    pub fn frame(&self, buffer: &gst::Buffer, info: &gst_video::VideoInfo, report: &Arc<Report>) {
        let mut around = self.around.lock().unwrap_or_else(PoisonError::into_inner);
        let is_failed = report.verdict == "fail";
        let is_recorded = is_failed || around.after > 0;
        if self.link.is_stopped() {
            around.forget();
            self.camera
                .counters
                .recording_errors
                .fetch_add(is_recorded.into(), Relaxed);
            around.after = self.after(is_failed, around.after);
            return;
        }
        if !is_recorded && self.settings.before == 0 {
            return;
        }
        around.after = self.after(is_failed, around.after);
        let snapshot = match Frame::copy_of(buffer, info) {
            Ok(snapshot) => snapshot,
            Err(why) => {
                self.camera.counters.recording_errors.fetch_add(1, Relaxed);
                if !std::mem::replace(&mut around.is_refusal_raised, true) {
                    (self.camera).alarm(format!("frames cannot be recorded: {why}"));
                }
                return;
            }
        };
        let job = Job {
            snapshot,
            report: report.clone(),
            results: report.memory(),
            role: if is_failed {
                Role::Failed
            } else {
                Role::Context
            },
        };
        if !is_recorded {
            around.keep(job, self.settings.before as usize);
            return;
        }
        if is_failed {
            around.bytes = 0;
            for earlier in around.before.drain(..) {
                self.send(earlier);
            }
        }
        self.send(job);
    }

    /// Frames that are still to be recorded after this one.
    fn after(&self, is_failed: bool, after: u32) -> u32 {
        if is_failed {
            self.settings.after
        } else {
            after.saturating_sub(1)
        }
    }

    fn send(&self, job: Job) {
        let dropped = self.queue.push(job) as u64;
        let counters = &self.camera.counters;
        counters.recording_dropped.fetch_add(dropped, Relaxed);
    }
}

impl Around {
    /// Keeps a frame in case that a later one fails, and forgets the oldest beyond `most`.
    fn keep(&mut self, job: Job, most: usize) {
        self.bytes += job.bytes();
        self.before.push_back(job);
        while self.before.len() > most || (self.bytes > BEFORE_BYTES && self.before.len() > 1) {
            if let Some(oldest) = self.before.pop_front() {
                self.bytes -= oldest.bytes();
            }
        }
    }

    fn forget(&mut self) {
        self.before.clear();
        self.bytes = 0;
    }
}

impl Drop for Recorder {
    /// Waits for the frames in the queue, but not longer than 5 s: a disk or a network
    /// that hangs must not hold the station. The writer then ends alone.
    fn drop(&mut self) {
        self.queue.close();
        let Some(writer) = self.writer.take() else {
            return;
        };
        let end = Instant::now() + END_LIMIT;
        while !writer.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
        if writer.is_finished() {
            // A panic there was printed already.
            let _ = writer.join();
        }
        self.link.cut();
    }
}
