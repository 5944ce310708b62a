//! The modules of `bench_worker`, which the criterion benchmarks use too.

#![allow(missing_docs, reason = "modules of a program, not an interface")]

use clinspect_testkit::{self as common, oracle};

pub mod baselines;
pub mod camera_rows;
pub mod cameras;
mod contestant;
pub mod device;
pub mod flat_field;
pub mod limits;
mod line;
pub mod operators;
pub mod pictures;
pub mod pipelines;
pub mod protocol;
pub mod sequential;
pub mod steps;
mod trained;
mod unpack;

pub use contestant::{Contestant, Error, Skip, skip};
