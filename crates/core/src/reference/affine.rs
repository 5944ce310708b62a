//! The motion of a frame against the model: shift, turn, scale and shear, and small local shifts.
//!
//! Source: docs/semantics.md, "Alignment". A robust Lucas–Kanade fit on reduced pictures, coarse to fine, that starts with the
//! smallest motion and leaves directions alone that the picture cannot tell. All of it is host arithmetic in a fixed
//! order on sums that are exact, so the motion is the same on every device.

mod correlation;
mod fit;
mod level;
mod local;
mod solve;

use super::{MOST_WARPED, Warp};
use crate::eigen::eigenvectors;
use fit::{Robust, Samples, fit};
use level::{Grid, Level};
use solve::{Matrix, Vector};

/// Pixels along x and y whose sum is a sample of the reduced picture.
const BLOCK: usize = 4;
/// Least side of the coarsest level, px of the level.
const COARSEST_SIDE: usize = 40;
const COARSEST_SCALE: usize = 64;
/// Pixels of level 4 above which level 8 is the finest one.
const MOST_PIXELS: usize = 65_536;
/// Level of the search for the first shift, unless the range needs a coarser one.
const SEARCH_SCALE: usize = 8;
/// Products of a search that a coarser level avoids.
const MOST_PRODUCTS: usize = 1 << 20;
/// Correlations this close to the best one are equal; the smallest motion wins.
const SLACK: f64 = 0.01;
/// A direction is told by the picture if its information is this share of the mean of the two shifts', and this much per
/// pixel.
const LEAST_SHARE: f64 = 0.025;
/// The same share of a part that a search has found: the relief of a coin tells its angle, and the search has told it before.
const LEAST_SHARE_OF_PART: f64 = 0.005;
/// Range of the fit of such a part, px.
const PART_RANGE: usize = 8;
const LEAST_INFORMATION: f64 = 0.15;
/// Pixels beyond the range that a shift may have.
const BEYOND: f64 = 2.0;
/// Largest linear term: turn, scale and shear.
const MOST_LINEAR: f64 = 0.08;
const SHIFT_STEPS: usize = 4;
const COARSEST_STEPS: usize = 16;
const FINER_STEPS: usize = 12;
const COARSEST_ROBUST: Robust = Robust {
    first: 2.0,
    last: 0.7,
};
const FINER_ROBUST: Robust = Robust {
    first: 1.0,
    last: 0.5,
};
const SHIFT_ROBUST: Robust = Robust {
    first: 2.0,
    last: 2.0,
};
/// Units of a pixel of a warp's coefficients.
const COEFFICIENT_UNITS: f64 = (1 << 20) as f64;
/// A shift alone is in quarters of a pixel, which kernels read fastest.
const QUARTER: i32 = 1 << 18;

/// How far the fit got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Step {
    /// The frame is turned, scaled and sheared too.
    Affine,
    /// A shift only: it fits better than the affine motion.
    Shift,
    /// The shift of the search: it fits better than what followed.
    Start,
    /// The picture has no structure; no motion.
    #[default]
    None,
}

/// What a motion may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freedom {
    /// Shift along x and y.
    Shift,
    /// Turn, scale and shear too.
    Affine,
    /// Local shifts too.
    Local,
}

/// What remains of the light in reduced pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Light {
    /// All of it.
    Kept,
    /// Light that changes slowly over the picture is taken away.
    Level,
}

/// The directions along which a fit moves.
#[derive(Clone, Copy)]
enum FitDirections {
    /// Those of all parameters that the picture tells.
    All,
    /// Those of a shift.
    Shift,
}

/// Where a frame was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Alignment {
    /// Where the model's pixels lie in the frame.
    pub warp: Warp,
    /// Mean correlation of the tiles with structure, 0 to 1.
    pub score: f64,
    /// Root mean square of what remains between the reduced pictures, grey levels of 8 bits.
    pub misfit: f64,
    /// How far the fit got.
    pub step: Step,
}

/// Finds the motion of frames against a model.
#[derive(Debug, Clone)]
pub struct Aligner {
    size: [usize; 2],
    range: usize,
    freedom: Freedom,
    light: Light,
    /// From scale 4 on.
    levels: Vec<Level>,
    /// Index of the finest level of the fit.
    finest: usize,
    /// Index of the level of the search.
    search: usize,
    /// The directions that the picture tells: of all parameters, and of a shift.
    directions: [Vec<Vector>; 2],
    /// The frame's levels, sharp and smooth.
    frame: Vec<[Grid; 2]>,
    columns: Grid,
    samples: Samples,
}

