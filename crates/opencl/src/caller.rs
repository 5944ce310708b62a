//! A thread that makes the driver's calls of all pipelines while several of them wait for the driver.
//!
//! NVIDIA's driver makes its calls one at a time. A thread that gets its turn finds the driver's data in the cache of another
//! processor, so a call takes half as long again as one that follows in the same thread (docs/adr/0030).

use std::{
    cell::Cell,
    hint,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
        mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel},
    },
    thread,
    time::{Duration, Instant},
};

use super::sync::Waiter;

/// How long a thread looks for the end of its calls before it sleeps: to wake it takes the time of some calls.
const LONGEST_WAIT: Duration = Duration::from_millis(1);
/// How long the thread looks for calls before it sleeps.
const LONGEST_LOOK: Duration = Duration::from_micros(200);
/// Pause between two looks at commands that last longer.
const PAUSE: Duration = Duration::from_micros(20);

thread_local! {
    static IS_CALLER: Cell<bool> = const { Cell::new(false) };
}

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Caller {
    tasks: Sender<Task>,
    is_awake: Arc<AtomicBool>,
}

/// Calls that are repeated until they return true.
struct Task {
    calls: *mut (dyn FnMut() -> bool + Send),
    waiter: Arc<Waiter>,
}

// SAFETY: the calls may be made by another thread, and the thread that owns them waits until then.
unsafe impl Send for Task {}

impl Task {
    /// Makes the calls once. Returns true, and tells the thread that waits, when these were the last ones.
    fn is_over(&self) -> bool {
        // SAFETY: the owner of the calls neither uses nor drops them before it is told.
        let calls = unsafe { &mut *self.calls };
        // Calls that panic are over.
        let is_over = catch_unwind(AssertUnwindSafe(calls)).unwrap_or(true);
        if is_over {
            self.waiter.tell();
        }
        is_over
    }
}

impl Caller {
    /// Starts the thread; `None` if the system refuses.
    pub fn start() -> Option<Self> {
        let (tasks, received) = channel();
        let is_awake = Arc::new(AtomicBool::new(false));
        let seen = is_awake.clone();
        let serve = move || serve(&received, &seen);
        let thread = thread::Builder::new().name("clinspect-calls".into());
        (thread.spawn(serve).ok()).map(|_| Self { tasks, is_awake })
    }

    /// Whether the thread looks for calls, so that it makes them at once.
    pub fn is_awake(&self) -> bool {
        self.is_awake.load(Acquire)
    }

    /// Whether the current thread is one of these threads.
    pub fn is_current() -> bool {
        IS_CALLER.get()
    }

    /// Lets the thread make `calls`, and waits. They wait for nothing.
    pub fn run<R: Send>(&self, calls: impl FnOnce() -> R + Send) -> R {
        let mut calls = Some(calls);
        let mut made = None;
        self.repeat(&mut || {
            made = (calls.take()).map(|calls| catch_unwind(AssertUnwindSafe(calls)));
            true
        });
        match made {
            Some(Ok(result)) => result,
            Some(Err(panic)) => resume_unwind(panic),
            None => unreachable!("the calls were made"),
        }
    }

    /// Lets the thread repeat `calls` until they return true, and waits.
    pub fn repeat(&self, calls: &mut (dyn FnMut() -> bool + Send)) {
        let waiter = Waiter::new();
        // SAFETY: only the lifetime changes. This function returns after the thread has told that it does not use the calls
        // any more.
        let calls = unsafe {
            std::mem::transmute::<
                *mut (dyn FnMut() -> bool + Send + '_),
                *mut (dyn FnMut() -> bool + Send + 'static),
            >(calls)
        };
        let task = Task {
            calls,
            waiter: waiter.clone(),
        };
        match self.tasks.send(task) {
            Ok(()) => waiter.wait(LONGEST_WAIT),
            // The thread is gone.
            Err(unsent) => while !unsent.0.is_over() {},
        }
    }
}

fn serve(tasks: &Receiver<Task>, is_awake: &AtomicBool) {
    IS_CALLER.set(true);
    let mut pending: Vec<Task> = Vec::new();
    let mut last_work = Instant::now();
    loop {
        let before = pending.len();
        pending.retain(|task| !task.is_over());
        let mut has_worked = pending.len() < before;
        loop {
            match tasks.try_recv() {
                Ok(task) => {
                    has_worked = true;
                    if !task.is_over() {
                        pending.push(task);
                    }
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        if has_worked {
            last_work = Instant::now();
        } else if last_work.elapsed() < LONGEST_LOOK {
            hint::spin_loop();
            thread::yield_now();
        } else if pending.is_empty() {
            is_awake.store(false, Release);
            let Ok(task) = tasks.recv() else { return };
            is_awake.store(true, Release);
            pending.push(task);
            last_work = Instant::now();
        } else {
            match tasks.recv_timeout(PAUSE) {
                Ok(task) => pending.push(task),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn calls_of_all_threads_are_made_by_one() {
        let caller = Caller::start().unwrap();
        let running = AtomicUsize::new(0);
        thread::scope(|scope| {
            for number in 0..8 {
                let (caller, running) = (&caller, &running);
                scope.spawn(move || {
                    for round in 0..100 {
                        let result = caller.run(|| {
                            assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0);
                            assert!(Caller::is_current());
                            running.fetch_sub(1, Ordering::SeqCst);
                            1000 * number + round
                        });
                        assert_eq!(result, 1000 * number + round);
                    }
                });
            }
        });
        assert!(!Caller::is_current());
    }

    #[test]
    fn calls_are_repeated_beside_others_until_they_are_over() {
        let caller = Caller::start().unwrap();
        let is_set = AtomicBool::new(false);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut asked = 0;
                caller.repeat(&mut || {
                    asked += 1;
                    is_set.load(Acquire)
                });
                asked
            });
            // Longer than the thread looks.
            thread::sleep(Duration::from_millis(5));
            assert_eq!(caller.run(|| 7), 7);
            assert!(!waiting.is_finished());
            is_set.store(true, Release);
            assert!(waiting.join().unwrap() > 1);
        });
        // It sleeps when there is no more to do.
        while caller.is_awake() {
            thread::yield_now();
        }
        assert_eq!(caller.run(|| 8), 8);
    }

    #[test]
    fn a_panic_reaches_the_thread_that_asked() {
        let caller = Caller::start().unwrap();
        let panics = || caller.run(|| panic!("of the calls"));
        let panicked = catch_unwind(AssertUnwindSafe(panics)).unwrap_err();
        assert_eq!(*panicked.downcast::<&str>().unwrap(), "of the calls");
        assert_eq!(caller.run(|| 9), 9);
    }
}
