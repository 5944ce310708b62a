//! Tracks estimates over frames, with hysteresis.

use std::collections::VecDeque;

use super::PitchEstimate;

/// Smallest tolerance, px: three times the largest error of one estimate of a drawn pattern, so that noise
/// does not move the pitch.
pub const MOVE_PX: f64 = 0.03;
/// Largest tolerance, as a share of the pitch. Beyond it a comparison at the held pitch sees the pattern
/// as a difference.
pub const LARGEST_TOLERANCE: f64 = 0.02;
/// The tolerance in standard deviations of one estimate, which a few steps tell only roughly.
const TOLERANCE_DEVIATIONS: f64 = 5.0;
/// Steps from one estimate to the next whose median tells the scatter.
const STEPS: usize = 16;
/// Fewer steps tell nothing about the scatter.
const FEWEST_STEPS: usize = 4;
/// The median magnitude of a difference of two values, over the standard deviation of one value: `0.6745·√2`.
const MEDIAN_STEP: f64 = 0.954;

/// Estimates that must agree on another pitch before the held one moves. A single frame
/// with a hand in the picture changes nothing.
pub const MOVE_AFTER: usize = 3;
/// The range of estimates that agree on a change beyond [`LARGEST_TOLERANCE`], as a share of that change,
/// and of the pitch: at the start the scatter is not known. Three values of a standard deviation of 1 % lie within 3.5 % in 96
/// of 100 cases.
pub const AGREEING_OF_CHANGE: f64 = 0.25;
pub const AGREEING_OF_PITCH: f64 = 0.035;
/// The range of estimates that agree on a small change while the scatter is not known or is tiny.
const AGREEING_OF_SMALL_CHANGE: f64 = 0.4;
/// A change of more than this many tolerances is followed at once, if estimates scatter. For a smaller one
/// the median of [`OF_SMALL_CHANGE`] estimates decides.
const LARGE_TOLERANCES: f64 = 2.0;
const OF_SMALL_CHANGE: usize = 11;
/// Consecutive frames without a pattern before the pitch is lost. A shorter gap between two panels
/// keeps the pitch.
pub const LOST_AFTER: usize = 5;

/// How an estimate changed the held pitch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PitchChange {
    /// Nothing.
    None,
    /// The first pitch, px. One estimate suffices, since the estimator is strict: a live line and a
    /// single picture are inspected at once.
    Found(f64),
    /// The pitch moved, px.
    Moved {
        /// Pitch until now.
        from: f64,
        /// Pitch from now on.
        to: f64,
    },
    /// The pattern is gone.
    Lost,
}

/// Holds a pitch until several estimates agree on another.
#[derive(Debug, Default)]
pub struct PitchTracker {
    held: Option<f64>,
    /// Latest estimates; after a move those that caused the move and later ones.
    recent: VecDeque<f64>,
    /// Magnitudes of the latest steps from one estimate to the next, as shares of the pitch. A move and a
    /// slow drift hardly change their median.
    steps: VecDeque<f64>,
    /// Number of the latest consecutive estimates that differ from the held pitch by more than the
    /// tolerance.
    differing: usize,
    /// Latest consecutive frames without a pattern.
    missing: usize,
}

impl PitchTracker {
    /// Takes one frame's estimate.
    pub fn update(&mut self, estimate: Option<PitchEstimate>) -> PitchChange {
        let Some(PitchEstimate { pitch_px, .. }) = estimate else {
            return self.miss();
        };
        self.missing = 0;
        let Some(held) = self.held else {
            self.held = Some(pitch_px);
            self.recent.push_back(pitch_px);
            return PitchChange::Found(pitch_px);
        };
        self.remember(pitch_px);
        let tolerance = self.tolerance_px(held);
        if (pitch_px - held).abs() <= tolerance {
            self.differing = 0;
            return PitchChange::None;
        }
        self.differing += 1;
        if self.differing < MOVE_AFTER {
            return PitchChange::None;
        }
        let Some(to) = self.agreed(held, tolerance) else {
            return PitchChange::None;
        };
        self.differing = 0;
        if (to - held).abs() <= tolerance {
            return PitchChange::None;
        }
        self.held = Some(to);
        let old = self.recent.len() - MOVE_AFTER;
        self.recent.drain(..old);
        PitchChange::Moved { from: held, to }
    }

