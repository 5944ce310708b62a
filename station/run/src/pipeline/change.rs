//! Settings that change while frames flow.

use std::{
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use plan::CameraConfig;

use super::{
    Pipeline,
    parts::{Change, changes, is_same_chain},
};
use crate::source::set_controls;

/// Longest wait for the frames that show whether changed settings are used.
const FRAMES_LIMIT: Duration = Duration::from_secs(1);

/// What became of changed settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeResult {
    /// They are in force, and no frame was left out.
    Live,
    /// An element or the camera refuses a setting, for this reason; the settings before are in force.
    Refused(String),
    /// The pipeline must start again.
    NeedsStart,
}

impl Pipeline {
    /// Sets what changed in the file, if all of it may change while frames flow.
    pub fn change(&self, old: &CameraConfig, new: &CameraConfig) -> ChangeResult {
        let Some(changes) = self.changes(old, new) else {
            return ChangeResult::NeedsStart;
        };
        if let Err(why) = set_controls(&new.source, &self.source) {
            return ChangeResult::Refused(why);
        }
        for change in &changes {
            change.apply();
        }
        self.wait_for_frames(2);
        let Some(refused) = changes.iter().find(|change| !change.is_in_force()) else {
            return ChangeResult::Live;
        };
        for change in &changes {
            change.take_back();
        }
        let _ = set_controls(&old.source, &self.source);
        ChangeResult::Refused(format!("the new {} is refused", refused.name()))
    }

    /// Waits until so many more frames have results, for at most [`FRAMES_LIMIT`].
    fn wait_for_frames(&self, count: u64) {
        let frames = || self.watched.frames.load(Relaxed);
        let wanted = frames() + count;
        let until = Instant::now() + FRAMES_LIMIT;
        while frames() < wanted && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The properties that changed; `None` if the pipeline must start again.
    fn changes<'a>(
        &'a self,
        old: &'a CameraConfig,
        new: &'a CameraConfig,
    ) -> Option<Vec<Change<'a>>> {
        // Everything but the properties of the elements must be as before.
        let mut same = new.clone();
        // Without the element its properties have no effect, unless they now ask for it.
        if self.unpack.is_some() || new.unpack.get("packing") == old.unpack.get("packing") {
            same.unpack.clone_from(&old.unpack);
        }
        if new.source.is_same_but_for_controls(&old.source) {
            same.source.clone_from(&old.source);
        }
        same.flat_field.clone_from(&old.flat_field);
        same.gaussian.clone_from(&old.gaussian);
        same.histogram.clone_from(&old.histogram);
        same.analysis.clone_from(&old.analysis);
        same.overlay.clone_from(&old.overlay);
        (same.picture_width, same.live_rate) = (old.picture_width, old.live_rate);
        same.machine = old.machine;
        same.output.clone_from(&old.output);
        same.input.clone_from(&old.input);
        (same.silence, same.start_timeout) = (old.silence, old.start_timeout);
        // The camera changes its trigger at a start only.
        let is_same_trigger = old.released_by() == new.released_by();
        same.trigger_source.clone_from(&old.trigger_source);
        if same != *old || !is_same_trigger || !is_same_chain(old, new) {
            return None;
        }
        changes(&self.parts, old, new)
    }
}
