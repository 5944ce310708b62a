//! Reference of the comparison with a trained picture.
//!
//! Source: docs/semantics.md, "Comparison with a reference". The motion is given; how it is found is tested apart.

use crate::{Samples, defects::Defect};

/// How the brightness of a frame follows the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Normalize {
    /// Not at all.
    None,
    /// The mean.
    Offset,
    /// The mean and the standard deviation.
    Gain,
}

/// Where the pixels of the model lie in the frame.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Motion {
    /// `c + a·x + b·y` along x, then along y, 2^-20 px.
    pub affine: [[i64; 3]; 2],
    /// Local shifts along x and y in the middles of tiles of 32x32 px, 1/256 px, row by row; empty: none.
    pub nodes: Vec<Vec<[i64; 2]>>,
}

impl Motion {
    /// A shift along x and y, 1/4 px.
    pub fn shift(shift: [i64; 2]) -> Self {
        Self {
            affine: shift.map(|quarters| [quarters << 18, 0, 0]),
            nodes: Vec::new(),
        }
    }

    /// The displacement of a pixel without local shifts, 1/256 px.
    fn global(&self, x: i64, y: i64) -> [i64; 2] {
        (self.affine).map(|[c, a, b]| (c + a * x + b * y + 2048).div_euclid(4096))
    }

    /// The local shift at a pixel, 1/256 px.
    fn local(&self, x: i64, y: i64) -> [i64; 2] {
        if self.nodes.is_empty() {
            return [0; 2];
        }
        // In half pixels from the first node; a tile has 64 of them.
        let place = |at: i64, count: usize| {
            let last = 64 * (count as i64 - 1);
            let from = (2 * at + 1 - 32).clamp(0, last);
            let node = (from / 64).min(count as i64 - 2).max(0) as usize;
            (node, from - 64 * node as i64, (node + 1).min(count - 1))
        };
        let (i, wx, right) = place(x, self.nodes[0].len());
        let (j, wy, below) = place(y, self.nodes.len());
        [0, 1].map(|axis| {
            let corners = [
                (64 - wx) * (64 - wy) * self.nodes[j][i][axis],
                wx * (64 - wy) * self.nodes[j][right][axis],
                (64 - wx) * wy * self.nodes[below][i][axis],
                wx * wy * self.nodes[below][right][axis],
            ];
            (corners.iter().sum::<i64>() + 2048).div_euclid(4096)
        })
    }

    /// Where a pixel lies in the frame, 1/256 px.
    pub fn position(&self, x: i64, y: i64) -> [i64; 2] {
        let (global, local) = (self.global(x, y), self.local(x, y));
        [
            256 * x + global[0] + local[0],
            256 * y + global[1] + local[1],
        ]
    }

    /// Half of a pixel's width in the frame, 1/256 px, along x and y.
    fn half_width(&self) -> [i64; 2] {
        self.affine.map(|[_, a, b]| {
            let stretch = 128 * (a.abs() + b.abs());
            let mut more = stretch.div_euclid(1 << 20) + i64::from(stretch % (1 << 20) > 0);
            if !self.nodes.is_empty() {
                more += 32;
            }
            128 + more + i64::from(more > 0)
        })
    }

    /// Whether a pixel at a place, 1/256 px, marks a pixel of the frame.
    fn marks(&self, place: [i64; 2], frame_pixel: [i64; 2]) -> bool {
        let half = self.half_width();
        (0..2).all(|axis| {
            let from = place[axis] - 256 * frame_pixel[axis];
            -half[axis] <= from && from < half[axis]
        })
    }

    /// The marks of a frame by those of the model's pixels.
    pub fn placed(&self, mask: &[bool], width: usize) -> Vec<bool> {
        let size = [width as i64, (mask.len() / width) as i64];
        let mut placed = vec![false; mask.len()];
        for (at, _) in mask.iter().enumerate().filter(|&(_, &marked)| marked) {
            let place = self.position((at % width) as i64, (at / width) as i64);
            let near = place.map(|v| v.div_euclid(256));
            for y in (near[1] - 2).max(0)..(near[1] + 4).min(size[1]) {
                for x in (near[0] - 2).max(0)..(near[0] + 4).min(size[0]) {
                    if self.marks(place, [x, y]) {
                        placed[y as usize * width + x as usize] = true;
                    }
                }
            }
        }
        placed
    }

