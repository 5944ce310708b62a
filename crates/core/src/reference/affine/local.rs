//! Shifts that vary over the picture, on top of a motion of the whole picture.

use super::{
    super::{MOST_LOCAL, NODE_TILE, Nodes, UNITS},
    fit::{Light, Lines, Samples, between},
    level::{Grid, Level},
    solve::Vector,
};

const STEPS: usize = 6;
/// Pulls nodes to 0: a share of the mean information of the nodes.
const PRIOR: f32 = 0.05;
/// Residuals above this many level pixels of edge count less, at the first and at the last step.
const ROBUST: [f32; 2] = [2.0, 1.0];
/// Sums of nodes are mixed with those of their neighbours this many times.
const SMOOTHINGS: usize = 2;

/// Shifts of nodes, one in the middle of each tile, row by row.
struct LocalShifts {
    columns: usize,
    rows: usize,
    /// Along x and y, px of the level.
    shifts: Vec<[f32; 2]>,
}

/// A position between two nodes.
#[derive(Clone, Copy)]
struct Between {
    first: usize,
    second: usize,
    /// Share of the second.
    share: f32,
}

impl Between {
    /// For pixel `at` among `nodes` nodes, each in the middle of `side` pixels.
    fn new(at: usize, side: f32, nodes: usize) -> Self {
        let last = nodes.saturating_sub(1);
        let place = ((at as f32 + 0.5) / side - 0.5).clamp(0.0, last as f32);
        let first = (place as usize).min(nodes.saturating_sub(2));
        Self {
            first,
            second: (first + 1).min(last),
            share: if nodes > 1 { place - first as f32 } else { 0.0 },
        }
    }

    fn of(self, [a, b]: [[f32; 2]; 2]) -> [f32; 2] {
        [0, 1].map(|i| a[i] + self.share * (b[i] - a[i]))
    }
}

/// Sums over the pixels of a node's tile: of `∇m∇mᵀ` (xx, xy, yy), and of `∇m·r` along x and y.
type Sums = [f32; 5];

/// Finds the local shifts of a frame of a size that is read through the motion `p` of a level.
pub fn find(
    level: &Level,
    frame: &Grid,
    p: &Vector,
    size: [usize; 2],
    samples: &mut Samples,
) -> Nodes {
    let [columns, rows] = Nodes::tiles(size);
    let mut local = LocalShifts {
        columns,
        rows,
        shifts: vec![[0.0; 2]; columns * rows],
    };
    let units = UNITS as f32 * level.scale as f32;
    let most = MOST_LOCAL as f32 / units;
    for step in 0..STEPS {
        let part = step as f32 / (STEPS - 1) as f32;
        let c = ROBUST[0] + part * (ROBUST[1] - ROBUST[0]);
        read(level, frame, p, &local, samples);
        let Some(light) = samples.light(level, None) else {
            break;
        };
        let mut sums = sums(level, samples, light, c, [columns, rows]);
        for _ in 0..SMOOTHINGS {
            smooth(&mut sums, columns);
        }
        let information = sums.iter().map(|s| s[0] + s[2]).sum::<f32>();
        let prior = PRIOR * information / (2 * sums.len().max(1)) as f32;
        if prior < 1e-6 {
            break;
        }
        for ([u, v], [xx, xy, yy, rx, ry]) in local.shifts.iter_mut().zip(sums) {
            let (a, c) = (xx + prior, yy + prior);
            let (du, dv) = (-rx - prior * *u, -ry - prior * *v);
            let det = a * c - xy * xy;
            *u = (*u + (c * du - xy * dv) / det).clamp(-most, most);
            *v = (*v + (a * dv - xy * du) / det).clamp(-most, most);
        }
    }
    let in_units = |axis: usize| {
        let shifts = local.shifts.iter();
        shifts
            .map(|shift| (shift[axis] * units).round() as i32)
            .collect()
    };
    Nodes {
        columns,
        rows,
        u: in_units(0),
        v: in_units(1),
    }
}

