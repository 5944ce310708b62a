//! Compares every kernel variant with the sequential references, on the device that
//! `CLINSPECT_DEVICE` names; integer results bit for bit.
//!
//! The binary reads no files, so it can run on another machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::{content, device, encoded, frames, oracle};
mod channels;
mod colour;
mod defect_levels;
mod defects;
mod flat_field;
mod gaussian;
mod hazards;
mod histogram;
mod histogram_job;
mod importer;
mod lattice;
mod memory;
mod part_finder;
mod parts;
mod pitch_threshold;
mod pitch_threshold_difference;
mod pitch_threshold_fixed;
mod pitch_threshold_job;
mod pitch_threshold_modes;
mod planted;
mod properties;
mod reference_job;
mod scales_tiles;
mod self_test;
mod small;
mod surface;
mod surface_job;
mod texture;
mod texture_lattice;
mod unpack;
mod uploads;
mod workers;

/// Sizes for every operator: a pixel, single rows and columns, odd and vector widths.
pub const SIZES: [[usize; 2]; 12] = [
    [1, 1],
    [2, 2],
    [15, 1],
    [1, 15],
    [3, 7],
    [16, 4],
    [17, 5],
    [33, 7],
    [48, 3],
    [64, 33],
    [65, 4],
    [257, 19],
];
