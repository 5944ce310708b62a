//! Registration from several threads at once.
//!
//! Types are registered once per process, so every attempt needs a new process: the
//! test starts its own binary again with `CLINSPECT_REGISTER_THREADS` set.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::process::Command;
use std::sync::Barrier;

/// Number of threads; set in the child processes.
const THREADS: &str = "CLINSPECT_REGISTER_THREADS";

/// Number of child processes. Without the lock in `register_static` all of them crashed.
const ATTEMPTS: usize = 12;

/// Registers from `threads` threads that start together.
fn register_together(threads: usize) {
    gst::init().unwrap();
    let together = Barrier::new(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                together.wait();
                gstclinspect::register_static().unwrap();
                for element in ["clhistogram", "clgaussian", "clpitchthreshold"] {
                    assert!(gst::ElementFactory::find(element).is_some(), "{element}");
                }
            });
        }
    });
}

#[test]
fn register_static_from_many_threads_at_once_is_safe() {
    if let Ok(threads) = std::env::var(THREADS) {
        register_together(threads.parse().unwrap());
        return;
    }
    let failed: Vec<_> = (0..ATTEMPTS)
        .filter_map(|_| {
            let run = Command::new(std::env::current_exe().unwrap())
                .env(THREADS, "8")
                .env("G_DEBUG", "fatal-criticals")
                .output()
                .unwrap();
            (!run.status.success()).then_some((run.status, run.stderr))
        })
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {ATTEMPTS} processes failed, the first with {}: {}",
        failed.len(),
        failed[0].0,
        String::from_utf8_lossy(&failed[0].1)
    );
}

#[test]
fn registered_again_while_elements_run_changes_nothing() {
    gst::init().unwrap();
    gstclinspect::register_static().unwrap();
    let factory = gst::ElementFactory::find("clgaussian").unwrap();
    let element = factory.create().build().unwrap();
    gstclinspect::register_static().unwrap();
    assert_eq!(
        gst::ElementFactory::find("clgaussian"),
        Some(factory.clone())
    );
    // An element reads its factory from its class, which does not keep a replaced one alive.
    assert_eq!(gst::prelude::ElementExt::factory(&element), Some(factory));
}