/// Reads the frame through the motion and the local shifts.
fn read(level: &Level, frame: &Grid, p: &Vector, local: &LocalShifts, samples: &mut Samples) {
    let Grid { width, height, .. } = level.picture;
    let side = (NODE_TILE / level.scale) as f32;
    let across: Vec<Between> = (0..width)
        .map(|x| Between::new(x, side, local.columns))
        .collect();
    let lines = Lines::new(level, p);
    let limits = [frame.width, frame.height].map(|n| n.saturating_sub(1) as f32);
    samples.resize([width, height]);
    let mut nodes = vec![[0.0; 2]; local.columns];
    for y in 0..height {
        let down = Between::new(y, side, local.rows);
        let row = |row: usize| local.shifts[row * local.columns..].iter();
        for ((node, &a), &b) in (nodes.iter_mut().zip(row(down.first))).zip(row(down.second)) {
            *node = down.of([a, b]);
        }
        let [[x0, dx], [y0, dy]] = lines.row(y);
        let counts = level.weight.row(y);
        let out = samples.values.row_mut(y).iter_mut();
        for (x, (value, weight)) in out.zip(samples.weight.row_mut(y)).enumerate() {
            let at = across[x];
            let [u, v] = at.of([nodes[at.first], nodes[at.second]]);
            let place = [x0 + dx * x as f32 + u, y0 + dy * x as f32 + v];
            let is_inside = (place.iter().zip(limits)).all(|(&v, limit)| v >= 0.0 && v < limit);
            *weight = if is_inside { counts[x] } else { 0.0 };
            *value = if is_inside {
                between(frame, place[0], place[1])
            } else {
                0.0
            };
        }
    }
}

/// The sums of each tile.
fn sums(
    level: &Level,
    samples: &Samples,
    light: Light,
    c: f32,
    [columns, rows]: [usize; 2],
) -> Vec<Sums> {
    let Grid { width, height, .. } = level.picture;
    let side = NODE_TILE / level.scale;
    let (inverse, offset) = ((1.0 / light.gain) as f32, light.offset as f32);
    let hardness = 1.0 / (c * c);
    let mut tiles = vec![Sums::default(); columns * rows];
    for y in 0..height {
        let tiles = &mut tiles[y / side * columns..];
        let (g, m) = (samples.values.row(y), level.picture.row(y));
        let (q, w) = (level.softness.row(y), samples.weight.row(y));
        let [gx, gy] = [0, 1].map(|axis: usize| level.gradients[axis].row(y));
        for x in 0..width {
            let r = (g[x] - offset) * inverse - m[x];
            let d = 1.0 + r * r * q[x] * hardness;
            let k = w[x] / (d * d);
            let (kx, ky) = (k * gx[x], k * gy[x]);
            let tile = &mut tiles[x / side];
            for (sum, value) in
                tile.iter_mut()
                    .zip([kx * gx[x], kx * gy[x], ky * gy[x], kx * r, ky * r])
            {
                *sum += value;
            }
        }
    }
    tiles
}

/// Adds half of each neighbour along x, then along y.
fn smooth(sums: &mut [Sums], columns: usize) {
    let sharp = sums.to_vec();
    let add = |sum: &mut Sums, near: Option<&Sums>| {
        for (value, &near) in sum.iter_mut().zip(near.into_iter().flatten()) {
            *value += 0.5 * near;
        }
    };
    for (n, sum) in sums.iter_mut().enumerate() {
        let x = n % columns;
        add(sum, (x > 0).then(|| &sharp[n - 1]));
        add(sum, (x + 1 < columns).then(|| &sharp[n + 1]));
    }
    let wide = sums.to_vec();
    for (n, sum) in sums.iter_mut().enumerate() {
        add(
            sum,
            n.checked_sub(columns).and_then(|above| wide.get(above)),
        );
        add(sum, wide.get(n + columns));
    }
}
