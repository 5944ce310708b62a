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

#[cfg(not(target_arch = "x86_64"))]
use std::ptr::copy_nonoverlapping as copy;

#[cfg(target_arch = "x86_64")]
use streaming::copy;

use crate::handle::CAT;
use clinspect_core::ClError;

/// Most threads beside the caller's. More did not copy faster on an H200's host.
const MAX_HELPERS: usize = 3;
/// One helper for this many processors: the camera and other elements need the others.
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
        unsafe { copy(piece.from, piece.to, piece.len) };
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
#[derive(Debug)]
pub(super) struct Copiers {
    shared: Arc<Shared>,
    count: usize,
    /// `None` before the start.
    helpers: Option<Vec<JoinHandle<()>>>,
}

impl Copiers {
    /// As many threads as this machine can spare.
    pub fn new() -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        Self::with_helpers((processors / PROCESSORS_PER_HELPER).min(MAX_HELPERS))
    }

    fn with_helpers(count: usize) -> Self {
        Self {
            shared: Arc::default(),
            count,
            helpers: None,
        }
    }

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
            let start = |_| {
                let shared = shared.clone();
                let thread = thread::Builder::new().name("clcopy".into());
                thread.spawn(move || shared.help())
            };
            (0..self.count)
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

/// Copies of large blocks into memory that the processor does not read again.
#[cfg(target_arch = "x86_64")]
mod streaming {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    /// Bytes of a page. The processor's prefetcher follows a page's reads only inside the page.
    const PAGE: usize = 4096;
    /// Pages that are copied at a time.
    const STREAMS: usize = 4;
    /// Bytes that are copied at a time, in loads and stores of 16 bytes.
    const LINE: usize = 64;

    /// Copies `len` bytes from `from` to `to`, which do not overlap.
    ///
    /// Stores go past the caches, so the processor does not read the target before it writes there. Four pages are
    /// copied side by side, so that more reads overlap (docs/adr/0009).
    ///
    /// # Safety
    /// `from` is readable and `to` writable for `len` bytes.
    pub(super) unsafe fn copy(mut from: *const u8, mut to: *mut u8, mut len: usize) {
        // Such stores need aligned memory.
        let head = to.align_offset(LINE).min(len);
        // SAFETY: `head`, and below each block and the rest, lie inside the `len` bytes. SSE2 is part of x86-64.
        unsafe {
            from.copy_to_nonoverlapping(to, head);
            (from, to, len) = (from.add(head), to.add(head), len - head);
            while len >= STREAMS * PAGE {
                for line in (0..PAGE).step_by(LINE) {
                    for page in 0..STREAMS {
                        let at = page * PAGE + line;
                        let (from, to) =
                            (from.add(at).cast::<__m128i>(), to.add(at).cast::<__m128i>());
                        for word in 0..LINE / size_of::<__m128i>() {
                            _mm_stream_si128(to.add(word), _mm_loadu_si128(from.add(word)));
                        }
                    }
                }
                (from, to, len) = (
                    from.add(STREAMS * PAGE),
                    to.add(STREAMS * PAGE),
                    len - STREAMS * PAGE,
                );
            }
            from.copy_to_nonoverlapping(to, len);
            // Other threads and the device may see such stores late without this.
            _mm_sfence();
        }
    }

    #[cfg(test)]
    mod tests {
        use super::{PAGE, STREAMS, copy};

        #[test]
        fn blocks_of_any_length_and_place_are_copied_and_nothing_beside_them() {
            let block = STREAMS * PAGE;
            let from: Vec<u8> = (0..3 * block).map(|i| (i * 31 + i / 251) as u8).collect();
            for len in [0, 1, 63, 64, block - 1, block, block + 65, 2 * block + 77] {
                for (skip, start) in [(0, 0), (1, 0), (0, 1), (3, 63), (64, 64)] {
                    let mut to = vec![0xa5; 3 * block];
                    let expected =
                        [&to[..start], &from[skip..skip + len], &to[start + len..]].concat();
                    // SAFETY: both vectors are longer than what is copied.
                    unsafe { copy(from.as_ptr().add(skip), to.as_mut_ptr().add(start), len) };
                    assert!(to == expected, "{len} bytes, from {skip} to {start}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    /// Copies a frame in pieces of `len` bytes; returns the copy and the order of the calls.
    fn copy(
        copiers: &mut Copiers,
        from: &[u8],
        len: usize,
        fails_at: usize,
    ) -> (Vec<u8>, Vec<usize>, bool) {
        let mut to = vec![0; from.len()];
        let start = to.as_mut_ptr();
        let pieces = from.chunks(len).enumerate().map(|(index, piece)| Piece {
            from: piece.as_ptr(),
            // SAFETY: the piece lies inside `to`, which is as long as `from`.
            to: unsafe { start.add(index * len) },
            len: piece.len(),
        });
        let mut calls = Vec::new();
        // SAFETY: both memories live until the end of this function.
        let result = unsafe {
            copiers.copy(pieces.collect(), |index| {
                calls.push(index);
                match index == fails_at {
                    true => Err(ClError::Input("stop".into())),
                    false => Ok(()),
                }
            })
        };
        (to, calls, result.is_ok())
    }

    #[test]
    fn pieces_are_copied_once_and_reported_in_order() {
        for helpers in [0, 1, 3] {
            let mut copiers = Copiers::with_helpers(helpers);
            for round in 0..40_usize {
                let from: Vec<u8> = (0..100_003).map(|i| (i * 31 + round) as u8).collect();
                for len in [7_001, 100_002, 200_000] {
                    let (to, calls, is_ok) = copy(&mut copiers, &from, len, usize::MAX);
                    assert!(to == from && is_ok, "{helpers} helpers, pieces of {len}");
                    let all: Vec<usize> = (0..from.len().div_ceil(len)).collect();
                    assert_eq!(calls, all);
                }
            }
        }
    }

    #[test]
    fn an_error_ends_the_calls_but_not_the_copy() {
        let mut copiers = Copiers::with_helpers(3);
        let from = vec![7; 1 << 16];
        for _ in 0..40 {
            let (to, calls, is_ok) = copy(&mut copiers, &from, 1 << 12, 2);
            assert_eq!((calls, is_ok), (vec![0, 1, 2], false));
            assert!(to == from);
        }
    }
}
