//! Refines a rough pitch by the comb of correlations at its multiples (the teeth).

use super::{Fading, correlation::interpolate};

/// Most multiples that one evaluation of the comb reads, spread over all of them.
const MAX_TEETH: usize = 24;
/// A multiple is used if its pairs are at least this share of the line's samples.
const MIN_OVERLAP: f64 = 1.0 / 24.0;
/// Multiples whose mean correlation is the confidence. Few enough for cloth, which keeps its phase over
/// three to five pitches; enough that structures which resemble each other by chance differ.
const CONFIDENCE_TEETH: usize = 4;
/// Step of the search at the lag of the farthest multiple, px, and in pitches: a quarter of a
/// correlation peak's width after the optics.
const STEP_PX: f64 = 0.2;
const STEP_PITCHES: f64 = 1.0 / 16.0;
/// Farther multiples are ignored once their correlation falls below this share of the nearer ones',
/// as under perspective or distortion.
const COHERENT: f64 = 0.6;
/// Largest ratio of a candidate to the period, or of the period to a candidate.
const MAX_RATIO: usize = 8;
/// If the correlations at every k-th multiple exceed their neighbours' by this share, the period is
/// k pitches. The share has a base and grows with the noise (`1 − correlation`).
const UNEVEN: f64 = 0.02;
const UNEVEN_BY_CHANCE: f64 = 0.1;
/// The base for pitches below [`SHARP_PX`], where interpolation alone makes a difference of 0.05.
const UNEVEN_SHARP: f64 = 0.08;
const SHARP_PX: f64 = 8.0;
/// Shortest period considered, px.
const SHORTEST_PX: f64 = 1.8;

/// Normalised correlation by lag, and the number of pairs at each lag.
pub struct Comb<'a> {
    rho: &'a [f32],
    pairs: &'a [f32],
}

/// A multiple of the pitch and its weight.
#[derive(Clone, Copy)]
struct Tooth {
    multiple: f64,
    /// Pairs at the tooth's lag for the start pitch. Fixed while the pitch is varied: varying
    /// weights would favour one pitch where correlations differ by chance.
    pairs: f64,
}

impl<'a> Comb<'a> {
    /// The comb of `rho` by lag.
    pub fn new(rho: &'a [f32], pairs: &'a [f32]) -> Self {
        Self { rho, pairs }
    }

    fn pairs(&self, lag: f64) -> f64 {
        self.pairs
            .get(lag.round() as usize)
            .map_or(0.0, |&n| f64::from(n))
    }

    fn at(&self, lag: f64) -> f64 {
        interpolate(self.rho, lag)
    }

    /// The multiples of a pitch that have enough pairs.
    fn teeth(&self, pitch: f64) -> Vec<Tooth> {
        let length = self.pairs.len() as f64;
        // The interpolation reads six lags beyond.
        let farthest = ((length - 8.0) / pitch) as usize;
        (1..=farthest)
            .map(|m| Tooth {
                multiple: m as f64,
                pairs: self.pairs(m as f64 * pitch),
            })
            .filter(|tooth| tooth.pairs >= length * MIN_OVERLAP)
            .collect()
    }

    /// Mean correlation at the multiples, weighted by pairs.
    fn mean(&self, pitch: f64, teeth: &[Tooth]) -> f64 {
        let (sum, pairs) = teeth.iter().fold((0.0, 0.0), |(sum, pairs), tooth| {
            let rho = self.at(tooth.multiple * pitch);
            (sum + tooth.pairs * rho, pairs + tooth.pairs)
        });
        if pairs > 0.0 { sum / pairs } else { 0.0 }
    }

    /// Refines a pitch at ever farther multiples; `None` if no multiple has enough pairs.
    pub fn refine(&self, start: f64) -> Option<f64> {
        let teeth = self.teeth(start);
        let last = teeth.last()?.multiple;
        let mut pitch = start;
        let mut far = 1.0;
        let mut near_mean = 0.0;
        loop {
            let within = teeth.partition_point(|tooth| tooth.multiple <= far);
            let chosen = spread(&teeth[..within]);
            let step = STEP_PX.min(start * STEP_PITCHES) / far;
            let better = self.peak(pitch, step, if far > 1.0 { 4 } else { 6 }, &chosen);
            let near = teeth.partition_point(|tooth| 2.0 * tooth.multiple <= far);
            let outer_mean = self.mean(better, &spread(&teeth[near.min(within)..within]));
            if far > 1.0 && outer_mean < COHERENT * near_mean {
                break;
            }
            near_mean = f64::max(near_mean, outer_mean);
            // A second parabola, around the top of the first.
            pitch = self.peak(better, 0.25 * step, 2, &chosen);
            if far >= last {
                break;
            }
            far = (2.0 * far).min(last);
        }
        Some(pitch)
    }

