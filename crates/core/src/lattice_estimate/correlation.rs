//! The correlation of a picture with itself, and its peaks.

use rustfft::{FftPlanner, num_complex::Complex64};

use super::{FLOOR, LEAST_PX, REPEATS, RISE, Vector, picture::Picture, vector::length};
use crate::pitch_estimate::transform_length;

/// Lags kept beyond the largest one.
const MARGIN: usize = 2;
/// Steps from where a peak is expected to its maximum.
const STEPS: usize = 2;
/// The energy of a flat picture, squares of grey levels.
const FLAT: f64 = 1e-9;
/// Below this share of the product of the curvatures the determinant is nearly singular.
const SINGULAR: f64 = 0.02;
/// Longest step of a quadratic, px.
const LONGEST_STEP: f64 = 1.5;

/// Plans and buffers.
#[derive(Default)]
pub struct Transforms {
    planner: Option<FftPlanner<f64>>,
    scratch: Vec<Complex64>,
    row: Vec<Complex64>,
    /// By column of the spectrum, one after the other.
    columns: Vec<Complex64>,
}

impl Transforms {
    fn forward(&mut self, which: Buffer) {
        let buffer = match &which {
            Buffer::Row => &mut self.row[..],
            Buffer::Columns(range) => &mut self.columns[range.clone()],
        };
        let planner = self.planner.get_or_insert_with(FftPlanner::new);
        let plan = planner.plan_fft_forward(buffer.len());
        let scratch = plan.get_inplace_scratch_len();
        if self.scratch.len() < scratch {
            self.scratch.resize(scratch, Complex64::default());
        }
        plan.process_with_scratch(buffer, &mut self.scratch[..scratch]);
    }
}

enum Buffer {
    Row,
    Columns(std::ops::Range<usize>),
}

/// A maximum of the correlation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// The lag.
    pub place: Vector,
    /// The correlation.
    pub r: f64,
}

/// `r(x, y)`: 1 at lag 0, over the overlap; at lags up to a third of the picture's sides.
#[derive(Default)]
pub struct Correlation {
    /// Largest lags along x and y.
    pub largest: [usize; 2],
    /// Row by row, lag 0 in the middle.
    values: Vec<f64>,
    stride: usize,
}

impl Correlation {
    /// The correlation of a picture.
    pub fn compute(&mut self, picture: &Picture, transforms: &mut Transforms) {
        let (width, height) = (picture.width, picture.height);
        self.largest = [width / REPEATS, height / REPEATS];
        let [mx, my] = self.largest.map(|lag| lag + MARGIN);
        self.stride = 2 * mx + 1;
        self.values.clear();
        self.values.resize(self.stride * (2 * my + 1), 0.0);
        // Padded so that the lags that are read do not wrap.
        let w = transform_length(width + mx + 1);
        let h = transform_length(height + my + 1);
        spectrum(picture, [w, h], transforms);
        correlate_columns(w / 2 + 1, h, transforms);
        transforms.row.clear();
        transforms.row.resize(w, Complex64::default());
        let scale = 1.0 / (w as f64 * h as f64);
        for y in (0..=my).step_by(2) {
            // The rows of two lags are Hermitian: one becomes the real part, the other the imaginary part.
            for k in 0..=w / 2 {
                let a = transforms.columns[k * h + y];
                let b = transforms.columns[k * h + y + 1];
                transforms.row[k] = a + Complex64::i() * b;
                if k > 0 {
                    transforms.row[w - k] = a.conj() + Complex64::i() * b.conj();
                }
            }
            transforms.forward(Buffer::Row);
            for x in 0..self.stride {
                let lag = x.abs_diff(mx);
                let value = transforms.row[if x < mx { w - lag } else { lag }];
                for (y, value) in [(y, value.re), (y + 1, value.im)] {
                    if y <= my {
                        let overlap = ((width - lag) * (height - y)) as f64;
                        let value = value * scale / overlap;
                        self.values[(my + y) * self.stride + x] = value;
                        self.values[(my - y) * self.stride + self.stride - 1 - x] = value;
                    }
                }
            }
        }
        let energy = self.values[my * self.stride + mx];
        let scale = 1.0 / energy.max(FLAT);
        self.values.iter_mut().for_each(|value| *value *= scale);
    }

    /// Whether the correlation is known at a lag.
    pub fn holds(&self, v: Vector) -> bool {
        v[0].abs() <= self.largest[0] as f64 && v[1].abs() <= self.largest[1] as f64
    }

