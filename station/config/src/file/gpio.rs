//! A line of this PC, as a table of the file names it.

use plan::{CameraConfig, Gpio, GpioLine, Wire};
use toml::de::DeValue;

use super::{
    mistakes::Mistakes,
    table::{Table, integer, wrong_type},
};

/// Reads the keys `chip` and `line`. `name`: of the table, for people.
pub(super) fn read(
    table: &mut Table<'_, '_>,
    name: &str,
    mistakes: &mut Mistakes<'_>,
) -> Option<Gpio> {
    let chip = table.string("chip", mistakes);
    Some(Gpio {
        chip: chip.map_or("/dev/gpiochip0".into(), |(chip, _)| chip.into()),
        line: line(table, name, mistakes)?,
    })
}

/// Notes a line that is named twice: the kernel gives it to one of them.
pub(super) fn check_once(
    table: &Table<'_, '_>,
    cameras: &[CameraConfig],
    mistakes: &mut Mistakes<'_>,
) {
    let mut seen: Vec<&Gpio> = Vec::new();
    for camera in cameras {
        let output = camera.output.as_ref().and_then(|of| match &of.wire {
            Wire::Gpio { gpio, .. } => Some(gpio),
            Wire::Camera { .. } => None,
        });
        let input = camera.input.as_ref().map(|of| &of.gpio);
        for gpio in output.into_iter().chain(input) {
            if seen.contains(&gpio) {
                let (chip, name) = (gpio.chip.display(), &camera.name);
                let text = format!(
                    "the camera {name} names a line of {chip} that is named before: {}; each output and each input needs a line \
                     of its own",
                    gpio.line
                );
                mistakes.add_missing(&table.place("camera"), text);
            }
            seen.push(gpio);
        }
    }
}

/// A line of the chip by its number or its name.
fn line(table: &mut Table<'_, '_>, name: &str, mistakes: &mut Mistakes<'_>) -> Option<GpioLine> {
    let Some(value) = table.value("line") else {
        let text =
            format!("{name} has no line; set line to the number or the name that gpioinfo prints");
        mistakes.add_missing(&table.span, text);
        return None;
    };
    let number = integer(value.get_ref()).and_then(|number| u32::try_from(number).ok());
    match (value.get_ref(), number) {
        (_, Some(number)) => Some(GpioLine::Number(number)),
        (DeValue::String(name), _) if !name.is_empty() => Some(GpioLine::Name(name.to_string())),
        _ => {
            let wanted = "the number of the line, from 0, or its name in quotes";
            wrong_type("line", wanted, value, mistakes);
            None
        }
    }
}
