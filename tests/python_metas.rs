//! Python reads our metas and messages through GObject introspection.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::tools;
use tools::{Sandbox, exists, run, skip};

/// Exit code of the script if a module or a device is missing.
const CANNOT_RUN: i32 = 77;

#[test]
fn metas_and_messages_read_from_python_equal_numpy() {
    let python = "/usr/bin/python3";
    if !exists("python3") || !std::path::Path::new(python).exists() {
        return skip("there is no /usr/bin/python3");
    }
    let sandbox = Sandbox::new("python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/read_metas.py");
    let read = run(sandbox.command(python).arg(script));
    if read.code() == Some(CANNOT_RUN) {
        return skip(&read.text());
    }
    let read = read.succeeded();
    assert!(
        read.output().contains("6 frames are right"),
        "{}",
        read.text()
    );
}
