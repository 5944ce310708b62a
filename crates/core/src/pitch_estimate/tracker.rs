//! Follows estimates over frames with hysteresis.

use super::PitchEstimate;

/// A held pitch moves for nothing smaller, px: three times the largest error of one estimate, so
/// that noise never moves it.
const MOVE_PX: f64 = 0.03;
/// Consecutive estimates that must agree on another pitch before the held one moves: one frame
/// with a hand in the picture changes nothing.
const MOVE_AFTER: usize = 3;
/// Consecutive frames without a pattern before the pitch is lost: a gap between two panels
/// shorter than this keeps it.
const LOST_AFTER: usize = 5;

/// What an estimate changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Nothing.
    None,
    /// There was no pitch, now there is this one, px. One estimate suffices, so that a live line
    /// and a single picture are inspected at once; the estimator is strict.
    Found(f64),
    /// The pitch moved, px.
    Moved {
        /// Held until now.
        from: f64,
        /// Held from now on.
        to: f64,
    },
    /// The pattern is gone.
    Lost,
}

/// Holds a pitch still until the estimates insist on another.
#[derive(Debug, Default)]
pub struct PitchTracker {
    held: Option<f64>,
    /// Estimates in a row that differ from the held pitch and agree with each other.
    differing: Vec<f64>,
    /// Frames in a row without a pattern.
    missing: usize,
}

impl PitchTracker {
    /// Takes one frame's estimate.
    pub fn update(&mut self, estimate: Option<PitchEstimate>) -> Change {
        let Some(PitchEstimate { pitch_px, .. }) = estimate else {
            return self.miss();
        };
        self.missing = 0;
        let Some(held) = self.held else {
            self.held = Some(pitch_px);
            return Change::Found(pitch_px);
        };
        if (pitch_px - held).abs() <= MOVE_PX {
            self.differing.clear();
            return Change::None;
        }
        if self
            .differing
            .iter()
            .any(|&other| (pitch_px - other).abs() > MOVE_PX)
        {
            self.differing.clear();
        }
        self.differing.push(pitch_px);
        if self.differing.len() < MOVE_AFTER {
            return Change::None;
        }
        let to = self.differing.iter().sum::<f64>() / self.differing.len() as f64;
        self.differing.clear();
        self.held = Some(to);
        Change::Moved { from: held, to }
    }

    /// The pitch to compare with, px.
    pub fn pitch(&self) -> Option<f64> {
        self.held
    }

    /// Whether the latest estimate agreed with what is held, so that the next can wait.
    pub fn is_settled(&self) -> bool {
        self.held.is_some() && self.differing.is_empty() && self.missing == 0
    }

    fn miss(&mut self) -> Change {
        self.differing.clear();
        if self.held.is_none() {
            return Change::None;
        }
        self.missing += 1;
        if self.missing < LOST_AFTER {
            return Change::None;
        }
        *self = Self::default();
        Change::Lost
    }
}
