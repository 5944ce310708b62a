//! Other elements behind a source that goes on: frames before are judged by the old ones, frames after by the new ones, and
//! none by a mixture.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed, mpsc},
    time::Duration,
};

use gst::prelude::*;
use plan::CameraConfig;

use super::{Inspection, LearnedProperty, Outlets, Pipeline, accepted, set_learned};
use crate::{
    state::{Camera, Trouble},
    stopped::StopReason,
};

/// Longest wait until the frame that is being judged is done, and until those that wait in the elements are.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

impl Pipeline {
    /// Whether the source can go on when the settings `new` replace `old`: it would also have begun with this format.
    pub fn can_swap(&self, old: &CameraConfig, new: &CameraConfig) -> bool {
        let is_same_source = old.source == new.source
            && old.triggered == new.triggered
            && old.released_by() == new.released_by()
            && old.unpack.get("packing") == new.unpack.get("packing");
        is_same_source && self.watched.has_results() && self.is_same_format(old, new)
    }

    fn is_same_format(&self, old: &CameraConfig, new: &CameraConfig) -> bool {
        let (Ok(old), Ok(new)) = (accepted(old), accepted(new)) else {
            return false;
        };
        // What clunpack makes is another format than those of the source.
        let source = self.source.static_pad("src");
        let source = source.filter(|_| old != new && self.unpack.is_none());
        source.map_or(old == new, |source| {
            let fits = source
                .current_caps()
                .is_some_and(|caps| caps.can_intersect(&new));
            fits && begins_alike(&source.query_caps(None), &old, &new)
        })
    }

    /// Makes the elements for [`Self::swap`] and starts them up to `PAUSED`, while the old ones judge: opening the device and
    /// compiling takes most of the time. `learned` was learned under this recipe, with the settings at that time.
    ///
    /// # Errors
    /// The new elements cannot start. The old ones go on.
    pub(crate) fn prepare(
        &self,
        new: &CameraConfig,
        learned: &[(&LearnedProperty, &CameraConfig)],
    ) -> Result<Inspection, StopReason> {
        let next = Inspection::make(new, self.unpack.is_some()).map_err(refused)?;
        for (learned, then) in learned {
            set_learned(&next.parts, learned, then, new);
        }
        let added = self.pipeline.add_many(&next.chain).map_err(refused);
        let started = added.and_then(|()| {
            let mut chain = next.chain.iter();
            chain.try_for_each(|element| self.set_state(element, gst::State::Paused))
        });
        if let Err(stopped) = started {
            self.discard(&next);
            return Err(stopped);
        }
        Ok(next)
    }

    /// Removes elements that were prepared and are not used.
    pub(crate) fn discard(&self, next: &Inspection) {
        for element in &next.chain {
            // There is nothing to do if an element does not stop; it has had no frame.
            let _ = element.set_state(gst::State::Null);
            if element.parent().is_some() {
                let _ = self.pipeline.remove(element);
            }
        }
    }

    /// Replaces the elements behind the source by prepared ones. Results of the new ones are watched anew.
    ///
    /// # Errors
    /// The old elements do not finish their frames, or the new ones cannot go on. The pipeline must then end.
    pub(crate) fn swap(
        &mut self,
        next: Inspection,
        new: &CameraConfig,
        camera: &Arc<Camera>,
        outlets: &Outlets,
    ) -> Result<(), StopReason> {
        let pad = self.queue.static_pad("src");
        let pad = pad.ok_or_else(|| self.stuck("the queue has no output"))?;
        let (blocked, is_blocked) = mpsc::channel();
        // Idle: a camera without a trigger sends nothing that could be blocked.
        let kinds = gst::PadProbeType::IDLE | gst::PadProbeType::BLOCK_DOWNSTREAM;
        let block = pad.add_probe(kinds, move |_, _| {
            // Only the first one is received.
            let _ = blocked.send(());
            gst::PadProbeReturn::Ok
        });
        let replaced = match is_blocked.recv_timeout(DRAIN_LIMIT) {
            Ok(()) => self.replace(next, new, camera, outlets),
            Err(_) => Err(self.stuck("a frame is not finished")),
        };
        if let Some(block) = block {
            pad.remove_probe(block);
        }
        let old = replaced?;
        for element in old {
            // There is nothing to do if an element does not stop; it has no frame any more.
            let _ = element.set_state(gst::State::Null);
        }
        Ok(())
    }

