//! The errors that an element posts.

use std::sync::Mutex;

use gst::prelude::*;

use super::ClBaseFilter;
use crate::{
    elements::{last_report::LastReport, lock},
    error::error_message,
};
use clinspect_core::ClError;

/// Kind of a posted error. All failing calls count as one kind: after the first one, every later
/// call may fail.
#[derive(Debug, PartialEq)]
enum Fault {
    Call,
    Other(ClError),
}

impl From<&ClError> for Fault {
    fn from(error: &ClError) -> Self {
        match error {
            ClError::Call { .. } => Self::Call,
            other => Self::Other(other.clone()),
        }
    }
}

/// Remembers the last posted error.
#[derive(Default)]
pub(super) struct Faults(Mutex<LastReport<Fault>>);

impl Faults {
    /// Posts an error.
    pub fn post(&self, element: &ClBaseFilter, error: &ClError, task: &str) {
        lock(&self.0).is_new(error.into());
        element.post_error_message(error_message(error, task));
    }

    /// Posts an error unless the same error was posted last.
    pub fn post_once(&self, element: &ClBaseFilter, error: &ClError, task: &str) {
        if lock(&self.0).is_new(error.into()) {
            element.post_error_message(error_message(error, task));
        }
    }

    /// Whether the last posted error was a failing call.
    pub fn is_call_posted(&self) -> bool {
        lock(&self.0).is_last(&Fault::Call)
    }

    /// Forgets the last error: the next one counts as new.
    pub fn clear(&self) {
        lock(&self.0).clear();
    }
}
