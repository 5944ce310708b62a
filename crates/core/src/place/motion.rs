//! Where the pixels of a part lie in a frame: the pose that a search found, and the fit on top of it.

use super::{model::Model, pose::Pose};
use crate::{
    components::MeasuredDefect,
    reference::{self, Inside, UNITS, Warp, first},
};

/// Pixels around the part that are read, too.
const AROUND: usize = 16;
/// Sides of a cut are multiples of this, px: that of the blocks whose samples are summed.
const BLOCK: usize = 4;
/// Fraction bits of a coefficient.
const BITS: u32 = 20;
/// Fraction bits of the linear terms of a pose.
const POSE_BITS: u32 = 22;
/// Fraction bits that a coefficient has and a position has not.
const DROPPED: u32 = 12;

/// The rectangle of the trained picture in which a part is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Its first pixel, a multiple of 4 along both axes.
    pub first: [usize; 2],
    /// Its size, a multiple of 4 along both axes.
    pub size: [usize; 2],
}

impl Cut {
    /// That of a part with these bounds `x0, y0, x1, y1` in a picture of a size.
    pub fn new([x0, y0, x1, y1]: [usize; 4], size: [usize; 2]) -> Self {
        let first = [x0, y0].map(|at| at.saturating_sub(AROUND) / BLOCK * BLOCK);
        let past = [0, 1].map(|axis| {
            let past = ([x1, y1][axis] + AROUND).next_multiple_of(BLOCK);
            past.min(size[axis] / BLOCK * BLOCK)
        });
        Self {
            first,
            size: [past[0] - first[0], past[1] - first[1]],
        }
    }

    /// The part of a trained picture that the cut holds.
    ///
    /// # Errors
    /// None in practice: its samples are those of a picture.
    pub fn of_model(&self, whole: &reference::Model) -> Result<reference::Model, String> {
        let [width, _] = whole.size();
        let [mean, deviation] =
            [whole.mean(), whole.deviation()].map(|samples| self.of(samples, width));
        reference::Model::new(self.size, whole.bits(), whole.frames(), mean, deviation)
    }

    /// A trained picture with another one, of the cut's size, in place of the cut.
    ///
    /// # Errors
    /// A sentence, if the picture has another size.
    pub fn into_model(
        &self,
        part: &reference::Model,
        whole: &reference::Model,
    ) -> Result<reference::Model, String> {
        part.check_fits(self.size, whole.bits())?;
        let [width, _] = whole.size();
        let joined = |part: &[u32], whole: &[u32]| {
            let mut joined = whole.to_vec();
            let rows = joined.chunks_exact_mut(width).skip(self.first[1]);
            for (row, part) in rows.zip(part.chunks_exact(self.size[0])) {
                row[self.first[0]..][..self.size[0]].copy_from_slice(part);
            }
            joined
        };
        let mean = joined(part.mean(), whole.mean());
        let deviation = joined(part.deviation(), whole.deviation());
        reference::Model::new(whole.size(), whole.bits(), part.frames(), mean, deviation)
    }

    /// The pixels of row-major samples of a picture of this width.
    pub fn of<T: Copy>(&self, samples: &[T], width: usize) -> Vec<T> {
        let [x0, y0] = self.first;
        let rows = samples.chunks_exact(width).skip(y0).take(self.size[1]);
        let columns = |row: &[T]| row[x0..x0 + self.size[0]].to_vec();
        rows.flat_map(columns).collect()
    }
}

/// Where the pixels of a [`Cut`] lie in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Motion {
    /// The pixel `(x, y)` lies at `c + a·x + b·y` along x, then along y, 2^-20 px. Linear terms are below 2, and shifts below the
    /// size of a frame and its part: sums need 64 bits.
    pub coefficients: [i64; 6],
}

