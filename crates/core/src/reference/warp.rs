//! Where the pixels of a model lie in a frame: an affine motion and local shifts, exact in integers.

/// Frames have at most this many pixels a side, so that displacements fit 32 bits: an affine part displaces no pixel of
/// them by more than 258 px plus 0.08 px per pixel along both axes, which is less than 2^31 units of 2^-20 px.
pub const MOST_WARPED: usize = 16_384;
/// Distance of the nodes of local shifts, px.
pub const NODE_TILE: usize = 32;
/// Units of a pixel of positions and displacements.
pub const UNITS: i32 = 256;
/// Units of a pixel of coefficients.
const COEFFICIENT_UNITS: i32 = 1 << 20;
/// Fraction bits that a coefficient has and a displacement has not.
const DROPPED: u32 = 12;
/// Local shifts are at most this far, units.
pub const MOST_LOCAL: i32 = 2 * UNITS;

/// Local shifts at nodes in the middles of the tiles of 32x32 px, 1/256 px.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Nodes {
    /// Tiles along x, the last one may be partial.
    pub columns: usize,
    /// Tiles along y, the last one may be partial.
    pub rows: usize,
    /// Shifts along x, row by row.
    pub u: Vec<i32>,
    /// Shifts along y, row by row.
    pub v: Vec<i32>,
}

impl Nodes {
    /// Tiles along x and y of frames of this size.
    pub fn tiles(size: [usize; 2]) -> [usize; 2] {
        size.map(|n| n.div_ceil(NODE_TILE))
    }

    /// The shifts at a pixel, which may lie outside the frame: bilinear between nodes.
    pub fn at(&self, x: i32, y: i32) -> [i32; 2] {
        let [(i, wx), (j, wy)] = [(x, self.columns), (y, self.rows)].map(|(at, n)| between(at, n));
        let [right, below] = [(i, self.columns), (j, self.rows)].map(|(i, n)| (i + 1).min(n - 1));
        let tile = 2 * NODE_TILE as i32;
        [&self.u, &self.v].map(|shifts| {
            let node = |i: usize, j: usize| shifts.get(j * self.columns + i).copied().unwrap_or(0);
            let row = |j| (tile - wx) * node(i, j) + wx * node(right, j);
            // A weight has 6 bits along each axis.
            ((tile - wy) * row(j) + wy * row(below) + (1 << 11)) >> 12
        })
    }
}

/// The node at or before a pixel, and the weight of the next one in 1/64.
fn between(at: i32, nodes: usize) -> (usize, i32) {
    let tile = 2 * NODE_TILE as i32;
    let from_first = 2 * at + 1 - NODE_TILE as i32;
    let last = nodes.saturating_sub(2) as i32;
    let node = (from_first.max(0) / tile).min(last);
    (node as usize, (from_first - node * tile).clamp(0, tile))
}

/// Where the pixels of a model lie in a frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Warp {
    /// The displacement `(u, v)` of a pixel: `u = c + a·x + b·y`, then `v` likewise, 2^-20 px. The linear terms `a` and
    /// `b` are at most 0.08, and no pixel of the middle moves by more than 258 px.
    pub coefficients: [i32; 6],
    /// What is added to it.
    pub nodes: Option<Nodes>,
}

impl Warp {
    /// The same displacement of all pixels, 1/256 px.
    pub fn shifted([x, y]: [i32; 2]) -> Self {
        Self {
            coefficients: [x << DROPPED, 0, 0, y << DROPPED, 0, 0],
            nodes: None,
        }
    }

    /// Whether no pixel moves.
    pub fn is_identity(&self) -> bool {
        self.coefficients == [0; 6] && self.nodes.is_none()
    }

    /// The displacement of a pixel, 1/256 px.
    pub fn displacement(&self, x: i32, y: i32) -> [i32; 2] {
        let [u, v] = self.affine(x, y);
        match &self.nodes {
            Some(nodes) => {
                let [du, dv] = nodes.at(x, y);
                [u + du, v + dv]
            }
            None => [u, v],
        }
    }

