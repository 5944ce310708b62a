//! Setting up a camera by looking: drafts of recipes, which touch nothing that runs until they are saved.

mod choices;
mod draft;
mod feed;
mod focus;
mod frames;
mod live;
mod save;
mod settings;
mod teach;
mod tries;

use std::{
    collections::hash_map::RandomState,
    fs,
    hash::BuildHasher,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use choices::{Choice, Choices};
pub use draft::{Draft, Mistaken};
pub use frames::KeptFrame;
pub use live::Live;
pub use save::SaveRefused;
pub use settings::Settings;
pub use teach::What;

use serde_json::{Value, json};

use crate::{recipes::Recipes, state::Cameras};

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
        }
    }

    /// Ends the drafts that nobody asks about.
    pub fn forget_old(&self) {
        drop(self.drafts());
    }

    fn drafts(&self) -> MutexGuard<'_, Vec<Arc<Draft>>> {
        let mut drafts = self.drafts.lock().unwrap_or_else(PoisonError::into_inner);
        drafts.retain(|draft| draft.idle() < FORGOTTEN);
        drafts
    }

    /// Begins a draft: of a camera that runs, or of a new one.
    ///
    /// # Errors
    /// A sentence: too many drafts, no such camera, or the folder of recipes refuses files.
    pub fn begin(&self, camera: Option<&str>) -> Result<Arc<Draft>, String> {
        if self.drafts().len() >= DRAFTS {
            return Err(format!("{DRAFTS} set-ups are open; end one of them"));
        }
        // Nobody can guess another one's draft.
        let number = || RandomState::new().hash_one(0_u8);
        let id = format!("{:016x}{:016x}", number(), number());
        let folder = self.recipes.folder().join(format!("{FOLDER}{id}"));
        let draft = Draft::begin(&id, folder, camera, self)?;
        self.drafts().push(draft.clone());
        Ok(draft)
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
    pub(crate) fn camera(&self, name: &str) -> Option<Arc<crate::state::Camera>> {
        let cameras = self.cameras.borrow();
        cameras.iter().find(|camera| camera.name == name).cloned()
    }
}
