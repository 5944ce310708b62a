//! `--help` of every example, in Rust, C and Python, without an OpenCL device and without a display.
//!
//! `cargo test` builds the Rust examples; before `cargo test --test example_help` alone, run
//! `cargo build --examples`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::tools;
use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use tools::{Sandbox, example, exists, has_device, run, skip};

fn examples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// The examples with this file extension, or with `rs` also the folders; all are sorted by name.
fn names(extension: &str) -> Vec<String> {
    let entries = fs::read_dir(examples()).expect("the examples");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut names: Vec<String> = paths
        .filter(|path| match path.extension() {
            Some(found) => found == extension,
            None => extension == "rs" && path.join("main.rs").exists(),
        })
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert!(!names.is_empty(), "no example ends in .{extension}");
    names
}

/// Runs `--help` where there is neither a device nor a display.
#[track_caller]
fn explains_itself(sandbox: &Sandbox, mut command: Command) {
    let no_drivers = sandbox.folder("vendors");
    let done = run(command
        .arg("--help")
        .env("OCL_ICD_VENDORS", no_drivers)
        .env("MPLCONFIGDIR", sandbox.path())
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY"));
    assert_eq!(done.code(), Some(0), "{command:?}: {}", done.text());
    let text = done.output();
    assert!(
        text.to_lowercase().contains("usage:"),
        "{command:?}: {text}"
    );
    // More than the usage: what the example does, and what its options mean.
    assert!(text.lines().count() > 4, "{command:?}: {text}");
    assert!(!text.contains("frame 0"), "{command:?} inspects: {text}");
}

#[test]
fn rust_examples_explain_themselves() {
    let sandbox = Sandbox::new("help-rust");
    for name in names("rs") {
        explains_itself(&sandbox, sandbox.command(example(&name).to_str().unwrap()));
    }
    // Each side of `remote` has options of its own.
    for side in ["node", "station"] {
        let mut command = sandbox.command(example("remote").to_str().unwrap());
        command.arg(side);
        explains_itself(&sandbox, command);
    }
}

/// Runs an example whose standard output has no reader.
#[track_caller]
fn ends_without_a_reader(mut command: Command) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let done = command.stdout(writer).stderr(Stdio::piped()).spawn();
    let done = done.unwrap().wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&done.stderr);
    for word in ["panicked", "Traceback"] {
        assert!(!told.contains(word), "{command:?}: {told}");
    }
    assert_ne!(done.status.code(), Some(0), "{command:?} ran to its end");
}

#[test]
fn examples_end_without_a_panic_when_their_reader_has_left() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("no-reader");
    let pictures = sandbox.folder("pictures");
    for (name, arguments) in [
        ("embed", &[][..]),
        ("print_defects", &[]),
        ("overlay_pictures", &[pictures.to_str().unwrap()]),
    ] {
        let mut command = sandbox.command(example(name).to_str().unwrap());
        command.args(arguments);
        ends_without_a_reader(command);
    }
    for name in ["print_defects.py", "push_frames.py"] {
        let modules = "import gi, numpy; gi.require_version('GstApp', '1.0')";
        let Some(mut command) = tools::python(&sandbox, modules) else {
            return;
        };
        command.arg(examples().join(name));
        ends_without_a_reader(command);
    }
}

#[test]
fn python_examples_explain_themselves() {
    let sandbox = Sandbox::new("help-python");
    let modules = "import gi, numpy, matplotlib; gi.require_version('GstApp', '1.0')";
    // A module of the others, not a program.
    let is_program = |name: &String| name != "defect_records";
    for name in names("py").into_iter().filter(is_program) {
        let Some(mut command) = tools::python(&sandbox, modules) else {
            return;
        };
        command.arg(examples().join(name + ".py"));
        explains_itself(&sandbox, command);
    }
}

#[test]
fn c_examples_explain_themselves() {
    for program in ["cc", "pkg-config"] {
        if !exists(program) {
            return skip(&format!("{program} is not installed"));
        }
    }
    let sandbox = Sandbox::new("help-c");
    for name in names("c") {
        let program = sandbox.path().join(&name);
        let build = format!(
            "cc -o {} {}/{name}.c $(pkg-config --cflags --libs gstreamer-1.0 gstreamer-app-1.0) -lm",
            program.display(),
            examples().display()
        );
        run(sandbox.command("bash").args(["-c", &build])).succeeded();
        explains_itself(&sandbox, sandbox.command(program.to_str().unwrap()));
    }
}
