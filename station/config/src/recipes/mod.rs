//! Recipes: a file per product with the cameras' tables, in a folder with what belongs to each.
//!
//! A name from outside never becomes a path before [`is_name`] has seen it.

mod alone;
mod changes;
mod folder;
mod history;
mod in_force;
mod numbers;
mod save;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clinspect_results::report::RecipeId;
use machine::{
    error,
    locks::Mutex,
    modbus::{self, SwitchResult},
};
use plan::{CameraConfig, is_name};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};

use crate::file::{Mistake, Purpose, number_of, read_recipe};
pub use changes::{Action, Change};
pub use history::Version;
pub use numbers::{Numbers, SWITCH_BUCKETS};
use save::is_file_name;
pub use save::{SaveError, SavedRecipe};

use changes::Changes;
use folder::{ACTIVE, Fingerprint, Folder};

/// Switches that may wait.
const WAITING_SWITCHES: usize = 4;

/// The recipes of a station. All parts of the station share one.
pub struct Recipes {
    folder: Folder,
    /// The cameras of the station's file.
    bases: Mutex<Arc<Vec<CameraConfig>>>,
    in_force: watch::Sender<InForce>,
    changes: Mutex<Changes>,
    switches: mpsc::Sender<Switch>,
    numbers: Numbers,
    /// What is known of recipes that have not changed since.
    known: Mutex<BTreeMap<String, CheckedRecipe>>,
    /// Only one recipe is saved at a time.
    saving: Mutex<()>,
}

/// Which recipe is in force.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct InForce {
    /// The recipe, as it was when it came into force; `None`: the cameras of the station's file run, or none does.
    pub active: Option<RecipeId>,
    /// The number by which a PLC knows it; `None`: it has none.
    pub number: Option<u16>,
    /// Why no camera runs: what is wrong with the recipe that was to be in force, and what to do.
    pub problem: Option<String>,
    /// A switch is being carried out.
    #[serde(rename = "busy")]
    pub is_busy: bool,
    /// Why the last switch failed; `None` after one that did not.
    pub failed: Option<String>,
}

/// A recipe of the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecipeEntry {
    /// Its name.
    pub name: String,
    /// Of its text and its files as they are now; empty if they cannot be read.
    pub hash: String,
    /// The number by which a PLC asks for it; `None`: it has none.
    pub number: Option<u16>,
    /// Whether it is the one in force.
    pub is_active: bool,
    /// Its mistakes, each with line and column.
    pub mistakes: Vec<String>,
}

/// What was found out about a recipe.
struct CheckedRecipe {
    fingerprint: Fingerprint,
    hash: String,
    number: Option<u16>,
    /// Checked with these cameras of the station's file.
    bases: Arc<Vec<CameraConfig>>,
    mistakes: Vec<String>,
}

/// A recipe that was read.
pub struct RecipeContent {
    /// Its name and hash.
    pub id: RecipeId,
    /// The number by which a PLC asks for it.
    pub number: Option<u16>,
    /// The cameras under this recipe.
    pub cameras: Vec<CameraConfig>,
}

/// A switch that somebody wants.
pub struct Switch {
    /// The recipe.
    pub name: String,
    /// Who wants it.
    pub who: String,
    /// How long the switch took, or a sentence that says why all cameras are as before.
    pub answer: oneshot::Sender<Result<Duration, String>>,
}

/// Why a name of a recipe is refused.
pub const NO_NAME: &str =
    "A recipe's name has 1 to 64 letters from a to z, digits, - and _, and nothing else.";

impl Recipes {
    /// Opens the folder, which is made if it is missing, and completes what a loss of power left half done. The switches
    /// that are wanted come through the receiver. `bases` are the cameras of the station's file.
    ///
    /// # Errors
    /// The folder can be neither read nor written.
    pub fn open(
        folder: PathBuf,
        bases: Vec<CameraConfig>,
    ) -> io::Result<(Arc<Self>, mpsc::Receiver<Switch>)> {
        let (switches, wanted) = mpsc::channel(WAITING_SWITCHES);
        let folder = Folder::open(folder)?;
        let changes = Changes::open(folder.path())?;
        let recipes = Self {
            folder,
            bases: Mutex::new(Arc::new(bases)),
            in_force: watch::Sender::default(),
            changes: Mutex::new(changes),
            switches,
            numbers: Numbers::default(),
            known: Mutex::default(),
            saving: Mutex::default(),
        };
        Ok((Arc::new(recipes), wanted))
    }

