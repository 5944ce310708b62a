//! The lattice of a repeating pattern at any angle: two vectors, or one for lines, estimated from a frame, and followed.
//!
//! 1. *Picture.* The middle of the frame, less its local mean, slightly smoothed.
//! 2. *Correlation* of the picture with itself at all lags up to a third of its sides, by FFT.
//! 3. *Vectors.* The peaks behind a valley are the candidates. The two shortest good ones are reduced, and fitted to all
//!    peaks at their multiples, from near ones to far ones: an error of a far peak counts little in the vectors.
//! 4. *Coarser cell.* If a part of the lattice correlates better than the rest, the cell is larger.
//! 5. *Lines.* If the correlation does not fall on the way to a vector, the pattern consists of lines along it, and has one
//!    vector, normal to them.
//! 6. *Decision.* Few repeats need a higher correlation, because structures of a photograph resemble each other by chance.
//!    Half of all tiles must repeat.
//! 7. Where nothing is accepted, the frame is halved: coarse patterns under fine noise, and long vectors.
//!
//! A vector in use is *followed* without FFT: products around the place where its peak is expected.
//!
//! # Source
//! docs/semantics.md, "The vectors of a frame". Autocorrelation by FFT: Wiener–Khinchin theorem. Reduction of two vectors:
//! Lagrange and Gauss (H. Cohen, A Course in Computational Algebraic Number Theory, 1993, algorithm 1.3.14).

mod correlation;
mod fit;
mod follow;
mod lines;
mod picture;
mod tracker;
mod vector;

pub use picture::{Crop, middle};
pub use tracker::{LatticeChange, LatticeTracker};
pub use vector::Vector;

use correlation::{Correlation, Transforms};
use fit::Fitted;
use picture::Picture;
use vector::length;

use crate::pitch::Axis;

/// Least correlation at a vector.
const FLOOR: f64 = 0.25;
/// Least length of a vector, px.
const LEAST_PX: f64 = 3.0;
/// Repeats that the picture must hold.
const REPEATS: usize = 3;
/// Least rise of the correlation from the valley before a vector, as a share of its peak.
const RISE: f64 = 0.15;
/// Share of the largest correlation that the shortest candidates must have.
const STRONG: f64 = 0.75;
/// Least sine of the angle between the first vector and candidates for the second.
const SINE: f64 = 0.5;
/// The least correlation is `FLOOR + FEW / repeats`, at most `SUFFICIENT`.
const FEW: f64 = 2.4;
const SUFFICIENT: f64 = 0.85;
/// Largest standard error of the vectors, as a share of the first one.
const LARGEST_ERROR: f64 = 0.02;
/// Components across an axis up to this, px, or up to [`PARALLEL_ERRORS`] standard errors, count as 0.
const PARALLEL_PX: f64 = 0.03;
const PARALLEL_ERRORS: f64 = 3.0;
/// A pitch along an axis is turned against the pattern if a lattice vector near it lies farther than this across the axis, px.
/// Measured: a panel turned by half a degree, 0.2 px at a pitch of 24 px, learns a limit a tenth larger and loses no defect.
const TURNED_PX: f64 = 0.15;
/// Frames are examined at this many levels: as they are, and halved up to three times.
const LEVELS: u32 = 4;

/// The vectors of a frame's lattice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatticeEstimate {
    /// The vector that is nearer to the x axis; points right. Of lines the only one, normal to them.
    pub a: Vector,
    /// The other vector, which points down; `None` for lines.
    pub b: Option<Vector>,
    /// Standard error of a vector, px.
    pub error_px: f64,
    /// How often the frame was halved before the vectors were found.
    pub level: u32,
}

impl LatticeEstimate {
    /// Whether all vectors are parallel to the axes.
    pub fn is_parallel(&self) -> bool {
        let across = self
            .b
            .map_or(self.a[0] * self.a[1], |b| self.a[1].abs().max(b[0].abs()));
        across == 0.0
    }

