//! Sequential golden references, written from docs/semantics.md and from nothing else.
//!
//! They use neither the crates under test nor each other: plain loops over plain values that can be
//! compared with the definitions line by line.

pub mod defects;
pub mod gaussian;
pub mod histogram;
pub mod ignore;
pub mod pitch_threshold;
pub mod plane;
mod scales;
pub mod trained;

pub use plane::{Geometry, SampleKind, Samples, put};
