//! Masks, their memory layouts, and the comparison of their defects with the golden reference.

use clinspect_core::components::{
    CONTINUED, CUT, Finder, Limits, Listed, MeasuredDefect, Run, RunDifference,
};

use crate::oracle::defects::{Defect, Rules, Web, defects_of_web};

/// A mask, one bool per pixel, row-major.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Pixels per row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Whether each pixel is marked.
    pub mask: Vec<bool>,
}

impl Picture {
    /// A picture of the pixels for which `marked` is true.
    pub fn of(width: usize, height: usize, marked: impl Fn(usize, usize) -> bool) -> Self {
        let mask = (0..width * height)
            .map(|at| marked(at % width, at / width))
            .collect();
        Self {
            width,
            height,
            mask,
        }
    }

    /// A picture from rows of text in which `#` is marked.
    pub fn drawn(rows: &[&str]) -> Self {
        Self::of(rows[0].len(), rows.len(), |x, y| {
            rows[y].as_bytes()[x] == b'#'
        })
    }

    /// A picture in which every pixel is marked with a probability of `percent`.
    pub fn noise(width: usize, height: usize, percent: u32, seed: u32) -> Self {
        let mut state = seed;
        let mask = (0..width * height)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 16) % 100 < percent
            })
            .collect();
        Self {
            width,
            height,
            mask,
        }
    }

    /// Marks the pixels of rectangles given as x, y, width, height, clipped to the picture.
    pub fn with_rectangles(mut self, rectangles: &[[usize; 4]]) -> Self {
        for &[left, top, width, height] in rectangles {
            for y in top..(top + height).min(self.height) {
                for x in left..(left + width).min(self.width) {
                    self.mask[y * self.width + x] = true;
                }
            }
        }
        self
    }
}

/// The memory layout of a packed mask.
#[derive(Clone, Copy, Debug)]
pub struct MaskLayout {
    /// Bytes before the first row.
    pub offset: usize,
    /// Bytes between the rows.
    pub gap: usize,
}

impl MaskLayout {
    /// Bytes from a row to the next.
    pub fn stride(self, width: usize) -> usize {
        width.div_ceil(8) + self.gap
    }

    /// Packs a picture; poisons every bit that is not a pixel. The bytes end with the last row.
    pub fn pack(self, picture: &Picture) -> Vec<u8> {
        let stride = self.stride(picture.width);
        let len = (self.offset + stride * picture.height).saturating_sub(self.gap);
        let mut packed = vec![0xff; len];
        for (at, _) in picture.mask.iter().enumerate().filter(|(_, set)| !**set) {
            let (x, y) = (at % picture.width, at / picture.width);
            packed[self.offset + y * stride + x / 8] &= !(0x80 >> (x % 8));
        }
        packed
    }
}

impl Picture {
    /// Some rows of the picture.
    pub fn rows(&self, rows: std::ops::Range<usize>) -> Self {
        Self {
            width: self.width,
            height: rows.len(),
            mask: self.mask[rows.start * self.width..rows.end * self.width].to_vec(),
        }
    }
}

/// The difference of a pixel of a web, in 1/512 grey level. Neighbours differ, some are equal, some 0.
fn difference(x: usize, y: usize) -> i32 {
    ((7 * x + 13 * y + x * y) % 9) as i32 * 37 - 148
}

/// The finest level that marks a pixel of a web; some pixels lack the pattern only. Coarser levels mark blocks.
fn level(x: usize, y: usize) -> Option<u32> {
    match (x / 4 + 3 * (y / 4)) % 6 {
        5 => None,
        level => Some(level as u32),
    }
}

/// What the device would measure for runs of the strip, which begins in row `first` of the web.
fn measure(runs: &[Run], strip: &Picture, first: usize) -> Vec<RunDifference> {
    let of_run = |run: &Run| {
        let mut result = RunDifference::default();
        let row = run.y as usize * strip.width;
        for x in (run.x0 as usize..run.x1 as usize).filter(|x| strip.mask[row + x]) {
            let y = first + run.y as usize;
            let d = difference(x, y);
            result.signs |= level(x, y).map_or(0, |level| 256 << level);
            result.sum += i64::from(d);
            result.signs |= match d.signum() {
                1 => 1,
                -1 => 2,
                _ => 4,
            };
            if i64::from(d.abs()) > result.peak.abs() {
                result.peak = d.into();
            }
        }
        result
    };
    runs.iter().map(of_run).collect()
}

