//! The cameras that a person can choose from: the station's own, those that answer, and folders of pictures.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use config::recipes::Recipes;
use machine::locks::Mutex;
use plan::Source;
use run::{found, state::Cameras};
use serde::Serialize;

/// A list older than this is made again when somebody asks.
const FRESH: Duration = Duration::from_secs(5);

/// A camera that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// Names it in a request.
    pub id: String,
    /// `running`, `genicam`, `v4l2` or `folder`.
    pub kind: &'static str,
    /// For people.
    pub label: String,
    /// More about it: the address, the device, the number of pictures.
    pub detail: String,
    /// The station's camera that uses it.
    pub camera: Option<String>,
    /// The key of `[[camera]]` and its value; `None` for the station's own cameras, whose tables have it.
    #[serde(skip)]
    pub key: Option<(&'static str, String)>,
}

/// A camera that the station runs.
pub fn running(name: &str) -> Choice {
    Choice {
        id: format!("running-{name}"),
        kind: "running",
        label: name.to_owned(),
        detail: "a camera of this station; its inspection goes on".to_owned(),
        camera: Some(name.to_owned()),
        key: None,
    }
}

/// Finds cameras.
pub struct Choices {
    frames: Option<PathBuf>,
    cameras: Cameras,
    recipes: Arc<Recipes>,
    last: Mutex<Option<(Instant, Vec<Choice>)>>,
}

impl Choices {
    /// `frames` is the folder whose folders of pictures are offered.
    pub fn new(frames: Option<PathBuf>, cameras: Cameras, recipes: Arc<Recipes>) -> Self {
        Self {
            frames,
            cameras,
            recipes,
            last: Mutex::default(),
        }
    }

    /// The folder whose folders of pictures are offered.
    pub fn frames(&self) -> Option<&PathBuf> {
        self.frames.as_ref()
    }

    /// What can be chosen now. Takes up to some seconds: cameras in the network are asked.
    pub fn list(&self) -> Vec<Choice> {
        let mut last = self.last.lock();
        if let Some((when, list)) = &*last
            && when.elapsed() < FRESH
        {
            return list.clone();
        }
        let list = self.find();
        *last = Some((Instant::now(), list.clone()));
        list
    }

    /// A choice by its identifier: of the last list, or of a new one.
    pub fn by_id(&self, id: &str) -> Option<Choice> {
        let find = |list: &[Choice]| list.iter().find(|choice| choice.id == id).cloned();
        let known = {
            let last = self.last.lock();
            last.as_ref().and_then(|(_, list)| find(list))
        };
        known.or_else(|| find(&self.list()))
    }

    fn find(&self) -> Vec<Choice> {
        let mut list = Vec::new();
        let cameras = self.cameras.borrow().clone();
        list.extend(cameras.iter().map(|camera| running(&camera.name)));
        let configs = self.recipes.cameras_in_force();
        // Without libaravis, or without the right to ask, there are no network cameras.
        for found in found::genicam().unwrap_or_default() {
            let user = configs.iter().find(|config| match &config.source {
                Source::Aravis { camera, .. } => {
                    *camera == found.source || found.detail.ends_with(camera.as_str())
                }
                Source::Description(_) => false,
            });
            list.push(Choice {
                id: found.id,
                kind: "genicam",
                label: found.label,
                detail: found.detail,
                camera: user.map(|config| config.name.clone()),
                key: Some(("aravis", found.source)),
            });
        }
        let local = found::v4l2().into_iter().map(|found| ("v4l2", found));
        // A folder that cannot be read has nothing to offer.
        let folders = self
            .frames
            .as_ref()
            .and_then(|root| found::folders(root).ok());
        let folders = folders.into_iter().flatten().map(|found| ("folder", found));
        for (kind, found) in local.chain(folders) {
            // A folder may have many readers, a device has one.
            let is_used = |source: &Source| match source {
                Source::Description(text) => {
                    kind == "v4l2" && names_device(text, &found.detail, &found.source)
                }
                Source::Aravis { .. } => false,
            };
            let user = configs.iter().find(|config| is_used(&config.source));
            list.push(Choice {
                id: found.id,
                kind,
                label: found.label,
                detail: found.detail,
                camera: user.map(|config| config.name.clone()),
                key: Some(("source", found.source)),
            });
        }
        list
    }
}

/// Whether a description opens the device `path`, under this name or the lasting one that `source` has.
fn names_device(description: &str, path: &str, source: &str) -> bool {
    let lasting = source.split("device=").nth(1).unwrap_or(path);
    let words = description.split(|of: char| of.is_whitespace() || "=\"'!".contains(of));
    words
        .into_iter()
        .any(|word| word == path || word == lasting)
}

#[cfg(test)]
mod tests {
    use super::names_device;

    #[test]
    fn a_device_in_use_is_known_by_both_of_its_names() {
        let source = "v4l2src device=/dev/v4l/by-id/cam-1";
        for (description, is_it) in [
            ("v4l2src device=/dev/video1 ! videoconvert", true),
            ("v4l2src device=\"/dev/v4l/by-id/cam-1\"!videoconvert", true),
            ("v4l2src device=/dev/video10", false),
            ("videotestsrc", false),
        ] {
            assert_eq!(
                names_device(description, "/dev/video1", source),
                is_it,
                "{description}"
            );
        }
    }
}
