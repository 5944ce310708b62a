//! Reference of `clpitchthreshold`: comparison with the pattern one pitch away, packed mask.
//!
//! Source: docs/semantics.md, "Pitch comparison and threshold".

use crate::{
    lattice::{self, Picture},
    plane::{SampleKind, Samples},
    scales,
};

/// How a sample is compared with its two neighbours one pitch away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compare {
    /// With the mean of both.
    Average,
    /// With each; the smaller difference counts.
    Minimum,
}

/// Which differences are marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Polarity {
    /// Brighter or darker than the neighbours.
    Both,
    /// Brighter only.
    Bright,
    /// Darker only.
    Dark,
}

/// The settings of a comparison, as the element's properties.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The vectors of a lattice, px, which take the place of both pitches; none or up to two.
    pub vectors: Vec<[f64; 2]>,
    /// Pitch along rows in pixels; off unless above 0.
    pub pitch_x: f64,
    /// Pitch along columns in pixels; off unless above 0.
    pub pitch_y: f64,
    /// Multiples of the pitch to compare at.
    pub multiples: Vec<u32>,
    /// Threshold in grey levels.
    pub threshold: f64,
    /// How to compare.
    pub compare: Compare,
    /// Whether the centre gets the second-order blur that interpolation gives its neighbours.
    pub match_center: bool,
    /// Which differences count.
    pub polarity: Polarity,
    /// Whether a neighbour outside the frame is replaced by the one two distances inward.
    pub inward: bool,
    /// With `inward`: pixels at the end that lacks the neighbour, which are not judged so.
    pub edge_margin: usize,
    /// Coarser levels.
    pub scales: u32,
    /// Their thresholds as parts of the threshold.
    pub scale_factors: Vec<f64>,
    /// Least standard deviation of a tile, grey levels of 8 bits; 0 = off.
    pub min_contrast: f64,
    /// Bits of a sample; 0 = 8, or 16 for two-byte samples.
    pub bit_depth: u32,
    /// Regions of interest as x, y, width, height in pixels, half-open and clipped to the frame;
    /// empty = the whole frame.
    pub rois: Vec<[usize; 4]>,
    /// Row-major: pixels that are not judged; empty = none.
    pub ignored: Vec<bool>,
}

/// The result of a comparison; `mask` and `judged` are row-major, `width * height`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Whether a pixel is marked.
    pub mask: Vec<bool>,
    /// Whether at least one comparison judged a pixel.
    pub judged: Vec<bool>,
    /// The mask as `pack` packs it.
    pub packed: Vec<u8>,
    /// Pixels set in `mask`.
    pub defect_pixels: u64,
    /// Pixels set in `judged`.
    pub judged_pixels: u64,
    /// Pixels that a comparison along rows, and along columns, judged; with a lattice along its first and its second
    /// vector.
    pub judged_along: [u64; 2],
    /// Pixels that are marked for want of a pattern.
    pub missing_pixels: u64,
}

/// Compares every pixel of a component with its neighbours one pitch (and its multiples) away.
pub fn compare(src: Samples, s: &Settings) -> Outcome {
    let pixels = judge(src, s);
    let mask: Vec<bool> = pixels.iter().map(|pixel| pixel.fired.is_some()).collect();
    let judged: Vec<bool> = pixels.iter().map(Pixel::is_judged).collect();
    let along = |axis: usize| pixels.iter().filter(|pixel| pixel.judged[axis]).count() as u64;
    Outcome {
        packed: pack(&mask, src.width, src.height),
        defect_pixels: count(&mask),
        judged_pixels: count(&judged),
        judged_along: [along(0), along(1)],
        missing_pixels: pixels.iter().filter(|pixel| pixel.is_missing).count() as u64,
        mask,
        judged,
    }
}

/// The signed difference of each marked pixel in grey levels, bright-positive, and `None` where
/// the mask is clear; row-major, `width * height`.
///
/// If several comparisons mark a pixel, the difference of largest magnitude; of two that differ in
/// sign only, the first in the order of `pitch-x` with each multiple, then `pitch-y`, then the tiles
/// without the pattern in scan order. A tile whose mean is the mean of all tiles has the difference
/// -0.0, for it counts as dark.
pub fn difference(src: Samples, s: &Settings) -> Vec<Option<f64>> {
    judge(src, s)
        .iter()
        .map(|pixel| {
            let sign = if pixel.is_dark_tile { -1.0 } else { 1.0 };
            (pixel.fired).map(|units| {
                (units.abs() as f64 / UNIT as f64).copysign(if units == 0 {
                    sign
                } else {
                    units as f64
                })
            })
        })
        .collect()
}

