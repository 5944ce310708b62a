//! Reports that wait to be sent.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use clinspect_results::report::Report;
use tokio::{sync::Notify, time::sleep};

/// A bounded queue between the streaming thread and the thread that sends. A full queue drops its oldest report.
pub struct Queue {
    waiting: Mutex<Waiting>,
    most: usize,
    most_bytes: u64,
    changed: Notify,
    is_stopping: AtomicBool,
    /// Whether frames come.
    is_online: AtomicBool,
    numbers: Numbers,
}

/// The reports that wait, the oldest first, each with its memory in bytes.
#[derive(Default)]
struct Waiting {
    reports: VecDeque<(Arc<Report>, u64)>,
    /// Those that the sender set aside; they are older.
    aside: VecDeque<(Arc<Report>, u64)>,
    /// The sum.
    bytes: u64,
}

impl Waiting {
    /// Adds the memory of a report.
    fn with_bytes(&mut self, report: Arc<Report>) -> (Arc<Report>, u64) {
        let bytes = report.memory() as u64;
        self.bytes += bytes;
        (report, bytes)
    }

    /// Subtracts the memory of a report.
    fn without_bytes(&mut self, taken: Option<(Arc<Report>, u64)>) -> Option<Arc<Report>> {
        let (report, bytes) = taken?;
        self.bytes -= bytes;
        Some(report)
    }

    fn len(&self) -> usize {
        self.reports.len() + self.aside.len()
    }

    fn drop_oldest(&mut self) {
        let oldest = self.aside.pop_front().or_else(|| self.reports.pop_front());
        self.without_bytes(oldest);
    }
}

/// What happened to the reports so far.
#[derive(Default)]
pub struct Numbers {
    /// Reports so far.
    pushed: AtomicU64,
    /// Reports that the file or the broker has taken.
    pub published: AtomicU64,
    /// Reports that were dropped: the queue was full, or the broker never takes them.
    pub dropped: AtomicU64,
    /// Failed attempts to write, to connect or to send.
    pub errors: AtomicU64,
    /// Whether the file is open, or the broker answers.
    pub is_connected: AtomicBool,
}

