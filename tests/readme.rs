//! The pipelines of README and of some pages of docs run as printed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::tools;
use tools::{Sandbox, shell_lines};

const README: &str = include_str!("../README.md");
/// Other pages with the number of their pipelines; tests/element_pages.rs runs those of docs/elements.
const PAGES: [(&str, usize); 3] = [
    (include_str!("../docs/which-element.md"), 4),
    (include_str!("../docs/line-cameras.md"), 2),
    (include_str!("../docs/tuning.md"), 2),
];

#[test]
fn pages_every_pipeline_runs_as_printed() {
    let sandbox = Sandbox::new("doc-pages");
    for (page, pipelines) in PAGES {
        let lines = shell_lines(page, "gst-launch-1.0");
        assert_eq!(lines.len(), pipelines, "{lines:?}");
        // Lines of Python make the files of the pipelines behind them.
        for line in shell_lines(page, "") {
            if line.contains("gst-launch-1.0") {
                sandbox.runs_as_printed(line);
            } else if line.starts_with("python3") {
                sandbox.python_runs_as_printed(line);
            }
        }
    }
}

#[test]
fn readme_every_pipeline_runs_as_printed() {
    let sandbox = Sandbox::new("readme");
    let lines = shell_lines(README, "gst-launch-1.0");
    assert_eq!(lines.len(), 7, "README shows seven pipelines: {lines:?}");
    // The first line of Python reads the file of the pipeline before it, the second one makes a file.
    let mut python = Vec::new();
    for line in shell_lines(README, "") {
        if line.starts_with("python3 -c") {
            python.push(sandbox.python_runs_as_printed(line));
        } else if line.starts_with("gst-launch-1.0") && !line.contains("aravissrc") {
            // tests/camera.rs runs those with a simulated camera.
            sandbox.runs_as_printed(line);
        }
    }
    assert_eq!(python.len(), 2);
    let counts: Vec<u64> = python[0]
        .output()
        .trim()
        .trim_matches(['[', ']'])
        .split_whitespace()
        .map(|n| n.parse().unwrap())
        .collect();
    assert_eq!(counts.len(), 5);
    // The ball is the only defect.
    assert!(
        counts.iter().all(|&n| n > 100 && n < 640 * 480 / 10),
        "{counts:?}"
    );
}
