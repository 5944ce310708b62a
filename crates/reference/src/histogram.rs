//! Reference of `clhistogram`: counts and statistics of one channel.
//!
//! Source: docs/semantics.md, "Histogram".

use crate::plane::Samples;

/// Counts the samples of one channel in a region.
///
/// `region` is x, y, width, height in samples of this component. Its part outside the component is
/// ignored; a region without area counts nothing. `bit_depth` is the number of bits that samples
/// use, `bins` a power of two, at most `2^bit_depth`. Returns `bins` counts.
///
/// # Source
/// docs/semantics.md: `bin = sample >> (depth - log2(bins))`; a sample of more bits counts in the
/// last bin.
pub fn histogram(c: Samples, region: [usize; 4], bit_depth: u32, bins: usize) -> Vec<u32> {
    let shift = bin_shift(bit_depth, bins);
    let [x, y, width, height] = region;
    let mut counts = vec![0_u32; bins];
    for row in y.min(c.height)..y.saturating_add(height).min(c.height) {
        for column in x.min(c.width)..x.saturating_add(width).min(c.width) {
            let bin = (c.get(column, row) >> shift) as usize;
            counts[bin.min(bins - 1)] += 1;
        }
    }
    counts
}

/// Low bits of a sample that do not select its bin.
fn bin_shift(bit_depth: u32, bins: usize) -> u32 {
    assert!(bins.is_power_of_two(), "{bins} bins are not a power of two");
    assert!(
        bins.ilog2() <= bit_depth,
        "{bins} bins are too many for {bit_depth} bits"
    );
    bit_depth - bins.ilog2()
}

/// The region of a subsampled component that covers a region of the frame.
///
/// `region` is x, y, width, height in luma pixels. `w_sub` and `h_sub` are log2 of the
/// subsampling, as in GStreamer's format description (1 and 1 for I420, 1 and 0 for Y42B).
/// Returns x, y, width, height in chroma samples, inside `component_width` x `component_height`.
///
/// # Source
/// docs/semantics.md: "For subsampled chroma the region grows outward to whole chroma samples."
pub fn chroma_region(
    region: [usize; 4],
    w_sub: u32,
    h_sub: u32,
    component_width: usize,
    component_height: usize,
) -> [usize; 4] {
    let [x, y, width, height] = region;
    if width == 0 || height == 0 {
        return [0; 4];
    }
    let (left, columns) = grow(x, width, 1 << w_sub, component_width);
    let (top, rows) = grow(y, height, 1 << h_sub, component_height);
    [left, top, columns, rows]
}

/// First chroma sample and number of chroma samples that touch pixels `start..start + len`.
fn grow(start: usize, len: usize, pixels_per_sample: usize, limit: usize) -> (usize, usize) {
    let first = (start / pixels_per_sample).min(limit);
    let end = start.saturating_add(len).div_ceil(pixels_per_sample);
    (first, end.min(limit) - first)
}

/// The statistics that `clhistogram` reports of one channel; grey levels are lower edges of bins.
///
/// Every field is 0 if no sample was counted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Statistics {
    /// Samples counted.
    pub count: u64,
    /// Lowest bin with a sample, in grey levels.
    pub minimum: f64,
    /// Highest bin with a sample, in grey levels.
    pub maximum: f64,
    /// Mean in grey levels.
    pub mean: f64,
    /// Population standard deviation in grey levels.
    pub stddev: f64,
    /// The 50th percentile, in grey levels.
    pub median: f64,
    /// The 1st percentile, in grey levels.
    pub p1: f64,
    /// The 5th percentile, in grey levels.
    pub p5: f64,
    /// The 95th percentile, in grey levels.
    pub p95: f64,
    /// The 99th percentile, in grey levels.
    pub p99: f64,
    /// Fraction of the samples in the lowest bin, 0..1.
    pub saturated_low: f64,
    /// Fraction of the samples in the highest bin, 0..1.
    pub saturated_high: f64,
    /// Shannon entropy of the bins, in bits.
    pub entropy: f64,
    /// The last grey level of the darker class: bins up to and including it are the darker class.
    /// 0 if no split separates anything (a constant region).
    pub otsu_threshold: f64,
    /// Between-class over total variance at that threshold, 0..1; 0 for a constant region.
    pub otsu_separability: f64,
}

