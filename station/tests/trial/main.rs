//! Trials of settings on kept frames, and what they learn from good ones.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod frames;
mod same;
mod scenes;
mod tables;
mod taught;