    /// The pitch to compare with, px.
    pub fn pitch(&self) -> Option<f64> {
        self.held
    }

    /// Whether the latest estimate agreed with the held pitch; if so, the next estimate can wait.
    pub fn is_settled(&self) -> bool {
        self.held.is_some() && self.differing == 0 && self.missing == 0
    }

    fn remember(&mut self, pitch: f64) {
        if let Some(last) = self.recent.back() {
            self.steps.push_back((pitch - last).abs() / pitch);
        }
        self.recent.push_back(pitch);
        if self.steps.len() > STEPS {
            self.steps.pop_front();
        }
        if self.recent.len() > OF_SMALL_CHANGE {
            self.recent.pop_front();
        }
    }

    /// Largest difference from the held pitch that is no move, px: it follows the scatter of the estimates.
    fn tolerance_px(&self, held: f64) -> f64 {
        if self.steps.len() < FEWEST_STEPS {
            return MOVE_PX;
        }
        let deviation = median(self.steps.iter().copied()) * held / MEDIAN_STEP;
        (TOLERANCE_DEVIATIONS * deviation)
            .clamp(MOVE_PX, f64::max(MOVE_PX, LARGEST_TOLERANCE * held))
    }

    /// The pitch on which the latest three estimates agree, or the middle three of the latest five or seven.
    fn agreed(&self, held: f64, tolerance: f64) -> Option<f64> {
        let (mean, change) = [MOVE_AFTER, MOVE_AFTER + 2, MOVE_AFTER + 4]
            .into_iter()
            .take_while(|&count| count <= self.differing)
            .find_map(|count| {
                let mut latest: Vec<f64> = self.recent.iter().rev().take(count).copied().collect();
                latest.sort_by(f64::total_cmp);
                // The middle three.
                let middle = latest.get((count - MOVE_AFTER) / 2..)?.get(..MOVE_AFTER)?;
                let mean = middle.iter().sum::<f64>() / MOVE_AFTER as f64;
                let change = (mean - held).abs();
                let range = middle[MOVE_AFTER - 1] - middle[0];
                (range <= agreeing_range(held, mean, tolerance)).then_some((mean, change))
            })?;
        let is_large = change > LARGE_TOLERANCES * tolerance;
        if is_large || tolerance <= MOVE_PX {
            return Some(mean);
        }
        // Three scattered estimates often lie on one side by chance.
        let recent = self.recent.iter().rev().take(OF_SMALL_CHANGE).copied();
        Some(median(recent))
    }

    fn miss(&mut self) -> PitchChange {
        self.differing = 0;
        if self.held.is_none() {
            return PitchChange::None;
        }
        self.missing += 1;
        if self.missing < LOST_AFTER {
            return PitchChange::None;
        }
        *self = Self::default();
        PitchChange::Lost
    }
}

/// The range within which estimates about `mean` agree that the pitch is no longer `held`, px.
fn agreeing_range(held: f64, mean: f64, tolerance: f64) -> f64 {
    let change = (mean - held).abs();
    if change > LARGEST_TOLERANCE * held {
        let of_change = f64::min(AGREEING_OF_CHANGE * change, AGREEING_OF_PITCH * mean);
        f64::max(tolerance, of_change)
    } else if tolerance <= MOVE_PX {
        f64::min(tolerance, AGREEING_OF_SMALL_CHANGE * change)
    } else {
        tolerance
    }
}

/// The median; of an even number of values the mean of the two in the middle; 0 without values.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.get(middle) {
        Some(&upper) if sorted.len().is_multiple_of(2) => 0.5 * (sorted[middle - 1] + upper),
        Some(&upper) => upper,
        None => 0.0,
    }
}
