//! The middle of a frame, prepared for the correlation.

use super::{LEVELS, Vector};

/// Longest side of the picture, px.
const LONGEST: usize = 512;
/// Shortest side of a frame that is examined, px.
const SHORTEST: usize = 48;
/// Side of the window whose mean is subtracted, px.
const WINDOW: usize = 65;

/// Least side of a tile, px.
const TILE: usize = 48;
/// Least correlation of a tile with its neighbour.
const TILE_CORRELATION: f64 = 0.3;
/// Least share of tiles that repeat.
const FILLED: f64 = 0.5;

/// The part of a frame that is examined, in blocks of `1 << level` by `1 << level` pixels whose means are the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crop {
    /// Column of the first pixel of the first block.
    pub x: usize,
    /// Its row.
    pub y: usize,
    /// Blocks per row.
    pub width: usize,
    /// Rows of blocks.
    pub height: usize,
    /// Binary logarithm of a block's side.
    pub level: u32,
}

impl Crop {
    /// The middle of a frame of `size` (width, height) that is halved `level` times. `None` if the frame is too small to be
    /// examined, or is seen whole at a lower level.
    pub fn of([width, height]: [usize; 2], level: u32) -> Option<Self> {
        if level >= LEVELS {
            return None;
        }
        let (w, h) = (width >> level, height >> level);
        let is_seen = level > 0 && (width >> (level - 1)).max(height >> (level - 1)) <= LONGEST;
        if w.min(h) < SHORTEST || is_seen {
            return None;
        }
        Some(Self {
            x: (w.saturating_sub(LONGEST) / 2) << level,
            y: (h.saturating_sub(LONGEST) / 2) << level,
            width: w.min(LONGEST),
            height: h.min(LONGEST),
            level,
        })
    }
}

/// Appends the samples of a crop of a frame in host memory, rows of `width` samples.
pub fn middle<T: Copy + Into<f32>>(frame: &[T], width: usize, crop: Crop, out: &mut Vec<f32>) {
    let side = 1usize << crop.level;
    let scale = 1.0 / (side * side) as f32;
    let rows = (0..crop.height).flat_map(|row| (0..side).map(move |y| (row, y)));
    for (row, y) in rows {
        let first = (crop.y + row * side + y) * width + crop.x;
        let Some(line) = frame.get(first..first + crop.width * side) else {
            continue;
        };
        if side == 1 {
            out.extend(line.iter().map(|&sample| sample.into()));
            continue;
        }
        let sums = line.chunks_exact(side).map(|block| {
            let sum: f32 = block.iter().map(|&sample| sample.into()).sum();
            sum * scale
        });
        if y == 0 {
            out.extend(sums);
        } else {
            let begin = out.len() - crop.width;
            out[begin..]
                .iter_mut()
                .zip(sums)
                .for_each(|(slot, sum)| *slot += sum);
        }
    }
}

/// A picture less its local mean, smoothed.
#[derive(Default)]
pub struct Picture {
    pub width: usize,
    pub height: usize,
    /// Row by row.
    pub samples: Vec<f32>,
    /// The latest rows less their mean, smoothed along x: a ring of three.
    flat: [Vec<f32>; 3],
}

impl Picture {
    /// Prepares `width` × `height` samples, both at least 3: less the mean over the window, mirrored at the edges; then
    /// smoothed by (1 2 1)/4 along both axes, where the samples at the edges repeat.
    pub fn prepare(&mut self, samples: &[f32], width: usize, height: usize) {
        (self.width, self.height) = (width, height);
        self.samples.clear();
        self.samples.resize(width * height, 0.0);
        let least = width.min(height);
        if least < 5 || samples.len() < width * height {
            return;
        }
        let half = WINDOW.min((least - 1) / 2 * 2 - 1) / 2;
        let scale = 1.0 / ((2 * half + 1) * (2 * half + 1)) as f64;
        let row = |y: usize, by: isize| {
            let y = mirrored(y as isize + by, height);
            &samples[y * width..][..width]
        };
        let reach = half as isize;
        let mut columns = vec![0f64; width];
        let mut padded = vec![0f64; width + 2 * half];
        let mut sums = vec![0f64; width];
        let mut line = vec![0f32; width];
        for by in -reach..reach {
            add(&mut columns, row(0, by), 1.0);
        }
        for y in 0..height {
            add(&mut columns, row(y, reach), 1.0);
            padded[half..half + width].copy_from_slice(&columns);
            for x in 1..=half {
                padded[half - x] = columns[x];
                padded[half + width - 1 + x] = columns[width - 1 - x];
            }
            window_sums(&padded, 2 * half + 1, &mut sums);
            for ((slot, &v), sum) in line.iter_mut().zip(row(y, 0)).zip(&sums) {
                *slot = (f64::from(v) - sum * scale) as f32;
            }
            add(&mut columns, row(y, -reach), -1.0);
            smooth_row(&line, &mut self.flat[y % 3]);
            if y > 0 {
                self.smooth_column(y - 1, [y.saturating_sub(2), y - 1, y]);
            }
        }
        self.smooth_column(height - 1, [height - 2, height - 1, height - 1]);
    }

