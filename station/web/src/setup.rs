//! The set-up page's requests. All of them need the right to write: a draft opens cameras, and shows frames that are kept.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Json,
    body::Bytes,
    extract::{Path, Query, State, rejection::JsonRejection},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use run::{
    frame::{PICTURE_WIDTH, THUMBNAIL_WIDTH},
    recorded::Label,
};
use serde::Deserialize;
use serde_json::{Value, json};
use setup::{Draft, SaveRefused, Settings, Setup, TeachTarget, advice};

use super::{
    Site,
    access::{Right, may_write},
    blocking::{blocking, decoding},
    connections::Peer,
    live::jpeg,
    recipes::{switched, who},
    refusal::Refusal,
};

/// Longest wait for a newer live frame.
const LIVE_WITHIN: Duration = Duration::from_secs(5);
/// Live frames that measure the object, at least, and the longest wait for them.
const MEASURED: usize = 4;
const MEASURED_WITHIN: Duration = Duration::from_secs(6);

const NO_RECIPES: Refusal = Refusal::new(
    StatusCode::CONFLICT,
    "The station keeps no recipes; set recipes = \"FOLDER\" in the station's file, and restart the station.",
);
const NO_DRAFT: Refusal = Refusal::new(
    StatusCode::NOT_FOUND,
    "This set-up has ended: nobody used it for half an hour, it was saved and others were begun, or the station was restarted.",
);
const NO_FRAME: Refusal = Refusal::new(StatusCode::NOT_FOUND, "This frame is not kept.");

fn conflict(sentence: String) -> Refusal {
    Refusal(StatusCode::CONFLICT, sentence.into())
}

fn body<T>(body: Result<Json<T>, JsonRejection>) -> Result<T, Refusal> {
    let Json(body) = body.map_err(|error| {
        Refusal(
            error.status(),
            "The request is not the JSON that is expected here.".into(),
        )
    })?;
    Ok(body)
}

fn setup(site: &Site, right: Right) -> Result<&Arc<Setup>, Refusal> {
    may_write(site, right)?;
    site.setup.as_ref().ok_or(NO_RECIPES)
}

fn draft(site: &Site, right: Right, id: &str) -> Result<Arc<Draft>, Refusal> {
    setup(site, right)?.draft(id).ok_or(NO_DRAFT)
}

type Shared = State<Arc<Site>>;
type Rights = Extension<Right>;

