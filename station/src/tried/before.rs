//! The table that a run compares with: a file in the folder of the frames.

use std::{collections::BTreeMap, fs, io, path::Path};

use anyhow::Context;
use clinspect_results::report::RecipeId;
use run::{
    recorded::Label,
    trial::{Row, Table},
};
use serde::{Deserialize, Serialize};

const FILE: &str = ".clinspect-try.json";
/// While it is written.
const PART: &str = ".clinspect-try.json.part";

/// What the frames were judged as.
#[derive(Default, Serialize, Deserialize)]
pub struct EarlierVerdicts {
    /// Name and hash of the recipe.
    recipe: String,
    /// By camera and name of the frame.
    cameras: BTreeMap<String, BTreeMap<String, EarlierVerdict>>,
    #[serde(skip)]
    is_changed: bool,
}

/// What a frame was judged as.
#[derive(Serialize, Deserialize)]
struct EarlierVerdict {
    verdict: String,
    #[serde(default)]
    missed: u32,
}

impl EarlierVerdicts {
    /// The table of the folder; empty if there is none.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        let json = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            json => json.with_context(|| format!("{} cannot be read", path.display()))?,
        };
        serde_json::from_slice(&json).with_context(|| {
            let path = path.display();
            format!("{path} is no table of an earlier run; remove it to begin anew")
        })
    }

    fn was(&self, camera: &str, frame: &str) -> Option<&EarlierVerdict> {
        self.cameras.get(camera)?.get(frame)
    }

    /// The verdict before.
    pub fn verdict(&self, camera: &str, frame: &str) -> Option<&str> {
        Some(&self.was(camera, frame)?.verdict)
    }

    /// Whether a frame is judged wrong, and was judged right or less wrong before.
    pub fn is_news(&self, camera: &str, row: &Row) -> bool {
        let was = self.was(camera, &row.name);
        let was = was.map_or(0, |was| error(row.label, &was.verdict, was.missed));
        error(row.label, row.verdict, row.missed) > was
    }

    /// Keeps a camera's table if there is none yet, or if people accept it.
    pub fn take(&mut self, camera: &str, table: &Table, is_accepted: bool) {
        if !is_accepted && self.cameras.contains_key(camera) {
            return;
        }
        let frames = table.rows.iter().map(|row| {
            let was = EarlierVerdict {
                verdict: row.verdict.to_owned(),
                missed: row.missed,
            };
            (row.name.clone(), was)
        });
        self.cameras.insert(camera.to_owned(), frames.collect());
        self.is_changed = true;
    }

    /// Writes the table, if it has changed.
    pub fn write(&mut self, folder: &Path, recipe: &RecipeId) -> io::Result<()> {
        if !self.is_changed {
            return Ok(());
        }
        self.recipe = format!("{} {}", recipe.name, recipe.hash);
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        let part = folder.join(PART);
        fs::write(&part, json)?;
        fs::rename(part, folder.join(FILE))
    }
}

/// How wrong a verdict is; 0 is right.
fn error(label: Label, verdict: &str, missed: u32) -> u32 {
    match (label, verdict) {
        (Label::Good, "pass") => 0,
        (Label::Good, _) => 1,
        (Label::Failed, "fail") => missed,
        (Label::Failed, _) => u32::MAX,
    }
}
