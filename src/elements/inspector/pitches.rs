//! Estimates the pitches of a pattern: decides when to look and at which lines, and reports what was estimated by a
//! property, a message and a warning.

use std::{
    ops::{Deref, DerefMut},
    sync::Mutex,
};

use gst::{glib, prelude::*};

use super::colour::grey_layout;
use crate::elements::{
    base_filter::{ClBaseFilter, ClBaseFilterExt, Target, View},
    last_report::LastReport,
    lock,
    structure::NEW_LINE,
};
use clinspect_core::{
    ClError,
    pitch::Axis,
    pitch_estimate::{LARGEST_TOLERANCE, Lines, PitchChange, PitchEstimator, PitchTracker},
};
use clinspect_operators::{Components, Probe, Submitted};

/// While a pitch is unknown, this many frames are all examined: a live line must not wait.
const EAGER_FRAMES: u64 = 16;
/// Later, one frame of this many is examined, since an estimate takes milliseconds. If it disagrees
/// with the held pitch, the next frames are examined until the pitch is settled.
const LAZY_FRAMES: u64 = 30;
/// The same of a web, counted in occasions to learn.
const LAZY_WEB: u64 = 4;
/// Number of frames without a pattern before a warning.
const PATIENCE: u64 = 4;

/// Copy the lines from which the pitches along x and along y are estimated.
type Probes = [Option<Probe>; 2];

/// An operator, and what copies the lines from which its pitches are estimated.
pub struct Probed<T> {
    /// The operator.
    pub comparison: T,
    /// The probes of the axes that are estimated.
    pub probes: Probes,
}

impl<T> Probed<T> {
    /// Prepares the probes of the axes that are `estimated`.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn new(comparison: T, target: &Target, estimated: [bool; 2]) -> Result<Self, ClError> {
        Ok(Self {
            comparison,
            probes: probes(target, estimated)?,
        })
    }
}

impl<T> Deref for Probed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.comparison
    }
}

impl<T> DerefMut for Probed<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.comparison
    }
}

/// The pitches in use along x and y, px: those that are set, and the known ones where a negative value asks for an estimate;
/// 0 for unknown.
pub fn in_use(set: [f64; 2], known: [Option<f64>; 2]) -> [f64; 2] {
    [0, 1].map(|axis| {
        if set[axis] < 0.0 {
            known[axis].unwrap_or(0.0)
        } else {
            set[axis]
        }
    })
}

fn probes(target: &Target, [along_x, along_y]: [bool; 2]) -> Result<Probes, ClError> {
    let layout = grey_layout(&target.layout);
    let probe = |wanted: bool, axis| {
        wanted
            .then(|| Probe::new(&target.context, &layout, axis))
            .transpose()
    };
    Ok([probe(along_x, Axis::X)?, probe(along_y, Axis::Y)?])
}

/// The pitch along one axis.
#[derive(Default)]
struct Estimate {
    estimator: PitchEstimator,
    tracker: PitchTracker,
    looked: u64,
    /// A later estimate agreed with the held pitch.
    is_confirmed: bool,
    /// The pitch of the frame that was examined last, if it has one and no other frame came since.
    of_frame: Option<f64>,
    missing: LastReport<()>,
}

/// A change after a frame was examined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// The pitch along an axis became known, moved, or is lost.
    Pitch,
    /// The pitch along an axis moved by more than a comparison tolerates; follows `Pitch`.
    Moved {
        /// The axis.
        axis: Axis,
        /// Pitch until now, px.
        from: f64,
        /// Pitch from now on, px.
        to: f64,
    },
    /// No repeating pattern was found along the axis.
    Missing(Axis),
}

/// The pitches along x and y, if they are estimated.
#[derive(Default)]
pub struct Estimation {
    axes: [Option<Estimate>; 2],
    frames: u64,
}

impl Estimation {
    /// Switches the estimates along x and along y on or off; returns whether that is a change.
    pub fn follow(&mut self, wanted: [bool; 2]) -> bool {
        let mut changed = false;
        for (axis, wanted) in self.axes.iter_mut().zip(wanted) {
            if axis.is_some() != wanted {
                *axis = wanted.then(Estimate::default);
                self.frames = 0;
                changed = true;
            }
        }
        changed
    }

    /// The held pitches along x and along y, px.
    pub fn pitches(&self) -> [Option<f64>; 2] {
        [0, 1].map(|axis| self.axes[axis].as_ref()?.tracker.pitch())
    }

    /// The pitches along x and along y of the frame, px: its own where it was examined and has one, else those held.
    pub fn pitches_of_frame(&self) -> [Option<f64>; 2] {
        [0, 1].map(|axis| {
            let estimate = self.axes[axis].as_ref()?;
            estimate.of_frame.or(estimate.tracker.pitch())
        })
    }

    /// Whether a pitch that is estimated may soon change.
    pub fn may_move(&self) -> bool {
        self.axes
            .iter()
            .flatten()
            .any(|estimate| !estimate.is_confirmed)
    }

    /// Whether to examine this frame; call it once per frame.
    pub fn is_due(&mut self, view: &View) -> bool {
        let frame = self.frames;
        let lazy = if view.is_web { LAZY_WEB } else { LAZY_FRAMES };
        self.frames += 1;
        self.axes.iter().flatten().any(|estimate| {
            let eager = match estimate.tracker.pitch() {
                Some(_) => !estimate.tracker.is_settled(),
                None => frame < EAGER_FRAMES,
            };
            eager || frame.is_multiple_of(lazy)
        })
    }

