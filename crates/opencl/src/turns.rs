//! Whose turn it is to enqueue commands.

use std::{
    collections::VecDeque,
    hint,
    num::NonZero,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    thread::{self, Thread, ThreadId},
    time::{Duration, Instant},
};

use super::handle::EventHandle;

/// Longest time that a thread looks for its turn before it sleeps.
const LONGEST_SPIN: Duration = Duration::from_micros(300);
/// Most threads that look for their turn at a time, and processors for each of them. A turn is short, and to wake a
/// sleeping thread takes longer than a few turns.
const MOST_AWAKE: usize = 4;
const PROCESSORS_PER_AWAKE: usize = 4;
/// Looks between two looks at the clock.
const LOOKS: u32 = 64;

/// The thread waits for others, and sleeps.
const WAITING: u8 = 0;
/// The thread is one of the next ones, and looks for its turn.
const NEXT: u8 = 1;
/// It is the thread's turn.
const TURN: u8 = 2;

/// Lets one thread at a time enqueue its commands for a frame, in the order of arrival.
///
/// NVIDIA's driver makes its calls one at a time, behind a lock that is not fair. With many threads each call of
/// each of them waits for that lock, sleeps and is woken. Here a thread waits once for the commands of a frame, and the
/// next one is awake when its turn comes (docs/adr/0025).
#[derive(Debug)]
pub(super) struct Turns {
    state: Mutex<State>,
    /// Threads that look for their turn at a time.
    awake: usize,
    /// Events that nobody needs any more. To release one is a call of the driver like others.
    unneeded: Mutex<Vec<EventHandle>>,
}

#[derive(Debug, Default)]
struct State {
    owner: Option<ThreadId>,
    /// Turns that the owner has inside its own.
    inner: usize,
    waiters: VecDeque<Arc<Waiter>>,
}

#[derive(Debug)]
struct Waiter {
    thread: Thread,
    place: AtomicU8,
}

impl Waiter {
    fn wait(&self) {
        loop {
            match self.place.load(Ordering::Acquire) {
                TURN => return,
                NEXT => self.look(),
                _ => thread::park(),
            }
        }
    }

    /// Looks for the turn for a while, then sleeps until it is woken.
    fn look(&self) {
        let begun = Instant::now();
        while begun.elapsed() < LONGEST_SPIN {
            for _ in 0..LOOKS {
                if self.place.load(Ordering::Acquire) == TURN {
                    return;
                }
                hint::spin_loop();
            }
        }
        thread::park();
    }

    /// Gives the thread its turn.
    fn give(&self) {
        self.place.store(TURN, Ordering::Release);
        self.thread.unpark();
    }

    /// Wakes the thread, which is one of the next ones now, unless it has its turn already.
    fn wake(&self) {
        let place = &self.place;
        let changed = place.compare_exchange(WAITING, NEXT, Ordering::AcqRel, Ordering::Acquire);
        if changed.is_ok() {
            self.thread.unpark();
        }
    }
}

impl Turns {
    pub fn new() -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            state: Mutex::default(),
            awake: (processors / PROCESSORS_PER_AWAKE).clamp(1, MOST_AWAKE),
            unneeded: Mutex::default(),
        }
    }

    /// Waits for the turn of this thread. A thread that has the turn gets it again at once.
    pub fn take(self: &Arc<Self>) -> Turn {
        let thread = thread::current();
        let mut state = self.state();
        match state.owner {
            None => state.owner = Some(thread.id()),
            Some(owner) if owner == thread.id() => state.inner += 1,
            Some(_) => {
                let place = if state.waiters.len() < self.awake {
                    NEXT
                } else {
                    WAITING
                };
                let waiter = Arc::new(Waiter {
                    thread,
                    place: AtomicU8::new(place),
                });
                state.waiters.push_back(waiter.clone());
                drop(state);
                waiter.wait();
            }
        }
        Turn(self.clone())
    }

    /// Releases an event at the end of a turn.
    pub fn release(&self, event: EventHandle) {
        self.unneeded().push(event);
    }

    fn unneeded(&self) -> MutexGuard<'_, Vec<EventHandle>> {
        self.unneeded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        let unneeded = std::mem::take(&mut *self.unneeded());
        drop(unneeded);
        let mut state = self.state();
        if state.inner > 0 {
            state.inner -= 1;
            return;
        }
        let first = state.waiters.pop_front();
        state.owner = first.as_ref().map(|waiter| waiter.thread.id());
        let next = state.waiters.get(self.awake - 1).cloned();
        drop(state);
        if let Some(first) = first {
            first.give();
        }
        if let Some(next) = next {
            next.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread's turn, until it is dropped by the same thread.
#[derive(Debug)]
pub(super) struct Turn(Arc<Turns>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    use super::*;

    #[test]
    fn turns_are_in_the_order_of_arrival_one_at_a_time() {
        const THREADS: usize = 2 * MOST_AWAKE + 1;
        let turns = Arc::new(Turns::new());
        let order = Mutex::new(Vec::new());
        let is_taken = AtomicBool::new(false);
        thread::scope(|scope| {
            let first = turns.take();
            for number in 0..THREADS {
                let (turns, order, is_taken) = (&turns, &order, &is_taken);
                scope.spawn(move || {
                    let turn = turns.take();
                    assert!(!is_taken.swap(true, SeqCst));
                    // A turn inside a turn.
                    drop(turns.take());
                    order.lock().unwrap().push(number);
                    thread::sleep(Duration::from_millis(1));
                    is_taken.store(false, SeqCst);
                    drop(turn);
                });
                while turns.state().waiters.len() <= number {
                    thread::yield_now();
                }
            }
            drop(first);
        });
        assert_eq!(order.into_inner().unwrap(), Vec::from_iter(0..THREADS));
        assert!(turns.state().owner.is_none());
    }
}
