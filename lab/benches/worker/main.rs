//! Runs the crate's operators, the baselines, the sequential references and whole pipelines for
//! `benches/compare.py`, which requests one run at a time.
//!
//! A request is a line of JSON on stdin, its answer a line of JSON on stdout. `protocol.rs` lists
//! the requests; `peers.py` and `peers.cu` answer the same ones for other libraries.
//! `bench_worker pipelines` needs no driver.

use clinspect_lab::{
    baselines, camera_rows, cameras, device, limits, operators, pictures, pipelines, protocol,
    sequential,
};

use std::{
    collections::HashMap,
    io::{BufRead, Write},
    process::ExitCode,
};

use clap::Parser;
use clinspect_lab::{Contestant, Error, Skip};
use protocol::{Answer, Frame, Request, Settings};
use serde_json::{Value, json};

/// What is done without the driver.
#[derive(Parser)]
#[command(name = "bench_worker")]
enum Command {
    Pipelines(camera_rows::Rows),
}

type Slots = HashMap<u32, Box<dyn Contestant>>;

fn prepare(
    who: &str,
    task: &str,
    frame: &Frame,
    settings: &Settings,
) -> Result<Box<dyn Contestant>, Error> {
    match who {
        "ours" => operators::prepare(task, frame, settings),
        "reference" => sequential::prepare(task, frame, settings),
        "baseline" => baselines::prepare(task, frame, settings),
        "limit" => limits::prepare(task, frame, settings),
        "pipeline" => pipelines::prepare(frame, settings),
        "cameras" => cameras::prepare(frame, settings),
        _ => Err(format!("unknown contestant {who}").into()),
    }
}

fn hello() -> Result<Value, Error> {
    let mut devices = Vec::new();
    for device in clinspect_opencl::devices()? {
        let [name, driver, version] = device::Device::open(&device.name)?.about()?;
        devices.push(json!({
            "name": name, "driver": driver, "opencl": version,
            "gpu": device.is_gpu, "cpu": device.caps.is_cpu,
            "compute-units": device.caps.compute_units,
        }));
    }
    Ok(json!({
        "devices": devices,
        "versions": {
            "gst-plugin-clinspect": env!("CARGO_PKG_VERSION"),
            "GStreamer": gst::version_string().as_str(),
        },
    }))
}

fn answer(request: Request, slots: &mut Slots) -> Result<Answer, Error> {
    let missing = |slot: u32| format!("slot {slot} is empty");
    let mut answer = Answer::default();
    match request {
        Request::Hello => answer.about = hello()?,
        Request::Picture {
            path,
            kind,
            width,
            height,
            channels,
            photographs,
        } => {
            let bytes = pictures::draw(&kind, [width, height], channels, &photographs)?;
            std::fs::write(path, bytes)?;
        }
        Request::Prepare {
            slot,
            who,
            task,
            frame,
            settings,
        } => {
            let contestant = prepare(&who, &task, &frame, &settings)?;
            answer.about = contestant.about();
            slots.insert(slot, contestant);
        }
        Request::Run { slot, times } => {
            let contestant = slots.get_mut(&slot).ok_or_else(|| missing(slot))?;
            let times = contestant.run_many(times)?;
            answer.wall = times.iter().map(|t| t.wall_ns).collect();
            if times.iter().all(|t| t.device_ns > 0) {
                answer.device = times.iter().map(|t| t.device_ns).collect();
            }
            answer.about = contestant.about();
        }
        Request::Result { slot, path } => {
            let contestant = slots.get_mut(&slot).ok_or_else(|| missing(slot))?;
            std::fs::write(path, contestant.result()?)?;
        }
        Request::Drop { slot } => drop(slots.remove(&slot)),
    }
    Ok(answer)
}

fn serve() -> Result<(), Error> {
    let mut slots = Slots::new();
    for line in std::io::stdin().lock().lines() {
        let answered = serde_json::from_str(&line?)
            .map_err(Error::from)
            .and_then(|request| answer(request, &mut slots));
        let answer = answered.unwrap_or_else(|error| {
            let text = Some(error.to_string());
            if error.is::<Skip>() {
                Answer {
                    skip: text,
                    ..Answer::default()
                }
            } else {
                Answer {
                    error: text,
                    ..Answer::default()
                }
            }
        });
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string(&answer)?)?;
        out.flush()?;
    }
    Ok(())
}

fn start() -> Result<(), Error> {
    gst::init()?;
    gstclinspect::register_static()?;
    if std::env::args_os().len() == 1 {
        return serve();
    }
    match Command::parse() {
        Command::Pipelines(rows) => camera_rows::print(&rows),
    }
}

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench_worker: {error}");
            ExitCode::FAILURE
        }
    }
}
