//! Whether pictures repeat, and how alike the repeats are.

use clinspect_core::pitch_estimate::{Lines, PitchEstimator};

use super::picture::{Picture, median};

/// Repeats whose likeness is measured: a texture forgets its phase within them.
pub(super) const FAR: std::ops::RangeInclusive<usize> = 6..=12;
/// Share of the pictures in which a pitch must be found.
pub(super) const LEAST_FOUND: f64 = 0.5;
/// Lines whose likeness is measured, which bounds the time.
pub(super) const MOST_LINES: usize = 48;
/// Share by which a lag may differ from a multiple of the pitch, as the pitch is not exact.
pub(super) const SLACK: f64 = 0.004;

/// What repeats along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Repeat {
    /// The pitch, px; 0 if nothing repeats.
    pub pitch: f64,
    /// Correlation with places some repeats away, without the noise: 1 if all repeats are equal.
    pub likeness: f64,
    /// Standard deviation along the axis, grey levels of 8 bits.
    pub deviation: f64,
}

/// What repeats along the lines that `lines` takes from each picture.
pub fn along(
    pictures: &[&Picture],
    lines: fn(&Picture) -> (Vec<f32>, usize),
    noise: f64,
    estimator: &mut PitchEstimator,
) -> Repeat {
    let lines: Vec<(Vec<f32>, usize)> = pictures.iter().map(|picture| lines(picture)).collect();
    let estimates = lines.iter().filter_map(|(samples, length)| {
        let lines = Lines {
            samples,
            length: *length,
        };
        Some(estimator.estimate(&lines)?.pitch_px)
    });
    let pitches: Vec<f64> = estimates.collect();
    let deviation = lines
        .iter()
        .map(|(samples, length)| deviation(samples, *length));
    let deviation = median(deviation.collect());
    if (pitches.len() as f64) < LEAST_FOUND * pictures.len() as f64 {
        return Repeat {
            deviation,
            ..Repeat::default()
        };
    }
    let pitch = median(pitches);
    let likeness = lines
        .iter()
        .filter_map(|(samples, length)| likeness(samples, *length, pitch, noise));
    Repeat {
        pitch,
        likeness: median(likeness.collect()),
        deviation,
    }
}

/// Standard deviation along a line: of the middle line.
fn deviation(samples: &[f32], length: usize) -> f64 {
    let of_line = samples.chunks_exact(length.max(1)).map(|line| {
        let count = length as f64;
        let mean = line.iter().map(|&v| f64::from(v)).sum::<f64>() / count;
        (line
            .iter()
            .map(|&v| (f64::from(v) - mean).powi(2))
            .sum::<f64>()
            / count)
            .sqrt()
    });
    median(of_line.collect())
}

/// The middle correlation of the lines with themselves [`FAR`] pitches away, or as far as there are repeats.
fn likeness(samples: &[f32], length: usize, pitch: f64, noise: f64) -> Option<f64> {
    let window = (pitch.round() as usize).max(1);
    let lines = samples.chunks_exact(length.max(1));
    let step = lines.len().div_ceil(MOST_LINES).max(1);
    let flat: Vec<Vec<f64>> = lines
        .step_by(step)
        .map(|line| without_mean(line, window))
        .collect();
    let width = flat.first()?.len();
    let periods = (width as f64 / pitch) as usize;
    let multiples: Vec<usize> = FAR.filter(|m| 2 * m <= periods).collect();
    let multiples = if multiples.is_empty() {
        vec![(periods / 2).max(1)]
    } else {
        multiples
    };
    let variance = |line: &Vec<f64>| line.iter().map(|v| v * v).sum::<f64>() / width as f64;
    let whole = flat.iter().map(variance).sum::<f64>() / flat.len() as f64;
    // The moving mean takes a share of the noise with it.
    let pure = whole - noise * noise * (1.0 - 1.0 / window as f64);
    if pure <= 0.0 {
        return None;
    }
    let at = |lag: usize| {
        let pairs = width.saturating_sub(lag);
        let of = |line: &Vec<f64>| {
            line.iter()
                .zip(&line[lag.min(width)..])
                .map(|(a, b)| a * b)
                .sum::<f64>()
        };
        flat.iter().map(of).sum::<f64>() / (pairs * flat.len()).max(1) as f64
    };
    let found = multiples.into_iter().map(|m| {
        let lag = m as f64 * pitch;
        let slack = 1.0 + SLACK * lag;
        let (first, last) = (
            (lag - slack).floor() as usize,
            (lag + slack).ceil() as usize,
        );
        let values: Vec<f64> = (first.saturating_sub(1)..=last + 1).map(at).collect();
        peak(&values) / pure
    });
    Some(median(found.collect()))
}

/// The largest value, between samples.
pub(super) fn peak(values: &[f64]) -> f64 {
    let mut best = f64::MIN;
    for three in values.windows(3) {
        let [a, b, c] = [three[0], three[1], three[2]];
        let bend = a - 2.0 * b + c;
        let is_top = b >= a && b >= c && bend < 0.0;
        best = best.max(if is_top {
            b - (a - c) * (a - c) / (8.0 * bend)
        } else {
            b
        });
    }
    best
}

/// A line minus its mean over `window` samples around each; the ends, which have no whole window, are left out.
fn without_mean(line: &[f32], window: usize) -> Vec<f64> {
    let mut sum: f64 = line.iter().take(window).map(|&v| f64::from(v)).sum();
    let mut flat = Vec::with_capacity((line.len() + 1).saturating_sub(window));
    for (at, &next) in line.iter().enumerate().skip(window) {
        let middle = f64::from(line[at - window + window / 2]);
        flat.push(middle - sum / window as f64);
        sum += f64::from(next) - f64::from(line[at - window]);
    }
    flat
}
