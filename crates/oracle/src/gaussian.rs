//! Reference of `clgaussian`: weights, and the smoothing of one component plane.
//!
//! Source: docs/semantics.md, "Gaussian".

use crate::plane::Samples;

/// The fixed Q8 tables of the derived sigma (`sigma <= 0`).
const FIXED_Q8: [&[u32]; 4] = [
    &[64, 128, 64],
    &[16, 64, 96, 64, 16],
    &[8, 28, 56, 72, 56, 28, 8],
    &[4, 13, 30, 51, 60, 51, 30, 13, 4],
];

/// The normalised f64 Gaussian: `n` weights (odd) that sum to 1; `sigma` in samples.
///
/// `sigma <= 0` stands for `0.3 * ((n - 1) / 2 - 1) + 0.8`; the fixed tables are not used here.
pub fn weights_f64(n: usize, sigma: f64) -> Vec<f64> {
    assert!(n % 2 == 1, "the kernel size {n} is even");
    let radius = ((n - 1) / 2) as f64;
    let sigma = if sigma > 0.0 {
        sigma
    } else {
        0.3 * (radius - 1.0) + 0.8
    };
    let curve: Vec<f64> = (0..n)
        .map(|tap| {
            let distance = tap as f64 - radius;
            (-distance * distance / (2.0 * sigma * sigma)).exp()
        })
        .collect();
    let sum: f64 = curve.iter().sum();
    curve.iter().map(|value| value / sum).collect()
}

/// The Q8 weights of `arithmetic=integer`: `n` weights (odd) that sum to 256; `sigma` in samples.
///
/// # Source
/// docs/semantics.md: fixed tables for `sigma <= 0` and n up to 9, else the f64 Gaussian rounded
/// from the outermost tap inwards, half to even, with the error carried to the next tap; the centre
/// takes the rest.
pub fn weights_q8(n: usize, sigma: f64) -> Vec<u32> {
    if sigma <= 0.0
        && let Some(table) = FIXED_Q8.iter().find(|table| table.len() == n)
    {
        return table.to_vec();
    }
    let exact = weights_f64(n, sigma);
    let centre = n / 2;
    let mut weights = vec![0_u32; n];
    let mut carried = 0.0;
    for tap in 0..centre {
        let value = 256.0 * exact[tap] + carried;
        let rounded = value.round_ties_even();
        carried = value - rounded;
        weights[tap] = rounded as u32;
        weights[n - 1 - tap] = rounded as u32;
    }
    weights[centre] = 256 - weights.iter().sum::<u32>();
    weights
}

/// `arithmetic=integer` of one component: `width * height` values in grey levels, row-major.
///
/// # Source
/// docs/semantics.md: both passes exact and one rounding, `(sum of wy * wx * s + 32768) >> 16`;
/// taps outside the component read the sample at its edge.
pub fn gaussian_integer(src: Samples, n: usize, sigma: f64) -> Vec<u32> {
    let weights: Vec<u64> = weights_q8(n, sigma).into_iter().map(u64::from).collect();
    let samples: Vec<u64> = src.values().into_iter().map(u64::from).collect();
    let across = filter_rows(&samples, src.width, &weights);
    filter_columns(&across, src.width, &weights)
        .into_iter()
        .map(|sum| ((sum + 32768) >> 16) as u32)
        .collect()
}

/// The f64 Gaussian of one component, not rounded: `width * height` values in grey levels,
/// row-major. `arithmetic=float` is within 1 of these values.
pub fn gaussian_f64(src: Samples, n: usize, sigma: f64) -> Vec<f64> {
    let weights = weights_f64(n, sigma);
    let samples: Vec<f64> = src.values().into_iter().map(f64::from).collect();
    let across = filter_rows(&samples, src.width, &weights);
    filter_columns(&across, src.width, &weights)
}

/// A number that a filter pass sums: exact integers or f64.
trait Number: Copy + Default + std::ops::Mul<Output = Self> + std::ops::AddAssign {}
impl Number for u64 {}
impl Number for f64 {}

/// The weighted sum of each sample's neighbours in its row.
fn filter_rows<T: Number>(samples: &[T], width: usize, weights: &[T]) -> Vec<T> {
    let mut sums = vec![T::default(); samples.len()];
    if width == 0 {
        return sums;
    }
    for (row, out) in samples.chunks(width).zip(sums.chunks_mut(width)) {
        for (x, sum) in out.iter_mut().enumerate() {
            for (tap, &weight) in weights.iter().enumerate() {
                *sum += weight * row[clamped(x, tap, weights.len(), width)];
            }
        }
    }
    sums
}

/// The weighted sum of each sample's neighbours in its column.
fn filter_columns<T: Number>(samples: &[T], width: usize, weights: &[T]) -> Vec<T> {
    let mut sums = vec![T::default(); samples.len()];
    if width == 0 {
        return sums;
    }
    let height = samples.len() / width;
    for (y, out) in sums.chunks_mut(width).enumerate() {
        for (tap, &weight) in weights.iter().enumerate() {
            let from = clamped(y, tap, weights.len(), height);
            let row = &samples[from * width..(from + 1) * width];
            for (sum, &sample) in out.iter_mut().zip(row) {
                *sum += weight * sample;
            }
        }
    }
    sums
}

/// The position that tap `tap` of `n` taps around `position` reads, clamped to `0..len`.
fn clamped(position: usize, tap: usize, n: usize, len: usize) -> usize {
    (position + tap).saturating_sub(n / 2).min(len - 1)
}
