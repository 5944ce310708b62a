//! Pictures of frames as JPEG: live ones while a page shows them, and those of failed frames.
//!
//! A thread of its own draws and encodes, so the inspection never waits for a picture. Streaming
//! threads leave frames in a bounded queue; if the queue is full, the frame gets no picture.

mod encoder;

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use clinspect_results::report::Report;
use machine::{locks::Monitor, warning, worker::Worker};
use plan::{CameraConfig, Properties};

use crate::{
    bounded::{Bounds, keep_newest},
    frame::THUMBNAIL_WIDTH,
    state::{Camera, Failure, FailurePictures, Picture},
};
use encoder::Encoder;

/// Failed frames that wait for their pictures.
const WAITING_FAILURES: Bounds = Bounds {
    count: 4,
    bytes: 256 << 20,
};
/// Least time between two failed frames that get a picture.
const FAILURE_INTERVAL: Duration = Duration::from_millis(200);
/// Failed frames that are kept with their pictures.
const KEPT_FAILURES: Bounds = Bounds {
    count: 24,
    bytes: 64 << 20,
};

/// How pictures are made.
#[derive(Debug, Clone, PartialEq)]
pub struct PictureSettings {
    overlay: Properties,
    width: u32,
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

impl Frame {
    fn live(&self, encoder: &mut Encoder, settings: &PictureSettings) -> Result<Picture, String> {
        let drawn = encoder.draw(&self.buffer, &self.caps, &settings.overlay, settings.width);
        drawn
            .and_then(|drawn| encoder.encode(&drawn, settings.width))
            .map_err(|why| self.without_picture(&why))
    }

    fn failure(
        &self,
        encoder: &mut Encoder,
        settings: &PictureSettings,
    ) -> Result<FailurePictures, String> {
        let drawn = encoder.draw(&self.buffer, &self.caps, &settings.overlay, settings.width);
        let pictures = drawn.and_then(|drawn| {
            Ok(FailurePictures {
                thumbnail: encoder.encode(&drawn, THUMBNAIL_WIDTH)?,
                picture: encoder.encode(&drawn, settings.width)?,
            })
        });
        pictures.map_err(|why| self.without_picture(&why))
    }

    /// Says which frame has no picture, and why.
    fn without_picture(&self, why: &str) -> String {
        let frame = self.caps.structure(0).map(|caps| {
            let side = |name| caps.get::<i32>(name).unwrap_or_default();
            format!(" of {} x {} pixels", side("width"), side("height"))
        });
        format!("a frame{} has no picture: {why}", frame.unwrap_or_default())
    }
}

/// The queue between the streaming threads and the thread that encodes.
pub struct Pictures {
    camera: Arc<Camera>,
    wanted: Monitor<PictureQueue>,
}

struct PictureQueue {
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

impl PictureQueue {
    /// Whether one more failed frame may wait.
    fn has_room(&self, buffer: &gst::Buffer, report: &Report) -> bool {
        let bytes = |buffer: &gst::Buffer, report: &Report| buffer.size() + report.memory();
        let waiting = self.failures.iter();
        let waiting = waiting
            .map(|(_, of, report)| bytes(&of.buffer, report))
            .sum();
        WAITING_FAILURES.has_room(self.failures.len(), waiting, bytes(buffer, report))
    }
}

/// What the thread does next.
enum Task {
    Live(Frame),
    Failure(u64, Frame, Arc<Report>),
}

/// The thread; it ends when this is dropped.
pub struct PictureThread {
    pictures: Arc<Pictures>,
    _thread: Worker,
}

impl PictureThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(camera: &Arc<Camera>, settings: PictureSettings) -> std::io::Result<Self> {
        let pictures = Arc::new(Pictures::new(camera, settings));
        let mine = pictures.clone();
        let thread = Worker::start(format!("{}-pictures", camera.name), move || mine.run())?;
        Ok(Self {
            pictures,
            _thread: thread,
        })
    }

