//! Locks that are taken in one order, so that no two threads can wait for each other.

use std::{
    cell::{Cell, UnsafeCell},
    collections::VecDeque,
    hint,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

/// The order of the locks: a thread takes a lock only while all locks that it holds come before it in this list. Each
/// lock checks this, because a panic becomes an error of the element, and a deadlock ends all pipelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Rank {
    /// The driver's devices, contexts and compiler ([`super::device::lock_driver`]).
    Driver,
    /// The contexts that are open.
    Registry,
    /// The programs of a context.
    Programs,
    /// The tags of pinned memories.
    Tags,
    /// The pinned memories of a context.
    Pins,
    /// A value that is read or replaced, and nothing else, while it is locked.
    Value,
    /// The order of a device's commands ([`super::order::Order`]).
    Order,
    /// What the host does with a buffer ([`super::order::Owned`]).
    Host,
    /// The pinned memories of an element that no transfer uses.
    Pinned,
    /// The events that nobody needs ([`super::queue::Unneeded`]).
    Events,
}

thread_local! {
    /// A bit for the rank of each lock that this thread holds.
    static HELD: Cell<u16> = const { Cell::new(0) };
}

impl Rank {
    fn bit(self) -> u16 {
        1 << self as u8
    }

    /// Whether this thread holds a lock of this rank.
    pub fn is_held(self) -> bool {
        HELD.get() & self.bit() != 0
    }

    /// Whether this thread holds any lock.
    pub fn is_any_held() -> bool {
        HELD.get() != 0
    }

    /// Checks that this thread holds no lock of this rank or a later one.
    ///
    /// # Panics
    /// It does.
    #[track_caller]
    pub fn assert_free(self) {
        let held = HELD.get();
        assert!(held < self.bit(), "{self:?} is locked while {held:#b} are");
    }
}

/// A mutex with a place in the order of locks.
#[derive(Debug)]
pub(crate) struct Lock<T> {
    rank: Rank,
    value: Mutex<T>,
}

impl<T> Lock<T> {
    pub const fn new(rank: Rank, value: T) -> Self {
        Self {
            rank,
            value: Mutex::new(value),
        }
    }

    /// Waits for the lock. A thread that panicked while it held the lock leaves the value as it was then.
    ///
    /// # Panics
    /// This thread holds a lock that comes after this one.
    #[track_caller]
    pub fn lock(&self) -> Guard<'_, T> {
        self.rank.assert_free();
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        HELD.set(HELD.get() | self.rank.bit());
        Guard {
            value,
            rank: self.rank,
        }
    }

    pub fn get_mut(&mut self) -> &mut T {
        (self.value.get_mut()).unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Default> Default for Lock<T> {
    fn default() -> Self {
        Self::new(Rank::Value, T::default())
    }
}

/// A lock that this thread holds.
#[derive(Debug)]
pub(crate) struct Guard<'a, T> {
    value: MutexGuard<'a, T>,
    rank: Rank,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        HELD.set(HELD.get() & !self.rank.bit());
    }
}

/// Longest time that a thread looks for its turn before it sleeps. A turn is short, and to wake a sleeping thread takes longer
/// than a few turns.
const LONGEST_LOOK: Duration = Duration::from_millis(1);
/// Looks between two looks at the clock.
const LOOKS: u32 = 64;

/// A lock of rank [`Rank::Order`] that threads get in the order of their arrival.
///
/// NVIDIA's driver makes its calls one at a time, behind a lock that is not fair. With many threads each call of
/// each of them waits for that lock, sleeps and is woken. Here a thread waits once for all calls of a submission, and the
/// next one is awake when its turn comes (docs/adr/0030).
#[derive(Debug)]
pub(crate) struct Turns<T> {
    waiters: Mutex<Waiters>,
    /// Threads look for their turn before they sleep.
    looks: bool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through the one `TurnGuard` at a time.
unsafe impl<T: Send> Sync for Turns<T> {}

#[derive(Debug, Default)]
struct Waiters {
    is_taken: bool,
    waiting: VecDeque<Arc<Waiter>>,
}

/// A thread that waits until another one tells it to go on.
#[derive(Debug)]
pub(crate) struct Waiter {
    thread: Thread,
    is_told: AtomicBool,
}

impl Waiter {
    /// The current thread waits.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            thread: thread::current(),
            is_told: AtomicBool::new(false),
        })
    }

    /// Lets the thread go on.
    pub fn tell(&self) {
        self.is_told.store(true, Release);
        self.thread.unpark();
    }

    /// Looks for so long, then sleeps.
    pub fn wait(&self, look: Duration) {
        if self.looks(look) {
            return;
        }
        while !self.is_told.load(Acquire) {
            thread::park();
        }
    }

    /// Looks for a while, and lets other threads run meanwhile; true when the thread was told.
    fn looks(&self, longest: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < longest {
            for _ in 0..LOOKS {
                if self.is_told.load(Acquire) {
                    return true;
                }
                hint::spin_loop();
            }
            thread::yield_now();
        }
        false
    }
}