    /// Writes a row from three rows of the ring.
    fn smooth_column(&mut self, y: usize, rows: [usize; 3]) {
        let [above, here, below] = rows.map(|row| &self.flat[row % 3]);
        let out = &mut self.samples[y * self.width..][..self.width];
        let rows = above.iter().zip(here).zip(below);
        for (slot, ((a, b), c)) in out.iter_mut().zip(rows) {
            *slot = 0.25 * (a + c) + 0.5 * b;
        }
    }

    /// A row.
    pub fn row(&self, y: usize) -> &[f32] {
        &self.samples[y * self.width..][..self.width]
    }

    /// Whether enough tiles correlate with their neighbours at `v`, to the nearest pixel.
    pub fn is_filled(&self, v: Vector) -> bool {
        let [mut x, mut y] = v.map(|c| c.round() as isize);
        if x < 0 {
            (x, y) = (-x, -y);
        }
        let (along, across) = (x.unsigned_abs(), y.unsigned_abs());
        if along >= self.width || across >= self.height {
            return false;
        }
        let (width, height) = (self.width - along, self.height - across);
        let (first, second) = if y < 0 { (across, 0) } else { (0, across) };
        let longest = v[0].abs().max(v[1].abs()).ceil() as usize;
        let tile = TILE.max(2 * longest);
        let starts = |side: usize| (0..=side.saturating_sub(tile)).step_by(tile);
        let (mut filled, mut tiles) = (0usize, 0usize);
        for y0 in starts(height) {
            for x0 in starts(width) {
                let columns = x0..(x0 + tile).min(width);
                let rows = y0..(y0 + tile).min(height);
                let pairs = rows.map(|y| {
                    let p = &self.row(first + y)[columns.clone()];
                    let q = &self.row(second + y)[along..][columns.clone()];
                    (p, q)
                });
                tiles += 1;
                filled += usize::from(correlation(pairs) >= TILE_CORRELATION);
            }
        }
        tiles > 0 && filled as f64 >= FILLED * tiles as f64
    }
}

/// The correlation of rows of samples with others, each less its mean.
fn correlation<'a>(pairs: impl Iterator<Item = (&'a [f32], &'a [f32])>) -> f64 {
    let (mut n, mut sums) = (0usize, [0f64; 5]);
    for (p, q) in pairs {
        n += p.len();
        for (&p, &q) in p.iter().zip(q) {
            let (p, q) = (f64::from(p), f64::from(q));
            let terms = [p, q, p * p, q * q, p * q];
            sums.iter_mut()
                .zip(terms)
                .for_each(|(sum, term)| *sum += term);
        }
    }
    let n = n.max(1) as f64;
    let [p, q, pp, qq, pq] = sums;
    let energy = (pp - p * p / n).max(0.0) * (qq - q * q / n).max(0.0);
    (pq - p * q / n) / energy.sqrt().max(1e-9)
}

/// The sums of `window` adjacent values, by the first one.
fn window_sums(values: &[f64], window: usize, sums: &mut [f64]) {
    let mut sum: f64 = values[..window].iter().sum();
    sums[0] = sum;
    let (sums, rest) = sums[1..].as_chunks_mut::<4>();
    let (entering, last_entering) = values[window..].as_chunks::<4>();
    let (leaving, _) = values.as_chunks::<4>();
    // Only one addition of a block depends on the block before.
    for (slot, (e, l)) in sums.iter_mut().zip(entering.iter().zip(leaving)) {
        let [a, b, c, d] = std::array::from_fn(|i| e[i] - l[i]);
        let ab = a + b;
        *slot = [sum + a, sum + ab, sum + (ab + c), sum + (ab + (c + d))];
        sum = slot[3];
    }
    let leaving = &values[4 * sums.len()..];
    for (slot, (e, l)) in rest.iter_mut().zip(last_entering.iter().zip(leaving)) {
        sum += e - l;
        *slot = sum;
    }
}

/// Adds `factor` times a row.
fn add(sums: &mut [f64], row: &[f32], factor: f64) {
    for (sum, &v) in sums.iter_mut().zip(row) {
        *sum += factor * f64::from(v);
    }
}

/// The index of a position up to a side beyond the edges, mirrored at the edge samples.
fn mirrored(i: isize, side: usize) -> usize {
    let last = side - 1;
    let i = i.unsigned_abs();
    if i > last {
        (2 * last).saturating_sub(i)
    } else {
        i
    }
}

/// (1 2 1)/4; the samples at the ends repeat.
fn smooth_row(line: &[f32], out: &mut Vec<f32>) {
    out.clear();
    out.extend_from_slice(line);
    for (slot, v) in out.iter_mut().skip(1).zip(line.windows(3)) {
        *slot = 0.25 * (v[0] + v[2]) + 0.5 * v[1];
    }
    let n = line.len();
    out[0] = 0.75 * line[0] + 0.25 * line[1];
    out[n - 1] = 0.75 * line[n - 1] + 0.25 * line[n - 2];
}
