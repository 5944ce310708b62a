//! What every operator can do that marks the defects of frames.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{COMPONENTS, Finder, Limits, Listed},
    ignored::{Bitmap, Ignored},
    lattice::Lattice,
    learning::{Demand, Rule},
    reference::Step,
    sight::Sight,
    window::{Reach, Window},
};
use clinspect_opencl::{ClBuffer, Meter, frame::ClFrame};

use crate::Contrast;

/// The target of a mask.
#[derive(Debug, Clone, Copy)]
pub enum MaskTarget<'a> {
    /// Packed from a byte offset on, `ceil(width/8)` bytes per row.
    Packed {
        /// The memory.
        buffer: &'a ClBuffer,
        /// Offset of the first row, bytes.
        offset: usize,
    },
    /// One byte per pixel, 0 or 255, as plane 0 of a frame.
    Grey(&'a ClFrame),
}

/// The rows of a frame that are inspected.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The frame on the device; of a web, the rows around the strip too.
    pub frame: &'a ClFrame,
    /// The rows to inspect.
    pub window: Window,
    /// Counts what is done.
    pub meter: &'a Arc<Meter>,
}

impl<'a> Subject<'a> {
    /// A whole frame of `height` rows.
    pub fn whole(frame: &'a ClFrame, height: usize, meter: &'a Arc<Meter>) -> Self {
        Self {
            frame,
            window: Window::frame(height),
            meter,
        }
    }
}

/// The pixels that an operator marked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marked {
    /// All marked pixels.
    pub pixels: u64,
    /// Pixels that are marked because the pattern is missing.
    pub missing: u64,
}

/// The pixels that are judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JudgedPixels {
    /// By any comparison.
    pub any: u64,
    /// By comparisons along x.
    pub x: u64,
    /// By comparisons along y.
    pub y: u64,
}

impl JudgedPixels {
    /// All of them by comparisons without a direction.
    pub(crate) fn all(pixels: u64) -> Self {
        Self {
            any: pixels,
            x: pixels,
            y: pixels,
        }
    }
}

/// Where the frame was found in the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alignment {
    /// Shift of the middle of the frame along x and y, px.
    pub shift: [f64; 2],
    /// The pixel `(x, y)` of the model lies at `(t0 + t1·x + t2·y, t3 + t4·x + t5·y)` of the frame.
    pub transform: [f64; 6],
    /// The largest shift of a part of the frame beside the transformation, px.
    pub largest_local_shift: f64,
    /// How far the frame is from the model, grey levels; 0 if unknown.
    pub misfit: f64,
    /// How the transformation was found.
    pub step: Step,
    /// The correlation there, 0 to 1; 1 without alignment.
    pub score: f64,
    /// Whether the score is high enough for a comparison.
    pub is_matched: bool,
}

/// The parts of a frame that are compared by themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameParts {
    /// Least and most parts that are wanted.
    pub wanted: [u32; 2],
    /// From top to bottom, then from left to right.
    pub parts: Vec<JudgedPart>,
    /// The highest place score of what was taken for no part.
    pub other: Option<f64>,
}

/// A part of a frame.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedPart {
    /// Where its centre lies, px from the upper left corner of the frame.
    pub centre: [f64; 2],
    /// How far it is turned, clockwise on the screen, degrees from −180 to 180.
    pub angle: f64,
    /// How much larger it is than the trained one: the root of the ratio of areas.
    pub scale: f64,
    /// How surely it is there, 0 to 1.
    pub score: f64,
    /// The share of it that lies in the frame.
    pub inside: f64,
    /// Poses that are about as sure; the one with the fewest marked pixels counts.
    pub poses: u32,
    /// The frame's edge cuts it; it was not compared.
    pub is_cut: bool,
    /// Its judged pixels.
    pub judged: u64,
    /// Those of them that are marked.
    pub marked: u64,
}

/// How the last frame was compared.
#[derive(Debug, Clone, Default)]
pub struct Basis {
    /// Pixels that were judged.
    pub judged: JudgedPixels,
    /// Pitches along x and y, or the lengths of the lattice's vectors, px; 0 for none.
    pub pitches: [f64; 2],
    /// The vectors along which the frame was compared, if not along rows and columns.
    pub lattice: Option<Lattice>,
    /// Where the frame was found in the picture that it was compared with.
    pub alignment: Option<Alignment>,
    /// Its parts, if they are compared by themselves.
    pub parts: Option<FrameParts>,
    /// Pixels that are not judged because they are ignored, if there are any.
    pub ignored: Option<Arc<Bitmap>>,
}

/// A picture of a frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Picture {
    /// What frames are compared with; black without it.
    Model,
    /// The difference in grey levels of 8 bits times this gain, plus 128; 128 where nothing is judged.
    Difference(f64),
}

/// A component of a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// Red.
    Red,
    /// Green.
    Green,
    /// Blue.
    Blue,
}

impl Component {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; COMPONENTS] = [Self::Red, Self::Green, Self::Blue];

    /// The name in results, messages and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Red => "red",
            Self::Green => "green",
            Self::Blue => "blue",
        }
    }
}

