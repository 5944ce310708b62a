//! The thread that compresses frames and writes them.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use machine::{clock::Clock, warning};
use plan::RecordingSettings;

use super::{
    folder::{Folder, Limits, Refusal, base_name},
    link::Link,
    queue::{Job, Queue, QueueEvent},
};

/// Interval between two checks for recordings that are too old.
const TIDY: Duration = Duration::from_secs(60);
/// Alarms about the PC's clock.
const CLOCK_WAS_SET: &str = "the PC's clock was set: no recording is removed for its age; check the clock, and restart the \
                             station";
const CLOCK_IS_BEHIND: &str = "a recording is newer than the PC's clock: no recording is removed for its age; check the \
                               clock. If the clock is right, remove the recordings of later dates, and restart the station";
const CLOCK_IS_RIGHT: &str = "the PC's clock is right again: recordings are removed for their age";

/// The thread's state.
pub(super) struct Writer {
    settings: RecordingSettings,
    camera: String,
    link: Arc<Link>,
    queue: Arc<Queue>,
    retry: Duration,
    clock: Clock,
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
        settings: &RecordingSettings,
        camera: &str,
        link: Arc<Link>,
        queue: Arc<Queue>,
        retry: Duration,
        clock: Clock,
    ) -> Self {
        Self {
            settings: settings.clone(),
            camera: camera.into(),
            link,
            queue,
            retry,
            clock,
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
                QueueEvent::Job(job) => self.record(&job),
                QueueEvent::Timeout => {}
                QueueEvent::Closed => return,
            }
            // Recordings may come without a break.
            if Instant::now() >= next {
                self.check();
                next = self.next_check();
            } else if self.folder.is_none() {
                next = next.min(self.next_check());
            }
        }
    }

    /// Removes recordings beyond the limits, or tries again to open the folder.
    fn check(&mut self) {
        match self.folder.as_mut().map(Folder::tidy) {
            Some(Ok(())) => self.expire(),
            Some(Err(error)) => self.stop(&error),
            None => self.open(),
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

    /// Removes recordings that are too old, unless the PC's clock is wrong: all ages are wrong then.
    fn expire(&mut self) {
        let Some(folder) = &mut self.folder else {
            return;
        };
        if self.settings.max_age_hours == 0 {
            return;
        }
        let trouble = if self.clock.has_jumped() {
            Some(CLOCK_WAS_SET)
        } else if folder.newest().is_some_and(|at| self.clock.is_behind(at)) {
            Some(CLOCK_IS_BEHIND)
        } else {
            None
        };
        let expired = match trouble {
            Some(_) => Ok(()),
            None => folder.expire(self.clock.even()),
        };
        let was_wrong = std::mem::replace(&mut self.is_clock_alarm_raised, trouble.is_some());
        match trouble {
            Some(trouble) if !was_wrong => self.alarm(trouble.into()),
            None if was_wrong => self.alarm(CLOCK_IS_RIGHT.into()),
            _ => {}
        }
        if let Err(error) = expired {
            self.stop(&error);
        }
    }

    fn open(&mut self) {
        let limits = Limits {
            count: self.settings.max_count,
            age: Duration::from_secs(3600 * u64::from(self.settings.max_age_hours)),
            bytes: self.settings.max_bytes,
        };
        match Folder::open(&self.settings.folder, &self.camera, limits) {
            Ok(folder) => {
                self.folder = Some(folder);
                self.link.set_stopped(false);
                self.expire();
            }
            Err(error) => self.stop(&error),
        }
    }

    fn record(&mut self, job: &Job) {
        let Some(folder) = &mut self.folder else {
            self.link.count(|of| &of.recording_errors, 1);
            return;
        };
        // Only frames with results are recorded.
        let frame = job.report.frame.unwrap_or_default();
        let name = base_name(&self.camera, &job.report.time, frame, job.role);
        let written = self.clock.even();
        let stored = files(job).and_then(|[png, json]| folder.store(&name, &png, &json, written));
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
    let mut texts = Vec::new();
    if let Some(recipe) = &job.report.recipe {
        texts.push(("recipe", recipe.to_string()));
    }
    if let Some(outcome) = &job.report.outcome {
        texts.push(("number", outcome.to_string()));
        texts.push(("outcome", outcome.outcome.to_owned()));
    }
    let png = job.snapshot.png(&texts).map_err(Refusal::Frame)?;
    let mut json = serde_json::to_vec(&*job.report)
        .map_err(|error| Refusal::Frame(format!("its results have no JSON form: {error}")))?;
    json.push(b'\n');
    Ok([png, json])
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::{Path, PathBuf},
        sync::Mutex,
        time::SystemTime,
    };

    use super::*;
    use crate::{bounded::Bounds, frame::Frame, recording::folder::Role, state::Camera};
    use clinspect_results::report::Report;
    use machine::clock::Moment;

    const HOUR: Duration = Duration::from_secs(3600);

    /// A writer whose thread does not run, with a clock that the test sets.
    struct Bench {
        folder: PathBuf,
        camera: Arc<Camera>,
        moment: Arc<Mutex<Moment>>,
        writer: Writer,
        frames: u64,
    }

    impl Bench {
        fn new(folder: &Path, moment: Moment) -> Self {
            let camera =
                Arc::new(Camera::new("left", &machine::answer::Line::new().expect("a line")).0);
            let settings = RecordingSettings {
                max_age_hours: 48,
                ..RecordingSettings::new(folder.into())
            };
            let link = Arc::new(Link::new(camera.clone()));
            let queue = Arc::new(Queue::new(link.clone(), Bounds { count: 1, bytes: 1 }));
            let moment = Arc::new(Mutex::new(moment));
            let shown = moment.clone();
            let clock = Clock::shown(move || *shown.lock().expect("a moment"));
            let mut writer = Writer::new(&settings, "left", link, queue, HOUR, clock);
            writer.open();
            let mut bench = Self {
                folder: folder.into(),
                camera,
                moment,
                writer,
                frames: 0,
            };
            // A name that repeats would replace a recording.
            bench.frames = bench.recordings() as u64;
            bench
        }

        /// Time passes; then the writer checks the folder.
        fn pass(&mut self, passed: Duration) {
            let mut moment = self.moment.lock().expect("a moment");
            moment.wall += passed;
            moment.running += passed;
            drop(moment);
            self.writer.check();
        }

        fn set_clock(&self, change: impl Fn(SystemTime) -> SystemTime) {
            let mut moment = self.moment.lock().expect("a moment");
            moment.wall = change(moment.wall);
        }

        fn record(&mut self) {
            gst::init().expect("GStreamer");
            let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, 4, 4).build();
            let info = info.expect("caps");
            let buffer = gst::Buffer::with_size(info.size()).expect("memory");
            let report = Arc::new(Report {
                frame: Some(self.frames),
                ..Report::empty("fail", String::new())
            });
            self.frames += 1;
            self.writer.record(&Job {
                snapshot: Frame::copy_of(&buffer, &info).expect("a copy"),
                results: report.memory(),
                report,
                role: Role::Failed,
            });
        }

        fn recordings(&self) -> usize {
            fs::read_dir(&self.folder).expect("the folder").count() / 2
        }

        /// Texts of the alarms, from the oldest on.
        fn alarms(&self) -> Vec<String> {
            let history = self.camera.history();
            let texts = history.alarms.iter().map(|(_, text)| text.clone());
            texts.collect()
        }
    }

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("clinspect-{name}-{}", std::process::id()))
    }

    #[test]
    fn nothing_expires_while_the_clock_is_wrong_and_the_limit_holds_again_afterwards() {
        for ahead in [true, false] {
            let path = folder("clock-set");
            let mut bench = Bench::new(&path, Moment::now());
            bench.record();
            bench.pass(47 * HOUR);
            assert_eq!((bench.recordings(), bench.alarms().len()), (1, 0));

            let year = 365 * 24 * HOUR;
            bench.set_clock(|wall| if ahead { wall + year } else { wall - year });
            bench.pass(HOUR / 60);
            bench.record();
            bench.pass(2 * HOUR);
            assert_eq!(bench.recordings(), 2);
            assert_eq!(bench.alarms(), [CLOCK_WAS_SET]);

            bench.set_clock(|wall| if ahead { wall - year } else { wall + year });
            bench.pass(HOUR / 60);
            assert_eq!(bench.recordings(), 1, "the first is older than 48 h");
            assert_eq!(bench.alarms(), [CLOCK_WAS_SET, CLOCK_IS_RIGHT]);
            bench.pass(48 * HOUR);
            assert_eq!((bench.recordings(), bench.alarms().len()), (0, 2));
            fs::remove_dir_all(&path).expect("removed");
        }
    }

    #[test]
    fn the_limit_holds_after_a_start_of_the_writer_with_a_wrong_clock() {
        let path = folder("clock-open");
        let mut bench = Bench::new(&path, Moment::now());
        bench.record();
        bench.pass(47 * HOUR);
        bench.set_clock(|wall| wall + 1000 * HOUR);
        // As after a disk that refused a file.
        bench.writer.folder = None;
        bench.pass(2 * HOUR);
        assert_eq!(bench.recordings(), 1);
        bench.set_clock(|wall| wall - 1000 * HOUR);
        bench.pass(HOUR);
        assert_eq!(bench.recordings(), 0);
        fs::remove_dir_all(&path).expect("removed");
    }

    #[test]
    fn nothing_expires_while_the_newest_recording_lies_in_the_future() {
        let path = folder("clock-behind");
        let start = Moment::now();
        let mut bench = Bench::new(&path, start);
        bench.record();
        bench.record();
        drop(bench);
        let files = fs::read_dir(&path).expect("the folder");
        for file in files.map(|file| file.expect("a file")) {
            let is_first = file.file_name().to_string_lossy().contains("_0000000000_");
            let written = if is_first {
                start.wall - 100 * HOUR
            } else {
                start.wall + 100 * HOUR
            };
            let file = fs::File::options().write(true).open(file.path());
            let set = file.and_then(|file| file.set_modified(written));
            set.expect("a time of the file");
        }
        let mut bench = Bench::new(&path, start);
        assert_eq!(bench.recordings(), 2);
        bench.pass(HOUR);
        bench.record();
        assert_eq!(bench.recordings(), 3);
        assert_eq!(bench.alarms(), [CLOCK_IS_BEHIND]);
        bench.pass(100 * HOUR);
        assert_eq!(bench.alarms(), [CLOCK_IS_BEHIND, CLOCK_IS_RIGHT]);
        assert_eq!(bench.recordings(), 1, "of the future's time");
        fs::remove_dir_all(&path).expect("removed");
    }
}