    /// The angle by which the first vector is turned from the x axis, degrees, clockwise in the picture.
    pub fn angle_degrees(&self) -> f64 {
        self.a[1].atan2(self.a[0]).to_degrees()
    }

    /// Whether the pattern is turned against a comparison along rows and columns at these pitches, px, 0 for none: the first axis
    /// whose pitch is none of the lattice's vectors, but across the axis near one, and the angle in degrees, clockwise.
    pub fn turned_against(&self, pitches: [f64; 2]) -> Option<(Axis, f64)> {
        let b = self.b?;
        let tolerance = TURNED_PX.max(PARALLEL_ERRORS * self.error_px);
        let across = |v: Vector, axis: usize| {
            let area = vector::cross(self.a, b);
            let (i, j) = (vector::cross(v, b) / area, vector::cross(self.a, v) / area);
            vector::combination(i.round(), self.a, j.round(), b)[1 - axis].abs()
        };
        let is_turned = |axis: usize| {
            let mut v = [0.0; 2];
            v[axis] = pitches[axis];
            pitches[axis] > 0.0 && across(v, axis) > tolerance
        };
        if is_turned(0) {
            Some((Axis::X, self.angle_degrees()))
        } else {
            is_turned(1).then(|| (Axis::Y, (-b[0]).atan2(b[1]).to_degrees()))
        }
    }

    fn scaled(self, factor: f64) -> Self {
        let scale = |v: Vector| [factor * v[0], factor * v[1]];
        Self {
            a: scale(self.a),
            b: self.b.map(scale),
            error_px: factor * self.error_px,
            level: self.level,
        }
    }
}

/// Estimates lattices; keeps plans and buffers for the next frame.
#[derive(Default)]
pub struct LatticeEstimator {
    picture: Picture,
    /// Samples of a crop.
    samples: Vec<f32>,
    correlation: Correlation,
    transforms: Transforms,
}

impl LatticeEstimator {
    /// The lattice of a frame of `size` (width, height), or `None` if it has none. `read` fills the samples of a crop, row by
    /// row, in any grey scale; it is called for one level after the other.
    ///
    /// # Errors
    /// That of `read`.
    pub fn estimate<E>(
        &mut self,
        size: [usize; 2],
        mut read: impl FnMut(Crop, &mut Vec<f32>) -> Result<(), E>,
    ) -> Result<Option<LatticeEstimate>, E> {
        self.estimate_but(size, None, &mut read)
    }

    /// The lattice of the next frame: the vectors `held`, refined, or where they are not found, those estimated anew.
    ///
    /// # Errors
    /// That of `read`.
    pub fn follow<E>(
        &mut self,
        held: &LatticeEstimate,
        size: [usize; 2],
        mut read: impl FnMut(Crop, &mut Vec<f32>) -> Result<(), E>,
    ) -> Result<Option<LatticeEstimate>, E> {
        let mut prepared = None;
        // The peak of lines is a ridge: it does not tell their angle.
        if let (Some(b), Some(crop)) = (held.b, Crop::of(size, held.level)) {
            self.load(crop, &mut read)?;
            prepared = Some(held.level);
            let scale = f64::from(1 << held.level);
            let small = |v: Vector| [v[0] / scale, v[1] / scale];
            if let Some([a, b]) = follow::follow(&self.picture, [small(held.a), small(b)]) {
                let followed = order([a, b], held.error_px / scale, held.level);
                return Ok(Some(followed.scaled(scale)));
            }
        }
        self.estimate_but(size, prepared, &mut read)
    }

    /// The correlation at `v`, px, of the picture in which the vectors `of` were found last, as a share of that at lag 0; 0 for a
    /// vector of which the picture does not hold three.
    pub fn likeness(&self, v: Vector, of: &LatticeEstimate) -> f64 {
        let scale = f64::from(1 << of.level);
        follow::correlation(&self.picture, v.map(|c| c / scale))
    }