/// The finest level that marks each pixel; `None` where no level does. Row-major, `width * height`.
pub fn finest_level(src: Samples, s: &Settings) -> Vec<Option<u32>> {
    judge(src, s).iter().map(|pixel| pixel.level).collect()
}

/// Packs a row-major mask, most significant bit first, each row in `ceil(width / 8)` bytes.
///
/// # Source
/// docs/semantics.md, "Packed mask"; equal to `numpy.packbits(mask, axis=1)` and to PBM P4 rows.
pub fn pack(mask: &[bool], width: usize, height: usize) -> Vec<u8> {
    assert_eq!(mask.len(), width * height);
    let stride = width.div_ceil(8);
    let mut packed = vec![0_u8; stride * height];
    for y in 0..height {
        for x in 0..width {
            if mask[y * width + x] {
                packed[y * stride + (x >> 3)] |= 1 << (7 - (x & 7));
            }
        }
    }
    packed
}

/// A pitch distance in 1/256 px, `round(256 * multiple * pitch)`; halves round away from zero.
pub fn distance_q8(multiple: u32, pitch: f64) -> usize {
    (256.0 * f64::from(multiple) * pitch).round() as usize
}

/// Units of a difference per grey level.
const UNIT: i64 = 131_072;

/// The result of the comparisons for one pixel.
#[derive(Clone, Copy, Default)]
struct Pixel {
    /// By a comparison along rows, along columns; with a lattice along its vectors.
    judged: [bool; 2],
    /// The difference of the comparison or tile that marked the pixel, in 1/131072 grey level.
    fired: Option<i64>,
    /// The finest level that marked the pixel.
    level: Option<u32>,
    /// The pixel is judged, and one of its tiles lacks the pattern.
    is_missing: bool,
    /// `fired` is a tile's, and the tile is not brighter than the mean.
    is_dark_tile: bool,
}

impl Pixel {
    fn is_judged(&self) -> bool {
        self.judged != [false; 2]
    }
}

/// One comparison: along rows or columns, at one distance.
pub(super) struct Comparison {
    pub along_columns: bool,
    pub distance_q8: usize,
    /// Twice the distance, rounded on its own.
    pub double_q8: usize,
    /// Whether a missing neighbour is replaced: only at the smallest multiple.
    pub is_inward: bool,
}

fn comparisons(s: &Settings) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    if !s.vectors.is_empty() {
        return comparisons;
    }
    for (along_columns, pitch) in [(false, s.pitch_x), (true, s.pitch_y)] {
        if pitch > 0.0 {
            for &multiple in &s.multiples {
                comparisons.push(Comparison {
                    along_columns,
                    distance_q8: distance_q8(multiple, pitch),
                    double_q8: distance_q8(2 * multiple, pitch),
                    is_inward: s.inward && s.multiples.iter().all(|&other| other >= multiple),
                });
            }
        }
    }
    comparisons
}

fn judge(src: Samples, s: &Settings) -> Vec<Pixel> {
    let (width, height) = (src.width, src.height);
    let samples: Vec<i64> = src.values().into_iter().map(i64::from).collect();
    let of_interest = regions(&s.rois, width, height);
    let mut pixels = vec![Pixel::default(); width * height];
    for comparison in comparisons(s) {
        for y in 0..height {
            for x in 0..width {
                let at = y * width + x;
                if !of_interest[at] || s.ignored.get(at) == Some(&true) {
                    continue;
                }
                let sums = if comparison.along_columns {
                    let column = |i: usize| samples[i * width + x];
                    sums(column, y, height, &comparison, s)
                } else {
                    let row = |i: usize| samples[y * width + i];
                    sums(row, x, width, &comparison, s)
                };
                if let Some(Sums {
                    centre,
                    left,
                    right,
                }) = sums
                {
                    pixels[at].judged[usize::from(comparison.along_columns)] = true;
                    let theta = (256.0 * s.threshold).round() as i64;
                    let fired = fire(centre, left, right, theta, s).map(|d| UNIT / 512 * d);
                    pixels[at].fired = larger(pixels[at].fired, fired);
                }
            }
        }
    }
    judge_along_vectors(&mut pixels, &samples, (width, height), s);
    for pixel in &mut pixels {
        pixel.level = pixel.fired.map(|_| 0);
    }
    let size = [width, height];
    let blocks = if s.scales > 0 {
        let repaired = repaired(src, s);
        scales::marked_blocks(&samples, &repaired, size, s, &comparisons(s))
    } else {
        Vec::new()
    };
    for block in blocks {
        let size = 1 << block.level;
        for y in block.y..(block.y + size).min(height) {
            for x in block.x..(block.x + size).min(width) {
                let pixel = &mut pixels[y * width + x];
                if pixel.is_judged() && pixel.level.is_none() {
                    pixel.level = Some(block.level);
                    pixel.fired = Some(UNIT / 512 * block.times_512);
                }
            }
        }
    }
    mark_missing(&mut pixels, src, s);
    pixels
}

