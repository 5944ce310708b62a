//! Sequential golden references, written from docs/semantics.md and from nothing else.
//!
//! They use neither the crates under test nor each other: plain loops over plain values that can be
//! compared with the definitions line by line. Tests compare every kernel with them, and so does the self-test at the
//! start of an element.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "arguments that contradict each other are a fault of the caller"
)]

pub mod defects;
pub mod flat_field;
pub mod gaussian;
pub mod histogram;
pub mod ignore;
mod lattice;
pub mod part;
pub mod pitch_threshold;
pub mod place;
pub mod plane;
mod scales;
mod smooth;
pub mod surface;
pub mod texture;
pub mod trained;
pub mod unpack;

pub use plane::{Geometry, SampleKind, Samples, put};
