//! Gaussian weights.

/// Smallest and largest kernel size.
pub const KERNEL_SIZE_RANGE: std::ops::RangeInclusive<usize> = 3..=31;

/// The standard deviation to use, px: `sigma_px`, or derived from the size if `sigma_px` ≤ 0.
///
/// # Source
/// OpenCV's `getGaussianKernel`: `0.3·((n−1)/2 − 1) + 0.8`.
pub fn effective_sigma(kernel_size: usize, sigma_px: f64) -> f64 {
    if sigma_px > 0.0 {
        sigma_px
    } else {
        0.3 * ((kernel_size as f64 - 1.0) * 0.5 - 1.0) + 0.8
    }
}

/// The normalised Gaussian, `kernel_size` taps.
pub fn weights_f64(kernel_size: usize, sigma_px: f64) -> Vec<f64> {
    let sigma = effective_sigma(kernel_size, sigma_px);
    let centre = (kernel_size / 2) as f64;
    let taps: Vec<f64> = (0..kernel_size)
        .map(|i| {
            let x = i as f64 - centre;
            (-x * x / (2.0 * sigma * sigma)).exp()
        })
        .collect();
    let sum: f64 = taps.iter().sum();
    taps.iter().map(|w| w / sum).collect()
}

/// Whether weights in 1/256 are the binomial ones of `gaussian_binomial.cl`.
pub fn is_binomial(weights_q8: &[u32]) -> bool {
    matches!(weights_q8, [64, 128, 64] | [16, 64, 96, 64, 16])
}

/// Weights in 1/256, `kernel_size` taps, summing to 256.
///
/// # Source
/// docs/semantics.md, "Gaussian", after OpenCV's fixed-point Gaussian
/// (`getGaussianKernelFixedPoint_ED`): rounding errors are carried from the outermost tap inwards,
/// the centre takes the rest.
pub fn weights_q8(kernel_size: usize, sigma_px: f64) -> Vec<u32> {
    if sigma_px <= 0.0 {
        match kernel_size {
            3 => return vec![64, 128, 64],
            5 => return vec![16, 64, 96, 64, 16],
            7 => return vec![8, 28, 56, 72, 56, 28, 8],
            9 => return vec![4, 13, 30, 51, 60, 51, 30, 13, 4],
            _ => {}
        }
    }
    let float = weights_f64(kernel_size, sigma_px);
    let half = kernel_size / 2;
    let mut weights = vec![0_u32; kernel_size];
    let mut error = 0.0;
    let mut sum = 0;
    for i in 0..half {
        let value = 256.0 * float[i] + error;
        let rounded = value.round_ties_even();
        error = value - rounded;
        let weight = rounded.max(0.0) as u32;
        weights[i] = weight;
        weights[kernel_size - 1 - i] = weight;
        sum += 2 * weight;
    }
    weights[half] = 256_u32.saturating_sub(sum);
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_binomial_by_weights_and_not_by_sigma() {
        assert!(is_binomial(&weights_q8(3, 0.0)) && is_binomial(&weights_q8(5, 0.0)));
        assert!(!is_binomial(&weights_q8(7, 0.0)) && !is_binomial(&weights_q8(5, 0.8)));
        // A sigma near 0.85 rounds to the same weights.
        assert_eq!(weights_q8(3, 0.85), [64, 128, 64]);
    }

    #[test]
    fn weights_q8_every_size_and_sigma_sum_to_256_and_mirror() {
        for n in KERNEL_SIZE_RANGE.step_by(2) {
            for sigma in [0.0, 0.1, 0.3, 0.5, 0.8, 1.0, 2.0, 5.0, 10.0, 50.0, 1e6] {
                let weights = weights_q8(n, sigma);
                assert_eq!(weights.iter().sum::<u32>(), 256, "n={n} sigma={sigma}");
                assert!(weights.iter().eq(weights.iter().rev()));
            }
        }
    }
}