    /// The queue.
    pub fn pictures(&self) -> &Arc<Pictures> {
        &self.pictures
    }
}

impl Drop for PictureThread {
    fn drop(&mut self) {
        self.pictures.wanted.lock().is_over = true;
        self.pictures.wanted.notify();
    }
}

impl Pictures {
    fn new(camera: &Arc<Camera>, settings: PictureSettings) -> Self {
        Self {
            camera: camera.clone(),
            wanted: Monitor::new(PictureQueue {
                settings,
                live: None,
                last_live: None,
                failures: VecDeque::new(),
                last_failure: None,
                was_failure: false,
                failed: 0,
                is_over: false,
            }),
        }
    }

    /// Settings of the pictures that follow.
    pub fn set_settings(&self, settings: PictureSettings) {
        self.wanted.lock().settings = settings;
    }

    /// Forgets the live picture that waits: its pipeline stops. Failed frames still get theirs.
    pub fn clear(&self) {
        self.wanted.lock().live = None;
    }

    /// Takes a frame for a live picture if one is due, and a failed frame if the queue has room. It is copied: the memory of
    /// most cameras is a pool of few buffers, and one that waits here would be missing there.
    pub fn offer(&self, buffer: &gst::Buffer, caps: &gst::Caps, report: &Arc<Report>) {
        let frame = || {
            let copy = buffer.copy_deep().ok()?;
            Some(Frame {
                buffer: copy,
                caps: caps.clone(),
            })
        };
        let is_due = |last: Option<Instant>, interval| {
            last.is_none_or(|last: Instant| last.elapsed() >= interval)
        };
        let mut wanted = self.wanted.lock();
        let mut is_taken = false;
        let is_watched = self.camera.viewers.load(Ordering::Relaxed) > 0;
        if is_watched && is_due(wanted.last_live, wanted.settings.interval) {
            wanted.live = frame();
            wanted.last_live = Some(Instant::now());
            is_taken = true;
        }
        if report.verdict == "fail" {
            wanted.failed += 1;
            if is_due(wanted.last_failure, FAILURE_INTERVAL)
                && wanted.has_room(buffer, report)
                && let Some(frame) = frame()
            {
                let id = wanted.failed;
                wanted.failures.push_back((id, frame, report.clone()));
                wanted.last_failure = Some(Instant::now());
                is_taken = true;
            }
        }
        drop(wanted);
        if is_taken {
            self.wanted.notify();
        }
    }

    /// The next task and the settings; `None` at the end. Failed and live pictures take
    /// turns, so that neither kind waits for ever if encoding is slow.
    fn next(&self) -> Option<(Task, PictureSettings)> {
        let mut wanted = self.wanted.lock();
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
            wanted = self.wanted.wait(wanted, None);
        }
    }

    fn run(&self) {
        let mut encoder = Encoder::default();
        let mut last_error = None;
        while let Some((task, settings)) = self.next() {
            let error = match task {
                Task::Live(frame) => frame
                    .live(&mut encoder, &settings)
                    .map(|picture| {
                        self.camera.live.send_replace(Some(picture));
                    })
                    .err(),
                Task::Failure(id, frame, report) => {
                    let pictures = frame.failure(&mut encoder, &settings);
                    let error = pictures.as_ref().err().cloned();
                    // A frame without a picture is listed with its results.
                    self.keep(Failure {
                        id,
                        report,
                        pictures,
                    });
                    error
                }
            };
            if let Some(error) = error
                && last_error.as_ref() != Some(&error)
            {
                warning!("camera {}: {error}", self.camera.name);
                last_error = Some(error);
            }
        }
    }

    fn keep(&self, failure: Failure) {
        let mut history = self.camera.history();
        history.failures.push_back(Arc::new(failure));
        keep_newest(&mut history.failures, KEPT_FAILURES, |of| of.memory());
    }
}

#[cfg(test)]
mod tests {
    use clinspect_results::report::Inspection;
    use gst::prelude::*;

    use super::*;

    fn pictures() -> Pictures {
        gst::init().unwrap_or_else(|error| eprintln!("{error}"));
        let camera =
            Arc::new(Camera::new("left", &machine::answer::Line::new().expect("a line")).0);
        camera.viewers.store(1, Ordering::Relaxed);
        let settings = PictureSettings {
            overlay: Properties::default(),
            width: 64,
            interval: Duration::ZERO,
        };
        Pictures::new(&camera, settings)
    }

    fn report(verdict: &'static str) -> Report {
        Report::empty(verdict, String::new())
    }

