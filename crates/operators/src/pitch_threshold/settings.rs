//! The settings of a pitch comparison.

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::{
    ignored::{Bitmap, Ignored},
    kernels::pitch_threshold::{BRIGHT, DARK, INWARD, MATCHED, MINIMUM},
    lattice::{Lattice, VectorComparison},
    layout::{FrameLayout, SampleType},
    pitch::{Axis, Comparison},
    presence::nominal_height,
    region::{Rect, area, union_of},
    scales::{self, MAX_SCALES},
    variant::PitchThresholdVariant,
    window::{Reach, Window},
};
use gst::glib;

use crate::Contrast;
use crate::depth::{check_threshold, largest_depth};

/// A comparison for the kernels. Twin of `comparison_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct ComparisonWords {
    axis: i32,
    whole: i32,
    fraction: i32,
    blur: i32,
    whole2: i32,
    fraction2: i32,
    edge_margin: i32,
}

const _: () = assert!(size_of::<ComparisonWords>() == 28);

impl ComparisonWords {
    /// A comparison that judges no pixel inward that is closer than `inward` to the edge; `None`: it
    /// judges none inward.
    pub fn new(c: &Comparison, inward: Option<usize>) -> Self {
        let edge_margin = inward.and_then(|edge| i32::try_from(edge).ok());
        Self {
            axis: i32::from(c.axis == Axis::Y),
            whole: c.whole,
            fraction: c.fraction,
            blur: c.blur,
            whole2: c.whole2,
            fraction2: c.fraction2,
            edge_margin: edge_margin.unwrap_or(i32::MAX),
        }
    }
}

/// How a pixel is compared with its two neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClPitchCompare")]
pub enum Compare {
    /// With the mean of both.
    #[enum_value(
        name = "Average: with the mean of both neighbours; leaves a ghost on each side",
        nick = "average"
    )]
    Average,
    /// With each of them.
    #[default]
    #[enum_value(
        name = "Minimum: with each neighbour; the smaller difference counts; no ghosts",
        nick = "minimum"
    )]
    Minimum,
}

/// The deviations that are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClPitchThresholdPolarity")]
pub enum Polarity {
    /// Brighter and darker.
    #[default]
    #[enum_value(name = "Both: brighter and darker", nick = "both")]
    Both,
    /// Brighter.
    #[enum_value(name = "Bright: brighter only", nick = "bright")]
    Bright,
    /// Darker.
    #[enum_value(name = "Dark: darker only", nick = "dark")]
    Dark,
}

/// What happens to pixels near the frame's edge, which have one neighbour only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClPitchBorders")]
pub enum Borders {
    /// They are judged with the neighbour two distances away, at the smallest multiple.
    #[default]
    #[enum_value(
        name = "Inward: at the smallest multiple the neighbour two distances away replaces a missing one",
        nick = "inward"
    )]
    Inward,
    /// They are not judged.
    #[enum_value(
        name = "Skip: pixels without both neighbours are not judged",
        nick = "skip"
    )]
    Skip,
}