/// Compares along the vectors of a lattice: with the first one at each multiple, then with the second one.
fn judge_along_vectors(
    pixels: &mut [Pixel],
    samples: &[i64],
    (width, height): (usize, usize),
    s: &Settings,
) {
    let of_interest = regions(&s.rois, width, height);
    let picture = Picture {
        samples,
        width: width as i64,
        height: height as i64,
    };
    for (number, &v) in s.vectors.iter().enumerate() {
        // A single vector along y is `pitch-y`.
        let axis = if s.vectors.len() == 1 && v[0] == 0.0 {
            1
        } else {
            number
        };
        for &multiple in &s.multiples {
            for (at, pixel) in pixels.iter_mut().enumerate() {
                if !of_interest[at] || s.ignored.get(at) == Some(&true) {
                    continue;
                }
                let place = [at % width, at / width].map(|i| i as i64);
                let Some(sums) = lattice::sums(picture, place, (multiple, v), s) else {
                    continue;
                };
                pixel.judged[axis] = true;
                let theta = 256 * (256.0 * s.threshold).round() as i64;
                let fired = fire(sums.centre, sums.left, sums.right, theta, s);
                pixel.fired = larger(pixel.fired, fired);
            }
        }
    }
}

/// The samples, with those that are marked themselves, wherever they lie, replaced by what their neighbours say.
fn repaired(src: Samples, s: &Settings) -> Vec<i64> {
    let everywhere = Settings {
        scales: 0,
        min_contrast: 0.0,
        rois: Vec::new(),
        ignored: Vec::new(),
        ..s.clone()
    };
    let full = if src.depth == SampleKind::U8 { 8 } else { 16 };
    let depth = if s.bit_depth == 0 { full } else { s.bit_depth };
    let repair = |(value, pixel): (u32, Pixel)| {
        let Some(units) = pixel.fired else {
            return i64::from(value);
        };
        let rounded = (units.abs() + UNIT / 2) / UNIT * units.signum();
        (i64::from(value) - rounded).clamp(0, (1 << depth) - 1)
    };
    src.values()
        .into_iter()
        .zip(judge(src, &everywhere))
        .map(repair)
        .collect()
}

/// A tile of the search for the pattern: left, top, width, height.
type Tile = [usize; 4];

/// docs/semantics.md, "Presence".
fn tiles(width: usize, height: usize, s: &Settings) -> Vec<Tile> {
    let two = |pitch: f64| {
        if pitch > 0.0 {
            2 * pitch.ceil() as usize
        } else {
            0
        }
    };
    let [repeat_x, repeat_y] = if s.vectors.is_empty() {
        [s.pitch_x, s.pitch_y]
    } else {
        // The box of a cell.
        [0, 1].map(|axis| s.vectors.iter().map(|v| v[axis].abs()).sum())
    };
    let tile_width = (8 * two(repeat_x).max(8).div_ceil(8)).min(width);
    let tile_height = two(repeat_y).max(16).min(height);
    let mut tiles = Vec::new();
    for j in 0..height.div_ceil(tile_height) {
        for i in 0..width.div_ceil(tile_width) {
            let left = (i * tile_width).min(width - tile_width);
            let top = (j * tile_height).min(height - tile_height);
            tiles.push([left, top, tile_width, tile_height]);
        }
    }
    tiles
}

/// The samples with 8 bits.
fn eight_bits(src: Samples, s: &Settings) -> Vec<i128> {
    let full = if src.depth == SampleKind::U8 { 8 } else { 16 };
    let depth = if s.bit_depth == 0 { full } else { s.bit_depth };
    let shift = depth.saturating_sub(8);
    src.values()
        .into_iter()
        .map(|v| i128::from(v >> shift))
        .collect()
}

