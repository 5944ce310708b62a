//! Where a frame has enough edges for a part.

use super::{
    field::{Field, LANES},
    model::Model,
};

/// Directions up to this length (along x plus along y) are weak: a point's product with one is at most a quarter of that of
/// equal directions.
const WEAK: i32 = 32;
/// Largest coordinate of a direction.
const LARGEST: i64 = 128;
/// No product of two directions is larger: they are at most 127.9 and 128.6 long.
const MOST: i64 = 16_450;

/// The blocks of [`LANES`] pixels of a row in which a score may be as high as `least`: those with enough strong directions
/// around. All others have lower scores at every angle and scale, so they need not be summed.
pub fn blocks(model: &Model, field: &Field, least: i64) -> Vec<[usize; 2]> {
    let points = &model.levels[0];
    let weak = i64::from(WEAK) * LARGEST;
    let for_strong = least - weak * points.points.len() as i64;
    // The product of each point with a strong direction; several points may lie on one.
    let each = (MOST - weak) * model.coarse.most_on_a_pixel;
    let [width, height] = [field.width, field.height].map(|n| n as usize);
    let counts = Counts::new(field);
    let reach = points.reach as usize;
    let rows = (0..height).flat_map(|y| (0..width).step_by(LANES).map(move |x| [x, y]));
    rows.filter(|&[x, y]| {
        let columns = [x.saturating_sub(reach), (x + LANES + reach).min(width)];
        let rows = [y.saturating_sub(reach), (y + 1 + reach).min(height)];
        counts.within(columns, rows) * each >= for_strong
    })
    .collect()
}

/// Numbers of strong directions above and left of each pixel.
struct Counts {
    stride: usize,
    counts: Vec<u32>,
}

impl Counts {
    fn new(field: &Field) -> Self {
        let stride = field.width as usize + 1;
        let mut counts = vec![0; stride];
        for y in 0..field.height {
            let first = field.index(0, y);
            let row = |values: &'_ [i16]| -> Vec<i32> {
                let row = &values[first..first + field.width as usize];
                row.iter().map(|&v| i32::from(v).abs()).collect()
            };
            let above = counts.len() - stride;
            let mut sum = 0;
            counts.push(0);
            let pairs = row(&field.directions.x)
                .into_iter()
                .zip(row(&field.directions.y));
            for (x, (ux, uy)) in pairs.enumerate() {
                sum += u32::from(ux + uy > WEAK);
                counts.push(counts[above + x + 1] + sum);
            }
        }
        Self { stride, counts }
    }

    fn within(&self, [x0, x1]: [usize; 2], [y0, y1]: [usize; 2]) -> i64 {
        let at = |x: usize, y: usize| i64::from(self.counts[y * self.stride + x]);
        at(x1, y1) + at(x0, y0) - at(x0, y1) - at(x1, y0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::{ONE, Region};

    /// The least strong directions with which a place still has a score are enough for its block.
    #[test]
    fn a_block_with_just_enough_strong_directions_is_summed_and_one_without_any_is_not() {
        let mut n = 9_u32;
        let sums: Vec<u16> = (0..60 * 50)
            .map(|_| {
                n = n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (n >> 21) as u16
            })
            .collect();
        let is_part = |x: usize, y: usize| (60..150).contains(&x) && (40..150).contains(&y);
        let region = Region::new([240, 200], is_part).expect("a region");
        let model = Model::new(&sums, [240, 200], &region, &[ONE]).expect("edges");
        let points = &model.levels[0];
        let least = 7 * points.norm() / 20;
        // Nearly as long as weak directions may be.
        let weak = |v: i16| v * 22 / 127;
        for strong in 0..points.points.len() {
            let empty = crate::place::level::Plane {
                width: 300,
                height: 200,
                values: vec![0; 300 * 200],
            };
            let mut field = Field::new(&empty, points.reach);
            let mut score = 0_i64;
            for (i, point) in points.turned(0, ONE).enumerate() {
                let [vx, vy] = point.direction;
                let u = if i < strong {
                    [vx, vy]
                } else {
                    [weak(vx), weak(vy)]
                };
                let at = field.index(150 + point.offset[0], 100 + point.offset[1]);
                (field.directions.x[at], field.directions.y[at]) = (u[0], u[1]);
                score += i64::from(u[0]) * i64::from(vx) + i64::from(u[1]) * i64::from(vy);
            }
            let found = blocks(&model, &field, least);
            let is_summed = found.contains(&[150 / LANES * LANES, 100]);
            assert!(
                score < least || is_summed,
                "{strong} of {}",
                points.points.len()
            );
            assert!(strong > 0 || found.is_empty());
        }
    }
}