    /// Examines a frame along the axes that are `due`.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn update<O: Submitted>(
        &mut self,
        Probed { comparison, probes }: &mut Probed<Components<O>>,
        due: [bool; 2],
        view: &View,
    ) -> Result<Vec<Change>, ClError> {
        let mut changes = Vec::new();
        let mut axes = self.axes.iter().zip(due);
        let frame = if axes.any(|(axis, due)| axis.is_some() && due) {
            comparison.grey(view.frame, view.rows, view.meter)?
        } else {
            view.frame
        };
        for ((axis, due), (estimate, probe)) in [Axis::X, Axis::Y]
            .into_iter()
            .zip(due)
            .zip(self.axes.iter_mut().zip(probes))
        {
            let (Some(estimate), Some(probe)) = (estimate, probe) else {
                continue;
            };
            estimate.of_frame = None;
            if !due {
                continue;
            }
            probe.take_rows(view.rows)?;
            let length = probe.length();
            let samples = probe.run(frame, view.meter)?;
            let found = estimate.estimator.estimate(&Lines { samples, length });
            estimate.looked += 1;
            estimate.of_frame = found.map(|found| found.pitch_px);
            let change = estimate.tracker.update(found);
            if change != PitchChange::None {
                estimate.is_confirmed = false;
                changes.push(Change::Pitch);
                if let PitchChange::Moved { from, to } = change
                    && (to - from).abs() > LARGEST_TOLERANCE * from
                {
                    changes.push(Change::Moved { axis, from, to });
                }
            } else if estimate.tracker.is_settled() {
                estimate.is_confirmed = true;
            }
            if estimate.tracker.pitch().is_some() {
                estimate.missing.clear();
            } else if (change == PitchChange::Lost || estimate.looked >= PATIENCE)
                && estimate.missing.is_new(())
            {
                changes.push(Change::Missing(axis));
            }
        }
        Ok(changes)
    }
}

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
    pub fn set_pitches(&self, element: &ClBaseFilter, pitches: [Option<f64>; 2]) {
        let pitches = pitches.map(|pitch| pitch.unwrap_or(0.0));
        self.update(element, |estimates| estimates.pitches = pitches);
    }

    /// Updates the contrast, and notifies listeners.
    pub fn set_contrast(&self, element: &ClBaseFilter, contrast: f64) {
        self.update(element, |estimates| estimates.contrast = contrast);
    }

    fn update(&self, element: &ClBaseFilter, change: impl FnOnce(&mut Estimates)) {
        let mut estimates = lock(&self.0);
        let before = *estimates;
        change(&mut estimates);
        let is_changed = *estimates != before;
        drop(estimates);
        if is_changed {
            element.notify(NAME);
        }
    }

    /// Posts the message `PREFIX-pitch` with the pitches; the prefix is the element's factory.
    pub fn post(&self, element: &ClBaseFilter, prefix: &str) {
        let [x, y] = lock(&self.0).pitches;
        let fields = gst::Structure::builder(format!("{prefix}-pitch"))
            .field("pitch-x", x)
            .field("pitch-y", y)
            .build();
        element.post(gst::message::Element::builder(fields).src(element).build());
    }
}

/// Posts the changes that a user has to know; `is_alone`: there is no other axis to compare along.
pub fn post_changes(element: &ClBaseFilter, changes: &[Change], is_alone: bool) {
    for change in changes {
        match *change {
            Change::Pitch => {}
            Change::Moved { axis, from, to } => post_moved(element, axis, from, to),
            Change::Missing(axis) => post_missing(element, axis, is_alone),
        }
    }
}

/// Warns that the pitch along an axis has moved.
fn post_moved(element: &ClBaseFilter, axis: Axis, from: f64, to: f64) {
    let (name, along, cause) = match axis {
        Axis::X => ("pitch-x", "rows", "the camera's distance and the product"),
        Axis::Y => (
            "pitch-y",
            "columns",
            "the line's speed, the encoder and the product",
        ),
    };
    gst::element_warning!(
        element,
        gst::StreamError::Format,
        (
            "the estimated pitch along {} changed from {:.3} to {:.3} pixels; check {}, or set {}",
            along,
            from,
            to,
            cause,
            name
        ),
        ["frames are compared at the new pitch from now on"]
    );
}

/// Posts that frames cannot be judged along an axis: a warning if there is no other axis, otherwise an
/// info message.
fn post_missing(element: &ClBaseFilter, axis: Axis, is_alone: bool) {
    let (name, along) = match axis {
        Axis::X => ("pitch-x", "rows"),
        Axis::Y => ("pitch-y", "columns"),
    };
    if is_alone {
        let text = format!(
            "no repeating pattern was found along {along}; check the light and the focus, or set {name} to the distance \
             after which the pattern repeats"
        );
        gst::element_warning!(
            element,
            gst::StreamError::Format,
            ("{}", text),
            ["frames that cannot be judged get the verdict none and a clear mask"]
        );
    } else {
        let text = format!(
            "no repeating pattern was found along {along}; set {name} if there is one, or to 0 for no \
             comparison along {along}"
        );
        gst::element_info!(
            element,
            gst::StreamError::Format,
            ("{}", text),
            ["frames are compared along the other axis only"]
        );
    }
}
