//! Threads that their owner waits for.

use std::{
    io,
    thread::{Builder, JoinHandle, sleep},
    time::{Duration, Instant},
};

/// A thread. It has ended when this is dropped: its owner asks it to end before.
pub struct Worker {
    thread: Option<JoinHandle<()>>,
    limit: Option<Duration>,
}

impl Worker {
    /// Starts a thread with this name.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(
        name: impl Into<String>,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let thread = Builder::new().name(name.into()).spawn(work)?;
        Ok(Self {
            thread: Some(thread),
            limit: None,
        })
    }

    /// Nobody waits longer than this for its end: it may hang, and then ends alone.
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Waits for its end.
    pub fn join(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        if let Some(limit) = self.limit {
            let end = Instant::now() + limit;
            while !thread.is_finished() {
                if Instant::now() >= end {
                    return;
                }
                sleep(Duration::from_millis(2));
            }
        }
        // A panic there was printed already.
        let _ = thread.join();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.join();
    }
}
