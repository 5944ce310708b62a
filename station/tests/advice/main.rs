//! The advice on drawn objects, on boards, and on pictures of real cloth that someone has downloaded.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod drawn;
mod measured;
mod real;
