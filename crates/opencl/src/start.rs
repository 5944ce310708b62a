//! Starts on PoCL that are not complete: the process died inside the driver, or a kernel failed.
//!
//! PoCL loads machine code from its cache when a kernel runs first, and damaged code may end the process there, at this
//! start and at each later one. So a file in the plugin's cache marks a start, from the opening of the device until no
//! program was built for a while and the first command of each kernel has ended: a program that catches SIGSEGV, such as
//! `gst-launch-1.0`, lives on while a thread of the driver does not. If the next start finds the mark of a process that is gone, it removes the compiled
//! kernels that no complete start has used. If the third start in a row is not complete either, all kernels are removed,
//! once: a driver that fails with new kernels, too, keeps them.
//!
//! PoCL ends a process whose files go while it compiles or loads them. So a lock that processes hold together during their
//! starts, and that one must hold alone to remove files, keeps them apart.

use std::{
    process,
    sync::{
        Arc, Once, Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    cache::{Attempt, Cache},
    pocl,
    queue::Event,
    sync::{Lock, Rank},
};

/// After the last program was built, its kernels have run within this time, or PoCL compiles them.
const QUIET: Duration = Duration::from_secs(3);
/// Pause between two looks at commands that have not ended.
const PAUSE: Duration = Duration::from_millis(200);
/// After this many starts in a row that were not complete, all compiled kernels are suspects.
const MOST_INCOMPLETE: u8 = 3;

/// The start of this process that is under way.
static START: Lock<Option<Start>> = Lock::new(Rank::Value, None);

/// Builds and first launches of kernels that have not returned.
static USES: AtomicUsize = AtomicUsize::new(0);
/// Commands with first launches of kernels.
static COMMANDS: Lock<Vec<Weak<Event>>> = Lock::new(Rank::Value, Vec::new());

/// The build of a program or the first launch of a kernel on PoCL, which loads the kernel.
#[derive(Debug)]
pub(super) struct FirstUse(());

impl FirstUse {
    /// Begins before the call.
    pub fn begin() -> Self {
        USES.fetch_add(1, Relaxed);
        Self(())
    }

    /// The launch has returned; `command` ends when the kernel has.
    pub fn returned(self, command: &Arc<Event>) {
        COMMANDS.lock().push(Arc::downgrade(command));
    }
}

impl Drop for FirstUse {
    fn drop(&mut self) {
        USES.fetch_sub(1, Relaxed);
    }
}

/// Whether a kernel that ran for the first time has not ended.
fn is_busy() -> bool {
    let mut commands = std::mem::take(&mut *COMMANDS.lock());
    commands.retain(|command| {
        command
            .upgrade()
            .is_some_and(|command| !command.has_ended())
    });
    let is_busy = !commands.is_empty() || USES.load(Relaxed) > 0;
    COMMANDS.lock().append(&mut commands);
    is_busy
}

struct Start {
    /// `None` if another process started already, or the folder cannot be written.
    attempt: Option<Attempt>,
    cache: Cache,
    /// Held together with other processes that start.
    _together: Option<pocl::Together>,
    /// When the start is complete.
    until: Instant,
    has_failed: bool,
    process: u32,
}

impl Start {
    /// The start is over. The mark stays if a kernel failed.
    fn end(self) {
        match self.attempt {
            Some(attempt) if self.has_failed => attempt.keep(),
            Some(_) => pocl::keep_sums(&self.cache),
            None => {}
        }
    }
}

/// Marks that a device is opened or a program is built on PoCL. If the last start was not complete, suspect kernels are
/// removed, and a sentence says so. The caller holds [`super::device::lock_driver`].
pub(super) fn begin(cache: &Cache) -> Option<String> {
    let until = Instant::now() + QUIET;
    if let Some(start) = &mut *START.lock()
        && !start.has_failed
    {
        start.until = until;
        return None;
    }
    let failed = START.lock().take();
    if let Some(failed) = failed {
        failed.end();
    }
    let key = format!("start with {}", pocl::cache_folder().display());
    let marked = pocl::alone(|| {
        let attempt = cache.begin(&key)?;
        let removed = match attempt.before() {
            0 => None,
            before if before <= MOST_INCOMPLETE => pocl::remove_suspects(before == MOST_INCOMPLETE),
            _ => None,
        };
        Some((attempt, removed))
    });
    let (attempt, removed) = marked.flatten().unzip();
    *START.lock() = Some(Start {
        attempt,
        cache: cache.clone(),
        _together: pocl::together(),
        until,
        has_failed: false,
        process: process::id(),
    });
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // SAFETY: the function takes and returns nothing, and this library is never unloaded.
        let _ = unsafe { libc::atexit(end_at_exit) };
    });
    // Without the thread the end of the process ends the start.
    let _ = thread::Builder::new()
        .name("clstart".into())
        .spawn(end_when_quiet);
    removed.flatten()
}

/// A kernel cannot be made or computes wrong, perhaps because PoCL's cache is damaged: the start is not complete.
pub fn fail() {
    if let Some(start) = &mut *START.lock() {
        start.has_failed = true;
    }
}

fn end_when_quiet() {
    loop {
        let until = START.lock().as_ref().map(|start| start.until);
        let Some(until) = until else { return };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() && !is_busy() {
            break;
        }
        thread::sleep(left.max(PAUSE));
    }
    let start = START.lock().take();
    if let Some(start) = start {
        start.end();
    }
}

/// A process that ends by itself did not die inside the driver.
extern "C" fn end_at_exit() {
    let start = START.lock().take();
    // A forked process has no start of its own.
    if let Some(mut start) = start.filter(|start| start.process == process::id()) {
        start.has_failed |= USES.load(Relaxed) > 0;
        start.end();
    }
}