/// Number of samples, their sum, and the sum of their squares.
fn tile_sums(samples: &[i128], width: usize, [left, top, columns, rows]: Tile) -> [i128; 3] {
    let mut sums = [0; 3];
    for y in top..top + rows {
        for x in left..left + columns {
            let v = samples[y * width + x];
            sums = [sums[0] + 1, sums[1] + v, sums[2] + v * v];
        }
    }
    sums
}

fn mark_missing(pixels: &mut [Pixel], src: Samples, s: &Settings) {
    let contrast = (16.0 * s.min_contrast).round() as i128;
    if contrast <= 0 {
        return;
    }
    let samples = eight_bits(src, s);
    let tiles = tiles(src.width, src.height, s);
    let sums: Vec<[i128; 3]> = tiles
        .iter()
        .map(|&tile| tile_sums(&samples, src.width, tile))
        .collect();
    let all: i128 = sums.iter().map(|sums| sums[1]).sum();
    for (&[left, top, columns, rows], &[n, s1, s2]) in tiles.iter().zip(&sums) {
        if 256 * (n * s2 - s1 * s1) >= (n * contrast) * (n * contrast) {
            continue;
        }
        // (s1 / n - all / (n * tiles)) in 1/256 grey level, rounded half away from zero.
        let denominator = n * tiles.len() as i128;
        let numerator = 256 * (tiles.len() as i128 * s1 - all);
        let size = (numerator.abs() + denominator / 2) / denominator;
        // An odd denominator has no half: the quotient above is exact for it too.
        let rounded = size * numerator.signum();
        for y in top..top + rows {
            for x in left..left + columns {
                let pixel = &mut pixels[y * src.width + x];
                if !pixel.is_judged() {
                    continue;
                }
                pixel.is_missing = true;
                let now = UNIT / 256 * rounded as i64;
                if pixel.fired.is_none_or(|before| now.abs() > before.abs()) {
                    pixel.fired = Some(now);
                    pixel.is_dark_tile = now <= 0;
                }
            }
        }
    }
}

/// The contrast of the pattern in grey levels of 8 bits: the standard deviation of the median tile.
/// `None` if the pattern is not seen along each axis in use.
///
/// # Source
/// docs/semantics.md, "Presence".
pub fn contrast(src: Samples, s: &Settings) -> Option<f64> {
    let samples = eight_bits(src, s);
    let (width, height) = (src.width, src.height);
    let vectors = if s.vectors.is_empty() {
        let along = [[s.pitch_x, 0.0], [0.0, s.pitch_y]];
        along.into_iter().filter(|&[x, y]| x + y > 0.0).collect()
    } else {
        s.vectors.clone()
    };
    if vectors.is_empty() {
        return None;
    }
    let eight: Vec<i64> = samples.iter().map(|&v| v as i64).collect();
    let picture = Picture {
        samples: &eight,
        width: width as i64,
        height: height as i64,
    };
    for v in vectors {
        // Sums over all tiles of the products of deviations from the tile's own means.
        let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
        for [left, top, columns, rows] in tiles(width, height, s) {
            let mut pairs = Vec::new();
            for y in top..top + rows {
                for x in left..left + columns {
                    let place = [x as i64, y as i64];
                    if let Ok(sum) = lattice::neighbour(picture, place, lattice::distance(1, v)) {
                        pairs.push(((256 * samples[y * width + x]) as f64, (sum >> 8) as f64));
                    }
                }
            }
            let n = pairs.len() as f64;
            let mean_a = pairs.iter().map(|p| p.0).sum::<f64>() / n;
            let mean_b = pairs.iter().map(|p| p.1).sum::<f64>() / n;
            for (a, b) in pairs {
                ab += (a - mean_a) * (b - mean_b);
                aa += (a - mean_a) * (a - mean_a);
                bb += (b - mean_b) * (b - mean_b);
            }
        }
        // Without variance there is no correlation.
        if !(aa > 0.0 && bb > 0.0 && ab / (aa * bb).sqrt() >= 0.5) {
            return None;
        }
    }
    let mut deviations: Vec<f64> = tiles(width, height, s)
        .into_iter()
        .map(|tile| {
            let [n, s1, s2] = tile_sums(&samples, width, tile);
            ((n * s2 - s1 * s1) as f64).sqrt() / n as f64
        })
        .collect();
    deviations.sort_by(f64::total_cmp);
    Some(deviations[(deviations.len() - 1) / 2])
}

