//! A robust Lucas–Kanade fit on one level (inverse compositional): the motion of a frame against the model.
//!
//! Sums run over vectors of [`LANES`] samples, in the same order on every machine.

use super::{
    level::{Grid, LANES, Lanes, Level},
    solve::{Matrix, Vector, solve_along},
};

/// Least weight, in pixels, of a fit that means something.
const LEAST_WEIGHT: f64 = 50.0;
/// Most that the frame's contrast may differ from the model's.
const MOST_GAIN: f64 = 4.0;
/// The share of the mean information of a shift that is added along each direction.
const DAMPING: f64 = 1e-3;
/// Steps below this size end a fit, px of the level.
const STOP: f64 = 0.01;

/// How residuals count: those above `c` level pixels of edge count less.
#[derive(Debug, Clone, Copy)]
pub struct Robust {
    /// Of the first step; each further step halves it.
    pub first: f64,
    /// The smallest.
    pub last: f64,
}

/// Memory of fits.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// The frame where the motion puts the model's pixels.
    pub values: Grid,
    /// 1 where that lies in the frame and the pixel counts.
    pub weight: Grid,
}

/// Frame = gain · model + offset.
#[derive(Debug, Clone, Copy)]
pub struct Light {
    pub gain: f64,
    pub offset: f64,
}

impl Light {
    const UNIT: Self = Self {
        gain: 1.0,
        offset: 0.0,
    };
}

/// The motion `u = p0 + p1 X + p2 Y`, `v = p3 + p4 X + p5 Y` of a level in its pixels: model (x, y) lies in the frame at
/// `(x + u, y + v)`.
pub struct Lines {
    /// `u = across[0] x + across[1] y + across[2]`, then v.
    across: [[f32; 3]; 2],
}

impl Lines {
    pub fn new(level: &Level, p: &Vector) -> Self {
        let [cx, cy] = level.centre;
        let line = |p: &[f64]| {
            let [a, b] = [p[1] / level.radius, p[2] / level.radius];
            [a as f32, b as f32, (p[0] - a * cx - b * cy) as f32]
        };
        Self {
            across: [line(&p[..3]), line(&p[3..])],
        }
    }

    /// Where the model's row y begins in the frame, and the step of a column.
    pub fn row(&self, y: usize) -> [[f32; 2]; 2] {
        let [u, v] = self.across;
        let at = y as f32;
        [
            [u[1] * at + u[2], 1.0 + u[0]],
            [at + v[1] * at + v[2], v[0]],
        ]
    }
}

/// The columns `from..past` whose positions along a row have all four neighbours in the frame.
pub fn inside(
    row: [[f32; 2]; 2],
    [width, height]: [usize; 2],
    mut columns: std::ops::Range<usize>,
) -> std::ops::Range<usize> {
    let limits = [width, height].map(|n| n.saturating_sub(1) as f32);
    let is_inside = |x: usize| {
        (row.iter().zip(limits)).all(|(&[start, step], limit)| {
            let at = start + step * x as f32;
            at >= 0.0 && at < limit
        })
    };
    // Positions are monotonic along a row, so those inside are neighbours.
    while !columns.is_empty() && !is_inside(columns.start) {
        columns.start += 1;
    }
    while !columns.is_empty() && !is_inside(columns.end - 1) {
        columns.end -= 1;
    }
    columns
}

/// The frame between four pixels; `x` and `y` lie inside.
pub fn between(frame: &Grid, x: f32, y: f32) -> f32 {
    // Conversions to and from 32 bits are single instructions.
    let (column, row) = (x as i32, y as i32);
    let (fx, fy) = (x - column as f32, y - row as f32);
    let at = row as usize * frame.stride + column as usize;
    let Some(q) = frame.values.get(at..at + frame.stride + 2) else {
        return 0.0;
    };
    let above = q[0] + fx * (q[1] - q[0]);
    let below = q[frame.stride] + fx * (q[frame.stride + 1] - q[frame.stride]);
    above + fy * (below - above)
}

impl Samples {
    /// Takes the size of a level.
    pub fn resize(&mut self, size: [usize; 2]) {
        if [self.values.width, self.values.height] != size {
            self.values = Grid::new(size);
            self.weight = Grid::new(size);
        }
    }

