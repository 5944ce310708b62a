//! Tiles in which the pattern is searched, and the rules that say where it is missing.
//!
//! # Source
//! docs/semantics.md, "Presence".

use super::window::Window;

/// Value in a table of tile differences for a tile in which the pattern is present. Twin:
/// `TILE_PRESENT` in `kernels/presence.cl`.
pub const PRESENT: i32 = i32::MIN;

/// The pattern is seen when its correlation with itself, one pitch away, is at least this. A wrong pitch
/// must not count as seen.
const LEAST_CORRELATION: f64 = 0.5;
/// The same at a pitch that was estimated: the estimate has already found the pattern. Measured: cloth 0.43 or more,
/// noise 0.
const LEAST_CORRELATION_ESTIMATED: f64 = 0.3;

/// The tiles of a frame. The last column and the last row of tiles end at the frame's edge and may
/// overlap their neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiles {
    /// Width of a tile, px.
    pub width: usize,
    /// Height of a tile, px.
    pub height: usize,
    /// Tiles in a row of tiles.
    pub columns: usize,
    /// Rows of tiles.
    pub rows: usize,
}

/// The tiles that the processed rows of a plane lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileRows {
    /// The tiles.
    pub tiles: Tiles,
    /// The first row of the plane that they cover.
    pub top: usize,
    /// Number of rows that they cover.
    pub height: usize,
    /// Where the last row of tiles overlaps the one before, rows belong to both. In a web they belong
    /// to the one before only: its strips may have left already.
    pub overlap: bool,
}

/// Width of a tile, px, in a row of pixels without end.
fn nominal_width(pitch_x: f64) -> usize {
    two_pitches(pitch_x).max(8).next_multiple_of(8)
}

/// Height of a tile, px, in a web without end.
pub fn nominal_height(pitch_y: f64) -> usize {
    two_pitches(pitch_y).max(16)
}

fn two_pitches(pitch: f64) -> usize {
    // A float beyond usize saturates.
    2 * (pitch.max(0.0).ceil() as usize).min(usize::MAX / 4)
}

impl TileRows {
    /// The tiles for a window of a plane `width` pixels wide. In a web rows of tiles count from the
    /// web's first row, and every row of tiles that holds a processed row must be there.
    pub fn new(pitches: [f64; 2], width: usize, window: &Window) -> Self {
        if !window.is_web {
            return Self {
                tiles: Tiles::new(pitches, width, window.height),
                top: 0,
                height: window.height,
                overlap: true,
            };
        }
        let (web_row, there) = (window.web_row as usize, window.height);
        let past = web_row + there;
        let tall = nominal_height(pitches[1]);
        let tall = if window.ends { tall.min(past) } else { tall };
        let start = web_row + window.first;
        let mut top = start / tall * tall;
        let mut bottom = (start + window.rows).next_multiple_of(tall);
        if bottom > past {
            bottom = past;
            top = top.min(past - tall.min(past));
        }
        // After a change of settings fewer rows may be there than the tiles need.
        let top = top.max(web_row);
        let height = bottom.saturating_sub(top).max(1).min(there);
        let tiles = Tiles::new(pitches, width, height);
        Self {
            tiles: Tiles {
                height: tiles.height.min(tall),
                rows: height.div_ceil(tiles.height.min(tall)),
                ..tiles
            },
            top: top - web_row,
            height,
            overlap: false,
        }
    }
}

impl Tiles {
    /// The tiles of a `width` × `height` frame for pitches along x and y in px, 0 for none.
    pub fn new(pitches: [f64; 2], width: usize, height: usize) -> Self {
        let tile_width = nominal_width(pitches[0]).min(width.max(1));
        let tile_height = nominal_height(pitches[1]).min(height.max(1));
        Self {
            width: tile_width,
            height: tile_height,
            columns: width.div_ceil(tile_width),
            rows: height.div_ceil(tile_height),
        }
    }

    /// Number of tiles.
    pub fn count(&self) -> usize {
        self.columns * self.rows
    }

    /// Samples per tile.
    pub fn samples(&self) -> u64 {
        self.width as u64 * self.height as u64
    }

    /// [`Self::differences_q8`] with the mean of the tile's own row of tiles, which does not depend on
    /// where a web is cut.
    pub fn row_differences_q8(&self, sums: &[TileSum], contrast_q4: u32) -> Vec<i32> {
        let rows = sums.chunks(self.columns.max(1));
        rows.flat_map(|row| self.differences_q8(row, contrast_q4))
            .collect()
    }

    /// The median tile's standard deviation, grey levels of 8 bits; of an even number of tiles the
    /// lower one of the two in the middle. 0 without tiles.
    pub fn median_deviation(&self, sums: &[TileSum]) -> f64 {
        let mut spreads: Vec<u128> = sums.iter().map(|s| s.spread(self.samples())).collect();
        if spreads.is_empty() {
            return 0.0;
        }
        let middle = (spreads.len() - 1) / 2;
        let (_, &mut median, _) = spreads.select_nth_unstable(middle);
        (median as f64).sqrt() / self.samples() as f64
    }

