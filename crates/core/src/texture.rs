//! The texture comparison: its channels, thresholds, the mean over one repeat, and the tiles of the local noise.
//!
//! # Source
//! docs/semantics.md, "Textures".

mod along;

pub use along::{Repeats, VectorRepeat};

use std::ops::Range;

use super::{
    sight::{Sight, reach_of_contrast},
    window::{Reach, Window},
};

/// Number of channels.
pub const CHANNELS: usize = 6;
/// Names of the channels: what is summed, and the side of the window in pixels.
pub const CHANNEL_NAMES: [&str; CHANNELS] = [
    "residual-1",
    "residual-4",
    "residual-9",
    "residual-33",
    "mean-1",
    "mean-10",
];
/// Number of limits: those of the channels, and the flatness.
pub const LIMITS: usize = CHANNELS + 1;
/// Name of the limit of a tile's flatness: [`FLATNESS`] over its standard deviation in grey levels of 8 bits.
pub const FLATNESS_NAME: &str = "flatness";
/// A tile's flatness times its contrast.
pub const FLATNESS: f64 = 255.0;
/// Pixels of the channels' windows.
pub const WINDOW_PIXELS: [u32; CHANNELS] = [1, 16, 81, 1089, 1, 100];
/// Bits of a channel's number beside its excess.
pub const CHANNEL_BITS: u32 = 3;
/// The channels from this one on are of the mean over one repeat, the others of the residual.
pub const FIRST_OF_MEAN: usize = 4;
/// Side of a tile of the local noise, px.
pub const TILE: usize = 32;
/// Pixels at each border that are not judged.
pub const BORDER: usize = 4;
/// Pixels at each border that do not count for the tiles' largest values.
pub const PEAK_BORDER: usize = 6;
/// Largest threshold, in units of the local noise.
pub const MAX_THRESHOLD: f64 = 65_535.0;
/// Rows that the widest window of the residual, and that of the mean over one repeat, have on one side.
const WIDEST_WINDOW: usize = 16;
const MEAN_WINDOW: usize = 32;

/// Along one axis: the pitch, and the weights of the mean over one repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// The pitch in 1/16 px (`P`).
    pub pitch: i32,
    /// Samples on each side of the pixel that count in full (`n`).
    pub full: i32,
    /// Weight of the two samples beyond; full ones weigh 32 (`e`).
    pub edge: i32,
    /// Scale of the weighted sum (`R`).
    pub scale: i32,
}

impl Repeat {
    /// Shortest pitch, px.
    pub const MIN_PITCH_PX: f64 = 2.0;

    /// The repeat along x, which has two more fraction bits, or along y. `None` for a pitch that is shorter than
    /// [`Self::MIN_PITCH_PX`], or that no axis of `length` samples holds: a pixel needs a neighbour on one side.
    pub fn new(pitch_px: f64, is_along_x: bool, length: usize) -> Option<Self> {
        let pitch = (16.0 * pitch_px).round();
        if !(pitch_px >= Self::MIN_PITCH_PX && pitch <= f64::from(1 << 20)) {
            return None;
        }
        let repeat = Self::of(pitch as i32, is_along_x);
        (2 * repeat.margin() < length).then_some(repeat)
    }

    /// The repeat after `pitch` sixteenths; `is_first`: of the mean that is taken first.
    fn of(pitch: i32, is_first: bool) -> Self {
        let full = (pitch - 16) / 32;
        Self {
            pitch,
            full,
            edge: pitch - 16 * (2 * full + 1),
            scale: ((1 << if is_first { 22 } else { 20 }) + pitch) / (2 * pitch),
        }
    }

    /// Samples from a pixel to the farther tap of a neighbour.
    pub fn margin(&self) -> usize {
        (self.pitch >> 4) as usize + usize::from(self.pitch & 15 > 0)
    }
}

/// What thresholds in 1/256 see under the noise of tiles, in 1/16: the channel that sees best, and the grey levels of a
/// sample of `depth` bits that it marks in the median tile, if they fill its window. `noise` is that of the residual and
/// that of the mean over one repeat. `None` without a tile.
pub fn sight(
    thresholds: &[u32; CHANNELS],
    noise: [Vec<u32>; 2],
    contrast: Option<f64>,
    depth: u32,
) -> Option<Sight> {
    let [residual, mean] = noise.map(|mut noise| {
        let middle = noise.len().checked_sub(1)? / 2;
        let (_, &mut median, _) = noise.select_nth_unstable(middle);
        Some(f64::from(median))
    });
    let (residual, mean) = (residual?, mean?);
    let levels = f64::from(1_u32 << depth.saturating_sub(8));
    let reach = reach_of_contrast(contrast, depth);
    let channels = CHANNEL_NAMES.iter().zip(thresholds).enumerate();
    Sight::best(channels.map(|(at, (&name, &threshold))| {
        // A residual has 16 units per grey level, the mean 64.
        let unit = if at < FIRST_OF_MEAN {
            residual / 256.0
        } else {
            mean / 1024.0
        };
        Sight {
            name: name.into(),
            limit: f64::from(threshold) / 256.0 * unit * levels,
            reach,
        }
    }))
}

