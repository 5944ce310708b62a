//! Records the failed frames of a camera, and frames before and after them: a PNG with the pixels
//! and a JSON file with the results, in a folder of bounded size.
//!
//! The streaming thread copies a frame and goes on. A thread of the recorder compresses and writes.

mod folder;
mod link;
mod queue;
mod writer;

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Context, ensure};
use clinspect_results::report::Report;
use machine::{clock::Clock, locks::Mutex, worker::Worker};
use plan::RecordingSettings;

use crate::{
    bounded::{Bounds, keep_newest},
    frame::Frame,
    state::Camera,
};
pub(crate) use folder::{RecordingName, name_of_png, png_file, replace, verdict_file};
pub use folder::{Role, base_name};
use link::Link;
use queue::{Job, Queue};
use writer::Writer;

/// Frames that wait to be written. All frames before a failure fit.
const QUEUE: Bounds = Bounds {
    count: 128,
    bytes: 256 << 20,
};
/// Bytes of the frames that are kept in case that the next one fails.
const BEFORE_BYTES: usize = 128 << 20;
/// Time between two attempts after the folder or the disk refused a recording.
const RETRY: Duration = Duration::from_secs(60);
/// How long the end of a recorder waits for the frames in its queue to be written.
const END_LIMIT: Duration = Duration::from_secs(5);

/// Records the failed frames of one camera.
pub struct Recorder {
    settings: RecordingSettings,
    camera: Arc<Camera>,
    link: Arc<Link>,
    around: Mutex<FrameContext>,
    queue: Arc<Queue>,
    writer: Worker,
}

/// The frames around a failed one.
#[derive(Default)]
struct FrameContext {
    /// The last frames, which are not recorded yet.
    before: VecDeque<Job>,
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
    pub fn new(settings: RecordingSettings, camera: Arc<Camera>) -> anyhow::Result<Self> {
        Self::with_retry(settings, camera, RETRY)
    }

    /// Like [`Recorder::new`], with another time between two attempts.
    ///
    /// # Errors
    /// A sentence if the settings or the camera's name cannot be used.
    pub fn with_retry(
        settings: RecordingSettings,
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
        let queue = Arc::new(Queue::new(link.clone(), QUEUE));
        let name = &camera.name;
        let clock = Clock::of_the_station();
        let writer = Writer::new(&settings, name, link.clone(), queue.clone(), retry, clock);
        let thread = Worker::start("recording", move || writer.run())
            .context("cannot start the thread that records frames")?;
        Ok(Self {
            settings,
            camera,
            link,
            around: Mutex::default(),
            queue,
            writer: thread.with_limit(END_LIMIT),
        })
    }

    /// What it was made with.
    pub fn settings(&self) -> &RecordingSettings {
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
        let mut around = self.around.lock();
        let is_failed = report.verdict == "fail";
        let is_recorded = is_failed || around.after > 0;
        if self.link.is_stopped() {
            around.before.clear();
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
            around.before.push_back(job);
            let most = Bounds {
                count: self.settings.before as usize,
                bytes: BEFORE_BYTES,
            };
            keep_newest(&mut around.before, most, Job::bytes);
            return;
        }
        if is_failed {
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

impl Drop for Recorder {
    /// Waits for the frames in the queue, but not longer than 5 s: a disk or a network
    /// that hangs must not hold the station. The writer then ends alone.
    fn drop(&mut self) {
        self.queue.close();
        self.writer.join();
        self.link.cut();
    }
}
