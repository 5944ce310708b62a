//! Recorded frames, and what people say about them.

use std::{path::PathBuf, sync::Arc, time::SystemTime};

use axum::{
    Extension, Json,
    extract::{Path, RawQuery, State, rejection::JsonRejection},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use clinspect_results::time::iso_8601;
use run::{
    frame::{Frame, PICTURE_WIDTH, THUMBNAIL_WIDTH},
    recorded::{self, PersonVerdict, Recording, Verdict},
    recording::{Role, base_name},
    state::{Camera, Failure},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Site,
    access::{Right, may_write},
    blocking::{blocking, decoding},
    connections::Peer,
    live::{failure_by_id, jpeg},
    recipes::who,
    refusal::Refusal,
};

/// Recordings in one answer.
const PAGE: usize = 50;

const NOT_RECORDED: &str =
    "The camera records no frames; set recording in the station's file to keep what people say.";
const GONE: &str = "This frame is not recorded, or no longer.";

/// The folder of a camera's recordings.
fn folder(camera: &Camera) -> Result<PathBuf, Refusal> {
    let folder = camera.recordings().clone();
    folder.ok_or(Refusal::new(StatusCode::CONFLICT, NOT_RECORDED))
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
    let page = blocking(move || {
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
    of: Recording,
}

/// `GET /recordings/NAME/BASE.jpg`, and `BASE-thumb.jpg` for a small one.
pub async fn picture(
    State(site): State<Arc<Site>>,
    Path((name, picture)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let camera = site.camera(&name)?;
    let base = picture.strip_suffix(".jpg").ok_or_else(gone)?;
    let (base, width) = match base.strip_suffix("-thumb") {
        Some(base) => (base.to_owned(), THUMBNAIL_WIDTH),
        None => (base.to_owned(), PICTURE_WIDTH),
    };
    let folder = camera.recordings().clone().ok_or_else(gone)?;
    let encoded = decoding(move || {
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
pub struct VerdictBody {
    verdict: Option<Verdict>,
    #[serde(default)]
    boxes: Vec<[u32; 4]>,
}

type Body = Result<Json<VerdictBody>, JsonRejection>;

/// What somebody says now.
fn said(body: Body, headers: &HeaderMap, peer: Peer) -> Result<Option<PersonVerdict>, Refusal> {
    let Json(VerdictBody { verdict, boxes }) = body.map_err(|error| {
        let sentence = "A verdict is JSON such as {\"verdict\": \"false-alarm\"}, {\"verdict\": \"missed\", \"boxes\": [[x, y, width, height]]} or {\"verdict\": null}.";
        Refusal::new(error.status(), sentence)
    })?;
    let said = verdict.map(|verdict| PersonVerdict {
        verdict,
        boxes,
        who: who(headers, peer),
        time: iso_8601(SystemTime::now()),
    });
    Ok(said)
}

/// Keeps what was said about a recording.
async fn say(
    camera: &Camera,
    base: String,
    said: Option<PersonVerdict>,
) -> Result<Json<Value>, Refusal> {
    let (folder, name) = (folder(camera)?, camera.name.clone());
    let kept = blocking(move || {
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
pub async fn of_failure(camera: &Camera, failure: &Failure) -> Option<Recording> {
    let folder = camera.recordings().clone()?;
    let (name, base) = (camera.name.clone(), base_of(camera, failure));
    let found = blocking(move || recorded::find(&folder, &name, &base)).await;
    found.ok().flatten()
}
