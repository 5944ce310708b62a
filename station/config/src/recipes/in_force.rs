//! The files of recipes that cameras run with.
//!
//! Cameras keep the paths of their files, and read some of them again: at a new start, or with a new size of the frames. So
//! they reach the files through a link, which leads to the folder of the recipe. A save first leads the link to a copy of the
//! files as they are. Settings that were read before it never meet its files.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use clinspect_results::report::RecipeId;
use run::picture_files::is_hidden;

use super::folder::{Folder, remove};

/// A link to the files of a recipe, with its name and hash.
const LINK: &str = ".in-force-";
/// The files of a recipe before a save, with its name and hash.
const COPY: &str = ".before-save-";
/// A link that is being made.
const NEW_LINK: &str = ".new-link";

impl Folder {
    fn link(&self, id: &str) -> PathBuf {
        self.path().join(format!("{LINK}{id}"))
    }

    /// The folder of a recipe's files for cameras that are to run with it: a link to [`Self::of_recipe`], made if it is
    /// missing. `is_in_force`: cameras run with it already, so a link that a save has led elsewhere stays.
    pub fn link_for_cameras(&self, recipe: &RecipeId, is_in_force: bool) -> io::Result<PathBuf> {
        let id = id_of(recipe);
        let link = self.link(&id);
        if !is_in_force || !link.exists() {
            self.lead(&link, &recipe.name)?;
        }
        Ok(link)
    }

    /// Leads a link elsewhere in the folder, in one step.
    fn lead(&self, link: &Path, target: &str) -> io::Result<()> {
        let new = self.path().join(NEW_LINK);
        remove(&new)?;
        symlink(target, &new)?;
        fs::rename(new, link)
    }

    /// Before a save of this recipe: cameras that run with it keep the files that they have.
    pub fn keep_for_cameras(&self, name: &str) -> io::Result<()> {
        for id in self.ids(LINK)? {
            let link = self.link(&id);
            if fs::read_link(&link)? != Path::new(name) {
                continue;
            }
            let copy = format!("{COPY}{id}");
            self.copy(name, &self.path().join(&copy))?;
            self.lead(&link, &copy)?;
        }
        Ok(())
    }

    fn copy(&self, name: &str, copy: &Path) -> io::Result<()> {
        if copy.exists() {
            fs::remove_dir_all(copy)?;
        }
        fs::create_dir(copy)?;
        for entry in fs::read_dir(self.of_recipe(name))? {
            let entry = entry?;
            let file = entry.file_name();
            // Files that are being written are hidden, too.
            if is_hidden(&file) {
                continue;
            }
            if entry.path().is_dir() {
                // A save writes no folder.
                symlink(Path::new("..").join(name).join(&file), copy.join(&file))?;
            } else {
                fs::copy(entry.path(), copy.join(&file))?;
            }
        }
        Ok(())
    }

    /// Removes the links and copies of recipes that no camera runs with.
    pub fn release(&self, is_over: impl Fn(&str) -> bool) -> io::Result<()> {
        for id in self.ids(LINK)?.iter().filter(|id| is_over(id)) {
            remove(&self.link(id))?;
        }
        for id in self.ids(COPY)?.iter().filter(|id| is_over(id)) {
            fs::remove_dir_all(self.path().join(format!("{COPY}{id}")))?;
        }
        Ok(())
    }

    /// What comes behind `before` in the names of the folder.
    fn ids(&self, before: &str) -> io::Result<Vec<String>> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(self.path())? {
            let name = entry?.file_name();
            let id = name.to_str().and_then(|name| name.strip_prefix(before));
            ids.extend(id.map(str::to_owned));
        }
        Ok(ids)
    }
}

/// A recipe as part of a file's name.
pub fn id_of(recipe: &RecipeId) -> String {
    format!("{}-{}", recipe.name, recipe.hash)
}
