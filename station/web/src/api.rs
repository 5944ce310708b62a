//! What the page asks for, as JSON.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    Extension, Json,
    extract::{Path, State, rejection::JsonRejection},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use clinspect_results::report::Report;
use machine::{answer::Outcome, clock};
use run::{
    recorded::Recording,
    state::{Camera, Command, Failure, LATENCY_BUCKETS, Request, Status},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{
    Site,
    access::{Right, may_write},
    live::failure_by_id,
    recorded,
    refusal::Refusal,
};
use crate::metrics;

/// Marks of the roll map that are sent: the newest.
const MAX_MARKS: usize = 2000;

/// Longest wait for the answer to a command; the page waits 10 s.
const COMMAND_WITHIN: Duration = Duration::from_secs(8);

/// `GET /api/cameras`: every camera's summary.
pub async fn cameras(State(site): State<Arc<Site>>) -> Json<Value> {
    let cameras = site.cameras.borrow().clone();
    Json(cameras.iter().map(|camera| summary(camera)).collect())
}

/// `GET /api/cameras/NAME`: one camera's summary.
pub async fn camera(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Refusal> {
    Ok(Json(summary(&*site.camera(&name)?)))
}

/// What a card of the page shows at once; also the data of an event.
pub fn summary(camera: &Camera) -> Value {
    let (status, text) = match &*camera.status.borrow() {
        Status::Starting => (json!("starting"), String::new()),
        Status::Running => (json!("running"), String::new()),
        Status::Failed(trouble, text) => (json!(trouble), text.clone()),
    };
    let report = camera.newest_report();
    let of = &camera.counters;
    let outcomes = camera.machine.outcomes();
    let history = camera.history();
    let alarms = history.alarms.iter().rev().take(10);
    let alarms: Value = alarms
        .map(|(time, text)| json!({ "time_ms": milliseconds(*time), "text": text }))
        .collect();
    let mut summary = json!({
        "name": camera.name,
        "status": status,
        "status_text": text,
        "device": history.device,
        "sent": history.sent,
        "frame_rate": history.frame_rate,
        "frame": report.as_ref().and_then(|report| report.frame),
        "time": report.as_ref().map(|report| &report.time),
        "age_ms": history.newest.filter(|_| report.is_some()).map(|newest| whole_ms(newest.elapsed())),
        "verdict": report.as_ref().map(|report| report.verdict),
        "counts": report.as_ref().map(|report| counts(report)),
        "defects": report.as_ref().map(|report| defect_count(report)),
        "overflow": report.as_ref().is_some_and(|report| report.inspections.iter().any(|of| of.overflow)),
        "light_alarms": report.as_ref().map(|report| light_alarms(report)),
        "alignment": report.as_ref().and_then(|report| report.alignment()),
        "parts": report.as_ref().and_then(|report| report.parts()),
        "training": report.as_ref().and_then(|report| report.training()),
        "learning": report.as_ref().and_then(|report| report.learning()),
        "blind_limit": report.as_ref().and_then(|report| report.blind_limit()),
        "alarms": alarms,
        "newest_failure": history.failures.back().map(|failure| failure.id),
        "is_web": history.web.is_some(),
        "offers": history.offers,
        "frames": of.frames.load(Relaxed),
        "corrupted": of.corrupted.load(Relaxed),
        "pass": of.verdicts[0].load(Relaxed),
        "fail": of.verdicts[1].load(Relaxed),
        "none": of.verdicts[2].load(Relaxed),
        "lost": of.lost.load(Relaxed),
        "late": outcomes[Outcome::Late as usize],
        "fault": outcomes[Outcome::Fault as usize],
        "restarts": of.restarts.load(Relaxed),
        "latency_sum_us": of.latency_sum.load(Relaxed),
        "latency_counts": of.latency.iter().map(|count| count.load(Relaxed)).collect::<Vec<_>>(),
        "latency_limits_s": LATENCY_BUCKETS,
        "publish_queue": of.publish_queue.load(Relaxed),
        "publish_dropped": of.publish_dropped.load(Relaxed),
        "publish_errors": of.publish_errors.load(Relaxed),
        "publish_connected": of.publish_connected.load(Relaxed),
        "recording_queue": of.recording_queue.load(Relaxed),
        "recorded": of.recorded.load(Relaxed),
        "recording_dropped": of.recording_dropped.load(Relaxed),
        "recording_errors": of.recording_errors.load(Relaxed),
        "recording_stopped": of.recording_stopped.load(Relaxed),
    });
    summary["is_recording"] = camera.recordings().is_some().into();
    // The macro takes no longer list.
    summary["answer"] = json!(report.as_ref().and_then(|report| report.outcome.as_ref()));
    summary["output"] = in_force(camera.machine.is_output_in_force());
    summary["input"] = in_force(camera.machine.is_input_in_force());
    summary["recipe"] = json!(report.as_ref().and_then(|report| report.recipe.as_ref()));
    summary
}

/// Whether a line is in force, or why not; null without one.
fn in_force(line: Option<Result<(), String>>) -> Value {
    match line {
        None => Value::Null,
        Some(Ok(())) => json!("in-force"),
        Some(Err(why)) => json!(why),
    }
}

/// Listed defects by class, of all inspections.
fn counts(report: &Report) -> BTreeMap<&str, u64> {
    let mut counts = BTreeMap::new();
    for (class, count) in report.inspections.iter().flat_map(|of| &of.counts) {
        *counts.entry(class.as_str()).or_default() += count.as_u64().unwrap_or(0);
    }
    counts
}

fn defect_count(report: &Report) -> usize {
    report.inspections.iter().map(|of| of.defect_count).sum()
}

fn light_alarms(report: &Report) -> Vec<&str> {
    let alarms = report.histograms.iter().flat_map(|of| &of.alarms);
    alarms.map(String::as_str).collect()
}

/// Milliseconds since 1970.
fn milliseconds(time: SystemTime) -> u64 {
    whole_ms(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// `GET /api/cameras/NAME/history`: the last hour, the last failed frames, the newest histogram.
pub async fn history(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let camera = site.camera(&name)?;
    let report = camera.newest_report();
    let history = camera.history();
    // As the minutes were counted.
    let now_minute = milliseconds(clock::even()) / 60_000;
    let minutes = history.last_hour(now_minute).map(|of| {
        json!({ "minute": of.minute, "frames": of.frames, "failed": of.failed, "defects": of.defects })
    });
    Ok(Json(json!({
        "now_minute": now_minute,
        "minutes": minutes.collect::<Value>(),
        "failures": history.failures.iter().rev().map(|failure| brief(failure)).collect::<Value>(),
        "bins": report.as_ref().map_or(&[][..], |_| &history.bins),
        "histograms": report.as_ref().map(|report| &report.histograms),
    })))
}

/// A failed frame without its defects.
fn brief(failure: &Failure) -> Value {
    json!({
        "id": failure.id,
        "frame": failure.report.frame,
        "time": failure.report.time,
        "defects": defect_count(&failure.report),
        "counts": counts(&failure.report),
        "no_picture": failure.pictures.as_ref().err(),
    })
}

/// `GET /api/cameras/NAME/roll`: the defects of the newest web, and its repeats.
pub async fn roll(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let camera = site.camera(&name)?;
    let history = camera.history();
    let web = history.web;
    let marks = history
        .roll
        .iter()
        .rev()
        .filter(|mark| Some(mark.web) == web);
    let marks = marks.take(MAX_MARKS).map(|mark| {
        json!({
            "class": mark.class,
            "across": mark.across,
            "line": mark.line,
            "metres": mark.metres,
            "area": mark.area,
        })
    });
    Ok(Json(
        json!({ "web": web, "marks": marks.collect::<Value>(), "repeats": history.repeats }),
    ))
}

/// `GET /api/cameras/NAME/report`: the newest results, as `inspectpublish` sends them.
pub async fn report(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
) -> Result<Response, Refusal> {
    let camera = site.camera(&name)?;
    // Not through a tree of values, which takes several times the memory.
    Ok(Json(camera.newest_report().as_deref()).into_response())
}

/// `GET /api/cameras/NAME/failures/ID`: the results of a failed frame, and its recording if there is one.
pub async fn failure(
    State(site): State<Arc<Site>>,
    Path((name, id)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let camera = site.camera(&name)?;
    let failure = failure_by_id(&camera, id.parse().ok())?;
    let recording = recorded::of_failure(&camera, &failure).await;
    let (id, report) = (failure.id, &*failure.report);
    Ok(Json(FailureAnswer {
        id,
        report,
        recording,
    })
    .into_response())
}

#[derive(Serialize)]
struct FailureAnswer<'a> {
    id: u64,
    report: &'a Report,
    recording: Option<Recording>,
}

/// The body of a command.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandBody {
    command: Command,
    /// With `forget`: the number of the frame.
    frame: Option<u64>,
}

/// `POST /api/cameras/NAME/command`.
pub async fn command(
    State(site): State<Arc<Site>>,
    Extension(right): Extension<Right>,
    Path(name): Path<String>,
    body: Result<Json<CommandBody>, JsonRejection>,
) -> Result<Json<Value>, Refusal> {
    may_write(&site, right)?;
    let Json(asked) = body.map_err(|error| {
        let sentence = "A command is JSON such as {\"command\": \"take-white\"}; the others are take-dark, train, learn, take-reference, and forget with the number of a frame, such as {\"command\": \"forget\", \"frame\": 12}.";
        Refusal::new(error.status(), sentence)
    })?;
    let camera = site.camera(&name)?;
    let (answer, answered) = oneshot::channel();
    let request = Request {
        command: asked.command,
        frame: asked.frame,
        answer,
    };
    let busy = "The camera does not take commands now; wait until its inspection runs.";
    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
    let sent = camera.commands.try_send(request);
    sent.map_err(|_| Refusal::new(unavailable, busy))?;
    match tokio::time::timeout(COMMAND_WITHIN, answered).await {
        Ok(Ok(Ok(sentence))) => Ok(Json(json!({ "answer": sentence }))),
        Ok(Ok(Err(sentence))) => Err(Refusal(StatusCode::CONFLICT, sentence.into())),
        _ => Err(Refusal::new(unavailable, busy)),
    }
}

/// `GET /api/plc`: the connections of PLCs, and which cameras they have enabled; null without `[modbus]`.
pub async fn plc(State(site): State<Arc<Site>>) -> Json<Value> {
    Json(site.modbus.as_ref().map_or(Value::Null, |modbus| {
        json!({
            "is_reachable": modbus.is_reachable(),
            "connections": modbus.numbers.connections.load(Relaxed),
            "has_commands": modbus.has_commands(),
            "cameras": modbus.shown(),
        })
    }))
}

/// `GET /healthz`: whether every camera runs.
pub async fn health(State(site): State<Arc<Site>>) -> Result<&'static str, Refusal> {
    let recipes = site.recipes.as_ref();
    if let Some(problem) = recipes.and_then(|recipes| recipes.in_force().borrow().problem.clone()) {
        return Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, problem.into()));
    }
    let cameras = site.cameras.borrow().clone();
    let stopped = cameras
        .iter()
        .filter(|camera| *camera.status.borrow() != Status::Running);
    let stopped: Vec<&str> = stopped.map(|camera| &*camera.name).collect();
    if stopped.is_empty() {
        return Ok("Every camera runs.\n");
    }
    let sentence = format!("These cameras do not run: {}.", stopped.join(", "));
    Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, sentence.into()))
}

/// `GET /metrics`: the numbers, for Prometheus.
pub async fn metrics(State(site): State<Arc<Site>>) -> impl IntoResponse {
    let cameras = site.cameras.borrow().clone();
    let content_type = [(
        header::CONTENT_TYPE,
        "text/plain; version=0.0.4; charset=utf-8",
    )];
    let mut text = metrics::text(&cameras, site.recipes.as_deref());
    if let Some(modbus) = &site.modbus {
        text += &metrics::of_plcs(modbus);
    }
    (content_type, text)
}
