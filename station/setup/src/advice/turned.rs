//! The vectors after which pictures repeat at an angle to rows and columns, and how alike these repeats are.

use std::convert::Infallible;

use clinspect_core::lattice_estimate::{LatticeEstimate, LatticeEstimator, Vector, middle};

use super::{
    picture::{Picture, median},
    repeats::{FAR, LEAST_FOUND, MOST_LINES, SLACK, peak},
};

/// Vectors of several pictures that differ by less, px, are one lattice: at the default multiples a comparison is then off by
/// less than half a pixel.
const FIXED_PX: f64 = 0.1;
/// Largest middle of a picture whose likeness is measured, px.
const CROP: [usize; 2] = [512, 512];
/// Least side of the window whose mean is light, not pattern, px.
const WINDOW: usize = 33;

/// What repeats at an angle.
#[derive(Debug, Clone, PartialEq)]
pub struct Turned {
    /// The two vectors of a picture, or the vector normal to lines, px.
    pub vectors: Vec<Vector>,
    /// The angle of the first vector to the rows, degrees, clockwise.
    pub degrees: f64,
    /// All pictures have these vectors.
    pub is_fixed: bool,
    /// Correlation with places some repeats away, without the noise: 1 if all repeats are equal.
    pub likeness: f64,
}

/// What repeats at an angle; `None` if the pitches found along rows and columns, px, are right, or nothing repeats.
pub fn turned(pictures: &[&Picture], pitches: [f64; 2], noise: f64) -> Option<Turned> {
    let mut estimator = LatticeEstimator::default();
    let found: Vec<Option<LatticeEstimate>> = (pictures.iter())
        .map(|picture| {
            let size = [picture.width, picture.height];
            let Ok(found) = estimator.estimate(size, |crop, samples| {
                middle(&picture.samples, picture.width, crop, samples);
                Ok::<(), Infallible>(())
            });
            found
        })
        .collect();
    let has_pitches = !pitches.contains(&0.0);
    // Pitches that are vectors of the lattice, as those of a plain weave, say enough.
    let counts = |of: &&LatticeEstimate| {
        !of.is_parallel() && (!has_pitches || of.turned_against(pitches).is_some())
    };
    let turned: Vec<&LatticeEstimate> = found.iter().flatten().filter(counts).collect();
    if (turned.len() as f64) < LEAST_FOUND * pictures.len() as f64 {
        return None;
    }
    let first = turned.first()?;
    let vectors = vectors_of(first);
    let is_fixed = (found.iter().flatten()).all(|of| {
        let of = vectors_of(of);
        let mut pairs = vectors.as_flattened().iter().zip(of.as_flattened());
        of.len() == vectors.len() && pairs.all(|(a, b)| (a - b).abs() < FIXED_PX)
    });
    let alike = pictures.iter().zip(&found).filter_map(|(picture, found)| {
        let vectors = vectors_of(found.as_ref()?);
        let crop = picture.middle(CROP);
        likeness(&crop, &vectors, noise)
    });
    Some(Turned {
        degrees: first.angle_degrees(),
        is_fixed,
        likeness: median(alike.collect()),
        vectors,
    })
}

fn vectors_of(estimate: &LatticeEstimate) -> Vec<Vector> {
    std::iter::once(estimate.a).chain(estimate.b).collect()
}

/// The longest side of the box of a vector, px.
pub fn longest(vectors: &[Vector]) -> f64 {
    let sides = vectors.as_flattened().iter().map(|side| side.abs());
    sides.fold(0.0, f64::max)
}