    /// Every mistake in the recipes of a folder, each with file, line and column.
    pub fn check(folder: &Path, bases: &[CameraConfig]) -> Vec<String> {
        let folder = Folder::at(folder);
        let mut told = Vec::new();
        let mut numbers: BTreeMap<u16, String> = BTreeMap::new();
        for name in folder.names() {
            let path = folder.recipe(&name);
            let file = |file: &str| folder.of_recipe(&name).join(file);
            let text = folder.text(&name).map_err(whole);
            if let Some(number) = text.as_ref().ok().and_then(|text| number_of(text))
                && let Some(other) = numbers.insert(number, name.clone())
            {
                let text = format!(
                    "number = {number} is the number of {other}, too; give each recipe a number of its own"
                );
                told.extend(
                    whole(text)
                        .iter()
                        .map(|of| format!("{}:{of}", path.display())),
                );
            }
            let read =
                text.and_then(|text| read_recipe(&text, &path, &file, bases, Purpose::Check));
            let mistakes = read.err().unwrap_or_default();
            told.extend((mistakes.iter()).map(|mistake| format!("{}:{mistake}", path.display())));
        }
        let active = match folder.active() {
            Ok(Some(name)) if !folder.recipe(&name).exists() => Some(format!(
                "{}:1:1: there is no recipe {name}; name one of: {}, or remove the file",
                folder.path().join(ACTIVE).display(),
                folder.names().join(", ")
            )),
            Ok(_) => None,
            // It names the file.
            Err(why) => Some(format!(
                "{why}; name one of: {}, or remove the file",
                folder.names().join(", ")
            )),
        };
        told.extend(active);
        let bad = folder.bad_names();
        told.extend((bad.iter()).map(|path| format!("{}:1:1: {NO_NAME}", path.display())));
        told
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Which recipe is in force; its receivers see each change.
    pub fn in_force(&self) -> &watch::Sender<InForce> {
        &self.in_force
    }

    /// Counts of switches.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// The station's file has these cameras now.
    pub fn set_bases(&self, bases: Vec<CameraConfig>) {
        *self.bases.lock() = Arc::new(bases);
    }

    /// The cameras of the station's file.
    pub fn bases(&self) -> Arc<Vec<CameraConfig>> {
        self.bases.lock().clone()
    }

    /// The name in the file `active`; `None` if the station's own cameras run.
    ///
    /// # Errors
    /// A sentence: the file cannot be read, or holds no name.
    pub fn named_active(&self) -> Result<Option<String>, String> {
        self.folder.active()
    }

    /// Makes this recipe the one that a start of the station begins with.
    ///
    /// # Errors
    /// The file cannot be written. It is then as before.
    pub fn write_active(&self, name: &str) -> io::Result<()> {
        self.folder.write_active(name)
    }

    /// Reads a recipe that is to come into force. Its folder is made, so that the cameras can write there what they learn. They
    /// reach it through a link: see `in_force.rs`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_for_cameras(
        &self,
        name: &str,
        purpose: Purpose,
    ) -> Result<RecipeContent, Vec<Mistake>> {
        // A save in between would add its files to the text before.
        let _alone = self.saving.lock();
        let (id, text) = self.identify(name)?;
        // Mistakes name the folder that people know.
        self.cameras_of(&id, &text, purpose, &self.folder.of_recipe(name))?;
        let link = self.link_for_cameras(&id).map_err(|error| {
            whole(format!(
                "what belongs to the recipe cannot be made ready in {}: {error}; see that the station may write there",
                self.folder().display()
            ))
        })?;
        let cameras = self.cameras_of(&id, &text, purpose, &link)?;
        let number = number_of(&text);
        Ok(RecipeContent {
            id,
            number,
            cameras,
        })
    }

    fn link_for_cameras(&self, id: &RecipeId) -> io::Result<PathBuf> {
        let own = self.folder.of_recipe(&id.name);
        if !own.is_dir() {
            fs::create_dir(own)?;
        }
        let is_in_force = self.in_force.borrow().active.as_ref() == Some(id);
        self.folder.link_for_cameras(id, is_in_force)
    }

    /// The cameras run with this recipe only: files that were kept for others go.
    pub fn release_others(&self, id: &RecipeId) {
        let id = in_force::id_of(id);
        self.release(|other| other != id);
    }