    /// The displacement without local shifts, 1/256 px.
    pub(super) fn affine(&self, x: i32, y: i32) -> [i32; 2] {
        [0, 1].map(|axis| self.along(axis, x, y))
    }

    /// The same along x or along y.
    fn along(&self, axis: usize, x: i32, y: i32) -> i32 {
        let [c, a, b, f, d, e] = self.coefficients.map(i64::from);
        let [c, a, b] = if axis == 0 { [c, a, b] } else { [f, d, e] };
        let displacement = c + a * i64::from(x) + b * i64::from(y);
        ((displacement + (1 << (DROPPED - 1))) >> DROPPED) as i32
    }

    /// The columns of a row of the model whose samples all lie in the frame, half open: those that are read with a weight
    /// above 0. With local shifts, the columns that lie 3 px inside the frame without the local shifts.
    pub fn span(&self, [width, height]: [usize; 2], y: usize) -> [usize; 2] {
        let inset = if self.nodes.is_some() {
            MOST_LOCAL + UNITS
        } else {
            0
        };
        let most = [width, height].map(|n| UNITS * (n as i32 - 1) - inset);
        let y = y as i32;
        let position = |x: usize, axis: usize| {
            let at = [x as i32, y];
            UNITS * at[axis] + self.along(axis, at[0], y)
        };
        // Each position rises or falls along the row, so the columns inside are those between two borders.
        let mut span = [0, width];
        for axis in [0, 1] {
            let inside = if position(width - 1, axis) >= position(0, axis) {
                [
                    first(width, |x| position(x, axis) >= inset),
                    first(width, |x| position(x, axis) > most[axis]),
                ]
            } else {
                [
                    first(width, |x| position(x, axis) <= most[axis]),
                    first(width, |x| position(x, axis) < inset),
                ]
            };
            span = [span[0].max(inside[0]), span[1].min(inside[1])];
        }
        if span[0] < span[1] { span } else { [0, 0] }
    }

    /// The affine part: the pixel `(x, y)` of the model lies at `(t0 + t1·x + t2·y, t3 + t4·x + t5·y)` of the frame.
    pub fn transform(&self) -> [f64; 6] {
        let unit = f64::from(COEFFICIENT_UNITS);
        let [t0, a, b, t3, d, e] = self.coefficients.map(|v| f64::from(v) / unit);
        [t0, 1.0 + a, b, t3, d, 1.0 + e]
    }

    /// The largest local shift along x or y, px.
    pub fn largest_local(&self) -> f64 {
        let nodes = self.nodes.iter();
        let shifts = nodes.flat_map(|nodes| nodes.u.iter().chain(&nodes.v));
        let largest = shifts.map(|shift| shift.unsigned_abs()).max().unwrap_or(0);
        f64::from(largest) / f64::from(UNITS)
    }
}

