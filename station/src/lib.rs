//! The line station: runs the inspection of a line's cameras, serves its page and records failed
//! frames.

pub mod mqtt;
pub mod station;
pub mod systemd;
