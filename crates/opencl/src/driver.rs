//! The lock under which drivers are initialised and compile.

use std::sync::{Mutex, MutexGuard, PoisonError};

static DRIVER: Mutex<()> = Mutex::new(());

/// Held while devices are looked for, contexts are made and programs are built: PoCL breaks where
/// several threads initialise it at once, or where one does while another compiles. Whoever finds a
/// context or a program that exists does not need it, and does not wait for a compiler.
pub(super) fn lock() -> MutexGuard<'static, ()> {
    DRIVER.lock().unwrap_or_else(PoisonError::into_inner)
}
