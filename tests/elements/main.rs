//! The elements in harnesses and small pipelines, on whatever device `CLINSPECT_DEVICE` names.
//!
//! Expected counts depend on the device: if host and device share memory, a frame in other memory is
//! wrapped, else it is copied once. The binary reads no files, so it can run on another machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::{
    self as common, content, device, encoded, frames, oracle, panels, support,
};
mod alarms;
mod bad_input;
mod classes;
mod colour;
mod corrupted;
mod defects;
mod estimation;
mod events;
mod first_start;
mod flat_field;
mod follow;
mod gaps;
mod guard_pages;
mod ignored;
mod inspect_overlay;
mod latching;
mod lattice;
mod learn_contrast;
mod learn_threshold;
mod lifecycle;
mod live;
mod mask_unpack;
mod memory;
mod messages;
mod metas;
mod negotiation;
mod one_thread;
mod output_frame;
mod parts;
mod planted;
mod presence;
mod reference_picture;
mod reference_warp;
mod refusals;
mod results;
mod rtp;
mod semu;
mod sharing;
mod sight;
mod stats;
mod structures;
mod surface;
mod surface_bad_input;
mod surface_web;
mod texture;
mod texture_turned;
mod turned;
mod two_devices;
mod unpack;
mod web;
mod web_bad_input;
mod web_chains;
mod web_defects;
mod web_gaps;
mod web_held;
mod web_limits;
mod web_streams;
mod webs;