/// `GET /api/setup/cameras`.
pub async fn cameras(
    State(site): Shared,
    Extension(right): Rights,
) -> Result<Json<Value>, Refusal> {
    let setup = setup(&site, right)?.clone();
    Ok(Json(json!(blocking(move || setup.choices.list()).await?)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeginBody {
    camera: Option<String>,
}

/// `POST /api/setup/drafts`.
pub async fn begin(
    State(site): Shared,
    Extension(right): Rights,
    asked: Result<Json<BeginBody>, JsonRejection>,
) -> Result<Json<Value>, Refusal> {
    let setup = setup(&site, right)?.clone();
    let BeginBody { camera } = body(asked)?;
    let draft = blocking(move || setup.begin(camera.as_deref()))
        .await?
        .map_err(conflict)?;
    Ok(Json(blocking(move || draft.state()).await?))
}

/// `GET /api/setup/drafts`: the drafts that somebody began, the newest last.
pub async fn drafts(State(site): Shared, Extension(right): Rights) -> Result<Json<Value>, Refusal> {
    let setup = setup(&site, right)?.clone();
    let drafts = blocking(move || setup.list()).await?;
    Ok(Json(json!(drafts)))
}

/// `GET /api/setup/drafts/ID`.
pub async fn state(
    State(site): Shared,
    Extension(right): Rights,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let draft = draft(&site, right, &id)?;
    Ok(Json(blocking(move || draft.state()).await?))
}

/// `DELETE /api/setup/drafts/ID`.
pub async fn end(
    State(site): Shared,
    Extension(right): Rights,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    setup(&site, right)?.end(&id);
    Ok(Json(Value::Null))
}

/// `PUT /api/setup/drafts/ID/settings`.
pub async fn settings(
    State(site): Shared,
    Extension(right): Rights,
    Path(id): Path<String>,
    asked: Result<Json<Settings>, JsonRejection>,
) -> Result<Json<Value>, Refusal> {
    let draft = draft(&site, right, &id)?;
    let settings = body(asked)?;
    let setup = setup(&site, right)?.clone();
    let changed = blocking(move || draft.change(settings, &setup)).await?;
    Ok(Json(
        json!({ "mistakes": changed.err().unwrap_or_default() }),
    ))
}

#[derive(Deserialize)]
pub struct AfterQuery {
    after: Option<u64>,
}

/// `GET /api/setup/drafts/ID/live?after=N`.
pub async fn live(
    State(site): Shared,
    Extension(right): Rights,
    Path(id): Path<String>,
    Query(AfterQuery { after }): Query<AfterQuery>,
) -> Result<Json<Value>, Refusal> {
    let mut live = draft(&site, right, &id)?.look();
    let newer = live.wait_for(|list| list.back().is_some_and(|newest| Some(newest.n) > after));
    let answer = match tokio::time::timeout(LIVE_WITHIN, newer).await {
        Ok(Ok(list)) => list.back().map(|newest| newest.answer.clone()),
        _ => None,
    };
    Ok(Json(answer.unwrap_or_else(
        || json!({ "n": after, "problem": "no frame comes" }),
    )))
}

/// `GET /api/setup/drafts/ID/live/N.jpg` and `…/N-mask.png`.
pub async fn live_picture(
    State(site): Shared,
    Extension(right): Rights,
    Path((id, name)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let live = draft(&site, right, &id)?.look();
    let list = live.borrow().clone();
    let find = |number: &str| {
        let number: u64 = number.parse().map_err(|_| NO_FRAME)?;
        Ok::<_, Refusal>(list.iter().find(|live| live.n == number).cloned())
    };
    let (live, is_mask) = match name.strip_suffix("-mask.png") {
        Some(number) => (find(number)?, true),
        None => (find(name.strip_suffix(".jpg").unwrap_or_default())?, false),
    };
    // Newer frames took its place while the page asked: no error, which a browser would report.
    let Some(live) = live else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    Ok(match is_mask {
        true => png(live.mask.clone()),
        false => jpeg(live.picture.clone()),
    })
}

fn png(picture: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "image/png")], picture).into_response()
}

/// `POST /api/setup/drafts/ID/measure`.
pub async fn measure(
    State(site): Shared,
    Extension(right): Rights,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let draft = draft(&site, right, &id)?;
    let until = tokio::time::Instant::now() + MEASURED_WITHIN;
    while draft.recent().len() < 2 * MEASURED && tokio::time::Instant::now() < until {
        // Frames are made while somebody looks.
        draft.look();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let frames = draft.recent();
    if frames.len() < MEASURED {
        return Err(Refusal::new(
            StatusCode::CONFLICT,
            "Too few frames came to measure the object; look at the live picture first.",
        ));
    }
    let advice = blocking(move || advice::advise(&frames))
        .await?
        .map_err(conflict)?;
    Ok(Json(json!(advice)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeepBody {
    label: Label,
}

/// `POST /api/setup/drafts/ID/frames`.
pub async fn keep(
    State(site): Shared,
    Extension(right): Rights,
    Path(id): Path<String>,
    asked: Result<Json<KeepBody>, JsonRejection>,
) -> Result<Json<Value>, Refusal> {
    let draft = draft(&site, right, &id)?;
    let KeepBody { label } = body(asked)?;
    let kept = draft.keep_live(label).map_err(conflict)?;
    Ok(Json(json!({ "id": kept })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectBody {
    from: String,
    /// Of the pictures of a folder.
    label: Option<Label>,
}

/// `POST /api/setup/drafts/ID/collect`.
pub async fn collect(
    State(site): Shared,
    Extension(right): Rights,
    Path(id): Path<String>,
    asked: Result<Json<CollectBody>, JsonRejection>,
) -> Result<Json<Value>, Refusal> {
    let draft = draft(&site, right, &id)?;
    let setup = setup(&site, right)?.clone();
    let CollectBody { from, label } = body(asked)?;
    let label = label.unwrap_or(Label::Good);
    let collected = blocking(move || draft.collect(&from, label, &setup))
        .await?
        .map_err(conflict)?;
    Ok(Json(json!(collected)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameChange {
    label: Option<Label>,
    used: Option<bool>,
    missed: Option<Vec<[u32; 4]>>,
}

/// `PUT /api/setup/drafts/ID/frames/F`.
pub async fn change_frame(
    State(site): Shared,
    Extension(right): Rights,
    Path((id, frame)): Path<(String, String)>,
    asked: Result<Json<FrameChange>, JsonRejection>,
) -> Result<Json<Value>, Refusal> {
    let draft = draft(&site, right, &id)?;
    let FrameChange {
        label,
        used,
        missed,
    } = body(asked)?;
    let frame = frame.parse().map_err(|_| NO_FRAME)?;
    let changed = draft.change_frame(frame, label, used, missed);
    Ok(Json(json!(changed.ok_or(NO_FRAME)?)))
}

/// `DELETE /api/setup/drafts/ID/frames/F`.
pub async fn forget_frame(
    State(site): Shared,
    Extension(right): Rights,
    Path((id, frame)): Path<(String, String)>,
) -> Result<Json<Value>, Refusal> {
    let draft = draft(&site, right, &id)?;
    let frame = frame.parse().map_err(|_| NO_FRAME)?;
    if !draft.forget_frame(frame) {
        return Err(NO_FRAME);
    }
    Ok(Json(Value::Null))
}

/// `GET /api/setup/drafts/ID/frames/F.jpg`, `…/F-thumb.jpg` and `…/F-mask.png`.
pub async fn frame_picture(
    State(site): Shared,
    Extension(right): Rights,
    Path((id, name)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let draft = draft(&site, right, &id)?;
    let is_mask = name.ends_with("-mask.png");
    let (number, width) = match (
        name.strip_suffix("-thumb.jpg"),
        name.strip_suffix("-mask.png"),
    ) {
        (Some(number), _) => (number, THUMBNAIL_WIDTH),
        (_, Some(number)) => (number, PICTURE_WIDTH),
        _ => (name.strip_suffix(".jpg").unwrap_or_default(), PICTURE_WIDTH),
    };
    let frame = number
        .parse()
        .ok()
        .and_then(|id| draft.frame(id))
        .ok_or(NO_FRAME)?;
    if is_mask {
        let mask = blocking(move || draft.mask_of(&frame))
            .await?
            .map_err(conflict)?;
        return Ok(png(mask));
    }
    Ok(jpeg(
        blocking(move || frame.jpeg(width))
            .await?
            .map_err(conflict)?,
    ))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeachBody {
    what: TeachTarget,
    frames: u32,
}

/// `POST /api/setup/drafts/ID/teach`.
pub async fn teach(
    State(site): Shared,
    Extension(right): Rights,
    Path(id): Path<String>,
    asked: Result<Json<TeachBody>, JsonRejection>,
) -> Result<Json<Value>, Refusal> {
    let draft = draft(&site, right, &id)?;
    let TeachBody { what, frames } = body(asked)?;
    draft.teach(what, frames).map_err(conflict)?;
    Ok(Json(blocking(move || draft.state()).await?))
}

/// `DELETE /api/setup/drafts/ID/teach`.
pub async fn stop_teaching(
    State(site): Shared,
    Extension(right): Rights,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let draft = draft(&site, right, &id)?;
    draft.stop_teaching();
    Ok(Json(blocking(move || draft.state()).await?))
}

/// `POST /api/setup/drafts/ID/teach/again`.
pub async fn teach_again(
    State(site): Shared,
    Extension(right): Rights,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let draft = draft(&site, right, &id)?;
    draft.teach_again().map_err(conflict)?;
    Ok(Json(blocking(move || draft.state()).await?))
}

/// `POST /api/setup/drafts/ID/try`.
pub async fn try_all(
    State(site): Shared,
    Extension(right): Rights,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let draft = draft(&site, right, &id)?;
    draft.try_all();
    Ok(Json(blocking(move || draft.state()).await?))
}

/// `PUT /api/setup/drafts/ID/mask`: a picture whose pixels other than 0 are not judged.
pub async fn mask(
    State(site): Shared,
    Extension(right): Rights,
    Path(id): Path<String>,
    picture: Bytes,
) -> Result<Json<Value>, Refusal> {
    let draft = draft(&site, right, &id)?;
    let set = decoding(move || draft.set_mask(Some(&picture))).await?;
    Ok(Json(json!({ "mistakes": set.err().unwrap_or_default() })))
}

/// `DELETE /api/setup/drafts/ID/mask`.
pub async fn no_mask(
    State(site): Shared,
    Extension(right): Rights,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let draft = draft(&site, right, &id)?;
    let set = blocking(move || draft.set_mask(None)).await?;
    Ok(Json(json!({ "mistakes": set.err().unwrap_or_default() })))
}

#[derive(Deserialize)]
pub struct SaveQuery {
    name: Option<String>,
    /// Cameras that are left out, with commas between them.
    without: Option<String>,
}

/// `GET /api/setup/drafts/ID/recipe?name=NAME`.
pub async fn recipe(
    State(site): Shared,
    Extension(right): Rights,
    Path(id): Path<String>,
    Query(SaveQuery { name, without }): Query<SaveQuery>,
) -> Result<Json<Value>, Refusal> {
    let draft = draft(&site, right, &id)?;
    let without = without.unwrap_or_default();
    let without: Vec<String> = without.split(',').map(str::to_owned).collect();
    let (text, changes) = blocking(move || draft.recipe(&name.unwrap_or_default(), &without))
        .await?
        .map_err(conflict)?;
    Ok(Json(json!({ "text": text, "changes": changes })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaveBody {
    name: String,
    activate: bool,
    /// Cameras that are left out.
    #[serde(default)]
    without: Vec<String>,
}

/// `POST /api/setup/drafts/ID/save`.
pub async fn save(
    State(site): Shared,
    Extension(right): Rights,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Path(id): Path<String>,
    asked: Result<Json<SaveBody>, JsonRejection>,
) -> Result<Response, Refusal> {
    let draft = draft(&site, right, &id)?;
    let setup = setup(&site, right)?.clone();
    let SaveBody {
        name,
        activate,
        without,
    } = body(asked)?;
    let who = who(&headers, peer);
    let (of_save, by) = (name.clone(), who.clone());
    let of_draft = draft.clone();
    let saved = blocking(move || of_draft.save(&of_save, &without, &by)).await?;
    let hash = match saved {
        Ok(hash) => hash,
        Err(SaveRefused::Refused(sentence)) => {
            return Err(Refusal(StatusCode::UNPROCESSABLE_ENTITY, sentence.into()));
        }
        Err(SaveRefused::Changed(changes)) => {
            let sentence = "Somebody saved this recipe meanwhile. Nothing was saved; look at what changed, and begin again.";
            let answer = json!({ "text": sentence, "changes": changes });
            return Ok((StatusCode::CONFLICT, Json(answer)).into_response());
        }
    };
    let (mut milliseconds, mut problem) = (None, None);
    if activate {
        // It ends also if the one who asked has left.
        let of_name = name.clone();
        let used = tokio::spawn(async move {
            let of_draft = draft.clone();
            let released = blocking(move || of_draft.release()).await;
            let used = switched(&setup.recipes, &of_name, &who).await;
            draft.resume(&setup);
            released.and(used)
        });
        match used.await {
            Ok(Ok(took)) => milliseconds = Some(took),
            Ok(Err(Refusal(_, sentence))) => problem = Some(sentence),
            Err(_) => problem = Some("the station has a fault; its log says more".into()),
        }
    }
    Ok(Json(
        json!({ "name": name, "hash": hash, "milliseconds": milliseconds, "problem": problem }),
    )
    .into_response())
}
