//! Takes the results of each frame, in the streaming thread.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant, UNIX_EPOCH},
};

use clinspect_results::{
    DefectResult, HistogramResult, NoneReason,
    report::{RecipeId, Report},
    time,
};
use gst::{glib, prelude::*};
use machine::{answer::Finding, clock, locks::Mutex};
use plan::CameraConfig;

use super::entry::Entry;
use crate::{
    bounded::{Bounds, keep_newest},
    pictures::Pictures,
    publishing::Publishers,
    recording::Recorder,
    repeats::Watch,
    state::{Camera, LATENCY_BUCKETS, RollMark, VERDICTS},
    tag::Tag,
};

/// Most marks of the roll map.
const ROLL_MARKS: Bounds = Bounds {
    count: 2000,
    bytes: 1 << 20,
};
/// Most bins of the histogram that the page shows.
const BINS: usize = 64;
/// Least time between two histograms for the page.
const BINS_INTERVAL: Duration = Duration::from_millis(250);

/// Receives the frames behind the analyzer.
pub struct Results {
    camera: Arc<Camera>,
    watched: Arc<FrameProgress>,
    outlets: Outlets,
    /// The frames as they came.
    entry: Arc<Entry>,
    /// The recipe of the analyzer.
    recipe: Option<RecipeId>,
    /// Finds defects that repeat, if they are looked for.
    repeats: Option<Mutex<Watch>>,
    /// For its property `line-scan`. Weak, because its pad owns this value.
    analyzer: glib::WeakRef<gst::Element>,
    stream: Mutex<Stream>,
}

/// Where frames with results go beside the pipeline.
#[derive(Clone)]
pub struct Outlets {
    /// Pictures for the page.
    pub pictures: Arc<Pictures>,
    /// Files and brokers.
    pub publishers: Arc<Publishers>,
    /// Recordings of failed frames.
    pub recorder: Option<Arc<Recorder>>,
}

/// What the events said.
#[derive(Default)]
struct Stream {
    segment: Option<gst::FormattedSegment<gst::ClockTime>>,
    caps: Option<gst::Caps>,
    info: Option<gst_video::VideoInfo>,
    bins_taken: Option<Instant>,
}

impl Results {
    /// Watches the pad behind the analyzer.
    pub fn watch(
        (analyzer, pad, config): (&gst::Element, &gst::Pad, &CameraConfig),
        pipeline: &gst::Pipeline,
        camera: &Arc<Camera>,
        watched: &Arc<FrameProgress>,
        (outlets, entry): (&Outlets, &Arc<Entry>),
    ) {
        let results = Self {
            camera: camera.clone(),
            watched: watched.clone(),
            outlets: outlets.clone(),
            entry: entry.clone(),
            recipe: config.recipe.clone(),
            repeats: (config.repeats.clone()).map(|settings| Mutex::new(Watch::new(settings))),
            analyzer: analyzer.downgrade(),
            stream: Mutex::default(),
        };
        let pipeline = pipeline.downgrade();
        let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
        pad.add_probe(kinds, move |_, info| {
            match &info.data {
                Some(gst::PadProbeData::Buffer(buffer)) => {
                    let now = pipeline.upgrade().and_then(|p| p.current_running_time());
                    results.buffer(buffer, now);
                    // Now that the results are there: the supervisor then says that the camera runs.
                    results.watched.add_result();
                }
                Some(gst::PadProbeData::Event(event)) => results.event(event),
                _ => {}
            }
            gst::PadProbeReturn::Ok
        });
    }

    fn event(&self, event: &gst::Event) {
        match event.view() {
            gst::EventView::Caps(caps) => {
                let mut stream = self.stream.lock();
                stream.info = gst_video::VideoInfo::from_caps(caps.caps()).ok();
                stream.caps = Some(caps.caps_owned());
            }
            gst::EventView::Segment(segment) => {
                self.stream.lock().segment = segment.segment().clone().downcast().ok();
            }
            _ => {}
        }
    }

