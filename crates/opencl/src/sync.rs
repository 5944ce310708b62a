//! Locks that are taken in one order, so that no two threads can wait for each other.

use std::{
    cell::Cell,
    ops::{Deref, DerefMut},
    sync::{Mutex, MutexGuard, PoisonError},
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
}

thread_local! {
    /// A bit for the rank of each lock that this thread holds.
    static HELD: Cell<u8> = const { Cell::new(0) };
}

impl Rank {
    fn bit(self) -> u8 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_out_of_order_panics() {
        let in_order = || {
            let (first, second) = (Lock::new(Rank::Registry, ()), Lock::new(Rank::Order, ()));
            let held = (first.lock(), second.lock());
            drop(held);
        };
        let again = || {
            let (first, second) = (Lock::new(Rank::Pins, ()), Lock::new(Rank::Pins, ()));
            let held = (first.lock(), second.lock());
            drop(held);
        };
        let backwards = || {
            let (first, second) = (Lock::new(Rank::Order, ()), Lock::new(Rank::Pins, ()));
            let held = (first.lock(), second.lock());
            drop(held);
        };
        in_order();
        assert!(std::panic::catch_unwind(again).is_err());
        assert!(std::panic::catch_unwind(backwards).is_err());
        in_order();
    }
}
