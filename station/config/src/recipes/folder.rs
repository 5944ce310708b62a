//! The folder of the recipes: `active`, `NAME.toml`, and the folder `NAME` with what belongs to the recipe.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use clinspect_results::text;
use plan::is_name;
use ring::digest;
use run::picture_files::is_hidden;

use crate::file::MOST_RECIPE_BYTES;

/// The file with the name of the recipe in force.
pub const ACTIVE: &str = "active";
/// The file `active` holds a name.
const MOST_ACTIVE_BYTES: u64 = 256;
/// Bytes of a recipe's hash that are shown.
const HASH_BYTES: usize = 8;
/// A save that was not finished: nothing of it holds.
const SAVING: &str = ".saving-";
/// A save that was finished, and whose files go to their places.
const SAVED: &str = ".saved-";

/// The folder.
pub struct Folder(PathBuf);

/// Sizes and times of a recipe's files: while they stay, its files have not changed.
pub type Fingerprint = Vec<(String, u64, Option<SystemTime>)>;

impl Folder {
    /// Makes the folder if it is missing, removes what belonged to cameras of the run before, and completes saves that a loss of power left half done.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        if !path.is_dir() {
            fs::create_dir(&path)?;
        }
        let folder = Self(path);
        folder.release(|_| true)?;
        for entry in fs::read_dir(&folder.0)?.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                continue;
            };
            if name.strip_prefix(SAVING).is_some_and(is_name) {
                fs::remove_dir_all(entry.path())?;
            } else if let Some(name) = name.strip_prefix(SAVED).filter(|name| is_name(name)) {
                folder.put_in_place(name)?;
            }
        }
        Ok(folder)
    }

    /// A folder that is only read.
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The file of a recipe.
    pub fn recipe(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.toml"))
    }

    /// The folder with what belongs to a recipe.
    pub fn of_recipe(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The names of the recipes, sorted.
    pub fn names(&self) -> Vec<String> {
        let stem = |path: &Path| Some(path.file_stem()?.to_str()?.to_owned());
        let names = self.tables().filter_map(|path| stem(&path));
        let mut names: Vec<String> = names.filter(|name| is_name(name)).collect();
        names.sort();
        names
    }

    /// Files that would be recipes if their names were.
    pub fn bad_names(&self) -> Vec<PathBuf> {
        let is_bad = |path: &PathBuf| {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            !stem.is_some_and(is_name)
        };
        let mut bad: Vec<PathBuf> = self.tables().filter(is_bad).collect();
        bad.sort();
        bad
    }

    fn tables(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        paths.filter(|path| {
            let is_seen = path.file_name().is_some_and(|name| !is_hidden(name));
            is_seen && path.extension().is_some_and(|end| end == "toml")
        })
    }

    /// The text of a recipe.
    ///
    /// # Errors
    /// A sentence.
    pub fn text(&self, name: &str) -> Result<String, String> {
        let path = self.recipe(name);
        if !path.exists() {
            return Err(format!("there is no recipe {name}"));
        }
        text::read(&path, MOST_RECIPE_BYTES)
            .map_err(|why| format!("the recipe cannot be read: {why}"))
    }

    /// Tells the text and the files of a recipe from others.
    pub fn hash(&self, name: &str, text: &str) -> io::Result<String> {
        let mut context = digest::Context::new(&digest::SHA256);
        let mut add = |part: &[u8]| {
            // With their lengths no two lists of parts are alike.
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        };
        add(text.as_bytes());
        for (name, path) in self.files(name)? {
            add(name.as_bytes());
            add(&fs::read(path)?);
        }
        let digest = context.finish();
        let digits = digest.as_ref().iter().take(HASH_BYTES);
        Ok(digits.map(|byte| format!("{byte:02x}")).collect())
    }

    /// The files that belong to a recipe, by name; none if it has no folder.
    pub fn files(&self, name: &str) -> io::Result<Vec<(String, PathBuf)>> {
        let entries = match fs::read_dir(self.of_recipe(name)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            // Files that are being written are hidden, too.
            let name = entry.file_name().into_string().ok();
            let name = name.filter(|name| !is_hidden(name.as_ref()));
            if let Some(name) = name.filter(|_| entry.path().is_file()) {
                files.push((name, entry.path()));
            }
        }
        files.sort();
        Ok(files)
    }

    pub fn fingerprint(&self, name: &str) -> Fingerprint {
        let of = |name: String, path: PathBuf| {
            let about = fs::metadata(path).ok()?;
            Some((name, about.len(), about.modified().ok()))
        };
        let files = self.files(name).unwrap_or_default();
        let text = of(String::new(), self.recipe(name));
        let files = files.into_iter().filter_map(|(name, path)| of(name, path));
        text.into_iter().chain(files).collect()
    }

    /// The name in the file `active`; `None` if there is no such file.
    ///
    /// # Errors
    /// A sentence.
    pub fn active(&self) -> Result<Option<String>, String> {
        let path = self.0.join(ACTIVE);
        if !path.exists() {
            return Ok(None);
        }
        let shown = path.display();
        let text = text::read(&path, MOST_ACTIVE_BYTES)
            .map_err(|why| format!("{shown} cannot be read: {why}"))?;
        match text.trim_ascii() {
            name if is_name(name) => Ok(Some(name.to_owned())),
            _ => Err(format!("{shown} holds no name of a recipe")),
        }
    }

    /// Notes the recipe in force. After an error the one before is noted, as far as the disk obeys.
    pub fn write_active(&self, name: &str) -> io::Result<()> {
        self.write_active_with(name, sync)
    }

    fn write_active_with(
        &self,
        name: &str,
        sync: impl Fn(&Path) -> io::Result<()>,
    ) -> io::Result<()> {
        let path = self.0.join(ACTIVE);
        let before = text::read(&path, MOST_ACTIVE_BYTES);
        let is_first = !path.exists();
        replace(&self.0, ACTIVE, format!("{name}\n").as_bytes())?;
        sync(&self.0).inspect_err(|_| {
            // The new name is there already, and the cameras go back. The first error is the one that is told.
            let _ = match before {
                Ok(before) => replace(&self.0, ACTIVE, before.as_bytes()),
                Err(_) if is_first => remove(&path),
                Err(_) => Ok(()),
            };
        })
    }

    /// Writes the text and the files of a recipe beside the ones in force. Nothing of them holds yet.
    pub fn stage(
        &self,
        name: &str,
        text: &str,
        files: &[(String, Vec<u8>)],
    ) -> io::Result<StagedFiles<'_>> {
        let path = self.0.join(format!("{SAVING}{name}"));
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir(&path)?;
        let staged = StagedFiles {
            folder: self,
            name: name.to_owned(),
            path,
        };
        for (file, bytes) in files {
            write(&staged.path.join(file), bytes)?;
        }
        let recipe = staged.path.join(format!("{name}.toml"));
        write(&recipe, text.as_bytes())?;
        if let Ok(before) = fs::metadata(self.recipe(name)) {
            fs::set_permissions(&recipe, before.permissions())?;
        }
        sync(&staged.path)?;
        Ok(staged)
    }

    /// Moves the files of a finished save to their places, the text last.
    fn put_in_place(&self, name: &str) -> io::Result<()> {
        let saved = self.0.join(format!("{SAVED}{name}"));
        let own = self.of_recipe(name);
        if !own.is_dir() {
            fs::create_dir(&own)?;
        }
        let text = format!("{name}.toml");
        for entry in fs::read_dir(&saved)? {
            let entry = entry?;
            let place = own.join(entry.file_name());
            if entry.file_name() == *text {
                continue;
            }
            if is_empty(&entry.path()) {
                remove(&place)?;
                remove(&entry.path())?;
            } else {
                fs::rename(entry.path(), place)?;
            }
        }
        sync(&own)?;
        if saved.join(&text).exists() {
            fs::rename(saved.join(&text), self.recipe(name))?;
        }
        sync(&self.0)?;
        fs::remove_dir(&saved)?;
        sync(&self.0)
    }
}

