//! Repeats on a web: how often chance raises an alarm, and after how many turns a damaged roller does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod alarms;
mod chance;
mod planted;
mod rows;
mod web;
