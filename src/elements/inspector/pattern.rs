//! What is learned of a repeating pattern from frames: its pitches and its lattice. Decides when to look, and reports what was
//! estimated by a property, messages and warnings.

use std::sync::Mutex;

use gst::{glib, prelude::*};

use crate::elements::{
    base_filter::{ClBaseFilter, ClBaseFilterExt, View},
    last_report::LastReport,
    lock,
    structure::NEW_LINE,
};
use clinspect_core::{
    ClError,
    lattice::Lattice,
    lattice_estimate::{LatticeChange, LatticeEstimate, LatticeEstimator, LatticeTracker},
    pitch::Axis,
    pitch_estimate::{LARGEST_TOLERANCE, PitchChange, PitchEstimator, PitchTracker},
};
use clinspect_operators::{Components, Submitted};

/// While a pitch is unknown, this many frames are all examined: a live line must not wait.
const EAGER_FRAMES: u64 = 16;
/// Later, one frame of this many is examined, since an estimate takes milliseconds. If it disagrees
/// with the held pitch, the next frames are examined until the pitch is settled.
const LAZY_FRAMES: u64 = 30;
/// The same of a web, counted in occasions to learn.
const LAZY_WEB: u64 = 4;
/// Number of frames without a pattern before a warning, and of frames in which a pattern at known pitches is not seen.
pub(super) const PATIENCE: u64 = 4;

/// Least correlation at the pitches of a texture, as a share of that at the vectors, with which the pitches count.
const PITCHES_SUFFICE: f64 = 0.8;
/// The same if the pitches counted on a frame with these vectors: frames of one cloth must be compared alike, or limits that one
/// kind of comparison needs make the other one blind.
const PITCHES_REMAIN: f64 = 0.7;

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

/// The lattice.
#[derive(Default)]
struct LatticeSearch {
    estimator: LatticeEstimator,
    tracker: LatticeTracker,
}

/// What to examine of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The lines along the axes.
    pub pitches: bool,
    /// The middle, for the lattice.
    pub lattice: bool,
}

/// A change after a frame was examined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// The pitch along an axis, or the lattice, became known, moved, or is lost.
    Pitch,
    /// A turned lattice moved by more than a comparison tolerates, or a lattice is turned now; follows `Pitch`.
    Turned {
        /// Lattice until now.
        from: LatticeEstimate,
        /// Lattice from now on.
        to: LatticeEstimate,
    },
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

/// The pitches along x and y and the lattice, if they are estimated.
#[derive(Default)]
pub struct Estimation {
    axes: [Option<Estimate>; 2],
    lattice: Option<LatticeSearch>,
    frames: u64,
    /// Pitches are weighed against vectors, as a texture needs.
    weighs_pitches: bool,
    /// The pattern repeats about as well after the pitches as along these vectors.
    suffices_for: Option<LatticeEstimate>,
}

impl Estimation {
    /// That of a texture, to which neighbours two short vectors away may show more than those one away: the pitches count
    /// where the picture repeats as well after them.
    pub fn of_texture() -> Self {
        Self {
            weighs_pitches: true,
            ..Self::default()
        }
    }

    /// Switches the estimates along x and along y, and that of the lattice, on or off; returns whether that is a change.
    pub fn follow(&mut self, wanted: [bool; 2], wants_lattice: bool) -> bool {
        let mut changed = false;
        for (axis, wanted) in self.axes.iter_mut().zip(wanted) {
            if axis.is_some() != wanted {
                *axis = wanted.then(Estimate::default);
                changed = true;
            }
        }
        if self.lattice.is_some() != wants_lattice {
            self.lattice = wants_lattice.then(LatticeSearch::default);
            changed = true;
        }
        if changed {
            self.frames = 0;
            self.suffices_for = None;
        }
        changed
    }

    /// The held pitches along x and along y, px; none while vectors count.
    pub fn pitches(&self) -> [Option<f64>; 2] {
        if self.held_vectors().is_some() {
            return [None; 2];
        }
        let parallel = self.parallel();
        [0, 1].map(|axis| self.pitch(axis).or(parallel[axis]))
    }

    fn pitch(&self, axis: usize) -> Option<f64> {
        self.axes[axis].as_ref()?.tracker.pitch()
    }

    /// The pitches of a held lattice that is parallel to the axes, px.
    fn parallel(&self) -> [Option<f64>; 2] {
        let held = self.lattice.as_ref().and_then(|l| l.tracker.held());
        let Some(LatticeEstimate { a, b, .. }) = held.filter(|held| held.is_parallel()) else {
            return [None; 2];
        };
        let y = b.map_or(a[1], |b| b[1]);
        [a[0], y].map(|pitch| (pitch != 0.0).then_some(pitch.abs()))
    }

