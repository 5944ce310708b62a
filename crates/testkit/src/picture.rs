//! Masks, their memory layouts, and the golden reference's defects.

use clinspect_core::components::{Finder, Found, Limits};

use crate::reference::pitch_threshold::defects;

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
        let len = self.offset + stride * picture.height - self.gap;
        let mut packed = vec![0xff; len];
        for (at, _) in picture.mask.iter().enumerate().filter(|(_, set)| !**set) {
            let (x, y) = (at % picture.width, at / picture.width);
            packed[self.offset + y * stride + x / 8] &= !(0x80 >> (x % 8));
        }
        packed
    }
}

/// Finds the defects of a picture packed in this layout.
pub fn find(finder: &mut Finder, picture: &Picture, layout: MaskLayout, limits: &Limits) -> Found {
    finder
        .find(
            &layout.pack(picture)[layout.offset..],
            layout.stride(picture.width),
            picture.width,
            picture.height,
            limits,
        )
        .clone()
}

/// Compares with the reference; returns the first difference.
pub fn compare(found: &Found, picture: &Picture, limits: &Limits) -> Result<(), String> {
    let width = picture.width;
    // Each pixel gets the number of its run's defect as its difference. If mean and peak over a
    // defect of the reference are its number, all its pixels have that number.
    let mut numbers: Vec<Option<f64>> = vec![Some(0.0); picture.mask.len()];
    let mut painted = 0;
    let mut after = 0;
    for run in &found.runs {
        let (x0, x1) = (run.x0 as usize, run.x1 as usize);
        let row = run.y as usize * width;
        if x0 >= x1 || x1 > width || run.y as usize >= picture.height {
            return Err(format!("{run:?} is empty or leaves the picture"));
        }
        // Adjacent runs of a row would be one run.
        if row + x0 < after {
            return Err(format!("{run:?} is not in scan order"));
        }
        let past_left = x0 == 0 || !picture.mask[row + x0 - 1];
        let past_right = x1 == width || !picture.mask[row + x1];
        if !past_left || !past_right || picture.mask[row + x0..row + x1].contains(&false) {
            return Err(format!("{run:?} is not a whole run of marked pixels"));
        }
        after = row + x1;
        painted += u64::from(run.x1 - run.x0);
        numbers[row + x0..row + x1].fill(Some(f64::from(run.defect) + 1.0));
    }

    let (expected, overflow) = defects(
        &picture.mask,
        &numbers,
        width,
        picture.height,
        limits.min_area,
        limits.merge_distance,
        limits.max_defects,
    );
    if found.overflow != overflow || found.shapes.len() != expected.len() {
        return Err(format!(
            "{} defects, overflow {}, expected {}, {overflow}",
            found.shapes.len(),
            found.overflow,
            expected.len()
        ));
    }
    for (number, (shape, defect)) in (1..).zip(found.shapes.iter().zip(&expected)) {
        let same = (shape.x, shape.y, shape.width, shape.height, shape.area)
            == (defect.x, defect.y, defect.width, defect.height, defect.area)
            && shape.centroid_x as f32 == defect.centroid_x
            && shape.centroid_y as f32 == defect.centroid_y;
        if !same {
            return Err(format!("{shape:?}, expected {defect:?}"));
        }
        if (defect.mean_difference, defect.peak_difference) != (number as f32, number as f32) {
            return Err(format!("the runs do not cover {defect:?}"));
        }
    }
    let listed: u64 = expected.iter().map(|defect| u64::from(defect.area)).sum();
    if painted != listed {
        return Err(format!("the runs cover {painted} pixels, not {listed}"));
    }
    Ok(())
}
