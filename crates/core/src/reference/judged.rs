//! The pixels that are judged, and sums of the mean over them.

use std::iter::zip;

use super::{Inside, Model};
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
pub struct JudgedArea {
    width: usize,
    /// 1 where a pixel is judged; `None`: everywhere.
    bitmap: Option<Bitmap>,
    rows: Vec<Totals>,
}

impl JudgedArea {
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

    /// The totals over the judged pixels that are read from inside the frame. `model` is the one given to `new`.
    pub fn over(&self, model: &Model, inside: &Inside) -> Totals {
        let mut over = Totals::default();
        let bounds = inside.bounds();
        let means = model.mean().chunks_exact(self.width);
        let rows = zip(means, &self.rows).enumerate().skip(bounds.y0);
        for (y, (means, row)) in rows.take(bounds.height()) {
            let [x0, x1] = inside.columns(y);
            if x0 >= x1 {
                continue;
            }
            // Most rows lack a few columns, so those are subtracted.
            let mut beside = Totals::default();
            for x in (0..x0).chain(x1..self.width) {
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
    use super::{super::Warp, *};

    #[test]
    fn totals_over_the_pixels_inside_count_those_that_are_judged() {
        let mean: Vec<u32> = (0..70).map(|i| i * i).collect();
        let model = Model::new([10, 7], 8, 1, mean, vec![0; 70]).expect("a model");
        let rois = [Rect::new(1, 1, 6, 5), Rect::new(4, 0, 5, 3)];
        let ignored = Bitmap::from_pixels(10, 7, |x, y| (x + y) % 4 == 0);
        for (rois, ignored) in [(&[][..], None), (&rois, None), (&rois, Some(&ignored))] {
            let judged = JudgedArea::new(&model, rois, ignored);
            for warp in [
                Warp::default(),
                Warp::shifted([-576, 320]),
                Warp::shifted([25600, 0]),
                Warp {
                    coefficients: [1 << 20, 60_000, -80_000, -(2 << 20), 80_000, 80_000],
                    nodes: None,
                },
            ] {
                let inside = Inside::new(&warp, [10, 7]);
                let mut expected = Totals::default();
                for y in 0..7 {
                    let [x0, x1] = warp.span([10, 7], y);
                    for x in x0..x1 {
                        let inside =
                            |r: &Rect| (r.x0..r.x1).contains(&x) && (r.y0..r.y1).contains(&y);
                        if (rois.is_empty() || rois.iter().any(inside))
                            && !(ignored.is_some() && (x + y) % 4 == 0)
                        {
                            expected.add(model.mean()[10 * y + x]);
                        }
                    }
                }
                assert_eq!(judged.over(&model, &inside), expected);
            }
        }
    }
}