    /// Reads the frame through a motion.
    pub fn read(&mut self, level: &Level, frame: &Grid, p: &Vector) {
        let Grid { width, height, .. } = level.picture;
        self.resize([width, height]);
        // A fit of local shifts also writes the rows at the border.
        for y in [0, height.saturating_sub(1)] {
            self.weight.row_mut(y).fill(0.0);
        }
        let lines = Lines::new(level, p);
        for y in 1..height.saturating_sub(1) {
            let row = lines.row(y);
            let [[x0, dx], [y0, dy]] = row;
            let columns = inside(row, [frame.width, frame.height], 1..width - 1);
            let weight = self.weight.row_mut(y);
            weight.fill(0.0);
            weight[columns.clone()].copy_from_slice(&level.weight.row(y)[columns.clone()]);
            let values = &mut self.values.row_mut(y)[columns.clone()];
            for (value, x) in values.iter_mut().zip(columns) {
                let at = x as f32;
                *value = between(frame, x0 + dx * at, y0 + dy * at);
            }
        }
    }

    /// The light of the frame by the weighted means and deviations. `before`: the residuals under this light give the
    /// weights; `None`: all pixels count alike. `None` if too few pixels count.
    pub fn light(&self, level: &Level, before: Option<(Light, f64)>) -> Option<Light> {
        let (light, c) = before.unwrap_or((Light::UNIT, f64::INFINITY));
        let (inverse, offset) = ((1.0 / light.gain) as f32, light.offset as f32);
        let hardness = (1.0 / (c * c)) as f32;
        let mut totals = [0.0; 5];
        for y in 1..self.values.height.saturating_sub(1) {
            let mut sums = [[0.0_f32; LANES]; 5];
            for (((g, m), q), w) in (self.values.lanes(y).iter())
                .zip(level.picture.lanes(y))
                .zip(level.softness.lanes(y))
                .zip(self.weight.lanes(y))
            {
                for i in 0..LANES {
                    let r = (g[i] - offset) * inverse - m[i];
                    let d = 1.0 + r * r * q[i] * hardness;
                    let k = w[i] / (d * d);
                    let (kg, km) = (k * g[i], k * m[i]);
                    sums[0][i] += k;
                    sums[1][i] += kg;
                    sums[2][i] += km;
                    sums[3][i] += kg * g[i];
                    sums[4][i] += km * m[i];
                }
            }
            for (total, sum) in totals.iter_mut().zip(&sums) {
                *total += all(sum);
            }
        }
        let [n, g, m, gg, mm] = totals;
        if n < LEAST_WEIGHT {
            return None;
        }
        let (vg, vm) = (gg - g * g / n, mm - m * m / n);
        let gain = if vm > 1e-9 {
            (vg / vm).max(0.0).sqrt()
        } else {
            1.0
        };
        let gain = gain.clamp(1.0 / MOST_GAIN, MOST_GAIN);
        Some(Light {
            gain,
            offset: (g - gain * m) / n,
        })
    }

    /// `H = Σk JᵀJ` and `b = Σk Jᵀr` with the weights k of the residuals.
    fn normal(&self, level: &Level, light: Light, c: f64) -> (Matrix, Vector) {
        let (inverse, offset) = ((1.0 / light.gain) as f32, light.offset as f32);
        let hardness = (1.0 / (c * c)) as f32;
        let mut h = [[0.0; 6]; 6];
        let mut b = [0.0; 6];
        let columns = level.columns.as_chunks::<LANES>().0;
        for y in 1..self.values.height.saturating_sub(1) {
            let mut sums = [[0.0_f32; LANES]; 13];
            let gradients = (level.gradients[0].lanes(y).iter()).zip(level.gradients[1].lanes(y));
            for (((((g, m), q), w), (gx, gy)), x) in (self.values.lanes(y).iter())
                .zip(level.picture.lanes(y))
                .zip(level.softness.lanes(y))
                .zip(self.weight.lanes(y))
                .zip(gradients)
                .zip(columns)
            {
                for i in 0..LANES {
                    let r = (g[i] - offset) * inverse - m[i];
                    let d = 1.0 + r * r * q[i] * hardness;
                    let k = w[i] / (d * d);
                    let (kx, ky) = (k * gx[i], k * gy[i]);
                    let products = [kx * gx[i], kx * gy[i], ky * gy[i]];
                    for (n, t) in products.into_iter().enumerate() {
                        let tx = t * x[i];
                        sums[3 * n][i] += t;
                        sums[3 * n + 1][i] += tx;
                        sums[3 * n + 2][i] += tx * x[i];
                    }
                    let (rx, ry) = (kx * r, ky * r);
                    sums[9][i] += rx;
                    sums[10][i] += rx * x[i];
                    sums[11][i] += ry;
                    sums[12][i] += ry * x[i];
                }
            }
            let s = sums.map(|sum| all(&sum));
            let at = level.rows.get(y).copied().unwrap_or(0.0);
            // Blocks of [1, X, Y]ᵀ[1, X, Y].
            for (n, (row, column)) in [(0, 0), (0, 3), (3, 3)].into_iter().enumerate() {
                let [one, x, xx] = [s[3 * n], s[3 * n + 1], s[3 * n + 2]];
                let block = [
                    [one, x, one * at],
                    [x, xx, x * at],
                    [one * at, x * at, one * at * at],
                ];
                for (i, values) in block.iter().enumerate() {
                    for (j, value) in values.iter().enumerate() {
                        h[row + i][column + j] += value;
                    }
                }
            }
            for (n, [one, x]) in [[s[9], s[10]], [s[11], s[12]]].into_iter().enumerate() {
                b[3 * n] += one;
                b[3 * n + 1] += x;
                b[3 * n + 2] += one * at;
            }
        }
        let (above, below) = h.split_at_mut(3);
        for (j, row) in below.iter_mut().enumerate() {
            for (value, mirrored) in row.iter_mut().zip(above.iter()) {
                *value = mirrored[3 + j];
            }
        }
        (h, b)
    }

