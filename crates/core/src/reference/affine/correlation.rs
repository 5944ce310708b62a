//! How well a frame correlates with the model.

use super::{
    fit::{Lines, between, inside},
    level::{Grid, LANES, Level},
    solve::Vector,
};

/// Side of the tiles whose correlations are compared, px of the finest level.
const TILE: usize = 8;
/// Least variance of a tile of the model.
const LEAST_VARIANCE: f64 = 4.0;

/// Mean over tiles with structure of the correlation at a motion of a level; 0 if it is negative.
pub fn of_tiles(level: &Level, frame: &Grid, p: &Vector) -> f64 {
    let lines = Lines::new(level, p);
    let Grid { width, height, .. } = level.picture;
    let [mut total, mut tiles] = [0.0; 2];
    for top in (0..height).step_by(TILE).filter(|y| y + TILE <= height) {
        for left in (0..width).step_by(TILE).filter(|x| x + TILE <= width) {
            let mut moments = Moments::default();
            for y in top..top + TILE {
                let row = lines.row(y);
                let columns = inside(row, [frame.width, frame.height], left..left + TILE);
                let [[x0, dx], [y0, dy]] = row;
                let (model, weight) = (level.picture.row(y), level.weight.row(y));
                for x in columns {
                    if weight[x] > 0.0 {
                        let at = x as f32;
                        moments.add(between(frame, x0 + dx * at, y0 + dy * at), model[x]);
                    }
                }
            }
            if moments.n >= (TILE * TILE / 2) as f32 && moments.model_variance() >= LEAST_VARIANCE {
                tiles += 1.0;
                total += moments.correlation();
            }
        }
    }
    if tiles > 0.0 {
        (total / tiles).max(0.0)
    } else {
        0.0
    }
}

/// Sums over pairs of samples.
#[derive(Default)]
struct Moments {
    n: f32,
    g: f32,
    m: f32,
    gg: f32,
    gm: f32,
    mm: f32,
}

impl Moments {
    fn add(&mut self, g: f32, m: f32) {
        self.n += 1.0;
        self.g += g;
        self.m += m;
        self.gg += g * g;
        self.gm += g * m;
        self.mm += m * m;
    }

    fn model_variance(&self) -> f64 {
        let [n, m, mm] = [self.n, self.m, self.mm].map(f64::from);
        (mm - m * m / n) / n
    }

    /// Pearson's correlation; 0 without structure in the frame.
    fn correlation(&self) -> f64 {
        let [n, g, m, gg, gm, mm] =
            [self.n, self.g, self.m, self.gg, self.gm, self.mm].map(f64::from);
        let (frame, model) = (gg - g * g / n, mm - m * m / n);
        if frame > 1e-3 * n && model > 1e-3 * n {
            (gm - g * m / n) / (frame * model).sqrt()
        } else {
            0.0
        }
    }
}

/// Pearson's correlation of the frame at a whole shift of a level, over what both share.
pub fn at_shift(level: &Level, frame: &Grid, [u, v]: [i32; 2]) -> f64 {
    let Grid { width, height, .. } = level.picture;
    let range = |shift: i32, size: usize| {
        let size = size as i32;
        [(-shift).max(0).min(size), (size - shift.max(0)).max(0)].map(|n| n as usize)
    };
    let ([x0, x1], [y0, y1]) = (range(u, width), range(v, height));
    let mut sums = [0.0_f64; 6];
    for y in y0..y1 {
        let from = |x: usize| (x as i32 + u) as usize;
        let (model, weight) = (&level.picture.row(y)[x0..x1], &level.weight.row(y)[x0..x1]);
        let frame = &frame.row((y as i32 + v) as usize)[from(x0)..from(x1)];
        let mut row = [[0.0_f32; LANES]; 6];
        let chunks = (frame.chunks(LANES))
            .zip(model.chunks(LANES))
            .zip(weight.chunks(LANES));
        for ((g, m), w) in chunks {
            for (i, ((&g, &m), &w)) in g.iter().zip(m).zip(w).enumerate() {
                let (wg, wm) = (w * g, w * m);
                for (sum, value) in row.iter_mut().zip([w, wg, wm, wg * g, wg * m, wm * m]) {
                    sum[i] += value;
                }
            }
        }
        for (sum, row) in sums.iter_mut().zip(row) {
            *sum += row.iter().map(|&v| f64::from(v)).sum::<f64>();
        }
    }
    let [n, g, m, gg, gm, mm] = sums;
    if n < 1.0 {
        return 0.0;
    }
    let spread = (gg - g * g / n) * (mm - m * m / n);
    (gm - g * m / n) / spread.max(1e-9).sqrt()
}
