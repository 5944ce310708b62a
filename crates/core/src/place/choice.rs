//! The poses that are parts, and those that are further poses of the same part.

use super::{model::Model, pose::Pose};

/// Most poses of a place that are fitted.
const MOST_FITTED: usize = 4;
/// Share of the place's best score that such a pose has: 17/20.
const EQUAL: [i64; 2] = [17, 20];
/// Largest share of a part that parts before it may cover: a fifth.
const COVERED: usize = 5;
/// Side of the cells that are covered, px.
const CELL_BITS: u32 = 3;
/// Fraction bits of a position.
const POSITION_BITS: u32 = 23;

/// At most `most` places, best first: for each the poses to fit, best first. `size`: that of the frame.
pub fn chosen(
    model: &Model,
    mut poses: Vec<Pose>,
    size: [usize; 2],
    most: usize,
) -> Vec<Vec<Pose>> {
    poses.sort_by_key(Pose::order);
    let points = model.finest();
    let columns = size[0].div_ceil(1 << CELL_BITS);
    let mut taken = vec![false; columns * size[1].div_ceil(1 << CELL_BITS)];
    let mut places: Vec<Vec<Pose>> = Vec::new();
    for pose in poses {
        if let Some(place) = places
            .iter_mut()
            .find(|place| pose.is_at(&place[0], points))
        {
            let [score, best] = [pose.score, place[0].score].map(i64::from);
            // Climbs from several poses may end at the same one.
            let is_new = !place.contains(&pose);
            if is_new && place.len() < MOST_FITTED && EQUAL[1] * score >= EQUAL[0] * best {
                place.push(pose);
            }
        } else if places.len() < most {
            let cells = cells(model, &pose, size, columns);
            let covered = cells.iter().filter(|&&cell| taken[cell]).count();
            if COVERED * covered <= cells.len() {
                for cell in cells {
                    taken[cell] = true;
                }
                places.push(vec![pose]);
            }
        }
    }
    places
}

/// The cells of the frame that the part's inner region covers, each once.
fn cells(model: &Model, pose: &Pose, size: [usize; 2], columns: usize) -> Vec<usize> {
    let [c, s] = pose.turn();
    let middle = [pose.x, pose.y]
        .map(|at| (pose.level as i64 * (2 * i64::from(at) + 1) - 1) << (POSITION_BITS - 1));
    let last = size.map(|n| (n as i64 - 1) << POSITION_BITS);
    let mut cells: Vec<usize> = (model.samples.iter())
        .filter_map(|sample| {
            let [rx, ry] = sample.map(i64::from);
            let at = [c * rx - s * ry + middle[0], s * rx + c * ry + middle[1]];
            let is_inside = at
                .iter()
                .zip(last)
                .all(|(&v, last)| (0..=last).contains(&v));
            let cell = || {
                let [x, y] = at.map(|v| (v >> (POSITION_BITS + CELL_BITS)) as usize);
                y * columns + x
            };
            is_inside.then(cell)
        })
        .collect();
    cells.sort_unstable();
    cells.dedup();
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::{ONE, Region};

    #[test]
    fn a_further_place_may_be_covered_by_a_fifth_and_poses_of_a_place_are_nearly_as_good() {
        let sums: Vec<u16> = (0..100 * 100).map(|i| (i * 7919 % 4001) as u16).collect();
        let is_part = |x: usize, y: usize| (80..240).contains(&x) && (80..240).contains(&y);
        let region = Region::new([400, 400], is_part).expect("a region");
        let model = Model::new(&sums, [400, 400], &region, &[ONE]).expect("edges");
        let at = |x: i32, angle: i32, score: i32| Pose {
            level: 4,
            x,
            y: 30,
            angle,
            scale: ONE,
            score,
        };
        let count = |poses: Vec<Pose>| -> Vec<usize> {
            let places = chosen(&model, poses, [400, 400], 3);
            places.iter().map(Vec::len).collect()
        };
        // The inner region is 152 px wide.
        assert_eq!(count(vec![at(30, 0, 100), at(30 + 26, 0, 99)]), [1]);
        assert_eq!(count(vec![at(30, 0, 100), at(30 + 33, 0, 99)]), [1, 1]);
        let same = [
            at(30, 0, 100),
            at(30, 0, 100),
            at(31, 64, 85),
            at(31, 128, 84),
        ];
        assert_eq!(count(same.to_vec()), [2]);
        let many = (0..9).map(|n| at(30, 64 * n, 100)).collect();
        assert_eq!(count(many), [4]);
        // Outside the frame nothing is covered.
        let outside = [at(30, 0, 100), at(-90, 0, 90), at(-60, 0, 80)];
        assert_eq!(count(outside.to_vec()), [1, 1, 1]);
    }
}