    /// No camera runs with this recipe: files that were kept for it go.
    pub fn release_one(&self, id: &RecipeId) {
        let id = in_force::id_of(id);
        self.release(|other| other == id);
    }

    fn release(&self, is_over: impl Fn(&str) -> bool) {
        let _alone = self.saving.lock();
        if let Err(why) = self.folder.release(is_over) {
            let folder = self.folder().display();
            error!("files of a recipe that is over cannot be removed from {folder}: {why}");
        }
    }

    /// Reads a recipe.
    ///
    /// # Errors
    /// Its mistakes. One at 1:1 if there is no such recipe.
    pub fn read(&self, name: &str, purpose: Purpose) -> Result<RecipeContent, Vec<Mistake>> {
        let (id, text) = self.identify(name)?;
        let cameras = self.cameras_of(&id, &text, purpose, &self.folder.of_recipe(name))?;
        let number = number_of(&text);
        Ok(RecipeContent {
            id,
            number,
            cameras,
        })
    }

    /// The hash and the text of a recipe.
    fn identify(&self, name: &str) -> Result<(RecipeId, String), Vec<Mistake>> {
        if !is_name(name) {
            return Err(whole(NO_NAME.to_owned()));
        }
        let text = self.folder.text(name).map_err(whole)?;
        let hash = self.folder.hash(name, &text);
        let hash = hash.map_err(|error| whole(format!("its files cannot be read: {error}")))?;
        let name = name.to_owned();
        Ok((RecipeId { name, hash }, text))
    }

    /// The cameras under a recipe of this text, with its files in this folder.
    fn cameras_of(
        &self,
        id: &RecipeId,
        text: &str,
        purpose: Purpose,
        files: &Path,
    ) -> Result<Vec<CameraConfig>, Vec<Mistake>> {
        let path = self.folder.recipe(&id.name);
        let file = |file: &str| files.join(file);
        let (mut cameras, _) = read_recipe(text, &path, &file, &self.bases(), purpose)?;
        for camera in &mut cameras {
            camera.recipe = Some(id.clone());
        }
        Ok(cameras)
    }

    /// The recipes of the folder with their mistakes, by name. Files that have not changed are not read again.
    pub fn list(&self) -> Vec<RecipeEntry> {
        let active = self.in_force.borrow().active.clone();
        let names = self.folder.names();
        self.known.lock().retain(|name, _| names.contains(name));
        let listed = names.into_iter().map(|name| {
            let (hash, number, mistakes) = self.known(&name);
            RecipeEntry {
                is_active: active.as_ref().is_some_and(|active| active.name == name),
                name,
                hash,
                number,
                mistakes,
            }
        });
        listed.collect()
    }

    fn known(&self, name: &str) -> (String, Option<u16>, Vec<String>) {
        let (fingerprint, bases) = (self.folder.fingerprint(name), self.bases());
        if let Some(known) = self.known.lock().get(name)
            && known.fingerprint == fingerprint
            && *known.bases == *bases
        {
            return (known.hash.clone(), known.number, known.mistakes.clone());
        }
        let hash = self.hash(name).unwrap_or_default();
        let number = self.number(name);
        let read = self.read(name, Purpose::Run);
        let mistakes = read.err().unwrap_or_default();
        let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        let known = CheckedRecipe {
            fingerprint,
            hash: hash.clone(),
            number,
            bases,
            mistakes: mistakes.clone(),
        };
        self.known.lock().insert(name.to_owned(), known);
        (hash, number, mistakes)
    }

    fn number(&self, name: &str) -> Option<u16> {
        number_of(&self.folder.text(name).ok()?)
    }

    /// The names of the recipes with this number: a PLC can ask for it if there is one.
    pub fn with_number(&self, number: u16) -> Vec<String> {
        let mut names = self.folder.names();
        names.retain(|name| self.number(name) == Some(number));
        names
    }

    /// The hash of a recipe's text and files as they are now.
    ///
    /// # Errors
    /// The name is not valid, or there is no such recipe.
    pub fn hash(&self, name: &str) -> Result<String, String> {
        if !is_name(name) {
            return Err(NO_NAME.to_owned());
        }
        let text = self.folder.text(name)?;
        self.folder
            .hash(name, &text)
            .map_err(|error| error.to_string())
    }

