//! The recipes, as JSON.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Json,
    extract::{Path, State, rejection::JsonRejection},
    http::{HeaderMap, StatusCode},
};
use config::recipes::{InForce, NO_NAME, Recipes, Version};
use plan::is_name;
use serde::Deserialize;
use serde_json::{Value, json};
use setup::changed_lines;

use super::{
    Site,
    access::{Right, may_write},
    blocking::blocking,
    connections::Peer,
    refusal::Refusal,
};

/// The command line says in this header who works with it.
pub const USER: &str = "clinspect-user";
/// Longest wait for a switch; the page waits 10 s.
const SWITCH_WITHIN: Duration = Duration::from_secs(8);
/// Characters of that name.
const LONGEST_USER: usize = 32;

/// `GET /api/recipes`: the recipe in force, those of the folder, and the last changes.
pub async fn list(State(site): State<Arc<Site>>) -> Result<Json<Value>, Refusal> {
    let Some(recipes) = site.recipes.clone() else {
        return Ok(Json(json!({
            "active": null, "problem": null, "busy": false, "failed": null, "recipes": [], "changes": [],
        })));
    };
    // It reads the folder.
    let list = move || {
        let listed = recipes.list();
        let InForce {
            active,
            number: _,
            problem,
            is_busy,
            failed,
        } = recipes.in_force().borrow().clone();
        json!({
            "active": active,
            "problem": problem,
            "busy": is_busy,
            "failed": failed,
            "recipes": listed,
            "changes": recipes.changes(),
        })
    };
    let listed = tokio::task::spawn_blocking(list).await;
    listed.map(Json).map_err(|_| Refusal::NO_RECIPES)
}

/// The body of a switch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchBody {
    name: String,
}

/// `POST /api/recipe`: switches all cameras to a recipe, or none.
pub async fn switch(
    State(site): State<Arc<Site>>,
    Extension(right): Extension<Right>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    body: Result<Json<SwitchBody>, JsonRejection>,
) -> Result<Json<Value>, Refusal> {
    may_write(&site, right)?;
    let Json(asked) = body.map_err(|error| {
        Refusal::new(
            error.status(),
            "A switch is JSON such as {\"name\": \"cloth\"}.",
        )
    })?;
    let recipes = site.recipes.clone().ok_or(Refusal::NO_RECIPES)?;
    if !is_name(&asked.name) {
        return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, NO_NAME));
    }
    let took = switched(&recipes, &asked.name, &who(&headers, peer)).await?;
    Ok(Json(json!({ "milliseconds": took })))
}

/// `GET /api/recipes/NAME/versions`: what the recipe was before its saves, the newest first, and what each save changed.
pub async fn versions(
    State(site): State<Arc<Site>>,
    Extension(right): Extension<Right>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Refusal> {
    // The text of a recipe is for those who may change it.
    may_write(&site, right)?;
    let recipes = site.recipes.clone().ok_or(Refusal::NO_RECIPES)?;
    let list = move || {
        let mut after = recipes.text(&name).unwrap_or_default();
        let with_changes = |Version { id, until, hash }| {
            let text = recipes.version_text(&name, &id).unwrap_or_default();
            let changes = changed_lines(&text, &after);
            after = text;
            json!({ "id": id, "until": until, "hash": hash, "changes": changes })
        };
        let versions: Vec<Value> = (recipes.versions(&name).into_iter())
            .map(with_changes)
            .collect();
        json!({ "versions": versions })
    };
    blocking(list).await.map(Json)
}

/// The body of a way back.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackBody {
    version: String,
}

/// `POST /api/recipes/NAME/back`: makes a recipe what it was before a save. If it is in force, the cameras switch to it.
pub async fn go_back(
    State(site): State<Arc<Site>>,
    Extension(right): Extension<Right>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Path(name): Path<String>,
    body: Result<Json<BackBody>, JsonRejection>,
) -> Result<Json<Value>, Refusal> {
    may_write(&site, right)?;
    let Json(BackBody { version }) = body.map_err(|error| {
        Refusal::new(
            error.status(),
            "A way back is JSON such as {\"version\": \"1732752000000-13891a8b9fdc53d7\"}.",
        )
    })?;
    let recipes = site.recipes.clone().ok_or(Refusal::NO_RECIPES)?;
    let who = who(&headers, peer);
    let (of_save, by, into) = (name.clone(), who.clone(), recipes.clone());
    let saved = blocking(move || into.go_back(&of_save, &version, &by)).await?;
    let saved = saved.map_err(|why| Refusal(StatusCode::CONFLICT, why.to_string().into()))?;
    let in_force = recipes.in_force().borrow().active.clone();
    let is_in_force = in_force.is_some_and(|active| active.name == name);
    let (mut milliseconds, mut problem) = (None, None);
    if is_in_force {
        match switched(&recipes, &name, &who).await {
            Ok(took) => milliseconds = Some(took),
            Err(Refusal(_, sentence)) => problem = Some(sentence),
        }
    }
    Ok(Json(
        json!({ "hash": saved.hash, "milliseconds": milliseconds, "problem": problem }),
    ))
}

/// Switches all cameras to a recipe, or none; how many milliseconds it took.
///
/// # Errors
/// Why all cameras are as before, or that they still start.
pub async fn switched(recipes: &Recipes, name: &str, who: &str) -> Result<u64, Refusal> {
    let switched = recipes.switch(name, who);
    let Ok(switched) = tokio::time::timeout(SWITCH_WITHIN, switched).await else {
        // It goes on without the one who asked.
        return Err(Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "The cameras still start under the recipe. The list of changes will say what became of the switch.",
        ));
    };
    let took = switched.map_err(|why| Refusal(StatusCode::CONFLICT, why.into()))?;
    Ok(u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
}

/// Who asks, for the list of changes: the page's address, or the user of the command line.
pub fn who(headers: &HeaderMap, peer: Peer) -> String {
    let user = headers.get(USER).and_then(|user| user.to_str().ok());
    let is_good = |user: &&str| {
        (1..=LONGEST_USER).contains(&user.len()) && user.bytes().all(|of| of.is_ascii_graphic())
    };
    match user.filter(is_good) {
        Some(user) => format!("command line of {user}, {}", peer.0),
        None => format!("page {}", peer.0),
    }
}
