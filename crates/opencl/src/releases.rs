//! Releases of OpenCL objects, and the calls that must precede them. A driver that stalls in them
//! must not delay a stop.

use std::{
    collections::VecDeque,
    ffi::c_void,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use opencl3::error_codes::error_text;

use super::log::CAT;

/// A release that takes longer than this shows that the driver stalls.
const STALL: Duration = Duration::from_millis(500);

/// Releases for the background thread, in order; `None` while the driver does not stall.
static WAITING: Mutex<Option<VecDeque<Release>>> = Mutex::new(None);

/// Wakes the background thread.
static MORE: Condvar = Condvar::new();

fn waiting() -> MutexGuard<'static, Option<VecDeque<Release>>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call for the background thread.
struct Release {
    call: &'static str,
    work: Box<dyn FnOnce() -> Result<(), i32> + Send>,
}

/// Whether releases wait in the background: objects that were dropped may still exist.
pub(super) fn are_late() -> bool {
    waiting().is_some()
}

/// An object for the background thread to release.
struct Object(*mut c_void);

// SAFETY: OpenCL 1.2 (A.2) lets any thread release an object, or unmap one.
unsafe impl Send for Object {}

/// Calls `work` on `object`. Once a call has stalled, later calls go to a background thread, so
/// that an element with dozens of objects waits for one stall only. The order of the calls stays
/// the same.
///
/// `call` is the name of the OpenCL call; if `work` returns an error code, the failure is logged.
pub(super) fn release(
    call: &'static str,
    object: *mut c_void,
    work: impl FnOnce(*mut c_void) -> Result<(), i32> + Send + 'static,
) {
    let object = Object(object);
    let work = move || {
        // The closure must capture the `Send` wrapper, not only its pointer.
        let object = object;
        work(object.0)
    };
    if let Some(releases) = &mut *waiting() {
        let work = Box::new(work);
        releases.push_back(Release { call, work });
        MORE.notify_one();
        return;
    }
    let begun = Instant::now();
    log_failure(call, work());
    if begun.elapsed() > STALL {
        gst::warning!(
            CAT,
            "{call} stalls; further OpenCL objects are released in the background"
        );
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
        Err(error) => gst::warning!(CAT, "cannot start a thread for releases: {error}"),
    }
}

/// Makes the queued calls in order. Ends when no call was queued for a while; the next stall starts
/// a new thread.
fn work_until_none_waits() {
    loop {
        let is_empty = |releases: &mut Option<VecDeque<Release>>| {
            releases.as_ref().is_none_or(VecDeque::is_empty)
        };
        let (mut releases, _) = MORE
            .wait_timeout_while(waiting(), STALL, is_empty)
            .unwrap_or_else(PoisonError::into_inner);
        let Some(release) = releases.as_mut().and_then(VecDeque::pop_front) else {
            *releases = None;
            return;
        };
        drop(releases);
        log_failure(release.call, (release.work)());
    }
}
