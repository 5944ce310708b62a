//! The thread that sends the reports.

use std::{
    io,
    sync::{Arc, atomic::Ordering::Relaxed, mpsc},
    thread,
    time::Duration,
};

use crate::queue::Queue;

/// Longest time for which a stop waits for reports that are not sent.
pub const FLUSH: Duration = Duration::from_secs(2);
/// Longest time for which it then waits for the thread.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Sends reports until the queue is asked to stop, and then what waits, for at most [`FLUSH`].
pub trait Sender: Send + 'static {
    /// Does the work. It must not block on the streaming thread.
    fn run(self, queue: &Queue, teller: &Teller) -> impl Future<Output = ()>;
}

/// What an application should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// Reports cannot be sent: why, without a secret. They wait, and the sender tries again.
    Failed(String),
    /// Reports are sent again.
    Works(String),
}

/// Tells the application when sending begins to fail, and when it works again.
pub struct Teller(Box<dyn Fn(News) + Send>);

impl Teller {
    /// A failed attempt. `why` holds no secret.
    pub fn failed(&self, queue: &Queue, why: &str) {
        let numbers = queue.numbers();
        let was_connected = numbers.is_connected.swap(false, Relaxed);
        if was_connected || numbers.errors.load(Relaxed) == 0 {
            (self.0)(News::Failed(why.into()));
        }
        // Whoever sees the count finds the message.
        numbers.errors.fetch_add(1, Relaxed);
    }

    /// Reports can be sent. After a failure the application gets the text `again`.
    pub fn works(&self, queue: &Queue, again: &str) {
        let numbers = queue.numbers();
        if !numbers.is_connected.swap(true, Relaxed) && numbers.errors.load(Relaxed) > 0 {
            (self.0)(News::Works(again.into()));
        }
    }

    /// A report was sent.
    pub fn sent(&self, queue: &Queue, again: &str) {
        queue.numbers().published.fetch_add(1, Relaxed);
        self.works(queue, again);
    }
}

/// A running thread.
pub struct Running {
    queue: Arc<Queue>,
    ended: mpsc::Receiver<()>,
}

impl Running {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread or no runtime left.
    pub fn start(
        sender: impl Sender,
        queue: Arc<Queue>,
        tell: impl Fn(News) + Send + 'static,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let teller = Teller(Box::new(tell));
        let (end, ended) = mpsc::channel::<()>();
        let of_thread = queue.clone();
        thread::Builder::new()
            .name("inspectpublish".into())
            .spawn(move || {
                // Dropped at the end, which the receiver sees.
                let _end = end;
                runtime.block_on(sender.run(&of_thread, &teller));
                // A name that is still looked up must not hold up the end.
                runtime.shutdown_background();
            })?;
        Ok(Self { queue, ended })
    }

    /// Sends what waits, for a bounded time, and ends the thread. `false` if it did not end in time; it then ends
    /// alone.
    pub fn stop(self) -> bool {
        self.queue.stop();
        let ended = self.ended.recv_timeout(FLUSH + LAST_WORDS);
        ended != Err(mpsc::RecvTimeoutError::Timeout)
    }
}
