//! The recipe over MQTT: the broker keeps which one is in force, and others ask for another.

use std::sync::Arc;

use config::recipes::{InForce, NO_NAME, Recipes};
use gstinspectpublish::{Notice, SharedValue};
use machine::{error, info, warning};
use plan::is_name;
use serde_json::json;

/// Publishes the recipe in force and carries out requests, until the station ends.
pub async fn serve(topic: SharedValue, recipes: Arc<Recipes>) {
    let values = recipes.in_force().subscribe();
    let asked = |payload: &[u8]| {
        let name = str::from_utf8(payload).map(str::trim_ascii);
        let Some(name) = name.ok().filter(|name| is_name(name)) else {
            warning!("a request over MQTT to switch the recipe is refused: {NO_NAME}");
            return;
        };
        let (recipes, name) = (recipes.clone(), name.to_owned());
        // The switch itself is logged.
        tokio::spawn(async move { recipes.switch(&name, "mqtt").await });
    };
    let notify = |notice| match notice {
        Notice::Failed(why) => error!("recipes over MQTT: {why}; the station tries again"),
        Notice::Refused(why) => warning!("recipes over MQTT: {why}"),
        Notice::Recovered(text) => info!("recipes over MQTT: {text}"),
    };
    topic.run(values, text, asked, notify).await;
}

/// The payload of the retained topic.
fn text(state: &InForce) -> String {
    let active = state.active.as_ref();
    json!({
        "name": active.map(|active| &active.name),
        "hash": active.map(|active| &active.hash),
        "busy": state.is_busy,
        "failed": state.failed.as_ref().or(state.problem.as_ref()),
    })
    .to_string()
}
