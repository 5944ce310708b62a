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

#[derive(Debug)]
struct Waiter {
    thread: Thread,
    has_turn: AtomicBool,
}

impl Waiter {
    fn wait(&self, looks: bool) {
        if looks && self.looks() {
            return;
        }
        while !self.has_turn.load(Acquire) {
            thread::park();
        }
    }

    /// Looks for the turn for a while, and lets other threads run meanwhile; true when it has come.
    fn looks(&self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < LONGEST_LOOK {
            for _ in 0..LOOKS {
                if self.has_turn.load(Acquire) {
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
            let waiter = Arc::new(Waiter {
                thread: thread::current(),
                has_turn: AtomicBool::new(false),
            });
            waiters.waiting.push_back(waiter.clone());
            drop(waiters);
            waiter.wait(self.looks);
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

    fn give_to_next(&self) {
        let mut waiters = self.waiters();
        let first = waiters.waiting.pop_front();
        waiters.is_taken = first.is_some();
        drop(waiters);
        if let Some(first) = first {
            first.has_turn.store(true, Release);
            first.thread.unpark();
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
