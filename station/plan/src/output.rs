//! The line that tells the machine which piece is good: the table `[camera.output]`.

use std::time::Duration;

use super::Gpio;

/// What the table `[camera.output]` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputSettings {
    /// What is set.
    pub wire: Wire,
    /// Length of a pulse.
    pub pulse: Duration,
    /// From the arrival of a frame, or from the edge that asked for it, to its pulse; `None`: the pulse comes with the outcome.
    pub delay: Option<Duration>,
}

/// What an output sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wire {
    /// A line of this PC.
    Gpio {
        /// The line.
        gpio: Gpio,
        /// Active is low.
        is_inverted: bool,
    },
    /// An output of the camera, which must be one of aravis.
    Camera {
        /// An entry of `UserOutputSelector`.
        user_output: String,
        /// An entry of `LineSelector` that is connected to the user output at the start.
        line: Option<String>,
    },
}
