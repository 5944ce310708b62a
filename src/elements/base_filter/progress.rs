//! Progress messages while kernels are compiled.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use gst::{glib, prelude::*};

use clinspect_core::ClError;
use clinspect_opencl::{Compiling, observe_compiler};

/// The `code` of the messages.
const CODE: &str = "compile";
/// A build that takes less time posts no message: the driver has the kernels in its cache.
const QUIET: Duration = Duration::from_millis(500);

/// Runs `build`, and posts progress messages if it compiles for longer than [`QUIET`].
///
/// # Errors
/// The error of `build`.
pub(super) fn report<T>(
    element: &glib::WeakRef<gst::Element>,
    build: impl FnOnce() -> Result<T, ClError>,
) -> Result<T, ClError> {
    let (sender, steps) = channel();
    let reporter = Rc::new(RefCell::new(Reporter::Idle(element.clone(), steps)));
    let observed = reporter.clone();
    let started = Instant::now();
    let result = observe_compiler(
        move |what| match what {
            Compiling::Program(name) => {
                observed.borrow_mut().start();
                send(&sender, name);
            }
            Compiling::Kernel(name) => send(&sender, name),
        },
        build,
    );
    // The observer and its sender are gone, so the thread ends.
    let posted = reporter.replace(Reporter::Ended).end();
    if posted && let Some(element) = element.upgrade() {
        match &result {
            Ok(_) => {
                let seconds = started.elapsed().as_secs_f64();
                let text = format!("compiled the kernels in {seconds:.1} s");
                post(&element, gst::ProgressType::Complete, &text);
            }
            Err(error) => post(&element, gst::ProgressType::Error, &error.to_string()),
        }
    }
    result
}

fn send(sender: &Sender<&'static str>, name: &'static str) {
    // Without a thread nobody receives the name.
    let _ = sender.send(name);
}

/// Posts messages from a thread, because the compiler holds the building one.
enum Reporter {
    /// No program was requested.
    Idle(glib::WeakRef<gst::Element>, Receiver<&'static str>),
    Running(JoinHandle<bool>),
    Ended,
}

impl Reporter {
    fn start(&mut self) {
        match std::mem::replace(self, Self::Ended) {
            Self::Idle(element, steps) => {
                let thread = std::thread::Builder::new().name("clprogress".into());
                if let Ok(thread) = thread.spawn(move || run(&element, &steps)) {
                    *self = Self::Running(thread);
                }
            }
            other => *self = other,
        }
    }

    /// Waits for the thread; returns whether it posted a message.
    fn end(self) -> bool {
        match self {
            Self::Running(thread) => thread.join().unwrap_or(false),
            Self::Idle(..) | Self::Ended => false,
        }
    }
}

/// Posts the steps after [`QUIET`]; returns whether it posted a message.
fn run(element: &glib::WeakRef<gst::Element>, steps: &Receiver<&'static str>) -> bool {
    let deadline = Instant::now() + QUIET;
    let mut step = "";
    loop {
        match steps.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(next) => step = next,
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
    let post_step = |kind, step: &str| {
        if let Some(element) = element.upgrade() {
            post(&element, kind, &format!("compiling {step}"));
        }
    };
    post_step(
        gst::ProgressType::Start,
        "kernels; the driver keeps them for the next start",
    );
    post_step(gst::ProgressType::Continue, step);
    for next in steps {
        if next != step {
            post_step(gst::ProgressType::Continue, next);
        }
        step = next;
    }
    true
}

fn post(element: &gst::Element, kind: gst::ProgressType, text: &str) {
    let message = gst::message::Progress::builder(kind, CODE, text);
    // Without a bus nobody receives messages.
    let _ = element.post_message(message.src(element).build());
}
