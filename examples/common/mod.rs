//! Code that examples, tests and benches share.
//!
//! A program includes it with `#[path = "../examples/common/mod.rs"] mod common;`.

#![allow(dead_code, reason = "each program uses a part of it")]

pub mod defect_text;
pub mod panel;
pub mod pool;
