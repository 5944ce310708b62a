//! The lock under which drivers are initialised and compile.

use std::sync::{Mutex, MutexGuard, PoisonError};

static DRIVER: Mutex<()> = Mutex::new(());

/// Locks device enumeration, the creation of contexts and the build of programs: PoCL fails if
/// several threads initialise it at once, or if one initialises it while another compiles. A thread
/// that finds an existing context or program needs no lock and does not wait for a compiler.
pub(super) fn lock() -> MutexGuard<'static, ()> {
    DRIVER.lock().unwrap_or_else(PoisonError::into_inner)
}
