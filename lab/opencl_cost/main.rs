//! The cost of OpenCL on each device, and the frame size from which it is faster than sequential
//! code.
//!
//! `cargo run --release --bin opencl_cost` prints a table per device; `--json` prints the
//! figures as JSON, `--list` only lists the devices, `--increment` measures only a whole program
//! that increments `--count` integers. Every figure is the median of repeated runs after
//! a warm-up.

use clinspect_testkit::{self as common};
mod frames;
mod increment;
mod operations;
mod sequential;
mod startup;
mod table;
mod timing;

use std::{io::Write, process::ExitCode};

use clap::{Parser, ValueEnum};
use clinspect_opencl::DeviceInfo;
use serde::Serialize;

/// The error of a measurement.
pub type Error = Box<dyn std::error::Error>;

/// Measures the cost of OpenCL on each device.
#[derive(Debug, Parser)]
#[command(name = "opencl_cost")]
struct Args {
    /// Write one JSON object to stdout instead of tables
    #[arg(long)]
    json: bool,
    /// Measure this device only: gpu, cpu, gpu:1, or part of a device's name
    #[arg(long)]
    device: Option<String>,
    /// List the devices, each with the value of the property device that selects it, and measure none
    #[arg(long, conflicts_with_all = ["device", "json"])]
    list: bool,
    /// Runs of each operation; the median is shown
    #[arg(long, value_name = "N", default_value_t = 51, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// Starts with an empty compiler cache; the median is shown
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    cold_runs: u32,
    /// Width of the largest frame, px
    #[arg(long, value_name = "PX", default_value_t = 1920, value_parser = clap::value_parser!(u32).range(64..=1920))]
    largest: u32,
    /// Integers of the program that increments them
    #[arg(long, value_name = "N", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    count: u32,
    /// Measure only the program that increments integers
    #[arg(long)]
    increment: bool,
    /// Measurement that a child process makes for its parent
    #[arg(long, value_enum, hide = true)]
    child: Option<Child>,
}

/// A measurement in a fresh process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Child {
    /// Context, queue and programs.
    Programs,
    /// The work of an element before its first frame.
    Elements,
    /// A whole program.
    Increment,
}

/// Extent of the measurement.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Runs of each operation.
    pub runs: u32,
    /// Starts with an empty compiler cache.
    pub cold_runs: u32,
    /// Width of the largest frame, px.
    pub largest: u32,
    /// Integers that a program increments.
    pub count: u32,
}

/// The figures of a device's program that increments integers.
#[derive(Debug, Serialize)]
pub struct IncrementCost {
    /// The device's name.
    pub device: String,
    /// GPU, CPU or accelerator.
    pub kind: &'static str,
    /// The program.
    pub increment: increment::Increment,
}

/// All figures of a device.
#[derive(Debug, Serialize)]
pub struct DeviceCost {
    /// Its name.
    pub device: String,
    /// GPU, CPU or accelerator.
    pub kind: &'static str,
    /// Compute units, as the driver counts them.
    pub compute_units: usize,
    /// Whether frames on the host need no copy.
    pub shares_host_memory: bool,
    /// A whole program.
    pub increment: increment::Increment,
    /// Work before the first frame.
    pub startup: Vec<startup::Startup>,
    /// Single operations.
    pub operations: Vec<operations::Operation>,
    /// Transfers to the device and back.
    pub transfers: Vec<operations::Transfer>,
    /// Whole frames.
    pub elements: Vec<frames::ElementCost>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("opencl_cost: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Error> {
    gst::init()?;
    if let Some(child) = args.child {
        let device = args.device.as_deref().unwrap_or("auto");
        return startup::measure_here(child, device, args.count);
    }
    let effort = Effort {
        runs: args.runs,
        cold_runs: args.cold_runs,
        largest: args.largest,
        count: args.count,
    };
    if args.list {
        for (selector, device) in selectors(&clinspect_opencl::devices()?, None)? {
            writeln!(std::io::stdout(), "{selector:6}  {}", device.name)?;
        }
        return Ok(());
    }
    let chosen = selectors(&clinspect_opencl::devices()?, args.device.as_deref())?;
    let text = if args.increment {
        let measure = |(_, device): &(String, DeviceInfo)| {
            Ok(IncrementCost {
                device: device.name.clone(),
                kind: kind(device),
                increment: increment::measure(&device.name, effort)?,
            })
        };
        let costs: Vec<_> = chosen.iter().map(measure).collect::<Result<_, Error>>()?;
        to_text(&costs, args.json, table::of_increment)?
    } else {
        let measure = |(selector, device): &(String, DeviceInfo)| measure(selector, device, effort);
        let costs: Vec<_> = chosen.iter().map(measure).collect::<Result<_, Error>>()?;
        to_text(&costs, args.json, table::to_text)?
    };
    writeln!(std::io::stdout(), "{}", text.trim_end())?;
    Ok(())
}

/// The figures as JSON or as tables.
fn to_text<T: Serialize>(
    costs: &[T],
    json: bool,
    table: fn(&T) -> String,
) -> Result<String, Error> {
    Ok(if json {
        serde_json::to_string(costs)?
    } else {
        costs.iter().map(table).collect()
    })
}

fn kind(device: &DeviceInfo) -> &'static str {
    match (device.is_gpu, device.caps.is_cpu) {
        (true, _) => "GPU",
        (_, true) => "CPU",
        _ => "accelerator",
    }
}

/// The devices to measure, each with its selector.
fn selectors(
    devices: &[DeviceInfo],
    wanted: Option<&str>,
) -> Result<Vec<(String, DeviceInfo)>, Error> {
    let selectors = clinspect_opencl::selectors(devices);
    let mut all: Vec<_> = selectors.into_iter().zip(devices.iter().cloned()).collect();
    let Some(wanted) = wanted else {
        return Ok(all);
    };
    let context = clinspect_opencl::open(wanted)?;
    all.retain(|(_, device)| device.name == context.device_name());
    all.truncate(1);
    // Several devices may have the same name.
    Ok(all
        .into_iter()
        .map(|(_, device)| (wanted.to_owned(), device))
        .collect())
}

fn measure(selector: &str, device: &DeviceInfo, effort: Effort) -> Result<DeviceCost, Error> {
    eprintln!("measuring {} ({selector}) ...", device.name);
    let increment = increment::measure(&device.name, effort)?;
    let startup = startup::measure(selector, effort)?;
    let context = clinspect_opencl::open(selector)?;
    Ok(DeviceCost {
        device: device.name.clone(),
        kind: kind(device),
        compute_units: device.caps.compute_units,
        shares_host_memory: device.caps.shares_host_memory,
        increment,
        startup,
        operations: operations::measure(&context, effort)?,
        transfers: operations::transfers(&context, effort)?,
        elements: frames::measure(&context, effort)?,
    })
}