    /// Whether frames with this lattice are compared along its vectors: two that are turned against the axes, unless the
    /// pitches suffice, or one where not both pitches are known.
    fn counts(&self, lattice: &LatticeEstimate) -> bool {
        let comes_first = lattice.b.is_some() && self.suffices_for.is_none();
        !lattice.is_parallel() && (comes_first || !self.has_pitches())
    }

    fn has_pitches(&self) -> bool {
        [0, 1].into_iter().all(|axis| self.pitch(axis).is_some())
    }

    /// The held lattice, if its vectors count.
    pub fn held_vectors(&self) -> Option<&LatticeEstimate> {
        let held = self.lattice.as_ref()?.tracker.held()?;
        self.counts(held).then_some(held)
    }

    /// The vectors along which the frame is compared: its own where they differ from those held.
    pub fn vectors_of_frame(&self) -> Option<Lattice> {
        let tracker = &self.lattice.as_ref()?.tracker;
        let own = tracker.of_frame()?;
        let counts = self.counts(&own) || self.held_vectors().is_some();
        let vectors: Vec<[f64; 2]> = std::iter::once(own.a).chain(own.b).collect();
        Lattice::new(&vectors).ok().filter(|_| counts)
    }

    /// The pitches along x and y of the frame, px: its own where it was examined and has one, else those held.
    pub fn pitches_of_frame(&self) -> [Option<f64>; 2] {
        let parallel = self.parallel();
        [0, 1].map(|axis| {
            let estimate = self.axes[axis].as_ref()?;
            let of_frame = estimate.of_frame.or(estimate.tracker.pitch());
            of_frame.or(parallel[axis])
        })
    }

    /// Whether a pitch or a lattice that is estimated may soon change.
    pub fn may_move(&self) -> bool {
        let lattice = self.held_vectors().and(self.lattice.as_ref());
        match lattice {
            Some(lattice) => !lattice.tracker.is_settled(),
            None => (self.axes.iter().flatten()).any(|estimate| !estimate.is_confirmed),
        }
    }

    /// Whether the latest estimate along an axis differs from the held pitch, or found none.
    fn doubts_pitch(&self) -> bool {
        let mut axes = self.axes.iter().flatten();
        axes.any(|axis| axis.tracker.pitch().is_some() && !axis.tracker.is_settled())
    }

    /// What to examine of this frame; call it once per frame.
    pub fn is_due(&mut self, view: &View) -> Due {
        let frame = self.frames;
        let lazy = if view.is_web { LAZY_WEB } else { LAZY_FRAMES };
        self.frames += 1;
        let is_eager = frame < EAGER_FRAMES;
        let is_lazy = frame.is_multiple_of(lazy);
        let pitches = self.axes.iter().flatten().any(|estimate| {
            let eager = match estimate.tracker.pitch() {
                Some(_) => !estimate.tracker.is_settled(),
                None => is_eager,
            };
            eager || is_lazy
        });
        let lattice = self.lattice.as_ref().is_some_and(|lattice| {
            let eager = match lattice.tracker.held() {
                // To follow two vectors costs little, and the next piece may lie otherwise.
                Some(held) => {
                    !lattice.tracker.is_settled() || (held.b.is_some() && self.counts(held))
                }
                None => is_eager && !self.has_pitches(),
            };
            // The piece may lie otherwise now.
            let eager = eager || (self.weighs_pitches && self.doubts_pitch());
            eager || is_lazy
        });
        Due { pitches, lattice }
    }

