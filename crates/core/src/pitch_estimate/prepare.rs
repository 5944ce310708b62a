//! Prepares lines: scales them, masks positions without the pattern, subtracts the local mean.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use super::Lines;
use super::correlation::Correlator;
use super::filters::{
    changes_over, lane_sums, mean_magnitude, moving_mean, running_sums, smooth, to_neighbours,
};

/// Most samples of all lines together; bounds the time. Fewer lines are needed if they are long.
const MAX_SAMPLES: usize = 1 << 18;
/// Fewest lines used, if the frame has that many.
const MIN_LINES: usize = 16;
/// A frame whose variance is below this share of its mean square is constant but for rounding.
const FLAT: f64 = 1e-9;

/// Rank of the window whose variance the others are compared with. At this rank a window lies in
/// the pattern, even if nearly half of a line is border or many windows cross a border's edge.
const REFERENCE_RANK: f64 = 0.6;
/// Windows whose variance is outside these multiples of the reference are not pattern. Half the
/// light means a quarter of the variance.
const ACTIVITY: RangeInclusive<f32> = 0.25..=6.0;
/// Windows hold whole pitches and are at least this long, px, so that noise averages out.
const WINDOW_PX: f64 = 16.0;
/// Samples beside a border that the optics and the filter blur with it.
const EDGE: usize = 4;
/// Samples at the ends of a line that the filter does not reach; they are left out. If kept, they
/// would shift a pitch of five periods by 0.005 px.
const FRAME_EDGE: usize = 1;
/// Pitches that a run of positions must hold.
const RUN_PITCHES: f64 = 2.0;

/// From this pitch on, a filter of [1 2 1]/4 removes noise and keeps the fundamental and two
/// harmonics. A stronger filter was worse: it blurs the edges more than it removes noise.
const SMOOTHED_PITCH_PX: f64 = 8.0;
/// Positions between two readings of the means' drift.
const DRIFT_STRIDE: usize = 8;

/// A sample is a defect if it differs from both its neighbours one pitch away, in the same
/// direction, by more than this many times the mean difference. Noise does so once in 10⁷ samples.
const OUTLIER: f32 = 5.0;
/// The difference must also exceed this share of the pattern's mean magnitude: without noise, the
/// differences come from the edges alone, because the pitch is not precise yet.
const OUTLIER_OF_PATTERN: f32 = 0.25;
/// A line is left out (glare, border, scratch) if its mean square difference over a pitch exceeds
/// this multiple of the median line's.
const UNLIKE: f32 = 2.0;

/// The lines of one frame and the weights of their positions.
#[derive(Default)]
pub struct Prepared {
    length: usize,
    /// The lines minus their mean, divided by about their standard deviation; row-major.
    lines: Vec<f32>,
    /// Trend of each line, per sample.
    slopes: Vec<f32>,
    /// By position: 1 where the pattern is, else 0.
    weight: Vec<f32>,
    /// Half-open runs of positions with weight 1.
    runs: Vec<(usize, usize)>,
    /// The lines minus their moving mean within the runs, 0 elsewhere; row-major.
    flat: Vec<f32>,
    /// By position: sum of the squares of `flat` over the lines in use.
    energy: Vec<f32>,
    /// Sum and number of the moving means' changes over a pitch.
    drift: (f64, f64),
    sums: Vec<f32>,
    means: Vec<f32>,
    scratch: Vec<f32>,
}

