//! Ctrl-C: the first one ends a run in order, a second one the program.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// Listens for Ctrl-C from here on.
///
/// # Errors
/// Somebody else in the program does already.
pub fn on_ctrl_c() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
}

/// Whether the run is to end.
pub fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}
