//! The two examples that print the list of defects, in Rust and in Python, run as processes: both print the
//! same, correct list.
//!
//! `cargo test` builds the examples; before `cargo test --test print_defects` alone, run
//! `cargo build --examples`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::tools;
use std::process::Command;

use tools::{FAINT_SQUARE, Run, Sandbox, example, has_device, run};

/// The printed defect of the pattern's spot: 6x4 pixels at 170, 122, level 235 on 81.
/// The estimated vectors of the chessboard lie off whole pixels by some thousandths.
const SPOT: &str = "  6x4 at 170,122: area 24, centre 173.00,124.00, difference 153.66, \
                    peak 154.00, polarity 1";

/// The published formula, which marks pixels also where no pattern repeats.
const FORMULA: &str =
    "pitch-y=0 compare=average match-center=false multiples=<1> borders=skip min-contrast=0";

fn rust(sandbox: &Sandbox, pipeline: &str) -> Run {
    let program = example("print_defects");
    launched(sandbox.command(program.to_str().unwrap()), pipeline)
}

/// `None` if Python or a module is missing.
fn python(sandbox: &Sandbox, pipeline: &str) -> Option<Run> {
    let modules = "import gi, numpy; gi.require_version('GstApp', '1.0')";
    let mut command = tools::python(sandbox, modules)?;
    command.arg(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/print_defects.py"
    ));
    Some(launched(command, pipeline))
}

fn launched(mut command: Command, pipeline: &str) -> Run {
    run(command.args(pipeline.split_whitespace()))
}

#[test]
fn defects_of_the_default_pattern_are_the_spot() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("print-pattern");
    let printed = rust(&sandbox, "").succeeded();
    let lines: Vec<String> = printed.output().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 6, "{}", printed.text());
    for (number, frame) in lines.chunks(2).enumerate() {
        let begin = format!("frame {number} by inspect: fail, 24 of ");
        assert!(frame[0].starts_with(&begin), "{}", printed.text());
        assert!(frame[0].ends_with(" 1 defects"), "{}", printed.text());
        assert_eq!(frame[1], format!("{SPOT}, id {}", number + 1));
    }
    if let Some(python) = python(&sandbox, "") {
        assert_eq!(python.succeeded().output(), printed.output());
    }
}

#[test]
fn defects_of_other_pipelines_are_the_same_from_both_programs() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("print-pipelines");
    for (pipeline, word) in [
        // More defects than are listed, of both polarities, with a mask instead of the frame.
        (
            "videotestsrc num-buffers=2 ! video/x-raw,format=GRAY8,width=160,height=120 ! \
             clpitchthreshold FORMULA pitch-x=7.5 name=p limits=limits,max-defects=7",
            "by p: fail",
        ),
        (
            "videotestsrc num-buffers=2 pattern=snow ! \
             video/x-raw,format=GRAY8,width=160,height=120 ! \
             clpitchthreshold FORMULA pitch-x=3 threshold=150 name=p output=frame ! queue",
            "100 defects and more",
        ),
        (
            "videotestsrc num-buffers=2 pattern=black ! clpitchthreshold FORMULA pitch-x=8 name=p",
            "by p: pass, 0 of ",
        ),
        // Two elements, a meta each.
        (
            "videotestsrc num-buffers=2 ! video/x-raw,format=GRAY8,width=160,height=120 ! \
             clpitchthreshold FORMULA pitch-x=7.5 name=p output=frame ! \
             clpitchthreshold FORMULA pitch-x=16 name=q output=frame limits=limits,max-defects=2",
            "by q: fail",
        ),
        // A square that only means of pixels show.
        (FAINT_SQUARE, ", class stain, level 2"),
    ] {
        let pipeline = &pipeline.replace("FORMULA", FORMULA);
        let printed = rust(&sandbox, pipeline).succeeded();
        assert!(printed.output().contains(word), "{}", printed.text());
        if let Some(python) = python(&sandbox, pipeline) {
            assert_eq!(python.succeeded().output(), printed.output());
        }
    }
}

#[test]
fn pipelines_that_cannot_run_get_a_sentence_and_fail() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("print-wrong");
    for (pipeline, word) in [
        ("videotestsrc num-buffers=2", "GstClDefectMeta"),
        (
            "videotestsrc num-buffers=2 ! clpitchthreshold pitch-x=0 pitch-y=0",
            "pitch-x",
        ),
        ("nosuchelement", "nosuchelement"),
    ] {
        let printed = rust(&sandbox, pipeline);
        assert_eq!(printed.code(), Some(1), "{}", printed.text());
        assert!(printed.text().contains(word), "{}", printed.text());
        if let Some(python) = python(&sandbox, pipeline) {
            assert_eq!(python.code(), Some(1), "{}", python.text());
            assert!(python.text().contains(word), "{}", python.text());
        }
    }
}