    /// A defect of the model's pixels where it lies in a frame of this size.
    pub fn place(&self, defect: &Defect, size: [usize; 2]) -> Defect {
        if *self == Self::default() {
            return *defect;
        }
        let [width, height] = [defect.width, defect.height].map(|side| i64::from(side) - 1);
        let most_local = (self.nodes.iter().flatten().flatten())
            .map(|shift| shift.abs())
            .max();
        let half = self.half_width();
        let range = |axis: usize| {
            let mut places = Vec::new();
            for x in [defect.x, defect.x + width] {
                for y in [defect.y, defect.y + height] {
                    places.push(256 * [x, y][axis] + self.global(x, y)[axis]);
                }
            }
            let by = half[axis] + most_local.unwrap_or(0);
            let low = places.iter().min().unwrap() - by;
            let high = places.iter().max().unwrap() + by;
            // Pixels F with low < 256 F <= high.
            let first = (low.div_euclid(256) + 1).clamp(0, size[axis] as i64 - 1);
            (
                first,
                high.div_euclid(256).clamp(first, size[axis] as i64 - 1),
            )
        };
        let (x, y) = (range(0), range(1));
        let (cx, cy) = (defect.centroid_x, defect.centroid_y);
        let local = self.local(cx.floor() as i64, cy.floor() as i64);
        let along = |axis: usize| {
            let [c, a, b] = self.affine[axis].map(|v| v as f64 / 1_048_576.0);
            c + a * (cx - 0.5) + b * (cy - 0.5) + local[axis] as f64 / 256.0
        };
        Defect {
            x: x.0,
            y: y.0,
            width: (x.1 - x.0 + 1) as u32,
            height: (y.1 - y.0 + 1) as u32,
            centroid_x: cx + along(0),
            centroid_y: cy + along(1),
            ..*defect
        }
    }
}

/// Settings of a comparison.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Grey levels.
    pub threshold: f64,
    /// Standard deviations.
    pub deviation_factor: f64,
    /// Pixels around, whose limits count too.
    pub edge_tolerance: i64,
    /// Brighter pixels are marked.
    pub bright: bool,
    /// Darker pixels are marked.
    pub dark: bool,
    /// Where the pixels of the model lie in the frame.
    pub motion: Motion,
    /// Marks that no marked square of 3x3 pixels holds are left out.
    pub opens: bool,
    /// How brightness follows.
    pub normalize: Normalize,
    /// `<x, y, width, height>`; empty: the whole frame.
    pub rois: Vec<[usize; 4]>,
    /// Pixels that are ignored, row-major.
    pub ignored: Vec<bool>,
    /// Bits of a sample; 0: of the format.
    pub bit_depth: u32,
}

/// A trained picture, 1/256 grey level, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Mean of each sample.
    pub mean: Vec<i64>,
    /// Standard deviation of each sample.
    pub deviation: Vec<i64>,
}

/// The result of a comparison, row-major.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Marked pixels of the model.
    pub mask: Vec<bool>,
    /// Marked pixels of the frame.
    pub placed: Vec<bool>,
    /// The same, packed.
    pub packed: Vec<u8>,
    /// Number of judged pixels.
    pub judged_pixels: u64,
    /// Number of marked pixels of the model.
    pub defect_pixels: u64,
    /// Differences of the judged pixels, grey levels.
    pub differences: Vec<Option<f64>>,
}

/// The model of frames, each given as its samples, row-major.
pub fn train(frames: &[Vec<i64>]) -> Model {
    let n = frames.len() as i128;
    let pixels = frames[0].len();
    let sums = |power: u32| -> Vec<i128> {
        let sum = |at: usize| frames.iter().map(|f| i128::from(f[at]).pow(power)).sum();
        (0..pixels).map(sum).collect()
    };
    let (sums, squares) = (sums(1), sums(2));
    Model {
        mean: sums
            .iter()
            .map(|s| ((512 * s + n) / (2 * n)) as i64)
            .collect(),
        deviation: sums
            .iter()
            .zip(&squares)
            .map(|(s, q)| ((65_536 * (n * q - s * s)).isqrt() / n) as i64)
            .collect(),
    }
}

/// The frame's samples as the pixels of the model are read from it; outside the frame its edge repeats.
pub fn moved(samples: Samples, motion: &Motion) -> Vec<i64> {
    let (width, height) = (samples.width as i64, samples.height as i64);
    let at = |x: i64, y: i64| {
        let (x, y) = (x.clamp(0, width - 1), y.clamp(0, height - 1));
        i64::from(samples.get(x as usize, y as usize))
    };
    let mut read = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let place = motion.position(x, y);
            let [x, y] = place.map(|v| v.div_euclid(256));
            let [fx, fy] = place.map(|v| v.rem_euclid(256));
            let sum = (256 - fx) * (256 - fy) * at(x, y)
                + fx * (256 - fy) * at(x + 1, y)
                + (256 - fx) * fy * at(x, y + 1)
                + fx * fy * at(x + 1, y + 1);
            read.push((sum + 32_768) >> 16);
        }
    }
    read
}

/// Whether a pixel is judged.
fn judged(width: usize, height: usize, settings: &Settings) -> Vec<bool> {
    let motion = &settings.motion;
    // A sample of weight 0 may lie outside. Local shifts are 2 px at most.
    let inset = if motion.nodes.is_empty() { 0 } else { 3 * 256 };
    let inside = |at: i64, by: i64, size: usize| {
        let place = 256 * at + by;
        place - inset >= 0 && place + inset <= 256 * (size as i64 - 1)
    };
    let mut judged = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let in_roi = |roi: &[usize; 4]| {
                (roi[0]..roi[0] + roi[2]).contains(&x) && (roi[1]..roi[1] + roi[3]).contains(&y)
            };
            let [u, v] = motion.global(x as i64, y as i64);
            judged.push(
                inside(x as i64, u, width)
                    && inside(y as i64, v, height)
                    && (settings.rois.is_empty() || settings.rois.iter().any(in_roi))
                    && !settings
                        .ignored
                        .get(y * width + x)
                        .copied()
                        .unwrap_or(false),
            );
        }
    }
    judged
}