/// The settings of a pitch comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct PitchThresholdSettings {
    /// While no pitch is known, both pitches may be 0. No pixel is judged then, and masks are zero.
    pub may_be_blind: bool,
    /// The settings will stay as they are for long, so kernels may be compiled for them alone.
    pub is_steady: bool,
    /// Pitch along x, px; 0 for no comparison along x.
    pub pitch_x: f64,
    /// Pitch along y, px; 0 for no comparison along y.
    pub pitch_y: f64,
    /// The vectors along which pixels are compared, instead of the pitches.
    pub lattice: Option<Lattice>,
    /// Multiples of the pitches at which pixels are compared.
    pub multiples: Vec<u32>,
    /// Threshold, grey levels.
    pub threshold: f64,
    /// How a pixel is compared with its two neighbours.
    pub compare: Compare,
    /// Blur the centre as interpolation blurs the neighbours.
    pub match_center: bool,
    /// Coarser levels at which the differences are compared too, 0 to [`MAX_SCALES`].
    pub scales: usize,
    /// The levels' thresholds as parts of the threshold, from level 1 on.
    pub scale_factors: Vec<f64>,
    /// The deviations that are marked.
    pub polarity: Polarity,
    /// Pixels near the frame's edge.
    pub borders: Borders,
    /// With [`Borders::Inward`]: a pixel closer than this to the edge beyond which its neighbour lies
    /// is not compared along that axis.
    pub edge_margin: u32,
    /// The minimum contrast of a tile.
    pub contrast: Contrast,
    /// Regions of interest inside the frame; empty for the whole frame.
    pub rois: Vec<Rect>,
    /// Pixels that are not judged.
    pub ignored: Option<Arc<Ignored>>,
    /// Bits of a sample that a camera fills; 0 for the depth of the format.
    pub bit_depth: u32,
    /// Frames are strips of a web.
    pub line_scan: bool,
    /// Read from images instead of buffers.
    pub image: bool,
    /// Forces a variant; refused if the device cannot run it.
    pub variant: Option<PitchThresholdVariant>,
}

impl PitchThresholdSettings {
    /// Checks what neither frames nor a device decide.
    ///
    /// # Errors
    /// [`ClError::Refused`] for settings that no frame can be compared with.
    pub fn check(&self) -> Result<(), ClError> {
        check_threshold(self.threshold, largest_depth(self.bit_depth))?;
        self.comparisons()?;
        self.scale_thresholds_q8()?;
        if let (Some(lattice), 1..) = (self.turned(), self.scales) {
            return Err(ClError::Refused(format!(
                "scales={} compares blocks of pixels along rows and columns, but {} is turned against them; set \
                 scales=0, or turn the camera until the vectors are parallel to the rows and columns",
                self.scales,
                in_words(&lattice)
            )));
        }
        Ok(())
    }

    /// The lattice, if rows and columns are not compared.
    pub fn turned(&self) -> Option<Lattice> {
        self.lattice.filter(|lattice| lattice.pitches().is_none())
    }

    /// The pitches along x and y at which rows and columns are compared, px; 0 for none.
    pub fn axis_pitches(&self) -> [f64; 2] {
        match self.lattice {
            Some(lattice) => lattice.pitches().unwrap_or_default(),
            // Other numbers are refused, not taken for 0.
            None => {
                [self.pitch_x, self.pitch_y].map(|pitch| if pitch <= 0.0 { 0.0 } else { pitch })
            }
        }
    }

    /// Width and height of the box around a cell of the pattern, px; 0 along an axis without a pitch.
    pub(super) fn cell_box(&self) -> [f64; 2] {
        match self.turned() {
            Some(lattice) => lattice.cell_box(),
            None => self.axis_pitches(),
        }
    }

    /// Lengths of the vectors in use, px; 0 for none. Those along the axes are the pitches.
    pub(super) fn lengths(&self) -> [f64; 2] {
        match self.turned() {
            Some(lattice) => lattice.lengths(),
            None => self.axis_pitches(),
        }
    }

    /// The comparisons in use: along x, then along y, or along each vector, at every multiple.
    ///
    /// # Errors
    /// [`ClError::Refused`] if there is no comparison, or for a distance under a pixel.
    pub fn comparisons(&self) -> Result<Vec<VectorComparison>, ClError> {
        let along_axes = self.along_axes()?;
        let Some(lattice) = self.turned() else {
            return Ok(along_axes.iter().map(VectorComparison::from).collect());
        };
        let mut comparisons = Vec::new();
        for (number, &v) in lattice.vectors().iter().enumerate() {
            for &multiple in &self.multiples {
                comparisons.push(VectorComparison::new(number, v, multiple).ok_or_else(|| {
                    ClError::Refused(format!(
                        "the vector ({}, {}) of lattice times {multiple} (multiples) is longer than any frame; lower \
                         multiples, or set a shorter vector",
                        v[0], v[1]
                    ))
                })?);
            }
        }
        Ok(comparisons)
    }

