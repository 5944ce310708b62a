//! Runs clinspect-doctor as a user does: on this machine as it is, and on one that lacks something or has a driver that
//! hangs, crashes or fails.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod devices;
mod drivers;
mod folders;
mod output;
mod stand;