    /// Estimates; the picture of the level `prepared` is prepared already.
    fn estimate_but<E>(
        &mut self,
        size: [usize; 2],
        prepared: Option<u32>,
        read: &mut impl FnMut(Crop, &mut Vec<f32>) -> Result<(), E>,
    ) -> Result<Option<LatticeEstimate>, E> {
        let mut prepared = prepared;
        for level in 0..LEVELS {
            let Some(crop) = Crop::of(size, level) else {
                break;
            };
            if prepared != Some(level) {
                self.load(crop, read)?;
                prepared = None;
            }
            if let Some(found) = self.lattice_of_picture(level) {
                return Ok(Some(found.scaled(f64::from(1 << level))));
            }
        }
        Ok(None)
    }

    fn load<E>(
        &mut self,
        crop: Crop,
        read: &mut impl FnMut(Crop, &mut Vec<f32>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.samples.clear();
        read(crop, &mut self.samples)?;
        self.picture.prepare(&self.samples, crop.width, crop.height);
        Ok(())
    }

    /// The lattice of the prepared picture, in its pixels.
    fn lattice_of_picture(&mut self, level: u32) -> Option<LatticeEstimate> {
        self.correlation
            .compute(&self.picture, &mut self.transforms);
        let (r, picture) = (&self.correlation, &self.picture);
        let peaks = r.peaks();
        let first = strongest(peaks.iter())?;
        let across = peaks.iter().filter(|peak| {
            let (a, p) = (first.place, peak.place);
            vector::cross(a, p).abs() > SINE * length(a) * length(p)
        });
        let along = match strongest(across) {
            Some(second) => {
                let Fitted { a, b, error } = fit::lattice(r, first.place, second.place);
                let least = r.at(a).min(r.at(b));
                if let Some(along) = lines::direction(r, a, b, 0.5 * least) {
                    along
                } else {
                    let is_accepted =
                        |v: Vector| r.at(v) >= needed(v, picture) && picture.is_filled(v);
                    let is_precise = error < LARGEST_ERROR * length(a);
                    return (is_precise && is_accepted(a) && is_accepted(b))
                        .then(|| order([a, b], error, level));
                }
            }
            None => [-first.place[1], first.place[0]],
        };
        let scale = 1.0 / length(along);
        let found = lines::period(r, [scale * along[0], scale * along[1]])?;
        let a = found.vector;
        (found.confidence >= needed(a, picture) && picture.is_filled(a)).then(|| LatticeEstimate {
            a: a.map(|c| if c.abs() <= PARALLEL_PX { 0.0 } else { c }),
            b: None,
            error_px: found.error,
            level,
        })
    }
}

/// The first of the peaks that have at least [`STRONG`] of the largest correlation.
fn strongest<'a>(
    peaks: impl Iterator<Item = &'a correlation::Peak> + Clone,
) -> Option<&'a correlation::Peak> {
    let best = peaks.clone().map(|peak| peak.r).fold(0.0, f64::max);
    peaks.into_iter().find(|peak| peak.r >= STRONG * best)
}

/// Least correlation at a vector: fewer repeats in the picture need more.
fn needed(v: Vector, picture: &Picture) -> f64 {
    let repeats = |side: usize, component: f64| side as f64 / component.abs().max(1e-9);
    let repeats = repeats(picture.width, v[0]).min(repeats(picture.height, v[1]));
    (FLOOR + FEW / repeats).min(SUFFICIENT)
}

/// `A` is the vector nearer to the x axis and points right, `B` points down. Nearly parallel ones become parallel.
fn order([mut a, mut b]: [Vector; 2], error: f64, level: u32) -> LatticeEstimate {
    if b[0].abs() * length(a) > a[0].abs() * length(b) {
        (a, b) = (b, a);
    }
    if a[0] < 0.0 {
        a = a.map(|c| -c);
    }
    if b[1] < 0.0 {
        b = b.map(|c| -c);
    }
    let tolerance = PARALLEL_PX.max(PARALLEL_ERRORS * error);
    if a[1].abs() <= tolerance && b[0].abs() <= tolerance {
        (a[1], b[0]) = (0.0, 0.0);
    }
    LatticeEstimate {
        a,
        b: Some(b),
        error_px: error,
        level,
    }
}