    /// The comparisons along x, then along y, each at every multiple; none with a lattice that is turned.
    ///
    /// # Errors
    /// [`ClError::Refused`] if there is no comparison at all, or for a distance under a pixel.
    pub fn along_axes(&self) -> Result<Vec<Comparison>, ClError> {
        let [pitch_x, pitch_y] = self.axis_pitches();
        if [pitch_x, pitch_y] == [0.0; 2] && self.turned().is_none() && !self.may_be_blind {
            return Err(ClError::Refused(
                "no pitch is set; set pitch-x to the distance after which the pattern repeats along a \
                 row in pixels, pitch-y to that along a column, or both, or set lattice"
                    .into(),
            ));
        }
        if self.multiples.is_empty() || self.multiples.contains(&0) {
            return Err(ClError::Refused(
                "multiples is empty or contains 0; set it to positive numbers, such as \"<1>\""
                    .into(),
            ));
        }
        let mut comparisons = Vec::new();
        for (axis, pitch, name) in [(Axis::X, pitch_x, "pitch-x"), (Axis::Y, pitch_y, "pitch-y")] {
            if pitch <= 0.0 {
                continue;
            }
            for &multiple in &self.multiples {
                comparisons.push(Comparison::new(axis, pitch, multiple).ok_or_else(|| {
                    let times = if multiple == 1 {
                        String::new()
                    } else {
                        format!(" times {multiple} (multiples)")
                    };
                    ClError::Refused(if pitch < 1.0 {
                        format!(
                            "{name}={pitch}{times} is less than 1 pixel; set {name} to the distance after which the \
                             pattern repeats, at least 1, or to 0 to compare nothing along this axis"
                        )
                    } else {
                        format!("{name}={pitch}{times} is longer than any frame; lower {name} or multiples")
                    })
                })?);
            }
        }
        Ok(comparisons)
    }
}

impl PitchThresholdSettings {
    /// The thresholds of the coarser levels, 1/256 grey level.
    ///
    /// # Errors
    /// [`ClError::Refused`] for a number of levels, factors or thresholds that cannot be used.
    pub(super) fn scale_thresholds_q8(&self) -> Result<Vec<i64>, ClError> {
        if self.scales > MAX_SCALES {
            return Err(ClError::Refused(format!(
                "scales={} is too many; set it to 0..{MAX_SCALES}",
                self.scales
            )));
        }
        let Some(factors) = self.scale_factors.get(..self.scales) else {
            return Err(ClError::Refused(format!(
                "scale-factors has {} numbers, but scales={} needs one for each level; add the missing ones, or \
                 lower scales",
                self.scale_factors.len(),
                self.scales
            )));
        };
        let threshold = |(level, factor): (usize, &f64)| {
            let theta = (256.0 * self.threshold * factor).round();
            if (1.0..=1e9).contains(&theta) {
                return Ok(theta as i64);
            }
            let level = level + 1;
            Err(ClError::Refused(if theta < 1.0 {
                format!(
                    "threshold={} times scale-factor {factor:?} of level {level} is under 1/512 grey level, so nearly every \
                     block would be marked; raise the factor or the threshold, or set scales to less than {level}",
                    self.threshold
                )
            } else {
                format!(
                    "scale-factor {factor:?} of level {level} is too large to find a stain; lower it, or set scales to \
                     less than {level}"
                )
            }))
        };
        factors.iter().enumerate().map(threshold).collect()
    }

    /// The edge margin of a comparison at a multiple that judges pixels inward: the one at the smallest multiple. At
    /// several pitches both neighbours on one side would be so far away that shading and a slightly
    /// wrong pitch show as differences (docs/quality.md).
    pub(super) fn inward(&self, multiple: u32) -> Option<usize> {
        let is_nearest = self.multiples.iter().min() == Some(&multiple);
        (self.borders == Borders::Inward && is_nearest).then_some(self.edge_margin as usize)
    }