    /// The correlation at a whole lag, up to [`MARGIN`] beyond the largest.
    pub fn whole(&self, x: isize, y: isize) -> f64 {
        let [mx, my] = self.largest.map(|lag| (lag + MARGIN) as isize);
        self.values[(y + my) as usize * self.stride + (x + mx) as usize]
    }

    /// The correlation at any lag that it holds, bilinear between whole lags.
    pub fn at(&self, [x, y]: Vector) -> f64 {
        let [mx, my] = self.largest.map(|lag| (lag + MARGIN) as f64);
        let (x, y) = (x + mx, y + my);
        let (i, j) = (
            x.floor().clamp(0.0, 2.0 * mx - 1.0),
            y.floor().clamp(0.0, 2.0 * my - 1.0),
        );
        let (fx, fy) = (x - i, y - j);
        let at = j as usize * self.stride + i as usize;
        let (upper, lower) = (
            &self.values[at..at + 2],
            &self.values[at + self.stride..][..2],
        );
        (1.0 - fy) * ((1.0 - fx) * upper[0] + fx * upper[1])
            + fy * ((1.0 - fx) * lower[0] + fx * lower[1])
    }

    /// The same, by a cubic: between whole lags the top of a narrow ridge keeps its height.
    fn smooth_at(&self, [x, y]: Vector) -> f64 {
        let (i, j) = (x.floor(), y.floor());
        let [along, across] = [x - i, y - j].map(catmull_rom);
        let row = |y: isize| -> f64 {
            let taps = along.iter().zip(i as isize - 1..);
            taps.map(|(weight, x)| weight * self.whole(x, y)).sum()
        };
        let taps = across.iter().zip(j as isize - 1..);
        taps.map(|(weight, y)| weight * row(y)).sum()
    }

    /// The maximum that a few steps reach from near a lag; `None` if they reach none.
    pub fn peak_near(&self, v: Vector) -> Option<Peak> {
        let [mut x, mut y] = v.map(|c| c.round() as isize);
        for _ in 0..=STEPS {
            if !self.holds([x as f64, y as f64]) {
                return None;
            }
            let near = Neighbourhood::new(|dx, dy| self.whole(x + dx, y + dy));
            let [dx, dy] = near.uphill();
            if (dx, dy) == (0, 0) {
                let (step, r) = near.vertex();
                let place = [x as f64 + step[0], y as f64 + step[1]];
                return Some(Peak { place, r });
            }
            (x, y) = (x + dx, y + dy);
        }
        None
    }

    /// Whether the correlation falls on the way to a lag, and rises again.
    fn has_valley(&self, v: Vector) -> bool {
        falls(v, |place| self.at(place))
    }

    /// Whether the correlation does not fall on the way to a lag that it holds: the pattern consists of lines along it.
    pub fn is_ridge(&self, v: Vector) -> bool {
        !falls(v, |place| self.smooth_at(place))
    }

    /// The maxima of 5 × 5 lags behind a valley in one half plane, the nearest first.
    pub fn peaks(&self) -> Vec<Peak> {
        let [mx, my] = self.largest.map(|lag| lag as isize);
        let mut peaks = Vec::new();
        for y in 0..=my {
            for x in if y == 0 { 1 } else { -mx }..=mx {
                let r = self.whole(x, y);
                let is_far = (x as f64).hypot(y as f64) >= LEAST_PX - 0.5;
                if r <= FLOOR || !is_far || !self.is_maximum(x, y, r) {
                    continue;
                }
                let found = self.peak_near([x as f64, y as f64]);
                peaks.extend(
                    found.filter(|peak| {
                        length(peak.place) >= LEAST_PX && self.has_valley(peak.place)
                    }),
                );
            }
        }
        peaks.sort_by(|a, b| length(a.place).total_cmp(&length(b.place)));
        peaks
    }

    fn is_maximum(&self, x: isize, y: isize, r: f64) -> bool {
        (-2..=2).all(|dy| (-2..=2).all(|dx| self.whole(x + dx, y + dy) <= r))
    }
}

/// Whether the correlation `r` falls by [`RISE`] of its value at `v` on the way there.
fn falls(v: Vector, r: impl Fn(Vector) -> f64) -> bool {
    let steps = ((2.0 * length(v)) as usize).max(8) - 1;
    let top = r(v);
    let low = top - RISE * top.max(1e-9);
    (1..steps).any(|step| {
        let t = step as f64 / steps as f64;
        r([t * v[0], t * v[1]]) <= low
    })
}

