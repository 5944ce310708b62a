//! Python reads metas and messages, and sets properties, through GObject introspection; it pushes
//! numpy frames. A script also fills a disk.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::tools;
use std::path::Path;
use tools::{Run, Sandbox, exists, has_device, run, skip};

/// Exit code of the script if a module or a device is missing.
const CANNOT_RUN: i32 = 77;

/// Runs a script of `tests/python`; it must print `expected`.
#[track_caller]
fn script_prints(name: &str, expected: &str) {
    script_prints_under(&["env"], name, expected);
}

/// The same, started by another program with these arguments.
#[track_caller]
fn script_prints_under(starter: &[&str], name: &str, expected: &str) {
    let python = "/usr/bin/python3";
    if !exists("python3") || !Path::new(python).exists() {
        return skip("there is no /usr/bin/python3");
    }
    let sandbox = Sandbox::new(name);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    let read = run(sandbox
        .command(starter[0])
        .args(&starter[1..])
        .arg(python)
        .arg(script.join(format!("{name}.py"))));
    if read.code() == Some(CANNOT_RUN) {
        return skip(&read.text());
    }
    let read = read.succeeded();
    assert!(read.output().contains(expected), "{}", read.text());
}

#[test]
fn metas_and_messages_read_from_python_equal_numpy() {
    script_prints("read_metas", "6 frames are right");
}

#[test]
fn documented_python_reads_every_meta_without_a_copy_and_sets_nested_regions() {
    script_prints("documented", "the lines of docs/metas.md work");
}

#[test]
fn defects_of_both_versions_are_read_from_python() {
    script_prints("read_defects", "both versions are read");
}

#[test]
fn defects_of_frames_and_webs_equal_scikit_image() {
    if has_device() {
        script_prints("regionprops", "defects equal regionprops");
    }
}

#[test]
fn full_disk_is_told_and_inspection_goes_on() {
    // As root, or in a namespace of users where the kernel allows one.
    let may = |options: &&str| {
        let mut unshare = std::process::Command::new("unshare");
        unshare.args([options, "mount", "-t", "tmpfs", "none", "/mnt"]);
        unshare.output().is_ok_and(|done| done.status.success())
    };
    let Some(options) = ["-m", "-rm"].into_iter().find(|options| may(options)) else {
        return skip("this user cannot mount a small tmpfs");
    };
    if has_device() {
        script_prints_under(&["unshare", options], "full_disk", "both go on");
    }
}

/// `examples/push_frames.py`; `None` if Python or a module is missing.
fn push_frames(sandbox: &Sandbox, args: &[&str]) -> Option<Run> {
    let modules = "import gi, numpy; gi.require_version('GstApp', '1.0')";
    let mut command = tools::python(sandbox, modules)?;
    command.arg(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/push_frames.py"
    ));
    Some(run(command.args(args)))
}

#[test]
fn push_frames_prints_a_verdict_per_frame_and_finds_the_spot() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("push");
    let Some(done) = push_frames(&sandbox, &["--frames", "7"]) else {
        return;
    };
    let done = done.succeeded();
    let expected: Vec<String> = (0..7)
        .map(|number| match number % 3 {
            2 => format!("frame {number}: fail, 1 defects"),
            _ => format!("frame {number}: pass, 0 defects"),
        })
        .collect();
    assert_eq!(done.lines("frame "), expected, "{}", done.text());
    // The spot's pixels lie less than 4 px from 300, 200, and the Gaussian widens it by up to 2 px.
    let spots = done.lines("  ");
    assert_eq!(spots.len(), 2, "{}", done.text());
    for spot in spots {
        let (place, difference) = spot.split_once(": difference ").expect("a difference");
        let (size, at) = place.trim().split_once(" px at ").expect("a place");
        let pair = |text: &str, between| -> [i32; 2] {
            let (a, b) = text.split_once(between).expect("two numbers");
            [a, b].map(|number| number.parse().expect("a number"))
        };
        for ((at, size), centre) in pair(at, ",").iter().zip(pair(size, "x")).zip([300, 200]) {
            assert!((centre - 5..=centre - 3).contains(at), "{spot}");
            assert!((7..=11).contains(&size), "{spot}");
        }
        assert!(difference.starts_with('-'), "{spot}");
    }
}

#[test]
fn push_frames_says_why_it_cannot_run() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("push-wrong");
    for (elements, word) in [
        ("nosuchelement", "nosuchelement"),
        ("clgaussian device=nosuchdevice", "nosuchdevice"),
        ("clpitchthreshold pitch-x=5000", "pitch-x"),
        ("clgaussian", "put clpitchthreshold into the pipeline"),
    ] {
        let elements: Vec<&str> = elements.split(' ').collect();
        let Some(done) = push_frames(&sandbox, &elements) else {
            return;
        };
        assert_eq!(done.code(), Some(1), "{}", done.text());
        assert!(done.text().contains(word), "{}", done.text());
    }
}
