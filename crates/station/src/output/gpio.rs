//! A line of this PC, through the kernel's character device.

use std::path::{Path, PathBuf};

use gpiocdev::{Chip, Request, line::Value};

use super::{GpioLine, Line};

/// A line of a chip. It belongs to the station from the first [`Line::set`] on, so that no other program sets it.
pub struct Gpio {
    chip: PathBuf,
    line: GpioLine,
    is_inverted: bool,
    request: Option<Request>,
}

impl Gpio {
    /// The line, which is not opened yet.
    pub fn new(chip: &Path, line: &GpioLine, is_inverted: bool) -> Self {
        Self {
            chip: chip.to_owned(),
            line: line.clone(),
            is_inverted,
            request: None,
        }
    }

    fn open(&self, value: Value) -> Result<Request, String> {
        let shown = self.chip.display();
        let failed = |why| {
            format!(
                "{shown}: {why}; gpioinfo shows the lines and who uses them, and the user of the station needs the right to \
                 write to the device"
            )
        };
        let offset = match &self.line {
            GpioLine::Number(number) => *number,
            GpioLine::Name(name) => {
                let chip = Chip::from_path(&self.chip).map_err(failed)?;
                let found = chip.find_line_info(name);
                let lacks =
                    || format!("{shown} has no line {name:?}; gpioinfo prints the names of lines");
                found.ok_or_else(lacks)?.offset
            }
        };
        let mut wanted = Request::builder();
        wanted
            .on_chip(&self.chip)
            .with_consumer("clinspect-station")
            .with_line(offset)
            .as_output(value);
        if self.is_inverted {
            wanted.as_active_low();
        }
        wanted.request().map_err(failed)
    }
}

impl Line for Gpio {
    fn set(&mut self, is_active: bool) -> Result<(), String> {
        let value = Value::from(is_active);
        if let Some(request) = &self.request {
            let set = request.set_lone_value(value);
            return set.map_err(|why| {
                // The device may come back under the same name.
                self.request = None;
                format!("{}: {why}", self.chip.display())
            });
        }
        self.request = Some(self.open(value)?);
        Ok(())
    }
}
