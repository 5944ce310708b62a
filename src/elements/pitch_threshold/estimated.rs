//! Reports what was estimated: property, message and warning.

use std::sync::Mutex;

use gst::{glib, prelude::*};

use super::ClPitchThreshold;
use crate::elements::{base_filter::ClBaseFilterExt, lock, structure::NEW_LINE};
use clinspect_core::pitch::Axis;

const NAME: &str = "estimates";

/// The property `estimates`.
#[derive(Default)]
pub struct Estimated(Mutex<Estimates>);

#[derive(Clone, Copy, Default, PartialEq)]
struct Estimates {
    /// Along x and y, px; 0 for unknown.
    pitches: [f64; 2],
    /// Contrast of the pattern, grey levels of 8 bits; 0 for unknown.
    contrast: f64,
}

impl Estimated {
    /// The property.
    pub fn spec() -> glib::ParamSpec {
        glib::ParamSpecBoxed::builder::<gst::Structure>(NAME)
            .nick("Estimates")
            .blurb(&format!(
                "What the element has estimated from the frames; 0 = unknown or not estimated\
                 {NEW_LINE}pitch-x: Pitch along x in pixels, if the property pitch-x is -1\
                 {NEW_LINE}pitch-y: Pitch along y in pixels, if the property pitch-y is -1\
                 {NEW_LINE}contrast: Contrast of the pattern, if min-contrast is -1: the standard deviation of \
                 the median tile in grey levels of 8 bits"
            ))
            .read_only()
            .build()
    }

    /// The value of the property.
    pub fn get(&self) -> gst::Structure {
        let Estimates {
            pitches: [x, y],
            contrast,
        } = *lock(&self.0);
        gst::Structure::builder(NAME)
            .field("pitch-x", x)
            .field("pitch-y", y)
            .field("contrast", contrast)
            .build()
    }

    /// Updates the pitches, and notifies listeners.
    pub fn set_pitches(&self, element: &ClPitchThreshold, pitches: [Option<f64>; 2]) {
        let pitches = pitches.map(|pitch| pitch.unwrap_or(0.0));
        self.update(element, |estimates| estimates.pitches = pitches);
    }

    /// Updates the contrast, and notifies listeners.
    pub fn set_contrast(&self, element: &ClPitchThreshold, contrast: f64) {
        self.update(element, |estimates| estimates.contrast = contrast);
    }

    fn update(&self, element: &ClPitchThreshold, change: impl FnOnce(&mut Estimates)) {
        let mut estimates = lock(&self.0);
        let before = *estimates;
        change(&mut estimates);
        let is_changed = *estimates != before;
        drop(estimates);
        if is_changed {
            element.notify(NAME);
        }
    }

    /// Posts a message with the pitches.
    pub fn post(&self, element: &ClPitchThreshold) {
        let [x, y] = lock(&self.0).pitches;
        let fields = gst::Structure::builder("clpitchthreshold-pitch")
            .field("pitch-x", x)
            .field("pitch-y", y)
            .build();
        element.post(gst::message::Element::builder(fields).src(element).build());
    }
}

/// Posts that frames cannot be judged along an axis: a warning if there is no other axis, otherwise an
/// info message.
pub fn post_missing(element: &ClPitchThreshold, axis: Axis, is_alone: bool) {
    let (name, along) = match axis {
        Axis::X => ("pitch-x", "rows"),
        Axis::Y => ("pitch-y", "columns"),
    };
    let text = format!(
        "no repeating pattern was found along {along}; set {name} if there is one, or to 0 for no \
         comparison along {along}"
    );
    if is_alone {
        gst::element_warning!(
            element,
            gst::StreamError::Format,
            ("{}", text),
            ["frames that cannot be judged get the verdict none and a clear mask"]
        );
    } else {
        gst::element_info!(
            element,
            gst::StreamError::Format,
            ("{}", text),
            ["frames are compared along the other axis only"]
        );
    }
}
