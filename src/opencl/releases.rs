//! Releases of OpenCL objects, and what must come before them; they must not hold up a stop where a
//! driver stalls in them.

use std::{
    collections::VecDeque,
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

/// Makes `work`'s call at once; after one that stalled, later and in another thread, so that an
/// element with dozens of objects waits for one stall. The order of the calls stays.
///
/// `call` is its name; a failure, which `work` answers with its code, is logged.
pub(super) fn release(call: &'static str, work: impl FnOnce() -> Result<(), i32> + Send + 'static) {
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
