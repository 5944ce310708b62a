//! The limits of each sample.

use std::mem::swap;

use super::{Judged, Model};
use crate::pitch::threshold_q8;

/// How far a sample may be from its mean, and in which direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deviations {
    /// Least distance that is marked, grey levels.
    pub threshold: f64,
    /// The same in standard deviations of the sample.
    pub factor: f64,
    /// Limits are the widest of those within this many pixels.
    pub edge_tolerance: usize,
    /// Brighter samples are marked.
    pub bright: bool,
    /// Darker samples are marked.
    pub dark: bool,
}

/// The highest and the lowest sample that is not marked, for each pixel. The limits `U` and `L` have 1/256 grey
/// level, but samples are whole: `256·s > U` is `s > ⌊U/256⌋`, and `256·s < L` is `s < ⌈L/256⌉`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    width: usize,
    /// Row by row.
    pub high: Vec<u16>,
    /// Row by row.
    pub low: Vec<u16>,
}

impl Limits {
    /// The limits around a model. Pixels that are not judged have limits that no sample exceeds.
    pub fn new(model: &Model, judged: &Judged, deviations: &Deviations) -> Self {
        let [width, height] = model.size();
        let highest = i64::from((1_u32 << model.bits()) - 1);
        let threshold = i64::from(threshold_q8(deviations.threshold));
        let distance = |deviation: u32| {
            // A large product saturates; an infinite factor marks nothing, also where the deviation is 0.
            let scaled = if deviations.factor.is_infinite() {
                i64::MAX
            } else {
                (deviations.factor * f64::from(deviation)).round() as i64
            };
            threshold.max(scaled).min(1 << 32)
        };
        let each = || model.mean().iter().zip(model.deviation());
        let high = each().map(|(&mean, &v)| {
            let limit = i64::from(mean) + distance(v);
            (limit >> 8).min(highest) as u16
        });
        let low = each().map(|(&mean, &v)| {
            let limit = i64::from(mean) - distance(v);
            ((limit + 255) >> 8).max(0) as u16
        });
        // ⌊·⌋ and ⌈·⌉ are monotonic, so the widest limit may be taken after the rounding.
        let tolerance = deviations.edge_tolerance;
        let mut limits = Self {
            width,
            high: extreme(high.collect(), [width, height], tolerance, u16::max),
            low: extreme(low.collect(), [width, height], tolerance, u16::min),
        };
        for (is_on, values, never) in [
            (deviations.bright, &mut limits.high, highest as u16),
            (deviations.dark, &mut limits.low, 0),
        ] {
            if !is_on {
                values.fill(never);
            } else if judged.bitmap().is_some() {
                for (y, row) in values.chunks_exact_mut(width).enumerate() {
                    for (x, value) in row.iter_mut().enumerate() {
                        if !judged.is_judged(x, y) {
                            *value = never;
                        }
                    }
                }
            }
        }
        limits
    }

    /// The limits for the kernels: a row of the highest samples, then one of the lowest, each with `row_samples`
    /// samples of `bytes` bytes, for each row of the frame.
    pub fn to_bytes(&self, row_samples: usize, bytes: usize) -> Vec<u8> {
        let rows = self
            .high
            .chunks_exact(self.width)
            .zip(self.low.chunks_exact(self.width));
        let row_bytes = row_samples * bytes;
        let mut out = Vec::with_capacity(2 * row_bytes * self.high.len() / self.width.max(1));
        for (high, low) in rows {
            for row in [high, low] {
                let end = out.len() + row_bytes;
                match bytes {
                    1 => out.extend(row.iter().map(|&v| v as u8)),
                    _ => out.extend(row.iter().flat_map(|v| v.to_le_bytes())),
                }
                out.resize(end, 0);
            }
        }
        out
    }
}

/// The highest and the lowest mean of a model within `edge_tolerance` pixels of each pixel, 1/256 grey level. With them
/// a threshold T marks a sample beyond the limits at a threshold of 0 if it is more than T above the highest mean, or
/// below the lowest: the widest of `max(T, factor·v)` around a mean is the wider of the two.
pub fn mean_range(model: &Model, edge_tolerance: usize) -> [Vec<u32>; 2] {
    [u32::max, u32::min]
        .map(|pick| extreme(model.mean().to_vec(), model.size(), edge_tolerance, pick))
}

/// The most extreme of the values within `reach` pixels along x and y, as `pick` chooses of two.
fn extreme<T: Copy>(
    mut values: Vec<T>,
    [width, height]: [usize; 2],
    reach: usize,
    pick: fn(T, T) -> T,
) -> Vec<T> {
    if reach == 0 {
        return values;
    }
    let mut wide = values.clone();
    for (row, out) in values.chunks_exact(width).zip(wide.chunks_exact_mut(width)) {
        for step in 1..=reach.min(width - 1) {
            for (x, &v) in row[step..].iter().enumerate() {
                out[x] = pick(out[x], v);
            }
            for (out, &v) in out[step..].iter_mut().zip(row) {
                *out = pick(*out, v);
            }
        }
    }
    swap(&mut values, &mut wide);
    wide.copy_from_slice(&values);
    for step in 1..=reach.min(height - 1) {
        let by = step * width;
        for (out, &v) in wide.iter_mut().zip(&values[by..]) {
            *out = pick(*out, v);
        }
        for (out, &v) in wide[by..].iter_mut().zip(&values) {
            *out = pick(*out, v);
        }
    }
    wide
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinite_factor_marks_nothing_also_without_deviations() {
        let model = Model::new([2, 1], 8, 5, vec![0, 256 * 120], vec![0, 300]).expect("a model");
        let judged = Judged::new(&model, &[], None);
        let deviations = Deviations {
            threshold: 3.0,
            factor: f64::INFINITY,
            edge_tolerance: 0,
            bright: true,
            dark: true,
        };
        let limits = Limits::new(&model, &judged, &deviations);
        assert_eq!((limits.high, limits.low), (vec![255; 2], vec![0; 2]));
    }

    #[test]
    fn limits_in_whole_samples_mark_what_exact_limits_mark() {
        let mean: Vec<u32> = (0..9).map(|i| 256 * 120 + 37 * i).collect();
        let deviation: Vec<u32> = (0..9).map(|i| 400 * i).collect();
        let model = Model::new([3, 3], 8, 5, mean, deviation).expect("a model");
        let judged = Judged::new(&model, &[], None);
        for edge_tolerance in [0, 1, 2, 5] {
            let deviations = Deviations {
                threshold: 3.3,
                factor: 1.7,
                edge_tolerance,
                bright: true,
                dark: true,
            };
            let limits = Limits::new(&model, &judged, &deviations);
            for (n, (&high, &low)) in limits.high.iter().zip(&limits.low).enumerate() {
                let (x, y) = ((n % 3) as i64, (n / 3) as i64);
                let (mut upper, mut lower) = (i64::MIN, i64::MAX);
                for at in 0..9 {
                    let t = edge_tolerance as i64;
                    let (dx, dy) = ((at % 3) as i64 - x, (at / 3) as i64 - y);
                    if dx.abs() <= t && dy.abs() <= t {
                        let a = 845.max((1.7 * f64::from(model.deviation()[at])).round() as i64);
                        upper = upper.max(i64::from(model.mean()[at]) + a);
                        lower = lower.min(i64::from(model.mean()[at]) - a);
                    }
                }
                for s in 0..=255_u16 {
                    let exact = 256 * i64::from(s);
                    assert_eq!(s > high, exact > upper, "{n} {s}");
                    assert_eq!(s < low, exact < lower, "{n} {s}");
                }
            }
        }
    }
}
