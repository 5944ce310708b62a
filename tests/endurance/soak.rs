//! A live pipeline with a chain per element runs for minutes. Properties change at random, and the
//! pipeline restarts. Every frame must arrive; memory and latency must not grow.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use gst::prelude::*;
use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;

use crate::{
    device::say,
    latency::Latencies,
    resources::{Trend, alone},
    setting,
    support::{Pipeline, faults, is_compiling, start},
};

const BRANCHES: [&str; 5] = [
    "clgaussian",
    "clhistogram",
    "clpitchthreshold PUBLISHED pitch-x=8",
    "clgaussian ! clhistogram ! clpitchthreshold PUBLISHED pitch-x=8 ! clmaskunpack",
    "clhistogram ! clpitchthreshold PUBLISHED pitch-x=8 output=frame ! inspectoverlay",
];
/// Values that are valid in any combination, for frames of 256x200.
const CHANGES: [(&str, &str, &[&str]); 23] = [
    ("clgaussian", "kernel-size", &["3", "5", "7", "9"]),
    ("clgaussian", "sigma", &["0", "0.8", "2.5"]),
    ("clgaussian", "arithmetic", &["integer", "float"]),
    ("clhistogram", "bins", &["16", "64", "256"]),
    ("clhistogram", "roi", &["<0,0,0,0>", "<3,1,100,80>"]),
    ("clhistogram", "strategy", &["auto", "private", "local"]),
    (
        "clhistogram",
        "reports",
        &["reports", "reports,interval=0", "reports,message-bins=true"],
    ),
    ("clpitchthreshold", "pitch-x", &["4", "7.35", "16"]),
    ("clpitchthreshold", "pitch-y", &["0", "5.5"]),
    ("clpitchthreshold", "threshold", &["5", "40.5", "200"]),
    ("clpitchthreshold", "compare", &["average", "minimum"]),
    ("clpitchthreshold", "match-center", &["false", "true"]),
    ("clpitchthreshold", "multiples", &["<1>", "<1,2>"]),
    ("clpitchthreshold", "polarity", &["both", "dark"]),
    ("clpitchthreshold", "borders", &["inward", "skip"]),
    ("clpitchthreshold", "edge-margin", &["0", "2"]),
    ("clpitchthreshold", "min-contrast", &["0", "5"]),
    ("clpitchthreshold", "rois", &["<>", "<<10,10,200,150>>"]),
    ("clpitchthreshold", "merge-distance", &["0", "3"]),
    (
        "clpitchthreshold",
        "limits",
        &["limits,max-defects=0", "limits"],
    ),
    ("inspectoverlay", "show-histogram", &["true", "false"]),
    ("inspectoverlay", "scale", &["0.5", "2"]),
    ("inspectoverlay", "max-boxes", &["0", "200"]),
];
const CAPS: &str = "video/x-raw,format=GRAY8,width=256,height=200";
/// Interval between two changes of a property.
const STEP: Duration = Duration::from_millis(40);
/// Duration of a session between two restarts, s.
const SESSION_S: std::ops::Range<f64> = 4.0..12.0;
const STOP_LIMIT: Duration = Duration::from_secs(2);
const DRAIN_LIMIT: gst::ClockTime = gst::ClockTime::from_seconds(20);
/// While playing, memory depends on frames in flight and settings, so a slope needs many frames.
const LONG_RUN: u64 = 100_000;
const SLOPE_LIMIT_KIB: f64 = 16.0;
/// Growth from stop to stop, over the second half of a run.
const STOPPED_LIMIT_KIB: i64 = 256;
/// In a short run each half has only a few sessions, and memory depends on their settings.
const LATENCY_RATIO_LIMITS: [f64; 2] = [3.0, 1.5];

/// Properties that select programs and launch shapes. The run begins with every combination, because
/// drivers keep compiled code.
const WARM_UP: [(&str, &[&str]); 3] = [
    ("clgaussian", &["kernel-size", "sigma", "arithmetic"]),
    ("clhistogram", &["bins", "roi", "strategy"]),
    (
        "clpitchthreshold",
        &["pitch-x", "pitch-y", "compare", "multiples", "rois"],
    ),
];
const COMBINATIONS: usize = 48;
/// Then come sessions with fast changes: heap fragmentation grows for some thousands of changes and
/// restarts before it is stable.
const QUICK_SESSIONS: usize = 10;
const QUICK_SESSION: Duration = Duration::from_secs(3);
const QUICK_STEP: Duration = Duration::from_millis(4);

/// The record of a run.
#[derive(Default)]
struct Record {
    /// Frames that left the source, in all sessions.
    sent: AtomicU64,
    /// Frames that reached the end of each branch.
    received: [AtomicU64; BRANCHES.len()],
    /// Frames in flight by timestamp: the time they left the source, and their branches.
    under_way: Mutex<HashMap<u64, (Instant, usize)>>,
    latencies: Mutex<Latencies>,
}