    /// The lowest standard deviation of a tile, grey levels of 8 bits, among those that count: `counts` says so for the
    /// left edge, the top edge, the width and the height of a tile. `None` without such a tile. The rows are those of
    /// a frame of this size.
    pub fn lowest_deviation(
        &self,
        sums: &[TileSum],
        [width, height]: [usize; 2],
        mut counts: impl FnMut([usize; 4]) -> bool,
    ) -> Option<f64> {
        let start =
            |index: usize, size: usize, n: usize| (index * size).min(n.saturating_sub(size));
        let mut lowest: Option<u128> = None;
        for (at, sum) in sums.iter().enumerate() {
            let left = start(at % self.columns, self.width, width);
            let top = start(at / self.columns, self.height, height);
            let spread = sum.spread(self.samples());
            if lowest.is_none_or(|lowest| spread < lowest)
                && counts([left, top, self.width, self.height])
            {
                lowest = Some(spread);
            }
        }
        lowest.map(|spread| (spread as f64).sqrt() / self.samples() as f64)
    }

    /// The mean of the samples of the tiles in which the pattern is not missing, grey levels of 8 bits;
    /// `None` without such a tile.
    pub fn mean_level(&self, sums: &[TileSum], contrast_q4: u32) -> Option<f64> {
        let samples = self.samples();
        let shown = sums.iter().filter(|s| !s.is_missing(samples, contrast_q4));
        let (count, total) = shown.fold((0_u128, 0_u128), |(count, total), sum| {
            (count + u128::from(samples), total + u128::from(sum.s1))
        });
        (count > 0).then(|| total as f64 / count as f64)
    }

    /// For each tile the difference of its mean from the mean of all tiles, in 1/256 grey level of 8
    /// bits, rounded half away from zero; [`PRESENT`] where the pattern is not missing.
    pub fn differences_q8(&self, sums: &[TileSum], contrast_q4: u32) -> Vec<i32> {
        let samples = self.samples();
        let total: i128 = sums.iter().map(|sum| i128::from(sum.s1)).sum();
        let count = sums.len() as i128;
        sums.iter()
            .map(|sum| {
                if !sum.is_missing(samples, contrast_q4) {
                    return PRESENT;
                }
                let numerator = 256 * (count * i128::from(sum.s1) - total);
                let denominator = count * i128::from(samples);
                let rounded =
                    (2 * numerator.abs() + denominator) / (2 * denominator) * numerator.signum();
                // Samples have at most 16 bits, so the difference fits.
                rounded as i32
            })
            .collect()
    }
}

/// Sums over the samples of a tile, each shifted right to 8 bits. Twin: `tile_sum_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct TileSum {
    /// Sum of the samples.
    pub s1: u64,
    /// Sum of their squares.
    pub s2: u64,
}

const _: () = assert!(size_of::<TileSum>() == 16);

impl TileSum {
    /// `n·S2 − S1²`: the variance times `n²`.
    fn spread(&self, samples: u64) -> u128 {
        let squares = u128::from(samples) * u128::from(self.s2);
        squares.saturating_sub(u128::from(self.s1).pow(2))
    }

    /// Whether the tile's deviation is below the minimum contrast.
    pub fn is_missing(&self, samples: u64, contrast_q4: u32) -> bool {
        let limit = u128::from(samples) * u128::from(contrast_q4);
        256 * self.spread(samples) < limit * limit
    }
}

/// Sums over pairs of a sample `a` of a tile and its neighbour `b` one pitch away, both times 256.
/// Twin: `pair_sums_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct PairSums {
    /// Number of pairs.
    pub pairs: u64,
    /// Sum of `a`.
    pub a: u64,
    /// Sum of `b`.
    pub b: u64,
    /// Sum of `a²`.
    pub aa: u64,
    /// Sum of `b²`.
    pub bb: u64,
    /// Sum of `a·b`.
    pub ab: u64,
}

const _: () = assert!(size_of::<PairSums>() == 48);

/// The correlation of a frame with itself, from the sums of its tiles: covariances and variances within
/// the tiles, added up. Shading, which is nearly constant within a tile, does not correlate. 0 where
/// there is no variance.
pub fn correlation(tiles: &[PairSums]) -> f64 {
    let mut sums = [0.0; 3];
    for tile in tiles.iter().filter(|tile| tile.pairs > 0) {
        let within = |xy: u64, x: u64, y: u64| {
            let product = |x: u64, y: u64| i128::from(x) * i128::from(y);
            (product(tile.pairs, xy) - product(x, y)) as f64 / tile.pairs as f64
        };
        sums[0] += within(tile.ab, tile.a, tile.b);
        sums[1] += within(tile.aa, tile.a, tile.a);
        sums[2] += within(tile.bb, tile.b, tile.b);
    }
    let [ab, aa, bb] = sums;
    if aa > 0.0 && bb > 0.0 {
        ab / (aa.sqrt() * bb.sqrt())
    } else {
        0.0
    }
}

