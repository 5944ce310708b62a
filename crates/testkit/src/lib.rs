//! Code that tests, benchmarks, fuzz targets and examples share: synthetic panels, sequential
//! references, frames in every kind of memory, harnesses, and helpers for live pipelines.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

pub mod camera;
pub mod child;
pub mod cloth;
pub mod content;
pub mod device;
pub mod encoded;
pub mod frames;
pub mod fuzzing;
pub mod label;
pub mod layer;
pub mod live;
pub mod marks;
pub mod npz;
pub mod panel;
pub mod panels;
pub mod parts;
pub mod picture;
pub mod planted;
pub mod scenes;
pub mod support;
pub mod tools;

pub use clinspect_oracle as oracle;
