//! Elements that learn from all good frames together, in a thread of their own: what a frame demands depends on what the
//! others have shown.

use std::{path::Path, sync::Arc};

use gst::{prelude::*, subclass::prelude::*};

use super::{
    Comparing, InspectorStream,
    learn::{DemandSettings, Judge},
};
use crate::elements::base_filter::ClBaseFilter;
use clinspect_core::{ClError, ignored::Ignored, learning::Good};
use clinspect_operators::{Inspection, Subject};

/// Writes a file.
pub type Writer = Box<dyn FnOnce(&Path) -> Result<(), String> + Send>;

/// A good frame.
pub struct GoodFrame<'a, S> {
    /// The number of the frame.
    pub number: u64,
    /// The frame.
    pub subject: Subject<'a>,
    /// How frames are compared and judged. Frames of other settings do not count together.
    pub under: DemandSettings<S>,
    /// Number of frames that are wanted.
    pub wanted: usize,
    /// The ignored pixels of the frame, if its regions follow a part.
    pub ignored: Option<&'a Arc<Ignored>>,
}

/// What was learned from all good frames together.
pub struct Lesson {
    /// What the frames demand.
    pub good: Vec<Good>,
    /// Compares with what was learned, and has compared one of the frames.
    pub operator: Box<dyn Inspection + Send>,
}

/// Learns from all good frames together. `S`: what an operator `O` is built from.
pub trait Together<S, O> {
    /// How many frames it learns from if so many are wanted; warns if these are others.
    fn possible_frames(&self, element: &ClBaseFilter, wanted: usize) -> usize;

    /// Forgets all frames, and what is being learned.
    fn begin_again(&mut self);

    /// Keeps a good frame, and begins to learn with the last one; none while it learns.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn gather(&mut self, operator: &mut O, frame: GoodFrame<S>) -> Result<(), ClError>;

    /// Number of frames.
    fn gathered(&self) -> usize;

    /// Forgets a frame, and learns from the others if it has learned. Returns whether it was there.
    fn forget(&mut self, frame_number: u64) -> bool;

    /// What was learned, once, as soon as it is; `waits`: waits for it. `under`: the settings now; nothing is learned from
    /// frames that were gathered under others.
    ///
    /// # Errors
    /// [`ClError::Refused`] if nothing can be learned from the frames; a failing OpenCL call.
    fn lesson(
        &mut self,
        under: &dyn Fn() -> DemandSettings<S>,
        waits: bool,
    ) -> Result<Option<Lesson>, ClError>;

    /// Reads what was learned for these settings, and returns the values of the limits; `None` if there is no file yet.
    ///
    /// # Errors
    /// A sentence that names the file.
    fn read(&mut self, path: &Path, settings: &S) -> Result<Option<Vec<f64>>, String>;

    /// Writes what was learned for these settings, with these values of the limits.
    fn writer(&self, settings: &S, limits: Vec<f64>) -> Writer;
}

impl<C: Comparing> InspectorStream<C> {
    /// Number of the frames that were gathered and have told no demands.
    pub(super) fn gathered(&mut self) -> usize {
        let learning = self.limits.as_ref();
        let counted = learning.map_or(0, |learning| learning.learner().good().len());
        let gathered = self
            .own
            .together()
            .map_or(0, |together| together.gathered());
        gathered.saturating_sub(counted)
    }

    /// Takes what was learned from all good frames together. `waits`: until it is learned.
    pub(super) fn take_lesson(&mut self, waits: bool) -> Result<(), ClError> {
        let listing = self.listing_of_frames();
        let Some(together) = self.own.together() else {
            return Ok(());
        };
        let (Some(in_force), Some(classifier)) = (self.live.get(), self.classifier.get()) else {
            return Ok(());
        };
        let judge = Judge {
            rules: &self.reporting.rules,
            classifier: &classifier.operator,
            listing: &listing,
        };
        let under = || judge.under::<C>(&in_force.settings);
        match together.lesson(&under, waits) {
            Ok(None) => Ok(()),
            Ok(Some(Lesson { good, mut operator })) => {
                let learn = &self.reporting.learn;
                let limits = operator.limits();
                let learning = self.limits.as_mut();
                match learning.and_then(|learning| learning.replace(&good, learn, &limits)) {
                    Some(learned) => self.apply(&learned, Some(&mut *operator)),
                    None => Ok(()),
                }
            }
            Err(ClError::Refused(why)) => {
                self.limits = None;
                self.warn_unlearned(&why);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Warns that nothing was learned from good frames.
    pub(super) fn warn_unlearned(&self, why: &str) {
        let element = self.element.obj();
        let element: &ClBaseFilter = element.upcast_ref();
        gst::element_warning!(
            element,
            gst::StreamError::Format,
            ("nothing was learned from the good frames: {why}"),
            ["the limits are those of before; the signal learn begins again"]
        );
    }
}
