//! Recipes as they were before each save: `.history/NAME/TIME-HASH/` holds a recipe's text and its files.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use clinspect_results::{text, time};
use plan::is_name;
use serde::Serialize;

use super::{
    Action, NO_NAME, Recipes, SaveError, SavedRecipe,
    folder::{Folder, sync},
    save::is_file_name,
};
use crate::file::MOST_RECIPE_BYTES;

const FOLDER: &str = ".history";
/// A version that is being written; nothing of it holds.
const NEW: &str = ".new";
/// Versions of a recipe that are kept.
const MOST: usize = 50;
/// Digits of the time of a version, ms since 1970, and of its hash.
const TIME_DIGITS: usize = 13;
const HASH_DIGITS: usize = 16;

const NO_VERSION: &str = "there is no such version of the recipe any more; the last 50 are kept";

/// A recipe as it was before a save.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Version {
    /// Tells it from the others.
    pub id: String,
    /// When it was replaced, ISO 8601, UTC.
    pub until: String,
    /// Of its text and files.
    pub hash: String,
}

impl Version {
    /// `None` for another name than that of a version.
    fn of(id: &str) -> Option<Self> {
        let (millis, hash) = id.split_once('-')?;
        let is_version = millis.len() == TIME_DIGITS
            && millis.bytes().all(|digit| digit.is_ascii_digit())
            && hash.len() == HASH_DIGITS
            && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
        let millis = millis.parse().ok().filter(|_| is_version)?;
        Some(Self {
            id: id.to_owned(),
            until: time::iso_8601(UNIX_EPOCH + Duration::from_millis(millis)),
            hash: hash.to_owned(),
        })
    }
}

impl Folder {
    fn history(&self, name: &str) -> PathBuf {
        self.path().join(FOLDER).join(name)
    }

    /// The versions of a recipe, the newest first.
    fn versions(&self, name: &str) -> Vec<Version> {
        let entries = fs::read_dir(self.history(name)).into_iter().flatten();
        let names = entries.flatten().map(|entry| entry.file_name());
        let of = |name: std::ffi::OsString| Version::of(name.to_str()?);
        let mut versions: Vec<Version> = names.filter_map(of).collect();
        versions.sort_by(|a, b| b.id.cmp(&a.id));
        versions
    }

    /// Keeps a recipe with this hash as it is now. Returns the version's folder.
    pub fn keep_version(&self, name: &str, hash: &str) -> io::Result<PathBuf> {
        let history = self.history(name);
        fs::create_dir_all(&history)?;
        let new = history.join(NEW);
        if new.exists() {
            fs::remove_dir_all(&new)?;
        }
        fs::create_dir(&new)?;
        fs::copy(self.recipe(name), new.join(format!("{name}.toml")))?;
        for (file, path) in self.files(name)? {
            if is_file_name(&file) {
                // Files of a recipe are replaced, never changed, so a second name keeps this one.
                let kept = new.join(file);
                fs::hard_link(&path, &kept).or_else(|_| fs::copy(&path, &kept).map(drop))?;
            }
        }
        sync(&new)?;
        let millis = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = millis.unwrap_or_default().as_millis();
        let version = history.join(format!("{millis:0TIME_DIGITS$}-{hash}"));
        fs::rename(new, &version)?;
        sync(&history)?;
        Ok(version)
    }

    /// Removes the versions of a recipe that are too many.
    pub fn forget_old_versions(&self, name: &str) -> io::Result<()> {
        let mut old = self.versions(name).into_iter().skip(MOST);
        old.try_for_each(|old| fs::remove_dir_all(self.history(name).join(old.id)))
    }
}

impl Recipes {
    /// The versions of a recipe before its saves, the newest first, at most 50.
    pub fn versions(&self, name: &str) -> Vec<Version> {
        match is_name(name) {
            true => self.folder.versions(name),
            false => Vec::new(),
        }
    }

    /// The text of a version.
    ///
    /// # Errors
    /// A sentence.
    pub fn version_text(&self, name: &str, id: &str) -> Result<String, String> {
        let path = self.version(name, id)?.join(format!("{name}.toml"));
        text::read(&path, MOST_RECIPE_BYTES)
            .map_err(|why| format!("the version cannot be read: {why}"))
    }

    fn version(&self, name: &str, id: &str) -> Result<PathBuf, String> {
        if !is_name(name) {
            return Err(NO_NAME.to_owned());
        }
        let known = Version::of(id).map(|of| self.folder.history(name).join(of.id));
        let known = known.filter(|path| path.is_dir());
        known.ok_or_else(|| NO_VERSION.to_owned())
    }

    /// Makes a recipe, with its files, what it was. What it is now becomes the newest version.
    ///
    /// # Errors
    /// There is no such version, it does not fit the station any more, or the disk fails. Then everything is as before.
    pub fn go_back(&self, name: &str, id: &str, who: &str) -> Result<SavedRecipe, SaveError> {
        let version = self.version(name, id).map_err(io::Error::other)?;
        let text = self.version_text(name, id).map_err(io::Error::other)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(version)?.flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            if is_file_name(&file) {
                files.push((file, fs::read(entry.path())?));
            }
        }
        // A file without content is removed: the version did not have it.
        for file in self.files(name) {
            let file = file_name(&file);
            if !files.iter().any(|(of, _)| *of == file) {
                files.push((file, Vec::new()));
            }
        }
        let now = self.exists(name).then(|| self.hash(name)).transpose();
        let now = now.map_err(io::Error::other)?;
        self.write(name, &text, &files, now.as_deref(), (who, Action::Restore))
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_versions_become_paths() {
        let good = Version::of("1732752000000-13891a8b9fdc53d7").unwrap();
        assert_eq!(good.hash, "13891a8b9fdc53d7");
        assert!(good.until.starts_with("2024-11-28T00:00:00"), "{good:?}");
        for bad in [
            "",
            "..",
            ".new",
            "1732752000000-",
            "1732752000000-13891a8b9fdc53d",
            "173275200000-13891a8b9fdc53d7",
            "1732752000000-../../../../etc",
            "+732752000000-13891a8b9fdc53d7",
        ] {
            assert_eq!(Version::of(bad), None, "{bad}");
        }
    }
}
