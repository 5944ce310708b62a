//! Reports as JSON lines in a file or on standard output.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    queue::Queue,
    sender::{Notifier, Sender},
};

/// Between two attempts after a failure.
const AGAIN: Duration = Duration::from_secs(1);

/// Writes reports to a file.
pub struct JsonLines {
    /// `None`: standard output.
    path: Option<PathBuf>,
    file: Option<File>,
}

impl JsonLines {
    /// `-` is standard output.
    pub fn new(location: &str) -> Self {
        Self {
            path: (location != "-").then(|| location.into()),
            file: None,
        }
    }

    /// Writes a line. A line that the disk does not take whole is removed again.
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let Some(path) = &self.path else {
            let mut out = io::stdout().lock();
            out.write_all(line)?;
            return out.flush();
        };
        // A rotation has renamed or removed the file.
        if self.file.as_ref().is_some_and(|file| !is_at(file, path)) {
            self.file = None;
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open(path)?),
        };
        // Another process may append to the same file; where there are no locks its lines are not protected.
        let lock = file.lock();
        let before = file.metadata()?;
        let written = file.write_all(line).inspect_err(|_| {
            if before.is_file() {
                // It fails where writing has failed; `open` then ends the half line.
                let _ = file.set_len(before.len());
            }
        });
        if lock.is_ok() {
            let _ = file.unlock();
        }
        written
    }
}

/// Opens a file to append lines. A power cut may have left half a line at its end: a new line begins there.
fn open(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.len() > 0 {
        let mut last = [0];
        File::open(path)?.read_exact_at(&mut last, metadata.len() - 1)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.metadata()) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

impl Sender for JsonLines {
    async fn run(mut self, queue: &Queue, notifier: &Notifier) {
        let place = match &self.path {
            Some(path) => path.display().to_string(),
            None => "standard output".into(),
        };
        loop {
            while let Some(report) = queue.take() {
                match self.write(&report.to_line()) {
                    Ok(()) => {
                        notifier.sent(queue, &format!("results are written to {place} again"))
                    }
                    Err(error) => {
                        queue.put_back([report].into_iter());
                        notifier.failed(
                            queue,
                            &format!("results cannot be written to {place}: {error}"),
                        );
                        if queue.is_stopping() {
                            return;
                        }
                        self.file = None;
                        tokio::time::sleep(AGAIN).await;
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
