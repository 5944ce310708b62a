//! Contestants: work that can be run and timed.

use std::fmt;

use serde_json::Value;

use crate::protocol::Times;

/// Why a request cannot be answered.
pub type Error = Box<dyn std::error::Error>;

/// A contestant that cannot take part here; not a failure.
#[derive(Debug)]
pub struct Skip(String);

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skip {}

/// The reason why a contestant cannot take part.
pub fn skip(why: impl Into<String>) -> Error {
    Box::new(Skip(why.into()))
}

/// Work that can be run and timed.
pub trait Contestant {
    /// Runs once, to completion.
    ///
    /// # Errors
    /// The reason of the failure.
    fn run(&mut self) -> Result<Times, Error>;

    /// Runs `times` times; returns the time of each run.
    ///
    /// # Errors
    /// The reason of the failure.
    fn run_many(&mut self, times: u32) -> Result<Vec<Times>, Error> {
        (0..times).map(|_| self.run()).collect()
    }

    /// The last run's result: bins, samples without padding, or the packed mask.
    ///
    /// # Errors
    /// It cannot be read.
    fn result(&mut self) -> Result<Vec<u8>, Error>;

    /// Facts about the contestant, such as the variant chosen.
    fn about(&self) -> Value {
        Value::Null
    }
}
