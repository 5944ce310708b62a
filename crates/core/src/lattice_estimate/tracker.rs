//! Tracks the lattices of frames, with hysteresis.

use super::{
    LatticeEstimate, Vector,
    vector::{combination, cross, length},
};
use crate::pitch_estimate::{
    AGREEING_OF_CHANGE, AGREEING_OF_PITCH, LARGEST_TOLERANCE, LOST_AFTER, MOVE_AFTER, MOVE_PX,
};

/// Largest difference of the cells' areas of one lattice, as a share.
const SAME_AREA: f64 = 0.1;

/// How an estimate changed the lattice in use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LatticeChange {
    /// Nothing.
    None,
    /// The first lattice: one estimate suffices.
    Found,
    /// The lattice moved.
    Moved {
        /// Lattice until now.
        from: LatticeEstimate,
        /// Lattice from now on.
        to: LatticeEstimate,
    },
    /// The pattern is gone.
    Lost,
}

/// Holds a lattice until several estimates agree on another. Unlike a pitch, a frame that differs is compared along its own
/// vectors at once, so that pieces may lie at any angle.
#[derive(Debug, Default)]
pub struct LatticeTracker {
    held: Option<LatticeEstimate>,
    /// The lattice of the latest frame, if it differs from the held one.
    own: Option<LatticeEstimate>,
    /// Latest consecutive estimates that differ from the held one, in its vectors.
    differing: Vec<LatticeEstimate>,
    /// Latest consecutive frames without a pattern.
    missing: usize,
}

impl LatticeTracker {
    /// Takes one frame's estimate.
    pub fn update(&mut self, estimate: Option<LatticeEstimate>) -> LatticeChange {
        self.own = None;
        let Some(found) = estimate else {
            return self.miss();
        };
        self.missing = 0;
        let Some(held) = self.held else {
            self.held = Some(found);
            return LatticeChange::Found;
        };
        let alike = found.in_vectors_of(&held);
        if alike.has_vectors_of(&held) && alike.largest_change(&held) <= MOVE_PX {
            self.differing.clear();
            return LatticeChange::None;
        }
        self.own = Some(found);
        if self.differing.len() == MOVE_AFTER {
            self.differing.remove(0);
        }
        self.differing.push(alike);
        let Some(to) = self.agreed(&held) else {
            return LatticeChange::None;
        };
        self.held = Some(to);
        self.own = None;
        self.differing.clear();
        LatticeChange::Moved { from: held, to }
    }

    /// The lattice in use.
    pub fn held(&self) -> Option<&LatticeEstimate> {
        self.held.as_ref()
    }

    /// The lattice of the latest frame: its own, where it differs from the held one.
    pub fn of_frame(&self) -> Option<LatticeEstimate> {
        self.own.or(self.held)
    }

    /// Whether the latest estimate agreed with the held lattice.
    pub fn is_settled(&self) -> bool {
        self.held.is_some() && self.differing.is_empty() && self.missing == 0
    }

    /// The mean of the latest three estimates, if they agree.
    fn agreed(&self, held: &LatticeEstimate) -> Option<LatticeEstimate> {
        let [.., last] = self.differing[..] else {
            return None;
        };
        let is_alike = |other: &LatticeEstimate| other.has_vectors_of(&last);
        if self.differing.len() < MOVE_AFTER || !self.differing.iter().all(is_alike) {
            return None;
        }
        let sum = |i: usize| -> f64 {
            let values = self.differing.iter().map(|found| found.components()[i]);
            values.sum()
        };
        let mean = last.with_components(std::array::from_fn(|i| sum(i) / MOVE_AFTER as f64));
        let of_change = AGREEING_OF_CHANGE * mean.largest_change(held);
        let range = MOVE_PX.max(of_change.min(AGREEING_OF_PITCH * mean.longest()));
        (self.differing.iter())
            .all(|found| found.largest_change(&mean) <= 0.5 * range)
            .then_some(mean)
    }

    fn miss(&mut self) -> LatticeChange {
        self.differing.clear();
        if self.held.is_none() {
            return LatticeChange::None;
        }
        self.missing += 1;
        if self.missing < LOST_AFTER {
            return LatticeChange::None;
        }
        *self = Self::default();
        LatticeChange::Lost
    }
}

impl LatticeEstimate {
    /// Whether a vector moved by more than a comparison tolerates.
    pub fn has_moved_far(&self, to: &Self) -> bool {
        let is_other = !self.has_vectors_of(to);
        is_other || self.largest_change(to) > LARGEST_TOLERANCE * self.longest()
    }

    /// Whether both have two vectors, or one.
    fn has_vectors_of(&self, other: &Self) -> bool {
        self.b.is_some() == other.b.is_some()
    }

    /// Largest difference of a component, px.
    fn largest_change(&self, other: &Self) -> f64 {
        let changes = self.components().into_iter().zip(other.components());
        changes.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    fn components(&self) -> [f64; 4] {
        let [bx, by] = self.b.unwrap_or_default();
        [self.a[0], self.a[1], bx, by]
    }

    fn longest(&self) -> f64 {
        self.b.map_or(0.0, length).max(length(self.a))
    }

    fn with_components(&self, [ax, ay, bx, by]: [f64; 4]) -> Self {
        Self {
            a: [ax, ay],
            b: self.b.map(|_| [bx, by]),
            ..*self
        }
    }

    /// The same lattice by the vectors nearest to those of `other`, if they span it. Of vectors of about one length either
    /// two may be the shortest ones, and either may be nearer to the x axis.
    fn in_vectors_of(self, other: &Self) -> Self {
        let (Some(b), Some(other_b)) = (self.b, other.b) else {
            return self;
        };
        let area = cross(self.a, b);
        let nearest = |v: Vector| {
            let (i, j) = (cross(v, b) / area, cross(self.a, v) / area);
            combination(i.round(), self.a, j.round(), b)
        };
        let (a, b) = (nearest(other.a), nearest(other_b));
        let is_same = (cross(a, b) / area).abs() - 1.0;
        let is_turned = cross(a, b) * cross(other.a, other_b) <= 0.0;
        if is_same.abs() > SAME_AREA || is_turned {
            return self;
        }
        Self {
            a,
            b: Some(b),
            ..self
        }
    }
}
