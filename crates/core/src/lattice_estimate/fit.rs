//! The vectors of a lattice from the peaks of the correlation.

use super::{
    Vector,
    correlation::Correlation,
    vector::{combination, cross, dot, length, reduce},
};

/// Multiples up to which peaks are taken, one after the other.
const REACHES: [i32; 10] = [1, 2, 3, 4, 6, 8, 12, 18, 27, 40];
/// Largest distance of a peak from its lattice point, as a share of the shorter vector.
const NEAR: f64 = 0.2;
/// Least correlation of a peak, as a share of that of the vectors.
const LEAST: f64 = 0.6;
/// Least share of the lattice points that have a peak.
const MOST: f64 = 0.7;
/// By how much of itself a coarser lattice must correlate better.
const COARSER: f64 = 0.08;
/// Sublattices of index 2 and 3: the points with `a·i + b·j` divisible by `n`, as `[n, a, b]`.
const SUBLATTICES: [[i32; 3]; 7] = [
    [2, 1, 0],
    [2, 0, 1],
    [2, 1, 1],
    [3, 1, 0],
    [3, 0, 1],
    [3, 1, 1],
    [3, 1, 2],
];
/// Least sine between the vectors of a sublattice.
const LEAST_SINE: f64 = 0.1;
/// The error of vectors that too few peaks tell, px: too large for any.
const UNKNOWN_ERROR: f64 = 9.0;

/// The two shortest vectors of a lattice.
pub struct Fitted {
    pub a: Vector,
    pub b: Vector,
    /// Standard error of a vector, px.
    pub error: f64,
}

/// The lattice near two vectors.
pub fn lattice(r: &Correlation, a: Vector, b: Vector) -> Fitted {
    let [a, b] = reduce(a, b);
    let ([mut a, mut b], _) = fit(r, [a, b]);
    if let Some(coarser) = coarser(r, a, b) {
        [a, b] = coarser;
    }
    let ([a, b], error) = fit(r, reduce(a, b));
    let [a, b] = reduce(a, b);
    Fitted { a, b, error }
}

/// Sums of the least squares of `place = i·a + j·b`.
#[derive(Default)]
struct Sums {
    count: usize,
    /// Of `i·i`, `i·j` and `j·j`.
    squares: [f64; 3],
    /// Of `i·place` and `j·place`.
    products: [Vector; 2],
    /// Of the places' squares.
    energy: f64,
}

impl Sums {
    fn add(&mut self, i: f64, j: f64, place: Vector) {
        self.count += 1;
        let squares = [i * i, i * j, j * j];
        (self.squares.iter_mut().zip(squares)).for_each(|(sum, square)| *sum += square);
        for (sum, k) in self.products.iter_mut().zip([i, j]) {
            *sum = [sum[0] + k * place[0], sum[1] + k * place[1]];
        }
        self.energy += dot(place, place);
    }

    /// The vectors; `None` if the points lie on one line.
    fn solve(&self) -> Option<[Vector; 2]> {
        let [ii, ij, jj] = self.squares;
        let determinant = ii * jj - ij * ij;
        if determinant < 1e-6 * ii * jj || determinant <= 0.0 {
            return None;
        }
        let [i, j] = self.products;
        let a = combination(jj / determinant, i, -ij / determinant, j);
        let b = combination(ii / determinant, j, -ij / determinant, i);
        Some([a, b])
    }

    /// The least eigenvalue of the squares: the vector that is known least.
    fn least(&self) -> f64 {
        let [ii, ij, jj] = self.squares;
        let half = (ii + jj) / 2.0;
        half - ((ii - jj) / 2.0).hypot(ij)
    }
}

/// Fits the vectors to the peaks near lattice points, from near ones to far ones, while most points have a peak. Returns the
/// vectors and their standard error, px.
fn fit(r: &Correlation, mut vectors: [Vector; 2]) -> ([Vector; 2], f64) {
    let [a, b] = vectors;
    let least = LEAST * r.at(a).min(r.at(b));
    let mut error = UNKNOWN_ERROR;
    let mut found: Vec<(f64, f64, Vector)> = Vec::new();
    for reach in REACHES {
        let [a, b] = vectors;
        let near = NEAR * length(a).min(length(b));
        let mut points = 0usize;
        let mut sums = Sums::default();
        found.clear();
        for j in 0..=reach {
            for i in if j == 0 { 1 } else { -reach }..=reach {
                let (i, j) = (f64::from(i), f64::from(j));
                let point = combination(i, a, j, b);
                if !r.holds(point) {
                    continue;
                }
                points += 1;
                let Some(peak) = r.peak_near(point) else {
                    continue;
                };
                let away = combination(1.0, peak.place, -1.0, point);
                if peak.r >= least && length(away) <= near {
                    sums.add(i, j, peak.place);
                    found.push((i, j, peak.place));
                }
            }
        }
        if sums.count < 2 || (sums.count as f64) < MOST * points as f64 {
            break;
        }
        let Some([a, b]) = sums.solve() else {
            break;
        };
        vectors = [a, b];
        let residues = found.iter().map(|&(i, j, place)| {
            let residue = combination(1.0, place, -1.0, combination(i, a, j, b));
            dot(residue, residue)
        });
        // Two points are met exactly, and tell no error.
        error = match sums.count.saturating_sub(2) {
            0 => UNKNOWN_ERROR,
            freedom => (residues.sum::<f64>() / (2 * freedom) as f64 / sums.least()).sqrt(),
        };
        let next = f64::from(reach + 1);
        let has_more = [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, -1.0)]
            .into_iter()
            .any(|(i, j)| r.holds(combination(next * i, a, next * j, b)));
        if !has_more {
            break;
        }
    }
    (vectors, error)
}

/// The vectors of a coarser lattice of index 2 or 3, if they correlate clearly better than the points between them.
fn coarser(r: &Correlation, a: Vector, b: Vector) -> Option<[Vector; 2]> {
    let mut best = (COARSER, None);
    for [n, p, q] in SUBLATTICES {
        let points = (0..=n).flat_map(|j| {
            let first = if j == 0 { 1 } else { -n };
            (first..=n).map(move |i| (i, j))
        });
        let is_on = |&(i, j): &(i32, i32)| (p * i + q * j) % n == 0;
        let place = |(i, j): (i32, i32)| combination(f64::from(i), a, f64::from(j), b);
        let mut on: Vec<Vector> = points.clone().filter(is_on).map(place).collect();
        on.sort_by(|u, v| length(*u).total_cmp(&length(*v)));
        let Some(&u) = on.first() else {
            continue;
        };
        let oblique = |v: &&Vector| cross(u, **v).abs() > LEAST_SINE * length(u) * length(**v);
        let Some(&v) = on.iter().find(oblique) else {
            continue;
        };
        let off: Vec<Vector> = points
            .filter(|point| !is_on(point) && point.0.abs() <= 1 && point.1 <= 1)
            .map(place)
            .collect();
        if ![u, v].iter().chain(&off).all(|&place| r.holds(place)) {
            continue;
        }
        let top = |place: Vector| {
            r.peak_near(place)
                .map_or_else(|| r.at(place), |peak| peak.r)
        };
        let between = off.iter().map(|&place| top(place)).fold(f64::MIN, f64::max);
        let gain = 1.0 - between / top(u).min(top(v)).max(1e-9);
        if gain > best.0 {
            best = (gain, Some([u, v]));
        }
    }
    best.1
}
