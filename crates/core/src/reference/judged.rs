//! The pixels that are judged, and sums of the mean over them.

use std::iter::zip;

use super::Model;
use crate::{ignored::Bitmap, region::Rect};

/// Number of pixels, and sums of their means in 1/256 grey level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of pixels.
    pub pixels: u64,
    /// Sum of the means.
    pub sum: u64,
    /// Sum of the squared means.
    pub squares: u128,
}

impl Totals {
    fn add(&mut self, mean: u32) {
        self.pixels += 1;
        self.sum += u64::from(mean);
        self.squares += u128::from(mean) * u128::from(mean);
    }
}

/// The judged pixels of a model's frames.
#[derive(Debug, Clone)]
pub struct Judged {
    width: usize,
    /// 1 where a pixel is judged; `None`: everywhere.
    bitmap: Option<Bitmap>,
    rows: Vec<Totals>,
}

impl Judged {
    /// The pixels inside one of `rois` (empty: the whole frame) that are not ignored.
    pub fn new(model: &Model, rois: &[Rect], ignored: Option<&Bitmap>) -> Self {
        let [width, height] = model.size();
        let is_in = |r: &Rect, x, y| r.x0 <= x && x < r.x1 && r.y0 <= y && y < r.y1;
        let bitmap = (!rois.is_empty() || ignored.is_some()).then(|| {
            Bitmap::from_pixels(width, height, |x, y| {
                (rois.is_empty() || rois.iter().any(|roi| is_in(roi, x, y)))
                    && !ignored.is_some_and(|ignored| ignored.get(x, y))
            })
        });
        let mut judged = Self {
            width,
            bitmap,
            rows: Vec::new(),
        };
        let row_totals = |(y, means): (usize, &[u32])| {
            let mut totals = Totals::default();
            for (x, &mean) in means.iter().enumerate() {
                if judged.is_judged(x, y) {
                    totals.add(mean);
                }
            }
            totals
        };
        let rows = model.mean().chunks_exact(width).enumerate();
        judged.rows = rows.map(row_totals).collect();
        judged
    }

    /// Whether a pixel is judged.
    pub fn is_judged(&self, x: usize, y: usize) -> bool {
        self.bitmap.as_ref().is_none_or(|bitmap| bitmap.get(x, y))
    }

    /// The judged pixels; `None`: all.
    pub fn bitmap(&self) -> Option<&Bitmap> {
        self.bitmap.as_ref()
    }

    /// The totals over the judged pixels of a rectangle in the frame. `model` is the one given to `new`.
    pub fn over(&self, model: &Model, rect: &Rect) -> Totals {
        let mut over = Totals::default();
        if rect.is_empty() {
            return over;
        }
        let means = model.mean().chunks_exact(self.width);
        let rows = zip(means, &self.rows).enumerate().skip(rect.y0);
        for (y, (means, row)) in rows.take(rect.height()) {
            // The rectangle lacks a few columns at most, so those are subtracted.
            let mut beside = Totals::default();
            for x in (0..rect.x0).chain(rect.x1..self.width) {
                if self.is_judged(x, y) {
                    beside.add(means.get(x).copied().unwrap_or(0));
                }
            }
            over.pixels += row.pixels - beside.pixels;
            over.sum += row.sum - beside.sum;
            over.squares += row.squares - beside.squares;
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_over_a_rectangle_count_its_judged_pixels() {
        let mean: Vec<u32> = (0..70).map(|i| i * i).collect();
        let model = Model::new([10, 7], 8, 1, mean, vec![0; 70]).expect("a model");
        let rois = [Rect::new(1, 1, 6, 5), Rect::new(4, 0, 5, 3)];
        let ignored = Bitmap::from_pixels(10, 7, |x, y| (x + y) % 4 == 0);
        for (rois, ignored) in [(&[][..], None), (&rois, None), (&rois, Some(&ignored))] {
            let judged = Judged::new(&model, rois, ignored);
            for rect in [
                Rect::new(0, 0, 10, 7),
                Rect::new(2, 1, 7, 4),
                Rect::new(0, 0, 0, 0),
            ] {
                let mut expected = Totals::default();
                for y in rect.y0..rect.y1 {
                    for x in rect.x0..rect.x1 {
                        let inside =
                            |r: &Rect| (r.x0..r.x1).contains(&x) && (r.y0..r.y1).contains(&y);
                        if (rois.is_empty() || rois.iter().any(inside))
                            && !(ignored.is_some() && (x + y) % 4 == 0)
                        {
                            expected.add(model.mean()[10 * y + x]);
                        }
                    }
                }
                assert_eq!(judged.over(&model, &rect), expected);
            }
        }
    }
}
