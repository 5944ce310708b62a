//! The search on the coarsest level: every place and angle.

use std::ops::Range;

use super::{
    field::{Field, LANES},
    model::Model,
    pose::{Most, Pose, angle_between, kept},
    products::{PointAt, sums},
    strong::blocks,
    turn::TURN,
};

/// Least score of a candidate: 7/20.
const LEAST: [i64; 2] = [7, 20];
/// Candidates that are read.
const MOST_READ: usize = 4096;
/// Candidates of a place.
const MOST_AT_A_PLACE: usize = 8;

/// The scores of all pixels at one angle, and the scales that they belong to.
#[derive(Debug, Clone, Default)]
struct Scores {
    stride: usize,
    /// A border of one pixel is around them.
    scores: Vec<i32>,
    scales: Vec<u16>,
}

/// Memory of the search.
#[derive(Debug, Clone, Default)]
pub struct Scored {
    /// At an angle, the one before and the one behind.
    at: [Scores; 3],
    points: Vec<PointAt>,
}

/// The best candidates of a level, by place: at most `places`, and no angle more than a step above `most_angle`.
pub fn candidates(
    model: &Model,
    field: &Field,
    (places, most_angle): (usize, i32),
    scored: &mut Scored,
) -> Vec<Pose> {
    let coarse = &model.coarse;
    let points = &model.levels[0];
    let least = ((LEAST[0] * points.norm() + LEAST[1] - 1) / LEAST[1]) as i32;
    let angles = TURN / coarse.step;
    // Angles are a ring: before the first one lies the last one.
    let blocks = blocks(model, field, i64::from(least));
    let is_tried = |angle: i32| angle_between(angle * coarse.step, 0) <= most_angle + coarse.step;
    let blocks_at = |angle: i32| if is_tried(angle) { &blocks[..] } else { &[] };
    scored.sum(model, field, blocks_at(angles - 1), [angles - 1, 0]);
    scored.sum(model, field, blocks_at(0), [0, 1]);
    let mut found = Vec::new();
    for angle in 0..angles {
        let next = (angle + 1) % angles;
        scored.sum(model, field, blocks_at(next), [next, 2]);
        if !is_tried(angle) {
            scored.at.rotate_left(1);
            continue;
        }
        for &[x, y] in &blocks {
            let columns = x..(x + LANES).min(field.width as usize);
            for x in scored.peaks(y, columns, least) {
                let (score, scale) = scored.at[1].get(x, y);
                found.push(Pose {
                    level: points.level,
                    x: x as i32,
                    y: y as i32,
                    angle: angle * coarse.step,
                    scale: model.scales[usize::from(scale)],
                    score,
                });
            }
        }
        scored.at.rotate_left(1);
    }
    found.sort_by_key(Pose::order);
    found.truncate(MOST_READ);
    kept(
        found,
        points,
        Most {
            places,
            poses: MOST_AT_A_PLACE,
            step: coarse.step,
        },
    )
}

impl Scores {
    fn index(&self, x: usize, y: usize) -> usize {
        (y + 1) * self.stride + x + 1
    }

    fn get(&self, x: usize, y: usize) -> (i32, u16) {
        let at = self.index(x, y);
        (self.scores[at], self.scales[at])
    }
}

impl Scored {
    /// Writes the scores of blocks at an angle; other pixels have none.
    fn sum(
        &mut self,
        model: &Model,
        field: &Field,
        blocks: &[[usize; 2]],
        [angle, slot]: [i32; 2],
    ) {
        let scores = &mut self.at[slot as usize];
        let [width, height] = [field.width, field.height].map(|n| n as usize);
        scores.stride = (width + 2).next_multiple_of(LANES) + LANES;
        let len = scores.stride * (height + 2);
        scores.scores.clear();
        scores.scores.resize(len, i32::MIN);
        scores.scales.resize(len, 0);
        for scale in 0..model.scales.len() {
            let turned = &model.coarse.turned[angle as usize * model.scales.len() + scale];
            self.points.clear();
            self.points.extend(turned.iter().map(|point| {
                let [x, y] = point.offset;
                (field.index(x, y), point.direction)
            }));
            for &[x, y] in blocks {
                let at = y * field.stride as usize + x;
                let sums = sums::<LANES>(&field.directions, at, &self.points);
                let (first, lanes) = (scores.index(x, y), LANES.min(width - x));
                let best = &mut scores.scores[first..first + lanes];
                let scales = &mut scores.scales[first..first + lanes];
                for ((best, scales), sum) in best.iter_mut().zip(scales).zip(sums) {
                    if sum > *best {
                        (*best, *scales) = (sum, scale as u16);
                    }
                }
            }
        }
    }

    /// The columns of a row at the middle one of the angles that have at least a score, and none of whose 26 neighbours has
    /// a higher one.
    fn peaks(&self, y: usize, columns: Range<usize>, least: i32) -> impl Iterator<Item = usize> {
        let own = &self.at[1];
        let first = own.index(0, y);
        let row = &own.scores[first + columns.start..first + columns.end];
        let is_peak = move |at: usize, score: i32| {
            self.at.iter().all(|scores| {
                (0..3).all(|j| {
                    let first = at + j * scores.stride - scores.stride - 1;
                    scores.scores[first..first + 3]
                        .iter()
                        .all(|&near| near <= score)
                })
            })
        };
        (columns.zip(row))
            .filter(move |&(x, &score)| score >= least && is_peak(first + x, score))
            .map(|(x, _)| x)
    }
}