    /// The regions of interest in a plane `width` pixels wide of which `window` is processed. In a web
    /// regions count from the web's first row.
    pub(super) fn regions(&self, width: usize, window: &Window) -> Vec<Rect> {
        if self.rois.is_empty() {
            return vec![Rect::new(0, 0, width, window.height)];
        }
        let web_row = window.web_row as usize;
        let row = |y: usize| y.saturating_sub(web_row).min(window.height);
        let in_plane = |roi: &Rect| Rect {
            y0: row(roi.y0),
            y1: row(roi.y1),
            ..*roi
        };
        self.rois.iter().map(in_plane).collect()
    }

    /// The processed pixels that at least one of the comparisons judges in a region if no pixel is
    /// ignored, as rectangles without common pixels; row 0 is the first processed row.
    pub(super) fn judged(
        &self,
        comparisons: &[VectorComparison],
        width: usize,
        window: &Window,
    ) -> Vec<Rect> {
        let rows = Rect::new(0, window.first, width, window.rows);
        let judged: Vec<Rect> = comparisons
            .iter()
            .flat_map(|c| c.judged(width, window.height, self.inward(c.multiple)))
            .map(|rect| rect.intersect(&rows))
            .filter(|rect| !rect.is_empty())
            .collect();
        let mut judged = union_of(&judged, &self.regions(width, window));
        for rect in &mut judged {
            rect.y0 -= window.first;
            rect.y1 -= window.first;
        }
        judged
    }

    /// Number of pixels of a `width` × `height` frame that at least one of the comparisons judges in a
    /// region if no pixel is ignored.
    pub fn judged_pixels(
        &self,
        comparisons: &[VectorComparison],
        width: usize,
        height: usize,
    ) -> u64 {
        area(&self.judged(comparisons, width, &Window::frame(height)))
    }

    /// Rows of a web that a strip needs above and below it.
    pub(super) fn reach(&self, comparisons: &[VectorComparison]) -> Reach {
        // Whether a defect in a strip's last row ends there is known when the next row has come, or the web
        // has ended.
        let mut reach = Reach {
            both: 1,
            ..Reach::default()
        };
        for comparison in comparisons {
            let [beside, margin] = comparison.distance.margins();
            let [_, far] = comparison.double.margins();
            reach.both = reach.both.max(margin);
            if self.inward(comparison.multiple).is_some() {
                reach.inward = reach.inward.max(far);
                reach.first = reach.first.max(margin);
                if beside > 0 {
                    // The pixels of all rows that lack a neighbour on the left or the right.
                    reach.both = reach.both.max(far);
                }
            }
        }
        if self.scales > 0 {
            // A block begins above its last pixel, and its mean reaches beyond the block. The pixels in the means of
            // the block and of its neighbours are repaired by their own neighbours.
            let margin = Self::margin_y(comparisons);
            reach.both += margin + 2 * scales::behind(self.scales);
        }
        if self.contrast != Contrast::Off {
            let [_, height] = self.cell_box();
            reach.tile = nominal_height(height);
        }
        reach
    }

    /// The largest margin along y.
    fn margin_y(comparisons: &[VectorComparison]) -> usize {
        let margins = comparisons.iter().map(|c| c.distance.margins());
        margins.map(|[_, y]| y).max().unwrap_or(0)
    }

    /// The height of the frame, or of a web: so large that a distance along y never exceeds it.
    pub(super) fn judged_height(&self, height: usize) -> usize {
        if self.line_scan { 1 << 32 } else { height }
    }

    /// Number of pixels of the regions of interest.
    pub(super) fn wanted_pixels(&self, width: usize, height: usize) -> u64 {
        let whole = [Rect::new(0, 0, width, height)];
        let rois = if self.rois.is_empty() {
            &whole[..]
        } else {
            &self.rois
        };
        area(&union_of(&whole, rois))
    }