impl Motion {
    /// The pose of the part of a model, and what a fit found in the frame that is read through the pose.
    pub fn new(model: &Model, cut: &Cut, pose: &Pose, fit: &Warp) -> Self {
        let [cosine, sine] = pose.turn().map(i128::from);
        let [c, a, b, f, d, e] = fit.coefficients.map(i128::from);
        let one = 1_i128 << BITS;
        let lines = [[c, one + a, b], [f, d, one + e]];
        // From the model's centre to the first pixel of the cut, 2^-20 px: c2/2 is half a pixel right of a pixel's middle.
        let from_centre = [0, 1].map(|axis| {
            let half = 2 * cut.first[axis] as i128 + 1 - i128::from(model.centre2()[axis]);
            half << (BITS - 1)
        });
        let centre = [pose.x, pose.y].map(|at| {
            let half = pose.level as i128 * (2 * i128::from(at) + 1) - 1;
            half << (BITS + POSE_BITS - 1)
        });
        let rounded = |v: i128| ((v + (1 << (POSE_BITS - 1))) >> POSE_BITS) as i64;
        let along = |[by_x, by_y]: [i128; 2], centre: i128| {
            let of = |term: usize, more: [i128; 2]| {
                by_x * (lines[0][term] + more[0]) + by_y * (lines[1][term] + more[1])
            };
            [
                rounded(of(0, from_centre) + centre),
                rounded(of(1, [0; 2])),
                rounded(of(2, [0; 2])),
            ]
        };
        let [c, a, b] = along([cosine, -sine], centre[0]);
        let [f, d, e] = along([sine, cosine], centre[1]);
        Self {
            coefficients: [c, a, b, f, d, e],
        }
    }

    /// The terms along an axis.
    fn line(&self, axis: usize) -> [i64; 3] {
        let [c, a, b, f, d, e] = self.coefficients;
        [[c, a, b], [f, d, e]][axis]
    }

    /// Where a pixel of the cut lies in the frame, 1/256 px.
    pub fn position(&self, x: i64, y: i64) -> [i64; 2] {
        [0, 1].map(|axis| {
            let [c, a, b] = self.line(axis);
            (c + a * x + b * y + (1 << (DROPPED - 1))) >> DROPPED
        })
    }

    /// The columns of a row of the cut, which has `width`, whose samples all lie in a frame of a size, half open: those
    /// that are read with a weight above 0.
    pub fn span(&self, width: usize, y: usize, frame: [usize; 2]) -> [usize; 2] {
        let most = frame.map(|n| i64::from(UNITS) * (n as i64 - 1));
        let mut span = [0, width];
        for axis in [0, 1] {
            // Positions rise or fall along the row, so the columns inside are those between two borders.
            let at = |x: usize| self.position(x as i64, y as i64)[axis];
            let inside = if at(width.saturating_sub(1)) >= at(0) {
                [
                    first(width, |x| at(x) >= 0),
                    first(width, |x| at(x) > most[axis]),
                ]
            } else {
                [
                    first(width, |x| at(x) <= most[axis]),
                    first(width, |x| at(x) < 0),
                ]
            };
            span = [span[0].max(inside[0]), span[1].min(inside[1])];
        }
        if span[0] < span[1] { span } else { [0, 0] }
    }

    /// The pixels of a cut whose samples all lie in a frame of a size.
    pub fn inside_frame(&self, cut: &Cut, frame: [usize; 2]) -> Inside {
        let [width, height] = cut.size;
        Inside::of_spans((0..height).map(|y| self.span(width, y, frame)).collect())
    }

    /// The motion of the trained picture's pixels, px: the pixel `(x, y)` lies at `t0 + t1·x + t2·y` along x, and at
    /// `t3 + t4·x + t5·y` along y.
    pub fn transform(&self, cut: &Cut) -> [f64; 6] {
        let [x0, y0] = cut.first.map(|at| at as f64);
        let [x, y] = [0, 1].map(|axis| {
            let [c, a, b] = self.line(axis).map(|v| v as f64 / f64::from(1 << BITS));
            [c - a * x0 - b * y0, a, b]
        });
        [x[0], x[1], x[2], y[0], y[1], y[2]]
    }

    /// That of the part in its trained picture.
    pub fn of_cut(cut: &Cut) -> Self {
        let [x0, y0] = cut.first.map(|at| (at as i64) << BITS);
        let one = 1 << BITS;
        Self {
            coefficients: [x0, one, 0, y0, 0, one],
        }
    }

