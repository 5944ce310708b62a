//! Runs a program with a time limit, and says how it ended.

use std::{
    io::{self, Read},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

/// Interval between two looks at a child.
const LOOK: Duration = Duration::from_millis(10);
/// Time for a killed child to end, and for the pipes of an ended child to close. A process that waits inside the kernel's
/// driver ignores SIGKILL.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest output that is kept; the rest is read and dropped.
const MOST_OUTPUT: u64 = 1 << 20;
/// Longest part of a program's last words in a message, characters.
const LAST_WORDS: usize = 300;

/// How a child ended.
#[derive(Debug)]
pub enum End {
    /// It exited or died by itself.
    Exited(ExitStatus),
    /// It was killed after the limit.
    Killed,
    /// It ran longer than the limit, and not even SIGKILL ended it.
    Stuck(u32),
}

/// What a child printed, and how it ended.
#[derive(Debug)]
pub struct ChildResult {
    /// How it ended.
    pub end: End,
    /// Its standard output.
    pub output: String,
    errors: String,
}

impl ChildResult {
    /// Whether the child exited with 0.
    pub fn is_success(&self) -> bool {
        matches!(self.end, End::Exited(status) if status.success())
    }

    /// How the child ended, in words behind "the process".
    pub fn how(&self, limit: Duration) -> String {
        let seconds = limit.as_secs();
        match self.end {
            End::Killed => format!("did not end within {seconds} s and was killed"),
            End::Stuck(process) => format!(
                "did not end within {seconds} s, and process {process} cannot be killed because it waits inside the kernel; \
                 restart the PC"
            ),
            End::Exited(status) => match status.signal() {
                Some(number) => {
                    let name = Signal::try_from(number).map_or("a signal", Signal::as_str);
                    format!("was ended by {name} (signal {number}){}", self.last_words())
                }
                None => format!("ended with {status}{}", self.last_words()),
            },
        }
    }

    /// The last line that the child printed to its standard error.
    fn last_words(&self) -> String {
        let mut lines = self.errors.lines().map(str::trim).rev();
        match lines.find(|line| !line.is_empty()) {
            Some(line) => format!(": {}", line.chars().take(LAST_WORDS).collect::<String>()),
            None => String::new(),
        }
    }
}

/// Runs `command` for at most `limit`; then kills it together with the programs that it started.
///
/// # Errors
/// The program cannot be started.
pub fn run(command: &mut Command, limit: Duration) -> io::Result<ChildResult> {
    let mut child = command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let output = collect(child.stdout.take());
    let errors = collect(child.stderr.take());
    // Open until the child has ended: a probe ends itself if this process dies.
    let held = child.stdin.take();
    let process = child.id();
    let mut wait = |limit: Duration| -> io::Result<Option<ExitStatus>> {
        let until = Instant::now() + limit;
        loop {
            let status = child.try_wait()?;
            if status.is_some() || Instant::now() >= until {
                return Ok(status);
            }
            thread::sleep(LOOK);
        }
    };
    let ended = wait(limit)?;
    // Also after a normal end: no program that the child started may stay. There may be none.
    let _ = killpg(Pid::from_raw(process.cast_signed()), Signal::SIGKILL);
    let end = match ended {
        Some(status) => End::Exited(status),
        None => match wait(PATIENCE)? {
            Some(_) => End::Killed,
            None => End::Stuck(process),
        },
    };
    drop(held);
    let text = |pipe: Receiver<Vec<u8>>| {
        let bytes = pipe.recv_timeout(PATIENCE).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok(ChildResult {
        end,
        output: text(output),
        errors: text(errors),
    })
}

/// Reads a pipe in a thread until it closes.
fn collect(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    if let Some(mut pipe) = pipe {
        thread::spawn(move || {
            let mut kept = Vec::new();
            // What came before an error is kept.
            let _ = pipe.by_ref().take(MOST_OUTPUT).read_to_end(&mut kept);
            let _ = io::copy(&mut pipe, &mut io::sink());
            let _ = send.send(kept);
        });
    }
    receive
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str, limit: Duration) -> ChildResult {
        run(Command::new("sh").args(["-c", line]), limit).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn endings_are_told_apart() {
        let long = Duration::from_secs(20);
        let done = shell("echo yes", long);
        assert!(done.is_success() && done.output == "yes\n", "{done:?}");
        let how = shell("echo why >&2; echo >&2; exit 3", long).how(long);
        assert_eq!(how, "ended with exit status: 3: why");
        let how = shell("kill -ABRT $$", long).how(long);
        assert_eq!(how, "was ended by SIGABRT (signal 6)");
    }

    #[test]
    fn child_that_hangs_is_killed_with_its_own_children() {
        let limit = Duration::from_millis(300);
        let began = Instant::now();
        let done = shell("echo begun; sleep 600 & sleep 600", limit);
        assert!(matches!(done.end, End::Killed), "{done:?}");
        // The second sleep would hold the pipe open.
        assert_eq!(done.output, "begun\n");
        assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    }

    #[test]
    fn output_without_end_is_not_kept() {
        let done = shell("yes | head -c 5000000", Duration::from_secs(20));
        assert_eq!(done.output.len() as u64, MOST_OUTPUT);
        assert!(done.is_success(), "{done:?}");
    }
}
