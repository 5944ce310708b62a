//! Poses of a part, and which of them are of one place.

use super::{
    points::Points,
    turn::{TURN, cosine, sine},
};

/// Where a part lies: its centre in the middle of a pixel of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pose {
    /// Scale of the level.
    pub level: usize,
    /// Pixel of the level.
    pub x: i32,
    /// Pixel of the level.
    pub y: i32,
    /// Clockwise on the screen, 1/16384 turn.
    pub angle: i32,
    /// 1/256
    pub scale: i32,
    /// Sum of the products of the directions.
    pub score: i32,
}

impl Pose {
    /// Order of poses: best first.
    pub fn order(&self) -> (i32, i32, i32, i32, i32) {
        (-self.score, self.y, self.x, self.angle, self.scale)
    }

    /// The angle, counted from 0 to both sides.
    pub fn from_zero(&self) -> i32 {
        let angle = self.angle.rem_euclid(TURN);
        if angle > TURN / 2 {
            angle - TURN
        } else {
            angle
        }
    }

    /// Whether the centres are at most a quarter of the points' reach apart.
    pub fn is_at(&self, other: &Self, points: &Points) -> bool {
        let [dx, dy, reach] = [self.x - other.x, self.y - other.y, points.reach].map(i64::from);
        16 * (dx * dx + dy * dy) <= reach * reach
    }

    /// Where the centre lies in the frame, px from the upper left corner.
    pub fn centre(&self) -> [f64; 2] {
        [self.x, self.y].map(|at| self.level as f64 * (f64::from(at) + 0.5))
    }

    /// The linear terms `[C·s, S·s]` of the pose, 2^-22.
    pub fn turn(&self) -> [i64; 2] {
        [cosine(self.angle), sine(self.angle)].map(|v| i64::from(v) * i64::from(self.scale))
    }
}

/// The angle between two angles, 1/16384 turn, at most half a turn.
pub fn angle_between(a: i32, b: i32) -> i32 {
    let d = (a - b).rem_euclid(TURN);
    d.min(TURN - d)
}

/// Limits of [`kept`].
#[derive(Debug, Clone, Copy)]
pub struct Most {
    pub places: usize,
    /// Poses of a place.
    pub poses: usize,
    /// Poses of a place differ by more than this angle.
    pub step: i32,
}

/// The best poses of the best places, by place.
pub fn kept(mut poses: Vec<Pose>, points: &Points, most: Most) -> Vec<Pose> {
    poses.sort_by_key(Pose::order);
    let mut places: Vec<Vec<Pose>> = Vec::new();
    for pose in poses {
        if let Some(place) = places
            .iter_mut()
            .find(|place| pose.is_at(&place[0], points))
        {
            let is_apart = |other: &Pose| angle_between(pose.angle, other.angle) > most.step;
            if place.len() < most.poses && place.iter().all(is_apart) {
                place.push(pose);
            }
        } else if places.len() < most.places {
            places.push(vec![pose]);
        }
    }
    places.concat()
}
