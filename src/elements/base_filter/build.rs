//! Operators are built, beside frames in a thread, and progress messages tell of kernels that are compiled.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use gst::{glib, prelude::*};

use clinspect_core::ClError;
use clinspect_opencl::{Compiling, beside_frames, observe_compiler};

/// The `code` of the messages.
const CODE: &str = "compile";
/// A build that takes less time posts no message: the driver has the kernels in its cache.
const QUIET: Duration = Duration::from_millis(500);

/// How long a stop or new caps wait for a running compiler.
const BUILD_LIMIT: Duration = Duration::from_secs(3);

/// Builds an operator from settings, on any thread.
pub(super) type Build<S, O> = Arc<dyn Fn(&S) -> Result<O, ClError> + Send + Sync>;

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

/// An operator that a thread builds.
pub(super) struct Pending<S, O> {
    pub settings: S,
    sent: Receiver<Result<O, ClError>>,
    result: Option<Result<O, ClError>>,
    thread: Option<JoinHandle<()>>,
}

impl<S: Clone + Send + 'static, O: Send + 'static> Pending<S, O> {
    /// Starts the thread; `None` if the system cannot start one.
    pub fn start(settings: S, build: &Build<S, O>) -> Option<Self> {
        let (sender, sent) = channel();
        let (build, wanted) = (build.clone(), settings.clone());
        let thread = std::thread::Builder::new().name("clbuild".into());
        let thread = thread
            .spawn(move || {
                let result = beside_frames(|| build(&wanted));
                // Release the context before the result is sent, so that it ends with the element.
                drop(build);
                // After a stop nobody receives the result.
                let _ = sender.send(result);
            })
            .ok()?;
        Some(Self {
            settings,
            sent,
            result: None,
            thread: Some(thread),
        })
    }

    /// The result of a thread that has ended.
    pub fn take_result(&mut self) -> Result<O, ClError> {
        self.result.take().unwrap_or_else(|| {
            Err(ClError::Unavailable(
                "the thread that compiles for changed settings has ended without a result; stop and start the \
                 pipeline"
                    .into(),
            ))
        })
    }

    /// Whether the thread has ended.
    pub fn is_finished(&mut self) -> bool {
        match self.sent.try_recv() {
            Err(TryRecvError::Empty) => false,
            Err(TryRecvError::Disconnected) => true,
            Ok(result) => {
                self.result = Some(result);
                true
            }
        }
    }
}

impl<S, O> Drop for Pending<S, O> {
    fn drop(&mut self) {
        // The process must not exit while the compiler runs, so a stop waits for the thread. A
        // thread whose compiler hangs is abandoned.
        let hangs = matches!(
            self.sent.recv_timeout(BUILD_LIMIT),
            Err(RecvTimeoutError::Timeout)
        );
        if let Some(thread) = self.thread.take().filter(|_| !hangs) {
            let _ = thread.join();
        }
    }
}
