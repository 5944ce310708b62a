//! Who changed what, and when: `changes.jsonl`, one line for each change.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use clinspect_results::time;
use serde::{Deserialize, Serialize};

use super::folder::sync;

const FILE: &str = "changes.jsonl";
/// The lines before those of [`FILE`].
const OLDER: &str = "changes.1.jsonl";
/// A larger file becomes [`OLDER`], bytes.
const MOST_BYTES: u64 = 4 << 20;
/// Changes that the page shows.
const SHOWN: usize = 100;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// ISO 8601, UTC.
    pub time: String,
    /// Such as `page 192.168.1.7`, `command line of ada`, `mqtt`, `start` or `reload`.
    pub who: String,
    /// What was done.
    pub action: Action,
    /// The recipe before.
    pub from: Option<String>,
    /// The recipe after, or the one that was wanted.
    pub to: String,
    /// Its hash.
    pub hash: Option<String>,
    /// How long it took.
    pub milliseconds: u64,
    /// `ok`, or a sentence that says why nothing changed.
    pub result: String,
}

/// What was done to a recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It was to come into force.
    Switch,
    /// It was written.
    Save,
    /// It became what it was before a save.
    Restore,
}

impl Change {
    /// The time of a change that happens now.
    pub fn now() -> String {
        time::iso_8601(SystemTime::now())
    }
}

/// The changes of a folder.
pub struct Changes {
    folder: PathBuf,
    newest: VecDeque<Change>,
}

impl Changes {
    /// Reads the last changes. A line that a loss of power cut short is left out.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let mut changes = Self {
            folder: folder.to_owned(),
            newest: VecDeque::new(),
        };
        for name in [OLDER, FILE] {
            let file = match File::open(folder.join(name)) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            for line in BufReader::new(file).split(b'\n') {
                if let Ok(change) = serde_json::from_slice(&line?) {
                    changes.keep(change);
                }
            }
        }
        Ok(changes)
    }

    fn keep(&mut self, change: Change) {
        self.newest.push_back(change);
        if self.newest.len() > SHOWN {
            self.newest.pop_front();
        }
    }

    /// The last changes, the newest first.
    pub fn newest(&self) -> Vec<Change> {
        self.newest.iter().rev().cloned().collect()
    }

    /// Writes a change to the disk.
    pub fn add(&mut self, change: Change) -> io::Result<()> {
        let mut line = serde_json::to_vec(&change)?;
        self.keep(change);
        line.push(b'\n');
        let path = self.folder.join(FILE);
        if fs::metadata(&path).is_ok_and(|about| about.len() > MOST_BYTES) {
            fs::rename(&path, self.folder.join(OLDER))?;
        }
        let is_new = !path.exists();
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(&path)?;
        // The rest of a line that a loss of power cut short must not swallow this one.
        if !is_new && !ends_with_newline(&file)? {
            line.insert(0, b'\n');
        }
        file.write_all(&line)?;
        file.sync_data()?;
        if is_new { sync(&self.folder) } else { Ok(()) }
    }
}

fn ends_with_newline(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::FileExt;
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    Ok(last == [b'\n'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use clinspect_testkit::tools::Sandbox;

    fn change(number: usize) -> Change {
        Change {
            time: Change::now(),
            who: "page 192.168.1.7".into(),
            action: Action::Switch,
            from: Some("cloth".into()),
            to: format!("label-{number}"),
            hash: None,
            milliseconds: 12,
            result: "ok".into(),
        }
    }

    #[test]
    fn changes_are_kept_over_starts_and_a_cut_line_loses_no_other() {
        gst::init().unwrap();
        let sandbox = Sandbox::new("changes");
        let mut changes = Changes::open(sandbox.path()).unwrap();
        (0..3).for_each(|number| changes.add(change(number)).unwrap());
        let file = sandbox.path().join(FILE);
        let whole = fs::read(&file).unwrap();
        fs::write(&file, &whole[..whole.len() - 9]).unwrap();
        let mut changes = Changes::open(sandbox.path()).unwrap();
        changes.add(change(9)).unwrap();
        let newest = Changes::open(sandbox.path()).unwrap().newest();
        let names: Vec<&str> = newest.iter().map(|of| of.to.as_str()).collect();
        assert_eq!(names, ["label-9", "label-1", "label-0"]);
    }

    #[test]
    fn files_of_changes_are_bounded_and_the_page_shows_the_last_ones_of_both() {
        gst::init().unwrap();
        let sandbox = Sandbox::new("changes-bounded");
        let file = sandbox.path().join(FILE);
        let mut changes = Changes::open(sandbox.path()).unwrap();
        changes.add(change(0)).unwrap();
        let line = fs::read_to_string(&file).unwrap();
        let many = line.repeat((MOST_BYTES as usize).div_ceil(line.len()) + 1);
        fs::write(&file, many).unwrap();
        changes.add(change(7)).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1);
        assert!(fs::metadata(sandbox.path().join(OLDER)).unwrap().len() > MOST_BYTES);
        let newest = Changes::open(sandbox.path()).unwrap().newest();
        assert_eq!((newest.len(), newest[0].to.as_str()), (SHOWN, "label-7"));
    }
}
