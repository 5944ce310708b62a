//! `inspectpublish` with real files and a real broker (mosquitto).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod broker;
mod file;
mod frames;
mod hostile;
mod mqtt;
mod pipes;
mod refused;
