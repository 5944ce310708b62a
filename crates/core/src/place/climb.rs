//! Steps of a pose to better ones near it.

use super::{
    field::Field,
    points::Points,
    pose::Pose,
    products::{PointAt, sums},
    turn::TURN,
};

/// Pixels along an axis that are tried: from one before a pose to two behind it.
const NEAR: usize = 4;
/// Pixels of a row whose scores are summed at once: those of a vector.
const LANES: usize = 8;
/// Climbs that follow the first one.
const MORE_CLIMBS: usize = 3;
/// Local maxima around a place that go on.
const MOST_AROUND: usize = 8;

/// Shifts, in the order in which they are tried.
const WITHIN: &[i32] = &[0, 1, -1];
const FROM_COARSER: &[i32] = &[0, 1, -1, 2];
const AGAIN: &[i32] = &[0, -1, 1];
const IN_ORDER: &[i32] = &[-1, 0, 1];

/// Sizes of steps.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    /// 1/16384 turn.
    pub angle: i32,
    /// 1/256; 0 with one scale.
    pub scale: i32,
    /// Least and largest scale.
    pub scales: [i32; 2],
}

impl Steps {
    pub fn halved(self) -> Self {
        Self {
            angle: self.angle / 2,
            scale: self.scale / 2,
            ..self
        }
    }

    /// Angles and scales near those of a pose, in the order in which they are tried.
    fn near(self, pose: Pose) -> impl Iterator<Item = [i32; 2]> {
        let scales = if self.scale > 0 { 3 } else { 1 };
        let by = |n: usize, step: i32| [0, -step, step][n];
        (0..3 * scales)
            .map(move |n| {
                [
                    pose.angle + by(n / scales, self.angle),
                    pose.scale + by(n % scales, self.scale),
                ]
            })
            .filter(move |[_, scale]| (self.scales[0]..=self.scales[1]).contains(scale))
    }
}

/// Poses of a level are tried on a frame.
pub struct Climber<'a> {
    pub points: &'a Points,
    pub field: &'a Field,
    turned: Vec<PointAt>,
}

impl<'a> Climber<'a> {
    pub fn new(points: &'a Points, field: &'a Field) -> Self {
        Self {
            points,
            field,
            turned: Vec::new(),
        }
    }

    /// The best pose near one of this level or of the next coarser one; of equals the first that is tried.
    pub fn climb(&mut self, pose: Pose, steps: Steps) -> Pose {
        let finer = (pose.level / self.points.level) as i32;
        let mut best = Pose {
            level: self.points.level,
            x: finer * pose.x,
            y: finer * pose.y,
            // Any try is better.
            score: -1,
            ..pose
        };
        let first = if finer > 1 { FROM_COARSER } else { WITHIN };
        for shifts in std::iter::once(first).chain([AGAIN; MORE_CLIMBS]) {
            let before = best;
            for [angle, scale] in steps.near(before) {
                let at = Pose {
                    angle,
                    scale,
                    ..before
                };
                self.try_shifts(at, shifts, &mut best);
            }
            if best.score == before.score {
                break;
            }
        }
        best
    }

    /// The pose at all angles, at most 1 px from its place: the local maxima, best first. The pose's own angle is one of
    /// them.
    pub fn around(&mut self, pose: Pose, step: i32) -> Vec<Pose> {
        let angles = (0..TURN / step).map(|n| n * step);
        let all: Vec<Pose> = angles
            .map(|angle| {
                let at = Pose { angle, ..pose };
                let mut best = Pose {
                    score: i32::MIN,
                    ..at
                };
                self.try_shifts(at, IN_ORDER, &mut best);
                best
            })
            .collect();
        let near = |at: usize| all[at % all.len()].score;
        let mut peaks: Vec<Pose> = (all.iter().enumerate())
            .filter(|(at, best)| {
                let is_peak = near(at + all.len() - 1) <= best.score && best.score > near(at + 1);
                is_peak || best.angle == pose.angle
            })
            .map(|(_, best)| *best)
            .collect();
        peaks.sort_by_key(|best| (-best.score, best.angle));
        peaks.truncate(MOST_AROUND);
        peaks
    }

    /// Tries shifts along y and x of a pose, in this order. Centres outside the level are not tried.
    fn try_shifts(&mut self, at: Pose, shifts: &[i32], best: &mut Pose) {
        let rows = shifts.iter().max().map_or(1, |&last| last + 2);
        let sums = self.sums(at, rows as usize);
        for &dy in shifts {
            for &dx in shifts {
                let score = sums[(dy + 1) as usize][(dx + 1) as usize];
                let [x, y] = [at.x + dx, at.y + dy];
                if score > best.score && self.field.holds(x, y) {
                    *best = Pose {
                        x,
                        y,
                        angle: at.angle.rem_euclid(TURN),
                        score,
                        ..at
                    };
                }
            }
        }
    }

    /// The scores of the pixels from one before a pose to two behind it, along y and x.
    fn sums(&mut self, at: Pose, rows: usize) -> [[i32; LANES]; NEAR] {
        let (field, points) = (self.field, self.points);
        self.turned.clear();
        (self.turned).extend(points.turned(at.angle, at.scale).map(|point| {
            let [x, y] = point.offset;
            (field.index(at.x + x - 1, at.y + y - 1), point.direction)
        }));
        let mut sums_of_rows = [[0; LANES]; NEAR];
        for (y, row) in sums_of_rows.iter_mut().take(rows).enumerate() {
            *row = sums(&field.directions, y * field.stride as usize, &self.turned);
        }
        sums_of_rows
    }
}
