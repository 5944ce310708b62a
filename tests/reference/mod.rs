//! Sequential golden references, written from docs/semantics.md and from nothing else.
//!
//! They use neither the crate under test nor each other: plain loops over plain values that can be
//! compared with the definitions line by line. A test file includes them with `mod reference;`.

// Each test file uses a part of the references.
#![allow(dead_code, unused_imports)]

pub mod gaussian;
pub mod histogram;
pub mod pitch_threshold;
pub mod plane;

pub use plane::{Geometry, SampleKind, Samples, put};
