//! The first command that a user runs: examines drivers, devices, GStreamer, caches, rights, cameras and the network,
//! and measures how many cameras the PC can take.
//!
//! Everything that calls a driver, a plugin or another program runs in a child process with a time limit, so that a
//! driver that hangs or crashes becomes a line of the report. This process loads neither OpenCL nor GStreamer's plugins.

mod caches;
mod cameras;
mod child;
mod devices;
mod drivers;
mod gstreamer;
mod network;
mod pipeline;
mod probe;
mod report;
mod rights;
mod self_test;
mod source;
mod speed;

use std::{process::ExitCode, time::Duration};

use clap::{Parser, Subcommand};

use report::Report;

/// Examines this PC for the inspection with OpenCL, and says what to do about each fault
///
/// A line begins with ok, note (something to know) or FAULT (something to mend). The exit code is 0 without a fault, 1
/// with faults, and 2 for wrong usage.
#[derive(Parser)]
#[command(name = "clinspect-doctor", version)]
struct Args {
    /// Prints one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Does not measure frames a second
    #[arg(long)]
    no_speed: bool,
    /// Tests only this device: a value of the elements' property device, such as gpu, cpu:0 or part of a name
    #[arg(long, value_name = "SELECTOR")]
    device: Option<String>,
    /// Ends each probe of a driver, a plugin or a camera after this time
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    limit: u64,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// What a child process does
    #[command(hide = true)]
    Probe { what: String },
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(Command::Probe { what }) = args.command {
        return probe::main(&what);
    }
    let mut report = Report::new(args.json);
    examine(&args, &mut report);
    report.finish()
}

fn examine(args: &Args, report: &mut Report) {
    let limit = Duration::from_secs(args.limit);
    // Before a probe loads a damaged kernel. An error comes again.
    let removed = clinspect_opencl::check_pocl_cache().ok().flatten();
    let elements = gstreamer::examine(report, limit);
    let drivers = drivers::examine(report, limit);
    let devices = devices::examine(report, limit, &drivers, args.device.as_deref());
    let usable = self_test::examine(report, limit, &devices, &elements);
    if !args.no_speed {
        speed::examine(report, limit, &usable);
    }
    // The probes made the folders that were missing.
    caches::examine(report, &devices, removed);
    rights::examine(report);
    let cameras = cameras::examine(report, limit, &elements);
    network::examine(report, cameras);
}
