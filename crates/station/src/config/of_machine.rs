//! The table `[camera.machine]`: how the camera answers the machine.

use std::time::Duration;

use super::{mistakes::Mistakes, nearest::nearest, table::Table};
use crate::{
    machine::{OfNone, Settings, Trigger},
    source::Source,
};

/// Longest deadline, and longest wait for the frame of a trigger, ms.
const LONGEST_MS: u64 = 600_000;

/// Reads the table, if there is one.
pub(super) fn read(
    camera: &mut Table<'_, '_>,
    is_recipe: bool,
    mistakes: &mut Mistakes<'_>,
) -> Option<Settings> {
    let mut table = camera.table("machine", mistakes)?;
    if is_recipe {
        let text = "machine belongs to the line, not to a product; move it to the station's file";
        mistakes.add(&camera.place("machine"), text);
    }
    let mut milliseconds = |key| {
        let number = table.whole(key, 1..LONGEST_MS, mistakes);
        number.map(Duration::from_millis)
    };
    let mut settings = Settings {
        deadline: milliseconds("deadline-ms"),
        ..Settings::default()
    };
    if let Some(within) = milliseconds("frame-within-ms") {
        settings.frame_within = within;
    }
    let of_none = [("reject", OfNone::Reject), ("ignore", OfNone::Ignore)];
    if let Some(of_none) = choice(&mut table, "none", &of_none, mistakes) {
        settings.none = of_none;
    }
    let triggers = [
        ("every-frame", Trigger::Every),
        ("next-frame", Trigger::Next),
        ("software", Trigger::Software),
    ];
    if let Some(trigger) = choice(&mut table, "trigger", &triggers, mistakes) {
        settings.trigger = trigger;
    }
    table.finish(mistakes);
    Some(settings)
}

/// Only a camera of aravis takes a trigger of the station.
pub(super) fn check_software(source: &Source, camera: &Table<'_, '_>, mistakes: &mut Mistakes<'_>) {
    if !matches!(source, Source::Aravis { .. }) {
        let text = "trigger = \"software\" needs a camera of aravis; set trigger = \"next-frame\" if something else triggers \
                    the camera, or name the camera with aravis";
        mistakes.add(&camera.place("machine"), text);
    }
}

/// The value of a key that is one of several words.
pub(super) fn choice<T: Copy>(
    table: &mut Table<'_, '_>,
    key: &'static str,
    choices: &[(&'static str, T)],
    mistakes: &mut Mistakes<'_>,
) -> Option<T> {
    let (word, span) = table.string(key, mistakes)?;
    let found = choices.iter().find(|(name, _)| *name == word);
    if found.is_none() {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let advice = match nearest(&word, &names) {
            Some(name) => format!("did you mean {name:?}?"),
            None => format!("set one of {}", names.join(", ")),
        };
        mistakes.add(&span, format!("{key} = {word:?} is no choice; {advice}"));
    }
    found.map(|(_, value)| *value)
}
