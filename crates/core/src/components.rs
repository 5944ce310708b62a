//! Defects of a packed mask: 8-connected components, near ones joined, the largest listed.
//!
//! Four steps over arrays that the [`Finder`] reuses: `scan` reads the mask as 64-bit words into
//! runs and joins runs that touch, `forest` sums up each component, `nearby` joins components whose
//! boxes are near, and [`Finder::find`] selects the largest and numbers the runs by defect.
//!
//! # Source
//! docs/semantics.md, "Packed mask" and "Defects and verdict".

mod columns;
mod forest;
mod nearby;
mod scan;

use forest::Forest;
use nearby::Nearby;
use scan::Scan;

/// Which defects are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Defects of fewer marked pixels are left out.
    pub min_area: u32,
    /// Components are one defect if the nearest pixels of their boxes are at most this far apart
    /// along x and along y: 0 where the boxes share a pixel, 1 where they touch.
    pub merge_distance: u32,
    /// Maximum number of listed defects; the largest ones are listed.
    pub max_defects: usize,
}

/// A horizontal run of marked pixels of one listed defect: `x0 ≤ x < x1` in row `y`.
///
/// Shared with kernels; twin: `run_t` of `pitch_mask.cl`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Run {
    /// First column.
    pub x0: u32,
    /// One past the last column.
    pub x1: u32,
    /// Row.
    pub y: u32,
    /// Index into [`Found::shapes`].
    pub defect: u32,
}

const _: () = assert!(size_of::<Run>() == 16);

/// Box, area and centroid of a defect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DefectShape {
    /// Left edge of the box in pixels.
    pub x: u32,
    /// Top edge of the box in pixels.
    pub y: u32,
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
}

/// The defects of one mask.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// The listed defects: largest area first, ties in the scan order of their first pixels.
    pub shapes: Vec<DefectShape>,
    /// The runs of the listed defects, in scan order.
    pub runs: Vec<Run>,
    /// Whether there were more defects than `max_defects`.
    pub overflow: bool,
}

/// Box and sums over the pixels of one or several components.
#[derive(Debug, Clone, Copy)]
struct Blob {
    x0: u32,
    x1: u32,
    y0: u32,
    y1: u32,
    area: u64,
    /// Sum of `2·x + 1`: twice the pixel centres, which makes it an integer.
    sum_x: u64,
    /// Sum of `2·y + 1`.
    sum_y: u64,
}

impl Blob {
    /// The blob of columns `x0..x1` of row `y`.
    fn of_run(x0: u32, x1: u32, y: u32) -> Self {
        let (start, end) = (u64::from(x0), u64::from(x1));
        Self {
            x0,
            x1,
            y0: y,
            y1: y.saturating_add(1),
            area: end - start,
            // The sum of the odd numbers below 2n is n².
            sum_x: end * end - start * start,
            sum_y: (end - start) * (2 * u64::from(y) + 1),
        }
    }

    fn add(&mut self, other: &Self) {
        self.x0 = self.x0.min(other.x0);
        self.x1 = self.x1.max(other.x1);
        self.y0 = self.y0.min(other.y0);
        self.y1 = self.y1.max(other.y1);
        self.area += other.area;
        self.sum_x = self.sum_x.saturating_add(other.sum_x);
        self.sum_y = self.sum_y.saturating_add(other.sum_y);
    }

    fn shape(&self) -> DefectShape {
        let twice_area = (2 * self.area) as f64;
        DefectShape {
            x: self.x0,
            y: self.y0,
            width: self.x1 - self.x0,
            height: self.y1 - self.y0,
            area: u32::try_from(self.area).unwrap_or(u32::MAX),
            centroid_x: self.sum_x as f64 / twice_area,
            centroid_y: self.sum_y as f64 / twice_area,
        }
    }
}

/// Place in the list of a defect that is not listed.
const UNLISTED: u32 = u32::MAX;

/// Finds defects. The working memory is kept and grows to what the busiest frame needs.
#[derive(Debug, Default)]
pub struct Finder {
    scan: Scan,
    /// Sets of components: one set per defect.
    defects: Forest,
    nearby: Nearby,
    /// Ranks of the defects of at least `min_area` pixels.
    ranks: Vec<u64>,
    /// By defect: its place in the list.
    places: Vec<u32>,
    found: Found,
}

impl Finder {
    /// The defects of a packed mask of `width` × `height` pixels and `stride` bytes per row.
    ///
    /// Bits past the width and bytes past the row are ignored. Rows that do not lie completely in
    /// `mask` count as clear. `width`, `height` and a defect's area are below 2³². Centroids are
    /// the nearest f64 while `width²·height` and `width·height²` are below 2⁵³.
    ///
    /// Time: one pass over the mask's bytes, then near-linear in the number of runs (at most half
    /// of the pixels) and of components (at most a quarter). Exception: beside many narrow
    /// components of different depths, each other component within a large `merge_distance` of them
    /// takes up to `merge_distance` steps (see `nearby`). The largest defects are selected first,
    /// and only they are sorted. Memory: 16 bytes per run and some 60 per component, allocated only
    /// when a frame needs more than every frame before.
    pub fn find(
        &mut self,
        mask: &[u8],
        stride: usize,
        width: usize,
        height: usize,
        limits: &Limits,
    ) -> &Found {
        let found = &mut self.found;
        self.scan.read(mask, stride, width, height, &mut found.runs);
        let (labels, blobs) = self.scan.components();
        self.nearby.join(
            blobs,
            width,
            height,
            limits.merge_distance,
            &mut self.defects,
        );
        self.defects.fold(blobs);

        let min_area = u64::from(limits.min_area);
        self.ranks.clear();
        self.ranks.extend(
            (0..)
                .zip(blobs.iter())
                .filter(|(_, blob)| blob.area >= min_area)
                .map(|(defect, blob)| rank(blob.area, defect)),
        );
        found.overflow = self.ranks.len() > limits.max_defects;
        if found.overflow {
            self.ranks.select_nth_unstable(limits.max_defects);
            self.ranks.truncate(limits.max_defects);
        }
        self.ranks.sort_unstable();

        self.places.clear();
        self.places.resize(blobs.len(), UNLISTED);
        found.shapes.clear();
        for (place, &rank) in (0..).zip(&self.ranks) {
            let defect = defect_of(rank);
            self.places[defect] = place;
            found.shapes.push(blobs[defect].shape());
        }

        // Maps each label to its component's defect, then to the defect's place.
        for label in labels.iter_mut() {
            let defect = self.defects.number(*label);
            *label = self.places[defect as usize];
        }
        keep_listed(&mut found.runs, labels);
        found
    }
}

/// A sort key: lower for a larger area, then for a defect earlier in scan order.
fn rank(area: u64, defect: u32) -> u64 {
    let area = u32::try_from(area).unwrap_or(u32::MAX);
    u64::from(!area) << 32 | u64::from(defect)
}

/// The defect of a rank.
fn defect_of(rank: u64) -> usize {
    rank as u32 as usize
}

/// Replaces each run's label by the place of its defect, and drops runs of unlisted defects.
fn keep_listed(runs: &mut Vec<Run>, places: &[u32]) {
    let mut kept = 0;
    for i in 0..runs.len() {
        let mut run = runs[i];
        run.defect = places[run.defect as usize];
        // Write every run and let the next one overwrite an unlisted run: a branch would be
        // mispredicted on noise.
        runs[kept] = run;
        kept += usize::from(run.defect != UNLISTED);
    }
    runs.truncate(kept);
}