/// Statistics of one channel from its counts.
///
/// `bins` are the counts, a power of two of them, at most `2^bit_depth`.
///
/// # Source
/// docs/semantics.md, "Histogram". Otsu, "A threshold selection method from gray-level histograms",
/// 1979. Sums are exact integers and are divided once, so equal splits compare equal and "the first
/// maximum" is well defined.
pub fn statistics(bins: &[u32], bit_depth: u32) -> Statistics {
    let shift = bin_shift(bit_depth, bins.len());
    let level = |bin: usize| (bin as u128) << shift;

    let (mut count, mut sum, mut sum_of_squares) = (0_u128, 0_u128, 0_u128);
    for (bin, &n) in bins.iter().enumerate() {
        count += u128::from(n);
        sum += u128::from(n) * level(bin);
        sum_of_squares += u128::from(n) * level(bin) * level(bin);
    }
    if count == 0 {
        return EMPTY;
    }

    let fraction = |n: u32| f64::from(n) / count as f64;
    // The population variance times count².
    let scaled_variance = count * sum_of_squares - sum * sum;
    let (otsu_bin, otsu_separability) = otsu(bins, level, count, sum, scaled_variance);
    let percentile = |p| level(percentile_bin(bins, count, p)) as f64;
    Statistics {
        count: count as u64,
        minimum: level(bins.iter().position(|&n| n > 0).unwrap_or(0)) as f64,
        maximum: level(bins.iter().rposition(|&n| n > 0).unwrap_or(0)) as f64,
        mean: sum as f64 / count as f64,
        stddev: (scaled_variance as f64).sqrt() / count as f64,
        median: percentile(50),
        p1: percentile(1),
        p5: percentile(5),
        p95: percentile(95),
        p99: percentile(99),
        saturated_low: fraction(bins[0]),
        saturated_high: fraction(bins[bins.len() - 1]),
        entropy: bins
            .iter()
            .filter(|&&n| n > 0)
            .map(|&n| -fraction(n) * fraction(n).log2())
            .sum::<f64>()
            // A single filled bin sums to -0.
            .max(0.0),
        otsu_threshold: level(otsu_bin) as f64,
        otsu_separability,
    }
}

/// The first bin with `100 * cumulative >= p * count`.
fn percentile_bin(bins: &[u32], count: u128, p: u128) -> usize {
    let mut cumulative = 0_u128;
    for (bin, &n) in bins.iter().enumerate() {
        cumulative += u128::from(n);
        if 100 * cumulative >= p * count {
            return bin;
        }
    }
    bins.len() - 1
}

/// Otsu's bin and separability; `count` and `sum` are those of all bins.
fn otsu(
    bins: &[u32],
    level: impl Fn(usize) -> u128,
    count: u128,
    sum: u128,
    scaled_variance: u128,
) -> (usize, f64) {
    let (mut best_bin, mut best) = (0, 0.0);
    let (mut low_count, mut low_sum) = (0_u128, 0_u128);
    for (bin, &n) in bins.iter().enumerate() {
        low_count += u128::from(n);
        low_sum += u128::from(n) * level(bin);
        let high_count = count - low_count;
        if low_count == 0 || high_count == 0 {
            continue;
        }
        // The between-class variance times count². The mean of the lower class never exceeds the
        // whole mean, so the subtraction does not underflow.
        let distance = (sum * low_count - count * low_sum) as f64;
        let between = distance * distance / (low_count * high_count) as f64;
        if between > best {
            (best_bin, best) = (bin, between);
        }
    }
    if scaled_variance == 0 {
        (best_bin, 0.0)
    } else {
        (best_bin, (best / scaled_variance as f64).min(1.0))
    }
}

const EMPTY: Statistics = Statistics {
    count: 0,
    minimum: 0.0,
    maximum: 0.0,
    mean: 0.0,
    stddev: 0.0,
    median: 0.0,
    p1: 0.0,
    p5: 0.0,
    p95: 0.0,
    p99: 0.0,
    saturated_low: 0.0,
    saturated_high: 0.0,
    entropy: 0.0,
    otsu_threshold: 0.0,
    otsu_separability: 0.0,
};
