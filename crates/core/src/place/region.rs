//! The part of the trained picture that is searched for.

use super::{
    gradient::{each_row, length},
    level::{FINEST, Plane},
};

/// Gradient that tells the part from its ground: 8 grey levels per px.
const STRONG: f64 = 4096.0;
/// Least difference from the ground, in sums of 4x4 samples.
const LEAST_DIFFERENCE: i32 = 128;

/// What a sentence about a region ends with.
const SET_IT: &str = "; set region";

/// The pixels of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Of the picture of sums.
    columns: usize,
    rows: usize,
    /// Pixels of level 4 that hold a sample of the region.
    cells: Vec<bool>,
    /// Samples: `x0, y0, x1, y1`, half open.
    bounds: [usize; 4],
}

impl Region {
    /// The samples for which a condition holds in a picture of a size.
    ///
    /// # Errors
    /// A sentence, if there are none.
    pub fn new(
        size @ [width, height]: [usize; 2],
        is_part: impl Fn(usize, usize) -> bool,
    ) -> Result<Self, String> {
        let [columns, rows] = size.map(|n| n / FINEST);
        let mut cells = vec![false; columns * rows];
        let mut bounds = [width, height, 0, 0];
        for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
            if !is_part(x, y) {
                continue;
            }
            let [x0, y0, x1, y1] = bounds;
            bounds = [x0.min(x), y0.min(y), x1.max(x + 1), y1.max(y + 1)];
            let [column, row] = [x / FINEST, y / FINEST];
            if column < columns && row < rows {
                cells[row * columns + column] = true;
            }
        }
        if !cells.contains(&true) {
            return Err(format!("the region holds no pixel{SET_IT}"));
        }
        Ok(Self {
            columns,
            rows,
            cells,
            bounds,
        })
    }

    /// What differs from its ground. `sums`: sums of 4x4 samples of the trained picture in grey levels of 8 bits.
    ///
    /// # Errors
    /// A sentence, if nothing differs, or the part touches the edge of the picture.
    pub fn found(sums: &[u16], size: [usize; 2]) -> Result<Self, String> {
        let [columns, rows] = size.map(|n| n / FINEST);
        let nothing = || format!("no part stands out from its background{SET_IT}");
        if columns.min(rows) <= 4 {
            return Err(nothing());
        }
        let at = |at: usize| [at % columns, at / columns];
        let is_outer =
            |[x, y]: [usize; 2], by: usize| x < by || y < by || x + by >= columns || y + by >= rows;
        // In half units: the median of an even number is the mean of two.
        let ground = twice_median(
            (0..sums.len())
                .filter(|&i| is_outer(at(i), 2))
                .map(|i| i32::from(sums[i])),
        );
        let differences: Vec<i32> = sums
            .iter()
            .map(|&sum| (2 * i32::from(sum) - ground).abs())
            .collect();
        let spread = twice_median(
            (0..sums.len())
                .filter(|&i| is_outer(at(i), 2))
                .map(|i| differences[i]),
        );
        // In half units, of which the spread is twice the median: 2·4·D.
        let most = (2 * LEAST_DIFFERENCE).max(2 * spread);
        let mut differs: Vec<bool> = differences.iter().map(|&d| d > most).collect();
        let picture = Plane {
            width: columns,
            height: rows,
            values: sums.iter().map(|&sum| i32::from(sum)).collect(),
        };
        each_row(&picture, |y, gx, gy| {
            for x in 0..columns {
                differs[y * columns + x] |= length(gx[x], gy[x]) > STRONG;
            }
        });
        let mut is_ground = vec![false; differs.len()];
        for start in (0..differs.len()).filter(|&i| is_outer(at(i), 1)) {
            if !differs[start] && !is_ground[start] {
                reached(&mut is_ground, columns, start, |i| !differs[i]);
            }
        }
        let mut seen = is_ground.clone();
        let mut pieces = Vec::new();
        for start in 0..seen.len() {
            if !seen[start] {
                pieces.push(reached(&mut seen, columns, start, |_| true));
            }
        }
        let largest = pieces.iter().map(Vec::len).max().ok_or_else(nothing)?;
        let mut cells = vec![false; differs.len()];
        for &cell in pieces
            .iter()
            .filter(|piece| 10 * piece.len() >= largest)
            .flatten()
        {
            cells[cell] = true;
        }
        if (0..cells.len()).any(|i| cells[i] && is_outer(at(i), 1)) {
            return Err(format!("the part touches the edge of the frame{SET_IT}"));
        }
        Self::new(size, |x, y| {
            let [x, y] = [x, y].map(|v| v / FINEST);
            x < columns && y < rows && cells[y * columns + x]
        })
    }

    /// Whether it is one of pictures of this size.
    pub fn is_of(&self, size: [usize; 2]) -> bool {
        [self.columns, self.rows] == size.map(|n| n / FINEST)
            && self.bounds[2] <= size[0]
            && self.bounds[3] <= size[1]
    }

    /// Whether a pixel of level 4 that holds a sample of the region holds this one.
    pub fn holds(&self, x: usize, y: usize) -> bool {
        let [column, row] = [x / FINEST, y / FINEST];
        column < self.columns && row < self.rows && self.cells[row * self.columns + column]
    }

    /// The samples' bounds: `x0, y0, x1, y1`, half open.
    pub fn bounds(&self) -> [usize; 4] {
        self.bounds
    }

    /// Twice the middle of the bounds.
    pub fn centre2(&self) -> [i32; 2] {
        let [x0, y0, x1, y1] = self.bounds;
        [x0 + x1, y0 + y1].map(|v| v as i32)
    }

    /// The pixels of a level whose samples all lie in the region grown by two pixels of level 4. `side`: pixels of level 4
    /// along a side of a pixel of the level, whose size is `size`.
    pub(super) fn covered_pixels(&self, side: usize, [width, height]: [usize; 2]) -> Vec<bool> {
        let grown = self.with_neighbours(&self.with_neighbours(&self.cells, true), true);
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| [x, y]));
        let is_covered = |[x, y]: [usize; 2]| {
            (0..side).all(|j| {
                let first = (y * side + j) * self.columns + x * side;
                !grown[first..first + side].contains(&false)
            })
        };
        pixels.map(is_covered).collect()
    }

    /// The pixels of level 4 that lie in the region with their 8 neighbours, in scan order.
    pub fn inner(&self) -> Vec<[usize; 2]> {
        let inner = self.with_neighbours(&self.cells, false);
        let pixels = (0..inner.len()).filter(|&at| inner[at]);
        pixels
            .map(|at| [at % self.columns, at / self.columns])
            .collect()
    }

    /// Pixels that have a set pixel among themselves and their 8 neighbours (`any`), or set ones only; those outside the
    /// picture are not set.
    fn with_neighbours(&self, cells: &[bool], any: bool) -> Vec<bool> {
        let is_set = |x: usize, y: usize| {
            let (x, y) = (x.wrapping_sub(1), y.wrapping_sub(1));
            x < self.columns && y < self.rows && cells[y * self.columns + x]
        };
        let pixels = (0..self.rows).flat_map(|y| (0..self.columns).map(move |x| [x, y]));
        let near = |[x, y]: [usize; 2]| {
            let mut near = (0..9).map(|i| is_set(x + i % 3, y + i / 3));
            if any {
                near.any(|set| set)
            } else {
                near.all(|set| set)
            }
        };
        pixels.map(near).collect()
    }
}

/// Twice the median: the sum of the two middle values of an even number.
fn twice_median(values: impl Iterator<Item = i32>) -> i32 {
    let mut values: Vec<i32> = values.collect();
    values.sort_unstable();
    let n = values.len();
    let of = |at: usize| values.get(at).copied().unwrap_or(0);
    of(n.saturating_sub(1) / 2) + of(n / 2)
}

/// Sets what is reached from a pixel through 4 neighbours that are allowed and not set yet; returns these pixels.
fn reached(
    is_set: &mut [bool],
    columns: usize,
    start: usize,
    is_allowed: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let mut found = vec![start];
    is_set[start] = true;
    let mut next = 0;
    while let Some(&at) = found.get(next) {
        next += 1;
        let x = at % columns;
        let near = [
            (x > 0).then(|| at - 1),
            (x + 1 < columns).then(|| at + 1),
            at.checked_sub(columns),
            Some(at + columns).filter(|&at| at < is_set.len()),
        ];
        for at in near.into_iter().flatten() {
            if !is_set[at] && is_allowed(at) {
                is_set[at] = true;
                found.push(at);
            }
        }
    }
    found
}
