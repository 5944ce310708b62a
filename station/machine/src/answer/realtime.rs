//! Threads that keep times come before all others.

use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// Above all threads that have no real-time priority, below those of the kernel that have one.
const PRIORITY: u8 = 10;

/// Has the calling thread run as soon as it is due. Such a thread must work for microseconds and sleep. Does nothing if the
/// program has no right to real-time priorities (`LimitRTPRIO` of the service).
pub fn keep_times() {
    let Ok(priority) = PRIORITY.try_into() else {
        return;
    };
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let priority = ThreadPriority::Crossplatform(priority);
    if let Err(why) = set_thread_priority_and_policy(thread_native_id(), priority, policy) {
        crate::info!("deadlines are watched without real-time priority: {why}");
    }
}
