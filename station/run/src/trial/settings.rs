//! The settings of a trial: those of the camera, without what would learn or write.

use std::path::{Path, PathBuf};

use gst::{
    glib::{Type, Value},
    prelude::*,
};
use plan::{CameraConfig, Properties, model_file};

/// More frames than a trial judges: limits that are not known stay unknown.
const NEVER: u32 = 100_000;

/// The camera's settings for single frames. Files are read as the camera reads them, and never written; what has no
/// file yet is not known, and nothing is learned.
pub(super) fn of_trial(config: &CameraConfig) -> CameraConfig {
    let mut config = one_by_one(config);
    let of_analysis = &mut config.analysis;
    of_analysis.remove("train-frames");
    keep_file(of_analysis, "location");
    let learned = learn_field(of_analysis, "location").filter(|file| is_file(file));
    if learned.is_none() {
        set_learn(of_analysis, |learn| {
            learn.set("location", "");
            learn.set("frames", NEVER);
        });
    }
    config
}

/// Without the web, because kept frames are not strips that follow each other. With a histogram.
pub(super) fn one_by_one(config: &CameraConfig) -> CameraConfig {
    let mut config = config.clone();
    let bits = config.analysis.get("bit-depth").map(str::to_owned);
    let histogram = config.histogram.get_or_insert_default();
    if let Some(bits) = bits {
        histogram.set_if_missing("bit-depth", bits);
    }
    let tables = [
        config.flat_field.as_mut(),
        config.gaussian.as_mut(),
        config.histogram.as_mut(),
        Some(&mut config.analysis),
    ];
    for table in tables.into_iter().flatten() {
        table.remove("line-scan");
    }
    if let Some(flat_field) = &mut config.flat_field {
        keep_file(flat_field, "location");
    }
    config
}

/// The file that a trial reads learned limits from.
pub(super) fn limits_file(config: &CameraConfig) -> Option<String> {
    learn_field(&config.analysis, "location").filter(|file| !file.is_empty())
}

/// The files that a camera's settings name and that are there, with the names that they have in a recipe.
pub fn files_of(config: &CameraConfig) -> Vec<(String, PathBuf)> {
    let name = &config.name;
    let of_flat_field = (config.flat_field.as_ref()).and_then(|of| file_of(of, "location"));
    let mask = structure(&config.analysis, "ignore").and_then(|of| of.get::<String>("mask").ok());
    let end = mask
        .as_ref()
        .and_then(|mask| Path::new(mask).extension()?.to_str());
    let end = end.unwrap_or("png").to_ascii_lowercase();
    let files = [
        (model_file(name, "flat-field"), of_flat_field),
        (
            model_file(name, "reference"),
            file_of(&config.analysis, "location"),
        ),
        (model_file(name, "limits"), limits_file(config)),
        (format!("{name}-ignore.{end}"), mask),
    ];
    let there = files
        .into_iter()
        .filter_map(|(name, file)| Some((name, file?)));
    let there = there.filter(|(_, file)| is_file(file));
    there.map(|(name, file)| (name, file.into())).collect()
}

/// Changes fields of the property `learn`.
pub(super) fn set_learn(analysis: &mut Properties, change: impl FnOnce(&mut gst::StructureRef)) {
    let mut learn = learn(analysis).unwrap_or_else(|| gst::Structure::new_empty("learn"));
    change(&mut learn);
    if let Ok(text) = learn.to_value().serialize() {
        analysis.set("learn", text.into());
    }
}

fn learn(analysis: &Properties) -> Option<gst::Structure> {
    structure(analysis, "learn")
}

fn structure(analysis: &Properties, name: &str) -> Option<gst::Structure> {
    let structure = Value::deserialize(analysis.get(name)?, gst::Structure::static_type());
    structure.ok()?.get().ok()
}

fn learn_field(analysis: &Properties, name: &str) -> Option<String> {
    learn(analysis)?.get(name).ok()
}

/// Leaves out a file that is not there: an element would write it.
fn keep_file(table: &mut Properties, name: &str) {
    if file_of(table, name).is_none_or(|file| !is_file(&file)) {
        table.remove(name);
    }
}

/// The file that a property names.
pub(super) fn file_of(table: &Properties, name: &str) -> Option<String> {
    let file = Value::deserialize(table.get(name)?, Type::STRING).ok()?;
    file.get().ok()
}

fn is_file(file: &str) -> bool {
    !file.is_empty() && Path::new(file).is_file()
}