/// The tiles whose noise a pixel is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbourhood {
    /// Rows of tiles above.
    pub above: usize,
    /// Rows of tiles below.
    pub below: usize,
    /// Columns of tiles on each side.
    pub beside: usize,
}

impl Neighbourhood {
    /// The tiles around.
    pub const AROUND: Self = Self {
        above: 4,
        below: 4,
        beside: 4,
    };
    /// The tile and those above, so that a strip of a web does not wait for more rows.
    pub const ABOVE: Self = Self {
        above: 8,
        below: 0,
        beside: 4,
    };

    /// Rows of a web that a strip needs besides its own.
    pub fn reach(&self, repeats: &Repeats) -> Reach {
        let [residual, mean] = repeats.rows();
        // One more for the smoothing.
        let context = (residual + 1).max(mean + 1 + MEAN_WINDOW);
        // The tile after the last one must have come as a whole: a partial one would belong to the one before.
        let below = (self.below + 2) * TILE + context;
        Reach {
            both: below.max(WIDEST_WINDOW + context),
            above: (self.above + 1) * TILE + context,
            ..Reach::default()
        }
    }
}

/// The tiles that lie in the rows of a plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiles {
    /// Tiles in a row of tiles.
    pub columns: usize,
    /// Rows of tiles that are there, in part at least.
    pub rows: usize,
    /// Number of the first one in the web.
    pub first: u64,
    /// Rows of the web before the plane.
    pub before: u64,
    /// Number of rows of tiles in the web, if it ends with the plane.
    pub end: Option<u64>,
}

impl Tiles {
    /// The tiles of a window of a plane `width` pixels wide.
    pub fn new(width: usize, window: &Window) -> Self {
        let before = window.web_row;
        let past = before + window.height as u64;
        // A partial last tile belongs to the one before.
        let end = window.ends.then(|| (past / TILE as u64).max(1));
        let past_tile = end.unwrap_or_else(|| past.div_ceil(TILE as u64)).max(1);
        let first = (before / TILE as u64).min(past_tile - 1);
        Self {
            columns: (width / TILE).max(1),
            rows: (past_tile - first) as usize,
            first,
            before,
            end,
        }
    }

    /// Number of tiles.
    pub fn count(&self) -> usize {
        self.columns * self.rows
    }
}

/// Rows that the first three kernels of a comparison process before the next ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Rows that are smoothed.
    pub smooth: Range<usize>,
    /// Rows whose residual is made.
    pub lattice: Range<usize>,
    /// Rows of tiles that are summed up.
    pub tiles: Range<usize>,
}

/// Divides a plane of `height` rows into parts of `at_once` smoothed rows. A row follows in the next step when the rows that
/// the step reads are done, and no later row reads what the step overwrites.
pub fn parts(height: usize, tiles: &Tiles, along_y: &Repeat, at_once: usize) -> Vec<Part> {
    let behind = along_y.margin().max(along_y.full as usize + 1);
    // The mean of the rows takes the place of those that neighbours one pitch away are read from.
    let reach = (MEAN_WINDOW + 1).max(behind + 1);
    let before = (tiles.before - tiles.first * TILE as u64) as usize;
    let (mut smooth, mut lattice, mut summed) = (0, 0, 0);
    let mut parts = Vec::new();
    while summed < tiles.rows {
        let smoothed = (smooth + at_once.max(1)).min(height);
        let is_last = smoothed == height;
        let made = if is_last {
            height
        } else {
            smoothed.saturating_sub(behind)
        };
        let done = if is_last {
            tiles.rows
        } else {
            // Whole tiles above the rows that are still needed; the last one ends with the plane.
            (made.saturating_sub(reach) + before)
                .checked_div(TILE)
                .unwrap_or(0)
                .min(tiles.rows - 1)
        };
        let (made, done) = (made.max(lattice), done.max(summed));
        parts.push(Part {
            smooth: smooth..smoothed,
            lattice: lattice..made,
            tiles: summed..done,
        });
        (smooth, lattice, summed) = (smoothed, made, done);
    }
    parts
}

