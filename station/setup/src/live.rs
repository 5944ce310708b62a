//! The thread of a draft: looks at frames, judges them with the draft's settings, and collects those that teach.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use plan::{CameraConfig, Source};
use run::{
    frame::{Frame, PICTURE_WIDTH},
    pipeline::bins_of,
    trial::{Trial, TrialResult},
};
use serde_json::{Value, json};

use super::{
    draft::{Shared, State},
    feed::Feed,
    focus::focus,
    words::of_the_page,
};

/// A page that has not asked for this long does not look.
const LOOKS: Duration = Duration::from_secs(8);
/// Least time between two frames: more are no help to people, and cost the running cameras their device.
const PACE: Duration = Duration::from_millis(100);
/// Longest wait for a frame before the page is told that none comes.
const FRAME_WITHIN: Duration = Duration::from_secs(2);
/// A frame older than this is not judged again.
const FRESH: Duration = Duration::from_secs(1);
/// Said while the first trial is made.
const STARTS: &str = "the inspection starts; a first start compiles kernels";
/// Pause after a failure.
const PAUSE: Duration = Duration::from_millis(1500);
/// Frames whose pictures can be asked for.
const KEPT: usize = 3;
/// Defects that the page gets; it says that there are more.
const DEFECTS: usize = 200;

/// A frame that was judged, or a problem.
pub struct Live {
    /// Counts on, from 1.
    pub n: u64,
    /// The answer for the page.
    pub answer: Value,
    /// The frame as JPEG; empty with a problem.
    pub picture: Vec<u8>,
    /// Marked pixels as PNG; empty without marks.
    pub mask: Vec<u8>,
    /// The frame itself.
    pub frame: Option<Arc<Frame>>,
}

/// The frames of the source that the settings name.
#[derive(Default)]
struct OpenSource {
    of: Option<(Option<String>, Source)>,
    feed: Option<Feed>,
    /// The newest frame, and when it came.
    last: Option<(Instant, Arc<Frame>)>,
    /// Whether the controls of the camera are known. Each question to a network camera takes some milliseconds.
    has_controls: bool,
}

/// The inspection of a draft, as far as it is made.
#[derive(Default)]
struct Bench {
    trial: Option<Trial>,
    /// The revision of the settings that judged last, or was refused last.
    revision: Option<u64>,
    /// The revision of the draft's files, which elements read at their start.
    files: u64,
}

/// Runs until the draft is over.
pub(super) fn run(shared: &Arc<Shared>) {
    let mut source = OpenSource::default();
    let mut bench = Bench::default();
    while !shared.is_over.load(Relaxed) {
        let is_taught = shared.state().teach.is_collecting();
        if shared.is_released() || (!is_taught && !shared.is_looked_at(LOOKS)) {
            // A camera of the draft's own is given back meanwhile.
            (source, bench) = (OpenSource::default(), Bench::default());
            shared.has_own.store(false, Relaxed);
            shared.wait(Duration::from_millis(500), |_| false);
            continue;
        }
        let started = Instant::now();
        let live = match next(shared, &mut source, bench.revision) {
            Ok(frame) => {
                shared.remember(&frame);
                shared.collect(&frame);
                judge(shared, &mut bench, &frame)
            }
            Err(why) => {
                source.feed = None;
                problem(&why, None)
            }
        };
        let is_own = matches!(source.feed, Some(Feed::Own(_)));
        shared.has_own.store(is_own, Relaxed);
        let is_problem = live.answer.get("problem").is_some_and(|of| !of.is_null());
        shared.show(live);
        let pause = if is_problem { PAUSE } else { PACE };
        // A change of the settings is seen at once.
        let left = pause.saturating_sub(started.elapsed());
        shared.wait(left, |state| {
            bench.revision.is_some_and(|of| of != state.revision)
        });
    }
    shared.has_own.store(false, Relaxed);
}

impl Shared {
    /// Waits so long, or until `is_over` holds, or until the draft ends or gives its camera back.
    fn wait(&self, limit: Duration, is_over: impl Fn(&State) -> bool) {
        let until = Instant::now() + limit;
        let waits = |state: &State| !is_over(state) && !self.is_over.load(Relaxed);
        drop(self.state.wait_while(self.state(), until, waits));
    }
}

impl Shared {
    fn show(&self, mut live: Live) {
        self.live.send_modify(|list| {
            let n = list.back().map_or(1, |newest| newest.n + 1);
            live.n = n;
            live.answer["n"] = n.into();
            list.push_back(Arc::new(live));
            if list.len() > KEPT {
                list.pop_front();
            }
        });
    }
}

