//! The device under test, and skips that are visible.

use std::{
    collections::HashSet,
    io::Write,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use clinspect_opencl::{ClContext, ProgramSource};

/// The device that `CLINSPECT_DEVICE` names (`auto` by default), opened once for all tests.
///
/// `None` if there is none: the test is skipped, with a line that says so. With
/// `CLINSPECT_REQUIRE_DEVICE=1` the test fails.
pub fn open() -> Option<Arc<ClContext>> {
    static OPENED: OnceLock<Result<Arc<ClContext>, String>> = OnceLock::new();
    let opened = OPENED.get_or_init(|| {
        gst::init().expect("GStreamer initialises");
        let selector = std::env::var("CLINSPECT_DEVICE").unwrap_or_else(|_| "auto".into());
        let opened = clinspect_opencl::open_profiled(&selector).map_err(|error| error.to_string());
        if let Ok(context) = &opened {
            say(&format!(
                "DEVICE {}: {:?}",
                context.device_name(),
                context.caps()
            ));
        }
        opened
    });
    match opened {
        Ok(context) => Some(context.clone()),
        Err(reason) => {
            let required = std::env::var("CLINSPECT_REQUIRE_DEVICE").is_ok_and(|v| v == "1");
            assert!(
                !required,
                "CLINSPECT_REQUIRE_DEVICE=1, but no device opens: {reason}"
            );
            let test = std::thread::current().name().unwrap_or("?").to_owned();
            say(&format!("SKIP {test}: no device: {reason}"));
            None
        }
    }
}

/// Whether kernels can read images and write them. Some drivers offer images, but cannot compile kernels that write
/// them; the elements refuse images there.
pub fn has_images(context: &ClContext) -> bool {
    // A refused program would be compiled again for each case.
    static BUILT: OnceLock<bool> = OnceLock::new();
    context.caps().has_images()
        && *BUILT.get_or_init(|| context.program(ProgramSource::PlaneImage, "").is_ok())
}

/// Prints once that a case cannot run on this device.
pub fn skip(what: &str, why: &str) {
    static SAID: OnceLock<Mutex<HashSet<String>>> = OnceLock::new();
    let line = format!("SKIP {what}: {why}");
    let mut said = SAID
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if said.insert(line.clone()) {
        say(&line);
    }
}

/// Bypasses the capture of the test harness, which shows only the output of failing tests.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
