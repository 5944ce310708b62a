//! What the outcomes drive.

use super::Answer;

/// An output that tells the machine which piece is good. No call waits for its line.
pub trait Actuator: Send + Sync {
    /// Takes an answer. Neither waits for the line nor for its time. If too many answers wait, the output rests until the
    /// next answer, with an alarm.
    fn tell(&self, answer: &Answer);

    /// Not enabled, the output is at rest at once, and answers are not acted on.
    fn set_enabled(&self, is_enabled: bool);

    /// Rest at once; answers that wait for their time are forgotten.
    fn rest(&self);

    /// Whether answers reach the line.
    ///
    /// # Errors
    /// A sentence: there is no line now, or it cannot be set.
    fn is_in_force(&self) -> Result<(), String>;
}
