//! A line of this PC.

use std::{fmt, path::PathBuf};

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
