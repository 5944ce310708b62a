//! The station's page: its API, who may use it, hostile requests, and the page in a browser.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod access;
mod api;
mod browser;
mod curl;
mod fake;
mod hostile;
mod live;
mod recipes;
mod recorded;
mod setup;