/// Marks the pixels of the union of the regions of interest.
fn regions(rois: &[[usize; 4]], width: usize, height: usize) -> Vec<bool> {
    if rois.is_empty() {
        return vec![true; width * height];
    }
    let mut inside = vec![false; width * height];
    for &[left, top, columns, rows] in rois {
        for y in top.min(height)..top.saturating_add(rows).min(height) {
            for x in left.min(width)..left.saturating_add(columns).min(width) {
                inside[y * width + x] = true;
            }
        }
    }
    inside
}

/// C, L and R of docs/semantics.md, in 1/256 grey level.
struct Sums {
    centre: i64,
    left: i64,
    right: i64,
}

/// The sums of the sample at `x` of a row (or column) `s` of `n` samples; `None` if it is not
/// judged.
///
/// No tap leaves the row. The neighbours reach `x - P - u` and `x + P + u`, as the rule "judged"
/// demands; at the smallest multiple, with `inward`, the neighbour at twice the distance on the other side replaces a missing
/// one. The neighbours of a matched centre clamp to the row. Taps of weight 0 are not read.
fn sums(
    s: impl Fn(usize) -> i64,
    x: usize,
    n: usize,
    comparison: &Comparison,
    settings: &Settings,
) -> Option<Sums> {
    let f = (comparison.distance_q8 & 255) as i64;
    let neighbour = |distance_q8, to_right| {
        neighbour_of(x, distance_q8, to_right, |at| (at < n).then(|| s(at)))
    };
    let left = neighbour(comparison.distance_q8, false);
    let right = neighbour(comparison.distance_q8, true);
    let edge = settings.edge_margin;
    let (left, right) = match (left, right) {
        (Some(left), Some(right)) => (left, right),
        (None, Some(right)) if comparison.is_inward && x >= edge => {
            (neighbour(comparison.double_q8, true)?, right)
        }
        (Some(left), None) if comparison.is_inward && n - 1 - x >= edge => {
            (left, neighbour(comparison.double_q8, false)?)
        }
        _ => return None,
    };
    let mut centre = 256 * s(x);
    if settings.match_center {
        let a = (f * (256 - f) + 256) / 512;
        centre += a * (s(x.saturating_sub(1)) - 2 * s(x) + s((x + 1).min(n - 1)));
    }
    Some(Sums {
        centre,
        left,
        right,
    })
}

/// The neighbour of sample `x` at a distance, to the right or the left; `None` where `tap` has no sample.
pub(super) fn neighbour_of(
    x: usize,
    distance_q8: usize,
    to_right: bool,
    tap: impl Fn(usize) -> Option<i64>,
) -> Option<i64> {
    let (p, f) = (distance_q8 >> 8, (distance_q8 & 255) as i64);
    let tap = |steps: usize| -> Option<i64> {
        let at = if to_right {
            x.checked_add(steps)
        } else {
            x.checked_sub(steps)
        };
        at.and_then(&tap)
    };
    let near = (256 - f) * tap(p)?;
    Some(if f > 0 { near + f * tap(p + 1)? } else { near })
}

/// The difference in halves of the other values' unit, if the comparison marks it.
pub(super) fn fire(centre: i64, left: i64, right: i64, theta: i64, s: &Settings) -> Option<i64> {
    let (bright, dark, times_512) = match s.compare {
        Compare::Average => {
            let e = 2 * centre - (left + right);
            (e >= 2 * theta, e <= -2 * theta, e)
        }
        Compare::Minimum => {
            let left = centre - left;
            let right = centre - right;
            let bright = left >= theta && right >= theta;
            let dark = left <= -theta && right <= -theta;
            let magnitude = left.abs().min(right.abs());
            // Bright and dark both hold only at T = 0 between equal samples; the magnitude is 0
            // then.
            (
                bright,
                dark,
                2 * if bright { magnitude } else { -magnitude },
            )
        }
    };
    let marked = match s.polarity {
        Polarity::Both => bright || dark,
        Polarity::Bright => bright,
        Polarity::Dark => dark,
    };
    marked.then_some(times_512)
}

/// The difference of larger magnitude; `before` if both are equal.
fn larger(before: Option<i64>, now: Option<i64>) -> Option<i64> {
    match (before, now) {
        (Some(before), Some(now)) if now.abs() <= before.abs() => Some(before),
        (before, None) => before,
        (_, now) => now,
    }
}

fn count(set: &[bool]) -> u64 {
    set.iter().filter(|&&set| set).count() as u64
}
