//! Reports the estimated pitches: properties, message and warning.

use std::sync::Mutex;

use gst::{glib, prelude::*};

use super::{ClPitchThreshold, properties::MAX_PITCH};
use crate::elements::{base_filter::ClBaseFilterExt, lock};
use clinspect_core::pitch::Axis;

/// The estimated pitches along x and y, px; 0 for unknown.
#[derive(Default)]
pub struct Estimated(Mutex<[f64; 2]>);

impl Estimated {
    /// The property of an axis.
    pub fn spec(axis: &str) -> glib::ParamSpec {
        glib::ParamSpecDouble::builder(&format!("estimated-pitch-{axis}"))
            .nick(&format!("Estimated pitch along {axis}"))
            .blurb(&format!(
                "Pitch along {axis} estimated from the frames, in pixels; 0 = unknown or not \
                 estimated"
            ))
            .minimum(0.0)
            .maximum(MAX_PITCH)
            .read_only()
            .build()
    }

    /// The values of the properties.
    pub fn get(&self) -> [f64; 2] {
        *lock(&self.0)
    }

    /// Updates the properties, and notifies listeners.
    pub fn set(&self, element: &ClPitchThreshold, pitches: [Option<f64>; 2]) {
        let pitches = pitches.map(|pitch| pitch.unwrap_or(0.0));
        let before = std::mem::replace(&mut *lock(&self.0), pitches);
        for (axis, name) in [(0, "estimated-pitch-x"), (1, "estimated-pitch-y")] {
            if before[axis] != pitches[axis] {
                element.notify(name);
            }
        }
    }

    /// Posts a message with the pitches.
    pub fn post(&self, element: &ClPitchThreshold) {
        let [x, y] = self.get();
        let fields = gst::Structure::builder("clpitchthreshold-pitch")
            .field("estimated-pitch-x", x)
            .field("estimated-pitch-y", y)
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
