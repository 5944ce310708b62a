//! Releases of OpenCL objects, and what must come before them; they must not hold up a stop where a
//! driver stalls in them.

use std::{
    collections::VecDeque,
    ffi::c_void,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use opencl3::error_codes::error_text;

use super::handle::CAT;

/// A release that takes longer shows a driver that stalls.
const STALL: Duration = Duration::from_millis(500);

/// Releases that a thread of their own makes, in order; `None` while drivers are quick.
static WAITING: Mutex<Option<VecDeque<Release>>> = Mutex::new(None);

fn waiting() -> MutexGuard<'static, Option<VecDeque<Release>>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that waits for the thread.
struct Release {
    call: &'static str,
    work: Box<dyn FnOnce() -> Result<(), i32> + Send>,
}

/// An object on its way to the thread that gives it back.
struct Object(*mut c_void);

// SAFETY: OpenCL 1.2 (A.2) lets any thread release an object, or unmap one.
unsafe impl Send for Object {}

/// Makes `work`'s call on `object` at once; after one that stalled, later and in another thread, so that an
/// element with dozens of objects waits for one stall. The order of the calls stays.
///
/// `call` is its name; a failure, which `work` answers with its code, is logged.
pub(super) fn release(
    call: &'static str,
    object: *mut c_void,
    work: impl FnOnce(*mut c_void) -> Result<(), i32> + Send + 'static,
) {
    let object = Object(object);
    let work = move || {
        // All of it, not only its pointer, goes to the other thread.
        let object = object;
        work(object.0)
    };
    if let Some(releases) = &mut *waiting() {
        let work = Box::new(work);
        releases.push_back(Release { call, work });
        return;
    }
    let begun = Instant::now();
    log_failure(call, work());
    if begun.elapsed() > STALL {
        gst::warning!(CAT, "{call} stalls: releases go on in the background");
        work_in_background();
    }
}

fn log_failure(call: &str, result: Result<(), i32>) {
    if let Err(code) = result {
        gst::error!(CAT, "{call} failed with {} ({code})", error_text(code));
    }
}

fn work_in_background() {
    let mut releases = waiting();
    if releases.is_some() {
        return;
    }
    let thread = std::thread::Builder::new().name("clreleases".into());
    match thread.spawn(work_until_none_waits) {
        Ok(_) => *releases = Some(VecDeque::new()),
        Err(error) => gst::warning!(CAT, "no thread for releases: {error}"),
    }
}

fn work_until_none_waits() {
    // What is being stopped goes on giving up objects.
    std::thread::sleep(STALL);
    loop {
        let next = {
            let mut releases = waiting();
            let next = releases.as_mut().and_then(VecDeque::pop_front);
            if next.is_none() {
                *releases = None;
            }
            next
        };
        match next {
            Some(release) => log_failure(release.call, (release.work)()),
            None => return,
        }
    }
}