    fn offer(pictures: &Pictures, verdict: &'static str) {
        // A failed frame is due again.
        pictures.wanted.lock().last_failure = None;
        pictures.offer(
            &gst::Buffer::new(),
            &gst::Caps::new_any(),
            &Arc::new(report(verdict)),
        );
    }

    /// The picture and the thumbnail of a frame, as `[width, height]`.
    fn sizes_of(caps: &str) -> Result<[[u32; 2]; 2], String> {
        gst::init().map_err(|error| error.to_string())?;
        gstinspectoverlay::register_static().map_err(|error| error.to_string())?;
        let caps: gst::Caps = caps.parse().map_err(|_| format!("{caps} are no caps"))?;
        let info = gst_video::VideoInfo::from_caps(&caps).map_err(|error| error.to_string())?;
        let frame = Frame {
            buffer: gst::Buffer::from_mut_slice(vec![90; info.size()]),
            caps,
        };
        let settings = PictureSettings {
            overlay: Properties::default(),
            width: 1280,
            interval: Duration::ZERO,
        };
        let pictures = frame.failure(&mut Encoder::default(), &settings)?;
        Ok([&pictures.picture, &pictures.thumbnail].map(|jpeg| size_of_jpeg(jpeg)))
    }

    /// Width and height in the frame header of a baseline JPEG.
    fn size_of_jpeg(jpeg: &[u8]) -> [u32; 2] {
        let header = jpeg.windows(2).position(|marker| marker == [0xff, 0xc0]);
        let header = header.map_or(&[][..], |at| &jpeg[at..]);
        let side = |at: usize| {
            let bytes = header.get(at..at + 2).unwrap_or(&[0, 0]);
            u32::from(bytes[0]) << 8 | u32::from(bytes[1])
        };
        [side(7), side(5)]
    }

    #[test]
    fn frames_that_wait_hold_no_buffer_of_the_cameras_pool() {
        let pictures = pictures();
        let pool = gst::BufferPool::new();
        let mut config = pool.config();
        config.set_params(None, 64, 1, 1);
        pool.set_config(config).expect("a pool");
        pool.set_active(true).expect("a pool");
        let mut at_once =
            gst::BufferPoolAcquireParams::with_flags(gst::BufferPoolAcquireFlags::DONTWAIT);
        for verdict in ["fail", "fail", "pass"] {
            let mut buffer = pool
                .acquire_buffer(Some(&at_once))
                .expect("the camera's buffer is back");
            at_once =
                gst::BufferPoolAcquireParams::with_flags(gst::BufferPoolAcquireFlags::DONTWAIT);
            buffer.make_mut().set_pts(gst::ClockTime::SECOND);
            pictures.wanted.lock().last_failure = None;
            pictures.offer(&buffer, &gst::Caps::new_any(), &Arc::new(report(verdict)));
        }
        let waiting = pictures.wanted.lock().failures.len();
        assert_eq!(waiting, 2);
        pool.set_active(false).expect("a pool");
    }

    #[test]
    fn frames_of_every_size_format_and_shape_of_pixels_have_pictures_in_proportion() {
        for (fields, expected) in [
            ("GRAY8,width=640,height=480", [[640, 480], [160, 120]]),
            ("GRAY8,width=64,height=32768", [[64, 32_767], [64, 32_767]]),
            ("GRAY8,width=64,height=100000", [[21, 32_767], [21, 32_767]]),
            ("RGB,width=70000,height=64", [[1280, 1], [160, 1]]),
            ("GRAY8,width=1,height=1", [[1, 1], [1, 1]]),
            ("I420,width=15,height=1", [[15, 1], [15, 1]]),
            ("GRAY16_BE,width=3,height=5", [[3, 5], [3, 5]]),
            ("ARGB64,width=33,height=7", [[33, 7], [33, 7]]),
            (
                "GRAY8,width=960,height=1080,pixel-aspect-ratio=2/1",
                [[1280, 720], [160, 90]],
            ),
            (
                "RGB,width=960,height=540,pixel-aspect-ratio=1/2",
                [[960, 1080], [160, 180]],
            ),
        ] {
            let caps = format!("video/x-raw,format={fields},framerate=25/1");
            assert_eq!(sizes_of(&caps), Ok(expected), "{fields}");
        }
    }