/// A limit that pixels are compared with, and that can be learned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The name, such as `threshold`.
    pub name: &'static str,
    /// The component that has this limit, if components are judged apart.
    pub component: Option<Component>,
    /// The highest value.
    pub most: f64,
    /// Other values are tried in multiples of this one.
    pub step: f64,
    /// How the limit is learned, unless the user sets a margin.
    pub rule: Rule,
}

impl Limit {
    /// The name in messages and files, such as `threshold` or `threshold.red`.
    pub fn full_name(&self) -> String {
        match self.component {
            Some(component) => format!("{}.{}", self.name, component.name()),
            None => self.name.into(),
        }
    }
}

/// A packed mask on the device, and the offset of its first row, bytes.
pub type PackedMask<'a> = (&'a ClBuffer, usize);

/// An operator that marks the defects of frames of one layout.
pub trait Inspection {
    /// Writes the mask of a frame, waits, and returns the numbers of marked pixels. Row 0 of the mask is the first
    /// inspected row. A pixel of a frame that was moved is counted once, but may mark two pixels of the mask.
    ///
    /// # Errors
    /// The failing call; the mask's contents are then undefined.
    fn mark(&mut self, subject: Subject, mask: MaskTarget) -> Result<Marked, ClError>;

    /// Lists the defects that close with the frame and the mask of the last [`Self::mark`]. A strip continues the
    /// web whose open defects `finder` holds. A frame is a web of its own: reset the finder before.
    ///
    /// # Errors
    /// The failing call; the open defects then lack the differences of this strip.
    fn list(
        &mut self,
        subject: Subject,
        mask: MaskTarget,
        finder: &mut Finder,
        limits: &Limits,
    ) -> Result<Listed, ClError>;

    /// Draws a picture of the frame of the last [`Self::mark`] into plane 0 of a GRAY8 frame, and waits.
    ///
    /// # Errors
    /// The failing call.
    fn draw(&mut self, subject: Subject, picture: Picture, out: &ClFrame) -> Result<(), ClError>;

    /// The limits that can be learned, always the same ones in the same order. Each of them decides alone: if all others
    /// are infinite, a pixel is marked that exceeds this one.
    fn limits(&self) -> Vec<Limit>;

    /// What the frame of the last [`Self::mark`] demands of each of [`Self::limits`], if a single marked pixel fails a
    /// frame: a limit at which no judged pixel is marked by this quantity. A demand that is infinite is not known, and
    /// has to be found by trials. `None`: the frame was not compared.
    ///
    /// # Errors
    /// The failing call.
    fn demands(&mut self, subject: Subject) -> Result<Option<Vec<Demand>>, ClError>;

    /// From now on the frame of the last [`Self::mark`] is marked again by these values of [`Self::limits`] alone, which may be
    /// infinite: whether the pattern is missing does not count. `None` ends the trial; no other frame may be marked before.
    ///
    /// # Errors
    /// The failing call.
    fn try_limits(&mut self, values: Option<&[f64]>) -> Result<(), ClError>;

    /// What the limits in force see of the frame of the last [`Self::mark`], or what these values of [`Self::limits`] would
    /// see. Of limits that look for the same defects only the one that sees best counts. Empty: nothing is compared.
    ///
    /// # Errors
    /// The failing read.
    fn sights(&mut self, values: Option<&[f64]>) -> Result<Vec<Sight>, ClError>;

    /// Whether the limits in force see the same of every frame: [`Self::sights`] changes only with the operator and its
    /// minimum contrast.
    fn sees_all_alike(&self) -> bool {
        false
    }

    /// Mean of the samples of the frame of the last [`Self::mark`], grey levels; `None` if unknown.
    ///
    /// # Errors
    /// The failing read.
    fn mean_level(&mut self) -> Result<Option<f64>, ClError> {
        Ok(None)
    }

    /// From the next mark on other pixels are ignored. Only of an operator that was built with ignored pixels.
    ///
    /// # Errors
    /// [`ClError::Refused`] if the operator cannot change them; the failing call.
    fn set_ignored(&mut self, _pixels: &Arc<Ignored>) -> Result<(), ClError> {
        Err(ClError::Refused(
            "the ignored pixels of a running comparison cannot change".into(),
        ))
    }

    /// How the last frame was compared.
    fn basis(&self) -> Basis;

    /// Rows of a web that a strip needs besides its own.
    fn reach(&self) -> Reach {
        Reach::default()
    }
}

/// An operator that compares a pattern with itself, and can tell whether the pattern is there.
pub trait Repeating {
    /// The pitches along x and y in use, or the lengths of the lattice's vectors, px; 0 for none.
    fn pitches(&self) -> [f64; 2];

    /// The contrast of the pattern in a frame of `rows` rows: the standard deviation of the median tile, in grey levels
    /// of 8 bits. `None` if the pattern is not seen along each axis in use; `estimated` says whether the pitch along x,
    /// and along y, was estimated.
    ///
    /// # Errors
    /// The failing call.
    fn learn_contrast(
        &mut self,
        frame: &ClFrame,
        rows: usize,
        estimated: [bool; 2],
        meter: &Arc<Meter>,
    ) -> Result<Option<f64>, ClError>;

    /// Sets the minimum contrast; returns whether it was another one. The search for the pattern cannot be switched on or off.
    fn set_contrast(&mut self, contrast: Contrast) -> bool;
}
