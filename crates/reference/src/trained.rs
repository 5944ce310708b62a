//! Reference of the comparison with a trained picture.
//!
//! Source: docs/semantics.md, "Comparison with a reference". The shift is given; how it is found is tested apart.

use crate::Samples;

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
    /// Along x and y, 1/4 px.
    pub shift: [i64; 2],
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
    /// Marked pixels.
    pub mask: Vec<bool>,
    /// The same, packed.
    pub packed: Vec<u8>,
    /// Number of judged pixels.
    pub judged_pixels: u64,
    /// Number of marked pixels.
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

/// The frame's samples as they are read at a shift; outside the frame its edge repeats.
pub fn shifted(samples: Samples, [dx, dy]: [i64; 2]) -> Vec<i64> {
    let (width, height) = (samples.width as i64, samples.height as i64);
    let at = |x: i64, y: i64| {
        let (x, y) = (x.clamp(0, width - 1), y.clamp(0, height - 1));
        i64::from(samples.get(x as usize, y as usize))
    };
    let ([ix, iy], [fx, fy]) = split([dx, dy]);
    let mut read = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let (x, y) = (x + ix, y + iy);
            let sum = (256 - fx) * (256 - fy) * at(x, y)
                + fx * (256 - fy) * at(x + 1, y)
                + (256 - fx) * fy * at(x, y + 1)
                + fx * fy * at(x + 1, y + 1);
            read.push((sum + 32_768) >> 16);
        }
    }
    read
}

/// Whole pixels, and the rest in 1/256 px.
fn split(shift: [i64; 2]) -> ([i64; 2], [i64; 2]) {
    (
        shift.map(|v| v.div_euclid(4)),
        shift.map(|v| 64 * v.rem_euclid(4)),
    )
}

/// Whether a pixel is judged.
fn judged(width: usize, height: usize, settings: &Settings) -> Vec<bool> {
    let ([ix, iy], [fx, fy]) = split(settings.shift);
    // A tap of weight 0 may lie outside.
    let inside = |v: usize, whole: i64, rest: i64, size: usize| {
        let first = v as i64 + whole;
        first >= 0 && first + i64::from(rest > 0) < size as i64
    };
    let mut judged = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let in_roi = |roi: &[usize; 4]| {
                (roi[0]..roi[0] + roi[2]).contains(&x) && (roi[1]..roi[1] + roi[3]).contains(&y)
            };
            judged.push(
                inside(x, ix, fx, width)
                    && inside(y, iy, fy, height)
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
    let read = shifted(samples, settings.shift);
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
    let mut packed = vec![0; width.div_ceil(8) * height];
    for (at, _) in mask.iter().enumerate().filter(|&(_, &marked)| marked) {
        let (x, y) = (at % width, at / width);
        packed[y * width.div_ceil(8) + x / 8] |= 0x80 >> (x % 8);
    }
    let count = |of: &[bool]| of.iter().filter(|&&set| set).count() as u64;
    Outcome {
        judged_pixels: count(&judged),
        defect_pixels: count(&mask),
        packed,
        mask,
        differences,
    }
}
