//! What an inspector implements.

use std::sync::Arc;

use gst::{prelude::*, subclass::prelude::*};
use gst_base::subclass::prelude::*;

use super::{Inspector, OutputChoice, Picture};
use crate::elements::base_filter::{ClBaseFilter, Frame, Learning, Live, Negotiated, Target, View};
use clinspect_core::{
    ClError,
    components::{Finder, Limits},
    ignored::Bitmap,
    threshold::Reached,
    window::Reach,
};
use clinspect_opencl::frame::ClFrame;
use clinspect_operators::{JudgedPixels, Listed, Marked, MaskTarget};
use clinspect_results::Alignment;

/// The comparison of a frame.
pub struct Basis {
    /// Pixels that could be judged.
    pub judged: JudgedPixels,
    /// Pitches along x and y, px; 0 for none.
    pub pitches: [f64; 2],
    /// Threshold, grey levels.
    pub threshold: f64,
    /// Where the frame was found in the picture that it was compared with.
    pub alignment: Option<Alignment>,
    /// Pixels that are not judged, if there are any.
    pub ignored: Option<Arc<Bitmap>>,
}

/// An element that marks the defects of a frame in a mask. Its `MODE` is `Both`.
pub trait InspectorImpl:
    BaseTransformImpl + ObjectSubclass<Type: IsA<ClBaseFilter> + IsA<gst::Element>>
{
    /// Name of the message with the results.
    const MESSAGE: &'static str;
    /// The values of `output`.
    type Output: OutputChoice + 'static;
    /// Settings from which an operator is built.
    type Settings: Clone + PartialEq + Send + Sync + 'static;
    /// Marks defects on the device.
    type Operator: Send + 'static;
    /// State that the element keeps from frame to frame until it stops.
    type State: Default + Send + 'static;

    /// The part that all inspectors have.
    fn inspector(&self) -> &Inspector;

    /// The current settings.
    fn settings(&self, state: &Self::State) -> Self::Settings;

    /// See `ClBaseFilterImpl::restore`.
    fn restore(&self, refused: &Self::Settings, in_force: &Self::Settings);

    /// See `ClBaseFilterImpl::check`; the properties of every inspector are checked already.
    ///
    /// # Errors
    /// See there.
    fn check(&self, images: bool) -> Result<(), ClError>;

    /// See `ClBaseFilterImpl::build`.
    ///
    /// # Errors
    /// See there.
    fn build(target: &Target, settings: &Self::Settings) -> Result<Self::Operator, ClError>;

    /// The element starts; see `ClBaseFilterImpl::started`.
    fn started(&self) {}

    /// Caps were negotiated.
    fn set_up(&self, _state: &mut Self::State, _caps: &Negotiated) {}

    /// See `ClBaseFilterImpl::ended`.
    fn ended(&self, _state: &mut Self::State) {}

    /// See `ClBaseFilterImpl::look`.
    ///
    /// # Errors
    /// See there.
    fn look(
        &self,
        _live: &mut Live<Self::Settings, Self::Operator>,
        _state: &mut Self::State,
        _view: &View,
    ) -> Result<(), ClError> {
        Ok(())
    }

    /// See `ClBaseFilterImpl::reach`.
    fn reach(operator: &Self::Operator) -> Reach;

    /// See `ClBaseFilterImpl::learning`.
    fn learning(
        &self,
        _live: &Live<Self::Settings, Self::Operator>,
        _state: &Self::State,
    ) -> Learning {
        Learning::Off
    }

    /// Notes what is in force for a frame, before it is marked.
    fn note(_live: &mut Live<Self::Settings, Self::Operator>, _state: &mut Self::State) {}

    /// Of a frame that trains the element and is not judged: frames of the training so far, and all of them.
    fn training(&self, _state: &Self::State) -> Option<[u32; 2]> {
        None
    }

    /// Marks the defects of a frame; returns the numbers of marked pixels.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn mark(
        operator: &mut Self::Operator,
        frame: &Frame,
        mask: MaskTarget,
    ) -> Result<Marked, ClError>;

    /// Lists the defects that close with the frame that was marked last; `finder` holds the open ones.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn list(
        operator: &mut Self::Operator,
        frame: &Frame,
        mask: MaskTarget,
        finder: &mut Finder,
        limits: &Limits,
    ) -> Result<Listed, ClError>;

    /// Draws a picture of the frame that was marked last.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn draw(
        _operator: &mut Self::Operator,
        _frame: &Frame,
        _picture: Picture,
        _out: &ClFrame,
    ) -> Result<(), ClError> {
        Ok(())
    }

    /// The settings on which [`Self::count_reached`] depends: all but the threshold.
    fn counted_under(settings: &Self::Settings) -> Self::Settings;

    /// Adds the pixels of the frame that was marked last to the counts from which a threshold is learned. Returns
    /// whether the frame was compared.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn count_reached(
        operator: &mut Self::Operator,
        frame: &Frame,
        reached: &mut Reached,
    ) -> Result<bool, ClError>;

    /// Sets the property `threshold`, grey levels.
    fn set_threshold(&self, threshold: f64);

    /// Mean of the samples of the frame that was marked last, grey levels; `None` if unknown.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn mean_level(_operator: &mut Self::Operator) -> Result<Option<f64>, ClError> {
        Ok(None)
    }

    /// The comparison in use.
    fn basis(live: &Live<Self::Settings, Self::Operator>) -> Basis;

    /// Other settings in force, for messages: "property=value ...".
    fn in_words(live: &Live<Self::Settings, Self::Operator>) -> String;
}
