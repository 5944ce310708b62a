//! What the station knows of its cameras. The pipelines write it; the page and the metrics read it.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    path::PathBuf,
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, AtomicU64, AtomicUsize},
    },
    time::{Instant, SystemTime},
};

use clinspect_results::{
    NoneReason,
    report::{Report, ReportedRepeat},
};
use machine::{
    answer::{Line, Machine},
    locks::Mutex,
    modbus,
};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    bounded::{Bounds, keep_newest},
    tap::Tap,
};

/// A JPEG or PNG file in memory.
pub type Picture = bytes::Bytes;

/// The station's cameras, in the order of the file. A reload replaces the list.
pub type Cameras = watch::Receiver<Arc<Vec<Arc<Camera>>>>;

/// Shows a text at each camera on the page.
pub fn show_on_page(cameras: &Cameras, text: &str) {
    for camera in cameras.borrow().iter() {
        camera.show_on_page(text.to_owned());
    }
}

/// One camera.
pub struct Camera {
    /// Its name in the file: letters, digits, `-` and `_`.
    pub name: String,
    /// Whether the inspection runs.
    pub status: watch::Sender<Status>,
    /// The newest results.
    pub report: watch::Sender<Option<Arc<Report>>>,
    /// The newest picture with its overlay, as JPEG. It is made only while [`Self::viewers`] is not
    /// 0.
    pub live: watch::Sender<Option<Picture>>,
    /// Requests that read [`Self::live`] now.
    pub viewers: AtomicUsize,
    /// Copies of its frames, for those who set it up.
    pub tap: Tap,
    /// Its frames between their arrival and their outcomes.
    pub machine: Arc<Machine>,
    /// Numbers since the start of the station.
    pub counters: Counters,
    /// The last hour, the last failed frames, the roll.
    pub history: Mutex<History>,
    /// The folder of its recordings, if it records.
    pub recordings: Mutex<Option<PathBuf>>,
    /// Commands to the camera.
    pub commands: mpsc::Sender<Request>,
}

/// A command, and the channel for its answer.
pub struct Request {
    /// What to do.
    pub command: Command,
    /// The frame that [`Command::Forget`] names.
    pub frame: Option<u64>,
    /// A sentence for the person who asked: what happens now, or why the command was refused. No
    /// answer counts as a failure.
    pub answer: oneshot::Sender<Result<String, String>>,
}

/// State of a camera's pipeline.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Status {
    /// Its pipeline starts.
    #[default]
    Starting,
    /// Frames come.
    Running,
    /// No frame comes; the station tries again.
    Failed(Trouble, String),
}

/// What stopped a camera.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// The source failed, or sends no frames.
    CameraLost,
    /// The OpenCL device failed.
    DeviceLost,
    /// An element refuses its settings or the frames' format.
    SettingsRefused,
}

/// A command to a camera.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Emits `take-white` on the flat field.
    TakeWhite,
    /// Emits `take-dark` on the flat field.
    TakeDark,
    /// Emits `train` on the reference.
    Train,
    /// Emits `learn` on the analyzer.
    Learn,
    /// Emits `forget` on the analyzer, with the number of a frame.
    Forget,
    /// Emits `take-reference` on the histogram.
    TakeReference,
}

/// Upper ends of the buckets of [`Counters::latency`], seconds.
pub const LATENCY_BUCKETS: [f64; 10] = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0];

/// Names of [`Counters::verdicts`].
pub const VERDICTS: [&str; 3] = ["pass", "fail", "none"];

