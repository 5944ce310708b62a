//! Reference of `clunpack`: packed samples, and the colours of Bayer samples.
//!
//! Source: docs/semantics.md, "What cameras send".

use crate::plane::Samples;

/// Sample `x` of the row that begins with the first of `bytes`; `format` is the name in the Pixel Format Naming
/// Convention.
pub fn sample(bytes: &[u8], format: &str, x: usize) -> u32 {
    let byte = |at: usize| u32::from(bytes[at]);
    let stream = |bits: usize| {
        let bit = |at: usize| byte(at / 8) >> (at % 8) & 1;
        (0..bits).map(|k| bit(bits * x + k) << k).sum()
    };
    let first = x / 2 * 3;
    let (a, b, c) = (first, first + 1, first + 2);
    match (format, x % 2) {
        ("Mono10p", _) => stream(10),
        ("Mono12p", _) => stream(12),
        ("Mono10Packed", 0) => byte(a) * 4 + byte(b) % 4,
        ("Mono10Packed", _) => byte(c) * 4 + byte(b) / 16 % 4,
        ("Mono12Packed", 0) => byte(a) * 16 + byte(b) % 16,
        ("Mono12Packed", _) => byte(c) * 16 + byte(b) / 16,
        _ => panic!("{format} is not packed"),
    }
}

/// A picture of Bayer samples.
#[derive(Clone, Copy)]
pub struct Bayer<'a> {
    /// The samples.
    pub samples: Samples<'a>,
    /// Bits of a sample; those above are ignored.
    pub bits: u32,
    /// The first letters of red, green and blue: of two samples of the first row, then of the second.
    pub pattern: &'a str,
    /// The method of Malvar, He and Cutler instead of the bilinear one.
    pub gradient: bool,
}

/// The nearest samples of one colour that stand around a pixel, relative to the pixel.
const HORIZONTAL: [[i64; 2]; 2] = [[-1, 0], [1, 0]];
const VERTICAL: [[i64; 2]; 2] = [[0, -1], [0, 1]];
const CROSS: [[i64; 2]; 4] = [[-1, 0], [1, 0], [0, -1], [0, 1]];
const DIAGONAL: [[i64; 2]; 4] = [[-1, -1], [1, -1], [-1, 1], [1, 1]];

impl Bayer<'_> {
    /// The sample in a column and row, which may lie outside the picture.
    fn at(&self, [x, y]: [i64; 2]) -> i64 {
        let mirrored = |at: i64, length: usize| -> usize {
            let last = length as i64 - 1;
            let inside = if at < 0 {
                -at
            } else if at > last {
                2 * last - at
            } else {
                at
            };
            inside as usize
        };
        let [column, row] = [
            mirrored(x, self.samples.width),
            mirrored(y, self.samples.height),
        ];
        i64::from(self.samples.get(column, row)) % (1 << self.bits)
    }

    /// The colour of the sample in a column and row: b, g or r.
    fn colour(&self, [x, y]: [i64; 2]) -> u8 {
        self.pattern.as_bytes()[(y.rem_euclid(2) * 2 + x.rem_euclid(2)) as usize]
    }

    /// The colour `wanted` of the pixel in column x of row y.
    fn value(&self, wanted: u8, x: usize, y: usize) -> u32 {
        let place = [x as i64, y as i64];
        let beside = |[dx, dy]: [i64; 2]| [place[0] + dx, place[1] + dy];
        if self.colour(place) == wanted {
            return self.at(place) as u32;
        }
        // The nearest places of the colour: beside, above and below, all four of these, or diagonal.
        let choices: [&[[i64; 2]]; 4] = [&CROSS, &HORIZONTAL, &VERTICAL, &DIAGONAL];
        let has = |places: &[[i64; 2]]| places.iter().all(|&at| self.colour(beside(at)) == wanted);
        let nearest = choices
            .into_iter()
            .find(|places| has(places))
            .expect("a pattern of two rows and two columns");
        let sum =
            |places: &[[i64; 2]]| -> i64 { places.iter().map(|&at| self.at(beside(at))).sum() };
        let count = nearest.len() as i64;
        if !self.gradient {
            return ((sum(nearest) + count / 2) / count) as u32;
        }
        // Weights in 1/16 of the samples in the pixel's row, column and diagonals.
        let two = |places: &[[i64; 2]]| -> Vec<[i64; 2]> {
            places.iter().map(|&[dx, dy]| [2 * dx, 2 * dy]).collect()
        };
        let own = self.at(place);
        let weighted = if nearest == CROSS {
            8 * own + 4 * sum(&CROSS) - 2 * sum(&two(&CROSS))
        } else if nearest == DIAGONAL {
            12 * own + 4 * sum(&DIAGONAL) - 3 * sum(&two(&CROSS))
        } else {
            let across: &[[i64; 2]] = if nearest == HORIZONTAL {
                &VERTICAL
            } else {
                &HORIZONTAL
            };
            10 * own + 8 * sum(nearest) - 2 * sum(&two(nearest)) - 2 * sum(&DIAGONAL)
                + sum(&two(across))
        };
        (weighted + 8).div_euclid(16).clamp(0, (1 << self.bits) - 1) as u32
    }

    /// Red, green and blue of the pixel in column x of row y.
    pub fn pixel(&self, x: usize, y: usize) -> [u32; 3] {
        [b'r', b'g', b'b'].map(|colour| self.value(colour, x, y))
    }

    /// The luma of the pixel in column x of row y.
    pub fn luma(&self, x: usize, y: usize) -> u32 {
        let [red, green, blue] = self.pixel(x, y);
        (77 * red + 150 * green + 29 * blue + 128) / 256
    }
}
