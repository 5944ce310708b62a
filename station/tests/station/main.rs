//! The program `clinspect-station`, run as a process: its file, its cameras, its signals.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod camera;
mod check;
mod controls;
mod folder;
mod formats;
mod gpio;
mod late_pads;
mod modbus;
mod outcomes;
mod outputs;
mod process;
mod recipes;
mod recordings;
mod reload;
mod repeats;
mod set_up;
mod simulated;
mod systemd;
mod tried;
mod trouble;