impl<T> Turns<T> {
    /// `looks`: threads look for their turn before they sleep.
    pub fn new(value: T, looks: bool) -> Self {
        Self {
            waiters: Mutex::default(),
            looks,
            value: UnsafeCell::new(value),
        }
    }

    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn of this thread.
    ///
    /// # Panics
    /// This thread has a turn.
    #[track_caller]
    pub fn lock(&self) -> TurnGuard<'_, T> {
        Rank::Order.assert_free();
        let mut waiters = self.waiters();
        if waiters.is_taken {
            let waiter = Waiter::new();
            waiters.waiting.push_back(waiter.clone());
            drop(waiters);
            let look = if self.looks {
                LONGEST_LOOK
            } else {
                Duration::ZERO
            };
            waiter.wait(look);
        } else {
            waiters.is_taken = true;
            drop(waiters);
        }
        HELD.set(HELD.get() | Rank::Order.bit());
        TurnGuard {
            turns: self,
            _of_one_thread: PhantomData,
        }
    }

    /// Whether threads wait for their turn.
    pub fn is_crowded(&self) -> bool {
        !self.waiters().waiting.is_empty()
    }

    fn give_to_next(&self) {
        let mut waiters = self.waiters();
        let first = waiters.waiting.pop_front();
        waiters.is_taken = first.is_some();
        drop(waiters);
        if let Some(first) = first {
            first.tell();
        }
    }
}

/// A thread's turn.
#[derive(Debug)]
pub(crate) struct TurnGuard<'a, T> {
    turns: &'a Turns<T>,
    /// [`HELD`] belongs to the thread.
    _of_one_thread: PhantomData<*const ()>,
}

impl<T> Deref for TurnGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the one guard borrows the value.
        unsafe { &*self.turns.value.get() }
    }
}

impl<T> DerefMut for TurnGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.turns.value.get() }
    }
}

impl<T> Drop for TurnGuard<'_, T> {
    fn drop(&mut self) {
        HELD.set(HELD.get() & !Rank::Order.bit());
        self.turns.give_to_next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_out_of_order_panics() {
        let in_order = || {
            let (first, second) = (Lock::new(Rank::Registry, ()), Turns::new((), true));
            let held = (first.lock(), second.lock());
            drop(held);
        };
        let again = || {
            let (first, second) = (Lock::new(Rank::Pins, ()), Lock::new(Rank::Pins, ()));
            let held = (first.lock(), second.lock());
            drop(held);
        };
        let backwards = || {
            let (first, second) = (Turns::new((), false), Lock::new(Rank::Pins, ()));
            let held = (first.lock(), second.lock());
            drop(held);
        };
        in_order();
        assert!(std::panic::catch_unwind(again).is_err());
        assert!(std::panic::catch_unwind(backwards).is_err());
        in_order();
    }

    #[test]
    fn turns_are_in_the_order_of_arrival_one_at_a_time() {
        const THREADS: usize = 9;
        for looks in [false, true] {
            let turns = Turns::new(Vec::new(), looks);
            thread::scope(|scope| {
                let first = turns.lock();
                for number in 0..THREADS {
                    let turns = &turns;
                    scope.spawn(move || {
                        let mut order = turns.lock();
                        let before = order.len();
                        thread::sleep(Duration::from_millis(1));
                        assert_eq!(order.len(), before);
                        order.push(number);
                    });
                    while turns.waiters().waiting.len() <= number {
                        thread::yield_now();
                    }
                }
                drop(first);
            });
            assert_eq!(*turns.lock(), Vec::from_iter(0..THREADS));
        }
    }
}
