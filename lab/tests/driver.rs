//! The benchmark's driver on tiny frames: every available baseline, variant and peer computes the
//! right result, and the report includes all of them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::tools;
use std::path::PathBuf;

use serde_json::Value;
use tools::{Sandbox, run, skip};

fn worker() -> PathBuf {
    env!("CARGO_BIN_EXE_bench_worker").into()
}

/// Debian's interpreter: the tests install numpy for it.
const PYTHON: &str = "/usr/bin/python3";

fn driver(sandbox: &Sandbox, worker: &str) -> (tools::Run, Value) {
    let figures = sandbox.path().join("figures.json");
    let done = run(sandbox
        .command(PYTHON)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args([
            concat!(env!("CARGO_MANIFEST_DIR"), "/benches/compare.py"),
            "--worker",
            worker,
        ])
        .args(["--device", "cpu", "--tiny", "--out"])
        .arg(&figures));
    let figures = std::fs::read_to_string(figures)
        .map_or(Value::Null, |text| serde_json::from_str(&text).unwrap());
    (done, figures)
}

fn has_device() -> bool {
    gst::init().unwrap();
    if let Err(why) = clinspect_opencl::open("cpu") {
        skip(&format!("no CPU device opens: {why}"));
        return false;
    }
    true
}

/// Cells of all rows: section, contestant, cell.
fn cells(figures: &Value) -> Vec<(String, String, Value)> {
    let mut cells = Vec::new();
    for section in figures["sections"].as_array().unwrap() {
        for row in section["rows"].as_array().unwrap() {
            for (label, cell) in row["cells"].as_object().unwrap() {
                let title = section["title"].as_str().unwrap().to_owned();
                cells.push((title, label.clone(), cell.clone()));
            }
        }
    }
    cells
}

#[test]
fn baselines_and_variants_compute_what_the_reference_does() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("benches");
    let (done, figures) = driver(&sandbox, worker().to_str().unwrap());
    let done = done.succeeded();
    let cells = cells(&figures);
    let timed: Vec<&str> = cells
        .iter()
        .filter(|(_, _, cell)| cell["wall_ns"].as_u64().is_some_and(|ns| ns > 0))
        .map(|(_, label, _)| label.as_str())
        .collect();
    // The driver compared each of these with the sequential reference, or it would have failed.
    for label in [
        "private, merged on the host",
        "private, merged by the last group",
        "private, merged by a work-item a bin",
        "private, merged by many",
        "global, merged on the host",
        "global, merged by a work-item a bin",
        "bytes",
        "banked, merged by one",
        "banked, merged by all",
        "plain, merged by one",
        "plain, merged by all",
        "buffer, integer, one division",
        "buffer, integer, four divisions",
        "buffer, integer, nine statements",
        "buffer, integer, centre first",
        "buffer, float, four divisions",
        "buffer, float, native_divide",
        "buffer, float, floats in memory",
        "image, integer, shift",
        "image, float, native_divide, centre first",
        "image, float, floats in memory",
        "buffer, integer, 32x4",
        "buffer, float, driver",
        "image, float, driver",
        "published",
        "published, with transfers",
        "64x1",
        "comparison alone",
        "threshold, unpacked",
        "threshold, packed",
        "pairs",
        "private",
        "direct",
        "numpy",
        "sequential",
        "device copy",
        "written in place",
        "in place, 25/s each",
        "empty cache",
    ] {
        assert!(timed.contains(&label), "{label}: {}", done.text());
    }
    // Counting and merging are timed apart.
    let (.., cell) = cells
        .iter()
        .find(|(_, label, _)| label == "private, merged on the host")
        .unwrap();
    let steps = cell["about"]["steps"].as_array().unwrap();
    let names: Vec<_> = steps.iter().map(|step| step["name"].as_str()).collect();
    assert_eq!(names, [Some("count"), Some("merge")]);
    let report = sandbox.path().join("benchmarks.md");
    let json = sandbox.path().join("figures.json");
    run(sandbox
        .command(PYTHON)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/report.py"))
        .arg("--tables")
        .arg(&report)
        .arg("--ratios")
        .arg(sandbox.path().join("ratios.md"))
        .arg("--then")
        .args([&sandbox.path().join("then-and-now.md"), &json]))
    .succeeded();
    let text = std::fs::read_to_string(report).unwrap();
    assert!(text.contains("### Published 3x3 Gaussian, corrected"));
    assert!(!text.contains("**fault**"));
    let ratios = std::fs::read_to_string(sandbox.path().join("ratios.md")).unwrap();
    assert!(ratios.contains("\n## CPU: "), "{ratios}");
    keeps_what_is_not_measured_anew(&sandbox, &figures);
}

