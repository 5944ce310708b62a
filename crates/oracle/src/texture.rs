//! Reference of `cltexture`: smoothed samples, residual from the lattice, mean over one repeat, local noise, the six
//! channels, and the pixels that they mark.
//!
//! Source: docs/semantics.md, "Textures" and "Textures along vectors".

use crate::{
    plane::Samples,
    smooth::{smoothed, tile_of},
};

/// Number of channels.
pub const CHANNELS: usize = 6;
/// Side of a channel's window, px, and whether absolute values are summed.
const WINDOWS: [(usize, bool); CHANNELS] = [
    (1, true),
    (4, false),
    (9, true),
    (33, true),
    (1, true),
    (10, false),
];
/// The first channel of the mean over one repeat.
const FIRST_OF_MEAN: usize = 4;
const TILE: usize = 32;
const BORDER: usize = 4;

/// A comparison as a user sets it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The vectors after which the texture repeats, 1/16 px: of pitches the one along x, then the one along y.
    pub vectors: [[i64; 2]; 2],
    /// Thresholds in 1/256 of the local noise.
    pub thresholds: [i64; CHANNELS],
    /// Bits that samples fill.
    pub depth: u32,
    /// Noise of the tiles above instead of those around.
    pub above: bool,
    /// Regions of interest, `x, y, width, height`; empty for the whole frame.
    pub rois: Vec<[usize; 4]>,
    /// By pixel: whether it is ignored; empty for none.
    pub ignored: Vec<bool>,
}

/// A channel of a frame.
pub struct Channel {
    /// Pixels of the window.
    pub pixels: i64,
    /// The window's sum by pixel, with its sign.
    pub sum: Vec<i64>,
    /// Local noise by pixel, 1/16 of a unit of the sum.
    pub noise: Vec<i64>,
}

/// What the comparison of a frame gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// By pixel: whether it is judged.
    pub judged: Vec<bool>,
    /// By pixel: whether it is marked.
    pub mask: Vec<bool>,
    /// By marked pixel, otherwise 0: the sign of the channel that marks it most, times (8 times the channel's excess in
    /// 1/256 of its limit, plus the channel's number).
    pub strongest: Vec<i64>,
    /// By channel: the lowest threshold at which no judged pixel is marked, 1/256 of the local noise.
    pub peaks: [i64; CHANNELS],
    /// By channel: the mean of that threshold over the tiles, 6 pixels at the border left out.
    pub typical: [f64; CHANNELS],
}

/// Index `at` of a row of `n` samples that is mirrored at its ends without repeating them.
fn mirrored(at: i64, n: usize) -> usize {
    let n = n as i64;
    if n == 1 {
        return 0;
    }
    let at = at.rem_euclid(2 * n - 2);
    at.min(2 * n - 2 - at) as usize
}

/// Values by pixel.
struct Picture {
    values: Vec<i64>,
    width: usize,
    height: usize,
}

impl Picture {
    /// A picture of the same size, whose values follow from the pixels' places.
    fn map(&self, value: impl Fn(i64, i64) -> i64) -> Self {
        let places =
            (0..self.height as i64).flat_map(|y| (0..self.width as i64).map(move |x| (x, y)));
        Self {
            values: places.map(|(x, y)| value(x, y)).collect(),
            ..*self
        }
    }

    fn at(&self, x: i64, y: i64) -> Option<i64> {
        let is_inside = (0..self.width as i64).contains(&x) && (0..self.height as i64).contains(&y);
        is_inside.then(|| self.values[y as usize * self.width + x as usize])
    }

    /// The sample some sixteenths away, along x, then along y; `None` if a sample of a weight above 0 lies outside.
    fn away(&self, x: i64, y: i64, [dx, dy]: [i64; 2]) -> Option<i64> {
        let between = |distance: i64, value: &dyn Fn(i64) -> Option<i64>| {
            let r = distance.rem_euclid(16);
            let near = value(distance.div_euclid(16))?;
            let far = if r > 0 {
                value(distance.div_euclid(16) + 1)?
            } else {
                0
            };
            Some(((16 - r) * near + r * far + 8) >> 4)
        };
        between(dy, &|row| {
            between(dx, &|column| self.at(x + column, y + row))
        })
    }

    /// The sample at the first of these distances that lies inside; the pixel itself if none does.
    fn first_of(&self, x: i64, y: i64, distances: &[[i64; 2]]) -> i64 {
        let mut inside = distances.iter().filter_map(|&d| self.away(x, y, d));
        (inside.next().or(self.at(x, y))).expect("a pixel of the picture")
    }