/// Files that were written and do not hold yet; removed when dropped.
pub struct StagedFiles<'f> {
    folder: &'f Folder,
    name: String,
    path: PathBuf,
}

impl StagedFiles<'_> {
    /// Where a file of the recipe would be read.
    pub fn file(&self, file: &str) -> PathBuf {
        let staged = self.path.join(file);
        if is_empty(&staged) {
            // It will be gone.
            self.path.join(format!("no-{file}"))
        } else if staged.exists() {
            staged
        } else {
            self.folder.of_recipe(&self.name).join(file)
        }
    }

    /// Puts them in force: all or, if the power is lost before, none.
    pub fn commit(self) -> io::Result<()> {
        self.folder.keep_for_cameras(&self.name)?;
        let saved = self.folder.0.join(format!("{SAVED}{}", self.name));
        if saved.exists() {
            // The disk failed in the middle of the save before.
            self.folder.put_in_place(&self.name)?;
        }
        fs::rename(&self.path, saved)?;
        sync(&self.folder.0)?;
        self.folder.put_in_place(&self.name)
    }
}

impl Drop for StagedFiles<'_> {
    fn drop(&mut self) {
        // After a commit there is nothing to remove.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Whether there is a file without content: it stands for one that is removed.
fn is_empty(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| about.len() == 0)
}

/// Removes a file, if there is one.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Replaces a file: its reader finds the whole old one or the whole new one.
fn replace(folder: &Path, file: &str, bytes: &[u8]) -> io::Result<()> {
    let new = folder.join(format!(".{file}.new"));
    write(&new, bytes)?;
    fs::rename(&new, folder.join(file))
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Writes the entries of a folder to the disk.
pub fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clinspect_testkit::tools::Sandbox;

    #[test]
    fn name_that_the_disk_does_not_keep_is_taken_back() {
        gst::init().unwrap();
        let sandbox = Sandbox::new("active");
        let folder = Folder::open(sandbox.path().join("recipes")).unwrap();
        let broken = |_: &Path| Err(io::Error::other("the disk is broken"));
        assert!(folder.write_active_with("cloth", broken).is_err());
        assert_eq!(folder.active(), Ok(None));
        folder.write_active("cloth").unwrap();
        assert!(folder.write_active_with("label", broken).is_err());
        assert_eq!(folder.active(), Ok(Some("cloth".to_owned())));
    }
}
