//! Reference of `clsurface`: features of cells, novelty, lines, local noise, and the pixels that they mark.
//!
//! Source: docs/semantics.md, "Surfaces".

use crate::{
    plane::Samples,
    smooth::{smooth, smoothed, tile_of},
};

/// Number of channels.
pub const CHANNELS: usize = 17;
const FEATURES: usize = 27;
const DIMENSIONS: usize = 12;
/// Steps from one box of a line to the next.
const STEPS: [(i64, i64); 8] = [
    (3, 0),
    (3, 1),
    (2, 2),
    (1, 3),
    (0, 3),
    (-1, 3),
    (-2, 2),
    (-3, 1),
];
const NOVELTY_UNIT: i64 = 9 * 12 * 32 * 32;
const BORDER: usize = 8;

/// What good frames have shown.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// 27 means.
    pub mean: Vec<i64>,
    /// By feature: 12 weights.
    pub weights: Vec<Vec<i64>>,
    /// By prototype: 12 values.
    pub prototypes: Vec<Vec<i64>>,
}

/// A comparison as a user sets it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What good frames have shown.
    pub model: Model,
    /// By channel: the limit in 1/256 of its unit; `None` if it is not in use.
    pub limits: [Option<i64>; CHANNELS],
    /// Bits that samples fill.
    pub depth: u32,
    /// Regions of interest, `x, y, width, height`; empty for the whole frame.
    pub rois: Vec<[usize; 4]>,
    /// By pixel: whether it is ignored; empty for none.
    pub ignored: Vec<bool>,
}

/// What the comparison of a frame gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// By pixel: whether it is judged.
    pub judged: Vec<bool>,
    /// By pixel: whether it is marked.
    pub mask: Vec<bool>,
    /// By marked pixel, otherwise 0: the sign of the channel that marks it most, times (32 times the channel's excess in
    /// 1/256 of its limit, plus the channel's number).
    pub strongest: Vec<i64>,
    /// By channel: the lowest limit at which no judged pixel is marked, 1/256 of its unit.
    pub peaks: [i64; CHANNELS],
    /// By channel: the mean of that limit over the tiles.
    pub typical: [f64; CHANNELS],
    /// Features of the judged cells, in scan order.
    pub features: Vec<[i64; FEATURES]>,
}

/// Values of a plane; those outside are the ones at its edge.
struct Plane {
    width: usize,
    height: usize,
    values: Vec<i64>,
}

impl Plane {
    fn new(width: usize, height: usize, value: impl Fn(usize, usize) -> i64) -> Self {
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let values = places.map(|(x, y)| value(x, y)).collect();
        Self {
            width,
            height,
            values,
        }
    }

    fn at(&self, x: i64, y: i64) -> i64 {
        let x = x.clamp(0, self.width as i64 - 1) as usize;
        let y = y.clamp(0, self.height as i64 - 1) as usize;
        self.values[y * self.width + x]
    }

    /// The sum over a window of `side` values, an odd number, around a value.
    fn window(&self, x: usize, y: usize, side: i64) -> i64 {
        let reach = side / 2;
        let mut sum = 0;
        for j in -reach..=reach {
            for i in -reach..=reach {
                sum += self.at(x as i64 + i, y as i64 + j);
            }
        }
        sum
    }

    /// By value: `around`, and the number of its summands if each value is `weight` of them.
    fn around(&self, tile: usize, weight: i64) -> Vec<(i64, i64)> {
        let columns = (self.width / tile).max(1);
        let rows = (self.height / tile).max(1);
        let mut sums = vec![(0, 0); columns * rows];
        let place = |x, y| (tile_of(x, self.width, tile), tile_of(y, self.height, tile));
        for y in 0..self.height {
            for x in 0..self.width {
                let (column, row) = place(x, y);
                let sum = &mut sums[row * columns + column];
                sum.0 += self.values[y * self.width + x];
                sum.1 += weight;
            }
        }
        let mut of_tiles = Vec::new();
        for row in 0..rows as i64 {
            for column in 0..columns as i64 {
                let mut total = (0, 0);
                for j in (row - 4).max(0)..=(row + 4).min(rows as i64 - 1) {
                    for i in (column - 4).max(0)..=(column + 4).min(columns as i64 - 1) {
                        let (sum, count) = sums[j as usize * columns + i as usize];
                        total = (total.0 + sum, total.1 + count);
                    }
                }
                of_tiles.push(total);
            }
        }
        let places = (0..self.height).flat_map(|y| (0..self.width).map(move |x| (x, y)));
        places
            .map(|(x, y)| {
                let (column, row) = place(x, y);
                of_tiles[row * columns + column]
            })
            .collect()
    }
}

/// The level above.
fn halved(f: &Plane) -> Plane {
    let smooth = Plane {
        values: smooth(&f.values, f.width, f.height),
        ..*f
    };
    Plane::new(f.width / 2, f.height / 2, |x, y| {
        let mut sum = 2;
        for (dx, dy) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            sum += smooth.at(2 * x as i64 + dx, 2 * y as i64 + dy);
        }
        sum >> 2
    })
}

