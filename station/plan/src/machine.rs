//! How a camera answers the machine: the table `[camera.machine]`.

use std::time::Duration;

/// Deadline and trigger of a camera.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineSettings {
    /// From the arrival of a frame to its outcome at the latest; `None`: a frame waits for its result for ever.
    pub deadline: Option<Duration>,
    /// What the machine does with a frame that could not be inspected.
    pub none: UninspectedAction,
    /// Which frames the machine asks for.
    pub trigger: Trigger,
    /// From a trigger to the arrival of its frame at the latest.
    pub frame_within: Duration,
}

/// What the machine does with a frame that could not be inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UninspectedAction {
    /// It rejects the piece.
    Reject,
    /// There is no piece: it neither passes nor rejects.
    Ignore,
}

/// Which frames the machine asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Every frame.
    Every,
    /// The next frame after each trigger. Something else triggers the camera.
    Next,
    /// One frame after each trigger: the station triggers the camera.
    Software,
    /// The next frame after each edge at an input of this PC. What makes the edge triggers the camera.
    Input,
}

impl Trigger {
    /// Whether the machine asks by a command; else it gets the outcome of each frame or edge.
    pub fn is_commanded(self) -> bool {
        matches!(self, Self::Next | Self::Software)
    }
}

impl Default for MachineSettings {
    fn default() -> Self {
        Self {
            deadline: None,
            none: UninspectedAction::Reject,
            trigger: Trigger::Every,
            frame_within: Duration::from_secs(1),
        }
    }
}