impl Record {
    fn leaves_source(&self, buffer: &gst::BufferRef) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let time = buffer
            .pts()
            .expect("live frames have timestamps")
            .nseconds();
        let entry = (Instant::now(), BRANCHES.len());
        let before = self.under_way.lock().unwrap().insert(time, entry);
        assert!(before.is_none(), "two frames at {time} ns");
    }

    fn reaches_end(&self, branch: usize, buffer: &gst::BufferRef) {
        self.received[branch].fetch_add(1, Ordering::Relaxed);
        let time = buffer.pts().map_or(u64::MAX, gst::ClockTime::nseconds);
        let mut under_way = self.under_way.lock().unwrap();
        // A frame that never left the source, or arrived twice.
        let Some((since, branches)) = under_way.get_mut(&time) else {
            drop(under_way);
            self.received[branch].fetch_add(1 << 32, Ordering::Relaxed);
            return;
        };
        let took = since.elapsed();
        *branches -= 1;
        if *branches == 0 {
            under_way.remove(&time);
        }
        drop(under_way);
        self.latencies.lock().unwrap().add(took);
    }
}

fn watch(pad: &gst::Pad, look: impl Fn(&gst::BufferRef) + Send + Sync + 'static) {
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        look(info.buffer().expect("a buffer probe"));
        gst::PadProbeReturn::Ok
    });
}

fn build(source: &str, seen: &Arc<Record>) -> Pipeline {
    let branches: Vec<String> = BRANCHES
        .iter()
        .enumerate()
        .map(|(i, line)| {
            format!("t. ! queue max-size-buffers=8 ! {line} ! fakesink name=end{i} sync=false")
        })
        .collect();
    let pipeline = Pipeline::new(&format!("{source} ! tee name=t {}", branches.join(" ")));
    let sent = seen.clone();
    let tee: gst::Element = pipeline.get("t");
    watch(&tee.static_pad("sink").unwrap(), move |buffer| {
        sent.leaves_source(buffer);
    });
    for branch in 0..BRANCHES.len() {
        let end: gst::Element = pipeline.get(&format!("end{branch}"));
        let received = seen.clone();
        watch(&end.static_pad("sink").unwrap(), move |buffer| {
            received.reaches_end(branch, buffer);
        });
    }
    pipeline
}

/// The elements of a factory.
fn made_by(pipeline: &Pipeline, factory: &str) -> Vec<gst::Element> {
    pipeline
        .iterate_recurse()
        .into_iter()
        .flatten()
        .filter(|element| element.factory().is_some_and(|f| f.name() == factory))
        .collect()
}

/// Sets every combination that needs a compilation.
fn warm_up(pipeline: &Pipeline) {
    for number in 0..COMBINATIONS {
        for (factory, properties) in WARM_UP {
            let mut rest = number;
            for property in properties {
                let known = CHANGES.iter().find(|c| c.0 == factory && c.1 == *property);
                let values = known.expect("a property that changes").2;
                for element in made_by(pipeline, factory) {
                    element.set_property_from_str(property, values[rest % values.len()]);
                }
                rest /= values.len();
            }
        }
        std::thread::sleep(2 * STEP);
        while is_compiling() {
            std::thread::sleep(STEP);
        }
    }
}

/// Sets a random property of a random element; returns a description.
fn change(pipeline: &Pipeline, random: &mut ChaCha8Rng) -> String {
    let (factory, property, values) = CHANGES.choose(random).unwrap();
    let elements = made_by(pipeline, factory);
    let element = elements.choose(random).unwrap();
    let value = values.choose(random).unwrap();
    element.set_property_from_str(property, value);
    format!("{}: {property}={value}", element.name())
}

/// Changes properties for a while; returns the errors and warnings.
fn play(
    pipeline: &Pipeline,
    until: Instant,
    step: Duration,
    random: &mut ChaCha8Rng,
) -> (u64, Vec<String>) {
    let bus = pipeline.bus().unwrap();
    let mut changes = 0;
    let mut trouble = Vec::new();
    while Instant::now() < until && trouble.is_empty() {
        let last = change(pipeline, random);
        changes += 1;
        std::thread::sleep(step);
        for kind in [gst::MessageType::Error, gst::MessageType::Warning] {
            let found = faults(&bus, kind);
            trouble.extend(found.iter().map(|f| format!("after {last}: {f:?}")));
        }
        while bus.pop().is_some() {}
    }
    (changes, trouble)
}

/// Waits for the frames in flight, and stops; returns the duration of the stop.
fn drain_and_stop(pipeline: &Pipeline, seen: &Record, what: &str) -> Duration {
    pipeline.send_event(gst::event::Eos::new());
    let kinds = [gst::MessageType::Eos, gst::MessageType::Error];
    let last = pipeline
        .bus()
        .unwrap()
        .timed_pop_filtered(DRAIN_LIMIT, &kinds);
    let last = last.map(|message| message.type_());
    assert_eq!(last, Some(gst::MessageType::Eos), "{what}: the end");
    let stopping = Instant::now();
    pipeline.set_state(gst::State::Null).unwrap();
    // Timestamps restart.
    seen.under_way.lock().unwrap().clear();
    stopping.elapsed()
}