    fn buffer(&self, buffer: &gst::Buffer, now: Option<gst::ClockTime>) {
        // The machine comes first: nothing below may delay its answer.
        let found = DefectResult::read(buffer);
        let judged = Tag::of(buffer).and_then(|sequence| {
            let machine = &self.camera.machine;
            machine.judge(sequence, &Finding::of(&found), &self.recipe)
        });
        let segment = self.stream.lock().segment.clone();
        let segment = segment.as_ref();
        let time = time::iso_8601(time::captured(buffer, segment, now));
        let Some(mut report) =
            Report::with_inspections(buffer, &found, Some(&self.camera.name), time.clone())
        else {
            if let Some(judged) = judged {
                let name = &self.camera.name;
                let report = Report::without_results(name, judged.outcome, time);
                self.outlets.publishers.offer(&Arc::new(report));
            }
            return;
        };
        report.recipe.clone_from(&self.recipe);
        let latency = judged.as_ref().map(|judged| judged.latency);
        report.outcome = judged.map(|judged| judged.outcome);
        let is_web = self.is_web();
        if is_web {
            self.find_repeats(&found, &mut report);
        }
        let report = Arc::new(report);
        self.count(&report, latency);
        self.keep(&report, is_web);
        self.keep_bins(buffer);
        if !self.watched.is_ending.load(Relaxed) {
            self.camera.report.send_replace(Some(report.clone()));
        }
        self.outlets.publishers.offer(&report);
        let (caps, info) = {
            let stream = self.stream.lock();
            (stream.caps.clone(), stream.info.clone())
        };
        if let Some(caps) = caps {
            self.outlets.pictures.offer(buffer, &caps, &report);
        }
        let as_it_came = self.entry.take(buffer.pts());
        if let Some(recorder) = &self.outlets.recorder {
            match (as_it_came, info) {
                (Some((frame, info)), _) => recorder.frame(&frame, &info, &report),
                (None, Some(info)) => recorder.frame(buffer, &info, &report),
                (None, None) => {}
            }
        }
    }

    fn count(&self, report: &Report, latency: Option<Duration>) {
        let counters = &self.camera.counters;
        counters.frames.fetch_add(1, Relaxed);
        counters
            .corrupted
            .fetch_add(u64::from(report.corrupted), Relaxed);
        if let Some(verdict) = VERDICTS.iter().position(|name| *name == report.verdict) {
            counters.verdicts[verdict].fetch_add(1, Relaxed);
        }
        let why = report.none_reason();
        let reasons = NoneReason::ALL.iter().zip(&counters.none_reasons);
        for (_, count) in reasons.filter(|(reason, _)| why == Some(reason.name())) {
            count.fetch_add(1, Relaxed);
        }
        if let Some(latency) = latency {
            let seconds = latency.as_secs_f64();
            let bucket = LATENCY_BUCKETS.partition_point(|end| *end < seconds);
            counters.latency[bucket].fetch_add(1, Relaxed);
            let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
            counters.latency_sum.fetch_add(micros, Relaxed);
        }
        if report.inspections.iter().any(|i| !i.defects.is_empty()) {
            let mut defects = counters.defects.lock();
            for defect in report.inspections.iter().flat_map(|i| &i.defects) {
                add(&mut defects, &defect.class);
            }
        }
    }

    /// Looks for repeats of the web that the last inspection sees.
    fn find_repeats(&self, found: &[DefectResult], report: &mut Report) {
        let strip = found.last().zip(report.inspections.last_mut());
        if let Some((repeats, (strip, inspection))) = self.repeats.as_ref().zip(strip) {
            let mut repeats = repeats.lock();
            inspection.repeats = repeats.take(strip, &self.camera);
        }
    }

