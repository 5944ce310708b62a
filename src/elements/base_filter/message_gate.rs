//! Limits how often messages are posted.

use std::time::Instant;

/// Settings of the messages with results.
#[derive(Debug, Clone, Copy)]
pub struct MessageSettings {
    /// Whether to post messages.
    pub post: bool,
    /// Minimum time between messages.
    pub interval_ns: u64,
}

impl Default for MessageSettings {
    fn default() -> Self {
        Self {
            post: true,
            interval_ns: 100_000_000,
        }
    }
}

/// Lets at most one message per interval through.
///
/// The time is the frame's running time, so that a file gives the same messages at any speed. For
/// frames without timestamps it is the system's monotonic clock.
#[derive(Debug, Default)]
pub struct MessageGate {
    last: Option<gst::ClockTime>,
    started: Option<Instant>,
}

impl MessageGate {
    /// Whether to post a message: messages are wanted, and the interval has passed since the last
    /// message, there was none, or this message is `urgent`.
    pub fn opens(
        &mut self,
        settings: &MessageSettings,
        running_time: Option<gst::ClockTime>,
        urgent: bool,
    ) -> bool {
        if !settings.post {
            return false;
        }
        let now = running_time.unwrap_or_else(|| {
            let elapsed = self.started.get_or_insert_with(Instant::now).elapsed();
            gst::ClockTime::from_nseconds(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX - 1))
        });
        let due = urgent
            || self
                .last
                // A time before the last message means a new segment.
                .is_none_or(|last| now < last || (now - last).nseconds() >= settings.interval_ns);
        if due {
            self.last = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_gate_opens_once_per_interval_and_after_a_jump_back() {
        let ms = gst::ClockTime::from_mseconds;
        let mut gate = MessageGate::default();
        let opened: Vec<bool> = [0, 33, 66, 100, 133, 10]
            .into_iter()
            .map(|t| gate.opens(&MessageSettings::default(), Some(ms(t)), false))
            .collect();
        assert_eq!(opened, [true, false, false, true, false, true]);
    }

    #[test]
    fn message_gate_urgent_message_starts_the_interval_anew() {
        let ms = gst::ClockTime::from_mseconds;
        let mut gate = MessageGate::default();
        let opened: Vec<bool> = [(0, false), (60, true), (100, false), (160, false)]
            .into_iter()
            .map(|(t, urgent)| gate.opens(&MessageSettings::default(), Some(ms(t)), urgent))
            .collect();
        assert_eq!(opened, [true, true, false, true]);
    }
}
