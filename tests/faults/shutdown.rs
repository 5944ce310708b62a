//! Drivers that stall while elements stop, and faults while a live pipeline plays.

use std::time::{Duration, Instant};

use gst::prelude::*;

use crate::{
    layer::{self, Report},
    stand::{Case, Fault, Phase, Stand, Trace, asks_for_times, queued_for_a_processor},
};

/// Duration of a stall, ms, and the time limit of a stop with stalls.
const STALL_MS: u64 = 3000;
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for an error.
const ERROR_LIMIT: Duration = Duration::from_secs(10);

/// The functions of the short run.
const FEW: &[&str] = &["clReleaseMemObject", "clEnqueueUnmapMemObject"];

/// Functions called in a stop, a few or all; each is stalled at every call.
pub fn stalls(healthy: &Trace, few: bool) -> Vec<String> {
    let called = healthy.calls[&Phase::Stop].keys().cloned();
    let chosen = |name: &String| !few || FEW.contains(&&**name);
    called.filter(chosen).collect()
}

/// Stops while `function` stalls, and runs again after the stall.
///
/// # Errors
/// The expectation that failed.
pub fn stall(case: Case, healthy: &Trace, function: &str) -> Result<(), String> {
    let before = Report::now().unwrap_or_default();
    let mut stand = Stand::new(case);
    let trace = stand.live(Some(&Fault {
        phase: Phase::Stop,
        rules: format!("{function} 1+ stall {STALL_MS}"),
        lasting: true,
        keep: false,
    }));
    // The call may be missing: on a GPU releases may happen in the background after the stop, and the times
    // of frames that ended before the stop may have been queried already.
    let unsure = function.starts_with("clRelease") && !runs_on_cpu() || asks_for_times(function);
    if Report::now().unwrap_or_default().faults_since(&before) == 0 && !unsure {
        return Err("the call was not made".into());
    }
    let time = trace.phase_times[&Phase::Stop];
    if time > STOP_LIMIT {
        return Err(format!("NULL took {time:?}"));
    }
    let again = stand.live(None);
    if (&again.frames, &again.errors) != (&healthy.frames, &healthy.errors) {
        return Err(format!(
            "does not recover: {:?} {:?}",
            again.frames, again.errors
        ));
    }
    // The background thread releases the remaining objects.
    let patience = Instant::now() + 4 * STOP_LIMIT;
    loop {
        let left = Report::now().unwrap_or_default().left_since(&before);
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > patience {
            return Err(format!("never released: {left:?}"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

const LIVE: &str = "videotestsrc is-live=true pattern=ball ! \
    video/x-raw,format=GRAY8,width=96,height=48,framerate=50/1 ! queue ! \
    identity drop-allocation=true ! clgaussian ! \
    clhistogram ! queue ! clpitchthreshold pitch-x=8 ! fakesink name=out";

/// Rules that begin while a pipeline plays.
pub const WHILE_PLAYING: &[&str] = &[
    "clWaitForEvents 1+ fail -5",
    "clEnqueueNDRangeKernel 5 fail -5",
    "clEnqueueReadBuffer 3 lose -36",
    "clCreateBuffer 1+ fail -4",
    "clEnqueueNDRangeKernel 2 late -5",
    "* 20+ fail -5",
    "clFlush 1+ stall 3000",
    "clWaitForEvents 1+ stall 3000",
    "clEnqueueReadBuffer 1+ stall 3000",
    "clReleaseEvent 1+ stall 3000",
    "clReleaseMemObject 1+ stall 3000",
];

/// Calls that frames need only on a CPU while playing: on a GPU memory is created at the start, and
/// a blocking read waits for a result.
const CPUS_ONLY: &[&str] = &["clWaitForEvents", "clCreateBuffer"];

/// True if the elements run on a CPU.
fn runs_on_cpu() -> bool {
    clinspect_opencl::open("auto").is_ok_and(|device| device.caps().is_cpu)
}

/// Plays, sets the rules, stops, and plays again.
///
/// # Errors
/// The expectation that failed.
pub fn while_playing(rules: &str) -> Result<(), String> {
    let pipeline = gst::parse::launch(LIVE)
        .unwrap()
        .downcast::<gst::Pipeline>()
        .unwrap();
    let played = play(&pipeline, rules);
    pipeline.set_state(gst::State::Null).unwrap();
    layer::set_rules("");
    played
}

fn play(pipeline: &gst::Pipeline, rules: &str) -> Result<(), String> {
    let before = Report::now().unwrap_or_default();
    let is_made = || Report::now().unwrap_or_default().faults_since(&before) > 0;
    let function = rules.split(' ').next().unwrap();
    let is_unneeded = if CPUS_ONLY.contains(&function) && !runs_on_cpu() {
        Ok(())
    } else {
        Err("the call was not made".to_owned())
    };
    wait_for_frames(pipeline)?;
    layer::set_rules(rules);
    let begun = Instant::now();
    if !rules.contains("stall") {
        let Some(error) = error_within(pipeline, ERROR_LIMIT) else {
            return if is_made() {
                Err("no error".into())
            } else {
                is_unneeded
            };
        };
        if !error.contains("stop and start") {
            return Err(format!("an error that does not say what to do: {error}"));
        }
    } else {
        while !is_made() && begun.elapsed() < Duration::from_millis(500) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let (stopping, queued) = (Instant::now(), queued_for_a_processor());
    pipeline.set_state(gst::State::Null).unwrap();
    let queued = queued_for_a_processor().saturating_sub(queued);
    let time = stopping.elapsed().saturating_sub(queued);
    if time > STOP_LIMIT {
        return Err(format!("NULL took {time:?}"));
    }
    if !is_made() {
        return is_unneeded;
    }
    layer::set_rules("");
    wait_for_frames(pipeline).map_err(|why| format!("does not recover: {why}"))
}

/// Starts and waits for five frames.
fn wait_for_frames(pipeline: &gst::Pipeline) -> Result<(), String> {
    pipeline
        .set_state(gst::State::Playing)
        .map_err(|error| error.to_string())?;
    let out = pipeline.by_name("out").unwrap();
    let begun = Instant::now();
    loop {
        let stats: gst::Structure = out.property("stats");
        if stats.get::<u64>("rendered").unwrap_or(0) >= 5 {
            return Ok(());
        }
        if let Some(error) = error_within(pipeline, Duration::from_millis(20)) {
            return Err(error);
        }
        if begun.elapsed() > Duration::from_secs(30) {
            return Err("no frames".into());
        }
    }
}

/// The next error of one of our elements; a source posts a second error for the same cause.
fn error_within(pipeline: &gst::Pipeline, limit: Duration) -> Option<String> {
    let limit = gst::ClockTime::from_mseconds(limit.as_millis() as u64);
    let message = pipeline
        .bus()
        .unwrap()
        .timed_pop_filtered(limit, &[gst::MessageType::Error])?;
    match message.view() {
        gst::MessageView::Error(error) => Some(error.error().message().to_owned()),
        _ => None,
    }
}