fn responses(f: &Plane, x: i64, y: i64) -> [i64; 8] {
    let at = |dx, dy| f.at(x + dx, y + dy);
    let centre = 2 * at(0, 0);
    [
        at(1, 0) - at(-1, 0),
        at(0, 1) - at(0, -1),
        at(1, -1) - at(-1, 1),
        at(1, 1) - at(-1, -1),
        centre - at(-1, 0) - at(1, 0),
        centre - at(0, -1) - at(0, 1),
        centre - at(1, -1) - at(-1, 1),
        centre - at(1, 1) - at(-1, -1),
    ]
}

fn ilog(x: i64) -> i64 {
    let m = i64::from(x.ilog2());
    256 * m + ((256 * x) >> m) - 256
}

/// The sum of a value over the samples of a cell.
fn over_cell(side: usize, i: usize, j: usize, mut value: impl FnMut(i64, i64) -> i64) -> i64 {
    let mut sum = 0;
    for y in j * side..(j + 1) * side {
        for x in i * side..(i + 1) * side {
            sum += value(x as i64, y as i64);
        }
    }
    sum
}

/// The features of each cell of a frame.
fn features(f: &Plane) -> Vec<[i64; FEATURES]> {
    let (columns, rows) = (f.width / 4, f.height / 4);
    let mut features = vec![[0; FEATURES]; columns * rows];
    if features.is_empty() {
        return features;
    }
    let second = halved(f);
    let third = halved(&second);
    for (level, (plane, side)) in [(f, 4), (&second, 2), (&third, 1)].into_iter().enumerate() {
        let window = if level == 2 { 5 } else { 3 };
        let samples = (side * side) as i64 * window * window;
        for filter in 0..8 {
            let sums = Plane::new(columns, rows, |i, j| {
                over_cell(side, i, j, |x, y| responses(plane, x, y)[filter].abs())
            });
            for j in 0..rows {
                for i in 0..columns {
                    let energy = ilog(sums.window(i, j, window) + 8 * samples);
                    features[j * columns + i][8 * level + filter] = energy;
                }
            }
        }
    }
    let middle = Plane::new(columns, rows, |i, j| {
        features[j * columns + i][8..16].iter().sum()
    });
    let around = middle.around(8, 8);
    let means = Plane::new(columns, rows, |i, j| over_cell(4, i, j, |x, y| f.at(x, y)));
    for j in 0..rows {
        for i in 0..columns {
            let (sum, count) = around[j * columns + i];
            let g = sum / count;
            let contrast = (256 + (g & 255)) << (g >> 8);
            let [c, c3, c9, c27] = [1, 3, 9, 27].map(|side| means.window(i, j, side));
            let differences = [
                (9 * c - c3).div_euclid(144),
                (9 * c3 - c9).div_euclid(1296),
                (9 * c9 - c27).div_euclid(11_664),
            ];
            let cell = &mut features[j * columns + i];
            for energy in &mut cell[..24] {
                *energy -= g;
            }
            for (feature, d) in cell[24..].iter_mut().zip(differences) {
                *feature = (d << 20).div_euclid(contrast);
            }
            for feature in cell {
                *feature = (*feature).clamp(-32_768, 32_767);
            }
        }
    }
    features
}

/// The squared distance of a cell's projected features to the nearest prototype.
fn distance(features: &[i64; FEATURES], model: &Model) -> i64 {
    let mut z = [0; DIMENSIONS];
    for (j, z) in z.iter_mut().enumerate() {
        let mut sum = 128;
        for (i, feature) in features.iter().enumerate() {
            sum += model.weights[i][j] * (feature - model.mean[i]).clamp(-4095, 4095);
        }
        *z = (sum >> 8).clamp(-1023, 1023);
    }
    let to = |prototype: &Vec<i64>| -> i64 {
        (0..DIMENSIONS)
            .map(|j| (z[j] - prototype[j]) * (z[j] - prototype[j]))
            .sum()
    };
    let nearest = model.prototypes.iter().map(to).min().expect("a prototype");
    nearest.min(1 << 24)
}

/// A channel's value and unit at a pixel; `None` where it does not judge.
type Channel = Vec<Option<(i64, i64)>>;

/// The channels of dark and of bright lines.
fn lines(f: &Plane, direction: usize, units: &[i64]) -> [Channel; 2] {
    let (dx, dy) = STEPS[direction];
    let boxes = Plane::new(f.width, f.height, |x, y| f.window(x, y, 3));
    // Lines up to three pixels outside, so that both sides exist.
    let wide = Plane::new(f.width + 6, f.height + 6, |x, y| {
        let (x, y) = (x as i64 - 3, y as i64 - 3);
        (-5..=5).map(|i| boxes.at(x + i * dx, y + i * dy)).sum()
    });
    let mut channels = [Vec::new(), Vec::new()];
    for y in 0..f.height {
        for x in 0..f.width {
            let line = |dx, dy| wide.at(x as i64 + 3 + dx, y as i64 + 3 + dy);
            let (middle, one, other) = (line(0, 0), line(-dy, dx), line(dy, -dx));
            let unit = units[y * f.width + x];
            channels[0].push(Some((one.min(other) - middle, unit)));
            channels[1].push(Some((middle - one.max(other), unit)));
        }
    }
    channels
}