    /// Examines a frame: its lattice, and where its vectors do not count, its lines along the `axes`.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn update<O: Submitted>(
        &mut self,
        operator: &mut Components<O>,
        (due, axes): (Due, [bool; 2]),
        view: &View,
    ) -> Result<Vec<Change>, ClError> {
        let mut changes = Vec::new();
        if due.lattice {
            self.update_lattice(operator, view, &mut changes)?;
        }
        let has_vectors = self.held_vectors().is_some_and(|held| held.b.is_some());
        if !has_vectors || self.weighs_pitches {
            self.update_pitches(operator, (due.pitches, axes), view, &mut changes)?;
        }
        if self.weighs_pitches {
            if due.lattice {
                self.weigh_pitches(&mut changes);
            }
            // What does not count may move.
            let has_vectors = self.held_vectors().is_some();
            changes.retain(|change| match change {
                Change::Pitch => true,
                Change::Turned { .. } => has_vectors,
                Change::Moved { .. } | Change::Missing(_) => !has_vectors,
            });
        }
        Ok(changes)
    }

    /// Compares the correlation of the frame, whose lattice was examined, at the pitches with that at the vectors.
    fn weigh_pitches(&mut self, changes: &mut Vec<Change>) {
        let (Some(LatticeSearch { estimator, tracker }), [Some(x), Some(y)]) =
            (&self.lattice, self.pitches_of_frame())
        else {
            return;
        };
        // A frame without a lattice does not tell.
        let Some(lattice) = tracker.of_frame() else {
            return;
        };
        let least = |a, b| {
            let likeness = |v| estimator.likeness(v, &lattice);
            likeness(a).min(likeness(b))
        };
        let vectors = least(lattice.a, lattice.b.unwrap_or(lattice.a));
        let before = self.suffices_for;
        let same = before.filter(|before| !before.has_moved_far(&lattice));
        let share = if same.is_some() {
            PITCHES_REMAIN
        } else {
            PITCHES_SUFFICE
        };
        let suffices = least([x, 0.0], [0.0, y]) >= share * vectors;
        self.suffices_for = suffices.then(|| same.unwrap_or(lattice));
        if suffices != before.is_some() && !changes.contains(&Change::Pitch) {
            changes.push(Change::Pitch);
        }
    }

    fn update_lattice<O: Submitted>(
        &mut self,
        operator: &mut Components<O>,
        view: &View,
        changes: &mut Vec<Change>,
    ) -> Result<(), ClError> {
        let size = [operator.layout().width, view.rows];
        let middle = operator.middle_of(view.frame, view.rows, view.meter)?;
        let (Some(LatticeSearch { estimator, tracker }), Some(mut middle)) =
            (&mut self.lattice, middle)
        else {
            return Ok(());
        };
        let read = |crop, samples: &mut Vec<f32>| middle.read(crop, samples);
        let found = match tracker.of_frame() {
            Some(before) => estimator.follow(&before, size, read)?,
            None => estimator.estimate(size, read)?,
        };
        let change = tracker.update(found);
        if change != LatticeChange::None {
            changes.push(Change::Pitch);
        }
        if let LatticeChange::Moved { from, to } = change
            && from.has_moved_far(&to)
            && !(from.is_parallel() && to.is_parallel())
        {
            changes.push(Change::Turned { from, to });
        }
        Ok(())
    }

    fn update_pitches<O: Submitted>(
        &mut self,
        operator: &mut Components<O>,
        (is_due, axes): (bool, [bool; 2]),
        view: &View,
        changes: &mut Vec<Change>,
    ) -> Result<(), ClError> {
        let parallel = self.parallel();
        let has_vectors = self.held_vectors().is_some();
        let is_due = |axis: usize| is_due && axes[axis] && self.axes[axis].is_some();
        let due = [is_due(0), is_due(1)];
        let lines = operator.probe(due, view.frame, view.rows, view.meter)?;
        let axes = self.axes.iter_mut().zip(lines).zip(parallel);
        for (axis, ((estimate, lines), parallel)) in [Axis::X, Axis::Y].into_iter().zip(axes) {
            let Some(estimate) = estimate else {
                continue;
            };
            estimate.of_frame = None;
            let Some(lines) = lines else {
                continue;
            };
            let found = estimate.estimator.estimate(&lines);
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
            if has_vectors || estimate.tracker.pitch().or(parallel).is_some() {
                estimate.missing.clear();
            } else if (change == PitchChange::Lost || estimate.looked >= PATIENCE)
                && estimate.missing.is_new(())
            {
                changes.push(Change::Missing(axis));
            }
        }
        Ok(())
    }
}

/// Tells once that pitches along rows or columns are turned against the pattern of a frame.
#[derive(Default)]
pub struct TurnCheck {
    estimator: LatticeEstimator,
    looked: u64,
    is_done: bool,
}

impl TurnCheck {
    /// Whether no further frame is looked at.
    pub fn is_over(&self) -> bool {
        self.is_done || self.looked >= PATIENCE
    }

