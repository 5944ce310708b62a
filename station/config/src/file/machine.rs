//! The table `[camera.machine]`: how the camera answers the machine.

use std::time::Duration;

use plan::{CameraConfig, InputSettings, MachineSettings, Source, Trigger, UninspectedAction};

use super::{input, mistakes::Mistakes, table::Table};

/// Longest deadline, and longest wait for the frame of a trigger, ms.
const LONGEST_MS: u64 = 600_000;

/// What the table says.
pub(super) struct Machine {
    pub settings: MachineSettings,
    pub input: Option<InputSettings>,
    /// The camera's line that triggers it.
    pub trigger_source: Option<String>,
}

/// Reads the table, if there is one.
pub(super) fn read(
    camera: &mut Table<'_, '_>,
    is_recipe: bool,
    mistakes: &mut Mistakes<'_>,
) -> Option<Machine> {
    let mut table = camera.table("machine", mistakes)?;
    if is_recipe {
        let text = "machine belongs to the line, not to a product; move it to the station's file";
        mistakes.add(&camera.place("machine"), text);
    }
    let mut milliseconds = |key| {
        let number = table.whole(key, 1..LONGEST_MS, mistakes);
        number.map(Duration::from_millis)
    };
    let mut settings = MachineSettings {
        deadline: milliseconds("deadline-ms"),
        ..MachineSettings::default()
    };
    if let Some(within) = milliseconds("frame-within-ms") {
        settings.frame_within = within;
    }
    let of_none = [
        ("reject", UninspectedAction::Reject),
        ("ignore", UninspectedAction::Ignore),
    ];
    if let Some(of_none) = table.choice("none", &of_none, mistakes) {
        settings.none = of_none;
    }
    let triggers = [
        ("every-frame", Trigger::Every),
        ("next-frame", Trigger::Next),
        ("software", Trigger::Software),
        ("input", Trigger::Input),
    ];
    if let Some(trigger) = table.choice("trigger", &triggers, mistakes) {
        settings.trigger = trigger;
    }
    let has_input = table.has("input");
    let input = input::read(&mut table, mistakes);
    match (settings.trigger, has_input) {
        (Trigger::Input, false) => mistakes.add_missing(
            &table.span,
            "trigger = \"input\" has no input; set input = { line = … } to the line at which the edges come",
        ),
        (Trigger::Input, true) | (_, false) => {}
        (_, true) => mistakes.add(
            &table.place("input"),
            "an input needs trigger = \"input\"; set it, or leave the input out",
        ),
    }
    let trigger_source = table.string("trigger-source", mistakes);
    table.finish(mistakes);
    Some(Machine {
        settings,
        input,
        trigger_source: trigger_source.map(|(line, _)| line),
    })
}

/// Notes what does not fit the camera. Only one of aravis is set to its trigger by the station.
pub(super) fn check(camera: &CameraConfig, table: &Table<'_, '_>, mistakes: &mut Mistakes<'_>) {
    let trigger = camera.machine.trigger;
    let is_aravis = matches!(camera.source, Source::Aravis { .. });
    let has_line = camera.trigger_source.is_some();
    let needs_line = is_aravis && matches!(trigger, Trigger::Next | Trigger::Input);
    let text = if trigger == Trigger::Software && !is_aravis {
        "trigger = \"software\" needs a camera of aravis; set trigger = \"next-frame\" if something else triggers the \
         camera, or name the camera with aravis"
    } else if needs_line && !has_line {
        "nothing is said of what triggers the camera; set trigger-source to the camera's line, such as \"Line1\": without it \
         the camera may run freely"
    } else if has_line && !needs_line {
        "trigger-source needs a camera of aravis, and trigger = \"next-frame\" or \"input\"; leave it out"
    } else {
        return;
    };
    mistakes.add(&table.place("machine"), text);
}
