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

mod alarms;
mod bad_input;
#[path = "../../examples/common/mod.rs"]
mod common;
#[allow(
    dead_code,
    reason = "shared with tests/operators, which uses more of it"
)]
#[path = "../operators/content.rs"]
mod content;
mod defects;
#[allow(
    dead_code,
    reason = "shared with tests/operators, which uses more of it"
)]
#[path = "../operators/device.rs"]
mod device;
mod estimation;
mod events;
#[allow(
    dead_code,
    reason = "shared with tests/operators, which uses more of it"
)]
#[path = "../operators/frames.rs"]
mod frames;
mod gaps;
mod guard_pages;
mod inspect_overlay;
mod latching;
mod lifecycle;
mod live;
mod mask_unpack;
mod memory;
mod messages;
mod metas;
mod negotiation;
mod output_frame;
mod panels;
mod planted;
#[path = "../reference/mod.rs"]
mod reference;
mod refusals;
mod results;
mod rtp;
mod sharing;
mod stats;
mod support;
mod two_devices;
