//! How much of a part's edges a place shows.

use super::{
    gradient::{LONG, direction, each_row, length},
    level::{FINEST, levels},
    model::Model,
    points::Point,
};

/// Share of the product of equal directions that edges of the same direction have: 7/10, 45°.
const SAME: [i32; 2] = [7, 10];

/// The share of the model's points whose direction the frame has where the part was found. `sums`: sums of 4x4 samples of
/// the frame read through the fit, in grey levels of 8 bits; the picture has this size, and its first sample is that of the
/// trained picture at `first`, a multiple of 4.
pub fn edge_share(model: &Model, sums: &[u16], size: [usize; 2], first: [usize; 2]) -> f64 {
    let [columns, rows] = size.map(|n| n / FINEST);
    let Some(picture) = levels(sums, [columns, rows], FINEST).pop() else {
        return 0.0;
    };
    let mut directions = vec![[0; 2]; columns * rows];
    each_row(&picture, |y, gx, gy| {
        let row = &mut directions[y * columns..][..columns];
        for ((value, &gx), &gy) in row.iter_mut().zip(gx).zip(gy) {
            *value = direction(gx, gy, length(gx, gy));
        }
    });
    let points = &model.finest().points;
    let is_same = |point: &&Point| {
        let [x, y] =
            [0, 1].map(|axis| (point.at[axis] as usize).wrapping_sub(first[axis] / FINEST));
        if x >= columns || y >= rows {
            return false;
        }
        let [ux, uy] = directions[y * columns + x].map(i32::from);
        let [vx, vy] = point.direction.map(i32::from);
        SAME[1] * (ux * vx + uy * vy) > SAME[0] * LONG * LONG
    };
    points.iter().filter(is_same).count() as f64 / points.len().max(1) as f64
}
