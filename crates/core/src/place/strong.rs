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