/// Numbers of a camera since the start of the station.
#[derive(Default)]
pub struct Counters {
    /// Frames that were inspected.
    pub frames: AtomicU64,
    /// Frames by verdict, in the order of [`VERDICTS`].
    pub verdicts: [AtomicU64; 3],
    /// Frames with the verdict `none` by reason, in the order of [`NoneReason::ALL`].
    pub none_reasons: [AtomicU64; NoneReason::ALL.len()],
    /// Frames that their source flagged as corrupted.
    pub corrupted: AtomicU64,
    /// Listed defects by class.
    pub defects: Mutex<BTreeMap<String, u64>>,
    /// Repeats that were found on webs.
    pub repeats: AtomicU64,
    /// Repeats of the newest web that have not ended.
    pub repeats_now: AtomicU64,
    /// Buffers that the source says it lost.
    pub lost: AtomicU64,
    /// Times that the pipeline was started again.
    pub restarts: AtomicU64,
    /// From arrival to result: frames by bucket of [`LATENCY_BUCKETS`], and above the last.
    pub latency: [AtomicU64; LATENCY_BUCKETS.len() + 1],
    /// Sum of the latencies, microseconds.
    pub latency_sum: AtomicU64,
    /// Results that wait to be published.
    pub publish_queue: AtomicU64,
    /// Results that were dropped because the queue was full.
    pub publish_dropped: AtomicU64,
    /// Attempts to publish that failed.
    pub publish_errors: AtomicU64,
    /// Whether results can be published now. True for a new camera, and without `publish`.
    pub publish_connected: AtomicBool,
    /// Frames that wait to be recorded.
    pub recording_queue: AtomicU64,
    /// Frames that were recorded: failed ones, and those before and after them.
    pub recorded: AtomicU64,
    /// Frames that were not recorded because the queue was full.
    pub recording_dropped: AtomicU64,
    /// Frames that could not be recorded.
    pub recording_errors: AtomicU64,
    /// Whether the folder or the disk refuses recordings now.
    pub recording_stopped: AtomicBool,
}

/// The recent history of a camera.
#[derive(Default)]
pub struct History {
    /// Listed defects by class, by minute; in order, the newest last, 60 at most. A minute without
    /// frames has no entry.
    pub minutes: VecDeque<Minute>,
    /// The last failed frames, the newest last.
    pub failures: VecDeque<Arc<Failure>>,
    /// Defects of the last webs for the roll map, the newest last.
    pub roll: VecDeque<RollMark>,
    /// Defects of the newest web that repeat along it, the oldest first; those that have ended, too.
    pub repeats: Vec<RollRepeat>,
    /// Number of the newest web; `None` if the camera inspects no web.
    pub web: Option<u64>,
    /// When the newest results came.
    pub newest: Option<Instant>,
    /// Name of the OpenCL device.
    pub device: Option<String>,
    /// What the camera sends, and what becomes of it before the inspection.
    pub sent: Option<String>,
    /// Alarms with the time when they were raised, the newest last.
    pub alarms: VecDeque<(SystemTime, String)>,
    /// Frames per second over the last seconds.
    pub frame_rate: f64,
    /// The newest histogram: 64 bins or fewer for each channel, for the plot. Empty without
    /// `clhistogram`.
    pub bins: Vec<Vec<u64>>,
    /// The commands that the camera's pipeline can carry out.
    pub offers: Vec<Command>,
}

/// The defects of one minute.
#[derive(Debug, Clone)]
pub struct Minute {
    /// Minutes since 1970.
    pub minute: u64,
    /// Frames.
    pub frames: u64,
    /// Frames that failed.
    pub failed: u64,
    /// Defects by class.
    pub defects: BTreeMap<String, u64>,
}

/// A failed frame.
pub struct Failure {
    /// Counts the camera's failed frames since the start of the station, from 1.
    pub id: u64,
    /// Its results.
    pub report: Arc<Report>,
    /// Its pictures, or a sentence that says why there are none.
    pub pictures: Result<FailurePictures, String>,
}

/// The pictures of a failed frame.
pub struct FailurePictures {
    /// The picture with its overlay, at most 160 px wide, as JPEG.
    pub thumbnail: Picture,
    /// The picture with its overlay, as JPEG.
    pub picture: Picture,
}

