//! The template of the elements that mark defects in a mask: list, verdict, counts, metas,
//! messages, events, and the forms in which masks are sent.

mod blind;
mod caps;
mod classify;
pub mod colour;
pub mod contrast;
mod follow;
mod ignore;
mod learn;
mod masks;
pub mod pattern;
mod properties;
pub mod repeats;
mod rois;
mod saved;
mod stream;
mod together;

use std::sync::{Arc, LazyLock, Mutex};

use gst::{prelude::*, subclass::prelude::*};

use super::{
    base_filter::{
        ClBaseFilter, ClBaseFilterImpl, InForce, Learning, Live, Negotiated, Target, View, put_back,
    },
    lock, pad_templates,
    property_table::PropertyTable,
};
pub use blind::why_unseen;
use classify::Classifier;
use clinspect_core::{ClError, learning::Contrasts};
use clinspect_opencl::Meter;
use clinspect_operators::{Inspection, Limit, Subject};
pub use follow::{Regions, RoiSettings, judged_pixels, roi_rows};
pub use ignore::Ignore;
use learn::Requests;
pub use learn::{DemandSettings, TrainingFrame, signals as learn_signals};
use properties::ReportSettings;
pub use properties::{MaskedOutput, Output, OutputChoice, PitchThresholdOutput, ReferenceOutput};
pub use rois::{check_regions, regions};
pub use stream::InspectorStream;
pub use together::{GoodFrame, Lesson, Together, Writer};

/// An inspector's work on a frame, for error messages.
pub const TASK: &str = "judging a frame";
/// Counts of frames by verdict, and the good frames that are missing to learn limits.
pub const COUNTS: [&str; 4] = [
    "frames-passed",
    "frames-failed",
    "frames-unjudged",
    MISSING_FRAMES,
];
const MISSING_FRAMES: &str = "learn-frames-missing";

/// What every inspector has besides its own settings.
#[derive(Default)]
pub struct Inspector {
    reporting: Mutex<ReportSettings>,
    ignore: Mutex<Ignore>,
    learning: Requests,
    /// The value of `output`, latched at the start.
    output: Mutex<Option<Output>>,
}

impl Inspector {
    /// Pixels that are not judged.
    pub fn ignore(&self) -> Ignore {
        lock(&self.ignore).clone()
    }

    /// Puts the ignored pixels in force back into the properties, as [`Comparing::restore`] does.
    pub fn restore(&self, refused: &Ignore, in_force: &Ignore) {
        put_back(&mut *lock(&self.ignore), refused, in_force);
    }

    /// The value of `output` since the start; later changes do not count.
    fn output(&self) -> Output {
        let started = *lock(&self.output);
        started.unwrap_or_else(|| lock(&self.reporting).output)
    }

    /// See [`ClBaseFilterImpl::check`](super::base_filter::ClBaseFilterImpl::check).
    ///
    /// # Errors
    /// See there.
    pub fn check(&self) -> Result<(), ClError> {
        let reporting = lock(&self.reporting).clone();
        reporting.check()?;
        Classifier::new(&reporting.rules)?;
        self.ignore().check()
    }

    /// Whether the limits in force are those of a file, if it is there.
    pub fn learns_into_file(&self) -> bool {
        lock(&self.reporting).learn.usable().has_location()
    }

    /// Forgets the latched value of `output`.
    pub fn close(&self) {
        *lock(&self.output) = None;
    }

    /// See [`ClBaseFilterImpl::other_caps`](super::base_filter::ClBaseFilterImpl::other_caps).
    pub fn other_caps(&self, direction: gst::PadDirection, caps: &gst::Caps) -> gst::Caps {
        match self.output() {
            Output::Mask => caps::transform(direction, caps),
            Output::Frame => caps.clone(),
            Output::Picture(_) => caps::transform_to_picture(direction, caps),
        }
    }
}

/// The table with the properties that every inspector has.
pub fn with_properties<T: InspectorImpl>(table: PropertyTable<T>) -> PropertyTable<T> {
    table
        .with(
            |this| &this.inspector().reporting,
            properties::rows::<T::Output>(),
        )
        .with(|this| &this.inspector().ignore, ignore::rows())
}

/// Pad templates of an inspector.
pub fn templates() -> &'static [gst::PadTemplate] {
    static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> =
        LazyLock::new(|| pad_templates(&caps::sink_template(), &caps::src_template()));
    TEMPLATES.as_ref()
}

/// An element that marks the defects of frames in masks. Its `MODE` is `Both`, and its stream an
/// [`InspectorStream`].
pub trait InspectorImpl:
    ClBaseFilterImpl + ObjectSubclass<Type: IsA<ClBaseFilter> + IsA<gst::Element>>
{
    /// Name of the message with the results.
    const MESSAGE: &'static str;
    /// Number of good frames from which limits are learned, unless the user sets it.
    const LEARN_FRAMES: u32 = 24;
    /// What to check if no limit sees a defect.
    const CHECK: &'static str;
    /// The values of `output`.
    type Output: OutputChoice + 'static;

    /// The part that all inspectors have.
    fn inspector(&self) -> &Inspector;

    /// Sets the properties of learned limits, which have the order of [`Inspection::limits`], and notifies listeners.
    fn set_limits(&self, limits: &[(Limit, f64)]);
}

