//! Tracks estimates over frames, with hysteresis.

use super::PitchEstimate;

/// Smallest move of a held pitch, px: three times the largest error of one estimate, so that noise
/// does not move it.
const MOVE_PX: f64 = 0.03;
/// Consecutive estimates that must agree on another pitch before the held one moves. A single frame
/// with a hand in the picture changes nothing.
const MOVE_AFTER: usize = 3;
/// Consecutive frames without a pattern before the pitch is lost. A shorter gap between two panels
/// keeps the pitch.
const LOST_AFTER: usize = 5;

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
    /// Latest consecutive estimates that differ from the held pitch and agree with each other.
    differing: Vec<f64>,
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
            return PitchChange::Found(pitch_px);
        };
        if (pitch_px - held).abs() <= MOVE_PX {
            self.differing.clear();
            return PitchChange::None;
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
            return PitchChange::None;
        }
        let to = self.differing.iter().sum::<f64>() / self.differing.len() as f64;
        self.differing.clear();
        self.held = Some(to);
        PitchChange::Moved { from: held, to }
    }

    /// The pitch to compare with, px.
    pub fn pitch(&self) -> Option<f64> {
        self.held
    }

    /// Whether the latest estimate agreed with the held pitch; if so, the next estimate can wait.
    pub fn is_settled(&self) -> bool {
        self.held.is_some() && self.differing.is_empty() && self.missing == 0
    }

    fn miss(&mut self) -> PitchChange {
        self.differing.clear();
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
