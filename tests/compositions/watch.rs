//! Ends the process if nothing moves: a thread that waits for a lock cannot be stopped.

use std::{
    sync::{
        Mutex, Once, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use clinspect_testkit::child;

/// Nothing moves for so long only if something hangs: the slowest step is the compilation of a kernel, a few seconds.
const LIMIT: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(100);

static MOVES: AtomicU64 = AtomicU64::new(0);
static PRINTS: AtomicBool = AtomicBool::new(false);
static WATCHED: Mutex<Option<Watched>> = Mutex::new(None);

struct Watched {
    /// For the failure.
    what: String,
    /// The last step that began.
    step: String,
    /// How far the streams are.
    state: Box<dyn Fn() -> String + Send>,
}

/// Watches until it is dropped.
pub struct Watch(());

impl Watch {
    pub fn new(what: &str, state: impl Fn() -> String + Send + 'static) -> Self {
        static STARTED: Once = Once::new();
        STARTED.call_once(|| {
            thread::spawn(look);
        });
        moved();
        *WATCHED.lock().unwrap() = Some(Watched {
            what: what.to_owned(),
            step: String::new(),
            state: Box::new(state),
        });
        Self(())
    }

    /// A step begins.
    pub fn step(&self, step: &str) {
        moved();
        if PRINTS.load(Ordering::Relaxed) {
            println!("  {step}");
        }
        if let Some(watched) = &mut *WATCHED.lock().unwrap() {
            step.clone_into(&mut watched.step);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *WATCHED.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Prints every step from now on.
pub fn print_steps() {
    PRINTS.store(true, Ordering::Relaxed);
}

/// A frame or a message came.
pub fn moved() {
    MOVES.fetch_add(1, Ordering::Relaxed);
}

fn look() {
    let (mut last, mut since) = (0, Instant::now());
    loop {
        thread::sleep(LOOK);
        let now = MOVES.load(Ordering::Relaxed);
        if now != last {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() > LIMIT
            && let Some(watched) = &*WATCHED.lock().unwrap()
        {
            let Watched { what, step, state } = watched;
            child::give_up(&format!(
                "hangs: nothing moved for {} s at \"{step}\"; {}: {what}",
                LIMIT.as_secs(),
                state()
            ));
        }
    }
}