/// The first of `count` columns of which a condition holds, if it holds for all columns after the first such one.
pub(crate) fn first(count: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = (low + high) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    const COEFFICIENTS: [[i32; 6]; 5] = [
        [0, 0, 0, 0, 0, 0],
        [786_432, 0, 0, -1_310_720, 0, 0],
        [3_000_000, -31_000, 20_000, -9_000_000, 52_000, 83_000],
        [-12_345_678, 83_886, -83_886, 20_000_000, -83_886, -83_886],
        [700_000, 1, -1, -700_000, 3, -2],
    ];

    fn nodes(size: [usize; 2]) -> Nodes {
        let [columns, rows] = Nodes::tiles(size);
        let shift = |i: usize| (i as i32 * 7919) % MOST_LOCAL;
        Nodes {
            columns,
            rows,
            u: (0..columns * rows).map(shift).collect(),
            v: (0..columns * rows).map(|i| -shift(i + 5)).collect(),
        }
    }

    #[test]
    fn displacement_follows_its_formula() {
        let warp = Warp {
            coefficients: [1 << 20, 1 << 12, -(1 << 11), -(1 << 19), 0, 1 << 10],
            nodes: None,
        };
        // 256 + 3 - 5/2 rounds half up; -128 + 5/4.
        assert_eq!(warp.displacement(3, 5), [257, -127]);
        let shift = Warp::shifted([-320, 192]);
        assert_eq!(shift.displacement(700, 20), [-5 * 64, 3 * 64]);
        assert_eq!(shift.transform(), [-1.25, 1.0, 0.0, 0.75, 0.0, 1.0]);
        assert!(Warp::shifted([0; 2]).is_identity() && !shift.is_identity());
    }

    #[test]
    fn local_shifts_are_those_of_the_nodes_in_the_middles_of_tiles_and_bilinear_between() {
        let nodes = Nodes {
            columns: 3,
            rows: 2,
            u: vec![0, 64, -128, 128, 256, 512],
            v: vec![3; 6],
        };
        // The middle of a tile lies between its pixels 15 and 16.
        for (x, y, u) in [
            (-9, 0, 0),
            (0, 0, 0),
            (15, 0, 0),
            (16, 0, 1),
            (31, 15, 31),
            (32, 15, 33),
            (47, 3, 63),
            (48, 15, 61),
            (90, 2, -128),
            (500, 900, 512),
            (15, 47, 126),
        ] {
            let found = nodes.at(x, y);
            assert!((found[0] - u).abs() <= 2, "{x} {y}: {found:?}, not {u}");
            assert_eq!(found[1], 3);
        }
        // Exact at one place: ((63·0 + 64) · 63 + (63·128 + 256) · 1 + 2048) >> 12.
        assert_eq!(nodes.at(16, 16)[0], (63 * 64 + 63 * 128 + 256 + 2048) >> 12);
        let single = Nodes {
            columns: 1,
            rows: 1,
            u: vec![-77],
            v: vec![5],
        };
        assert_eq!(single.at(30, 2), [-77, 5]);
        let warp = Warp {
            coefficients: [0; 6],
            nodes: Some(nodes),
        };
        assert_eq!(warp.largest_local(), 2.0);
        assert!(!warp.is_identity());
    }

    #[test]
    fn span_holds_the_columns_whose_samples_lie_in_the_frame() {
        for size @ [width, height] in [[97, 61], [33, 40], [1, 1], [2, 300]] {
            for coefficients in COEFFICIENTS {
                for local in [None, Some(nodes(size))] {
                    let inset = if local.is_some() { 768 } else { 0 };
                    let warp = Warp {
                        coefficients,
                        nodes: local,
                    };
                    for y in 0..height {
                        let [x0, x1] = warp.span(size, y);
                        for x in 0..width {
                            let (x, y) = (x as i32, y as i32);
                            let [u, v] = warp.affine(x, y);
                            let inside = |at: i32, d: i32, size: usize| {
                                let first = 256 * at + d - inset;
                                let last = 256 * at + d + inset;
                                let last = last.div_euclid(256) + i32::from(last % 256 != 0);
                                first >= 0 && last < size as i32
                            };
                            assert_eq!(
                                (x0 as i32..x1 as i32).contains(&x),
                                inside(x, u, width) && inside(y, v, height),
                                "{size:?} {coefficients:?} {x} {y}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn local_shifts_keep_the_columns_of_a_span_inside_the_frame() {
        let size @ [width, height] = [200, 150];
        let warp = Warp {
            coefficients: COEFFICIENTS[2],
            nodes: Some(nodes(size)),
        };
        let mut judged = 0;
        for y in 0..height {
            let [x0, x1] = warp.span(size, y);
            judged += x1 - x0;
            for x in x0..x1 {
                let [u, v] = warp.displacement(x as i32, y as i32);
                let at = [256 * x as i32 + u, 256 * y as i32 + v];
                let last = [width, height].map(|n| 256 * (n as i32 - 1));
                assert!(at[0] >= 0 && at[0] <= last[0] && at[1] >= 0 && at[1] <= last[1]);
            }
        }
        assert!(judged > 20_000, "{judged}");
    }
}