/// The element's own part of a running inspector: from what the operator is built, and what the element
/// learns from frames.
pub trait Comparing: Sized + Send + 'static {
    /// The element.
    type Element: InspectorImpl;
    /// What an operator is built from, and nothing else: each change builds another operator.
    type Settings: Clone + PartialEq + Send + Sync + 'static;
    /// Marks defects on the device.
    type Operator: Inspection + Send + 'static;

    /// The settings as they are now. Asked for only when the element's revision
    /// ([`ClBaseFilterExt::revise`](crate::elements::base_filter::ClBaseFilterExt::revise)) has changed, so the element revises what it has learned.
    fn settings(&self, element: &Self::Element) -> Self::Settings;

    /// Puts the settings in force back into the properties, unless these changed after the refused
    /// settings were read; see [`put_back`](crate::elements::base_filter::put_back).
    fn restore(element: &Self::Element, refused: &Self::Settings, in_force: &Self::Settings);

    /// Builds an operator, possibly on another thread while frames flow.
    ///
    /// # Errors
    /// [`ClError::Refused`] for settings that do not fit the frames or each other; a failing call.
    fn build(target: &Target, settings: &Self::Settings) -> Result<Self::Operator, ClError>;

    /// Caps were negotiated; an operator is built next.
    fn negotiate(&mut self, element: &Self::Element, caps: &Negotiated);

    /// Whether the element learns from frames.
    fn learning(&self, _in_force: &InForce<Self::Settings, Self::Operator>) -> Learning {
        Learning::Off
    }

    /// Learns from rows: from each frame, or from many rows of a web at a time.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn learn(
        &mut self,
        element: &Self::Element,
        live: &mut Live<Self::Settings, Self::Operator>,
        view: &View,
    ) -> Result<(), ClError>;

    /// The pixels that are judged, if regions of interest may follow a part that an element ahead finds.
    fn regions(_settings: &Self::Settings) -> Option<Regions<'_>> {
        None
    }

    /// Nothing is learned from the next frame.
    fn leave_out(&mut self) {}

    /// Prepares the operator for a frame, just before it is marked.
    fn prepare(
        &mut self,
        element: &Self::Element,
        in_force: &mut InForce<Self::Settings, Self::Operator>,
    );

    /// Of a frame that trains the element and is not judged: frames of the training so far, and all of them.
    fn training(&self) -> Option<[u32; 2]> {
        None
    }

    /// Keeps a frame that trains the element, because limits are being learned; at most `most` frames of a training.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn keep(
        &mut self,
        _operator: &mut Self::Operator,
        _frame_number: u64,
        _subject: Subject,
        _most: usize,
    ) -> Result<(), ClError> {
        Ok(())
    }

    /// After a training: number of the kept frames that were not judged yet.
    fn kept(&self) -> usize {
        0
    }

    /// After a training: forgets the kept frames.
    fn forget_kept(&mut self) {}

    /// After a training: the next of the frames that were kept, each of them once.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn next_kept(
        &mut self,
        _operator: &Self::Operator,
        _meter: &Arc<Meter>,
    ) -> Result<Option<TrainingFrame<Self::Operator>>, ClError> {
        Ok(None)
    }

    /// How the element learns from all good frames together; `None`: each frame's demands count by themselves.
    fn together(&mut self) -> Option<&mut dyn Together<Self::Settings, Self::Operator>> {
        None
    }

    /// The stream has ended.
    fn end(&mut self, _element: &Self::Element) {}

    /// Whether nothing is judged before limits are learned: they are then learned from the first frames.
    fn lacks_limits(_in_force: &InForce<Self::Settings, Self::Operator>) -> bool {
        false
    }

    /// The settings on which [`Inspection::demands`] depend: all but the limits that are learned.
    fn counted_under(settings: &Self::Settings) -> Self::Settings;

    /// The contrasts of the pattern in a frame from which limits are learned, if the contrast is learned.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn contrasts(
        _in_force: &mut InForce<Self::Settings, Self::Operator>,
        _subject: Subject,
    ) -> Result<Contrasts, ClError> {
        Ok(Contrasts::default())
    }

    /// Takes the least contrasts of the good frames, which are learned with the limits. 0 for none.
    fn set_contrasts(
        &mut self,
        _element: &Self::Element,
        _in_force: &mut InForce<Self::Settings, Self::Operator>,
        _contrasts: Contrasts,
    ) {
    }

    /// Names of the channels, if a defect's level is one; see [`DefectResult::channels`](clinspect_results::DefectResult::channels).
    fn channels(in_force: &InForce<Self::Settings, Self::Operator>) -> Vec<String>;

    /// The threshold in force, grey levels; 0 where components or channels have thresholds of their own.
    fn threshold(in_force: &InForce<Self::Settings, Self::Operator>) -> f64;

    /// Grey levels of a picture per grey level of difference.
    fn difference_gain(settings: &Self::Settings) -> f64;

    /// Other settings in force, for messages: "property=value ...".
    fn in_words(in_force: &InForce<Self::Settings, Self::Operator>) -> String;
}
