//! What an input tells the machine.

use std::time::Instant;

use crate::locks::Mutex;

/// An edge that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputEdge {
    /// When.
    pub at: Instant,
    /// Edges before it that are lost: too many came before they were read.
    pub missed: u32,
}

/// Whether edges reach the station.
#[derive(Default)]
pub struct InputState {
    /// Why the line cannot be read.
    trouble: Mutex<Option<String>>,
}

impl InputState {
    /// Whether edges reach the station.
    ///
    /// # Errors
    /// The line cannot be read; a sentence.
    pub fn is_in_force(&self) -> Result<(), String> {
        self.trouble.lock().clone().map_or(Ok(()), Err)
    }

    /// Why the line cannot be read; `None`: it can. Returns what was said before.
    pub fn set_trouble(&self, why: Option<String>) -> Option<String> {
        std::mem::replace(&mut *self.trouble.lock(), why)
    }
}