    /// Half of the width of a marked pixel in the frame along x and along y, 1/256 px: a pixel at P marks each pixel F with
    /// `-r ≤ P - 256·F < r`. For a turned square this is half of its width;
    /// it is at least half a pixel, so no mark is lost.
    pub fn reach(&self) -> [i64; 2] {
        [0, 1].map(|axis| {
            let [_, a, b] = self.line(axis).map(i64::unsigned_abs);
            let half = UNITS as u64 / 2;
            ((half * (a + b)).div_ceil(1 << BITS) + 1).max(half) as i64
        })
    }

    /// The share of the samples of the model's inner region that lie in a frame of a size. Below 1 the frame's edge cuts the
    /// part.
    pub fn inside(&self, model: &Model, cut: &Cut, frame: [usize; 2]) -> f64 {
        let last = frame.map(|n| 2 * ((n as i64 - 1) << BITS));
        let is_inside = |sample: &&[i32; 2]| {
            // In half px from the middle of the cut's first pixel.
            let at = [0, 1].map(|axis| {
                let middle = i64::from(sample[axis] + model.centre2()[axis]);
                middle - 1 - 2 * cut.first[axis] as i64
            });
            (0..2).all(|axis| {
                let [c, a, b] = self.line(axis);
                (0..=last[axis]).contains(&(2 * c + a * at[0] + b * at[1]))
            })
        };
        let inside = model.samples.iter().filter(is_inside).count();
        inside as f64 / model.samples.len().max(1) as f64
    }

    /// Where a place between pixels of the cut lies in the frame, px.
    fn real(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        [0, 1].map(|axis| {
            let [c, a, b] = self.line(axis).map(|v| v as f64 / f64::from(1 << BITS));
            c + a * x + b * y
        })
    }

    /// Where the centre of the part lies, px from the middle of the frame's first pixel.
    pub fn centre(&self, model: &Model, cut: &Cut) -> [f64; 2] {
        self.real(
            [0, 1].map(|axis| f64::from(model.centre2()[axis] - 1) / 2.0 - cut.first[axis] as f64),
        )
    }

    /// The part's angle, clockwise on the screen, degrees from −180 to 180.
    pub fn degrees(&self) -> f64 {
        let [_, a, b, _, d, e] = self.coefficients.map(|v| v as f64);
        (d - b).atan2(a + e).to_degrees()
    }

    /// The part's scale: the root of the change of areas.
    pub fn scale(&self) -> f64 {
        let [_, a, b, _, d, e] = self.coefficients.map(|v| v as f64 / f64::from(1 << BITS));
        (a * e - b * d).abs().sqrt()
    }

    /// Moves a defect of the cut's pixels to where it lies in a frame of a size: box and centroid. The box holds all pixels of
    /// the frame that the defect marks. Area, axes and boundary stay those of the model's pixels.
    pub fn place(&self, defect: &mut MeasuredDefect, frame: [usize; 2]) {
        let [x0, y0] = [defect.x, defect.y].map(i64::from);
        let right = x0 + i64::from(defect.width.max(1)) - 1;
        let lower = y0 + i64::from(defect.height.max(1)) - 1;
        let corners = [[x0, y0], [right, y0], [x0, lower], [right, lower]];
        let places = corners.map(|[x, y]| self.position(x, y));
        let reach = self.reach();
        let [x, y] = [0, 1].map(|axis| {
            let along = places.map(|place| place[axis]);
            let last = frame[axis] as i64 - 1;
            // Pixels F with low < 256 F <= high.
            let low = along.iter().min().unwrap_or(&0) - reach[axis];
            let high = along.iter().max().unwrap_or(&0) + reach[axis];
            let first = ((low >> 8) + 1).clamp(0, last);
            [first, (high >> 8).clamp(first, last)]
        });
        let centre = self.real([defect.centroid_x - 0.5, defect.centroid_y - 0.5]);
        [defect.centroid_x, defect.centroid_y] = centre.map(|v| v + 0.5);
        (defect.x, defect.width) = (x[0] as i32, (x[1] - x[0] + 1) as u32);
        (defect.y, defect.height) = (y[0] as i32, (y[1] - y[0] + 1) as u32);
    }
}
