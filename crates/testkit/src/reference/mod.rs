//! Sequential golden references, written from SEMANTICS.md and from nothing else.
//!
//! They use neither the crate under test nor each other's shortcuts: plain loops over plain
//! values, so that a reader can hold them against the specification line by line. A test file
//! includes them with `mod reference;`.

pub mod gaussian;
pub mod histogram;
pub mod pitch_threshold;
pub mod plane;

pub use plane::{Geometry, SampleKind, Samples, put};