impl Prepared {
    /// Loads a selection of the lines; `None` if they are constant, empty or not finite.
    pub fn load(&mut self, lines: &Lines) -> Option<()> {
        let length = lines.length;
        let count = lines.samples.len().checked_div(length)?;
        let wanted = (MAX_SAMPLES / length).max(MIN_LINES).min(count);
        if wanted == 0 {
            return None;
        }
        self.length = length;
        self.lines.clear();
        self.slopes.clear();
        let mut variances = Vec::with_capacity(wanted);
        let mut mean_square = 0.0;
        let centre = 0.5 * (length as f64 - 1.0);
        let ramp_square = length as f64 * (length as f64 * length as f64 - 1.0) / 12.0;
        for i in 0..wanted {
            let start = i * count / wanted * length;
            let line = lines.samples.get(start..start + length)?;
            let mean = lane_sums(line, |v, _| [f64::from(v), 0.0])[0] / length as f64;
            let begin = self.lines.len();
            self.lines
                .extend(line.iter().map(|&v| (f64::from(v) - mean) as f32));
            let [square, moment] = lane_sums(&self.lines[begin..], |v, x| {
                let v = f64::from(v);
                [v * v, v * (x as f64 - centre)]
            });
            let slope = moment / ramp_square;
            self.slopes.push(slope as f32);
            variances.push(((square - slope * moment) / length as f64).max(0.0));
            mean_square += square / length as f64 + mean * mean;
        }
        let mean_variance = variances.iter().sum::<f64>() / wanted as f64;
        if !mean_variance.is_finite() || mean_variance <= FLAT * mean_square / wanted as f64 {
            return None;
        }
        // A line of high variance (a scratch, a lamp) must not outweigh the others; a line of low
        // variance (a border) must not be amplified to their weight.
        for ((line, slope), variance) in self
            .lines
            .chunks_exact_mut(length)
            .zip(&mut self.slopes)
            .zip(variances)
        {
            let scale = (1.0 / (variance + mean_variance).sqrt()) as f32;
            line.iter_mut().for_each(|v| *v *= scale);
            *slope *= scale;
        }
        Some(())
    }

