//! Recordings of failed frames, and the numbers for Prometheus.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod burst;
mod disk;
mod limits;
mod metrics;
mod pixels;
mod said;
mod sequence;
mod support;
