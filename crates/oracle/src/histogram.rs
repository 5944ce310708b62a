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
/// docs/semantics.md, "Histogram": each field as it is defined there, of the samples in ascending order. Otsu, "A
/// threshold selection method from gray-level histograms", 1979. Splits are compared as fractions of whole numbers, so
/// equal splits compare equal and "the first maximum" is well defined.
pub fn statistics(bins: &[u32], bit_depth: u32) -> Statistics {
    let shift = bin_shift(bit_depth, bins.len());
    // The levels that occur, and how many samples have each.
    let levels: Vec<(u64, u64)> = (bins.iter().enumerate())
        .map(|(bin, &n)| ((bin as u64) << shift, u64::from(n)))
        .filter(|&(_, n)| n > 0)
        .collect();
    let (Some(&(minimum, _)), Some(&(maximum, _))) = (levels.first(), levels.last()) else {
        return EMPTY;
    };
    let all = Class::of(&levels);
    let share = |n: u64| n as f64 / all.count as f64;
    let variance: f64 = (levels.iter())
        .map(|&(level, n)| share(n) * (level as f64 - all.mean()).powi(2))
        .sum();
    let percentile = |percent: u64| {
        // The place of the sample, counted from the darkest one.
        let mut place = (percent * all.count).div_ceil(100);
        let found = levels.iter().find(|&&(_, n)| {
            let is_here = place <= n;
            place = place.saturating_sub(n);
            is_here
        });
        found.map_or(0.0, |&(level, _)| level as f64)
    };
    let (threshold, between) = otsu(&levels);
    Statistics {
        count: all.count,
        minimum: minimum as f64,
        maximum: maximum as f64,
        mean: all.mean(),
        stddev: variance.sqrt(),
        median: percentile(50),
        p1: percentile(1),
        p5: percentile(5),
        p95: percentile(95),
        p99: percentile(99),
        saturated_low: share(u64::from(bins[0])),
        saturated_high: share(u64::from(bins[bins.len() - 1])),
        entropy: levels
            .iter()
            .map(|&(_, n)| share(n) * (all.count as f64 / n as f64).log2())
            .sum(),
        otsu_threshold: threshold as f64,
        otsu_separability: if minimum == maximum {
            0.0
        } else {
            (between / variance).min(1.0)
        },
    }
}

/// Samples of some levels.
struct Class {
    count: u64,
    sum: u64,
}

impl Class {
    fn of(levels: &[(u64, u64)]) -> Self {
        Self {
            count: levels.iter().map(|&(_, n)| n).sum(),
            sum: levels.iter().map(|&(level, n)| level * n).sum(),
        }
    }

    fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }
}

/// Otsu's threshold, and the between-class variance there: `w0 w1 (mean1 - mean0)^2`, the classes' shares w0 and w1.
fn otsu(levels: &[(u64, u64)]) -> (u64, f64) {
    let all = Class::of(levels);
    let mut low = Class { count: 0, sum: 0 };
    // The best split's level and variance, and the variance as a fraction: both parts with the factor `all.count^2`.
    let mut best = (0, 0.0, [vec![0], vec![1]]);
    for &(level, n) in &levels[..levels.len() - 1] {
        low.count += n;
        low.sum += n * level;
        let high = Class {
            count: all.count - low.count,
            sum: all.sum - low.sum,
        };
        let [n0, n1] = [low.count, high.count].map(u128::from);
        let distance = u128::from(high.sum) * n0 - u128::from(low.sum) * n1;
        let between = [product(&[distance, distance]), product(&[n0, n1])];
        let [numerator, denominator] = &best.2;
        if is_less(
            &multiplied(numerator, &between[1]),
            &multiplied(&between[0], denominator),
        ) {
            let weights = n0 as f64 * n1 as f64 / (all.count as f64 * all.count as f64);
            let variance = weights * (high.mean() - low.mean()).powi(2);
            best = (level, variance, between);
        }
    }
    (best.0, best.1)
}

/// A product as digits of 32 bits, the lowest one first.
fn product(factors: &[u128]) -> Vec<u32> {
    let digits = |factor: u128| {
        (0..4)
            .map(|i| (factor >> (32 * i)) as u32)
            .collect::<Vec<_>>()
    };
    (factors.iter()).fold(vec![1], |all, &factor| multiplied(&all, &digits(factor)))
}

fn multiplied(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut digits = vec![0; a.len() + b.len()];
    for (i, &x) in a.iter().enumerate() {
        let mut carried = 0;
        for (k, &y) in b.iter().chain([&0]).enumerate() {
            let sum = u64::from(x) * u64::from(y) + u64::from(digits[i + k]) + carried;
            digits[i + k] = sum as u32;
            carried = sum >> 32;
        }
    }
    digits
}

/// Whether the number of the digits `a` is less than that of `b`.
fn is_less(a: &[u32], b: &[u32]) -> bool {
    let digit = |digits: &[u32], at: usize| digits.get(at).copied().unwrap_or(0);
    let places = (0..a.len().max(b.len())).rev();
    let mut pairs = places.map(|at| (digit(a, at), digit(b, at)));
    pairs.find(|(x, y)| x != y).is_some_and(|(x, y)| x < y)
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
