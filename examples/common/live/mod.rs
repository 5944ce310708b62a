//! Code that the examples share to run live pipelines. Not part of `common`, because tests and fuzz
//! targets include `common` without the crates that this needs.

#![allow(dead_code, reason = "each program uses a part of it")]

pub mod frames;
pub mod running;
pub mod source;
pub mod stop;
