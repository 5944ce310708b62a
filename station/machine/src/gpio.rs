//! Lines of this PC, through the kernel's character device.

use gpiocdev::{Chip, Request, request::Builder};
use plan::{Gpio, GpioLine};

/// Takes the line, so that no other program has it. `prepare` says what it is to be.
///
/// # Errors
/// There is no such line, another program has it, or the user lacks the right; a sentence.
pub fn take(gpio: &Gpio, prepare: impl FnOnce(&mut Builder)) -> Result<Request, String> {
    let shown = gpio.chip.display();
    let failed = |why| {
        format!(
            "{shown}: {why}; gpioinfo shows the lines and who uses them, and the user of the station needs the right to \
             write to the device"
        )
    };
    let offset = match &gpio.line {
        GpioLine::Number(number) => *number,
        GpioLine::Name(name) => {
            let chip = Chip::from_path(&gpio.chip).map_err(failed)?;
            let found = chip.find_line_info(name);
            let lacks =
                || format!("{shown} has no line {name:?}; gpioinfo prints the names of lines");
            found.ok_or_else(lacks)?.offset
        }
    };
    let mut wanted = Request::builder();
    wanted
        .on_chip(&gpio.chip)
        .with_consumer("clinspect-station")
        .with_line(offset);
    prepare(&mut wanted);
    wanted.request().map_err(failed)
}