impl Aligner {
    /// Size of the picture of sums for frames of a size.
    pub fn sums_size(size: [usize; 2]) -> [usize; 2] {
        size.map(|n| n / BLOCK)
    }

    /// An aligner for frames of a size against a model. `sums`: sums of 4x4 samples of the model in grey levels of 8
    /// bits, row by row. Pixels that are not judged do not count, unless nothing is judged.
    ///
    /// # Errors
    /// A sentence, if the frames are too small.
    pub fn new(
        sums: &[u16],
        size: [usize; 2],
        range: usize,
        freedom: Freedom,
        is_judged: impl Fn(usize, usize) -> bool,
    ) -> Result<Self, String> {
        check_size(size, range)?;
        Ok(Self::build(
            sums,
            size,
            (range, freedom, Light::Kept),
            is_judged,
        ))
    }

    /// An aligner for frames that are read through the pose of a part, against the part of the model that has this size.
    /// Light that changes slowly over the part does not count.
    ///
    /// # Errors
    /// A sentence, if the part is too small.
    pub fn of_part(
        sums: &[u16],
        size: [usize; 2],
        is_part: impl Fn(usize, usize) -> bool,
    ) -> Result<Self, String> {
        let least = 2 * PART_RANGE + 8 * BLOCK;
        if size[0].min(size[1]) < least {
            return Err(format!(
                "the part is too small to be fitted: with 16 pixels around it, it needs {least}x{least}"
            ));
        }
        let fit = (PART_RANGE, Freedom::Affine, Light::Level);
        Ok(Self::build(sums, size, fit, is_part))
    }

    fn build(
        sums: &[u16],
        size: [usize; 2],
        (range, freedom, light): (usize, Freedom, Light),
        is_judged: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let mut weight = Grid::new(Self::sums_size(size));
        for y in 0..weight.height {
            for (x, value) in weight.row_mut(y).iter_mut().enumerate() {
                let mut pixels =
                    (0..BLOCK * BLOCK).map(|i| [BLOCK * x + i % BLOCK, BLOCK * y + i / BLOCK]);
                *value = f32::from(u8::from(pixels.all(|[x, y]| is_judged(x, y))));
            }
        }
        if !weight.values.contains(&1.0) {
            for y in 0..weight.height {
                weight.row_mut(y).fill(1.0);
            }
        }
        let mut scale = BLOCK;
        let mut scales = vec![scale];
        while size[0].min(size[1]) / (2 * scale) >= COARSEST_SIDE && scale < COARSEST_SCALE {
            scale *= 2;
            scales.push(scale);
        }
        let mut sharp = Grid::default();
        sharp.take(sums, Self::sums_size(size), light);
        let mut columns = Grid::default();
        let mut levels = Vec::new();
        for (n, &scale) in scales.iter().enumerate() {
            if n > 0 {
                let mut half = Grid::default();
                half.set_half_of(&sharp);
                sharp = half;
                let mut half = Grid::default();
                half.set_half_of(&weight);
                weight = half;
                // A pixel counts if all of its four do.
                for value in &mut weight.values {
                    *value = value.floor();
                }
            }
            let mut smooth = Grid::default();
            smooth.set_smooth_of(&sharp, &mut columns);
            levels.push(Level::new(scale, smooth, weight.clone(), size));
        }
        let finest = usize::from(levels[0].pixels() > MOST_PIXELS).min(levels.len() - 1);
        let is_enough = |&n: &usize| {
            let level = &levels[n];
            let side = 2 * range.div_ceil(level.scale) + 1;
            level.scale >= SEARCH_SCALE && side * side * level.pixels() <= MOST_PRODUCTS
        };
        let search = (0..levels.len()).find(is_enough);
        let least_share = match light {
            Light::Kept => LEAST_SHARE,
            Light::Level => LEAST_SHARE_OF_PART,
        };
        Self {
            size,
            range,
            freedom,
            light,
            finest,
            search: search.unwrap_or(levels.len() - 1),
            directions: told(&levels[0], least_share),
            frame: vec![Default::default(); levels.len()],
            columns,
            samples: Samples::default(),
            levels,
        }
    }

    /// Whether the model has a tile with structure. Without one no frame is found, not even the model itself.
    pub fn has_structure(&self) -> bool {
        let level = &self.levels[self.finest];
        correlation::of_tiles(level, &level.picture, &[0.0; 6]) > 0.0
    }

