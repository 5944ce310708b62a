//! Log lines on stderr: with the journal's priorities if the journal reads them.

use std::{fmt, io::Write, sync::OnceLock};

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

/// Writes a line.
pub fn line(level: Level, text: fmt::Arguments<'_>) {
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
    let text = text.to_string().replace('\n', " ");
    // A failure to write the log cannot be logged.
    let _ = writeln!(std::io::stderr(), "{prefix}{text}");
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