    /// The best of `2·reach + 1` pitches, refined by the parabola through it and its neighbours.
    fn peak(&self, centre: f64, step: f64, reach: i32, teeth: &[Tooth]) -> f64 {
        let value = |i: i32| self.mean(centre + f64::from(i) * step, teeth);
        let (mut top, mut highest) = (0, f64::NEG_INFINITY);
        for i in -reach..=reach {
            let v = value(i);
            if v > highest {
                (top, highest) = (i, v);
            }
        }
        let (left, right) = (value(top - 1), value(top + 1));
        let bend = left - 2.0 * highest + right;
        let shift = if bend < 0.0 {
            (0.5 * (left - right) / bend).clamp(-1.0, 1.0)
        } else {
            0.0
        };
        centre + (f64::from(top) + shift) * step
    }

    /// The period: the pitch, or a multiple or a whole fraction of the pitch.
    pub fn fundamental(&self, pitch: f64, longest: f64) -> Option<f64> {
        let all = self.teeth(pitch);
        let farthest = all.len().min(3 * MAX_RATIO);
        let rho: Vec<f64> = all[..farthest]
            .iter()
            .map(|tooth| self.at(tooth.multiple * pitch))
            .collect();
        if rho.is_empty() {
            return None;
        }
        let limit = |pitch: f64, top: f64| {
            let least = if pitch < SHARP_PX {
                UNEVEN_SHARP
            } else {
                UNEVEN
            };
            f64::max(least, UNEVEN + UNEVEN_BY_CHANCE * (1.0 - top))
        };
        let longer = (2..=MAX_RATIO)
            .filter(|&k| k as f64 * pitch <= longest && farthest > k)
            // A whole period correlates better than its parts. The chance differences between the
            // repeats of a wandering texture do not follow this order.
            .filter(|&k| rho[..k - 1].iter().all(|&part| part < rho[k - 1]))
            .map(|k| {
                // Compares multiples of k with their two neighbours, so that a slow change cancels.
                let tops = (k..farthest).step_by(k).map(|m| rho[m - 1]);
                let dips = (k..farthest)
                    .step_by(k)
                    .map(|m| 0.5 * (rho[m - 2] + rho[m]));
                let (top, dip) = (mean(tops), mean(dips));
                (k, (top - dip) / top.max(1e-3), top)
            })
            .filter(|&(_, uneven, top)| top > 0.0 && uneven > limit(pitch, top))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((k, ..)) = longer {
            return Some(pitch * k as f64);
        }
        let whole = mean(rho.iter().copied());
        let shorter = (2..=MAX_RATIO)
            .rev()
            .filter(|&k| pitch / k as f64 >= SHORTEST_PX)
            .find(|&k| {
                let part = pitch / k as f64;
                let lags = (1..3 * k).filter(|m| m % k != 0).map(|m| m as f64 * part);
                let between = mean(
                    lags.filter(|&lag| self.pairs(lag) >= part)
                        .map(|l| self.at(l)),
                );
                whole > 0.0 && between >= (1.0 - limit(part, whole)) * whole
            });
        Some(shorter.map_or(pitch, |k| pitch / k as f64))
    }

    /// Mean correlation at the nearest multiples, or at the farther half of these if that is lower.
    /// Noise lowers all alike; a texture's correlation falls with the distance.
    pub fn confidence(&self, pitch: f64) -> f64 {
        let teeth = self.nearest(pitch);
        let farther = &teeth[teeth.len() / 2..];
        self.mean(pitch, &teeth).min(self.mean(pitch, farther))
    }

    /// How the correlation falls over the nearest multiples.
    pub fn fading(&self, pitch: f64) -> Fading {
        let teeth = self.nearest(pitch);
        let (nearer, farther) = teeth.split_at(teeth.len().div_ceil(2));
        let near = self.mean(pitch, nearer);
        let kept = match farther {
            [] => 1.0,
            _ if near > 0.0 => self.mean(pitch, farther) / near,
            _ => 0.0,
        };
        Fading {
            second: teeth.get(1).map_or(0.0, |_| self.at(2.0 * pitch)),
            kept,
        }
    }

    fn nearest(&self, pitch: f64) -> Vec<Tooth> {
        let mut teeth = self.teeth(pitch);
        teeth.truncate(CONFIDENCE_TEETH);
        teeth
    }
}

/// At most [`MAX_TEETH`] of the teeth, evenly spread, including the last.
fn spread(teeth: &[Tooth]) -> Vec<Tooth> {
    let step = teeth.len().div_ceil(MAX_TEETH).max(1);
    teeth.iter().rev().step_by(step).copied().collect()
}

/// Mean; 0 without values.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), v| (sum + v, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}
