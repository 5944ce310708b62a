//! Recorded frames, and what people say about them.

use std::{path::PathBuf, sync::Arc, time::SystemTime};

use axum::{
    Extension, Json,
    extract::{Path, RawQuery, State, rejection::JsonRejection},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use gstinspectpublish::time::iso_8601;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{
    Site,
    access::{Right, may_write},
    connections::Peer,
    live::{failure_by_id, jpeg},
    recipes::who,
    refusal::Refusal,
};
use crate::{
    frame::Frame,
    recorded::{self, Recorded, Said, Verdict},
    recording::{Role, base_name},
    state::{Camera, Failure},
};

/// Recordings in one answer.
const PAGE: usize = 50;
/// Width of the pictures, px.
const PICTURE: u32 = 1280;
const THUMBNAIL: u32 = 160;
/// Pictures that are decoded at once: one takes up to 256 MiB.
static DECODING: Semaphore = Semaphore::const_new(2);

const NOT_RECORDED: &str =
    "The camera records no frames; set recording in the station's file to keep what people say.";
const GONE: &str = "This frame is not recorded, or no longer.";

/// The folder of a camera's recordings.
fn folder(camera: &Camera) -> Result<PathBuf, Refusal> {
    let folder = camera.recordings().clone();
    folder.ok_or(Refusal::new(StatusCode::CONFLICT, NOT_RECORDED))
}

/// Runs what reads or writes files.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| {
        let sentence = "The station failed to read its recordings; its log says why.";
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, sentence)
    })
}

fn gone() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, GONE)
}

/// `GET /api/cameras/NAME/recordings`: the last recordings, or with `?before=BASE` those before one of them; the newest first.
pub async fn list(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, Refusal> {
    let camera = site.camera(&name)?;
    let Some(folder) = camera.recordings().clone() else {
        return Ok(Json(json!({ "is_recording": false, "recordings": [] })));
    };
    // Names of recordings have no character that an address would write in another way.
    let before = query.and_then(|query| Some(query.strip_prefix("before=")?.to_owned()));
    let page = beside(move || {
        // A folder that is missing or cannot be read is told by an alarm of the camera.
        let page = recorded::page(&folder, &name, before.as_deref(), PAGE).unwrap_or_default();
        let with_size = page.into_iter().map(|of| Entry {
            size: of.size().ok(),
            of,
        });
        Vec::from_iter(with_size)
    });
    let page = page.await?;
    Ok(Json(json!({ "is_recording": true, "recordings": page })))
}

/// A recording with its width and height, px, unless its file cannot be read.
#[derive(Serialize)]
struct Entry {
    size: Option<[u32; 2]>,
    #[serde(flatten)]
    of: Recorded,
}

/// `GET /recordings/NAME/BASE.jpg`, and `BASE-thumb.jpg` for a small one.
pub async fn picture(
    State(site): State<Arc<Site>>,
    Path((name, picture)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let camera = site.camera(&name)?;
    let base = picture.strip_suffix(".jpg").ok_or_else(gone)?;
    let (base, width) = match base.strip_suffix("-thumb") {
        Some(base) => (base.to_owned(), THUMBNAIL),
        None => (base.to_owned(), PICTURE),
    };
    let folder = camera.recordings().clone().ok_or_else(gone)?;
    let _turn = DECODING.acquire().await;
    let encoded = beside(move || {
        let recorded = recorded::find(&folder, &name, &base)?;
        let picture = recorded.picture().map_err(|why| why.to_string());
        Some(picture.and_then(|png| Frame::read(&png)?.jpeg(width)))
    });
    match encoded.await?.ok_or_else(gone)? {
        Ok(picture) => Ok(jpeg(picture)),
        Err(why) => Err(Refusal(StatusCode::UNPROCESSABLE_ENTITY, why.into())),
    }
}

/// The body of a verdict. Without a verdict what was said is taken back.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    verdict: Option<Verdict>,
    #[serde(default)]
    boxes: Vec<[u32; 4]>,
}

type Body = Result<Json<Asked>, JsonRejection>;

/// What somebody says now.
fn said(body: Body, headers: &HeaderMap, peer: Peer) -> Result<Option<Said>, Refusal> {
    let Json(Asked { verdict, boxes }) = body.map_err(|error| {
        let sentence = "A verdict is JSON such as {\"verdict\": \"false-alarm\"}, {\"verdict\": \"missed\", \"boxes\": [[x, y, width, height]]} or {\"verdict\": null}.";
        Refusal::new(error.status(), sentence)
    })?;
    let said = verdict.map(|verdict| Said {
        verdict,
        boxes,
        who: who(headers, peer),
        time: iso_8601(SystemTime::now()),
    });
    Ok(said)
}

/// Keeps what was said about a recording.
async fn say(camera: &Camera, base: String, said: Option<Said>) -> Result<Json<Value>, Refusal> {
    let (folder, name) = (folder(camera)?, camera.name.clone());
    let kept = beside(move || {
        let recorded = recorded::find(&folder, &name, &base)?;
        Some(recorded.say(said.as_ref()).map(|()| said))
    });
    match kept.await? {
        None => Err(Refusal::new(StatusCode::CONFLICT, GONE)),
        Some(Err(why)) => Err(Refusal(StatusCode::CONFLICT, why.into())),
        Some(Ok(said)) => Ok(Json(json!({ "said": said }))),
    }
}

/// `POST /api/cameras/NAME/recordings/BASE/verdict`.
pub async fn judge(
    State(site): State<Arc<Site>>,
    Extension(right): Extension<Right>,
    Extension(peer): Extension<Peer>,
    Path((name, base)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, Refusal> {
    may_write(&site, right)?;
    let said = said(body, &headers, peer)?;
    say(&*site.camera(&name)?, base, said).await
}

/// `POST /api/cameras/NAME/failures/ID/verdict`.
pub async fn judge_failure(
    State(site): State<Arc<Site>>,
    Extension(right): Extension<Right>,
    Extension(peer): Extension<Peer>,
    Path((name, id)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, Refusal> {
    may_write(&site, right)?;
    let said = said(body, &headers, peer)?;
    let camera = site.camera(&name)?;
    let failure = failure_by_id(&camera, id.parse().ok())?;
    say(&camera, base_of(&camera, &failure), said).await
}

fn base_of(camera: &Camera, failure: &Failure) -> String {
    let report = &failure.report;
    base_name(
        &camera.name,
        &report.time,
        report.frame.unwrap_or_default(),
        Role::Failed,
    )
}

/// The recording of a failed frame; `None` if there is none.
pub async fn of_failure(camera: &Camera, failure: &Failure) -> Option<Recorded> {
    let folder = camera.recordings().clone()?;
    let (name, base) = (camera.name.clone(), base_of(camera, failure));
    let found = beside(move || recorded::find(&folder, &name, &base)).await;
    found.ok().flatten()
}