    /// The pixel and its two neighbours along a vector.
    fn with_neighbours(&self, v: [i64; 2]) -> Self {
        let back = v.map(|c| -c);
        self.map(|x, y| {
            self.first_of(x, y, &[])
                + self.first_of(x, y, &[back, v])
                + self.first_of(x, y, &[v, back])
        })
    }

    /// The mean over one repeat along `v`; `bits` decides the units, and `w` is the other vector.
    fn mean_along(&self, v: [i64; 2], w: [i64; 2], bits: u32) -> Self {
        let long = usize::from(v[1].abs() > v[0].abs());
        let v = if v[long] < 0 { v.map(|c| -c) } else { v };
        let (p, o) = (v[long], v[1 - long]);
        let m = (p - 16) / 32;
        let e = p - 16 * (2 * m + 1);
        let scale = ((1 << bits) + p) / (2 * p);
        self.map(|x, y| {
            let mut sum = 0;
            for j in -m - 1..=m + 1 {
                let weight = if j.abs() == m + 1 { e } else { 32 };
                let across = ((32 * (j * o).abs() + p) / (2 * p)) * (j * o).signum();
                let place = if long == 0 {
                    [16 * j, across]
                } else {
                    [across, 16 * j]
                };
                let q = if o == 0 {
                    let x = mirrored(x + place[0] / 16, self.width);
                    let y = mirrored(y + place[1] / 16, self.height);
                    self.values[y * self.width + x]
                } else {
                    let c = if j > 0 { -1 } else { 1 };
                    let cell = |i: i64, n: i64| {
                        let along = |k: usize| place[k] + i * c * v[k] + n * w[k];
                        [along(0), along(1)]
                    };
                    let cells = [
                        cell(0, 0),
                        cell(1, 0),
                        cell(0, 1),
                        cell(0, -1),
                        cell(1, 1),
                        cell(1, -1),
                    ];
                    self.first_of(x, y, &cells)
                };
                sum += weight * q;
            }
            (sum * scale + (1 << 19)) >> 20
        })
    }
}

/// Sum over a window whose borders are mirrored; an even side reaches one further left and up.
fn window_sums(values: &[i64], width: usize, height: usize, side: usize) -> Vec<i64> {
    let before = (side / 2) as i64;
    let mut rows = vec![0; values.len()];
    for y in 0..height {
        for x in 0..width {
            for j in 0..side as i64 {
                rows[y * width + x] += values[y * width + mirrored(x as i64 + j - before, width)];
            }
        }
    }
    let mut sums = vec![0; values.len()];
    for y in 0..height {
        for j in 0..side as i64 {
            let from = mirrored(y as i64 + j - before, height) * width;
            for x in 0..width {
                sums[y * width + x] += rows[from + x];
            }
        }
    }
    sums
}

/// The pixel less the mean of its eight neighbours on the lattice.
fn residual(f: &Picture, [a, b]: [[i64; 2]; 2]) -> Vec<i64> {
    let v = f.with_neighbours(a).with_neighbours(b);
    (f.values.iter().zip(v.values))
        .map(|(f, v)| (9 * f - v + 4) >> 3)
        .collect()
}

/// The mean over one repeat less the mean of a wide window.
fn mean_of_repeat(f: &Picture, [a, b]: [[i64; 2]; 2]) -> Vec<i64> {
    let mean = f.mean_along(a, b, 22).mean_along(b, a, 20);
    let wide = window_sums(&mean.values, f.width, f.height, 65);
    let scale = ((1 << 24) + 2112) / 4225;
    (mean.values.iter().zip(wide))
        .map(|(value, sum)| value - ((sum * scale + (1 << 23)) >> 24))
        .collect()
}

/// Mean magnitude over the tiles around, or above, in 1/16, by pixel.
fn local_noise(values: &[i64], width: usize, height: usize, above: bool) -> Vec<i64> {
    let tiles = [width, height].map(|n| (n / TILE).max(1));
    let mut sums = vec![(0, 0); tiles[0] * tiles[1]];
    for y in 0..height {
        for x in 0..width {
            let tile = &mut sums[tile_of(y, height, TILE) * tiles[0] + tile_of(x, width, TILE)];
            tile.0 += values[y * width + x].abs();
            tile.1 += 1;
        }
    }
    let (up, down) = if above { (8, 0) } else { (4, 4) };
    let mut noise = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let (row, column) = (
                tile_of(y, height, TILE) as i64,
                tile_of(x, width, TILE) as i64,
            );
            let (mut sum, mut count) = (0, 0);
            for j in row - up..=row + down {
                for i in column - 4..=column + 4 {
                    if (0..tiles[1] as i64).contains(&j) && (0..tiles[0] as i64).contains(&i) {
                        let tile = sums[j as usize * tiles[0] + i as usize];
                        sum += tile.0;
                        count += tile.1;
                    }
                }
            }
            noise.push(((16 * sum + count / 2) / count).max(64));
        }
    }
    noise
}

