//! Lines of this PC, through the kernel's character device.

use std::{fmt, path::PathBuf};

use gpiocdev::{Chip, Request, request::Builder};

/// A line of a chip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpio {
    /// The chip's device.
    pub chip: PathBuf,
    /// The line of the chip.
    pub line: GpioLine,
}

/// How a chip knows its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpioLine {
    /// Its number, from 0.
    Number(u32),
    /// Its name.
    Name(String),
}

impl fmt::Display for GpioLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => write!(f, "{name:?}"),
        }
    }
}

impl Gpio {
    /// Takes the line, so that no other program has it. `prepare` says what it is to be.
    ///
    /// # Errors
    /// There is no such line, another program has it, or the user lacks the right; a sentence.
    pub fn take(&self, prepare: impl FnOnce(&mut Builder)) -> Result<Request, String> {
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
            .with_line(offset);
        prepare(&mut wanted);
        wanted.request().map_err(failed)
    }
}