    /// The text of a recipe.
    ///
    /// # Errors
    /// The name is not valid, or there is no such recipe.
    pub fn text(&self, name: &str) -> io::Result<String> {
        if !is_name(name) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, NO_NAME));
        }
        self.folder.text(name).map_err(io::Error::other)
    }

    /// The cameras as if the recipe had this text.
    ///
    /// # Errors
    /// The mistakes of the text, or of the name.
    pub fn check_text(&self, name: &str, text: &str) -> Result<Vec<CameraConfig>, Vec<Mistake>> {
        self.check_with(name, text, &|file| self.folder.of_recipe(name).join(file))
    }

    /// The cameras as if there was a recipe with this text, and with the files of this folder.
    ///
    /// # Errors
    /// The mistakes of the text.
    pub fn check_text_in(
        &self,
        text: &str,
        files: &Path,
    ) -> Result<Vec<CameraConfig>, Vec<Mistake>> {
        let read = read_recipe(
            text,
            files,
            &|file| files.join(file),
            &self.bases(),
            Purpose::Draft,
        );
        read.map(|(cameras, _)| cameras)
    }

    /// The names of the recipes.
    pub fn names(&self) -> Vec<String> {
        self.folder.names()
    }

    /// Whether there is a recipe of that name.
    pub fn exists(&self, name: &str) -> bool {
        is_name(name) && self.folder.recipe(name).exists()
    }

    /// The files that belong to a recipe, in the order of their names.
    pub fn files(&self, name: &str) -> Vec<PathBuf> {
        if !is_name(name) {
            return Vec::new();
        }
        let entries = fs::read_dir(self.folder.of_recipe(name))
            .into_iter()
            .flatten();
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        // Others are no part of a recipe.
        let is_own = |name: &str| is_file_name(name);
        files.retain(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            path.is_file() && name.is_some_and(is_own)
        });
        files.sort();
        files
    }

    /// The cameras as the recipe in force has them, or as the station's file has them.
    pub fn cameras_in_force(&self) -> Vec<CameraConfig> {
        let active = self.in_force.borrow().active.clone();
        match active {
            Some(active) => self
                .read(&active.name, Purpose::Start)
                .map(|read| read.cameras)
                .unwrap_or_default(),
            None => self.bases().to_vec(),
        }
    }

    fn check_with(
        &self,
        name: &str,
        text: &str,
        file: &dyn Fn(&str) -> PathBuf,
    ) -> Result<Vec<CameraConfig>, Vec<Mistake>> {
        if !is_name(name) {
            return Err(whole(NO_NAME.to_owned()));
        }
        let path = self.folder.recipe(name);
        let read = read_recipe(text, &path, file, &self.bases(), Purpose::Draft);
        read.map(|(cameras, _)| cameras)
    }

    /// Switches all cameras to a recipe, or none. `who` is for the list of changes.
    ///
    /// # Errors
    /// A sentence that says why all cameras are as before.
    pub async fn switch(&self, name: &str, who: &str) -> Result<Duration, String> {
        if !is_name(name) {
            return Err(NO_NAME.to_owned());
        }
        let (answer, answered) = oneshot::channel();
        let wanted = Switch {
            name: name.to_owned(),
            who: who.to_owned(),
            answer,
        };
        if self.switches.try_send(wanted).is_err() {
            return Err("Other switches wait; try again in some seconds.".to_owned());
        }
        let ended = "The station stops; nothing was switched.";
        answered.await.unwrap_or_else(|_| Err(ended.to_owned()))
    }

    /// The last changes, the newest first.
    pub fn changes(&self) -> Vec<Change> {
        self.changes.lock().newest()
    }

    /// Writes a change to the disk. A failure is an alarm in the log: the change itself has happened.
    pub fn record(&self, change: Change) {
        if let Err(why) = self.changes.lock().add(change) {
            let folder = self.folder.path().display();
            error!(
                "the change of a recipe cannot be noted in {folder}: {why}; see that the disk has room and that the station may \
                 write there"
            );
        }
    }
}

/// A mistake of the recipe as a whole.
fn whole(text: String) -> Vec<Mistake> {
    vec![Mistake {
        line: 1,
        column: 1,
        text,
    }]
}

impl modbus::Recipes for Recipes {
    fn in_force(&self) -> (bool, Option<u16>) {
        let in_force = self.in_force.borrow();
        (in_force.is_busy, in_force.number)
    }

    fn with_number(&self, number: u16) -> Vec<String> {
        self.with_number(number)
    }

    fn switch<'a>(&'a self, name: &'a str) -> SwitchResult<'a> {
        Box::pin(async { self.switch(name, "modbus").await.map(|_| ()) })
    }
}
