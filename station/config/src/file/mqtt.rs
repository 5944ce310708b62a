//! The table `[mqtt]`: the broker through which others switch recipes.

use std::path::Path;

use gstinspectpublish::SharedValue;
use plan::MqttSettings;

use super::{files::comes_with_the_service, mistakes::Mistakes, table::Table};

/// The topic, if the file does not say so.
const TOPIC: &str = "clinspect/station";

/// The topic of the recipe in force, and of requests to switch.
///
/// # Errors
/// A sentence that says what to do.
pub fn recipe_topic(broker: &MqttSettings) -> Result<SharedValue, String> {
    let topic = format!("{}/recipe", broker.topic);
    SharedValue::new(
        &broker.uri,
        &broker.credentials_file,
        &broker.ca_file,
        &topic,
    )
}

/// Reads the table, if there is one.
pub(super) fn read(file: &mut Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Option<MqttSettings> {
    let mut table = file.table("mqtt", mistakes)?;
    if !file.has("recipes") {
        let text = "mqtt switches recipes, and the file has none; set recipes to a folder, or leave mqtt out";
        mistakes.add_missing(&file.place("mqtt"), text);
    }
    let span = table.span.clone();
    if !table.has("uri") {
        mistakes.add_missing(&span, "mqtt has no uri; add uri = \"mqtt://HOST\"");
    }
    let mut text = |key| table.string(key, mistakes).map(|(text, _)| text);
    let mut settings = MqttSettings {
        uri: text("uri").unwrap_or_default(),
        credentials_file: text("credentials-file").unwrap_or_default(),
        ca_file: text("ca-file").unwrap_or_default(),
        topic: text("topic").unwrap_or_else(|| TOPIC.to_owned()),
    };
    let credentials = table.text("credentials-file");
    table.finish(mistakes);
    if settings.uri.is_empty() {
        return None;
    }
    let told = settings.clone();
    if let Some((path, span)) = credentials
        && comes_with_the_service(Path::new(path), "credentials-file", &span, mistakes)
    {
        settings.credentials_file.clear();
    }
    if let Err(why) = recipe_topic(&settings) {
        mistakes.add(&span, format!("mqtt: {why}"));
    }
    Some(told)
}
