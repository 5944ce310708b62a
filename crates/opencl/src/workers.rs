//! Gives each worker thread of PoCL a processor of its own, on a machine with two.
//!
//! PoCL has a thread per processor and wakes them all for each kernel. Linux often queues two of them on one
//! processor, and does not move them while they sleep more often than its migration cost (0.5 ms): a kernel of
//! a millisecond then takes twice as long on two processors. PoCL has a setting for this, `POCL_AFFINITY`. It is an
//! environment variable, which a library must not set while other threads run, and with it PoCL ignores which
//! processors the process may use. If the user sets it, the threads stay as PoCL made them.

use std::{
    ffi::{CStr, c_char},
    fs, mem,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use super::handle::CAT;

/// The name by which PoCL's threads are found: a new thread has the name of the thread that made it.
const MARK: &CStr = c"pocl-worker";

/// Processors up to which threads are pinned.
const MOST_PROCESSORS: usize = 2;

/// Whether PoCL's threads are pinned, one to each processor.
static ARE_PINNED: AtomicBool = AtomicBool::new(false);

/// Whether each processor that this process may use has a thread of PoCL, and only one.
pub(super) fn are_pinned() -> bool {
    ARE_PINNED.load(Relaxed)
}

/// Runs `initialise`, which makes PoCL's worker threads, and pins these threads. The caller holds
/// [`super::device::lock_driver`].
pub(super) fn pinned<T>(initialise: impl FnOnce() -> T) -> T {
    if std::env::var_os("POCL_AFFINITY").is_some() {
        return initialise();
    }
    let own = name();
    rename(MARK);
    let result = initialise();
    // The system ends the name with a NUL byte.
    if let Ok(own) = CStr::from_bytes_until_nul(&own) {
        rename(own);
    }
    pin(&marked());
    result
}

/// The name of this thread.
fn name() -> [u8; 16] {
    let mut name = [0; 16];
    // SAFETY: the call writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr().cast::<c_char>()) };
    name
}

/// Names this thread.
fn rename(name: &CStr) {
    // SAFETY: the call reads up to the NUL byte.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// The marked threads, in the order in which they were made.
fn marked() -> Vec<libc::pid_t> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    let mut threads: Vec<libc::pid_t> = tasks
        .flatten()
        .filter(|task| {
            let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            name.trim_end().as_bytes() == MARK.to_bytes()
        })
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .collect();
    threads.sort_unstable();
    threads
}

/// Pins each thread to a processor that the process may use.
fn pin(threads: &[libc::pid_t]) {
    let processors = processors();
    // With more processors Linux finds an idle one for most threads (docs/adr/0012).
    if processors.len() > MOST_PROCESSORS || threads.len() != processors.len() {
        return;
    }
    let mut are_pinned = true;
    for (&thread, &processor) in threads.iter().zip(&processors) {
        // SAFETY: a set of bits, for which zero is valid.
        let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
        // SAFETY: `processor` was found in such a set, so it lies within.
        unsafe { libc::CPU_SET(processor, &mut set) };
        // SAFETY: the set is read during the call only; an unknown thread is an error.
        let result = unsafe { libc::sched_setaffinity(thread, size_of_val(&set), &raw const set) };
        if result != 0 {
            gst::debug!(CAT, "PoCL's thread {thread} stays unpinned");
            are_pinned = false;
        }
    }
    ARE_PINNED.store(are_pinned, Relaxed);
    gst::debug!(
        CAT,
        "{} threads of PoCL on processors {processors:?}",
        threads.len()
    );
}

/// The processors that this thread may use.
fn processors() -> Vec<usize> {
    // SAFETY: a set of bits, for which zero is valid.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the call writes at most the set's size.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0 {
        return Vec::new();
    }
    // SAFETY: the numbers lie within the set.
    (0..8 * size_of_val(&set))
        .filter(|&n| unsafe { libc::CPU_ISSET(n, &set) })
        .collect()
}
