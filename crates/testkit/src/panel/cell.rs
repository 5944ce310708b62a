//! The unit cell of the panel and its band-limited image.
//!
//! The cell is a sum of separable terms (bars along x times one stretch along y), so its image
//! needs two 1-D Fourier series per term. A series keeps the harmonics below half a cycle per
//! pixel, times [`Optics::transfer`]. A camera would see the others as lower ones (aliasing), which
//! differ from cell to cell.

use std::f64::consts::TAU;

use super::optics::Optics;

/// Terms of the cell.
pub const TERMS: usize = 2;

/// Table entries per pixel. With linear interpolation the error is at most `h²/8·|G″|`: with
/// h = 1/256 px and |G″| < 3 per px² for a cell of height 1, 6e-6 of the contrast.
const ENTRIES_PER_PX: f64 = 256.0;
const MAX_TABLE_BITS: u32 = 16;
/// Phases per axis that are searched for the extremes of the cell's image.
const EXTREME_STEPS: u64 = 128;

/// A stretch of one axis of the cell, in fractions of the pitch, at a level.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// Start, 0..1.
    pub start: f64,
    /// End, start..1.
    pub end: f64,
    /// Level; the grid between the bars is 0, the brightest bar 1.
    pub level: f64,
}

const fn stretch(start: f64, end: f64, level: f64) -> Stretch {
    Stretch { start, end, level }
}

/// Stretches along x times stretches along y.
struct Term {
    along_x: &'static [Stretch],
    along_y: &'static [Stretch],
}

/// Three bars of different brightness, each with its darker transistor corner, in a dark grid.
const CELL: [Term; TERMS] = [
    Term {
        along_x: &[
            stretch(0.05, 0.33, 0.74),
            stretch(0.36, 0.64, 1.0),
            stretch(0.67, 0.95, 0.60),
        ],
        along_y: &[stretch(0.08, 0.92, 1.0)],
    },
    Term {
        along_x: &[
            stretch(0.05, 0.16, -0.44),
            stretch(0.36, 0.47, -0.60),
            stretch(0.67, 0.78, -0.36),
        ],
        along_y: &[stretch(0.72, 0.92, 1.0)],
    },
];

/// The cell's rectangles: stretch along x, stretch along y; the products of their levels add up.
pub fn rectangles() -> impl Iterator<Item = (Stretch, Stretch)> {
    CELL.iter().flat_map(|term| {
        term.along_x
            .iter()
            .flat_map(move |x| term.along_y.iter().map(move |y| (*x, *y)))
    })
}

/// A position on one axis in turns of the cell, as a fraction of 2⁶⁴; it wraps without a modulo.
pub fn turns(cells: f64) -> u64 {
    // Times 2⁶⁴; the cast saturates at one turn minus 2⁻⁶⁴.
    ((cells - cells.floor()) * 18_446_744_073_709_551_616.0) as u64
}

/// One period of every term along one axis: each entry is a value and the difference to the next.
pub struct AxisTable {
    entries: Vec<[f32; 2 * TERMS]>,
    shift: u32,
    /// Turns per pixel.
    step: u64,
}

impl AxisTable {
    fn new(terms: [&[Stretch]; TERMS], pitch_px: f64, optics: Optics) -> Self {
        let bits = (ENTRIES_PER_PX * pitch_px)
            .log2()
            .ceil()
            .clamp(8.0, f64::from(MAX_TABLE_BITS)) as u32;
        let len = 1usize << bits;
        let mut entries = vec![[0.0; 2 * TERMS]; len];
        for (term, stretches) in terms.iter().enumerate() {
            let values = series(stretches, pitch_px, optics, len);
            for (i, entry) in entries.iter_mut().enumerate() {
                entry[term] = values[i] as f32;
                entry[TERMS + term] = (values[(i + 1) % len] - values[i]) as f32;
            }
        }
        Self {
            entries,
            shift: 64 - bits,
            step: turns(1.0 / pitch_px),
        }
    }

    /// Every term at `phase` turns.
    #[inline]
    pub fn at(&self, phase: u64) -> [f32; TERMS] {
        let entry = &self.entries[(phase >> self.shift) as usize];
        // The 24 bits below the index: exact in f32.
        let fraction = ((phase << (64 - self.shift)) >> 40) as f32 / 16_777_216.0;
        std::array::from_fn(|term| entry[term] + fraction * entry[TERMS + term])
    }

    /// Phases of consecutive pixels, the first at `phase`.
    pub fn phases(&self, phase: u64) -> impl Iterator<Item = u64> {
        let step = self.step;
        std::iter::successors(Some(phase), move |phase| Some(phase.wrapping_add(step)))
    }
}

/// `len` equidistant values of one period of the imaged stretches.
///
/// # Source
/// Coefficients of a box from a to b (fractions of the period):
/// `c₀ = b − a`, `cₙ = (e^(−2πina) − e^(−2πinb)) / (2πin)` (Bracewell, chapter on Fourier series).
fn series(stretches: &[Stretch], pitch_px: f64, optics: Optics, len: usize) -> Vec<f64> {
    let mean: f64 = stretches.iter().map(|s| s.level * (s.end - s.start)).sum();
    let mut values = vec![mean; len];
    for n in (1u32..).map(f64::from).take_while(|n| n / pitch_px < 0.5) {
        // 2·cₙ as the factors of cosine and sine.
        let (mut cosine, mut sine) = (0.0, 0.0);
        for s in stretches {
            let (sin_a, cos_a) = (TAU * n * s.start).sin_cos();
            let (sin_b, cos_b) = (TAU * n * s.end).sin_cos();
            cosine += s.level * (sin_b - sin_a);
            sine += s.level * (cos_a - cos_b);
        }
        let factor = 2.0 * optics.transfer(n / pitch_px) / (TAU * n);
        cosine *= factor;
        sine *= factor;
        // Rotates by one entry; after 2¹⁶ rotations the error is below 1e-11.
        let (turn_sin, turn_cos) = (TAU * n / len as f64).sin_cos();
        let (mut sin, mut cos) = (0.0, 1.0);
        for value in &mut values {
            *value += cosine * cos + sine * sin;
            (sin, cos) = (
                sin * turn_cos + cos * turn_sin,
                cos * turn_cos - sin * turn_sin,
            );
        }
    }
    values
}

/// The cell's image, ready to sample.
pub struct CellImage {
    /// Series along x.
    pub along_x: AxisTable,
    /// Series along y.
    pub along_y: AxisTable,
    /// Mean of the cell.
    pub mean: f64,
    /// Range of the image, lowest to highest value.
    pub range: f64,
}

impl CellImage {
    /// The cell at these pitches, through the optics.
    pub fn new(pitch_x: f64, pitch_y: f64, optics: Optics) -> Self {
        let along_x = AxisTable::new(CELL.each_ref().map(|t| t.along_x), pitch_x, optics);
        let along_y = AxisTable::new(CELL.each_ref().map(|t| t.along_y), pitch_y, optics);
        let mean = rectangles()
            .map(|(x, y)| (x.end - x.start) * (y.end - y.start) * x.level * y.level)
            .sum();
        let steps = |i| i * (u64::MAX / EXTREME_STEPS);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for y in (0..EXTREME_STEPS).map(steps) {
            let rows = along_y.at(y);
            for x in (0..EXTREME_STEPS).map(steps) {
                let columns = along_x.at(x);
                let value: f32 = columns.iter().zip(rows).map(|(c, r)| c * r).sum();
                low = low.min(f64::from(value));
                high = high.max(f64::from(value));
            }
        }
        Self {
            along_x,
            along_y,
            mean,
            range: high - low,
        }
    }
}