    /// Samples per line.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The lines, each with its trend per sample.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = (&[f32], f32)> {
        self.lines
            .chunks_exact(self.length)
            .zip(self.slopes.iter().copied())
    }

    /// Masks the positions whose variance over whole pitches differs from most others'. Returns the
    /// number of positions left in runs of at least two pitches.
    pub fn mask(&mut self, pitch: f64) -> usize {
        let length = self.length;
        let window = ((WINDOW_PX / pitch).ceil() * pitch).round() as usize;
        let window = window.clamp(2, length);
        self.window_variances(window);
        let variances = &self.scratch;
        let sorted = &mut self.means;
        sorted.clear();
        sorted.extend_from_slice(variances);
        let rank = ((sorted.len() - 1) as f64 * REFERENCE_RANK) as usize;
        let (_, &mut reference, _) = sorted.select_nth_unstable_by(rank, f32::total_cmp);

        // A position is judged by the quietest window that holds it. In a border that window lies
        // in the border, up to the border's edge; in a glare every window is too active.
        self.weight.clear();
        let mut quietest: VecDeque<usize> = VecDeque::new();
        for x in 0..length {
            if let Some(variance) = variances.get(x) {
                while quietest.back().is_some_and(|&w| variances[w] >= *variance) {
                    quietest.pop_back();
                }
                quietest.push_back(x);
            }
            while quietest.front().is_some_and(|&first| first + window <= x) {
                quietest.pop_front();
            }
            let least = quietest.front().map_or(0.0, |&first| variances[first]);
            let active = ACTIVITY.contains(&(least / reference));
            self.weight.push(if active { 1.0 } else { 0.0 });
        }
        self.find_runs(RUN_PITCHES * pitch);
        self.runs.iter().map(|(start, end)| end - start).sum()
    }

    /// Fills `scratch`: by a window's first position, `Σv² − (Σv)²/n` over the window, summed over
    /// the lines.
    fn window_variances(&mut self, window: usize) {
        let length = self.length;
        let (squares, variances) = (&mut self.means, &mut self.scratch);
        squares.clear();
        squares.resize(length, 0.0);
        variances.clear();
        variances.resize(length - window + 1, 0.0);
        for line in self.lines.chunks_exact(length) {
            running_sums(line, &mut self.sums);
            for (square, v) in squares.iter_mut().zip(line) {
                *square += v * v;
            }
            let windows = self.sums.iter().zip(&self.sums[window..]);
            for (slot, (first, last)) in variances.iter_mut().zip(windows) {
                *slot -= (last - first) * (last - first);
            }
        }
        running_sums(squares, &mut self.sums);
        let windows = self.sums.iter().zip(&self.sums[window..]);
        for (slot, (first, last)) in variances.iter_mut().zip(windows) {
            *slot = last - first + *slot / window as f32;
        }
    }

    /// Fills `runs`: trims each run at its edges and drops runs shorter than `least`.
    fn find_runs(&mut self, least: f64) {
        let length = self.length;
        self.runs.clear();
        let mut x = 0;
        while x < length {
            let run = self.weight[x..].iter().take_while(|&&w| w > 0.0).count();
            let start = x + if x == 0 { FRAME_EDGE } else { EDGE };
            let edge = if x + run == length { FRAME_EDGE } else { EDGE };
            let end = x + run - edge.min(run);
            self.weight[x..x + run].fill(0.0);
            if end as f64 >= start as f64 + least {
                self.runs.push((start, end));
                self.weight[start..end].fill(1.0);
            }
            x += run.max(1);
        }
    }

    /// Passes the masked lines, minus their moving mean over `span` pitches, to the correlator.
    pub fn high_passed(&mut self, pitch: f64, span: f64, correlator: &mut Correlator) {
        self.flatten(pitch, span);
        self.hand_over(correlator, |_| true);
    }

    /// Passes the masked lines, minus their moving mean over one pitch, to the correlator. The
    /// illumination is evened out, defects are replaced by the samples one pitch away, and lines
    /// without the pattern are left out.
    pub fn evened(&mut self, pitch: f64, correlator: &mut Correlator) {
        self.flatten(pitch, 1.0);
        self.even_out(pitch);
        let differences = self.mend(pitch);
        let mut sorted = differences.clone();
        let (_, &mut median, _) =
            sorted.select_nth_unstable_by(differences.len() / 2, f32::total_cmp);
        self.hand_over(correlator, |line| differences[line] <= UNLIKE * median);
    }

    /// Fills `flat`, `energy` and `drift`.
    fn flatten(&mut self, pitch: f64, span: f64) {
        let length = self.length;
        self.flat.clear();
        self.flat.resize(self.lines.len(), 0.0);
        self.energy.clear();
        self.energy.resize(length, 0.0);
        self.drift = (0.0, 0.0);
        let step = pitch.round() as usize;
        let means = &mut self.means;
        for (line, flat) in self
            .lines
            .chunks_exact(length)
            .zip(self.flat.chunks_exact_mut(length))
        {
            let line = if pitch >= SMOOTHED_PITCH_PX {
                smooth(line, &mut self.scratch);
                self.scratch.as_slice()
            } else {
                line
            };
            running_sums(line, &mut self.sums);
            for &(start, end) in &self.runs {
                // The span is at least one pitch shorter than the run, so that the mean can move.
                let room = ((end - start) as f64 / pitch - 1.0).floor();
                let span = pitch * room.clamp(1.0, span);
                moving_mean(&self.sums[start..=end], span, step, means);
                for (x, mean) in (start..end).zip(means.iter()) {
                    let v = line[x] - mean;
                    flat[x] = v;
                    self.energy[x] += v * v;
                }
                let changes = means.iter().zip(means.iter().skip(step));
                for (a, b) in changes.step_by(DRIFT_STRIDE) {
                    self.drift.0 += f64::from((b - a).abs());
                    self.drift.1 += 1.0;
                }
            }
        }
    }

    /// Divides `flat` by the square root of the mean energy over a pitch.
    fn even_out(&mut self, pitch: f64) {
        let step = pitch.round() as usize;
        running_sums(&self.energy, &mut self.sums);
        for &(start, end) in &self.runs {
            let gains = &mut self.means;
            moving_mean(&self.sums[start..=end], pitch, step, gains);
            let mean = gains.iter().sum::<f32>() / gains.len() as f32;
            for gain in gains.iter_mut() {
                // Clamp to the range that the mask admits: an extrapolated end may exceed it.
                let relative = (*gain / mean).clamp(*ACTIVITY.start(), *ACTIVITY.end());
                *gain = 1.0 / relative.sqrt();
            }
            for flat in self.flat.chunks_exact_mut(self.length) {
                for (v, gain) in flat[start..end].iter_mut().zip(gains.iter()) {
                    *v *= gain;
                }
            }
        }
    }

    /// Replaces outliers by the mean of their neighbours one pitch away: first at positions where
    /// the mean of all lines is an outlier (a defect across all lines), then in each line. Returns,
    /// for each line, the mean square change over a pitch relative to the line's mean square.
    fn mend(&mut self, pitch: f64) -> Vec<f32> {
        let (mean, changes) = (&mut self.means, &mut self.scratch);
        mean.clear();
        mean.resize(self.length, 0.0);
        for flat in self.flat.chunks_exact(self.length) {
            mean.iter_mut().zip(flat).for_each(|(mean, v)| *mean += v);
        }
        let mut across = Vec::new();
        for &(start, end) in &self.runs {
            let run = &mean[start..end];
            changes_over(run, pitch, changes);
            let limit = limit_of(run, changes);
            let outlying = |x: &usize| to_neighbours(run, *x, pitch, Some(limit)).is_some();
            across.push((0..run.len()).filter(outlying).collect::<Vec<_>>());
        }
        let mut differences = Vec::with_capacity(self.slopes.len());
        for flat in self.flat.chunks_exact_mut(self.length) {
            let (mut squares, mut energy) = (0f32, 0f32);
            for (&(start, end), across) in self.runs.iter().zip(&across) {
                let run = &mut flat[start..end];
                for &x in across {
                    run[x] += to_neighbours(run, x, pitch, None).unwrap_or(0.0);
                }
                changes_over(run, pitch, changes);
                squares += changes.iter().map(|d| d * d).sum::<f32>();
                energy += run.iter().map(|v| v * v).sum::<f32>();
                let limit = limit_of(run, changes);
                for (x, change) in changes.iter().enumerate() {
                    if change.abs() > limit
                        && let Some(change) = to_neighbours(run, x, pitch, Some(limit))
                    {
                        run[x] += change;
                    }
                }
            }
            differences.push(squares / energy.max(f32::MIN_POSITIVE));
        }
        differences
    }

    fn hand_over(&mut self, correlator: &mut Correlator, chosen: impl Fn(usize) -> bool) {
        self.energy.fill(0.0);
        let mut lines = self
            .flat
            .chunks_exact(self.length)
            .enumerate()
            .filter(|(line, _)| chosen(*line))
            .map(|(_, line)| line);
        while let Some(first) = lines.next() {
            let second = lines.next().unwrap_or(&[]);
            for line in [first, second] {
                for (energy, v) in self.energy.iter_mut().zip(line) {
                    *energy += v * v;
                }
            }
            correlator.add_pair(|buffer| {
                for (slot, &v) in buffer.iter_mut().zip(first) {
                    slot.re = v;
                }
                for (slot, &v) in buffer.iter_mut().zip(second) {
                    slot.im = v;
                }
            });
        }
    }

    /// The weight of each position, and the energy there.
    pub fn weight_and_energy(&self) -> (&[f32], &[f32]) {
        (&self.weight, &self.energy)
    }

    /// Mean change of the moving mean over one pitch, in standard deviations of `flat`.
    pub fn drift(&self) -> f64 {
        let count: f32 = self.weight.iter().sum();
        let energy: f32 = self.energy.iter().sum();
        let variance = f64::from(energy / (count * self.slopes.len() as f32).max(1.0));
        self.drift.0 / self.drift.1.max(1.0) / variance.sqrt().max(f64::MIN_POSITIVE)
    }
}

/// Changes over a pitch above this are outliers.
fn limit_of(run: &[f32], changes: &[f32]) -> f32 {
    f32::max(
        OUTLIER * mean_magnitude(changes),
        OUTLIER_OF_PATTERN * mean_magnitude(run),
    )
}
