//! Thousands of frames through every chain: each result equals the reference's and another
//! device's, and the process does not grow.
//!
//! The binary reads no file, so that it can be carried to another machine and run there:
//! `CLINSPECT_DEVICE` names the device, `CLINSPECT_ENDURANCE_FRAMES` the frames of a chain, and
//! `CLINSPECT_OTHER_DEVICE` the device to compare with (default `cpu`; left out where that is
//! the same one, or there is none). `scripts/soak` runs the ignored tests, which go on for
//! `CLINSPECT_SOAK_MINUTES`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::{device, frames, panels, reference, support};
mod chains;
mod expected;
mod latency;
mod resources;
mod soak;

/// A number from the environment.
pub fn setting(name: &str, default: usize) -> usize {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text}")),
        Err(_) => default,
    }
}
