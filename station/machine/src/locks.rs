//! Locks that a panic of their holder does not close: the station goes on with what they guard.

use std::{
    ops::Deref,
    sync::{self, Condvar, MutexGuard, PoisonError},
    time::Instant,
};

/// A [`sync::Mutex`] without poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Guards the value.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A mutex whose holder can wait until another thread has changed the value.
#[derive(Debug, Default)]
pub struct Monitor<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Monitor<T> {
    /// Guards the value.
    pub const fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            changed: Condvar::new(),
        }
    }

    /// Wakes all threads that wait.
    pub fn notify(&self) {
        self.changed.notify_all();
    }

    /// Gives the lock back until somebody notifies, or until `end`. It may also return earlier.
    pub fn wait<'m>(&self, guard: MutexGuard<'m, T>, end: Option<Instant>) -> MutexGuard<'m, T> {
        let Some(end) = end else {
            let woken = self.changed.wait(guard);
            return woken.unwrap_or_else(PoisonError::into_inner);
        };
        let left = end.saturating_duration_since(Instant::now());
        let woken = self.changed.wait_timeout(guard, left);
        woken.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Gives the lock back until the condition holds no more, or until `end`.
    pub fn wait_while<'m>(
        &self,
        mut guard: MutexGuard<'m, T>,
        end: Instant,
        condition: impl Fn(&T) -> bool,
    ) -> MutexGuard<'m, T> {
        while condition(&guard) && Instant::now() < end {
            guard = self.wait(guard, Some(end));
        }
        guard
    }
}

impl<T> Deref for Monitor<T> {
    type Target = Mutex<T>;

    fn deref(&self) -> &Mutex<T> {
        &self.value
    }
}