    /// Puts the new elements where the old ones are, which are drained first. Returns the old ones.
    fn replace(
        &mut self,
        next: Inspection,
        new: &CameraConfig,
        camera: &Arc<Camera>,
        outlets: &Outlets,
    ) -> Result<Vec<gst::Element>, StopReason> {
        self.drain()?;
        let old = std::mem::take(&mut self.chain);
        self.pipeline.remove_many(&old).map_err(refused)?;
        if let Some(first) = next.chain.first() {
            self.source.link(first).map_err(refused)?;
        }
        next.link_to(&self.sink).map_err(refused)?;
        let watched = next.watch(&self.pipeline, camera, outlets, new);
        let watched = watched.map_err(refused)?;
        // The rate goes on.
        let frames = self.watched.frames.load(Relaxed);
        watched.frames.store(frames, Relaxed);
        self.watched = watched;
        self.chain = next.chain;
        self.parts = next.parts;
        self.offers = next.offers;
        self.analyzer = next.analyzer;
        self.unpack = next.unpack;
        self.warned.clear();
        self.learned.clear();
        for element in self.chain.iter().rev() {
            self.set_state(element, gst::State::Playing)?;
        }
        Ok(old)
    }

    /// Waits until the elements have judged every frame that they have. No frame comes meanwhile.
    fn drain(&self) -> Result<(), StopReason> {
        let input = self.chain.first().and_then(|of| of.static_pad("sink"));
        let output = self.analyzer.static_pad("src");
        let Some((input, output)) = input.zip(output) else {
            return Err(self.stuck("an element has no pad"));
        };
        let (ended, is_ended) = mpsc::channel();
        let kind = gst::PadProbeType::EVENT_DOWNSTREAM;
        output.add_probe(kind, move |_, info| match info.event() {
            Some(event) if event.type_() == gst::EventType::Eos => {
                let _ = ended.send(());
                // The sink goes on. With Drop the binding has GStreamer free it a second time.
                gst::PadProbeReturn::Handled
            }
            _ => gst::PadProbeReturn::Ok,
        });
        input.send_event(gst::event::Eos::new());
        is_ended
            .recv_timeout(DRAIN_LIMIT)
            .map_err(|_| self.stuck("the last frames are not finished"))
    }

    fn set_state(&self, element: &gst::Element, state: gst::State) -> Result<(), StopReason> {
        match element.set_state(state) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.error_on_bus().unwrap_or_else(|| {
                let text = format!("{} does not start, and does not say why", element.name());
                (Trouble::SettingsRefused, text)
            })),
        }
    }

    fn stuck(&self, what: &str) -> StopReason {
        let device = self.device().unwrap_or_else(|| "the device".to_owned());
        let seconds = DRAIN_LIMIT.as_secs();
        let text = format!("{device}: {what} within {seconds} s");
        (Trouble::DeviceLost, text)
    }
}

/// Whether a source that offers these formats begins with the same one before an element that takes `old` and before one that
/// takes `new`. The order of either side may decide.
fn begins_alike(offered: &gst::Caps, old: &gst::Caps, new: &gst::Caps) -> bool {
    let first = |one: &gst::Caps, other: &gst::Caps| {
        let mut both = one.intersect_with_mode(other, gst::CapsIntersectMode::First);
        let is_known = !both.is_empty() && !both.is_any();
        is_known.then(|| {
            both.fixate();
            both
        })
    };
    let ways = [
        first(offered, old),
        first(old, offered),
        first(offered, new),
        first(new, offered),
    ];
    let [one, others @ ..] = &ways;
    one.is_some() && others.iter().all(|other| other == one)
}

fn refused(error: gst::glib::BoolError) -> StopReason {
    (Trouble::SettingsRefused, error.message.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_would_begin_with_another_format_is_started_again() {
        let _ = gst::init();
        let raw = |formats: &str| -> gst::Caps {
            let caps = format!("video/x-raw, format={formats}, width=8, height=8");
            caps.parse().expect("caps")
        };
        let (old, new) = (raw("{ GRAY8, RGB, I420 }"), raw("{ GRAY8, I420, RGB }"));
        for (offered, is_alike) in [
            ("GRAY8", true),
            ("{ GRAY8, RGB, I420 }", true),
            ("RGB", true),
            // The elements begin with different ones.
            ("{ RGB, I420 }", false),
            ("{ I420, RGB }", false),
            // The source's order decides differently from the elements'.
            ("{ RGB, GRAY8 }", false),
            ("YUY2", false),
        ] {
            assert_eq!(
                begins_alike(&raw(offered), &old, &new),
                is_alike,
                "{offered}"
            );
        }
    }
}
