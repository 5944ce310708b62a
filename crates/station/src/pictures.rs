//! Pictures of frames as JPEG: live ones while a page shows them, and those of failed frames.
//!
//! A thread of its own draws and encodes, so the inspection never waits for a picture. Streaming
//! threads leave frames in a bounded queue; if the queue is full, the frame gets no picture.

mod encoder;

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use gstinspectpublish::report::Report;

use crate::{
    config::{CameraConfig, Properties},
    state::{Camera, Failure},
    warning,
};
use encoder::Encoder;

/// Failed frames that wait for their pictures.
const WAITING_FAILURES: usize = 4;
/// Least time between two failed frames that get a picture.
const FAILURE_INTERVAL: Duration = Duration::from_millis(200);
/// Failed frames that are kept with their pictures.
const KEPT_FAILURES: usize = 24;
/// Width of a thumbnail, px.
const THUMBNAIL_WIDTH: i32 = 160;

/// How pictures are made.
#[derive(Debug, Clone, PartialEq)]
pub struct PictureSettings {
    overlay: Properties,
    width: i32,
    interval: Duration,
}

impl PictureSettings {
    /// What the file says.
    pub fn of(config: &CameraConfig) -> Self {
        Self {
            overlay: config.overlay.clone(),
            width: config.picture_width,
            interval: Duration::from_secs_f64(1.0 / config.live_rate),
        }
    }
}

/// A frame that waits.
struct Frame {
    buffer: gst::Buffer,
    caps: gst::Caps,
}

/// The queue between the streaming threads and the thread that encodes.
pub struct Pictures {
    camera: Arc<Camera>,
    wanted: Mutex<Wanted>,
    wake: Condvar,
}

struct Wanted {
    settings: PictureSettings,
    live: Option<Frame>,
    last_live: Option<Instant>,
    failures: VecDeque<(u64, Frame, Arc<Report>)>,
    last_failure: Option<Instant>,
    /// Whether the thread's last task was a failed frame.
    was_failure: bool,
    failed: u64,
    is_over: bool,
}

/// What the thread does next.
enum Task {
    Live(Frame),
    Failure(u64, Frame, Arc<Report>),
}

/// The thread; it ends when this is dropped.
pub struct Worker {
    pictures: Arc<Pictures>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(camera: &Arc<Camera>, settings: PictureSettings) -> std::io::Result<Self> {
        let pictures = Arc::new(Pictures::new(camera, settings));
        let mine = pictures.clone();
        let thread = std::thread::Builder::new().name(format!("{}-pictures", camera.name));
        let thread = thread.spawn(move || mine.run())?;
        Ok(Self {
            pictures,
            thread: Some(thread),
        })
    }

    /// The queue.
    pub fn pictures(&self) -> &Arc<Pictures> {
        &self.pictures
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.pictures.wanted().is_over = true;
        self.pictures.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed already.
            let _ = thread.join();
        }
    }
}