impl Failure {
    /// The memory that the frame takes, about, bytes.
    pub fn memory(&self) -> usize {
        let pictures = self.pictures.as_ref();
        let pictures = pictures.map_or(0, |of| of.picture.len() + of.thumbnail.len());
        pictures + self.report.memory()
    }
}

/// A defect on the roll map.
#[derive(Debug, Clone)]
pub struct RollMark {
    /// Number of the web.
    pub web: u64,
    /// Name of the class.
    pub class: String,
    /// Middle of the box, 0 (left edge) to 1 (right edge).
    pub across: f64,
    /// Row of the box's top edge in the web.
    pub line: i64,
    /// The same in metres, if the size of a pixel is known.
    pub metres: Option<f64>,
    /// Marked pixels.
    pub area: u32,
}

/// Defects that repeat along the web, on the roll map.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RollRepeat {
    /// Period, count and place.
    #[serde(flatten)]
    pub repeat: ReportedRepeat,
    /// Middles of the leftmost and the rightmost defect, 0 (left edge) to 1 (right edge).
    pub across: [f64; 2],
    /// Whether further defects are expected.
    pub is_active: bool,
    /// The newest of its defects, one for each turn.
    pub places: Vec<RollPlace>,
}

/// The place of a defect on the roll map.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RollPlace {
    /// Middle of the defect, lines of the web.
    pub line: f64,
    /// The same in metres, if the size of a pixel is known.
    pub metres: Option<f64>,
    /// Middle of the defect, 0 (left edge) to 1 (right edge).
    pub across: f64,
}

impl Camera {
    /// The last hour, the last failed frames, the roll.
    pub fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock()
    }
}

impl History {
    /// The entry of a minute, given in minutes since 1970. Frames come now, so entries of later
    /// minutes are from a clock that was wrong: they go.
    pub fn minute(&mut self, minute: u64) -> Option<&mut Minute> {
        while self.minutes.back().is_some_and(|of| of.minute > minute) {
            self.minutes.pop_back();
        }
        if self.minutes.back().is_none_or(|of| of.minute < minute) {
            self.minutes.push_back(Minute {
                minute,
                frames: 0,
                failed: 0,
                defects: BTreeMap::new(),
            });
            if self.minutes.len() > MINUTES {
                self.minutes.pop_front();
            }
        }
        self.minutes.back_mut()
    }

    /// The entries of the last 60 minutes, `now` included. The camera may have stood for a day.
    pub fn last_hour(&self, now: u64) -> impl Iterator<Item = &Minute> {
        let is_in = move |of: &&Minute| of.minute <= now && now - of.minute < MINUTES as u64;
        self.minutes.iter().filter(is_in)
    }

    /// Forgets what belongs to the pipeline before: an analyzer counts webs from 0 at each start,
    /// and may have other elements beside it.
    pub fn begin_pipeline(&mut self) {
        self.roll.clear();
        self.repeats.clear();
        self.web = None;
        self.bins.clear();
    }
}

/// Minutes of the history.
const MINUTES: usize = 60;
/// Alarms that are kept.
const KEPT_ALARMS: Bounds = Bounds {
    count: 50,
    bytes: 64 << 10,
};
/// Longest text of an alarm on the page, bytes; the log has the whole one.
const LONGEST_ALARM: usize = 2000;
/// Commands that may wait.
const WAITING_COMMANDS: usize = 8;

impl Camera {
    /// A camera of a line, and the commands that will come for it. It starts.
    pub fn new(name: &str, line: &Arc<Line>) -> (Self, mpsc::Receiver<Request>) {
        let (commands, requests) = mpsc::channel(WAITING_COMMANDS);
        let camera = Self {
            name: name.to_owned(),
            status: watch::Sender::default(),
            report: watch::Sender::default(),
            live: watch::Sender::default(),
            viewers: AtomicUsize::new(0),
            tap: Tap::default(),
            machine: Machine::new(name, line),
            counters: Counters {
                publish_connected: AtomicBool::new(true),
                ..Counters::default()
            },
            history: Mutex::default(),
            recordings: Mutex::default(),
            commands,
        };
        (camera, requests)
    }