/// Whether the pattern is seen at a pitch that was set or estimated.
pub fn shows_pattern(tiles: &[PairSums], is_estimated: bool) -> bool {
    let least = if is_estimated {
        LEAST_CORRELATION_ESTIMATED
    } else {
        LEAST_CORRELATION
    };
    correlation(tiles) >= least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_hold_two_pitches_and_end_at_the_frame() {
        let tiles = Tiles::new([7.35, 0.0], 100, 50);
        assert_eq!((tiles.width, tiles.height), (16, 16));
        assert_eq!((tiles.columns, tiles.rows, tiles.count()), (7, 4, 28));
        let off = Tiles::new([0.0, 61.2], 100, 500);
        assert_eq!((off.width, off.height), (8, 124));
        let small = Tiles::new([30.0, 30.0], 13, 5);
        assert_eq!((small.width, small.height, small.count()), (13, 5, 1));
        for pitch in [f64::MAX, f64::INFINITY, f64::NAN, -1.0] {
            assert_eq!(
                Tiles::new([pitch, pitch], 40, 40).rows,
                if pitch > 0.0 { 1 } else { 3 }
            );
        }
    }

    #[test]
    fn tile_of_two_values_is_missing_just_below_its_deviation() {
        // 128 samples of 100 and 128 of 110: mean 105, deviation 5.
        let sum = TileSum {
            s1: 128 * 210,
            s2: 128 * (100 * 100 + 110 * 110),
        };
        assert!(!sum.is_missing(256, 16 * 5));
        assert!(sum.is_missing(256, 16 * 5 + 1));
        assert!(!sum.is_missing(256, 0));
        let flat = TileSum {
            s1: 2560,
            s2: 25600,
        };
        assert!(flat.is_missing(256, 1));
    }

    #[test]
    fn tile_differences_are_from_the_mean_of_all_tiles() {
        let tiles = Tiles::new([0.0, 0.0], 8, 48);
        assert_eq!((tiles.count(), tiles.samples()), (3, 128));
        let flat = |level: u64| TileSum {
            s1: 128 * level,
            s2: 128 * level * level,
        };
        let sums = [flat(10), flat(10), flat(12)];
        // The mean is 32/3: the differences are -2/3 and 4/3 of a grey level.
        assert_eq!(tiles.differences_q8(&sums, 1), [-171, -171, 341]);
        assert_eq!(tiles.differences_q8(&sums, 0), [PRESENT; 3]);
        assert_eq!(tiles.median_deviation(&sums), 0.0);
        assert_eq!(tiles.mean_level(&sums, 0), Some(32.0 / 3.0));
        assert_eq!(tiles.mean_level(&sums, 1), None);
        let mut wide = sums;
        wide[1].s2 += 128 * 9;
        wide[2].s2 += 128 * 4;
        assert_eq!(tiles.median_deviation(&wide), 2.0);
        // Deviations 0, 3 and 2: the tiles with less than 2 and with less than 2 1/16.
        assert_eq!(tiles.mean_level(&wide, 16 * 2), Some(11.0));
        assert_eq!(tiles.mean_level(&wide, 16 * 2 + 1), Some(10.0));
    }

    #[test]
    fn correlation_is_within_tiles() {
        let tile = |pairs: &[(u64, u64)]| PairSums {
            pairs: pairs.len() as u64,
            a: pairs.iter().map(|p| p.0).sum(),
            b: pairs.iter().map(|p| p.1).sum(),
            aa: pairs.iter().map(|p| p.0 * p.0).sum(),
            bb: pairs.iter().map(|p| p.1 * p.1).sum(),
            ab: pairs.iter().map(|p| p.0 * p.1).sum(),
        };
        assert_eq!(correlation(&[]), 0.0);
        assert_eq!(
            correlation(&[PairSums::default(), tile(&[(5, 5), (5, 5)])]),
            0.0
        );
        let equal = tile(&[(1, 1), (2, 2), (9, 9)]);
        assert!((correlation(&[equal]) - 1.0).abs() < 1e-12);
        // Tiles of different brightness without a pattern of their own.
        let noise = |level: u64| tile(&[(level, level + 1), (level + 1, level)]);
        let shaded = [noise(10), noise(100), noise(200)];
        assert!((correlation(&shaded) + 1.0).abs() < 1e-12);
        assert!(!shows_pattern(&shaded, false) && !shows_pattern(&shaded, true));
        // Half of the pairs differ in sign: a correlation of 0.4.
        let cloth = tile(&[
            (0, 0),
            (10, 10),
            (0, 0),
            (10, 10),
            (0, 0),
            (10, 10),
            (0, 0),
            (10, 0),
            (0, 10),
            (10, 0),
        ]);
        assert!((correlation(&[cloth]) - 0.4).abs() < 0.01);
        assert!(shows_pattern(&[cloth], true) && !shows_pattern(&[cloth], false));
    }
}