    /// Root mean square of the residuals of a motion, grey levels; 0 if too few pixels count.
    pub fn misfit(&mut self, level: &Level, frame: &Grid, p: &Vector) -> f64 {
        self.read(level, frame, p);
        let Some(light) = self.light(level, None) else {
            return 0.0;
        };
        let (inverse, offset) = ((1.0 / light.gain) as f32, light.offset as f32);
        let [mut n, mut squares] = [0.0; 2];
        for y in 1..self.values.height.saturating_sub(1) {
            let mut sums = [[0.0_f32; LANES]; 2];
            let weights = self.weight.lanes(y);
            for ((g, m), w) in (self.values.lanes(y).iter())
                .zip(level.picture.lanes(y))
                .zip(weights)
            {
                for i in 0..LANES {
                    let r = (g[i] - offset) * inverse - m[i];
                    sums[0][i] += w[i];
                    sums[1][i] += w[i] * r * r;
                }
            }
            n += all(&sums[0]);
            squares += all(&sums[1]);
        }
        (squares / n.max(1.0)).sqrt()
    }
}

fn all(lanes: &Lanes) -> f64 {
    lanes.iter().map(|&v| f64::from(v)).sum()
}

/// Improves a motion along `directions`, in at most `steps` steps.
pub fn fit(
    level: &Level,
    frame: &Grid,
    samples: &mut Samples,
    p: &mut Vector,
    directions: &[Vector],
    steps: usize,
    robust: Robust,
) {
    let mut before = None;
    let mut c = robust.first;
    for _ in 0..steps {
        c = c.max(robust.last);
        samples.read(level, frame, p);
        let Some(light) = samples.light(level, before) else {
            return;
        };
        let (h, b) = samples.normal(level, light, c);
        let mean = (h[0][0] + h[3][3]) / 2.0;
        if mean < 1e-6 {
            return;
        }
        let Some(d) = solve_along(directions, &h, &b, DAMPING * mean) else {
            return;
        };
        let Some(next) = composed(p, &d, level.radius) else {
            return;
        };
        *p = next;
        let largest = d.iter().fold(0.0_f64, |most, d| most.max(d.abs()));
        if largest < STOP && c <= robust.last {
            return;
        }
        c *= 0.5;
        before = Some((light, c.max(robust.last)));
    }
}

/// `W ∘ (I + D)⁻¹` in coordinates from the centre; `None` if D folds the picture.
fn composed(p: &Vector, d: &Vector, radius: f64) -> Option<Vector> {
    let affine = |p: &Vector| {
        [
            [1.0 + p[1] / radius, p[2] / radius, p[0]],
            [p[4] / radius, 1.0 + p[5] / radius, p[3]],
        ]
    };
    let (w, d) = (affine(p), affine(d));
    let det = d[0][0] * d[1][1] - d[0][1] * d[1][0];
    if !det.is_finite() || det.abs() < 1e-3 {
        return None;
    }
    let [a, b, c, e] = [d[1][1] / det, -d[0][1] / det, -d[1][0] / det, d[0][0] / det];
    let inverse = [
        [a, b, -(a * d[0][2] + b * d[1][2])],
        [c, e, -(c * d[0][2] + e * d[1][2])],
    ];
    let mut n = [[0.0; 3]; 2];
    for (row, w) in n.iter_mut().zip(w) {
        for (j, value) in row.iter_mut().enumerate() {
            *value = w[0] * inverse[0][j] + w[1] * inverse[1][j];
        }
        row[2] += w[2];
    }
    let [u, v] = n;
    Some([
        u[2],
        (u[0] - 1.0) * radius,
        u[1] * radius,
        v[2],
        v[0] * radius,
        (v[1] - 1.0) * radius,
    ])
}