    /// The folder of its recordings, if it records.
    pub fn recordings(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.recordings.lock()
    }

    /// Sets the status. A camera that does not run has no results: old ones must not be shown as new.
    pub fn set_status(&self, status: Status) {
        let is_running = status == Status::Running;
        self.status.send_replace(status);
        if !is_running {
            self.report.send_replace(None);
        }
    }

    /// The newest results; none while the camera does not run, also if a frame that ended late left some.
    pub fn newest_report(&self) -> Option<Arc<Report>> {
        let is_running = *self.status.borrow() == Status::Running;
        self.report.borrow().clone().filter(|_| is_running)
    }

    /// Raises an alarm: in the history and in the log.
    pub fn alarm(&self, text: String) {
        machine::error!("camera {}: {text}", self.name);
        self.show_on_page(text);
    }

    /// Adds a text to those that the page shows beside the camera.
    pub fn show_on_page(&self, mut text: String) {
        if text.len() > LONGEST_ALARM {
            text.truncate(text.floor_char_boundary(LONGEST_ALARM));
            text += "…";
        }
        let mut history = self.history();
        history.alarms.push_back((SystemTime::now(), text));
        keep_newest(&mut history.alarms, KEPT_ALARMS, |(_, text)| text.len());
    }
}

impl modbus::Camera for Camera {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn is_online(&self) -> Result<(), u16> {
        match &*self.status.borrow() {
            Status::Running => Ok(()),
            Status::Starting => Err(0),
            Status::Failed(trouble, _) => Err(*trouble as u16 + 1),
        }
    }

    fn alarm(&self, text: String) {
        self.alarm(text);
    }
}

impl Trouble {
    /// Every trouble.
    pub const ALL: [Self; 3] = [Self::CameraLost, Self::DeviceLost, Self::SettingsRefused];
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CameraLost => "camera lost",
            Self::DeviceLost => "device lost",
            Self::SettingsRefused => "settings refused",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_stay_in_order_when_the_clock_jumps_back() {
        let mut history = History::default();
        let minutes =
            |history: &History| Vec::from_iter(history.minutes.iter().map(|of| of.minute));
        for minute in [100, 100, 101, 160, 98, 99, 98] {
            history
                .minute(minute)
                .map(|of| of.frames += 1)
                .unwrap_or_default();
        }
        assert_eq!(minutes(&history), [98]);
        assert_eq!(history.minutes[0].frames, 2);
        for minute in 99..200 {
            history.minute(minute);
        }
        assert_eq!(minutes(&history), Vec::from_iter(140..200));
    }

    #[test]
    fn alarms_on_the_page_are_bounded_in_bytes() {
        let camera = Camera::new("left", &Line::new().expect("a line")).0;
        for _ in 0..60 {
            camera.show_on_page("ä".repeat(100_000));
        }
        let history = camera.history();
        let texts = history.alarms.iter().map(|(_, text)| text.len());
        assert!(texts.clone().all(|len| len <= LONGEST_ALARM + "…".len()));
        assert!(texts.sum::<usize>() <= KEPT_ALARMS.bytes);
        assert!(history.alarms.len() >= 20);
    }

    #[test]
    fn last_hour_has_no_minute_of_yesterday_or_tomorrow() {
        let mut history = History::default();
        for minute in [1000, 1940, 1941, 2000, 2001] {
            history.minute(minute);
        }
        let hour = history.last_hour(2000).map(|of| of.minute);
        assert_eq!(Vec::from_iter(hour), [1941, 2000]);
        assert_eq!(history.last_hour(3).count(), 0);
    }
}
