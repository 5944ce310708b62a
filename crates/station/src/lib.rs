//! The line station: runs the inspection of a line's cameras, serves its page and records failed
//! frames.

#![recursion_limit = "256"]

mod address;
pub mod advice;
mod bounded;
mod clock;
pub mod config;
mod convert;
pub mod found;
pub mod frame;
pub mod gpio;
pub mod input;
pub mod log;
pub mod machine;
pub mod metrics;
pub mod modbus;
pub mod mqtt;
pub mod output;
pub mod pictures;
pub mod pipeline;
pub mod pixel_format;
pub mod publishing;
pub mod recipes;
pub mod recorded;
pub mod recording;
pub mod repeats;
mod secrets;
pub mod setup;
pub mod source;
pub mod state;
pub mod station;
pub mod supervisor;
pub mod systemd;
pub mod tap;
pub mod trial;
pub mod web;