    /// Finds the motion of a frame from its sums of 4x4 samples in grey levels of 8 bits.
    pub fn find(&mut self, sums: &[u16]) -> Alignment {
        self.reduce(sums);
        let start = self.start();
        let coarsest = self.levels.last().map_or(1, |level| level.scale);
        let finer = coarsest as f64 / self.levels[self.finest].scale as f64;
        let start_finest = start.map(|v| v * finer);
        let mut best = (start_finest, Step::Start, self.score(&start_finest));
        let steps = match self.freedom {
            Freedom::Shift => &[(FitDirections::Shift, Step::Shift)][..],
            _ => &[
                (FitDirections::All, Step::Affine),
                (FitDirections::Shift, Step::Shift),
            ],
        };
        for &(told, step) in steps {
            if let Some(p) = self.descend(start, told) {
                let score = self.score(&p);
                if score >= best.2 {
                    best = (p, step, score);
                    break;
                }
            }
        }
        if best.2 <= 0.0 {
            best = ([0.0; 6], Step::None, 0.0);
        }
        let (p, step, score) = best;
        let level = &self.levels[self.finest];
        let frame = &self.frame[self.finest][1];
        let misfit = self.samples.misfit(level, frame, &p);
        let is_local = self.freedom == Freedom::Local && step != Step::None;
        let nodes = is_local.then(|| local::find(level, frame, &p, self.size, &mut self.samples));
        Alignment {
            warp: Warp {
                coefficients: self.coefficients(&p),
                nodes,
            },
            score,
            misfit,
            step,
        }
    }

    /// Takes a frame.
    fn reduce(&mut self, sums: &[u16]) {
        let size = Self::sums_size(self.size);
        for n in 0..self.frame.len() {
            let (before, from) = self.frame.split_at_mut(n);
            let [sharp, smooth] = &mut from[0];
            match before.last() {
                Some([whole, _]) => sharp.set_half_of(whole),
                None => sharp.take(sums, size, self.light),
            }
            // Nothing is fitted below the finest level.
            if n >= self.finest {
                smooth.set_smooth_of(sharp, &mut self.columns);
            }
        }
    }

    /// The smallest of the shifts of highest correlation, in px of the coarsest level, along the directions that the
    /// picture tells.
    fn start(&self) -> Vector {
        let level = &self.levels[self.search];
        let frame = &self.frame[self.search][1];
        let reach = self.range.div_ceil(level.scale) as i32;
        let shifts = (-reach..=reach).flat_map(|v| (-reach..=reach).map(move |u| [u, v]));
        let scored: Vec<(f64, [i32; 2])> = shifts
            .map(|shift| (correlation::at_shift(level, frame, shift), shift))
            .collect();
        let best = scored
            .iter()
            .fold(f64::MIN, |best, &(score, _)| best.max(score));
        let equal = scored.iter().filter(|&&(score, _)| score >= best - SLACK);
        let smallest = equal.min_by_key(|(_, [u, v])| u * u + v * v);
        let coarsest = self.levels.last().map_or(1, |level| level.scale);
        let to_coarsest = level.scale as f64 / coarsest as f64;
        let shift = smallest.map_or([0; 2], |&(_, shift)| shift);
        let [u, v] = shift.map(|v| f64::from(v) * to_coarsest);
        let mut along = [0.0; 6];
        for direction in &self.directions[1] {
            let share = direction[0] * u + direction[3] * v;
            for (along, d) in along.iter_mut().zip(direction) {
                *along += share * d;
            }
        }
        along
    }

    fn is_plausible(&self, level: &Level, p: &Vector) -> bool {
        let most = self.range as f64 + BEYOND;
        let scale = level.scale as f64;
        p[0].abs().max(p[3].abs()) * scale <= most
            && [p[1], p[2], p[4], p[5]]
                .iter()
                .all(|v| v.abs() / level.radius <= MOST_LINEAR)
    }