/// The channels of a frame.
pub fn channels(source: Samples, settings: &Settings) -> Vec<Channel> {
    let (width, height) = (source.width, source.height);
    let f = Picture {
        values: smoothed(source, settings.depth),
        width,
        height,
    };
    let d = residual(&f, settings.vectors);
    let c = mean_of_repeat(&f, settings.vectors);
    let noise = [&d, &c].map(|values| local_noise(values, width, height, settings.above));
    (WINDOWS.iter().enumerate())
        .map(|(k, &(side, is_absolute))| {
            let of = usize::from(k >= FIRST_OF_MEAN);
            let values: Vec<i64> = if is_absolute && side > 1 {
                [&d, &c][of].iter().map(|v| v.abs()).collect()
            } else {
                [&d, &c][of].clone()
            };
            Channel {
                pixels: (side * side) as i64,
                sum: window_sums(&values, width, height, side),
                noise: noise[of].clone(),
            }
        })
        .collect()
}

/// The limit of a channel's sum.
fn limit(threshold: i64, pixels: i64, noise: i64) -> i64 {
    ((threshold * pixels * noise + 2048) >> 12).min(i64::from(i32::MAX))
}

/// Compares a frame.
pub fn compare(source: Samples, settings: &Settings) -> Outcome {
    let (width, height) = (source.width, source.height);
    let channels = channels(source, settings);
    let residuals = &channels[0].sum;
    let is_within = |x: usize, y: usize, border: usize| {
        x >= border && y >= border && x + border < width && y + border < height
    };
    let judged: Vec<bool> = (0..width * height)
        .map(|at| {
            let (x, y) = (at % width, at / width);
            let in_roi = |&[left, top, w, h]: &[usize; 4]| {
                (left..left + w).contains(&x) && (top..top + h).contains(&y)
            };
            is_within(x, y, BORDER)
                && (settings.rois.is_empty() || settings.rois.iter().any(in_roi))
                && !settings.ignored.get(at).is_some_and(|&ignored| ignored)
        })
        .collect();
    let mut outcome = Outcome {
        mask: vec![false; width * height],
        strongest: vec![0; width * height],
        peaks: [0; CHANNELS],
        typical: [0.0; CHANNELS],
        judged,
    };
    let columns = (width / TILE).max(1);
    let tiles = columns * (height / TILE).max(1);
    let mut highest = vec![[None::<i64>; CHANNELS]; tiles];
    for (at, &residual) in residuals.iter().enumerate() {
        if !outcome.judged[at] {
            continue;
        }
        let (x, y) = (at % width, at / width);
        let mut best: Option<(i64, i64)> = None;
        for (k, channel) in channels.iter().enumerate() {
            let sum = channel.sum[at];
            let limit = limit(settings.thresholds[k], channel.pixels, channel.noise[at]);
            if sum.abs() > limit {
                let least = limit.max(1);
                let excess = ((256 * sum.abs() + least / 2) / least).min(1 << 20);
                let is_signed = !WINDOWS[k].1 || WINDOWS[k].0 == 1;
                let sign = if is_signed { sum } else { residual };
                let packed = (8 * excess + k as i64) * if sign < 0 { -1 } else { 1 };
                if best.is_none_or(|(most, _)| excess > most) {
                    best = Some((excess, packed));
                }
            }
            let unit = channel.pixels * channel.noise[at];
            let needed = (4096 * sum.abs() + unit - 1) / unit;
            outcome.peaks[k] = outcome.peaks[k].max(needed);
            if is_within(x, y, 6) {
                let tile =
                    &mut highest[tile_of(y, height, TILE) * columns + tile_of(x, width, TILE)][k];
                *tile = Some(tile.unwrap_or(0).max(needed));
            }
        }
        if let Some((_, packed)) = best {
            outcome.mask[at] = true;
            outcome.strongest[at] = packed;
        }
    }
    for k in 0..CHANNELS {
        let tiles: Vec<i64> = highest.iter().filter_map(|tile| tile[k]).collect();
        if !tiles.is_empty() {
            outcome.typical[k] = tiles.iter().sum::<i64>() as f64 / tiles.len() as f64;
        }
    }
    outcome
}