impl Pictures {
    fn new(camera: &Arc<Camera>, settings: PictureSettings) -> Self {
        Self {
            camera: camera.clone(),
            wanted: Mutex::new(Wanted {
                settings,
                live: None,
                last_live: None,
                failures: VecDeque::new(),
                last_failure: None,
                was_failure: false,
                failed: 0,
                is_over: false,
            }),
            wake: Condvar::new(),
        }
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Settings of the pictures that follow.
    pub fn set_settings(&self, settings: PictureSettings) {
        self.wanted().settings = settings;
    }

    /// Forgets the live picture that waits: its pipeline stops. Failed frames still get theirs.
    pub fn clear(&self) {
        self.wanted().live = None;
    }

    /// Takes a frame for a live picture if one is due, and a failed frame if the queue has room.
    pub fn offer(&self, buffer: &gst::Buffer, caps: &gst::Caps, report: &Arc<Report>) {
        let frame = || Frame {
            buffer: buffer.clone(),
            caps: caps.clone(),
        };
        let is_due = |last: Option<Instant>, interval| {
            last.is_none_or(|last: Instant| last.elapsed() >= interval)
        };
        let mut wanted = self.wanted();
        let mut is_taken = false;
        let is_watched = self.camera.viewers.load(Ordering::Relaxed) > 0;
        if is_watched && is_due(wanted.last_live, wanted.settings.interval) {
            wanted.live = Some(frame());
            wanted.last_live = Some(Instant::now());
            is_taken = true;
        }
        if report.verdict == "fail" {
            wanted.failed += 1;
            let has_room = wanted.failures.len() < WAITING_FAILURES;
            if has_room && is_due(wanted.last_failure, FAILURE_INTERVAL) {
                let id = wanted.failed;
                wanted.failures.push_back((id, frame(), report.clone()));
                wanted.last_failure = Some(Instant::now());
                is_taken = true;
            }
        }
        drop(wanted);
        if is_taken {
            self.wake.notify_one();
        }
    }

    /// The next task and the settings; `None` at the end. Failed and live pictures take
    /// turns, so that neither kind waits for ever if encoding is slow.
    fn next(&self) -> Option<(Task, PictureSettings)> {
        let mut wanted = self.wanted();
        loop {
            if wanted.is_over {
                return None;
            }
            let is_failures_turn = wanted.live.is_none() || !wanted.was_failure;
            let failure = is_failures_turn.then(|| wanted.failures.pop_front());
            let task = match failure.flatten() {
                Some((id, frame, report)) => Some(Task::Failure(id, frame, report)),
                None => wanted.live.take().map(Task::Live),
            };
            if let Some(task) = task {
                wanted.was_failure = matches!(task, Task::Failure(..));
                return Some((task, wanted.settings.clone()));
            }
            wanted = self
                .wake
                .wait(wanted)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn run(&self) {
        let mut large = Encoder::default();
        let mut small = Encoder::default();
        let mut last_error = None;
        while let Some((task, settings)) = self.next() {
            let done = match task {
                Task::Live(frame) => large
                    .encode(
                        &frame.buffer,
                        &frame.caps,
                        &settings.overlay,
                        settings.width,
                    )
                    .map(|picture| {
                        self.camera.live.send_replace(Some(picture));
                    }),
                Task::Failure(id, frame, report) => {
                    let picture = large.encode(
                        &frame.buffer,
                        &frame.caps,
                        &settings.overlay,
                        settings.width,
                    );
                    picture.and_then(|picture| {
                        let thumbnail = small.encode(
                            &frame.buffer,
                            &frame.caps,
                            &settings.overlay,
                            THUMBNAIL_WIDTH,
                        )?;
                        self.keep(Failure {
                            id,
                            report,
                            thumbnail,
                            picture,
                        });
                        Ok(())
                    })
                }
            };
            if let Err(error) = done
                && last_error.as_ref() != Some(&error)
            {
                warning!("camera {}: no picture: {error}", self.camera.name);
                last_error = Some(error);
            }
        }
    }

    fn keep(&self, failure: Failure) {
        let mut history = self.camera.history();
        history.failures.push_back(Arc::new(failure));
        while history.failures.len() > KEPT_FAILURES {
            history.failures.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use gstinspectpublish::report::VERSION;

    use super::*;

    fn pictures() -> Pictures {
        gst::init().unwrap_or_else(|error| eprintln!("{error}"));
        let camera = Arc::new(Camera::new("left").0);
        camera.viewers.store(1, Ordering::Relaxed);
        let settings = PictureSettings {
            overlay: Properties::default(),
            width: 64,
            interval: Duration::ZERO,
        };
        Pictures::new(&camera, settings)
    }

    fn offer(pictures: &Pictures, verdict: &'static str) {
        let report = Report {
            version: VERSION,
            camera: None,
            frame: 1,
            time: String::new(),
            verdict,
            inspections: Vec::new(),
            histograms: Vec::new(),
        };
        // A failed frame is due again.
        pictures.wanted().last_failure = None;
        pictures.offer(
            &gst::Buffer::new(),
            &gst::Caps::new_any(),
            &Arc::new(report),
        );
    }

    #[test]
    fn live_and_failed_pictures_take_turns_when_encoding_is_slow() {
        let pictures = pictures();
        let order = (0..6).map(|_| {
            // While a picture is encoded, more frames come and fail.
            offer(&pictures, "fail");
            offer(&pictures, "pass");
            match pictures.next() {
                Some((Task::Failure(id, ..), _)) => id,
                _ => 0,
            }
        });
        assert_eq!(Vec::from_iter(order), [1, 0, 2, 0, 3, 0]);
    }

    #[test]
    fn failed_frames_of_an_ended_pipeline_still_get_their_pictures() {
        let pictures = pictures();
        offer(&pictures, "fail");
        offer(&pictures, "fail");
        pictures.clear();
        let wanted = pictures.wanted();
        assert_eq!(wanted.failures.len(), 2);
        assert!(wanted.live.is_none(), "a live picture of no pipeline");
    }
}