/// Weights of the four values around a place, `t` behind the second one.
///
/// # Source
/// E. Catmull, R. Rom, A Class of Local Interpolating Splines, 1974.
fn catmull_rom(t: f64) -> [f64; 4] {
    [
        0.5 * t * (t * (2.0 - t) - 1.0),
        0.5 * (t * t * (3.0 * t - 5.0) + 2.0),
        0.5 * t * (t * (4.0 - 3.0 * t) + 1.0),
        0.5 * t * t * (t - 1.0),
    ]
}

/// Fills `columns` with the spectrum of a picture padded to `w` × `h`, for the frequencies 0 to `w / 2` along x, transformed
/// along x only.
fn spectrum(picture: &Picture, [w, h]: [usize; 2], transforms: &mut Transforms) {
    transforms.columns.clear();
    transforms
        .columns
        .resize((w / 2 + 1) * h, Complex64::default());
    for y in (0..picture.height).step_by(2) {
        transforms.row.clear();
        transforms.row.resize(w, Complex64::default());
        for (slot, &v) in transforms.row.iter_mut().zip(picture.row(y)) {
            slot.re = f64::from(v);
        }
        let has_second = y + 1 < picture.height;
        if has_second {
            for (slot, &v) in transforms.row.iter_mut().zip(picture.row(y + 1)) {
                slot.im = f64::from(v);
            }
        }
        transforms.forward(Buffer::Row);
        for k in 0..=w / 2 {
            let (z, mirrored) = (transforms.row[k], transforms.row[(w - k) % w].conj());
            transforms.columns[k * h + y] = (z + mirrored) * 0.5;
            if has_second {
                transforms.columns[k * h + y + 1] = (z - mirrored) * Complex64::new(0.0, -0.5);
            }
        }
    }
}

/// Replaces each of `count` columns of `h` values by the correlation along y. The power is even and real, so that a forward
/// transform is as good as an inverse one.
fn correlate_columns(count: usize, h: usize, transforms: &mut Transforms) {
    for k in 0..count {
        let column = k * h..(k + 1) * h;
        transforms.forward(Buffer::Columns(column.clone()));
        for value in &mut transforms.columns[column.clone()] {
            *value = Complex64::new(value.norm_sqr(), 0.0);
        }
        transforms.forward(Buffer::Columns(column));
    }
}

/// 3 × 3 values, row by row.
pub struct Neighbourhood([f64; 9]);

impl Neighbourhood {
    /// From the value at a distance of −1 to 1 along x and y.
    pub fn new(value: impl Fn(isize, isize) -> f64) -> Self {
        let at = |i: usize| value(i as isize % 3 - 1, i as isize / 3 - 1);
        Self(std::array::from_fn(at))
    }

    /// The value in the middle.
    pub fn middle(&self) -> f64 {
        self.0[4]
    }

    /// The step to the largest value; 0 if that is in the middle.
    pub fn uphill(&self) -> [isize; 2] {
        let mut best = 4;
        for (i, &value) in self.0.iter().enumerate() {
            if value > self.0[best] {
                best = i;
            }
        }
        [best as isize % 3 - 1, best as isize / 3 - 1]
    }

    /// The slopes along x and y, the curvatures along x and y, and the mixed term.
    pub fn derivatives(&self) -> [f64; 5] {
        let [a, b, c, d, e, f, g, h, i] = self.0;
        [
            (f - d) / 2.0,
            (h - b) / 2.0,
            f - 2.0 * e + d,
            h - 2.0 * e + b,
            (i - g - c + a) / 4.0,
        ]
    }

    /// The step to the vertex of the quadratic, and the value there.
    pub fn vertex(&self) -> (Vector, f64) {
        let [gx, gy, hx, hy, mut mixed] = self.derivatives();
        let mut determinant = hx * hy - mixed * mixed;
        if determinant <= SINGULAR * hx * hy {
            (mixed, determinant) = (0.0, (hx * hy).max(1e-18));
        }
        let step = [mixed * gy - hy * gx, mixed * gx - hx * gy]
            .map(|c| (c / determinant).clamp(-LONGEST_STEP, LONGEST_STEP));
        (step, self.middle() + (gx * step[0] + gy * step[1]) / 2.0)
    }
}
