//! The table `[camera.output]`: the line that tells the machine which piece is good.

use std::{ops::Range, time::Duration};

use plan::{MachineSettings, OutputSettings, Source, Trigger, Wire};

use super::{gpio, mistakes::Mistakes, table::Table};

/// Longest pulse, ms.
const LONGEST_PULSE_MS: u64 = 10_000;
/// Longest delay of a pulse, ms.
const LONGEST_DELAY_MS: u64 = 60_000;

/// Reads the table, if there is one.
pub(super) fn read(
    camera: &mut Table<'_, '_>,
    is_recipe: bool,
    mistakes: &mut Mistakes<'_>,
) -> Option<OutputSettings> {
    let mut table = camera.table("output", mistakes)?;
    if is_recipe {
        let text = "output belongs to the line, not to a product; move it to the station's file";
        mistakes.add(&camera.place("output"), text);
    }
    let wire = wire(&mut table, mistakes);
    if let Some((active, span)) = table.string("active", mistakes)
        && active != "pass"
    {
        let text = format!(
            "active = {active:?}: an output that must be driven to reject lets pieces pass when the program or the PC dies; \
             set active = \"pass\", and let the machine reject what gets no pulse"
        );
        mistakes.add(&span, text);
    }
    let mut milliseconds = |key, range: Range<u64>| {
        let number = table.whole(key, range, mistakes);
        number.map(Duration::from_millis)
    };
    let pulse = milliseconds("pulse-ms", 1..LONGEST_PULSE_MS);
    let delay = milliseconds("delay-ms", 0..LONGEST_DELAY_MS);
    table.finish(mistakes);
    Some(OutputSettings {
        wire: wire?,
        pulse: pulse.unwrap_or(Duration::from_millis(20)),
        delay: delay.filter(|delay| !delay.is_zero()),
    })
}

#[derive(Clone, Copy)]
enum Kind {
    Gpio,
    CameraLine,
}

fn wire(table: &mut Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Option<Wire> {
    if !table.has("kind") {
        let text = "output has no kind; set kind = \"gpio\" (a line of this PC) or \"camera-line\" (an output of the camera)";
        mistakes.add_missing(&table.span, text);
    }
    let kinds = [("gpio", Kind::Gpio), ("camera-line", Kind::CameraLine)];
    match table.choice("kind", &kinds, mistakes)? {
        Kind::Gpio => {
            let gpio = gpio::read(table, "output", mistakes);
            let inverted = table.boolean("inverted", mistakes);
            Some(Wire::Gpio {
                gpio: gpio?,
                is_inverted: inverted.unwrap_or(false),
            })
        }
        Kind::CameraLine => {
            let output = table.string("user-output", mistakes);
            let line = table.string("line", mistakes);
            Some(Wire::Camera {
                user_output: output.map_or("UserOutput0".to_owned(), |(output, _)| output),
                line: line.map(|(line, _)| line),
            })
        }
    }
}

/// Notes what does not fit the rest of the camera.
pub(super) fn check(
    settings: &OutputSettings,
    source: &Source,
    machine: &MachineSettings,
    camera: &Table<'_, '_>,
    mistakes: &mut Mistakes<'_>,
) {
    let place = camera.place("output");
    if matches!(settings.wire, Wire::Camera { .. }) && !matches!(source, Source::Aravis { .. }) {
        let text = "kind = \"camera-line\" needs a camera of aravis; set kind = \"gpio\", or name the camera with aravis";
        mistakes.add(&place, text);
    }
    let Some(delay) = settings.delay else {
        return;
    };
    let delay_ms = delay.as_millis();
    let place = &place;
    let Some(deadline) = machine.deadline else {
        let text = format!(
            "delay-ms = {delay_ms} needs deadline-ms in [camera.machine], or an outcome may come after its piece; set \
             deadline-ms to {delay_ms} or less"
        );
        mistakes.add(place, text);
        return;
    };
    // With an input the delay counts from the edge.
    let (known, keys) = match machine.trigger {
        Trigger::Input => (
            machine.frame_within + deadline,
            "frame-within-ms + deadline-ms",
        ),
        _ => (deadline, "deadline-ms"),
    };
    if known > delay {
        let text = format!(
            "delay-ms = {delay_ms} is shorter than {keys} = {} of [camera.machine]: a piece would be at the output before \
             its outcome is known; set delay-ms to that or more",
            known.as_millis()
        );
        mistakes.add(place, text);
    }
}