/// A threshold in 1/256 of the local noise; `None` if it is not a number from 0 to [`MAX_THRESHOLD`].
pub fn threshold_q8(threshold: f64) -> Option<u32> {
    (0.0..=MAX_THRESHOLD)
        .contains(&threshold)
        .then(|| (256.0 * threshold).round() as u32)
}

/// The lowest threshold in 1/256 at which a sum of a channel marks nothing under this noise, in 1/16.
pub fn needed_q8(sum: u32, channel: usize, noise: u32) -> u32 {
    let unit = u64::from(WINDOW_PIXELS[channel]) * u64::from(noise);
    (4096 * u64::from(sum)).div_ceil(unit) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeat_covers_one_pitch() {
        for pitch in [2.0, 5.19, 7.12, 9.0, 9.27, 12.84, 40.0] {
            let repeat = Repeat::new(pitch, true, 1000).expect("a pitch");
            let p = (16.0 * pitch).round() as i32;
            assert_eq!(repeat.pitch, p);
            assert_eq!(
                32 * (2 * repeat.full + 1) + 2 * repeat.edge,
                2 * p,
                "{pitch}"
            );
            assert!((0..=32).contains(&repeat.edge), "{pitch}: {repeat:?}");
        }
        for (pitch, length) in [
            (1.9, 1000),
            (f64::NAN, 1000),
            (8.0, 16),
            (8.5, 18),
            (1e9, 1000),
        ] {
            assert_eq!(Repeat::new(pitch, true, length), None, "{pitch}");
        }
        assert!(Repeat::new(8.0, false, 17).is_some());
    }

    #[test]
    fn tiles_of_strips_are_those_of_the_web() {
        let frame = Tiles::new(70, &Window::frame(95));
        assert_eq!((frame.columns, frame.rows, frame.end), (2, 2, Some(2)));
        let small = Tiles::new(9, &Window::frame(5));
        assert_eq!((small.columns, small.rows, small.end), (1, 1, Some(1)));
        let window = Window {
            web_row: 40,
            is_web: true,
            ends: false,
            ..Window::frame(95)
        };
        // Rows 40 to 134 lie in the tiles 1 to 4.
        let strip = Tiles::new(70, &window);
        assert_eq!((strip.first, strip.rows, strip.end), (1, 4, None));
        // If the web ends there, tile 4 has seven rows, which belong to tile 3.
        let last = Tiles::new(
            70,
            &Window {
                ends: true,
                ..window
            },
        );
        assert_eq!((last.first, last.rows, last.end), (1, 3, Some(4)));
    }

    #[test]
    fn parts_read_what_is_done_and_overwrite_what_nobody_reads() {
        for (height, pitch, web_row, ends) in [
            (700, 7.3, 0, true),
            (700, 60.0, 45, false),
            (33, 4.0, 0, true),
            (1000, 120.0, 31, true),
        ] {
            let window = Window {
                web_row,
                is_web: true,
                ends,
                ..Window::frame(height)
            };
            let tiles = Tiles::new(100, &window);
            let repeat = Repeat::new(pitch, false, usize::MAX).expect("a pitch");
            for at_once in [1, 64, 200, 5000] {
                let parts = parts(height, &tiles, &repeat, at_once);
                let (mut smooth, mut lattice, mut summed) = (0, 0, 0);
                for part in parts {
                    assert_eq!(
                        (part.smooth.start, part.lattice.start, part.tiles.start),
                        (smooth, lattice, summed)
                    );
                    (smooth, lattice, summed) = (part.smooth.end, part.lattice.end, part.tiles.end);
                    let behind = repeat.margin().max(repeat.full as usize + 1);
                    assert!(lattice == 0 || smooth == height || lattice + behind <= smooth);
                    let before = (tiles.before - tiles.first * TILE as u64) as usize;
                    let bottom = (summed * TILE).saturating_sub(before);
                    let is_done = lattice == height || bottom + MEAN_WINDOW < lattice;
                    let is_free = lattice == height || bottom + repeat.margin() < lattice;
                    assert!(summed == 0 || summed == tiles.rows || is_done && is_free);
                }
                assert_eq!((smooth, lattice, summed), (height, height, tiles.rows));
            }
        }
    }

    #[test]
    fn needed_threshold_is_the_lowest_that_marks_nothing() {
        for (sum, channel, noise) in [(1000, 0, 64), (77_777, 3, 91), (1, 5, 4000), (0, 2, 64)] {
            let limit = |t: u32| {
                (u64::from(t) * u64::from(WINDOW_PIXELS[channel]) * u64::from(noise) + 2048) >> 12
            };
            let needed = needed_q8(sum, channel, noise);
            assert!(u64::from(sum) <= limit(needed));
        }
    }
}
