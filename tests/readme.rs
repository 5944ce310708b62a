//! The pipelines of README and of docs/which-element.md run as printed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::tools;
use tools::{Sandbox, run, shell_lines};

const README: &str = include_str!("../README.md");
const WHICH_ELEMENT: &str = include_str!("../docs/which-element.md");

#[test]
fn which_element_every_pipeline_runs_as_printed() {
    let sandbox = Sandbox::new("which-element");
    let lines = shell_lines(WHICH_ELEMENT, "gst-launch-1.0");
    assert_eq!(lines.len(), 2, "{lines:?}");
    for line in lines {
        sandbox.runs_as_printed(line);
    }
}

#[test]
fn readme_every_pipeline_runs_as_printed() {
    let sandbox = Sandbox::new("readme");
    let lines = shell_lines(README, "gst-launch-1.0");
    assert!(lines.len() >= 6, "README shows pipelines: {lines:?}");
    for line in lines {
        if line.contains("aravissrc") {
            // tests/camera.rs runs a similar pipeline with a simulated camera.
            continue;
        }
        sandbox.runs_as_printed(line);
    }
    // The Python line reads the file of the pipeline before it.
    let python = shell_lines(README, "python3 -c")[0].replace("python3", "/usr/bin/python3");
    let mut shell = sandbox.command("bash");
    shell.args(["-c", &python]).current_dir(sandbox.path());
    let done = run(&mut shell);
    assert_eq!(done.code(), Some(0), "{python}\n{}", done.text());
    let counts: Vec<u64> = done
        .output()
        .trim()
        .trim_matches(['[', ']'])
        .split_whitespace()
        .map(|n| n.parse().unwrap())
        .collect();
    assert_eq!(counts.len(), 5);
    // The ball has edges, and most of the frame is black.
    assert!(
        counts.iter().all(|&n| n > 100 && n < 640 * 480 / 10),
        "{counts:?}"
    );
    let pictures = std::fs::read_dir(sandbox.path())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.starts_with("mask-") && name.ends_with(".pbm"))
        .count();
    assert_eq!(pictures, 5);
}
