//! Takes the results of each frame, in the streaming thread.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use clinspect_results::HistogramResult;
use gst::{glib, prelude::*};
use gstinspectpublish::{report::Report, time};

use super::watched::Watched;
use crate::{
    pictures::Pictures,
    publishing::Publishers,
    recording::Recorder,
    state::{Camera, LATENCY_BUCKETS, RollMark},
};

/// Most marks of the roll map.
const ROLL_MARKS: usize = 2000;
/// Most bins of the histogram that the page shows.
const BINS: usize = 64;
/// Least time between two histograms for the page.
const BINS_INTERVAL: Duration = Duration::from_millis(250);
const VERDICTS: [&str; 3] = ["pass", "fail", "none"];

/// Receives the frames behind the analyzer.
pub struct Results {
    camera: Arc<Camera>,
    watched: Arc<Watched>,
    outlets: Outlets,
    /// Whether its property `line-scan` is on is asked. Weak, because its pad owns this value.
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
        (analyzer, pad): (&gst::Element, &gst::Pad),
        pipeline: &gst::Pipeline,
        camera: &Arc<Camera>,
        watched: &Arc<Watched>,
        outlets: &Outlets,
    ) {
        let results = Self {
            camera: camera.clone(),
            watched: watched.clone(),
            outlets: outlets.clone(),
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
                    results.watched.leave();
                }
                Some(gst::PadProbeData::Event(event)) => results.event(event),
                _ => {}
            }
            gst::PadProbeReturn::Ok
        });
    }

    fn stream(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn event(&self, event: &gst::Event) {
        match event.view() {
            gst::EventView::Caps(caps) => {
                let mut stream = self.stream();
                stream.info = gst_video::VideoInfo::from_caps(caps.caps()).ok();
                stream.caps = Some(caps.caps_owned());
            }
            gst::EventView::Segment(segment) => {
                self.stream().segment = segment.segment().clone().downcast().ok();
            }
            _ => {}
        }
    }

    fn buffer(&self, buffer: &gst::Buffer, now: Option<gst::ClockTime>) {
        let segment = self.stream().segment.clone();
        let segment = segment.as_ref();
        let time = time::iso_8601(time::captured(buffer, segment, now));
        let captured = segment.and_then(|segment| segment.to_running_time(buffer.pts()));
        let latency = now
            .zip(captured)
            .and_then(|(now, then)| now.checked_sub(then));
        let latency = latency.map(Duration::from);
        let Some(report) = Report::of(buffer, Some(&self.camera.name), time) else {
            return;
        };
        let report = Arc::new(report);
        self.count(&report, latency);
        self.keep(&report);
        self.keep_bins(buffer);
        if !self.watched.is_over.load(Relaxed) {
            self.camera.report.send_replace(Some(report.clone()));
        }
        self.outlets.publishers.offer(&report);
        let (caps, info) = {
            let stream = self.stream();
            (stream.caps.clone(), stream.info.clone())
        };
        if let Some(caps) = caps {
            self.outlets.pictures.offer(buffer, &caps, &report);
        }
        if let (Some(recorder), Some(info)) = (&self.outlets.recorder, info) {
            recorder.frame(buffer, &info, &report);
        }
    }

    fn count(&self, report: &Report, latency: Option<Duration>) {
        let counters = &self.camera.counters;
        counters.frames.fetch_add(1, Relaxed);
        if let Some(verdict) = VERDICTS.iter().position(|name| *name == report.verdict) {
            counters.verdicts[verdict].fetch_add(1, Relaxed);
        }
        let limit = self.watched.latency_limit.load(Relaxed);
        if let Some(latency) = latency {
            let seconds = latency.as_secs_f64();
            let bucket = LATENCY_BUCKETS.partition_point(|end| *end < seconds);
            counters.latency[bucket].fetch_add(1, Relaxed);
            let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
            counters.latency_sum.fetch_add(micros, Relaxed);
            if limit > 0 && micros > limit {
                counters.late.fetch_add(1, Relaxed);
            }
        }
        if report.inspections.iter().any(|i| !i.defects.is_empty()) {
            let defects = counters.defects.lock();
            let mut defects = defects.unwrap_or_else(PoisonError::into_inner);
            for defect in report.inspections.iter().flat_map(|i| &i.defects) {
                add(&mut defects, &defect.class);
            }
        }
    }

    fn keep(&self, report: &Report) {
        let minute = (SystemTime::now().duration_since(UNIX_EPOCH)).map_or(0, |t| t.as_secs() / 60);
        let is_web = self.is_web();
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
            while history.roll.len() > ROLL_MARKS {
                history.roll.pop_front();
            }
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
            let mut stream = self.stream();
            if (stream.bins_taken).is_some_and(|taken| taken.elapsed() < BINS_INTERVAL) {
                return;
            }
            stream.bins_taken = Some(Instant::now());
        }
        let Some(histogram) = HistogramResult::read(buffer).pop() else {
            return;
        };
        let each = (histogram.bins as usize).div_ceil(BINS).max(1);
        let channels = 0..histogram.statistics.len();
        let bins = channels.filter_map(|channel| {
            let counts = histogram.channel(channel)?;
            let sum = |bins: &[u32]| bins.iter().map(|&count| u64::from(count)).sum();
            Some(counts.chunks(each).map(sum).collect())
        });
        self.camera.history().bins = bins.collect();
    }
}