    fn keep(&self, report: &Report, is_web: bool) {
        let minute = (clock::even().duration_since(UNIX_EPOCH)).map_or(0, |t| t.as_secs() / 60);
        let mut history = self.camera.history();
        history.newest = Some(Instant::now());
        if let Some(last) = history.minute(minute) {
            last.frames += 1;
            last.failed += u64::from(report.verdict == "fail");
            for defect in report.inspections.iter().flat_map(|i| &i.defects) {
                add(&mut last.defects, &defect.class);
            }
        }
        // The results of a web's first strip look like those of a frame.
        let inspections = if is_web { &*report.inspections } else { &[] };
        // A web without a defect is the newest one, too.
        history.web = inspections.last().map(|inspection| inspection.web);
        for inspection in inspections {
            for defect in &inspection.defects {
                let middle = f64::from(defect.x) + f64::from(defect.width) / 2.0;
                history.roll.push_back(RollMark {
                    web: inspection.web,
                    class: defect.class.clone(),
                    across: middle / f64::from(inspection.width.max(1)),
                    line: i64::try_from(inspection.first_line).unwrap_or(i64::MAX)
                        + i64::from(defect.y),
                    metres: defect.y_m,
                    area: defect.area,
                });
            }
            keep_newest(&mut history.roll, ROLL_MARKS, |mark| {
                size_of::<RollMark>() + mark.class.len()
            });
        }
    }

    fn is_web(&self) -> bool {
        let analyzer = self.analyzer.upgrade();
        let analyzer = analyzer.filter(|analyzer| analyzer.has_property("line-scan"));
        analyzer.is_some_and(|analyzer| analyzer.property("line-scan"))
    }

    /// Keeps the newest histogram for the page, a few times a second.
    fn keep_bins(&self, buffer: &gst::Buffer) {
        {
            let mut stream = self.stream.lock();
            if (stream.bins_taken).is_some_and(|taken| taken.elapsed() < BINS_INTERVAL) {
                return;
            }
            stream.bins_taken = Some(Instant::now());
        }
        let Some(histogram) = HistogramResult::read(buffer).pop() else {
            return;
        };
        self.camera.history().bins = bins_of(&histogram);
    }
}

/// The counts of each channel, in `BINS` bins or fewer.
pub fn bins_of(histogram: &HistogramResult) -> Vec<Vec<u64>> {
    let each = (histogram.bins as usize).div_ceil(BINS).max(1);
    let channels = 0..histogram.statistics.len();
    let bins = channels.filter_map(|channel| {
        let counts = histogram.channel(channel)?;
        let sum = |bins: &[u32]| bins.iter().map(|&count| u64::from(count)).sum();
        Some(counts.chunks(each).map(sum).collect())
    });
    bins.collect()
}

/// Counts a defect without a new string for a class that is known.
fn add(counts: &mut BTreeMap<String, u64>, class: &str) {
    match counts.get_mut(class) {
        Some(count) => *count += 1,
        None => {
            counts.insert(class.to_owned(), 1);
        }
    }
}

/// When frames left the inspection: written by the streaming threads, read by the supervisor.
pub struct FrameProgress {
    started: Instant,
    /// Milliseconds from the start to the last result, plus 1; 0 before the first.
    last_result: AtomicU64,
    /// Results.
    pub frames: AtomicU64,
    /// The pipeline is ending: later results do not become the newest.
    pub is_ending: AtomicBool,
}

impl FrameProgress {
    /// A pipeline that starts now.
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            last_result: AtomicU64::new(0),
            frames: AtomicU64::new(0),
            is_ending: AtomicBool::new(false),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    /// Counts a result.
    pub fn add_result(&self) {
        self.last_result.store(self.now(), Relaxed);
        self.frames.fetch_add(1, Relaxed);
    }

    /// Time since the last result, or since the start.
    pub fn silence(&self) -> Duration {
        let last = self.last_result.load(Relaxed).saturating_sub(1);
        Duration::from_millis(self.now() - 1).saturating_sub(Duration::from_millis(last))
    }

    /// Whether there was a result.
    pub fn has_results(&self) -> bool {
        self.last_result.load(Relaxed) > 0
    }
}