/// Compares a frame.
pub fn compare(source: Samples, settings: &Settings) -> Outcome {
    let (width, height) = (source.width, source.height);
    let f = Plane {
        width,
        height,
        values: smoothed(source, settings.depth),
    };
    let judged: Vec<bool> = (0..width * height)
        .map(|at| {
            let (x, y) = (at % width, at / width);
            let in_roi = |&[left, top, w, h]: &[usize; 4]| {
                (left..left + w).contains(&x) && (top..top + h).contains(&y)
            };
            x >= BORDER
                && y >= BORDER
                && x + BORDER < width
                && y + BORDER < height
                && (settings.rois.is_empty() || settings.rois.iter().any(in_roi))
                && !settings.ignored.get(at).is_some_and(|&ignored| ignored)
        })
        .collect();

    let (columns, rows) = (width / 4, height / 4);
    let features = features(&f);
    let is_judged_cell = |i: usize, j: usize| {
        (2..columns.saturating_sub(2)).contains(&i)
            && (2..rows.saturating_sub(2)).contains(&j)
            && judged[(4 * j + 2) * width + 4 * i + 2]
    };
    let cells = (0..rows).flat_map(|j| (0..columns).map(move |i| (i, j)));
    let of_judged_cells = (cells.filter(|&(i, j)| is_judged_cell(i, j)))
        .map(|(i, j)| features[j * columns + i])
        .collect();

    let mut channels: Vec<Channel> = vec![vec![None; width * height]; CHANNELS];
    if settings.limits[0].is_some() && !features.is_empty() {
        let distances = Plane::new(columns, rows, |i, j| {
            distance(&features[j * columns + i], &settings.model)
        });
        for j in 0..rows {
            for i in 0..columns {
                if is_judged_cell(i, j) {
                    let novelty = distances.window(i, j, 3);
                    over_cell(4, i, j, |x, y| {
                        channels[0][y as usize * width + x as usize] =
                            Some((novelty, NOVELTY_UNIT));
                        0
                    });
                }
            }
        }
    }
    if settings.limits[1..].iter().any(Option::is_some) {
        let noise = Plane::new(width, height, |x, y| {
            let at = f.at(x as i64, y as i64);
            (81 * at - f.window(x, y, 9)).div_euclid(81).abs()
        });
        let around = noise.around(32, 1).into_iter();
        let units: Vec<i64> = around
            .map(|(sum, count)| (99 * ((16 * sum + count / 2) / count).max(64)) >> 4)
            .collect();
        for direction in 0..8 {
            let [dark, bright] = lines(&f, direction, &units);
            channels[1 + direction] = dark;
            channels[9 + direction] = bright;
        }
    }
    judge(
        settings,
        [width, height],
        judged,
        &channels,
        of_judged_cells,
    )
}

/// Compares the channels with their limits.
fn judge(
    settings: &Settings,
    [width, height]: [usize; 2],
    judged: Vec<bool>,
    channels: &[Channel],
    features: Vec<[i64; FEATURES]>,
) -> Outcome {
    let mut mask = vec![false; width * height];
    let mut strongest = vec![0; width * height];
    let tile_columns = (width / 32).max(1);
    let tile_count = tile_columns * (height / 32).max(1);
    let mut highest = vec![[None::<i64>; CHANNELS]; tile_count];
    for at in (0..width * height).filter(|&at| judged[at]) {
        let tile = tile_of(at / width, height, 32) * tile_columns + tile_of(at % width, width, 32);
        let mut best = 0;
        for (k, channel) in channels.iter().enumerate() {
            let (Some((value, unit)), Some(t)) = (channel[at], settings.limits[k]) else {
                continue;
            };
            let limit = ((t * unit) >> 8).min(i64::from(i32::MAX));
            if value > limit {
                let least = limit.max(1);
                let excess = ((256 * value + least / 2) / least).min(1 << 20);
                if excess > best {
                    best = excess;
                    let sign = if (1..9).contains(&k) { -1 } else { 1 };
                    strongest[at] = sign * (32 * excess + k as i64);
                }
                mask[at] = true;
            }
            let needed = (256 * value.max(0) + unit - 1) / unit;
            let most = &mut highest[tile][k];
            *most = Some(most.unwrap_or(0).max(needed));
        }
    }
    let mut peaks = [0; CHANNELS];
    let mut typical = [0.0; CHANNELS];
    for k in 0..CHANNELS {
        let tiles: Vec<i64> = highest.iter().filter_map(|tile| tile[k]).collect();
        if let Some(&most) = tiles.iter().max() {
            peaks[k] = most;
            typical[k] = tiles.iter().sum::<i64>() as f64 / tiles.len() as f64;
        }
    }
    Outcome {
        judged,
        mask,
        strongest,
        peaks,
        typical,
        features,
    }
}