/// A run of one section, or of another device, replaces no other figure in the documents.
fn keeps_what_is_not_measured_anew(sandbox: &Sandbox, figures: &Value) {
    let report = |figures: &Value| {
        let [json, bench, then] =
            ["new.json", "kept.md", "kept-then.md"].map(|name| sandbox.path().join(name));
        std::fs::write(&json, figures.to_string()).unwrap();
        run(sandbox
            .command(PYTHON)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/report.py"))
            .args([
                "--tables".as_ref(),
                bench.as_os_str(),
                "--then".as_ref(),
                then.as_os_str(),
                json.as_os_str(),
            ]))
        .succeeded();
        [bench, then].map(|path| std::fs::read_to_string(path).unwrap())
    };
    let [all, then] = report(figures);
    let mut gpu = figures.clone();
    gpu["gpu"] = true.into();
    let [both, then_both] = report(&gpu);
    assert!(both.starts_with(all.trim_end()), "{both}");
    assert_eq!(both.matches("\n## GPU: ").count(), 1);
    assert_ne!(then_both, then);
    let mut one = figures.clone();
    let sections = one["sections"].as_array_mut().unwrap();
    sections.retain(|section| section["title"] == "Memory");
    sections[0]["note"] = "Another note.".into();
    one["only"] = "Memory".into();
    one["cost"] = Value::Null;
    let [with_one, then_with_one] = report(&one);
    let kept = |text: &str| {
        let other = |line: &&str| {
            !line.contains("Another note.") && !line.starts_with("Measured 20") && !line.is_empty()
        };
        text.lines()
            .filter(other)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let mut expected = kept(&both);
    let note = figures["sections"]
        .as_array()
        .unwrap()
        .iter()
        .find(|s| s["title"] == "Memory")
        .unwrap()["note"]
        .as_str()
        .unwrap();
    expected.remove(expected.iter().position(|line| line == note).unwrap());
    assert_eq!(kept(&with_one), expected);
    assert_eq!(with_one.matches("\nMeasured 20").count(), 1);
    assert_eq!(then_with_one, then_both);

    // A contestant that cannot take part now keeps its figures, and those beside it.
    let mut fewer = gpu.clone();
    let sections = fewer["sections"].as_array_mut().unwrap();
    let memory = sections
        .iter_mut()
        .find(|s| s["title"] == "Memory")
        .unwrap();
    memory["note"] = "Another note.".into();
    for row in memory["rows"].as_array_mut().unwrap() {
        row["cells"]["device copy"] = serde_json::json!({"skip": "it is not there"});
    }
    let [with_fewer, _] = report(&fewer);
    assert_eq!(kept(&with_fewer), kept(&with_one));
    let of_gpu = with_fewer.split("\n## GPU: ").nth(1).unwrap();
    assert!(of_gpu.contains("device copy") && !of_gpu.contains("Another note."));
    assert_eq!(of_gpu.matches("\nMeasured 20").count(), 1);
    fewer["only"] = "Memory".into();
    let [again, _] = report(&fewer);
    assert!(
        !again
            .split("\n## GPU: ")
            .nth(1)
            .unwrap()
            .contains("Another note.")
    );
}

#[test]
fn published_figures_name_rows_and_contestants_that_are_measured() {
    let script = "\
        import then_and_now\n\
        from published import published_sections\n\
        for gpu in (False, True):\n\
        \x20   plan = {s.title: s for s in published_sections(gpu)}\n\
        \x20   for experiment in then_and_now.EXPERIMENTS:\n\
        \x20       for figure in experiment.figures:\n\
        \x20           section = plan[figure.section]\n\
        \x20           assert figure.row in [row.title for row in section.rows], figure\n\
        \x20           labels = [c.label for c in section.contestants]\n\
        \x20           assert figure.contestant in labels, figure\n\
        \x20           assert not figure.ours or figure.ours in labels, figure\n";
    let sandbox = Sandbox::new("benches-published");
    run(sandbox
        .command(PYTHON)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env(
            "PYTHONPATH",
            concat!(env!("CARGO_MANIFEST_DIR"), "/benches"),
        )
        .args(["-c", script]))
    .succeeded();
}

#[test]
fn driver_sees_a_wrong_result() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("benches-wrong");
    // This worker changes a count in every histogram that it writes.
    let liar = sandbox.path().join("liar");
    std::fs::write(
        &liar,
        format!(
            "#!{PYTHON}\n\
             import json, subprocess, sys\n\
             worker = subprocess.Popen([{:?}], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)\n\
             ours = set()\n\
             for line in sys.stdin:\n\
             \x20   request = json.loads(line)\n\
             \x20   worker.stdin.write(line)\n\
             \x20   worker.stdin.flush()\n\
             \x20   answer = worker.stdout.readline()\n\
             \x20   if request.get('who') == 'ours':\n\
             \x20       ours.add(request['slot'])\n\
             \x20   if request['op'] == 'result' and request['slot'] in ours:\n\
             \x20       with open(request['path'], 'r+b') as file:\n\
             \x20           byte = file.read(1)[0]\n\
             \x20           file.seek(0)\n\
             \x20           file.write(bytes([byte ^ 2]))\n\
             \x20   print(answer, end='', flush=True)\n",
            worker().to_str().unwrap()
        ),
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&liar, mode).unwrap();
    let (done, figures) = driver(&sandbox, liar.to_str().unwrap());
    assert_eq!(done.code(), Some(1), "{}", done.text());
    let faults = figures["faults"].as_array().unwrap();
    let names = |task: &str| {
        faults
            .iter()
            .filter_map(Value::as_str)
            .any(|fault| fault.contains(task) && fault.contains("differs"))
    };
    assert!(names("1080p GRAY, constant 128"), "{faults:?}");
}
