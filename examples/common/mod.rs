//! What the examples, tests and benches share.
//!
//! A program takes it in with `#[path = "../examples/common/mod.rs"] mod common;`.

#![allow(dead_code, reason = "each program uses another part of it")]

pub mod defect_text;
pub mod panel;
pub mod pool;