    /// Refuses a direction in which no pixel of the frame can be judged: frames would pass without
    /// a judgement along it. A web has no last row, and no row of it is examined for ignored pixels.
    pub(super) fn check_reach(
        &self,
        width: usize,
        height: usize,
        ignored: Option<&Bitmap>,
    ) -> Result<(), ClError> {
        let ignored = ignored.filter(|_| !self.line_scan);
        let height = self.judged_height(height);
        let comparisons = self.comparisons()?;
        for (vector, axis) in ["pitch-x", "pitch-y"].into_iter().enumerate() {
            let along = comparisons.iter().filter(|c| c.vector == vector);
            let along: Vec<VectorComparison> = along.copied().collect();
            let Some(nearest) = along.iter().min_by_key(|c| c.multiple) else {
                continue;
            };
            let [x, y] = nearest.distance.margins();
            let lattice = self.turned();
            let turned = lattice.and_then(|lattice| lattice.vectors().get(vector).copied());
            let (name, neighbours) = match turned {
                Some(v) => (
                    format!("the vector ({}, {}) of lattice", v[0], v[1]),
                    format!("neighbours {x} columns and {y} rows away on both sides"),
                ),
                None => (
                    axis.to_owned(),
                    format!("a neighbour {} pixels away on both sides", x.max(y)),
                ),
            };
            let lower = match turned {
                Some(_) => "set shorter vectors".to_owned(),
                None => format!("lower {name}, set it to 0"),
            };
            if self.judged_pixels(&along, width, height) == 0 {
                return Err(ClError::Refused(format!(
                    "no pixel of the {width}x{height} frame can be judged with {name}, because a pixel \
                     needs {neighbours} within the frame; {lower}, or set rois to regions that have such \
                     pixels"
                )));
            }
            if let Some(ignored) = ignored
                && ignored.count_judged(&self.judged(&along, width, &Window::frame(height))) == 0
            {
                return Err(ClError::Refused(format!(
                    "no pixel of the {width}x{height} frame can be judged with {name}, because \
                     mask and regions of ignore cover all that have neighbours; leave pixels \
                     to judge{}",
                    if turned.is_some() {
                        String::new()
                    } else {
                        format!(", or set {name} to 0")
                    }
                )));
            }
        }
        Ok(())
    }
}

impl PitchThresholdSettings {
    /// The bits of [`Self::flags`] that `pitch_threshold_words.cl` and `pitch_threshold_wide.cl` are compiled for.
    pub(super) fn mode(&self) -> i32 {
        self.flags() & (MINIMUM | MATCHED | INWARD)
    }

    /// The kernels' argument `flags`.
    pub(super) fn flags(&self) -> i32 {
        let mut flags = 0;
        if self.compare == Compare::Minimum {
            flags |= MINIMUM;
        }
        if self.match_center {
            flags |= MATCHED;
        }
        if self.polarity != Polarity::Dark {
            flags |= BRIGHT;
        }
        if self.polarity != Polarity::Bright {
            flags |= DARK;
        }
        if self.borders == Borders::Inward {
            flags |= INWARD;
        }
        flags
    }
}

/// A lattice as the property shows it.
fn in_words(lattice: &Lattice) -> String {
    let numbers = lattice.vectors().as_flattened();
    let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
    format!("lattice=<{}>", numbers.join(", "))
}

/// Refuses a forced variant that the device cannot run.
pub(super) fn check_forced(
    settings: &PitchThresholdSettings,
    layout: &FrameLayout,
) -> Result<(), ClError> {
    let refused = |variant, why| Err(ClError::Refused(format!("{variant:?} {why}")));
    match settings.variant {
        Some(
            variant @ (PitchThresholdVariant::Words
            | PitchThresholdVariant::Wide
            | PitchThresholdVariant::Fixed),
        ) if settings.image => refused(variant, "reads buffers, not images"),
        Some(variant @ PitchThresholdVariant::Fixed) if layout.sample != SampleType::U8 => {
            refused(variant, "compares 8-bit samples only")
        }
        _ => Ok(()),
    }
}
