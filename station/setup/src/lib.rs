//! Setting up a camera by looking: drafts of recipes, which touch nothing that runs until they are saved.

pub mod advice;
mod choices;
mod draft;
mod feed;
mod focus;
mod frames;
mod live;
mod save;
mod settings;
mod suspects;
mod teach;
mod tries;
mod words;

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, MutexGuard},
    time::Duration,
};

pub use choices::{Choice, Choices};
pub use draft::{Draft, SettingMistake};
pub use frames::KeptFrame;
pub use live::Live;
pub use save::{SaveRefused, changed_lines};
pub use settings::Settings;
pub use teach::TeachTarget;

use config::recipes::Recipes;
use machine::locks::Mutex;
use ring::rand::{self, SystemRandom};
use run::state::Cameras;
use serde_json::{Value, json};

/// Drafts at once.
const DRAFTS: usize = 4;
/// A draft that nobody asks about for this long ends.
const FORGOTTEN: Duration = Duration::from_secs(30 * 60);
/// Beginning of the names of drafts' folders.
const FOLDER: &str = ".draft-";

/// The drafts of a station.
pub struct Setup {
    /// The recipes.
    pub recipes: Arc<Recipes>,
    /// Cameras to choose from.
    pub choices: Choices,
    /// The station's file.
    pub(crate) file: PathBuf,
    cameras: Cameras,
    drafts: Mutex<Vec<Arc<Draft>>>,
    beginning: Mutex<()>,
}

impl Setup {
    /// No drafts yet. Folders of drafts that a crash left are removed.
    pub fn new(
        file: PathBuf,
        frames: Option<PathBuf>,
        recipes: Arc<Recipes>,
        cameras: Cameras,
    ) -> Self {
        for entry in fs::read_dir(recipes.folder())
            .into_iter()
            .flatten()
            .flatten()
        {
            if entry.file_name().to_string_lossy().starts_with(FOLDER) {
                // What cannot be removed takes a little room.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        Self {
            choices: Choices::new(frames, cameras.clone(), recipes.clone()),
            file,
            recipes,
            cameras,
            drafts: Mutex::default(),
            beginning: Mutex::default(),
        }
    }

    /// Ends the drafts that nobody asks about.
    pub fn forget_old(&self) {
        drop(self.drafts());
    }

    fn drafts(&self) -> MutexGuard<'_, Vec<Arc<Draft>>> {
        let mut drafts = self.drafts.lock();
        drafts.retain(|draft| draft.idle() < FORGOTTEN);
        drafts
    }

    /// Begins a draft: of a camera that runs, or of a new one.
    ///
    /// # Errors
    /// A sentence: too many drafts, no such camera, or the folder of recipes refuses files.
    pub fn begin(&self, camera: Option<&str>) -> Result<Arc<Draft>, String> {
        // Only one at a time, so that there are never more.
        let _alone = self.beginning.lock();
        self.make_room()?;
        // Nobody can guess another one's draft.
        let id = rand::generate::<[u8; 16]>(&SystemRandom::new());
        let id = id.map_err(|_| "the PC has no random numbers; begin again".to_owned())?;
        let id = format!("{:032x}", u128::from_ne_bytes(id.expose()));
        let folder = self.recipes.folder().join(format!("{FOLDER}{id}"));
        let draft = Draft::begin(&id, folder, camera, self)?;
        self.drafts().push(draft.clone());
        Ok(draft)
    }

    /// Ends a draft in which nothing would be lost, if there are as many as there may be: the one that nobody has asked
    /// about for the longest time.
    ///
    /// # Errors
    /// A sentence, if all have something unsaved.
    fn make_room(&self) -> Result<(), String> {
        let mut drafts = self.drafts();
        if drafts.len() < DRAFTS {
            return Ok(());
        }
        let lossless = drafts
            .iter()
            .enumerate()
            .filter(|(_, draft)| !draft.shared.state().is_unsaved());
        let idlest = lossless
            .max_by_key(|(_, draft)| draft.idle())
            .map(|(at, _)| at);
        let full =
            || format!("{DRAFTS} set-ups with unsaved changes are open; save or end one of them");
        drop(drafts.remove(idlest.ok_or_else(full)?));
        Ok(())
    }

    /// A draft by its identifier, if there is one. It is asked about now, so it is not forgotten.
    pub fn draft(&self, id: &str) -> Option<Arc<Draft>> {
        let drafts = self.drafts();
        let draft = drafts.iter().find(|draft| draft.id == id)?;
        draft.touch();
        Some(draft.clone())
    }

    /// The drafts with something unsaved, for somebody who wants to go on with one.
    pub fn list(&self) -> Vec<Value> {
        let drafts = self.drafts().clone();
        let brief = |draft: &Arc<Draft>| {
            let state = draft.shared.state();
            state.is_unsaved().then(|| {
                json!({
                    "id": draft.id,
                    "name": state.name,
                    "is_running_camera": state.running.is_some(),
                    "frames": state.frames.list().len(),
                    "idle_s": draft.idle().as_secs(),
                })
            })
        };
        drafts.iter().filter_map(brief).collect()
    }

    /// Ends a draft.
    pub fn end(&self, id: &str) {
        self.drafts().retain(|draft| draft.id != id);
    }

    /// A camera that runs.
    pub(crate) fn camera(&self, name: &str) -> Option<Arc<run::state::Camera>> {
        let cameras = self.cameras.borrow();
        cameras.iter().find(|camera| camera.name == name).cloned()
    }
}