    /// The live picture of an even grey frame with a histogram.
    fn picture_of_counted_frame(overlay: Properties) -> Picture {
        gst::init().expect("GStreamer");
        gstclinspect::register_static().expect("the elements");
        gstinspectoverlay::register_static().expect("the overlay");
        let pipeline = "videotestsrc num-buffers=1 pattern=solid-color foreground-color=0xff5a5a5a \
                        ! video/x-raw,format=GRAY8,width=640,height=480 ! clhistogram ! appsink name=sink";
        let pipeline = gst::parse::launch(pipeline).expect("a pipeline");
        let pipeline = pipeline.downcast::<gst::Pipeline>().expect("a pipeline");
        let sink = pipeline.by_name("sink").and_downcast::<gst_app::AppSink>();
        pipeline.set_state(gst::State::Playing).expect("a start");
        let sample = sink.expect("the sink").pull_sample().expect("a frame");
        pipeline.set_state(gst::State::Null).expect("an end");
        let frame = Frame {
            buffer: sample.buffer_owned().expect("a buffer"),
            caps: sample.caps_owned().expect("caps"),
        };
        let settings = PictureSettings {
            overlay,
            width: 640,
            interval: Duration::ZERO,
        };
        let live = frame.live(&mut Encoder::default(), &settings);
        live.expect("a picture")
    }

    #[test]
    fn histogram_stands_in_the_picture_only_if_the_settings_say_so() {
        let mut shown = Properties::default();
        shown.set_if_missing("show-histogram", "true".to_owned());
        let without = picture_of_counted_frame(Properties::default()).len();
        let with = picture_of_counted_frame(shown).len();
        assert!(
            without + 2000 < with,
            "{without} bytes without, {with} bytes with a histogram"
        );
    }

    #[test]
    fn failed_frame_without_a_picture_is_listed_with_the_reason() {
        let pictures = pictures();
        let camera = pictures.camera.clone();
        let settings = pictures.wanted.lock().settings.clone();
        let worker = PictureThread::start(&camera, settings).expect("a thread");
        let caps = "video/x-raw,format=GRAY8,width=64,height=48,framerate=25/1";
        let caps: gst::Caps = caps.parse().expect("caps");
        // The buffer lacks the pixels.
        let buffer = gst::Buffer::new();
        (worker.pictures).offer(&buffer, &caps, &Arc::new(report("fail")));
        let end = Instant::now() + Duration::from_secs(20);
        while camera.history().failures.is_empty() {
            assert!(Instant::now() < end, "the frame is not listed");
            std::thread::sleep(Duration::from_millis(2));
        }
        let failure = camera.history().failures[0].clone();
        assert_eq!(failure.report.verdict, "fail");
        assert_eq!(
            failure.pictures.as_ref().err().map(String::as_str),
            Some("a frame of 64 x 48 pixels has no picture: GStreamer cannot read the GRAY8 frame")
        );
    }

    /// A report whose list of defects takes this memory.
    fn large_report(bytes: usize) -> Report {
        let mut large = report("fail");
        let count = bytes / size_of::<clinspect_results::report::ReportedDefect>();
        large.inspections.push(Inspection {
            defects: Vec::with_capacity(count),
            ..Inspection::default()
        });
        large
    }

    #[test]
    fn failed_frames_that_wait_and_that_are_kept_are_bounded_in_bytes() {
        let pictures = pictures();
        for _ in 0..4 {
            pictures.wanted.lock().last_failure = None;
            let large = Arc::new(large_report(WAITING_FAILURES.bytes / 5 * 2));
            pictures.offer(&gst::Buffer::new(), &gst::Caps::new_any(), &large);
        }
        assert_eq!(pictures.wanted.lock().failures.len(), 2, "more wait");
        for id in 0..30 {
            pictures.keep(Failure {
                id,
                report: Arc::new(large_report(KEPT_FAILURES.bytes / 5)),
                pictures: Err(String::new()),
            });
        }
        let history = pictures.camera.history();
        let kept = history.failures.iter().map(|failure| failure.id);
        assert_eq!(Vec::from_iter(kept), [26, 27, 28, 29], "others are kept");
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
        let wanted = pictures.wanted.lock();
        assert_eq!(wanted.failures.len(), 2);
        assert!(wanted.live.is_none(), "a live picture of no pipeline");
    }
}