/// The marks that lie in a square of 3x3 marked pixels.
pub fn opened(mask: &[bool], width: usize) -> Vec<bool> {
    let height = mask.len() / width;
    let mut opened = vec![false; mask.len()];
    for y in 1..height.saturating_sub(1) {
        for x in 1..width.saturating_sub(1) {
            let square =
                || (y - 1..=y + 1).flat_map(|j| (x - 1..=x + 1).map(move |i| j * width + i));
            if square().all(|at| mask[at]) {
                square().for_each(|at| opened[at] = true);
            }
        }
    }
    opened
}

/// Sum and sum of squares over the judged pixels.
fn sums(values: &[i64], judged: &[bool]) -> (i128, i128, i128) {
    let mut sums = (0, 0, 0);
    for (&v, _) in values.iter().zip(judged).filter(|&(_, &judged)| judged) {
        let v = i128::from(v);
        sums = (sums.0 + 1, sums.1 + v, sums.2 + v * v);
    }
    sums
}

/// Brings the brightness of samples to the model's.
pub fn levelled(
    read: &[i64],
    model: &Model,
    judged: &[bool],
    normalize: Normalize,
    highest: i64,
) -> Vec<i64> {
    let (n, frame, frame_squares) = sums(read, judged);
    let (_, of_model, model_squares) = sums(&model.mean, judged);
    if normalize == Normalize::None || n == 0 {
        return read.to_vec();
    }
    let deviation = |sum: i128, squares: i128| ((n * squares - sum * sum) as f64).sqrt() / n as f64;
    let of_frame = deviation(frame, frame_squares);
    let mut a = 4096.0;
    if normalize == Normalize::Gain && of_frame > 0.0 {
        let wanted = deviation(of_model, model_squares) / 256.0;
        a = (4096.0 * (wanted / of_frame)).round().clamp(2048.0, 8192.0);
    }
    let model_mean = of_model as f64 / 256.0 / n as f64;
    let b = (4096.0 * model_mean - a * (frame as f64 / n as f64)).round() as i64;
    let level = |&s: &i64| ((a as i64 * s + b + 2048) >> 12).clamp(0, highest);
    read.iter().map(level).collect()
}

/// Compares a frame with a model.
pub fn compare(samples: Samples, model: &Model, settings: &Settings) -> Outcome {
    let (width, height) = (samples.width, samples.height);
    let bits = match settings.bit_depth {
        0 => 8 * samples.depth.size() as u32,
        bits => bits,
    };
    let judged = judged(width, height, settings);
    let read = moved(samples, &settings.motion);
    let highest = (1 << bits) - 1;
    let read = levelled(&read, model, &judged, settings.normalize, highest);
    let distance = |at: usize| {
        let scaled = (settings.deviation_factor * model.deviation[at] as f64).round() as i64;
        scaled.max((256.0 * settings.threshold).round() as i64)
    };
    let mut mask = vec![false; width * height];
    let mut differences = vec![None; width * height];
    for y in 0..height as i64 {
        for x in 0..width as i64 {
            let at = y as usize * width + x as usize;
            if !judged[at] {
                continue;
            }
            let (mut upper, mut lower) = (i64::MIN, i64::MAX);
            let t = settings.edge_tolerance;
            for j in (y - t).max(0)..=(y + t).min(height as i64 - 1) {
                for i in (x - t).max(0)..=(x + t).min(width as i64 - 1) {
                    let near = j as usize * width + i as usize;
                    upper = upper.max(model.mean[near] + distance(near));
                    lower = lower.min(model.mean[near] - distance(near));
                }
            }
            let s = 256 * read[at];
            mask[at] = settings.bright && s > upper || settings.dark && s < lower;
            differences[at] = Some((s - model.mean[at]) as f64 / 256.0);
        }
    }
    if settings.opens {
        mask = opened(&mask, width);
    }
    let placed = settings.motion.placed(&mask, width);
    let mut packed = vec![0; width.div_ceil(8) * height];
    for (at, _) in placed.iter().enumerate().filter(|&(_, &marked)| marked) {
        let (x, y) = (at % width, at / width);
        packed[y * width.div_ceil(8) + x / 8] |= 0x80 >> (x % 8);
    }
    let count = |of: &[bool]| of.iter().filter(|&&set| set).count() as u64;
    Outcome {
        judged_pixels: count(&judged),
        defect_pixels: count(&mask),
        packed,
        placed,
        mask,
        differences,
    }
}
