//! The bodies of the fuzz targets: those that `cargo test --test fuzzing` runs on seeded input.

#[path = "../tests/fuzzing/bodies/mod.rs"]
pub mod bodies;
#[path = "../examples/common/mod.rs"]
mod common;
#[allow(dead_code, reason = "shared with tests that use more of it")]
#[path = "../tests/operators/content.rs"]
mod content;
#[allow(dead_code, reason = "shared with tests that use more of it")]
#[path = "../tests/operators/device.rs"]
mod device;
#[allow(dead_code, reason = "shared with tests that use more of it")]
#[path = "../tests/operators/frames.rs"]
mod frames;
#[allow(dead_code, reason = "shared with tests that use more of it")]
#[path = "../tests/components/picture.rs"]
mod picture;
#[path = "../tests/reference/mod.rs"]
mod reference;
#[allow(dead_code, reason = "shared with tests that use more of it")]
#[path = "../tests/elements/support.rs"]
mod support;
