//! Writes a recipe: all of it, or nothing.

use std::{fmt, fs, io, time::Instant};

use plan::is_name;

use super::{Action, Change, NO_NAME, Recipes};
use crate::file::{MOST_RECIPE_BYTES, Mistake};

/// Files that belong to a recipe, most of them at once.
const MOST_FILES: usize = 256;
/// Characters of a file's name.
const LONGEST_FILE: usize = 96;

/// A recipe that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedRecipe {
    /// Of its text and files.
    pub hash: String,
}

/// Why nothing was written.
#[derive(Debug)]
pub enum SaveError {
    /// Somebody else wrote the recipe, or its files, meanwhile: its text now; empty if it is gone.
    Changed(String),
    /// The text has mistakes.
    Mistakes(Vec<Mistake>),
    /// The name of the recipe or of a file is not valid.
    Name(&'static str),
    /// The disk.
    Disk(io::Error),
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed(_) => f.write_str(
                "The recipe was changed by somebody else meanwhile; look at what changed, then save again.",
            ),
            Self::Mistakes(mistakes) => {
                let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
                write!(f, "The recipe has mistakes: {}", mistakes.join("; "))
            }
            Self::Name(why) => f.write_str(why),
            Self::Disk(error) => write!(
                f,
                "The recipe cannot be written: {error}. See that the disk has room and that the station may write there."
            ),
        }
    }
}

impl std::error::Error for SaveError {}

impl From<io::Error> for SaveError {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

impl Recipes {
    /// Writes a recipe and files that belong to it, and keeps what it was as a [version](Self::versions); files that are not named stay, and one without content is removed. `expected_hash`: what the recipe must
    /// still be, or `None` for a new one. The cameras go on as before: [`Self::switch`] puts the recipe in force.
    ///
    /// # Errors
    /// Somebody else wrote it meanwhile, it has mistakes, or the disk fails. Then everything is as before.
    pub fn save(
        &self,
        name: &str,
        text: &str,
        files: &[(String, Vec<u8>)],
        expected_hash: Option<&str>,
        who: &str,
    ) -> Result<SavedRecipe, SaveError> {
        self.write(name, text, files, expected_hash, (who, Action::Save))
    }

    pub(super) fn write(
        &self,
        name: &str,
        text: &str,
        files: &[(String, Vec<u8>)],
        expected_hash: Option<&str>,
        (who, action): (&str, Action),
    ) -> Result<SavedRecipe, SaveError> {
        let started = Instant::now();
        if !is_name(name) {
            return Err(SaveError::Name(NO_NAME));
        }
        if files.len() > MOST_FILES || !files.iter().all(|(file, _)| is_file_name(file)) {
            return Err(SaveError::Name(
                "A file of a recipe has a name of letters, digits, - and _ that ends with .npz, .png, .pbm or .pgm.",
            ));
        }
        if text.len() as u64 > MOST_RECIPE_BYTES {
            return Err(SaveError::Name("The recipe is larger than 1 MiB."));
        }
        let _alone = self.saving.lock();
        let before = self.folder.recipe(name).exists().then(|| self.hash(name));
        let before = before.transpose().map_err(io::Error::other)?;
        if before.as_deref() != expected_hash {
            return Err(SaveError::Changed(self.text(name).unwrap_or_default()));
        }
        let staged = self.folder.stage(name, text, files)?;
        let checked = self.check_with(name, text, &|file| staged.file(file));
        checked.map_err(SaveError::Mistakes)?;
        let kept = before
            .as_ref()
            .map(|hash| self.folder.keep_version(name, hash));
        let kept = kept.transpose()?;
        staged.commit()?;
        let hash = self.hash(name).map_err(io::Error::other)?;
        // The recipe is saved: a version that stays on the disk harms nobody.
        if let Some(kept) = kept.filter(|_| before.as_ref() == Some(&hash)) {
            // Nothing changed.
            let _ = fs::remove_dir_all(kept);
        }
        let _ = self.folder.forget_old_versions(name);
        self.record(Change {
            time: Change::now(),
            who: who.to_owned(),
            action,
            from: before.map(|_| name.to_owned()),
            to: name.to_owned(),
            hash: Some(hash.clone()),
            milliseconds: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            result: "ok".to_owned(),
        });
        Ok(SavedRecipe { hash })
    }
}

/// Whether a file of this name may belong to a recipe.
pub(super) fn is_file_name(file: &str) -> bool {
    let Some((stem, end)) = file.rsplit_once('.') else {
        return false;
    };
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=LONGEST_FILE).contains(&stem.len())
        && stem.chars().all(is_good)
        && ["npz", "png", "pbm", "pgm"].contains(&end)
}
