//! How a model is learned from the features of good frames.

use super::{
    DIMENSIONS, FEATURES, Features, MOST_FEATURE, MOST_VALUE, MOST_WEIGHT, Model, PROTOTYPES,
    Projected, SPREAD,
};
use crate::eigen::eigenvectors;

/// Every n-th of the features is a sample, so that there are at least so many.
const SAMPLES: usize = 16_384;
/// How often samples go to their nearest prototypes.
const ROUNDS: usize = 10;
/// A variance that is a smaller share of the largest one is taken to be that share.
const LEAST_VARIANCE: f64 = 1e-3;
/// Added to the standard deviation of a feature, which may be 0.
const LEAST_DEVIATION: f64 = 1e-6;

/// Every n-th of the features of good frames, in the order of the frames and of the scan.
#[derive(Debug, Clone)]
pub struct Samples {
    step: usize,
    /// Cells so far.
    seen: usize,
    cells: Vec<Features>,
}

impl Samples {
    /// Samples of `count` cells in all.
    pub fn new(count: usize) -> Self {
        Self {
            step: (count / SAMPLES).max(1),
            seen: 0,
            cells: Vec::new(),
        }
    }

    /// Takes samples of the features of a frame's judged cells.
    pub fn add(&mut self, cells: &[Features]) {
        let first = (self.step - self.seen % self.step) % self.step;
        self.cells
            .extend(cells.iter().skip(first).step_by(self.step));
        self.seen += cells.len();
    }
}

impl Model {
    /// Learns from the features of the judged cells of good frames.
    ///
    /// # Errors
    /// A sentence if there is no cell, or if all cells have the same features.
    pub fn learn(Samples { cells, .. }: &Samples) -> Result<Self, String> {
        if cells.is_empty() {
            return Err("the frames have no cell to judge; use larger frames or regions".into());
        }
        let (mean, weights) = projection(cells).ok_or(
            "all cells of the frames are alike: they show no surface; show good material, in focus",
        )?;
        let mut model = Self {
            mean,
            weights,
            prototypes: Vec::new(),
        };
        let samples: Vec<Projected> = cells.iter().map(|cell| model.project(cell)).collect();
        model.prototypes = prototypes(&samples);
        Ok(model)
    }

    fn project(&self, cell: &Features) -> Projected {
        let mut sums = [128; DIMENSIONS];
        for ((&feature, mean), weights) in cell.iter().zip(&self.mean).zip(&self.weights) {
            let value = (i32::from(feature) - mean).clamp(-MOST_FEATURE, MOST_FEATURE);
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum += weight * value;
            }
        }
        sums.map(|sum| (sum >> 8).clamp(-MOST_VALUE, MOST_VALUE))
    }
}

/// Means and weights; `None` if no feature varies.
fn projection(samples: &[Features]) -> Option<([i32; FEATURES], [Projected; FEATURES])> {
    let count = samples.len() as f64;
    let mean: [f64; FEATURES] =
        std::array::from_fn(|i| samples.iter().map(|cell| f64::from(cell[i])).sum::<f64>() / count);
    let mut covariance = [[0.0; FEATURES]; FEATURES];
    for cell in samples {
        let less: [f64; FEATURES] = std::array::from_fn(|i| f64::from(cell[i]) - mean[i]);
        for (row, a) in covariance.iter_mut().zip(less) {
            for (sum, b) in row.iter_mut().zip(less) {
                *sum += a * b;
            }
        }
    }
    let deviation: [f64; FEATURES] =
        std::array::from_fn(|i| (covariance[i][i] / count).sqrt() + LEAST_DEVIATION);
    for (row, a) in covariance.iter_mut().zip(deviation) {
        for (sum, b) in row.iter_mut().zip(deviation) {
            *sum /= a * b * (count - 1.0).max(1.0);
        }
    }
    let mut directions = eigenvectors(&covariance);
    directions.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let largest = directions[0].0;
    if largest <= 0.0 {
        return None;
    }
    let mut weights = [[0; DIMENSIONS]; FEATURES];
    for (j, (variance, vector)) in directions[..DIMENSIONS].iter().enumerate() {
        let spread = variance.max(LEAST_VARIANCE * largest).sqrt();
        let longer = |a: f64, b: f64| if b.abs() > a.abs() { b } else { a };
        let sign = vector.iter().copied().fold(0.0, longer).signum();
        for ((row, part), deviation) in weights.iter_mut().zip(vector).zip(deviation) {
            let weight = f64::from(256 * SPREAD) * sign * part / (spread * deviation);
            row[j] = weight
                .round()
                .clamp(f64::from(-MOST_WEIGHT), f64::from(MOST_WEIGHT)) as i32;
        }
    }
    Some((mean.map(|mean| mean.round() as i32), weights))
}