/// The middle correlation of the picture with itself [`FAR`] repeats away, or as far as there are repeats, along the vector
/// along which it is least.
fn likeness(picture: &Picture, vectors: &[Vector], noise: f64) -> Option<f64> {
    let longest = longest(vectors);
    let least_side = picture.width.min(picture.height);
    let window = WINDOW
        .max(longest.ceil() as usize)
        .min(least_side / 2)
        .max(1);
    let flat = Flat::of(picture, window);
    // The mean takes a share of the noise with it.
    let pure = flat.product([0, 0]) - noise * noise * (1.0 - 1.0 / (window * window) as f64);
    if pure <= 0.0 {
        return None;
    }
    let along = |vector: &Vector| {
        let sides = [flat.width, flat.height];
        let periods = sides
            .iter()
            .zip(vector)
            .map(|(&side, of)| side as f64 / of.abs());
        let periods = periods.fold(f64::MAX, f64::min) as usize;
        let far = FAR.filter(|m| 2 * m <= periods);
        let multiples: Vec<usize> = if 2 * FAR.start() <= periods {
            far.collect()
        } else {
            vec![(periods / 2).max(1)]
        };
        let found = multiples.into_iter().map(|m| {
            let lag = vector.map(|of| m as f64 * of);
            flat.peak_near(lag) / pure
        });
        median(found.collect())
    };
    vectors.iter().map(along).reduce(f64::min)
}

/// A picture less its mean over a window around each pixel; pixels without a whole window are left out.
struct Flat {
    width: usize,
    height: usize,
    samples: Vec<f64>,
    /// Each so many rows one counts, which bounds the time.
    step: usize,
}

impl Flat {
    fn of(picture: &Picture, window: usize) -> Self {
        let stride = picture.width + 1;
        // Sums of all samples above and to the left.
        let mut sums = vec![0.0; stride * (picture.height + 1)];
        for y in 0..picture.height {
            let mut sum = 0.0;
            for (x, &sample) in picture.row(y).iter().enumerate() {
                sum += f64::from(sample);
                sums[(y + 1) * stride + x + 1] = sums[y * stride + x + 1] + sum;
            }
        }
        let [width, height] = [picture.width, picture.height].map(|side| side + 1 - window);
        let scale = 1.0 / (window * window) as f64;
        let mut samples = Vec::with_capacity(width * height);
        for y in 0..height {
            let (above, below) = (y * stride, (y + window) * stride);
            let row = &picture.row(y + window / 2)[window / 2..];
            for (x, &sample) in row.iter().take(width).enumerate() {
                let sum = sums[below + x + window] - sums[below + x] - sums[above + x + window]
                    + sums[above + x];
                samples.push(f64::from(sample) - scale * sum);
            }
        }
        Self {
            width,
            height,
            samples,
            step: height.div_ceil(MOST_LINES),
        }
    }

    /// The mean product with the samples at a lag, right and down.
    fn product(&self, [right, down]: [isize; 2]) -> f64 {
        // A lag and its negative give the same products.
        let right = if down < 0 { -right } else { right };
        let [across, down] = [right.unsigned_abs(), down.unsigned_abs()];
        let (mut sum, mut count) = (0.0, 0);
        for y in (0..self.height.saturating_sub(down)).step_by(self.step) {
            let row = |y: usize| &self.samples[y * self.width..(y + 1) * self.width];
            let (near, far) = (row(y), row(y + down));
            let (near, far) = match right < 0 {
                true => (near.get(across..), far.get(..)),
                false => (near.get(..), far.get(across..)),
            };
            let (near, far) = (near.unwrap_or_default(), far.unwrap_or_default());
            count += near.len().min(far.len());
            sum += near.iter().zip(far).map(|(a, b)| a * b).sum::<f64>();
        }
        sum / count.max(1) as f64
    }

    /// The largest product near a lag, between whole ones: a vector is not exact.
    fn peak_near(&self, lag: Vector) -> f64 {
        let slack = (1.0 + SLACK * lag[0].hypot(lag[1])).ceil() as isize;
        let middle = lag.map(|of| of.round() as isize);
        let around = || (-slack..=slack).flat_map(|y| (-slack..=slack).map(move |x| [x, y]));
        let at = |[x, y]: [isize; 2]| self.product([middle[0] + x, middle[1] + y]);
        let products = around().map(|place| (place, at(place)));
        let Some(([x, y], top)) = products.max_by(|(_, a), (_, b)| a.total_cmp(b)) else {
            return 0.0;
        };
        let rise =
            |before: [isize; 2], after: [isize; 2]| peak(&[at(before), top, at(after)]) - top;
        top + rise([x - 1, y], [x + 1, y]) + rise([x, y - 1], [x, y + 1])
    }
}
