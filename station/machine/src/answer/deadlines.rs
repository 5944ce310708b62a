//! The thread that gives the outcome `late`. No streaming thread can hold it up.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use super::Machine;

use crate::locks::Monitor;

/// Interval of the heartbeat, and the longest sleep.
const BEAT: Duration = Duration::from_millis(100);

/// The deadlines of all cameras.
pub struct Deadlines(Arc<Shared>);

struct Shared {
    state: Monitor<State>,
    beats: AtomicU64,
}

struct State {
    machines: Vec<Weak<Machine>>,
    /// When the thread must look at the frames.
    look: Instant,
    is_over: bool,
}

impl Deadlines {
    /// Starts the thread.
    pub fn start() -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Monitor::new(State {
                machines: Vec::new(),
                look: Instant::now(),
                is_over: false,
            }),
            beats: AtomicU64::new(0),
        });
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new().name("deadlines".to_owned());
        thread.spawn(move || of_thread.run())?;
        Ok(Self(shared))
    }

    /// Watches the frames of a camera, as long as there is this camera.
    pub fn watch(&self, machine: &Arc<Machine>) {
        self.0.state.lock().machines.push(Arc::downgrade(machine));
    }

    /// An outcome is due at this time. Wakes the thread only if it would sleep longer.
    pub fn expect(&self, due: Instant) {
        let mut state = self.0.state.lock();
        if due < state.look {
            state.look = due;
            self.0.state.notify();
        }
    }

    /// Counts the beats of the thread; 0 to 65,535, then 0 again.
    pub fn heartbeat(&self) -> u16 {
        (self.0.beats.load(Relaxed) & 0xffff) as u16
    }
}

impl Drop for Deadlines {
    fn drop(&mut self) {
        self.0.state.lock().is_over = true;
        self.0.state.notify();
    }
}

impl Shared {
    fn run(&self) {
        super::keep_times();
        let started = Instant::now();
        loop {
            let machines = {
                let mut state = self.state.lock();
                loop {
                    if state.is_over {
                        return;
                    }
                    let look = state.look;
                    if look <= Instant::now() {
                        break;
                    }
                    state = self.state.wait(state, Some(look));
                }
                // From here on `expect` brings this forward.
                state.look = Instant::now() + BEAT;
                state.machines.retain(|machine| machine.strong_count() > 0);
                state.machines.clone()
            };
            let next = machines.iter().filter_map(Weak::upgrade);
            let next = next.filter_map(|machine| machine.expire()).min();
            if let Some(next) = next {
                let mut state = self.state.lock();
                state.look = state.look.min(next);
            }
            let beats = started.elapsed().as_millis() / BEAT.as_millis();
            self.beats.store(u64::try_from(beats).unwrap_or(0), Relaxed);
        }
    }
}