/// The squared distance to the nearest prototype, and its number.
fn nearest(sample: &Projected, prototypes: &[Projected]) -> (u32, usize) {
    let mut best = (u32::MAX, 0);
    for (number, prototype) in prototypes.iter().enumerate() {
        let square = |(a, b): (&i32, &i32)| ((a - b) * (a - b)) as u32;
        let distance = sample.iter().zip(prototype).map(square).sum();
        if distance < best.0 {
            best = (distance, number);
        }
    }
    best
}

/// The prototypes of at least one sample.
fn prototypes(samples: &[Projected]) -> Vec<Projected> {
    let mut prototypes: Vec<Projected> = (0..PROTOTYPES)
        .map(|k| samples[k * samples.len() / PROTOTYPES])
        .collect();
    for _ in 0..ROUNDS {
        let mut sums = [([0_i64; DIMENSIONS], 0_i64); PROTOTYPES];
        let mut distances = Vec::with_capacity(samples.len());
        for sample in samples {
            let (distance, number) = nearest(sample, &prototypes);
            distances.push(distance);
            let (sum, count) = &mut sums[number];
            *count += 1;
            for (sum, &value) in sum.iter_mut().zip(sample) {
                *sum += i64::from(value);
            }
        }
        let mut farthest: Vec<usize> = (0..samples.len()).collect();
        farthest.sort_by_key(|&at| std::cmp::Reverse(distances[at]));
        let mut farthest = farthest.into_iter();
        for (prototype, (sum, count)) in prototypes.iter_mut().zip(sums) {
            if count > 0 {
                *prototype = sum.map(|sum| (2 * sum + count).div_euclid(2 * count) as i32);
            } else if let Some(at) = farthest.next() {
                *prototype = samples[at];
            }
        }
    }
    prototypes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cells whose first features vary, each by another spread.
    fn cells(count: usize) -> Vec<Features> {
        let mut state = 1_u32;
        let mut next = |spread: i32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 8) as i32 % (2 * spread + 1) - spread) as i16
        };
        let cell = |_| std::array::from_fn(|i| 40 * i as i16 + next(20 + 30 * i as i32));
        (0..count).map(cell).collect()
    }

    fn learn(frames: &[&[Features]]) -> Result<Model, String> {
        let mut samples = Samples::new(frames.iter().map(|frame| frame.len()).sum());
        for frame in frames {
            samples.add(frame);
        }
        Model::learn(&samples)
    }

    #[test]
    fn projected_features_have_the_same_spread() {
        let cells = cells(20_000);
        let model = learn(&[&cells]).expect("a model");
        let mut squares = [0.0; DIMENSIONS];
        for cell in &cells {
            for (sum, z) in squares.iter_mut().zip(model.project(cell)) {
                *sum += f64::from(z * z) / cells.len() as f64;
            }
        }
        for square in squares {
            assert!((square.sqrt() - 32.0).abs() < 1.5, "{}", square.sqrt());
        }
        for (i, &mean) in model.mean().iter().enumerate() {
            assert!((mean - 40 * i as i32).abs() < 12, "feature {i}: {mean}");
        }
    }

    #[test]
    fn samples_are_taken_of_all_frames() {
        let cells = cells(4 * SAMPLES);
        let every: Vec<Features> = cells.iter().copied().step_by(4).collect();
        for at in [1, 2, 3, 4].map(|more| SAMPLES + more) {
            let (one, other) = cells.split_at(at);
            let model = learn(&[one, other]);
            assert_eq!(model, learn(&[&every]), "{at}");
            assert!(model.is_ok());
        }
    }

    #[test]
    fn prototypes_are_the_clusters_and_empty_ones_take_the_farthest() {
        // Three places; most of the first prototypes coincide, and the first of equals takes the samples.
        let place = |at: i32| [at; DIMENSIONS];
        let mut samples = vec![place(-100); 300];
        samples.extend([place(101), place(102), place(102)]);
        samples.push(place(900));
        let found = prototypes(&samples);
        for wanted in [place(-100), place(900)] {
            assert!(found.contains(&wanted), "{wanted:?}");
        }
        // Each sample is nearest to a prototype at its place.
        for sample in &samples {
            let (distance, _) = nearest(sample, &found);
            assert_eq!(distance, 0, "{sample:?}");
        }
    }

    #[test]
    fn half_of_a_mean_is_rounded_up() {
        // Two samples share the last prototype.
        let place = |at: i32| [at; DIMENSIONS];
        let mut samples: Vec<Projected> = (1..PROTOTYPES as i32).map(|k| place(8 * k)).collect();
        samples.extend([place(-3), place(-2)]);
        assert_eq!(prototypes(&samples).last(), Some(&place(-2)));
    }

    #[test]
    fn frames_that_show_nothing_are_refused() {
        assert!(learn(&[]).is_err_and(|why| why.contains("no cell")));
        let same = vec![[7; FEATURES]; 500];
        let why = learn(&[&same]).expect_err("no model");
        assert!(why.contains("all cells of the frames are alike"), "{why}");
        let mut nearly = same;
        nearly[3][0] = 8;
        assert!(learn(&[&nearly]).is_ok());
    }
}
