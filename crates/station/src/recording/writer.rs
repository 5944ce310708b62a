//! The thread that compresses frames and writes them.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Settings,
    folder::{Folder, Limits, Refusal, base_name},
    link::Link,
    queue::{Job, Next, Queue},
};
use crate::{clock, warning};

/// Interval between two checks for recordings that are too old.
const TIDY: Duration = Duration::from_secs(60);

/// The thread's state.
pub(super) struct Writer {
    settings: Settings,
    camera: String,
    link: Arc<Link>,
    queue: Arc<Queue>,
    retry: Duration,
    /// `None` while recording is stopped.
    folder: Option<Folder>,
    /// Whether the last alarm said that recording is stopped.
    is_alarm_raised: bool,
    is_clock_alarm_raised: bool,
    /// The last refusal of a frame: an alarm is raised for each new one.
    refusal: Option<String>,
}

impl Writer {
    pub fn new(
        settings: &Settings,
        camera: &str,
        link: Arc<Link>,
        queue: Arc<Queue>,
        retry: Duration,
    ) -> Self {
        Self {
            settings: settings.clone(),
            camera: camera.into(),
            link,
            queue,
            retry,
            folder: None,
            is_alarm_raised: false,
            is_clock_alarm_raised: false,
            refusal: None,
        }
    }

    /// Writes until the queue is closed and empty.
    pub fn run(mut self) {
        self.open();
        let mut next = self.next_check();
        loop {
            match self.queue.pop(next) {
                Next::Job(job) => self.record(&job),
                Next::Timeout => {}
                Next::Closed => return,
            }
            // Recordings may come without a break.
            if Instant::now() >= next {
                let is_clock_wrong = self.is_clock_wrong();
                match &mut self.folder {
                    Some(_) if is_clock_wrong => {}
                    Some(folder) => {
                        if let Err(error) = folder.expire() {
                            self.stop(&error);
                        }
                    }
                    None => self.open(),
                }
                next = self.next_check();
            } else if self.folder.is_none() {
                next = next.min(self.next_check());
            }
        }
    }

    fn next_check(&self) -> Instant {
        Instant::now()
            + if self.folder.is_some() {
                TIDY
            } else {
                self.retry
            }
    }

    /// Whether the wall clock was set: then the ages of the recordings are wrong, and none expires.
    fn is_clock_wrong(&mut self) -> bool {
        let is_wrong = self.settings.max_age_hours != 0 && clock::has_jumped();
        if is_wrong && !self.is_clock_alarm_raised {
            self.alarm(
                "the PC's clock was set: no recording is removed for its age; check the clock, and \
                 restart the station"
                    .into(),
            );
        }
        self.is_clock_alarm_raised = is_wrong;
        is_wrong
    }

    fn open(&mut self) {
        let hours = if self.is_clock_wrong() {
            0
        } else {
            self.settings.max_age_hours
        };
        let limits = Limits {
            count: self.settings.max_count,
            age: Duration::from_secs(3600 * u64::from(hours)),
            bytes: self.settings.max_bytes,
        };
        match Folder::open(&self.settings.folder, &self.camera, limits) {
            Ok(folder) => {
                self.folder = Some(folder);
                self.link.set_stopped(false);
            }
            Err(error) => self.stop(&error),
        }
    }

    fn record(&mut self, job: &Job) {
        let Some(folder) = &mut self.folder else {
            self.link.count(|of| &of.recording_errors, 1);
            return;
        };
        let name = base_name(&self.camera, &job.report.time, job.report.frame, job.role);
        let stored = files(job).and_then(|[png, json]| folder.store(&name, &png, &json));
        match stored {
            Ok(()) => {
                self.link.count(|of| &of.recorded, 1);
                self.refusal = None;
                if std::mem::take(&mut self.is_alarm_raised) {
                    self.alarm("recording continues".into());
                }
            }
            Err(Refusal::Frame(why)) => {
                self.link.count(|of| &of.recording_errors, 1);
                if self.refusal.as_ref() != Some(&why) {
                    self.alarm(format!("a frame was not recorded: {why}"));
                    self.refusal = Some(why);
                }
            }
            Err(Refusal::Disk(error)) => {
                self.link.count(|of| &of.recording_errors, 1);
                self.stop(&error);
            }
        }
    }

    /// The folder or the disk refuses: waiting frames are lost, and the writer tries again later.
    fn stop(&mut self, error: &io::Error) {
        self.folder = None;
        self.link.set_stopped(true);
        let lost = self.queue.clear();
        self.link.count(|of| &of.recording_errors, lost);
        if !std::mem::replace(&mut self.is_alarm_raised, true) {
            let folder = self.settings.folder.display();
            let advice = match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space",
                io::ErrorKind::NotFound => "make the folder",
                _ => "check the folder and its disk",
            };
            let text = format!(
                "recording stopped: the folder {folder} refuses files: {error}; {advice}. Failed \
                 frames are not recorded; the station tries again every {} s",
                self.retry.as_secs()
            );
            self.alarm(text);
        }
    }

    /// An alarm of the camera. Of a writer that outlasts its recorder it is a line of the log only: the
    /// camera shows the next recorder.
    fn alarm(&self, text: String) {
        match self.link.camera() {
            Some(camera) => camera.alarm(text),
            None => warning!(
                "camera {}: recording before the last change: {text}",
                self.camera
            ),
        }
    }
}

/// The PNG and the JSON file of a frame.
fn files(job: &Job) -> Result<[Vec<u8>; 2], Refusal> {
    let png = job.snapshot.png().map_err(Refusal::Frame)?;
    let mut json = serde_json::to_vec(&*job.report)
        .map_err(|error| Refusal::Frame(format!("its results have no JSON form: {error}")))?;
    json.push(b'\n');
    Ok([png, json])
}