/// Counts a defect without a new string for a class that is known.
fn add(counts: &mut std::collections::BTreeMap<String, u64>, class: &str) {
    match counts.get_mut(class) {
        Some(count) => *count += 1,
        None => {
            counts.insert(class.to_owned(), 1);
        }
    }
}

/// Watches the pad behind the source, and counts the frames that the source lost. Without a number on each
/// frame a gap between timestamps counts, unless a trigger gives the frames (`is_triggered`).
pub fn watch_source(pad: &gst::Pad, camera: &Arc<Camera>, is_triggered: bool) {
    let camera = camera.clone();
    let last = Mutex::new(Gaps::default());
    let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
    pad.add_probe(kinds, move |_, info| {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        match &info.data {
            Some(gst::PadProbeData::Buffer(buffer)) => {
                let lost = last.before(buffer, is_triggered);
                camera.counters.lost.fetch_add(lost, Relaxed);
            }
            Some(gst::PadProbeData::Event(event)) => {
                if let gst::EventView::Caps(caps) = event.view() {
                    let info = gst_video::VideoInfo::from_caps(caps.caps()).ok();
                    let rate = info.map(|info| info.fps());
                    let rate = rate.filter(|rate| rate.numer() > 0 && rate.denom() > 0);
                    last.period =
                        rate.map(|rate| 1e9 * f64::from(rate.denom()) / f64::from(rate.numer()));
                }
            }
            _ => {}
        }
        gst::PadProbeReturn::Ok
    });
}

/// The frame before, to find frames that are missing after it.
#[derive(Default)]
struct Gaps {
    /// Time between two frames, ns, if the caps say so.
    period: Option<f64>,
    pts: Option<gst::ClockTime>,
    /// The number that the next frame should have.
    next: Option<u64>,
    has_frames: bool,
}

impl Gaps {
    /// Frames that are missing before this one.
    fn before(&mut self, buffer: &gst::BufferRef, is_triggered: bool) -> u64 {
        let (offset, pts) = (buffer.offset(), buffer.pts());
        // Sources that number frames set both; others count bytes.
        let is_number = offset < u64::MAX - 1 && buffer.offset_end() == offset + 1;
        let missing = match (is_number, self.next, self.pts.zip(pts), self.period) {
            (true, Some(next), ..) => offset.saturating_sub(next),
            (false, _, Some((last, pts)), Some(period)) if !is_triggered => {
                let gap = pts.saturating_sub(last).nseconds() as f64;
                // Timestamps tremble, so half a period is not missing yet.
                (gap / period).round() as u64
            }
            .saturating_sub(1),
            _ => 0,
        };
        let torn = gst::BufferFlags::DISCONT | gst::BufferFlags::GAP;
        let is_torn = self.has_frames && buffer.flags().intersects(torn);
        self.next = is_number.then(|| offset + 1);
        self.pts = pts;
        self.has_frames = true;
        missing.max(is_torn.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(pts_ms: u64, number: Option<u64>, flags: gst::BufferFlags) -> gst::Buffer {
        let mut buffer = gst::Buffer::new();
        if let Some(buffer) = buffer.get_mut() {
            buffer.set_pts(gst::ClockTime::from_mseconds(pts_ms));
            buffer.set_flags(flags);
            if let Some(number) = number {
                buffer.set_offset(number);
                buffer.set_offset_end(number + 1);
            }
        }
        buffer
    }

    fn lost(frames: &[gst::Buffer], is_triggered: bool) -> u64 {
        let mut gaps = Gaps {
            period: Some(40e6),
            ..Gaps::default()
        };
        let lost = frames.iter().map(|frame| gaps.before(frame, is_triggered));
        lost.sum()
    }

    #[test]
    fn lost_frames_are_counted_by_number_else_by_time_else_by_flag() {
        let none = gst::BufferFlags::empty();
        let discont = gst::BufferFlags::DISCONT;
        gst::init().unwrap_or_else(|error| eprintln!("{error}"));
        let numbered = [(0, 5), (40, 6), (500, 7), (540, 10)];
        let numbered = numbered.map(|(pts, number)| frame(pts, Some(number), none));
        assert_eq!(
            lost(&numbered, false),
            2,
            "7 to 10 lacks two; time does not count"
        );
        let timed = [0, 40, 79, 121, 240].map(|pts| frame(pts, None, none));
        assert_eq!(lost(&timed, false), 2, "121 to 240 ms lacks two");
        assert_eq!(lost(&timed, true), 0, "a trigger has no period");
        let flagged = [frame(0, None, discont), frame(40, None, discont)];
        assert_eq!(
            lost(&flagged, false),
            1,
            "the first frame begins the stream"
        );
    }
}
