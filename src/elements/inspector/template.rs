//! What an element that marks defects implements.

use std::{ops::DerefMut, sync::Arc};

use gst::{prelude::*, subclass::prelude::*};

use super::{Inspector, OutputChoice};
use crate::elements::base_filter::{
    ClBaseFilter, ClBaseFilterImpl, InForce, Learning, Live, Negotiated, Target, View,
};
use clinspect_core::ClError;
use clinspect_opencl::{Meter, frame::ClFrame};
use clinspect_operators::{Inspection, Limit, Subject};

/// An element that marks the defects of frames in masks. Its `MODE` is `Both`, and its stream an
/// [`InspectorStream`](super::InspectorStream).
pub trait InspectorImpl:
    ClBaseFilterImpl + ObjectSubclass<Type: IsA<ClBaseFilter> + IsA<gst::Element>>
{
    /// Name of the message with the results.
    const MESSAGE: &'static str;
    /// The values of `output`.
    type Output: OutputChoice + 'static;

    /// The part that all inspectors have.
    fn inspector(&self) -> &Inspector;

    /// Sets the properties of learned limits, which have the order of [`Inspection::limits`], and notifies listeners.
    fn set_limits(&self, limits: &[(Limit, f64)]);
}

/// A frame that trained the element, and an operator for what the other frames trained.
pub struct Kept<O> {
    /// The number of the frame.
    pub frame_number: u64,
    /// The frame as it was read for the training.
    pub frame: ClFrame,
    /// Judges the frame.
    pub operator: O,
}

/// The element's own part of a running inspector: from what the operator is built, and what the element
/// learns from frames.
pub trait Comparing: Sized + Send + 'static {
    /// The element.
    type Element: InspectorImpl;
    /// What an operator is built from, and nothing else: each change builds another operator.
    type Settings: Clone + PartialEq + Send + Sync + 'static;
    /// Marks defects on the device.
    type Operator: DerefMut<Target: Inspection> + Send + 'static;

    /// The settings as they are now.
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

    /// Nothing is learned from the next frame.
    fn leave_out(&mut self) {}

    /// Prepares the operator for a frame, just before it is marked.
    fn prepare(&mut self, in_force: &mut InForce<Self::Settings, Self::Operator>);

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

    /// After a training: the next of the frames that were kept, each of them once.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn next_kept(
        &mut self,
        _operator: &Self::Operator,
        _meter: &Arc<Meter>,
    ) -> Result<Option<Kept<Self::Operator>>, ClError> {
        Ok(None)
    }

    /// The stream has ended.
    fn end(&mut self, _element: &Self::Element) {}

    /// Whether nothing is judged before limits are learned: they are then learned from the first frames.
    fn lacks_limits(_in_force: &InForce<Self::Settings, Self::Operator>) -> bool {
        false
    }

    /// The settings on which [`Inspection::demands`] depend: all but the limits that are learned.
    fn counted_under(settings: &Self::Settings) -> Self::Settings;

    /// The contrast of the pattern in grey levels of a sample; `None` if it is unknown, or no limit hides a pattern.
    fn contrast(&self, _in_force: &InForce<Self::Settings, Self::Operator>) -> Option<f64> {
        None
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