impl Queue {
    /// A queue of at most `most` reports in at most `most_bytes`; one report may be larger than that.
    pub fn new(most: usize, most_bytes: u64) -> Self {
        Self {
            waiting: Mutex::default(),
            most,
            most_bytes,
            changed: Notify::new(),
            is_stopping: AtomicBool::new(false),
            is_online: AtomicBool::new(true),
            numbers: Numbers::default(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the newest report. Returns at once.
    pub fn push(&self, report: Arc<Report>) {
        self.numbers.pushed.fetch_add(1, Relaxed);
        self.put(|waiting| {
            let report = waiting.with_bytes(report);
            waiting.reports.push_back(report);
        });
    }

    /// Puts reports back that were taken and not sent, the oldest first.
    pub fn put_back(&self, reports: impl DoubleEndedIterator<Item = Arc<Report>>) {
        self.put(|waiting| {
            for report in reports.rev() {
                let report = waiting.with_bytes(report);
                waiting.reports.push_front(report);
            }
        });
    }

    /// Sets a report aside that was taken: others are sent first. It waits, and counts as before.
    pub fn set_aside(&self, report: Arc<Report>) {
        self.put(|waiting| {
            let report = waiting.with_bytes(report);
            waiting.aside.push_back(report);
        });
    }

    fn put(&self, add: impl FnOnce(&mut Waiting)) {
        let mut waiting = self.waiting();
        add(&mut waiting);
        let mut over = 0;
        while waiting.len() > self.most || (waiting.bytes > self.most_bytes && waiting.len() > 1) {
            waiting.drop_oldest();
            over += 1;
        }
        drop(waiting);
        self.numbers.dropped.fetch_add(over, Relaxed);
        self.changed.notify_one();
    }

    /// Takes the oldest report that is not set aside.
    pub fn take(&self) -> Option<Arc<Report>> {
        self.take_if(|_| true)
    }

    /// As [`Self::take`], if its memory fits.
    pub fn take_if(&self, fits: impl FnOnce(u64) -> bool) -> Option<Arc<Report>> {
        let mut waiting = self.waiting();
        let bytes = waiting.reports.front().map(|(_, bytes)| *bytes)?;
        let oldest = fits(bytes).then(|| waiting.reports.pop_front())?;
        waiting.without_bytes(oldest)
    }

    /// Takes the oldest report that is set aside.
    pub fn take_aside(&self) -> Option<Arc<Report>> {
        let mut waiting = self.waiting();
        let oldest = waiting.aside.pop_front();
        waiting.without_bytes(oldest)
    }

    /// Whether reports are set aside.
    pub fn has_aside(&self) -> bool {
        !self.waiting().aside.is_empty()
    }

    /// Whether a report waits that is not set aside.
    pub fn has_next(&self) -> bool {
        !self.waiting().reports.is_empty()
    }

    /// Counts a report that was taken and will not be sent.
    pub fn count_dropped(&self) {
        self.numbers.dropped.fetch_add(1, Relaxed);
    }

    /// Number of reports that wait.
    pub fn len(&self) -> usize {
        self.waiting().len()
    }

    /// Memory of the reports that wait, bytes.
    pub fn bytes(&self) -> u64 {
        self.waiting().bytes
    }

    /// Waits for a change since the last call: a report, the online state, or a stop. One caller at a time.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Asks the sender to send what waits and then to end.
    pub fn stop(&self) {
        self.is_stopping.store(true, Relaxed);
        self.changed.notify_one();
    }

    /// Whether a stop was asked for.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Relaxed)
    }

    /// Waits until a stop is asked for.
    pub async fn stopping(&self) {
        while !self.is_stopping() {
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Sets whether frames come.
    pub fn set_online(&self, is_online: bool) {
        self.is_online.store(is_online, Relaxed);
        self.changed.notify_one();
    }

    /// Whether frames come.
    pub fn is_online(&self) -> bool {
        self.is_online.load(Relaxed)
    }

    /// Drops and counts the waiting reports, because the sender has stopped.
    pub fn close(&self) {
        *self.waiting() = Waiting::default();
        let Numbers {
            pushed,
            published,
            dropped,
            is_connected,
            ..
        } = &self.numbers;
        let lost = pushed.load(Relaxed).saturating_sub(published.load(Relaxed));
        dropped.store(lost, Relaxed);
        is_connected.store(false, Relaxed);
    }

    /// The numbers so far.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(frame: u64) -> Arc<Report> {
        Arc::new(Report {
            version: 1,
            camera: None,
            frame: Some(frame),
            outcome: None,
            time: String::new(),
            recipe: None,
            corrupted: false,
            verdict: "pass",
            inspections: Vec::new(),
            histograms: Vec::new(),
        })
    }

    fn frames(queue: &Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.take()?.frame).collect()
    }

    #[test]
    fn oldest_report_is_dropped_and_counted() {
        let queue = Queue::new(3, u64::MAX);
        (0..5).for_each(|frame| queue.push(report(frame)));
        assert_eq!(queue.numbers().dropped.load(Relaxed), 2);
        assert_eq!(frames(&queue), [2, 3, 4]);
    }

    #[test]
    fn bytes_bound_the_queue_too_and_a_report_larger_than_the_bound_is_kept() {
        let one = report(0).memory() as u64;
        let queue = Queue::new(100, 3 * one);
        (0..5).for_each(|frame| queue.push(report(frame)));
        assert_eq!(queue.numbers().dropped.load(Relaxed), 2);
        queue.put_back([report(1)].into_iter());
        assert_eq!(queue.numbers().dropped.load(Relaxed), 3);
        assert_eq!(queue.bytes(), 3 * one);
        assert_eq!(frames(&queue), [2, 3, 4]);
        assert_eq!(queue.bytes(), 0);

        let queue = Queue::new(100, one - 1);
        (0..2).for_each(|frame| queue.push(report(frame)));
        assert_eq!(frames(&queue), [1]);
    }

    #[test]
    fn reports_that_are_set_aside_count_and_are_the_first_to_be_dropped() {
        let queue = Queue::new(3, u64::MAX);
        (0..2).for_each(|frame| queue.push(report(frame)));
        let first = queue.take().unwrap();
        queue.set_aside(first);
        assert_eq!((queue.len(), queue.has_aside()), (2, true));
        (2..4).for_each(|frame| queue.push(report(frame)));
        assert_eq!(queue.numbers().dropped.load(Relaxed), 1);
        assert!(queue.take_aside().is_none());
        assert_eq!(frames(&queue), [1, 2, 3]);
        assert_eq!(queue.bytes(), 0);
    }

    #[test]
    fn reports_that_come_back_keep_their_order_and_the_oldest_is_dropped() {
        let queue = Queue::new(3, u64::MAX);
        (2..4).for_each(|frame| queue.push(report(frame)));
        queue.put_back([report(0), report(1)].into_iter());
        assert_eq!(queue.numbers().dropped.load(Relaxed), 1);
        assert_eq!(frames(&queue), [1, 2, 3]);
    }
}