/// Runs for the minutes given in the environment.
fn soak(name: &str, source: &str) {
    let _alone = alone();
    if start().is_none() {
        return;
    }
    let minutes = setting("CLINSPECT_SOAK_MINUTES", 3);
    let seed = setting("CLINSPECT_SOAK_SEED", 1) as u64;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let seen = Arc::new(Record::default());
    let what = format!("{name}, seed {seed}");
    let pipeline = build(source, &seen);
    for session in 0..QUICK_SESSIONS {
        pipeline.set_state(gst::State::Playing).unwrap();
        if session == 0 {
            warm_up(&pipeline);
        }
        let until = Instant::now() + QUICK_SESSION;
        let (_, trouble) = play(&pipeline, until, QUICK_STEP, &mut random);
        assert!(trouble.is_empty(), "{what}: {trouble:?}");
        drain_and_stop(&pipeline, &seen, &what);
    }
    *seen.latencies.lock().unwrap() = Latencies::default();
    let begin = Instant::now();
    let end = begin + Duration::from_secs(60 * minutes as u64);
    let (mut trend, mut stopped) = (Trend::default(), Trend::default());
    let (mut sessions, mut changes) = (0, 0);
    let mut slowest_stop = Duration::ZERO;
    while Instant::now() < end {
        pipeline.set_state(gst::State::Playing).unwrap();
        let until = Instant::now() + Duration::from_secs_f64(random.random_range(SESSION_S));
        while Instant::now() < until {
            let next = until.min(Instant::now() + Duration::from_secs(2));
            let (made, trouble) = play(&pipeline, next, STEP, &mut random);
            changes += made;
            assert!(trouble.is_empty(), "{what}: {trouble:?}");
            trend.add(seen.sent.load(Ordering::Relaxed));
        }
        if Instant::now() > begin + (end - begin) / 2 {
            seen.latencies.lock().unwrap().begin_second_half();
        }
        slowest_stop = slowest_stop.max(drain_and_stop(&pipeline, &seen, &what));
        stopped.add(seen.sent.load(Ordering::Relaxed));
        sessions += 1;
    }
    let sent = seen.sent.load(Ordering::Relaxed);
    let received = seen.received.each_ref().map(|n| n.load(Ordering::Relaxed));
    let lost: i64 = received
        .iter()
        .map(|&n| (sent as i64 - n as i64).abs())
        .sum();
    let is_long = sent >= LONG_RUN;
    let (growth, while_stopped) = (trend.growth(0.2), stopped.growth(0.5));
    let [first, second] = seen.latencies.lock().unwrap().p99_us();
    let good = lost == 0
        && sent > 100 * minutes as u64
        && (!is_long || growth.rss_slope <= SLOPE_LIMIT_KIB)
        && (while_stopped.rss_slope <= SLOPE_LIMIT_KIB
            || while_stopped.rss_kib <= STOPPED_LIMIT_KIB)
        && growth.most_fds <= 0
        && growth.most_threads <= 0
        && second <= LATENCY_RATIO_LIMITS[usize::from(is_long)] * first
        && slowest_stop <= STOP_LIMIT;
    say(&format!(
        "{} soak {name}: {minutes} min, seed {seed}, {sent} frames through {} branches, {lost} \
         lost, {sessions} sessions, {changes} changes of properties; RSS {:.1} KiB per 10 000 \
         frames, {:+} KiB from stop to stop, fds {:+}, threads {:+}; p99 {:.2} ms in the first \
         half, {:.2} ms in the second; slowest stop {:.3} s",
        if good { "PASS" } else { "FAIL" },
        BRANCHES.len(),
        growth.rss_slope,
        while_stopped.rss_kib,
        growth.most_fds,
        growth.most_threads,
        first / 1e3,
        second / 1e3,
        slowest_stop.as_secs_f64(),
    ));
    say(&format!(
        "  frames and KiB over time: {:?}; while stopped: {:?}",
        trend.rss(),
        stopped.rss()
    ));
    assert!(good, "{growth:?}, {while_stopped:?}, received {received:?}");
}

#[test]
#[ignore = "takes minutes: scripts/soak"]
fn soak_of_the_simulated_camera() {
    let source = format!("aravissrc camera-name=Aravis-Fake-GV01 ! {CAPS},framerate=100/1");
    soak("camera", &source);
}

#[test]
#[ignore = "takes minutes: scripts/soak"]
fn soak_of_a_source_as_fast_as_the_elements() {
    soak(
        "fast",
        &format!("videotestsrc pattern=ball ! {CAPS},framerate=1000/1"),
    );
}
