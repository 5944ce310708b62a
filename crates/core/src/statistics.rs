//! Statistics of one channel's histogram.

/// Statistics of one channel, in grey levels; the level of a bin is its lower edge.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Statistics {
    /// Samples counted.
    pub count: u64,
    /// Lowest level that occurs.
    pub minimum: f64,
    /// Highest level that occurs.
    pub maximum: f64,
    /// Mean level.
    pub mean: f64,
    /// Population standard deviation.
    pub stddev: f64,
    /// 50th percentile.
    pub median: f64,
    /// 1st percentile.
    pub p1: f64,
    /// 5th percentile.
    pub p5: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Share of samples in the lowest bin, 0..1.
    pub saturated_low: f64,
    /// Share of samples in the highest bin, 0..1.
    pub saturated_high: f64,
    /// Shannon entropy, bits.
    pub entropy: f64,
    /// Otsu's threshold; levels up to and including it are the lower class.
    pub otsu_threshold: f64,
    /// Between-class over total variance at that threshold, 0..1; 0 for a constant region.
    pub otsu_separability: f64,
}

impl Statistics {
    /// Statistics of `bins`, whose width is `2^bit_depth / bins.len()` grey levels.
    ///
    /// # Source
    /// N. Otsu, "A Threshold Selection Method from Gray-Level Histograms", IEEE Transactions on
    /// Systems, Man, and Cybernetics 9(1), 1979: the first maximum of the between-class variance.
    pub fn from_bins(bins: &[u32], bit_depth: u32) -> Self {
        let count: u64 = bins.iter().map(|&n| u64::from(n)).sum();
        if count == 0 {
            return Self::default();
        }
        let width = f64::from(2_u32).powi(bit_depth as i32) / bins.len() as f64;
        let level = |bin: usize| bin as f64 * width;
        let total = count as f64;
        let first = bins.iter().position(|&n| n > 0).unwrap_or(0);
        let last = bins.iter().rposition(|&n| n > 0).unwrap_or(0);

        // Sums over bin indices are exact in integers; levels are scaled once at the end.
        let mut sum: u128 = 0;
        let mut square_sum: u128 = 0;
        let mut entropy = 0.0;
        for (bin, &n) in bins.iter().enumerate().skip(first).take(last - first + 1) {
            if n > 0 {
                let (bin, n128) = (bin as u128, u128::from(n));
                sum += bin * n128;
                square_sum += bin * bin * n128;
                let share = f64::from(n) / total;
                entropy -= share * share.log2();
            }
        }
        let count128 = u128::from(count);
        // count²·variance, in squared bins.
        let spread = count128 * square_sum - sum * sum;
        let variance = spread as f64 / total / total;

        let percentile = |p: u64| {
            let mut cumulative = 0;
            for (bin, &n) in bins.iter().enumerate() {
                cumulative += u64::from(n);
                if 100 * u128::from(cumulative) >= u128::from(p) * count128 {
                    return level(bin);
                }
            }
            level(bins.len() - 1)
        };

        // The first maximum; bin 0 if no split separates anything.
        let mut best = (0.0, 0);
        let mut below: u64 = 0;
        let mut below_sum: u128 = 0;
        for (bin, &n) in bins.iter().enumerate().skip(first).take(last - first) {
            below += u64::from(n);
            below_sum += bin as u128 * u128::from(n);
            // Between-class variance times count²: (S·n₀ − N·s₀)² / (n₀·(N − n₀)). The lower
            // class never has the higher mean, so the difference is not negative.
            let difference = (sum * u128::from(below) - count128 * below_sum) as f64;
            let between =
                difference * difference / (u128::from(below) * u128::from(count - below)) as f64;
            if between > best.0 {
                best = (between, bin);
            }
        }

        Self {
            count,
            minimum: level(first),
            maximum: level(last),
            mean: width * (sum as f64 / total),
            stddev: width * variance.sqrt(),
            median: percentile(50),
            p1: percentile(1),
            p5: percentile(5),
            p95: percentile(95),
            p99: percentile(99),
            saturated_low: f64::from(bins[0]) / total,
            saturated_high: f64::from(bins[bins.len() - 1]) / total,
            entropy: entropy.max(0.0),
            otsu_threshold: level(best.1),
            otsu_separability: if spread == 0 {
                0.0
            } else {
                (best.0 / spread as f64).clamp(0.0, 1.0)
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_two_equal_peaks_are_those_computed_by_hand() {
        let mut bins = vec![0; 256];
        bins[10] = 50;
        bins[20] = 50;
        let s = Statistics::from_bins(&bins, 8);
        assert_eq!((s.count, s.minimum, s.maximum), (100, 10.0, 20.0));
        assert_eq!((s.mean, s.stddev, s.entropy), (15.0, 5.0, 1.0));
        assert_eq!((s.median, s.p1, s.p95), (10.0, 10.0, 20.0));
        assert_eq!((s.otsu_threshold, s.otsu_separability), (10.0, 1.0));
    }

    #[test]
    fn statistics_of_a_constant_region_have_no_spread() {
        let mut bins = vec![0; 16];
        bins[15] = 7;
        let s = Statistics::from_bins(&bins, 8);
        assert_eq!((s.mean, s.stddev, s.entropy), (240.0, 0.0, 0.0));
        assert_eq!((s.saturated_low, s.saturated_high), (0.0, 1.0));
        assert_eq!((s.otsu_threshold, s.otsu_separability), (0.0, 0.0));
    }

    #[test]
    fn statistics_of_no_sample_are_zero() {
        assert_eq!(Statistics::from_bins(&[0; 4], 8), Statistics::default());
    }
}
