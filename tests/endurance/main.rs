//! Thousands of frames through every chain: each result equals the reference and the result of another
//! device, and the process does not grow.
//!
//! The binary reads no files but the models that it writes, so it can run on another machine.
//! `CLINSPECT_DEVICE` names the device, `CLINSPECT_ENDURANCE_FRAMES` the number of frames per chain, and
//! `CLINSPECT_OTHER_DEVICE` the device to compare with (default `cpu`; skipped if it is missing or the
//! same device). `scripts/soak` runs the ignored tests for `CLINSPECT_SOAK_MINUTES`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::{device, frames, oracle, panels, support};
mod chains;
mod expected;
mod latency;
mod resources;
mod soak;
mod web;

/// A number from the environment.
pub fn setting(name: &str, default: usize) -> usize {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text}")),
        Err(_) => default,
    }
}
