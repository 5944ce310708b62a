//! Threads that copy a large frame together: one thread copies slower than the bus transfers.

use std::{
    num::NonZero,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    thread::{self, JoinHandle, Thread},
};

use crate::log::CAT;
use clinspect_core::ClError;

/// Most threads beside the caller's. More did not copy faster on an H200's host.
const MAX_HELPERS: usize = 3;
/// Processors for each helper: the camera and other elements need the others.
const PROCESSORS_PER_HELPER: usize = 4;

/// A part of a copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub from: *const u8,
    pub to: *mut u8,
    pub len: usize,
}

// SAFETY: the caller of `Copiers::copy` keeps the memory until the call returns.
unsafe impl Send for Piece {}
// SAFETY: as above; each piece is copied by one thread.
unsafe impl Sync for Piece {}

/// One frame's copy.
#[derive(Debug)]
struct Job {
    pieces: Vec<Piece>,
    next: AtomicUsize,
    is_copied: Vec<AtomicBool>,
    caller: Thread,
}

impl Job {
    /// Copies the next piece; false if there is none.
    fn copy_one(&self) -> bool {
        let index = self.next.fetch_add(1, Relaxed);
        let (Some(piece), Some(is_copied)) = (self.pieces.get(index), self.is_copied.get(index))
        else {
            return false;
        };
        // SAFETY: `Copiers::copy` does not return before this piece is marked as copied, and its
        // caller keeps both memories until then.
        unsafe { std::ptr::copy_nonoverlapping(piece.from, piece.to, piece.len) };
        is_copied.store(true, Release);
        true
    }
}

#[derive(Debug, Default)]
struct Orders {
    job: Option<Arc<Job>>,
    /// Number of jobs so far.
    number: usize,
    is_closed: bool,
}

#[derive(Debug, Default)]
struct Shared {
    orders: Mutex<Orders>,
    changed: Condvar,
}

impl Shared {
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn help(&self) {
        let mut seen = 0;
        loop {
            let idle = |orders: &mut Orders| !orders.is_closed && orders.number == seen;
            let orders = self.changed.wait_while(self.orders(), idle);
            let orders = orders.unwrap_or_else(PoisonError::into_inner);
            if orders.is_closed {
                return;
            }
            seen = orders.number;
            let job = orders.job.clone();
            drop(orders);
            if let Some(job) = job {
                while job.copy_one() {
                    job.caller.unpark();
                }
            }
        }
    }
}

/// The threads, which start with the first copy of several pieces.
#[derive(Debug, Default)]
pub(super) struct Copiers {
    shared: Arc<Shared>,
    /// `None` before the start.
    helpers: Option<Vec<JoinHandle<()>>>,
}

impl Copiers {
    /// Copies all pieces. Calls `copied` with the number of each piece after it was copied, in
    /// order, in this thread.
    ///
    /// # Safety
    /// The memories of the pieces are valid and do not overlap.
    ///
    /// # Errors
    /// The first error of `copied`, which is not called again after it.
    pub unsafe fn copy(
        &mut self,
        pieces: Vec<Piece>,
        mut copied: impl FnMut(usize) -> Result<(), ClError>,
    ) -> Result<(), ClError> {
        let count = pieces.len();
        let job = Arc::new(Job {
            is_copied: pieces.iter().map(|_| AtomicBool::new(false)).collect(),
            pieces,
            next: AtomicUsize::new(0),
            caller: thread::current(),
        });
        let is_shared = count > 1 && self.start_helpers();
        if is_shared {
            let mut orders = self.shared.orders();
            orders.job = Some(job.clone());
            orders.number += 1;
            drop(orders);
            self.shared.changed.notify_all();
        }
        let mut result = Ok(());
        let mut done = 0;
        while done < count {
            let is_copied =
                |index: usize| job.is_copied.get(index).is_some_and(|c| c.load(Acquire));
            if !job.copy_one() && !is_copied(done) {
                // A helper wakes this thread after each piece.
                thread::park();
            }
            while is_copied(done) {
                if result.is_ok() {
                    result = copied(done);
                }
                done += 1;
            }
        }
        if is_shared {
            self.shared.orders().job = None;
        }
        result
    }

    /// Starts the threads, once; false if there are none.
    fn start_helpers(&mut self) -> bool {
        let shared = &self.shared;
        let helpers = self.helpers.get_or_insert_with(|| {
            let processors = thread::available_parallelism().map_or(1, NonZero::get);
            let count = (processors / PROCESSORS_PER_HELPER).min(MAX_HELPERS);
            let start = |_| {
                let shared = shared.clone();
                let thread = thread::Builder::new().name("clcopy".into());
                thread.spawn(move || shared.help())
            };
            (0..count)
                .map_while(|number| {
                    start(number)
                        .inspect_err(|error| gst::warning!(CAT, "cannot start a thread: {error}"))
                        .ok()
                })
                .collect()
        });
        !helpers.is_empty()
    }
}

impl Drop for Copiers {
    fn drop(&mut self) {
        self.shared.orders().is_closed = true;
        self.shared.changed.notify_all();
        for helper in self.helpers.take().into_iter().flatten() {
            // A helper cannot panic, and a drop cannot report it.
            let _ = helper.join();
        }
    }
}
