//! Candidates: peaks of the autocorrelation, one octave of lags after another.

use super::correlation::{Correlator, interpolate, remove_noise_at_zero};
use super::prepare::Prepared;

/// Maximum number of lines that the search reads; the search need not be precise.
const MAX_LINES: usize = 48;
/// Longest lag of the first octave, px.
const FIRST_OCTAVE_PX: f64 = 4.0;
/// `1 − exp(−C·(f·W)²)`: passes 78 % of the amplitude at the octave's longest period W, 15 % at 3W.
const FILTER: f32 = 1.5;
/// Peaks taken from one octave.
const PEAKS: usize = 4;
/// Correlation below which a peak is noise.
const MIN_SCORE: f64 = 0.12;
/// Candidates with at least this share of the best score count as equal; the shortest comes first.
const EQUAL: f64 = 0.85;

/// Buffers of the search.
#[derive(Default)]
pub struct Search {
    octaves: [Vec<f32>; 2],
    found: Vec<(f64, f64)>,
}

impl Search {
    /// Candidates up to `longest`, the most promising first.
    pub fn run(
        &mut self,
        prepared: &Prepared,
        correlator: &mut Correlator,
        longest: f64,
    ) -> Vec<f64> {
        sum_spectra(prepared, correlator);
        let length = prepared.length();
        self.found.clear();
        let mut octave = FIRST_OCTAVE_PX;
        while octave / 2.0 <= longest {
            let filter = |longest: f64| {
                move |f: f32| {
                    let fw = f * longest as f32;
                    let gain = 1.0 - (-FILTER * fw * fw).exp();
                    gain * gain
                }
            };
            let (first, second) = (filter(octave), filter(2.0 * octave));
            let [a, b] = &mut self.octaves;
            correlator.filtered([&first, &second], [a, b], length);
            for (values, octave) in self.octaves.iter_mut().zip([octave, 2.0 * octave]) {
                if octave / 2.0 <= longest {
                    normalise(values);
                    peaks(values, octave, longest, &mut self.found);
                }
            }
            octave *= 4.0;
        }
        let best = self.found.iter().map(|c| c.1).fold(0.0, f64::max);
        self.found.retain(|c| c.1 >= MIN_SCORE.max(0.5 * best));
        // Good candidates by length, then the others by score.
        self.found.sort_by(|a, b| {
            let class = |c: &(f64, f64)| c.1 < EQUAL * best;
            class(a).cmp(&class(b)).then(if class(a) {
                b.1.total_cmp(&a.1)
            } else {
                a.0.total_cmp(&b.0)
            })
        });
        self.found.iter().map(|c| c.0).collect()
    }
}

fn sum_spectra(prepared: &Prepared, correlator: &mut Correlator) {
    let length = prepared.length();
    let lines = prepared.lines();
    let step = lines.len().div_ceil(MAX_LINES).max(1);
    let centre = 0.5 * (length as f32 - 1.0);
    correlator.start(length);
    let mut chosen = lines.step_by(step);
    while let Some((first, first_slope)) = chosen.next() {
        let second = chosen.next();
        correlator.add_pair(|buffer| {
            for (x, (slot, v)) in buffer.iter_mut().zip(first).enumerate() {
                slot.re = v - first_slope * (x as f32 - centre);
            }
            if let Some((line, slope)) = second {
                for (x, (slot, v)) in buffer.iter_mut().zip(line).enumerate() {
                    slot.im = v - slope * (x as f32 - centre);
                }
            }
        });
    }
}

/// Divides by the value at lag 0 and by the overlap.
fn normalise(values: &mut [f32]) {
    let length = values.len() as f32;
    let zero = values
        .first()
        .copied()
        .unwrap_or(0.0)
        .max(f32::MIN_POSITIVE);
    for (lag, value) in values.iter_mut().enumerate() {
        *value *= length / (zero * (length - lag as f32));
    }
    remove_noise_at_zero(values);
}

/// Adds the octave's highest peaks to `found`, scored by the mean correlation at their first three
/// multiples.
fn peaks(values: &[f32], octave: f64, longest: f64, found: &mut Vec<(f64, f64)>) {
    let first = ((octave / 2.0).floor() as usize).max(2);
    let last = (octave.min(longest).ceil() as usize).min(values.len().saturating_sub(2));
    let mut tops: Vec<usize> = (first..=last)
        .filter(|&lag| values[lag] >= values[lag - 1] && values[lag] > values[lag + 1])
        .filter(|&lag| values[lag] > 0.0)
        .collect();
    tops.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    tops.truncate(PEAKS);
    let reach = values.len() as f64 * 0.75;
    for top in tops {
        let centre = top as f64;
        let pitch = (-8..=8)
            .map(|i| centre + f64::from(i) * 0.1)
            .max_by(|&a, &b| interpolate(values, a).total_cmp(&interpolate(values, b)))
            .unwrap_or(centre);
        let multiples = (1..=3)
            .map(|m| f64::from(m) * pitch)
            .take_while(|&lag| lag < reach);
        let (sum, count) = multiples.fold((0.0, 0), |(sum, count), lag| {
            (sum + interpolate(values, lag), count + 1)
        });
        if count > 0 {
            found.push((pitch, sum / f64::from(count)));
        }
    }
}
