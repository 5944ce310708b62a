//! Reports as JSON lines in a file, in a pipe or on standard output.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, ErrorKind, Write},
    os::{
        fd::AsFd,
        unix::fs::{FileExt, FileTypeExt, MetadataExt},
    },
    path::{Path, PathBuf},
    pin::pin,
    time::{Duration, Instant},
};

use tokio::{
    net::unix::pipe,
    time::{sleep, timeout},
};

use crate::{
    queue::Queue,
    sender::{Notifier, Sender},
};

/// Between two attempts after a failure.
const AGAIN: Duration = Duration::from_secs(1);
/// A line that a pipe has not taken for so long is a failure to tell; the line waits on.
const STALLED: Duration = Duration::from_secs(5);
/// Longest wait for the lock of another program, and between two looks at it.
const LOCK_WAIT: [Duration; 2] = [Duration::from_secs(2), Duration::from_millis(2)];
/// Standard output as a file that can be opened again.
const STANDARD_OUTPUT: &str = "/proc/self/fd/1";

/// Writes reports to a file.
pub struct JsonLines {
    /// `None`: standard output.
    path: Option<PathBuf>,
    output: Option<Output>,
}

/// An open file or pipe.
struct Output {
    file: File,
    /// The same pipe without waits: its reader may leave, or may not read.
    pipe: Option<pipe::Sender>,
}

impl JsonLines {
    /// `-` is standard output.
    pub fn new(location: &str) -> Self {
        Self {
            path: (location != "-").then(|| location.into()),
            output: None,
        }
    }

    fn place(&self) -> String {
        match &self.path {
            Some(path) => path.display().to_string(),
            None => "standard output".into(),
        }
    }

    /// Writes a line. A line that the disk does not take whole is removed again.
    async fn write(&mut self, line: &[u8]) -> io::Result<()> {
        // A rotation has renamed or removed the file.
        if let (Some(path), Some(output)) = (&self.path, &self.output)
            && !is_at(&output.file, path)
        {
            self.output = None;
        }
        let output = match (&mut self.output, &self.path) {
            (Some(output), _) => output,
            (none, Some(path)) => none.insert(Output::open(path)?),
            (none, None) => none.insert(Output::standard()?),
        };
        if self.path.is_none() {
            return output.write(line).await;
        }
        // Another process may append to the same file; where there are no locks its lines are not protected.
        let is_locked = lock(&output.file).await?;
        let before = output.file.metadata()?;
        let written = output.write(line).await.inspect_err(|_| {
            if before.is_file() {
                // It fails where writing has failed; `open` then ends the half line.
                let _ = output.file.set_len(before.len());
            }
        });
        if is_locked {
            let _ = output.file.unlock();
        }
        written
    }
}

impl Output {
    /// Opens a file to append lines. A power cut may have left half a line at its end: a new line begins there.
    fn open(path: &Path) -> io::Result<Self> {
        if path.metadata().is_ok_and(|file| file.file_type().is_fifo()) {
            return Self::open_pipe(path);
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_file() && metadata.len() > 0 {
            let mut last = [0];
            File::open(path)?.read_exact_at(&mut last, metadata.len() - 1)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
        }
        Ok(Self { file, pipe: None })
    }

    /// Opens a pipe without waiting for its reader.
    fn open_pipe(path: &Path) -> io::Result<Self> {
        let pipe = pipe::OpenOptions::new().open_sender(path)?;
        let file = File::from(pipe.as_fd().try_clone_to_owned()?);
        let pipe = Some(pipe);
        Ok(Self { file, pipe })
    }

    /// Opens standard output.
    fn standard() -> io::Result<Self> {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        if file.metadata()?.file_type().is_fifo() {
            // Other programs share this end of the pipe, and must not find it without waits. So it is opened again.
            match Self::open_pipe(Path::new(STANDARD_OUTPUT)) {
                Ok(output) => return Ok(output),
                Err(error) if has_no_reader(&error) => return Err(error),
                // The pipe of another user, or a system without /proc.
                Err(_) => {}
            }
        }
        Ok(Self { file, pipe: None })
    }

    async fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let Some(pipe) = &self.pipe else {
            return self.file.write_all(line);
        };
        let mut rest = line;
        while !rest.is_empty() {
            pipe.writable().await?;
            match pipe.try_write(rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Locks a file; `false` where there are no locks.
async fn lock(file: &File) -> io::Result<bool> {
    let begun = Instant::now();
    let [longest, again] = LOCK_WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if begun.elapsed() < longest => sleep(again).await,
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another program keeps the file locked"));
            }
            Err(TryLockError::Error(_)) => return Ok(false),
        }
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.metadata()) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// Whether a pipe was opened that no program reads.
fn has_no_reader(error: &io::Error) -> bool {
    error.raw_os_error() == Some(nix::errno::Errno::ENXIO as i32)
}

/// What an error means.
fn in_words(error: &io::Error) -> String {
    if has_no_reader(error) {
        return "no program reads it; start its reader".into();
    }
    match error.kind() {
        ErrorKind::BrokenPipe => "its reader has ended; start the reader again".into(),
        _ => error.to_string(),
    }
}

impl Sender for JsonLines {
    async fn run(mut self, queue: &Queue, notifier: &Notifier) {
        let place = self.place();
        let fail = |why: &str| {
            let why = format!("results cannot be written to {place}: {why}");
            notifier.failed(queue, &why);
        };
        loop {
            while let Some(report) = queue.take() {
                let line = report.to_line();
                let written = {
                    let mut writing = pin!(self.write(&line));
                    match timeout(STALLED, &mut writing).await {
                        Ok(written) => written,
                        Err(_) => {
                            fail("its reader does not read; let it read, or start it again");
                            writing.await
                        }
                    }
                };
                match written {
                    Ok(()) => {
                        notifier.sent(queue, &format!("results are written to {place} again"))
                    }
                    Err(error) => {
                        queue.put_back([report].into_iter());
                        fail(&in_words(&error));
                        if queue.is_stopping() {
                            return;
                        }
                        self.output = None;
                        tokio::select! {
                            () = sleep(AGAIN) => {}
                            () = queue.stopping() => {}
                        }
                    }
                }
            }
            if queue.is_stopping() {
                return;
            }
            queue.changed().await;
        }
    }
}
