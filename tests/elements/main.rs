//! The elements in harnesses and small pipelines, on whatever device `CLINSPECT_DEVICE` names.
//!
//! Expectations follow from the kind of device: where host and device share memory a foreign
//! frame is wrapped, elsewhere it is copied once. The binary reads no file, so that it can be
//! carried to another machine and run there.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::{self as common, content, device, frames, panels, reference, support};
mod alarms;
mod bad_input;
mod defects;
mod estimation;
mod events;
mod guard_pages;
mod inspect_overlay;
mod lifecycle;
mod live;
mod mask_unpack;
mod memory;
mod messages;
mod metas;
mod negotiation;
mod output_frame;
mod planted;
mod refusals;
mod results;
mod rtp;
mod sharing;
mod stats;
mod two_devices;
