//! Notifications to systemd (sd_notify(3)), and its watchdog.

use std::time::Duration;

use machine::warning;
use sd_notify::NotifyState;

/// Sends states; without a service manager nothing happens.
pub fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        warning!("the service manager cannot be notified: {error}");
    }
}

/// Notifies systemd that a reload begins; systemd then waits for `READY=1`.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => warning!("the time of the reload is not known: {error}"),
    }
}

/// Interval between two notifications to the watchdog: half of systemd's limit.
pub fn watchdog_interval() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|limit| limit / 2)
}
