//! The line station: runs the inspection of a line's cameras, serves its page and records failed
//! frames.

pub mod metrics;
pub mod recording;
pub mod state;
pub mod web;
