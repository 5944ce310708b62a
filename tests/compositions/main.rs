//! Random compositions of pipelines: each ends by itself, without an error, with the same bytes as its paths alone.
//!
//! A composition is drawn from a seed. First the path of every sink runs alone, without tees and queues. Then the
//! composition runs in the same process, and every frame at every sink must equal the frame of the path. In the mode `lies`
//! the composition runs on a device that claims to be a GPU with memory of its own (`tests/opencl_layer`), and the
//! paths on the CPU.
//!
//! `CLINSPECT_COMPOSITIONS=FIRST..PAST` chooses the seeds; the ignored test `seeds_in_this_process` runs them with every step
//! printed. A failure prints the composition as a `gst-launch-1.0` line. `tests/torture/compositions` runs 500 in each mode.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod elements;
mod files;
mod fingerprint;
mod generate;
mod oracle;
mod plan;
mod run;
mod sinks;
mod watch;

use std::{ops::Range, process::Command};

use clinspect_testkit::{child, device, layer, support};

use files::Files;
use run::Alone;

/// Seeds without the environment variable.
const SEEDS: Range<u64> = 0..20;
/// A GPU with memory of its own.
const LIES: &str = "lie type 4\nlie unified 0\n";
/// The same of NVIDIA, where commands in the middle of a submission have no events.
const LIES_OF_NVIDIA: &str = "lie type 4\nlie unified 0\nlie platform 2\n";

/// The seeds that the environment chooses.
fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("CLINSPECT_COMPOSITIONS") else {
        return SEEDS;
    };
    let range = || {
        let (first, past) = text.split_once("..")?;
        Some(first.parse().ok()?..past.parse().ok()?)
    };
    range().expect("CLINSPECT_COMPOSITIONS=FIRST..PAST")
}

#[test]
#[ignore = "what the other tests start in a process of its own"]
fn child() {
    let Some(job) = child::job() else { return };
    support::register();
    let (mode, range) = job.split_once(':').unwrap();
    let (first, past) = range.split_once("..").unwrap();
    let seeds: Vec<u64> = (first.parse().unwrap()..past.parse().unwrap()).collect();
    let lies = mode == "lies";
    // A layer that is loaded reports this call.
    let devices = clinspect_opencl::devices();
    if lies && layer::Report::now().is_none() {
        return child::skip("the OpenCL loader takes no layers");
    }
    assert!(devices.is_ok(), "{devices:?}");
    let (mut alone, mut files) = (Alone::default(), Files::new());
    child::each(
        &seeds,
        |seed| format!("seed {seed}"),
        |&seed| {
            let result = try_seed(seed, lies, &mut alone, &files);
            if result.is_err() {
                files.keep();
            }
            result
        },
    );
}

#[test]
#[ignore = "prints the chosen seeds and each step, in this process, for a debugger"]
fn seeds_in_this_process() {
    support::register();
    let (mut alone, mut files) = (Alone::default(), Files::new());
    // A pipeline that was printed can be run by hand.
    files.keep();
    watch::print_steps();
    for seed in seeds() {
        let text = files.put_into(&generate::composition(seed).to_string());
        println!("seed {seed}: {text}");
        let result = try_seed(seed, false, &mut alone, &files);
        println!("seed {seed}: {result:?}");
    }
}

fn try_seed(seed: u64, lies: bool, alone: &mut Alone, files: &Files) -> Result<(), String> {
    let composition = generate::composition(seed);
    if !lies {
        alone.learn(&composition, files)?;
        return run::composition(&composition, alone, files);
    }
    layer::set_rules("");
    alone.learn(&composition, files)?;
    layer::settle();
    layer::set_rules(if seed.is_multiple_of(2) {
        LIES
    } else {
        LIES_OF_NVIDIA
    });
    // The registry gives elements the same context while it is held.
    let device = clinspect_opencl::open("auto").map_err(|why| why.to_string())?;
    let caps = device.caps();
    assert!(
        !caps.is_cpu && !caps.shares_host_memory,
        "no lie is believed: {caps:?}"
    );
    let result = run::composition(&composition, alone, files);
    drop(device);
    layer::settle();
    result
}

/// Runs the chosen seeds, in as many processes as there are processors for one of two tests.
fn assert_all(mode: &str, prepare: impl Fn(&mut Command, &str) + Sync) {
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
    let at_once = (processors / 2).max(1);
    let seeds = seeds();
    let each = (seeds.end - seeds.start).div_ceil(at_once as u64).max(1);
    let jobs: Vec<String> = seeds
        .clone()
        .step_by(each as usize)
        .map(|first| format!("{mode}:{first}..{}", (first + each).min(seeds.end)))
        .collect();
    child::assert_all(&jobs, at_once, |job| child::run_with(job, &prepare));
}

#[test]
fn compositions_give_the_bytes_of_their_paths_on_the_device_as_it_is() {
    if device::open().is_some() {
        assert_all("as-is", |_, _| {});
    }
}

#[test]
fn compositions_give_the_bytes_of_their_paths_on_a_device_with_memory_of_its_own() {
    let Some(device) = device::open() else { return };
    if !device.caps().is_cpu {
        return device::say("SKIP lies: the device has memory of its own as it is");
    }
    assert_all("lies", |command, name| {
        layer::put_between(command, name);
        // The device claims to be another one.
        command.env_remove("CLINSPECT_DEVICE");
    });
}
