//! The line whose edges are triggers: the table `[camera.machine.input]`.

use super::Gpio;

/// What the table `[camera.machine.input]` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputSettings {
    /// The line.
    pub gpio: Gpio,
    /// Which edges are triggers.
    pub edge: Edge,
}

/// An edge of the line's voltage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// From low to high.
    Rising,
    /// From high to low.
    Falling,
}
