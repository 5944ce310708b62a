//! Reasons to end early, with their exit codes.

use std::fmt;

/// A reason to end, as a sentence.
#[derive(Debug)]
pub enum Failure {
    /// The arguments ask for something that cannot be done.
    Usage(String),
    /// Something failed while frames were inspected.
    Runtime(String),
}

impl Failure {
    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Runtime(_) => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Runtime(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Failure {}

impl From<gst::glib::BoolError> for Failure {
    fn from(error: gst::glib::BoolError) -> Self {
        Self::Runtime(error.message.into_owned())
    }
}