    /// Looks at one of the first frames, until its lattice is found; `pitches` along x and y in use, px, 0 for none.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn update<O: Submitted>(
        &mut self,
        element: &ClBaseFilter,
        operator: &mut Components<O>,
        pitches: [f64; 2],
        view: &View,
    ) -> Result<(), ClError> {
        if self.is_over() || pitches == [0.0; 2] {
            return Ok(());
        }
        self.looked += 1;
        let size = [operator.layout().width, view.rows];
        let Some(mut middle) = operator.middle_of(view.frame, view.rows, view.meter)? else {
            return Ok(());
        };
        let read = |crop, samples: &mut Vec<f32>| middle.read(crop, samples);
        let Some(found) = self.estimator.estimate(size, read)? else {
            return Ok(());
        };
        self.is_done = true;
        // One warning: what turns one axis turns the other.
        if let Some((axis, degrees)) = found.turned_against(pitches)
            && let Some(b) = found.b
        {
            let (name, along, pitch) = match axis {
                Axis::X => ("pitch-x", "rows", pitches[0]),
                Axis::Y => ("pitch-y", "columns", pitches[1]),
            };
            let a = found.a;
            gst::element_warning!(
                element,
                gst::StreamError::Format,
                (
                    "{}={} compares along {}, but the pattern is turned against them by {:.1} degrees; turn the camera or \
                     the product, or set lattice=<{:.3},{:.3},{:.3},{:.3}>",
                    name,
                    (1000.0 * pitch).round() / 1000.0,
                    along,
                    degrees,
                    a[0],
                    a[1],
                    b[0],
                    b[1]
                ),
                ["a turned pattern needs a higher threshold, which hides defects"]
            );
        }
        Ok(())
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
    /// The lattice whose vectors count.
    vectors: Option<LatticeEstimate>,
}

impl Estimates {
    /// A structure with the pitches.
    fn with_pitches(&self, name: &str) -> gst::structure::Builder {
        let [x, y] = self.pitches;
        gst::Structure::builder(name)
            .field("pitch-x", x)
            .field("pitch-y", y)
    }

    /// Adds the fields of the lattice.
    fn with_vectors(&self, fields: gst::structure::Builder) -> gst::structure::Builder {
        let vectors = self.vectors;
        let numbers = vectors.into_iter().flat_map(|found| {
            let [ax, ay] = found.a;
            [ax, ay].into_iter().chain(found.b.into_iter().flatten())
        });
        fields
            .field("lattice", gst::Array::new(numbers))
            .field("angle", vectors.map_or(0.0, |found| found.angle_degrees()))
            .field(
                "standard-error",
                vectors.map_or(0.0, |found| found.error_px),
            )
    }
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
                 the median tile in grey levels of 8 bits\
                 {NEW_LINE}lattice: Vectors <ax, ay, bx, by> of a pattern that is turned against rows and columns, or the \
                 vector <ax, ay> of lines, in pixels, if pitch-x and pitch-y are -1; otherwise empty\
                 {NEW_LINE}angle: Angle of the first vector to the rows in degrees, clockwise\
                 {NEW_LINE}standard-error: Standard error of the vectors in pixels"
            ))
            .read_only()
            .build()
    }

    /// The value of the property.
    pub fn get(&self) -> gst::Structure {
        let estimates = *lock(&self.0);
        let fields = estimates.with_pitches(NAME);
        let fields = fields.field("contrast", estimates.contrast);
        estimates.with_vectors(fields).build()
    }

    /// Updates the pitches and the vectors, and notifies listeners.
    pub fn set(&self, element: &ClBaseFilter, estimation: &Estimation) {
        let pitches = estimation.pitches().map(|pitch| pitch.unwrap_or(0.0));
        let vectors = estimation.held_vectors().copied();
        self.update(element, |estimates| {
            estimates.pitches = pitches;
            estimates.vectors = vectors;
        });
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

    /// Posts the message `PREFIX-pitch` with the pitches and the vectors; the prefix is the element's factory.
    pub fn post(&self, element: &ClBaseFilter, prefix: &str) {
        let estimates = *lock(&self.0);
        let fields = estimates.with_pitches(&format!("{prefix}-pitch"));
        let message = gst::message::Element::builder(estimates.with_vectors(fields).build());
        element.post(message.src(element).build());
    }
}

/// Posts the changes that a user has to know; `is_alone`: there is no other axis to compare along.
pub fn post_changes(element: &ClBaseFilter, changes: &[Change], is_alone: bool) {
    for change in changes {
        match *change {
            Change::Pitch => {}
            Change::Moved { axis, from, to } => post_moved(element, axis, from, to),
            Change::Turned { from, to } => post_turned(element, &from, &to),
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

/// Warns that the vectors of the pattern have moved.
fn post_turned(element: &ClBaseFilter, from: &LatticeEstimate, to: &LatticeEstimate) {
    let in_words = |lattice: &LatticeEstimate| {
        let [x, y] = lattice.a;
        let b = lattice.b.map(|[x, y]| format!(" and ({x:.3}, {y:.3})"));
        format!("({x:.3}, {y:.3}){}", b.unwrap_or_default())
    };
    gst::element_warning!(
        element,
        gst::StreamError::Format,
        (
            "the estimated vectors of the pattern changed from {} to {} pixels, {:.1} degrees to the rows; check the camera \
             and the product, or set lattice",
            in_words(from),
            in_words(to),
            to.angle_degrees()
        ),
        ["frames are compared along the new vectors from now on"]
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
