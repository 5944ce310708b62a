//! Inspects live frames; a base for your own application.
//!
//! `cargo run --release --example inspect -- --help` lists the options. The elements are linked
//! into the program, so no plugin needs to be installed.

use clinspect_testkit::{self as common, live};
mod failure;
mod feed;
mod files;
mod lines;
mod options;
mod passages;
mod pictures;
mod pipeline;
mod report;
mod roll;
mod roll_map;
mod session;
mod settings;
mod simulated;
mod source;
mod web;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = options::Args::parse();
    match session::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("inspect: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
