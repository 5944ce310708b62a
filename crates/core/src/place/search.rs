//! The search: candidates of the coarsest level, and their descent to the finest.

use super::{
    candidates::{Scored, candidates},
    choice::chosen,
    climb::{Climber, Steps},
    field::Field,
    level::{FINEST, levels},
    model::Model,
    pose::{Most, Pose, angle_between, kept},
    turn::TURN,
};

/// Places beyond twice the number of parts, among candidates and in the descent.
const MORE_CANDIDATES: usize = 4;
const MORE_PLACES: usize = 3;
/// Poses of a place behind the first levels, and behind the others.
const POSES: [usize; 3] = [8, 6, 4];
/// Parts beyond those wanted that are looked for, so that too many are told.
const MORE_PARTS: usize = 2;

/// Finds parts in frames of a size.
#[derive(Debug, Clone)]
pub struct Search {
    size: [usize; 2],
    wanted: usize,
    most_angle: i32,
    scored: Scored,
}

impl Search {
    /// For frames of a size with at most `wanted` parts, at any angle.
    pub fn new(size: [usize; 2], wanted: usize) -> Self {
        Self {
            size,
            wanted,
            most_angle: TURN / 2,
            scored: Scored::default(),
        }
    }

    /// For parts that are turned by at most this angle, 1/16384 turn.
    #[must_use]
    pub fn turned_by(self, most_angle: i32) -> Self {
        Self { most_angle, ..self }
    }

    /// The places of parts, best first, two more than are wanted at most: for each the poses to fit, best first. `sums`:
    /// sums of 4x4 samples of the frame in grey levels of 8 bits.
    pub fn find(&mut self, model: &Model, sums: &[u16]) -> Vec<Vec<Pose>> {
        let coarsest = model.levels[0].level;
        let pictures = levels(sums, self.size.map(|n| n / FINEST), coarsest);
        let mut steps = Steps {
            angle: model.coarse.step,
            scale: match model.scales[..] {
                [.., a, b] => b - a,
                _ => 0,
            },
            scales: [
                model.scales.iter().copied().min().unwrap_or(0),
                model.scales.iter().copied().max().unwrap_or(0),
            ],
        };
        let places = 2 * self.wanted + MORE_PLACES;
        let mut poses = Vec::new();
        let mut finest = None;
        for (n, (points, picture)) in model.levels.iter().zip(pictures.iter().rev()).enumerate() {
            let field = Field::new(picture, points.reach);
            if n == 0 {
                let places = 2 * self.wanted + MORE_CANDIDATES;
                poses = candidates(model, &field, (places, self.most_angle), &mut self.scored);
            } else {
                steps = steps.halved();
            }
            let mut climber = Climber::new(points, &field);
            let climbed = poses.iter().map(|&pose| climber.climb(pose, steps));
            let most = Most {
                places,
                poses: POSES[n.min(POSES.len() - 1)],
                step: 2 * steps.angle,
            };
            poses = kept(climbed.collect(), points, most);
            finest = Some(field);
        }
        let Some(field) = finest else {
            return Vec::new();
        };
        let points = model.finest();
        let mut climber = Climber::new(points, &field);
        if model.is_alike {
            let most = Most {
                places,
                poses: 1,
                step: steps.angle,
            };
            let best = kept(poses, points, most);
            poses = (best.into_iter())
                .flat_map(|pose| climber.around(pose, steps.angle))
                .collect();
        }
        while 8 * i64::from(points.reach) * i64::from(steps.angle) > i64::from(TURN) {
            steps = steps.halved();
            for pose in &mut poses {
                *pose = climber.climb(*pose, steps);
            }
        }
        poses.retain(|pose| angle_between(pose.angle, 0) <= self.most_angle);
        chosen(model, poses, self.size, self.wanted + MORE_PARTS)
    }
}