/// The lists of a picture that is given to a finder as strips of `heights` rows.
///
/// # Errors
/// The first invalid run.
pub fn list(
    finder: &mut Finder,
    picture: &Picture,
    heights: &[usize],
    layout: MaskLayout,
    limits: &Limits,
) -> Result<Vec<Listed>, String> {
    let mut first = 0;
    let mut lists = Vec::new();
    for (i, height) in heights.iter().enumerate() {
        let strip = picture.rows(first..first + height);
        let ends = i + 1 == heights.len();
        // Every other strip without pixels is only passed.
        if i % 2 == 1 && !strip.mask.contains(&true) {
            finder.pass(strip.width, strip.height, limits, ends);
            lists.push(finder.list(&[]));
        } else {
            let packed = layout.pack(&strip);
            let mask = packed.get(layout.offset..).unwrap_or(&[]);
            let stride = layout.stride(strip.width);
            let runs = finder.scan(mask, stride, strip.width, strip.height, limits, ends);
            check_runs(runs, &strip)?;
            let measured = measure(runs, &strip, first);
            lists.push(finder.list(&measured));
        }
        first += height;
    }
    Ok(lists)
}

/// Whether the runs of columns are in scan order, begin and end with a marked pixel, and divide no run of marked
/// pixels.
fn check_runs(runs: &[Run], strip: &Picture) -> Result<(), String> {
    let width = strip.width;
    let mut after = 0;
    for run in runs {
        let (x0, x1) = (run.x0 as usize, run.x1 as usize);
        let row = run.y as usize * width;
        if x0 >= x1 || x1 > width || run.y as usize >= strip.height {
            return Err(format!("{run:?} is empty or leaves the strip"));
        }
        if row + x0 < after {
            return Err(format!("{run:?} is not in scan order"));
        }
        let past_left = x0 == 0 || !strip.mask[row + x0 - 1];
        let past_right = x1 == width || !strip.mask[row + x1];
        if !past_left || !past_right || !strip.mask[row + x0] || !strip.mask[row + x1 - 1] {
            return Err(format!(
                "{run:?} is not from a first to a last marked pixel"
            ));
        }
        after = row + x1;
    }
    Ok(())
}

/// Compares the lists of strips with the reference.
///
/// # Errors
/// The first difference.
pub fn compare(
    lists: &[Listed],
    picture: &Picture,
    heights: &[usize],
    limits: &Limits,
) -> Result<(), String> {
    let width = picture.width;
    let differences: Vec<Option<f64>> = (0..picture.mask.len())
        .map(|at| Some(f64::from(difference(at % width, at / width)) / 512.0))
        .collect();
    let levels: Vec<Option<u32>> = (0..picture.mask.len())
        .map(|at| level(at % width, at / width))
        .collect();
    let web = Web {
        mask: &picture.mask,
        differences: &differences,
        levels: &levels,
        width,
    };
    let rules = Rules {
        min_area: limits.min_area,
        merge_distance: limits.merge_distance,
        max_defects: limits.max_defects,
        max_defect_rows: limits.max_defect_rows,
    };
    let expected = defects_of_web(web, heights, &rules);
    if lists.len() != expected.len() {
        return Err(format!("{} lists, not {}", lists.len(), expected.len()));
    }
    for (strip, (list, expected)) in lists.iter().zip(&expected).enumerate() {
        for (found, defect) in list.defects.iter().zip(&expected.defects) {
            if !equals(found, defect) {
                return Err(format!("strip {strip}: {found:?}, expected {defect:?}"));
            }
        }
        let found = (list.defects.len(), list.overflow, list.largest_open);
        let wanted = (
            expected.defects.len(),
            expected.overflow,
            expected.largest_open,
        );
        if found != wanted {
            return Err(format!(
                "strip {strip}: defects, overflow, largest open: {found:?}, expected {wanted:?}"
            ));
        }
    }
    Ok(())
}

/// Whether a defect is that of the reference. All fields are exact except the axes: the reference
/// computes the eigenvalues in another way.
pub fn equals(found: &MeasuredDefect, defect: &Defect) -> bool {
    let [major, minor] = [found.major_axis, found.minor_axis].map(|axis| axis * axis);
    let tolerance = 1e-9 * (1.0 + major);
    let near = |a: f64, b: f64| (a - b).abs() <= tolerance;
    // Without a long axis any orientation is right; opposite directions are the same.
    let turned = 2.0 * (found.orientation - defect.orientation);
    let flags = u16::from(defect.is_continued) * CONTINUED + u16::from(defect.is_cut) * CUT;
    (i64::from(found.x), i64::from(found.y)) == (defect.x, defect.y)
        && (found.width, found.height) == (defect.width, defect.height)
        && (found.area, found.boundary_length) == (defect.area, defect.boundary_length)
        && (found.centroid_x, found.centroid_y) == (defect.centroid_x, defect.centroid_y)
        && found.mean_difference == defect.mean_difference
        && found.peak_difference == defect.peak_difference
        && (found.polarity, found.flags) == (defect.polarity, flags)
        && u32::from(found.level) == defect.level
        && near(major, defect.major_axis * defect.major_axis)
        && near(minor, defect.minor_axis * defect.minor_axis)
        && near((major - minor) * turned.sin(), 0.0)
        && ((major - minor) * turned.cos() >= -tolerance)
}
