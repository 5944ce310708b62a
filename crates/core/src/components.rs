//! Defects of an endless web, strip by strip: groups of near marked pixels, the largest listed.
//!
//! A frame is a web of one strip. For each strip the [`Finder`] runs these steps:
//!
//! 1. `rows` reads the packed mask as words and finds the spans of marked columns of each row.
//! 2. With a merge distance, `dilate` widens every pixel to the right and downward first. Pixels within
//!    reach of each other then touch, so only touching spans need to be joined.
//! 3. `touches` finds the spans that touch spans of the row before (the *front*). `labels` joins them, and counts
//!    the pixels of each group. Box and moments are not computed yet: noise has many groups, and few are listed.
//! 4. The groups in the last row of the front stay open. The others are closed; the largest are listed.
//! 5. `sums` adds up the pixels of the listed and of the open groups.
//!
//! Noise makes many runs, and steps 3 and 5 then take most of the time of a frame. Without a merge distance, and
//! while no defect can be closed by force, `parts` divides the rows of such a strip into bands. A thread reads each
//! band; then the bands are joined in their order. The list is the same.
//!
//! Between strips the finder keeps the sums of open defects, the front, the last row, and the counters
//! of the dilation: some bytes per column.
//!
//! # Source
//! docs/semantics.md, "Packed mask", "Defects and verdict" and "A web of strips".

mod band;
mod dilate;
mod finder;
mod labels;
mod parts;
mod rows;
mod sums;
mod touches;

pub use finder::Finder;

/// Components of a colour: red, green and blue.
pub const COMPONENTS: usize = 3;

/// Flag of a defect: it continues a defect that was closed by force.
pub const CONTINUED: u16 = 1;
/// Flag of a defect: it was closed by force.
pub const CUT: u16 = 2;

/// Which defects are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Defects of fewer marked pixels are left out.
    pub min_area: u32,
    /// Pixels are one defect if at most this many clear columns and rows lie between them.
    pub merge_distance: u32,
    /// Maximum number of listed defects per strip; the largest ones are listed.
    pub max_defects: usize,
    /// A strip with more runs is not listed.
    pub max_runs: usize,
    /// A defect that is open after so many rows is closed by force.
    pub max_defect_rows: u32,
}

/// A run of columns of one row whose marked pixels are of one listed or open defect: `x0 ≤ x < x1` in row `y`.
///
/// The first and the last column are marked; between them pixels may be clear. A run of marked pixels without gaps is
/// never divided, so there are at most as many runs of columns. In noise there are many fewer: about one per
/// 64 columns.
///
/// Shared with kernels; twin: `run_t` of `mask_expand.cl`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Run {
    /// First column.
    pub x0: u32,
    /// One past the last column.
    pub x1: u32,
    /// Row of the strip.
    pub y: u32,
    /// Number of the defect; the listed ones come first, in the order of the list.
    pub defect: u32,
}

const _: () = assert!(size_of::<Run>() == 16);

/// The differences of one run's pixels, in 1/512 grey level, or, if `is_fine` is 1, in 1/131072.
///
/// Shared with kernels; twin: `run_difference_t` of `mask_expand.cl`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct RunDifference {
    /// Sum over the run.
    pub sum: i64,
    /// The difference of largest magnitude, the leftmost of equal ones.
    pub peak: i64,
    /// Bit 0: a pixel is brighter; bit 1: a pixel is darker; bit 2: a pixel does not differ; bit 3: the
    /// pattern is missing at a pixel. Bit 8 + k: k is the finest level that marks a pixel.
    pub signs: u32,
    /// 1 or 0: the unit.
    pub is_fine: u32,
}

const _: () = assert!(size_of::<RunDifference>() == 24);

impl RunDifference {
    /// The differences of this run and of `next`, which lies to the right in the same row and has the same unit, unless
    /// this run is the default.
    #[must_use]
    pub fn joined(self, next: &Self) -> Self {
        let is_larger = next.peak.unsigned_abs() > self.peak.unsigned_abs();
        Self {
            sum: self.sum + next.sum,
            peak: if is_larger { next.peak } else { self.peak },
            signs: self.signs | next.signs,
            is_fine: self.is_fine | next.is_fine,
        }
    }
}

/// A defect. Coordinates are relative to row 0 of the strip in which the defect closed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MeasuredDefect {
    /// Left edge of the box in pixels.
    pub x: i32,
    /// Top edge of the box in pixels; negative if the defect began in an earlier strip.
    pub y: i32,
    /// Width of the box in pixels.
    pub width: u32,
    /// Height of the box in pixels.
    pub height: u32,
    /// Marked pixels.
    pub area: u32,
    /// Mean of the pixel centres along x; the centre of pixel 0 is 0.5.
    pub centroid_x: f64,
    /// Mean of the pixel centres along y; the centre of pixel 0 is 0.5.
    pub centroid_y: f64,
    /// The component of the colour that marks most of the pixels, if components are judged apart. The differences, polarity
    /// and level are then those of the pixels that this component marks.
    pub component: Option<usize>,
    /// Number of the part of the frame that has the defect; 0: frames are compared whole.
    pub part: u32,
    /// Mean difference of the pixels, grey levels; positive is brighter.
    pub mean_difference: f64,
    /// Difference of largest magnitude, grey levels; the first in scan order of equal ones.
    pub peak_difference: f64,
    /// 1 if all pixels are brighter, -1 if all are darker, otherwise 0.
    pub polarity: i32,
    /// [`CONTINUED`], [`CUT`].
    pub flags: u16,
    /// The pattern is missing at a pixel.
    pub is_missing: bool,
    /// The finest level that marks a pixel; 0 also if no level does.
    pub level: u8,
    /// Long axis of the ellipse with the same second moments, pixels.
    pub major_axis: f64,
    /// Short axis of that ellipse, pixels; 0 for pixels on a line.
    pub minor_axis: f64,
    /// Direction of the long axis, radians from +x towards +y.
    pub orientation: f64,
    /// Sides between a pixel of the defect and a pixel that is not of the defect.
    pub boundary_length: u32,
}

/// The defects that close with a strip.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listed {
    /// Largest area first, ties in the scan order of their first pixels in the web.
    pub defects: Vec<MeasuredDefect>,
    /// There were more defects than are listed.
    pub overflow: bool,
    /// Area of the largest defect that is still open.
    pub largest_open: u64,
}
