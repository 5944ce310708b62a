//! Settings that change while frames flow.

use std::{
    collections::BTreeSet,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use gst::prelude::*;

use super::{
    Pipeline,
    inspection::{FLAT_FIELD, GAUSSIAN, HISTOGRAM, Part},
};
use crate::config::{CameraConfig, Properties, set, value_of};

/// Longest wait for the frames that show whether changed settings are used.
const FRAMES_LIMIT: Duration = Duration::from_secs(1);

static NO_PROPERTIES: &Properties = &Properties::none();

/// What became of changed settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// They are in force, and no frame was left out.
    Live,
    /// An element refuses this property; the settings before are in force.
    Refused(String),
    /// The pipeline must start again.
    NeedsStart,
}

/// A property with another value, in GStreamer's notation; `None` is its default.
struct Change<'a> {
    element: &'a gst::Element,
    name: &'a str,
    old: Option<&'a str>,
    new: Option<&'a str>,
}

impl Change<'_> {
    /// Whether the element uses the new value. An element that cannot use a value goes back to the one before.
    fn is_in_force(&self) -> bool {
        let kept = self.element.property_value(self.name);
        match value_of(self.element, self.name, self.new) {
            Some(value) => GstValueExt::eq(&value, &kept),
            None => true,
        }
    }
}

impl Pipeline {
    /// Sets what changed in the file, if all of it may change while frames flow.
    pub fn change(&self, old: &CameraConfig, new: &CameraConfig) -> Changed {
        let Some(changes) = self.changes(old, new) else {
            return Changed::NeedsStart;
        };
        for change in &changes {
            set(change.element, change.name, change.new);
        }
        self.wait_for_frames(2);
        let Some(refused) = changes.iter().find(|change| !change.is_in_force()) else {
            return Changed::Live;
        };
        for change in &changes {
            set(change.element, change.name, change.old);
        }
        Changed::Refused(refused.name.to_owned())
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
        same.flat_field.clone_from(&old.flat_field);
        same.gaussian.clone_from(&old.gaussian);
        same.histogram.clone_from(&old.histogram);
        same.analysis.clone_from(&old.analysis);
        same.overlay.clone_from(&old.overlay);
        (same.picture_width, same.live_rate) = (old.picture_width, old.live_rate);
        (same.silence, same.start_timeout) = (old.silence, old.start_timeout);
        let has_parts = [FLAT_FIELD, GAUSSIAN, HISTOGRAM];
        let is_same_chain = (has_parts.iter()).all(|of| of(old).is_some() == of(new).is_some());
        if same != *old || !is_same_chain {
            return None;
        }
        let mut changes = Vec::new();
        for Part { element, of } in &self.parts {
            let (old, new) = (
                of(old).unwrap_or(NO_PROPERTIES),
                of(new).unwrap_or(NO_PROPERTIES),
            );
            let names: BTreeSet<&str> = old.names().chain(new.names()).collect();
            for name in names {
                let (old, new) = (old.get(name), new.get(name));
                if old == new {
                    continue;
                }
                let spec = element.find_property(name);
                let is_mutable =
                    spec.is_some_and(|s| s.flags().contains(gst::PARAM_FLAG_MUTABLE_PLAYING));
                if !is_mutable {
                    return None;
                }
                changes.push(Change {
                    element,
                    name,
                    old,
                    new,
                });
            }
        }
        Some(changes)
    }
}