    /// Fits from the coarsest level to the finest; `None` if a level ends beyond what is plausible.
    fn descend(&mut self, start: Vector, told: FitDirections) -> Option<Vector> {
        let mut samples = std::mem::take(&mut self.samples);
        let shift = &self.directions[FitDirections::Shift as usize];
        let told = &self.directions[told as usize];
        let mut p = start;
        let mut is_plausible = true;
        let mut is_coarsest = true;
        let levels = self.levels.iter().zip(&self.frame).skip(self.finest);
        for (level, [_, frame]) in levels.rev() {
            let (mut steps, mut robust) = (FINER_STEPS, FINER_ROBUST);
            if is_coarsest {
                fit(
                    level,
                    frame,
                    &mut samples,
                    &mut p,
                    shift,
                    SHIFT_STEPS,
                    SHIFT_ROBUST,
                );
                if !self.is_plausible(level, &p) {
                    p = start;
                }
                (steps, robust) = (COARSEST_STEPS, COARSEST_ROBUST);
            } else {
                p = p.map(|v| 2.0 * v);
            }
            is_coarsest = false;
            fit(level, frame, &mut samples, &mut p, told, steps, robust);
            is_plausible &= self.is_plausible(level, &p);
        }
        self.samples = samples;
        is_plausible.then_some(p)
    }

    /// See [`correlation::of_tiles`].
    fn score(&self, p: &Vector) -> f64 {
        let (level, frame) = (&self.levels[self.finest], &self.frame[self.finest][1]);
        correlation::of_tiles(level, frame, p)
    }

    /// A motion of the finest level as coefficients of a warp.
    fn coefficients(&self, p: &Vector) -> [i32; 6] {
        let level = &self.levels[self.finest];
        let [cx, cy] = self.size.map(|n| (n as f64 - 1.0) / 2.0);
        if self.freedom == Freedom::Shift {
            let shift = |p: f64| (4.0 * level.scale as f64 * p).round() as i32 * QUARTER;
            return [shift(p[0]), 0, 0, shift(p[3]), 0, 0];
        }
        let line = |p: &[f64]| {
            let [a, b] = [p[1] / level.radius, p[2] / level.radius];
            let c = level.scale as f64 * p[0] - a * cx - b * cy;
            [c, a, b].map(|v| (v * COEFFICIENT_UNITS).round() as i32)
        };
        let ([c, a, b], [f, d, e]) = (line(&p[..3]), line(&p[3..]));
        [c, a, b, f, d, e]
    }
}

impl Grid {
    /// Takes sums of 4x4 samples.
    fn take(&mut self, sums: &[u16], size: [usize; 2], light: Light) {
        match light {
            Light::Kept => self.set_sums(sums, size),
            Light::Level => self.set_sums_less_mean(sums, size),
        }
    }
}

/// Why frames of a size cannot be aligned.
///
/// # Errors
/// A sentence with the size.
pub fn check_size([width, height]: [usize; 2], range: usize) -> Result<(), String> {
    if width.max(height) > MOST_WARPED {
        return Err(format!(
            "frames of {width}x{height} pixels are too large to be aligned: a side has at most {MOST_WARPED} pixels; \
             cut them, or set align=none"
        ));
    }
    let least = 2 * range + 8 * BLOCK;
    if width.min(height) >= least {
        return Ok(());
    }
    Err(format!(
        "frames of {width}x{height} pixels are too small to be aligned with search-range={range}, which needs \
         {least}x{least}; lower search-range, or set align=none"
    ))
}

/// The directions of all parameters, and of a shift, that a picture tells.
fn told(level: &Level, least_share: f64) -> [Vec<Vector>; 2] {
    let mut h: Matrix = [[0.0; 6]; 6];
    for (y, &at) in level.rows.iter().enumerate() {
        let [gx, gy] = [0, 1].map(|axis: usize| level.gradients[axis].row(y));
        for ((&gx, &gy), &x) in gx.iter().zip(gy).zip(&level.columns) {
            let [gx, gy, x] = [gx, gy, x].map(f64::from);
            let j = [gx, gx * x, gx * at, gy, gy * x, gy * at];
            for (row, a) in h.iter_mut().zip(j) {
                for (sum, b) in row.iter_mut().zip(j) {
                    *sum += a * b;
                }
            }
        }
    }
    let mean = (h[0][0] + h[3][3]) / 2.0;
    let least = (least_share * mean).max(LEAST_INFORMATION * level.pixels() as f64);
    let of = |h: &Matrix| {
        let all = eigenvectors(h).into_iter();
        all.filter(|(e, _)| *e >= least).map(|(_, v)| v).collect()
    };
    let mut shift = [[0.0; 6]; 6];
    for (i, j) in [(0, 0), (0, 3), (3, 0), (3, 3)] {
        shift[i][j] = h[i][j];
    }
    [of(&h), of(&shift)]
}
