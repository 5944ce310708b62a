//! The thread of a draft: looks at frames, judges them with the draft's settings, and collects those that teach.

use std::{
    sync::{Arc, PoisonError, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{draft::Shared, feed::Feed, focus::focus};
use crate::{
    config::CameraConfig,
    frame::Frame,
    source::Source,
    trial::{Judged, Trial},
};

/// A page that has not asked for this long does not look.
const LOOKS: Duration = Duration::from_secs(8);
/// Least time between two frames: more are no help to people, and cost the running cameras their device.
const PACE: Duration = Duration::from_millis(100);
/// Longest wait for a frame before the page is told that none comes.
const FRAME_WITHIN: Duration = Duration::from_secs(2);
/// Pause after a failure.
const PAUSE: Duration = Duration::from_millis(1500);
/// Width of the pictures, px.
const WIDTH: u32 = 1280;
/// Most bins of the histogram.
const BINS: usize = 64;
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
struct Opened {
    of: Option<(Option<String>, Source)>,
    feed: Option<Feed>,
}

/// Runs until the draft is over.
pub(super) fn run(shared: &Arc<Shared>) {
    let mut source = Opened {
        of: None,
        feed: None,
    };
    let mut trial: Option<(u64, Trial)> = None;
    while !shared.is_over.load(Relaxed) {
        let is_taught = shared.state().teach.is_collecting();
        if !is_taught && !shared.is_looked_at(LOOKS) {
            // A camera of the draft's own is given back meanwhile.
            source = Opened {
                of: None,
                feed: None,
            };
            trial = None;
            let state = shared.state();
            drop(
                shared
                    .wake
                    .wait_timeout(state, Duration::from_secs(1))
                    .unwrap_or_else(PoisonError::into_inner),
            );
            continue;
        }
        let started = Instant::now();
        let live = match next(shared, &mut source) {
            Ok(frame) => {
                shared.remember(&frame);
                shared.collect(&frame);
                judge(shared, &mut trial, &frame)
            }
            Err(why) => {
                source.feed = None;
                problem(&why, None)
            }
        };
        let is_problem = live.answer.get("problem").is_some_and(|of| !of.is_null());
        shared.show(live);
        let pause = if is_problem { PAUSE } else { PACE };
        let until = started + pause;
        // A change of the settings is seen at once.
        let revision = shared.state().revision;
        while Instant::now() < until && !shared.is_over.load(Relaxed) {
            let state = shared.state();
            if state.revision != revision {
                break;
            }
            let left = until.saturating_duration_since(Instant::now());
            drop(
                shared
                    .wake
                    .wait_timeout(state, left)
                    .unwrap_or_else(PoisonError::into_inner),
            );
        }
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

/// The next frame of the source that is chosen.
fn next(shared: &Shared, source: &mut Opened) -> Result<Arc<Frame>, String> {
    let (config, running, is_chosen) = {
        let state = shared.state();
        (
            state.config.clone(),
            state.running.clone(),
            state.choice.is_some(),
        )
    };
    if !is_chosen {
        return Err("choose a camera".to_owned());
    }
    let is_own = running.is_none();
    let wanted = match (&running, &config) {
        (Some(camera), _) => (
            Some(camera.name.clone()),
            Source::Description(String::new()),
        ),
        (None, Some(config)) => (None, config.source.clone()),
        (None, None) => return Err("correct the settings first".to_owned()),
    };
    if let (Some((None, of)), Some(Feed::Own(own))) = (&mut source.of, &source.feed)
        && *of != wanted.1
        && own.set_controls(of, &wanted.1)?
    {
        *of = wanted.1.clone();
    }
    if source.of.as_ref() != Some(&wanted) || source.feed.is_none() {
        // Two sources cannot have one camera open.
        source.feed = None;
        source.of = Some(wanted);
        source.feed = Some(match (running, config) {
            (Some(camera), _) => Feed::Running(camera),
            (None, Some(config)) => Feed::own(&config)?,
            (None, None) => return Err("choose a camera".to_owned()),
        });
    }
    let feed = source.feed.as_ref().ok_or("choose a camera")?;
    let frame = feed.next(FRAME_WITHIN)?;
    if is_own && let Feed::Own(own) = feed {
        shared.state().controls = own.controls();
    }
    frame.ok_or_else(|| format!("no frame has come for {} s", FRAME_WITHIN.as_secs()))
}

fn judge(shared: &Shared, trial: &mut Option<(u64, Trial)>, frame: &Arc<Frame>) -> Live {
    let (config, revision, changed) = {
        let state = shared.state();
        (state.config.clone(), state.revision, state.changed)
    };
    let Some(config) = config else {
        return problem("correct the settings first", Some(frame));
    };
    if trial.is_none() {
        // The page shows the picture meanwhile.
        shared.show(problem(
            "the inspection starts; a first start compiles kernels",
            Some(frame),
        ));
    }
    let is_first = trial.as_ref().is_none_or(|(of, _)| *of != revision);
    match judged(trial, &config, revision, frame) {
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
            *trial = None;
            problem(&why, Some(frame))
        }
    }
}

/// The frame's results under the settings of this revision.
fn judged(
    trial: &mut Option<(u64, Trial)>,
    config: &CameraConfig,
    revision: u64,
    frame: &Arc<Frame>,
) -> Result<(Judged, Value), String> {
    let trial = match trial {
        Some((of, trial)) => {
            if *of != revision {
                trial.change(config)?;
                *of = revision;
            }
            trial
        }
        None => {
            &mut trial
                .insert((revision, Trial::start(config, frame.info())?))
                .1
        }
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
    let rate = frame.info().fps();
    f64::from(rate.numer()) / f64::from(rate.denom().max(1))
}

fn picture(frame: &Frame) -> Vec<u8> {
    // Without a picture the page shows the numbers.
    frame.jpeg(WIDTH).unwrap_or_default()
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

fn answer(frame: &Frame, judged: &Judged) -> Value {
    let report = &judged.report;
    let defects: Vec<_> = report
        .inspections
        .iter()
        .flat_map(|of| &of.defects)
        .collect();
    let histogram = judged.histogram.as_ref().map(|histogram| {
        let each = (histogram.bins as usize).div_ceil(BINS).max(1);
        let bins: Vec<Vec<u64>> = (0..histogram.statistics.len())
            .filter_map(|channel| histogram.channel(channel))
            .map(|counts| counts.chunks(each).map(|of| of.iter().map(|&count| u64::from(count)).sum()).collect())
            .collect();
        json!({ "bins": bins, "channels": report.histograms.first().map(|of| &of.channels), "format": histogram.format.as_str() })
    });
    let channels = report.histograms.first().map_or(&[][..], |of| &of.channels);
    let saturated = channels
        .iter()
        .map(|of| of.saturated_high)
        .fold(0.0, f64::max);
    json!({
        "problem": null,
        "warning": judged.warning,
        "width": frame.info().width(),
        "height": frame.info().height(),
        "format": frame.info().format().to_str().as_str(),
        "verdict": report.verdict,
        "defects": &defects[..defects.len().min(DEFECTS)],
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
