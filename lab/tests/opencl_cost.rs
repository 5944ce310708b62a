//! The program `opencl_cost`, run as a process.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::tools;

use serde_json::Value;
use tools::{Run, Sandbox, exists, has_device, run, skip};

const PROGRAM: &str = env!("CARGO_BIN_EXE_opencl_cost");

fn opencl_cost(sandbox: &Sandbox, args: &[&str]) -> Run {
    run(sandbox.command(PROGRAM).args(args)).succeeded()
}

#[test]
fn opencl_cost_explains_itself_without_a_device() {
    let sandbox = Sandbox::new("cost-help");
    let no_drivers = sandbox.folder("vendors");
    let help = run(sandbox
        .command(PROGRAM)
        .arg("--help")
        .env("OCL_ICD_VENDORS", no_drivers));
    let text = help.succeeded().output();
    assert!(
        text.contains("Usage:") && text.lines().count() > 4,
        "{text}"
    );
}

/// Lists the devices in an environment, and compares the list with the error of an element whose
/// property `device` matches none. Returns the number of devices.
#[track_caller]
fn list_equals_the_error(sandbox: &Sandbox, environment: &[(&str, &str)]) -> usize {
    let mut command = sandbox.command(PROGRAM);
    let listed = run(command.arg("--list").envs(environment.iter().copied())).succeeded();
    let names: Vec<String> = listed
        .output()
        .lines()
        .map(|line| {
            let (selector, name) = line.split_once("  ").expect("a selector and a name");
            format!("{} ({})", selector.trim(), name.trim())
        })
        .collect();
    let mut launch =
        sandbox.launch("videotestsrc num-buffers=1 ! clgaussian device=nosuch ! fakesink");
    let refused = run(launch.envs(environment.iter().copied()));
    let expected = format!("device=nosuch; available: {}. Set device", names.join(", "));
    assert!(
        refused.text().contains(&expected),
        "{expected}\n{}",
        refused.text()
    );
    names.len()
}

#[test]
fn opencl_cost_lists_the_devices_that_the_error_for_a_wrong_device_names() {
    if !has_device() {
        return;
    }
    if !exists("gst-launch-1.0") {
        return skip("gst-launch-1.0 is not installed");
    }
    let sandbox = Sandbox::new("device-list");
    let one = list_equals_the_error(&sandbox, &[]);
    // PoCL makes a device of each of these words.
    let two = list_equals_the_error(&sandbox, &[("POCL_DEVICES", "basic pthread")]);
    assert!(one > 0 && two >= one, "{one} {two}");
}

#[test]
fn opencl_cost_json_holds_measured_figures() {
    if !has_device() {
        return;
    }
    let effort = ["--runs", "3", "--cold-runs", "1", "--largest", "160"];
    let sandbox = Sandbox::new("cost-json");
    let output = opencl_cost(&sandbox, &[&["--json"][..], &effort].concat()).output();
    let devices: Value = serde_json::from_str(&output).expect("one JSON value");
    let devices = devices.as_array().expect("a list of devices");
    assert!(!devices.is_empty());
    for device in devices {
        let positive = |rows: &Value, field: &str| {
            let rows = rows.as_array().expect("rows");
            assert!(!rows.is_empty());
            for row in rows {
                assert!(row[field].as_f64() > Some(0.0), "{field} of {row}");
            }
        };
        positive(&device["increment"]["steps"], "cold_ms");
        positive(&device["increment"]["steps"], "warm_ms");
        positive(&device["startup"], "cold_ms");
        positive(&device["startup"], "warm_ms");
        positive(&device["operations"], "ms");
        positive(&device["transfers"], "upload_mb_per_s");
        positive(&device["transfers"], "map_read_ms");
        let elements = device["elements"].as_array().expect("elements");
        assert_eq!(elements.len(), 3);
        for element in elements {
            positive(&element["sizes"], "sequential_ms");
            positive(&element["sizes"], "host_ms");
            positive(&element["sizes"], "on_device_ms");
        }
    }
}

#[test]
fn opencl_cost_table_names_every_step() {
    if !has_device() {
        return;
    }
    let effort = ["--runs", "1", "--cold-runs", "1", "--largest", "64"];
    let table = opencl_cost(&Sandbox::new("cost-table"), &effort).output();
    for row in [
        "sum of drivers, context and programs",
        "create context and queue",
        "build pitch_threshold.cl",
        "prepare clhistogram",
        "enqueue a kernel and wait for it",
        "faster than sequential",
    ] {
        assert!(table.contains(row), "{row} is missing in\n{table}");
    }
}

#[test]
fn opencl_cost_increment_measures_a_program_and_sums_its_steps() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("cost-increment");
    let args = ["--increment", "--cold-runs", "1", "--count", "1001"];
    let output = opencl_cost(&sandbox, &[&["--json"][..], &args].concat()).output();
    let devices: Value = serde_json::from_str(&output).expect("one JSON value");
    let devices = devices.as_array().expect("a list of devices");
    assert!(!devices.is_empty());
    for device in devices {
        let program = &device["increment"];
        assert_eq!(program["count"], 1001);
        let steps = program["steps"].as_array().expect("steps");
        for name in [
            "read the kernel from a file",
            "build the kernel of the file",
            "build the kernel of a string",
            "increment each atomically",
        ] {
            assert!(steps.iter().any(|step| step["step"] == name), "{program}");
        }
        for sum in ["cold_ms", "warm_ms"] {
            let steps: f64 = steps.iter().filter_map(|step| step[sum].as_f64()).sum();
            let sum = program[sum].as_f64().expect("a sum");
            assert!((sum - steps).abs() < 1e-6, "{program}");
        }
    }
    let table = opencl_cost(&sandbox, &args).output();
    assert!(table.contains("sum of these steps"), "{table}");
}