/// The next frame of the source that is chosen. After a change of the settings, `judged` is an older revision: the frame
/// before is judged again, so that nobody waits for the camera.
fn next(
    shared: &Shared,
    source: &mut OpenSource,
    judged: Option<u64>,
) -> Result<Arc<Frame>, String> {
    let (config, running, is_chosen, revision) = {
        let state = shared.state();
        let of = (state.config.clone(), state.running.clone());
        (of.0, of.1, state.choice.is_some(), state.revision)
    };
    if !is_chosen {
        return Err("choose a camera".to_owned());
    }
    let wanted = match (&running, &config) {
        (Some(camera), _) => (
            Some(camera.name.clone()),
            Source::Description(String::new()),
        ),
        (None, Some(config)) => (None, config.source.clone()),
        (None, None) => return Err("correct the settings first".to_owned()),
    };
    if source.of.as_ref() == Some(&wanted)
        && judged.is_some_and(|judged| judged != revision)
        && let Some((came, last)) = &source.last
        && came.elapsed() < FRESH
    {
        return Ok(last.clone());
    }
    if let (Some((None, of)), Some(Feed::Own(own))) = (&mut source.of, &source.feed)
        && *of != wanted.1
        && own.set_controls(of, &wanted.1)?
    {
        *of = wanted.1.clone();
        source.has_controls = false;
    }
    if source.of.as_ref() != Some(&wanted) || source.feed.is_none() {
        // Two sources cannot have one camera open.
        source.feed = None;
        source.of = Some(wanted);
        source.has_controls = false;
        // Before it is opened: who wants the camera back waits from now on.
        shared.has_own.store(running.is_none(), Relaxed);
        source.feed = Some(match (running, config) {
            (Some(camera), _) => Feed::Running(camera),
            (None, Some(config)) => Feed::own(&config)?,
            (None, None) => return Err("choose a camera".to_owned()),
        });
    }
    let feed = source.feed.as_ref().ok_or("choose a camera")?;
    let frame = feed.next(FRAME_WITHIN)?;
    if !std::mem::replace(&mut source.has_controls, frame.is_some()) {
        let controls = match feed {
            Feed::Own(own) => own.controls(),
            Feed::Running(_) => Value::Null,
        };
        shared.state().controls = controls;
    }
    let none = || format!("no frame has come for {} s", FRAME_WITHIN.as_secs());
    let frame = frame.ok_or_else(none)?;
    source.last = Some((Instant::now(), frame.clone()));
    Ok(frame)
}

fn judge(shared: &Shared, bench: &mut Bench, frame: &Arc<Frame>) -> Live {
    let (config, revision, changed, files) = {
        let state = shared.state();
        let of = (state.config.clone(), state.revision);
        (of.0, of.1, state.changed, state.files)
    };
    let Some(config) = config else {
        return problem("correct the settings first", Some(frame));
    };
    if bench.files != files {
        (bench.files, bench.trial) = (files, None);
    }
    let is_first = bench.revision != Some(revision);
    if bench.trial.is_none() && is_first {
        // The page shows the picture meanwhile.
        shared.show(problem(STARTS, Some(frame)));
    }
    let judged = judged(bench, &config, revision, frame);
    bench.revision = Some(revision);
    match judged {
        Ok((judged, estimates)) => {
            let milliseconds = is_first.then(|| changed.elapsed().as_secs_f64() * 1e3);
            let mut answer = answer(frame, &judged);
            answer["milliseconds"] = milliseconds.into();
            answer["revision"] = revision.into();
            answer["estimates"] = estimates;
            answer["rate"] = rate(shared, frame).into();
            // Without it the page shows the boxes of the defects.
            let mask = judged.mask.png().unwrap_or_default();
            Live {
                n: 0,
                answer,
                picture: picture(frame),
                mask,
                frame: Some(frame.clone()),
            }
        }
        Err(why) => {
            bench.trial = None;
            problem(&why, Some(frame))
        }
    }
}

/// The frame's results under the settings of this revision.
fn judged(
    bench: &mut Bench,
    config: &CameraConfig,
    revision: u64,
    frame: &Arc<Frame>,
) -> Result<(TrialResult, Value), String> {
    let trial = match &mut bench.trial {
        Some(trial) => {
            if bench.revision != Some(revision) {
                trial.change(config)?;
            }
            trial
        }
        none => none.insert(Trial::start(config, frame.info())?),
    };
    let judged = trial.judge(frame)?;
    Ok((judged, json!(trial.estimates())))
}

/// Frames per second of the camera; 0 if neither its inspection nor its caps tell.
fn rate(shared: &Shared, frame: &Frame) -> f64 {
    let state = shared.state();
    if let Some(camera) = &state.running {
        return camera.history().frame_rate;
    }
    let rate = frame.rate();
    f64::from(rate.numer()) / f64::from(rate.denom().max(1))
}

fn picture(frame: &Frame) -> Vec<u8> {
    // Without a picture the page shows the numbers.
    frame.jpeg(PICTURE_WIDTH).unwrap_or_default()
}

/// The frame without a verdict, and why.
fn problem(why: &str, frame: Option<&Arc<Frame>>) -> Live {
    let size = frame.map(|frame| [frame.info().width(), frame.info().height()]);
    Live {
        n: 0,
        answer: json!({
                "problem": why,
            "width": size.map(|size| size[0]),
            "height": size.map(|size| size[1]),
            "focus": frame.and_then(|frame| focus(frame)),
        }),
        picture: frame.map(|frame| picture(frame)).unwrap_or_default(),
        mask: Vec::new(),
        frame: frame.cloned(),
    }
}

fn answer(frame: &Frame, judged: &TrialResult) -> Value {
    let report = &judged.report;
    let defects: Vec<_> = report
        .inspections
        .iter()
        .flat_map(|of| &of.defects)
        .collect();
    let histogram = judged.histogram.as_ref().map(|histogram| {
        json!({ "bins": bins_of(histogram), "channels": report.histograms.first().map(|of| &of.channels), "format": histogram.format.as_str() })
    });
    let channels = report.histograms.first().map_or(&[][..], |of| &of.channels);
    let saturated = channels
        .iter()
        .map(|of| of.saturated_high)
        .fold(0.0, f64::max);
    json!({
        "problem": null,
        "warning": judged.warning.as_deref().map(|of| of_the_page(of, |_| None)),
        "width": frame.info().width(),
        "height": frame.info().height(),
        "format": frame.info().format().to_str().as_str(),
        "verdict": report.verdict,
        "defects": &defects[..defects.len().min(DEFECTS)],
        "parts": report.parts(),
        "defect_count": defects.len(),
        "counts": report.inspections.last().map(|of| &of.counts),
        "overflow": report.inspections.iter().any(|of| of.overflow) || defects.len() > DEFECTS,
        "training": report.training(),
        "learning": report.learning(),
        "histogram": histogram,
        "saturated": saturated,
        "focus": focus(frame),
    })
}
