//! The thread that triggers a camera for the machine, so that nobody waits for the camera.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use super::{Alarm, Machine};

use crate::locks::Monitor;

/// Triggers the camera once. May take seconds if the camera does not answer.
pub type Fire = Box<dyn FnMut() -> Result<(), String> + Send>;

/// Longest wait until the camera is given back: the time after which libaravis gives a camera up.
const BACK_LIMIT: Duration = Duration::from_secs(5);

/// Triggers a camera, in a thread of its own.
pub struct Release(Arc<Shared>);

struct Shared {
    state: Monitor<State>,
}

#[derive(Default)]
struct State {
    fire: Option<Fire>,
    /// Counts the cameras that came and went.
    camera: u64,
    /// What waits for the camera.
    wanted: Option<TriggerRequest>,
    /// The thread triggers the camera now.
    is_busy: bool,
    is_over: bool,
}

/// A frame that is wanted.
#[derive(Clone, Copy)]
enum TriggerRequest {
    /// The one of a trigger, with this number.
    Numbered(u64),
    /// One that the machine does not wait for.
    First,
}

impl Release {
    /// Starts the thread of a camera. The camera comes by [`Self::attach`].
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(camera: &str, machine: &Arc<Machine>, alarm: Alarm) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Monitor::default(),
        });
        let of_thread = shared.clone();
        let machine = Arc::downgrade(machine);
        let thread = std::thread::Builder::new().name(format!("{camera} trigger"));
        thread.spawn(move || of_thread.run(&machine, &alarm))?;
        Ok(Self(shared))
    }

    /// How the camera is triggered from now on.
    pub fn attach(&self, fire: Fire) {
        let mut state = self.0.state.lock();
        state.fire = Some(fire);
        state.camera += 1;
    }

    /// Takes the camera away. Waits until a trigger that is on its way is done, for 5 s at most.
    pub fn detach(&self) {
        let mut state = self.0.state.lock();
        state.fire = None;
        state.camera += 1;
        // A command that takes longer keeps the camera until it is done.
        let end = Instant::now() + BACK_LIMIT;
        drop(self.0.state.wait_while(state, end, |state| state.is_busy));
    }

    /// Triggers the camera for this number. Does not wait.
    pub(super) fn fire(&self, sequence: u64) {
        self.0.state.lock().wanted = Some(TriggerRequest::Numbered(sequence));
        self.0.state.notify();
    }

    /// Triggers the camera for a frame that shows that all works, before the machine may ask. Does not wait.
    pub fn fire_first(&self, machine: &Machine) {
        machine.expect_first();
        let replaced = self.0.state.lock().wanted.replace(TriggerRequest::First);
        if let Some(TriggerRequest::Numbered(_)) = replaced {
            machine.fired();
        }
        self.0.state.notify();
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        self.0.state.lock().is_over = true;
        self.0.state.notify();
    }
}

impl Shared {
    fn run(&self, machine: &Weak<Machine>, alarm: &Alarm) {
        while let Some((wanted, fire, camera)) = self.next() {
            let Some(machine) = machine.upgrade() else {
                return;
            };
            let fired = match fire {
                // Its time may be over: the frame would be of another piece.
                Some(mut fire) => {
                    let is_wanted = match wanted {
                        TriggerRequest::Numbered(sequence) => machine.is_armed(sequence),
                        TriggerRequest::First => true,
                    };
                    let fired = if is_wanted { fire() } else { Ok(()) };
                    self.put_back(fire, camera);
                    fired
                }
                // The camera that is missing has an alarm already.
                None => {
                    if let TriggerRequest::Numbered(sequence) = wanted {
                        machine.lose_trigger(sequence);
                        machine.fired();
                    }
                    continue;
                }
            };
            if let Err(why) = fired {
                let lost = match wanted {
                    TriggerRequest::Numbered(sequence) => {
                        machine.lose_trigger(sequence);
                        format!("; frame {sequence} is lost")
                    }
                    TriggerRequest::First => String::new(),
                };
                alarm(format!("the camera cannot be triggered: {why}{lost}"));
            }
            if let TriggerRequest::Numbered(_) = wanted {
                machine.fired();
            }
        }
        // Nobody else takes it any more.
        let left = self.state.lock().wanted.take();
        if let (Some(TriggerRequest::Numbered(sequence)), Some(machine)) = (left, machine.upgrade())
        {
            machine.lose_trigger(sequence);
            machine.fired();
        }
    }

    /// Waits for a wanted frame; `None` at the end.
    fn next(&self) -> Option<(TriggerRequest, Option<Fire>, u64)> {
        let mut state = self.state.lock();
        loop {
            if state.is_over {
                return None;
            }
            if let Some(wanted) = state.wanted.take() {
                let fire = state.fire.take();
                state.is_busy = fire.is_some();
                return Some((wanted, fire, state.camera));
            }
            state = self.state.wait(state, None);
        }
    }

    fn put_back(&self, fire: Fire, camera: u64) {
        let mut state = self.state.lock();
        state.is_busy = false;
        // The camera may have been taken away, and must be closed then.
        if state.camera == camera {
            state.fire = Some(fire);
        }
        drop(state);
        self.state.notify();
    }
}
