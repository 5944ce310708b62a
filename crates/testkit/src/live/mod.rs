//! Code that the examples share to run live pipelines.

pub mod frames;
pub mod running;
pub mod source;
pub mod stop;
