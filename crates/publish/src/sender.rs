//! The thread that sends the reports.

use std::{
    cell::RefCell,
    io,
    sync::{Arc, atomic::Ordering::Relaxed, mpsc},
    thread,
    time::Duration,
};

use nix::sys::signal::{SigSet, Signal};

use crate::queue::Queue;

/// Longest time for which a stop waits for reports that are not sent.
const FLUSH: Duration = Duration::from_secs(2);
/// Longest time for which it then waits for the thread.
const JOIN_LIMIT: Duration = Duration::from_secs(1);

/// Sends reports until the queue is asked to stop, and then what waits, for at most [`FLUSH`].
pub trait Sender: Send + 'static {
    /// Does the work. It must not block on the streaming thread.
    fn run(self, queue: &Queue, notifier: &Notifier) -> impl Future<Output = ()>;
}

/// A change that the application gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Reports cannot be sent: why, without a secret. They wait, and the sender tries again.
    Failed(String),
    /// Reports are sent again.
    Recovered(String),
    /// A report, or the state, was given up, while the others are sent: why, and what to do.
    Refused(String),
}

/// Why attempts have failed since the last success. The first reason is often not the one that people must mend: a broker
/// ends the connections, and after its restart it refuses the password.
#[derive(Default)]
pub struct Reasons(Vec<String>);

impl Reasons {
    /// Reasons that are told until the next success.
    const MOST: usize = 8;

    /// Whether the application is to be told this reason.
    pub fn is_new(&mut self, why: &str) -> bool {
        let is_new = self.0.len() < Self::MOST && self.0.iter().all(|told| told != why);
        if is_new {
            self.0.push(why.to_owned());
        }
        is_new
    }

    /// An attempt succeeded. Returns whether one had failed before.
    pub fn clear(&mut self) -> bool {
        !std::mem::take(&mut self.0).is_empty()
    }
}

/// Notifies the application when sending begins to fail, at each new reason, and when it recovers.
pub struct Notifier {
    notify: Box<dyn Fn(Notice) + Send>,
    reasons: RefCell<Reasons>,
}

impl Notifier {
    /// A failed attempt. `why` holds no secret.
    pub fn failed(&self, queue: &Queue, why: &str) {
        let numbers = queue.numbers();
        numbers.is_connected.store(false, Relaxed);
        let is_new = self.reasons.borrow_mut().is_new(why);
        if is_new {
            (self.notify)(Notice::Failed(why.into()));
        }
        // After the message: a reader that sees the count finds the message.
        numbers.errors.fetch_add(1, Relaxed);
    }

    /// A connection ended while the sender finds out which packet the broker never accepts. The broker is there.
    pub fn lost(&self, queue: &Queue) {
        queue.numbers().errors.fetch_add(1, Relaxed);
    }

    /// A packet was given up.
    pub fn refused(&self, text: String) {
        (self.notify)(Notice::Refused(text));
    }

    /// Reports can be sent. After a failure the application gets this text.
    pub fn works(&self, queue: &Queue, text: &str) {
        queue.numbers().is_connected.store(true, Relaxed);
        let had_failed = self.reasons.borrow_mut().clear();
        if had_failed {
            (self.notify)(Notice::Recovered(text.into()));
        }
    }

    /// A report was sent.
    pub fn sent(&self, queue: &Queue, text: &str) {
        queue.numbers().published.fetch_add(1, Relaxed);
        self.works(queue, text);
    }
}

/// Ends when a stop has waited long enough.
async fn flushed(queue: &Queue) {
    queue.stopping().await;
    tokio::time::sleep(FLUSH).await;
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
        notify: impl Fn(Notice) + Send + 'static,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let notifier = Notifier {
            notify: Box::new(notify),
            reasons: RefCell::default(),
        };
        let (end, ended) = mpsc::channel::<()>();
        let of_thread = queue.clone();
        thread::Builder::new()
            .name("inspectpublish".into())
            .spawn(move || {
                // Dropped at the end, which the receiver sees.
                let _end = end;
                // A pipe or socket whose reader has left must be an error here, not the end of the process. A pending
                // signal ends with the thread. The process's own handling of the signal is the application's.
                let _ = SigSet::from(Signal::SIGPIPE).thread_block();
                runtime.block_on(async {
                    tokio::select! {
                        () = sender.run(&of_thread, &notifier) => {}
                        () = flushed(&of_thread) => {}
                    }
                });
                // A DNS query that still runs must not delay the end.
                runtime.shutdown_background();
            })?;
        Ok(Self { queue, ended })
    }

    /// Sends what waits, for a bounded time, and ends the thread. `false` if it did not end in time; it then ends
    /// alone.
    pub fn stop(self) -> bool {
        self.queue.stop();
        let ended = self.ended.recv_timeout(FLUSH + JOIN_LIMIT);
        ended != Err(mpsc::RecvTimeoutError::Timeout)
    }
}
