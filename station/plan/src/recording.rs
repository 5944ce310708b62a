//! Which frames are recorded: the table `[camera.recording]`.

use std::path::PathBuf;

/// Maximum of [`RecordingSettings::before`] and [`RecordingSettings::after`].
pub const MOST_AROUND: u32 = 50;

/// What is recorded, and how much of it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingSettings {
    /// The folder. It is made if it is missing and its parent exists.
    pub folder: PathBuf,
    /// Frames before a failed one that are recorded too, at most 50.
    pub before: u32,
    /// Frames after a failed one that are recorded too, at most 50.
    pub after: u32,
    /// Recordings that are kept; 0: no limit.
    pub max_count: u64,
    /// Hours that recordings are kept; 0: no limit.
    pub max_age_hours: u32,
    /// Bytes of the recordings that are kept; 0: no limit.
    pub max_bytes: u64,
}

impl RecordingSettings {
    /// Recordings in this folder, with the defaults.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            before: 0,
            after: 0,
            max_count: 10_000,
            max_age_hours: 0,
            max_bytes: 10_000_000_000,
        }
    }

    /// # Errors
    /// A sentence that names the mistake.
    pub fn check(&self) -> Result<(), String> {
        if self.folder.as_os_str().is_empty() {
            return Err("folder is empty; set the folder for the recordings".into());
        }
        for (name, value) in [("before", self.before), ("after", self.after)] {
            if value > MOST_AROUND {
                return Err(format!(
                    "{name} = {value} is too large; set a number from 0 to {MOST_AROUND}"
                ));
            }
        }
        Ok(())
    }
}
