//! Log lines on stderr: with the journal's priorities if the journal reads them.

use std::{
    fmt,
    io::{self, Write},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::Duration,
};

use crate::{locks::Mutex, worker::Worker};

/// Lines that may wait for stderr.
const MOST_WAITING: usize = 1000;
/// Longest wait at the end until all lines are written.
const END_LIMIT: Duration = Duration::from_secs(1);

/// Leads to the thread that writes, if there is one.
static LINES: Mutex<Option<SyncSender<String>>> = Mutex::new(None);
/// Lines for which there was no room.
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

/// How much a line matters.
#[derive(Debug, Clone, Copy)]
pub enum Level {
    /// An alarm.
    Error,
    /// A condition to check when there is time.
    Warning,
    /// Normal operation.
    Info,
}

/// Writes a line. While there is a [`Writer`], nobody who calls this waits for stderr.
pub fn line(level: Level, text: fmt::Arguments<'_>) {
    let line = formatted(level, text);
    let lines = LINES.lock();
    if let Some(lines) = &*lines {
        add(lines, line, &LEFT_OUT);
    } else {
        drop(lines);
        write(&mut io::stderr(), &line);
    }
}

fn formatted(level: Level, text: fmt::Arguments<'_>) -> String {
    // sd-daemon(3): the journal reads a priority in angle brackets at the begin of a line.
    static JOURNAL: OnceLock<bool> = OnceLock::new();
    let is_journal = *JOURNAL.get_or_init(|| std::env::var_os("JOURNAL_STREAM").is_some());
    let prefix = match (is_journal, level) {
        (true, Level::Error) => "<3>",
        (true, Level::Warning) => "<4>",
        (true, Level::Info) => "<6>",
        (false, Level::Error) => "ERROR ",
        (false, Level::Warning) => "warning: ",
        (false, Level::Info) => "",
    };
    format!("{prefix}{}\n", text.to_string().replace('\n', " "))
}

/// Leaves a line to the thread that writes.
fn add(lines: &SyncSender<String>, line: String, left_out: &AtomicU64) {
    let is_left_out = lines.try_send(line).is_err();
    left_out.fetch_add(is_left_out.into(), Relaxed);
}

fn write(to: &mut impl Write, line: &str) {
    // A failure to write the log cannot be logged.
    let _ = to.write_all(line.as_bytes());
}

/// Writes lines until none will follow.
fn run(lines: Receiver<String>, to: &mut impl Write, left_out: &AtomicU64) {
    for line in lines {
        write(to, &line);
        let left_out = left_out.swap(0, Relaxed);
        if left_out > 0 {
            write(to, &lacks(left_out));
        }
    }
}

/// The line in place of those that are left out.
fn lacks(left_out: u64) -> String {
    let text = format_args!("log lines left out because the log is read too slowly: {left_out}");
    formatted(Level::Warning, text)
}

/// The thread that writes the log. Dropped, it has written all lines, unless that takes longer than a second.
pub struct Writer(Worker);

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start() -> io::Result<Self> {
        let (lines, waiting) = sync_channel(MOST_WAITING);
        let thread = Worker::start("log", || run(waiting, &mut io::stderr(), &LEFT_OUT))?;
        *LINES.lock() = Some(lines);
        Ok(Self(thread.with_limit(END_LIMIT)))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        *LINES.lock() = None;
        self.0.join();
    }
}

/// Logs an alarm.
#[macro_export]
macro_rules! error {
    ($($text:tt)*) => { $crate::log::line($crate::log::Level::Error, format_args!($($text)*)) };
}

/// Logs a warning.
#[macro_export]
macro_rules! warning {
    ($($text:tt)*) => { $crate::log::line($crate::log::Level::Warning, format_args!($($text)*)) };
}

/// Logs normal operation.
#[macro_export]
macro_rules! info {
    ($($text:tt)*) => { $crate::log::line($crate::log::Level::Info, format_args!($($text)*)) };
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{Sender, channel},
        thread,
    };

    use super::*;

    /// A reader that takes what is written when the test lets it.
    struct Slow {
        written: Vec<String>,
        begun: Sender<()>,
        may_go_on: Receiver<()>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.written
                .push(String::from_utf8_lossy(bytes).into_owned());
            // The test may have ended.
            let _ = self.begun.send(());
            let _ = self.may_go_on.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_log_that_is_read_slowly_holds_nobody_up_and_says_what_it_lacks() {
        let (lines, waiting) = sync_channel(2);
        let (begun, writes) = channel();
        let (go_on, may_go_on) = channel();
        let left_out = AtomicU64::new(0);
        let written = thread::scope(|scope| {
            let written = scope.spawn(|| {
                let written = Vec::new();
                let mut slow = Slow {
                    written,
                    begun,
                    may_go_on,
                };
                run(waiting, &mut slow, &left_out);
                slow.written
            });
            add(&lines, "1\n".to_owned(), &left_out);
            writes.recv().expect("the thread writes");
            for line in 2..=5 {
                add(&lines, format!("{line}\n"), &left_out);
            }
            drop((lines, go_on));
            written.join().expect("the thread")
        });
        assert_eq!(written, ["1\n", &*lacks(2), "2\n", "3\n"]);
    }
}
