//! Releases of OpenCL objects, which must not hold up a stop where a driver stalls in them.

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

/// One reference to an object, on its way back to the driver.
pub(super) struct Release {
    call: &'static str,
    object: *mut c_void,
    function: unsafe fn(*mut c_void) -> Result<(), i32>,
}

// SAFETY: OpenCL 1.2 (A.2) lets any thread release an object.
unsafe impl Send for Release {}

impl Release {
    /// `function` releases `object`, whose reference the caller gives up; `call` is its name.
    pub fn new(
        call: &'static str,
        object: *mut c_void,
        function: unsafe fn(*mut c_void) -> Result<(), i32>,
    ) -> Self {
        Self {
            call,
            object,
            function,
        }
    }

    /// Releases at once; after a release that stalled, later and in another thread, so that an
    /// element with dozens of objects waits for one stall.
    pub fn make(self) {
        if let Some(releases) = &mut *waiting() {
            releases.push_back(self);
            return;
        }
        let call = self.call;
        let begun = Instant::now();
        self.run();
        if begun.elapsed() > STALL {
            gst::warning!(CAT, "{call} stalls: releases go on in the background");
            work_in_background();
        }
    }

    fn run(self) {
        // SAFETY: the reference is this value's own, and the value is used up.
        if let Err(code) = unsafe { (self.function)(self.object) } {
            gst::error!(
                CAT,
                "{} failed with {} ({code})",
                self.call,
                error_text(code)
            );
        }
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
            Some(release) => release.run(),
            None => return,
        }
    }
}
