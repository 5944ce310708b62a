//! The limits of each sample.

use std::mem::swap;

use super::{JudgedArea, Model};
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
    pub fn new(model: &Model, judged: &JudgedArea, deviations: &Deviations) -> Self {
        let [width, height] = model.size();
        let highest = (1_u32 << model.bits()) - 1;
        let threshold = (threshold_q8(deviations.threshold) as u32).min(FURTHEST);
        let factor = deviations.factor;
        let (high, low) = match sixty_fourths(factor) {
            Some(factor) => around(model, highest, |v| {
                let scaled = (u64::from(factor) * u64::from(v) + 32) >> 6;
                threshold.max(scaled.min(u64::from(FURTHEST)) as u32)
            }),
            // An infinite factor marks nothing, also where the deviation is 0.
            None if factor.is_infinite() => around(model, highest, |_| FURTHEST),
            None => around(model, highest, |v| {
                let scaled = (factor * f64::from(v)).round() as u32;
                threshold.max(scaled.min(FURTHEST))
            }),
        };
        // ⌊·⌋ and ⌈·⌉ are monotonic, so the widest limit may be taken after the rounding.
        let tolerance = deviations.edge_tolerance;
        let mut limits = Self {
            width,
            high: extreme(high, [width, height], tolerance, u16::max),
            low: extreme(low, [width, height], tolerance, u16::min),
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
    let mean = || model.mean().to_vec();
    [
        extreme(mean(), model.size(), edge_tolerance, u32::max),
        extreme(mean(), model.size(), edge_tolerance, u32::min),
    ]
}

/// A distance from the mean that no sample of 16 bits exceeds, 1/256 grey level.
const FURTHEST: u32 = 1 << 24;

/// A factor in 1/64, as all that are tried while a factor is learned: its products are computed with integers, which is
/// faster. `None` for other factors.
fn sixty_fourths(factor: f64) -> Option<u32> {
    let scaled = 64.0 * factor;
    (scaled.fract() == 0.0 && scaled <= f64::from(u32::MAX)).then_some(scaled as u32)
}

/// The highest and the lowest samples that are at most a distance away from their mean, which follows from the deviation.
fn around(model: &Model, highest: u32, distance: impl Fn(u32) -> u32) -> (Vec<u16>, Vec<u16>) {
    let mean = model.mean();
    let (mut high, mut low) = (vec![0; mean.len()], vec![0; mean.len()]);
    let limits = high.iter_mut().zip(&mut low);
    for ((&mean, &v), (high, low)) in mean.iter().zip(model.deviation()).zip(limits) {
        let distance = distance(v);
        *high = ((mean + distance) >> 8).min(highest) as u16;
        *low = ((mean as i32 - distance as i32 + 255) >> 8).max(0) as u16;
    }
    (high, low)
}

/// The most extreme of the values within `reach` pixels along x and y, as `pick` chooses of two.
fn extreme<T: Copy>(
    mut values: Vec<T>,
    [width, height]: [usize; 2],
    reach: usize,
    pick: impl Fn(T, T) -> T,
) -> Vec<T> {
    if reach == 0 {
        return values;
    }
    let mut wide = values.clone();
    for (row, out) in values.chunks_exact(width).zip(wide.chunks_exact_mut(width)) {
        for step in 1..=reach.min(width - 1) {
            for (out, &v) in out.iter_mut().zip(&row[step..]) {
                *out = pick(*out, v);
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
        let judged = JudgedArea::new(&model, &[], None);
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
    fn factors_in_64ths_give_the_limits_of_their_products() {
        let values = |most: u32| (0..400_u32).map(move |i| i.wrapping_mul(2_654_435_761) % most);
        let mean: Vec<u32> = values(65_535 << 8).collect();
        let deviation: Vec<u32> = values(32_000 << 8).collect();
        let model = Model::new([20, 20], 16, 5, mean, deviation).expect("a model");
        for sixty_fourths in [0, 1, 31, 32, 33, 256, 447, 64_000] {
            let factor = f64::from(sixty_fourths) / 64.0;
            assert_eq!(super::sixty_fourths(factor), Some(sixty_fourths));
            let (high, low) = around(&model, 65_535, |v| {
                ((factor * f64::from(v)).round() as u32).min(FURTHEST)
            });
            let deviations = Deviations {
                threshold: 0.0,
                factor,
                edge_tolerance: 0,
                bright: true,
                dark: true,
            };
            let limits = Limits::new(&model, &JudgedArea::new(&model, &[], None), &deviations);
            assert!(limits.high == high && limits.low == low, "{factor}");
        }
    }

    #[test]
    fn limits_in_whole_samples_mark_what_exact_limits_mark() {
        let mean: Vec<u32> = (0..9).map(|i| 256 * 120 + 37 * i).collect();
        let deviation: Vec<u32> = (0..9).map(|i| 400 * i).collect();
        let model = Model::new([3, 3], 8, 5, mean, deviation).expect("a model");
        let judged = JudgedArea::new(&model, &[], None);
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
