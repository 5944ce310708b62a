//! Exact sums over the pixels of a defect, and the features computed from them.

use super::{
    COMPONENTS, CONTINUED, CUT, MeasuredDefect, RunDifference,
    rows::{BITS, for_words},
};
use crate::kernels::mask_expand::FIRST_LEVEL;

/// Differences are summed in units of 1/131072 grey level.
const DIFFERENCE_UNITS: f64 = 131_072.0;
/// Those of a [`RunDifference`] that is not fine are 1/512 grey level.
const TO_FINE: i64 = 256;
/// Bit of [`RunDifference::signs`]: the pattern is missing at a pixel.
const MISSING: u32 = 8;
/// Bits of [`RunDifference::signs`] with the signs of the pixels.
const SIGNS: u32 = 7;
/// Their values if every pixel is brighter, or every pixel is darker.
const ALL_BRIGHT: u32 = 1;
const ALL_DARK: u32 = 2;

/// Sums over the pixels of a defect in one row, or in some columns of the row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowSums {
    pub x0: u32,
    pub x1: u32,
    pub area: u64,
    pub x: u64,
    pub xx: u64,
    /// Pixel sides that the row adds to the boundary: less than 0 where the row closes gaps of the row
    /// above.
    pub sides: i64,
}

impl RowSums {
    /// The sums of the marked pixels in the columns `x0..x1` of a row. Pixels left and right of the columns are
    /// clear, or are not of the defect and do not touch it. Sums of squares fit while a row has less than 2²¹
    /// columns.
    pub(super) fn of_columns(row: &[u64], above: &[u64], x0: u32, x1: u32) -> Self {
        let mut sums = Self {
            x0: u32::MAX,
            ..Self::default()
        };
        let (mut runs, mut both) = (0, 0);
        let mut before = 0;
        for_words(x0, x1, |word, bits| {
            let marked = row[word] & bits;
            if marked != 0 {
                let start = (word * BITS) as u32;
                sums.x0 = sums.x0.min(start + marked.leading_zeros());
                sums.x1 = start + BITS as u32 - marked.trailing_zeros();
                sums.add_word(u64::from(start), marked);
                runs += (marked & !(marked >> 1 | before << 63)).count_ones();
                both += u64::from((marked & above[word]).count_ones());
            }
            before = marked;
        });
        sums.sides = 2 * (i64::from(runs) + sums.area as i64 - both as i64);
        sums
    }

    /// Adds the pixels of a word whose first column is `start`; there is one.
    fn add_word(&mut self, start: u64, marked: u64) {
        let first = start + u64::from(marked.leading_zeros() & !7);
        let [count, x, xx] = sums_of(marked);
        self.area += count;
        self.x += first * count + x;
        self.xx += first * (first * count + 2 * x) + xx;
    }
}

/// The number of a word's pixels, the sum of their columns, and the sum of the squares. Columns count from the first
/// byte with a pixel; there is one.
fn sums_of(marked: u64) -> [u64; 3] {
    if marked == u64::MAX {
        return [64, 2016, 85_344];
    }
    // From the last byte with a pixel to the first one, which is byte 0. `all` are the sums of the bytes, `by_i` these
    // sums times the byte's number i, and `by_pair` times i (i - 1) / 2.
    let mut bytes = marked >> (marked.trailing_zeros() & !7);
    let (mut all, mut by_i, mut by_pair) = (0, 0, 0);
    while bytes != 0 {
        by_pair += by_i;
        by_i += all;
        all += BYTES[(bytes & 0xff) as usize];
        bytes >>= 8;
    }
    let [count, sum, squares] = parts(all);
    let [count_i, sum_i, _] = parts(by_i);
    let [count_pair, ..] = parts(by_pair);
    // The column of pixel x of byte i is 8 i + x.
    let x = 8 * count_i + sum;
    let xx = 64 * (2 * count_pair + count_i) + 16 * sum_i + squares;
    [count, x, xx]
}

/// By byte of a mask: the number of its pixels, the sum of their columns, and the sum of the squares, in 16 bits each.
/// The sums over eight bytes with their weights fit: at most 56 * 140.
const BYTES: [u64; 256] = {
    let mut sums = [0; 256];
    let mut byte = 0;
    while byte < sums.len() {
        let mut x = 0;
        while x < 8 {
            if byte & 0x80 >> x != 0 {
                sums[byte] += 1 | x << 16 | (x * x) << 32;
            }
            x += 1;
        }
        byte += 1;
    }
    sums
};

/// The three sums in an entry of [`BYTES`], or in a sum of entries.
fn parts(sums: u64) -> [u64; 3] {
    [sums & 0xffff, (sums >> 16) & 0xffff, sums >> 32]
}

/// Sums over the pixels of a defect. Rows count from the strip's row 0, so they are negative in earlier
/// strips; the moments count rows from the defect's first row, so that they do not depend on the strip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub first_row: i64,
    /// The last row with a pixel.
    last_row: i64,
    x0: u32,
    x1: u32,
    pub area: u64,
    x: u128,
    y: u128,
    xx: u128,
    yy: u128,
    xy: u128,
    sides: i64,
    /// By component of the colour; only the first one without components.
    differences: [Differences; COMPONENTS],
    pub flags: u16,
}

/// Sums over the pixels that a component marks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Differences {
    /// Their number; 0 without components.
    pixels: u64,
    sum: i128,
    peak: i64,
    /// Row and column of the run with the peak.
    peak_at: (i64, u32),
    signs: u32,
}

impl Differences {
    fn merge(&mut self, other: &Self) {
        self.pixels += other.pixels;
        self.sum += other.sum;
        self.signs |= other.signs;
        let (own, its) = (self.peak.unsigned_abs(), other.peak.unsigned_abs());
        if its > own || its == own && other.peak_at < self.peak_at {
            self.peak = other.peak;
            self.peak_at = other.peak_at;
        }
    }

    fn add(&mut self, at: (i64, u32), run: &RunDifference, pixels: u32) {
        self.pixels += u64::from(pixels);
        let times = if run.is_fine > 0 { 1 } else { TO_FINE };
        let peak = times * run.peak;
        self.sum += i128::from(times) * i128::from(run.sum);
        self.signs |= run.signs;
        // The first of equal ones stays.
        if peak.unsigned_abs() > self.peak.unsigned_abs() {
            self.peak = peak;
            self.peak_at = at;
        }
    }
}

impl Sums {
    /// No pixels yet; the first one lies in `first_row`.
    pub(super) fn new(first_row: i64) -> Self {
        Self {
            first_row,
            last_row: first_row,
            x0: u32::MAX,
            ..Self::default()
        }
    }

    pub(super) fn add_row(&mut self, row: i64, sums: &RowSums) {
        let y = u128::from(row.abs_diff(self.first_row));
        let (area, x) = (u128::from(sums.area), u128::from(sums.x));
        self.last_row = self.last_row.max(row);
        self.x0 = self.x0.min(sums.x0);
        self.x1 = self.x1.max(sums.x1);
        self.area += sums.area;
        self.x += x;
        self.y += y * area;
        self.xx += u128::from(sums.xx);
        self.yy += y * y * area;
        self.xy += y * x;
        self.sides += sums.sides;
    }

    /// Adds the pixels of another defect, which does not begin above this one.
    pub(super) fn merge(&mut self, other: &Self) {
        let shift = u128::from(other.first_row.abs_diff(self.first_row));
        let area = u128::from(other.area);
        self.last_row = self.last_row.max(other.last_row);
        self.x0 = self.x0.min(other.x0);
        self.x1 = self.x1.max(other.x1);
        self.area += other.area;
        self.x += other.x;
        self.y += other.y + shift * area;
        self.xx += other.xx;
        self.yy += other.yy + 2 * shift * other.y + shift * shift * area;
        self.xy += other.xy + shift * other.x;
        self.sides += other.sides;
        for (own, its) in self.differences.iter_mut().zip(&other.differences) {
            own.merge(its);
        }
        self.flags |= other.flags;
    }

    /// Adds the differences of a run that begins at a row and column, after all earlier runs. `pixels`: those that the
    /// component marks, or 0 without components.
    pub(super) fn add_difference(
        &mut self,
        component: usize,
        at: (i64, u32),
        run: &RunDifference,
        pixels: u32,
    ) {
        if let Some(differences) = self.differences.get_mut(component) {
            differences.add(at, run, pixels);
        }
    }

    /// Counts rows from row `rows` of the strip: the next strip's row 0.
    pub(super) fn advance(&mut self, rows: i64) {
        self.first_row -= rows;
        self.last_row -= rows;
        for differences in &mut self.differences {
            differences.peak_at.0 -= rows;
        }
    }

    /// The component that marks the most pixels, the first of equal ones, and its number.
    fn strongest(&self) -> (&Differences, usize) {
        let [mut strongest, ref others @ ..] = self.differences.each_ref();
        let mut at = 0;
        for (number, differences) in (1..).zip(others) {
            if differences.pixels > strongest.pixels {
                (strongest, at) = (differences, number);
            }
        }
        (strongest, at)
    }

    pub(super) fn defect(&self) -> MeasuredDefect {
        let area = self.area.max(1);
        let twice = (2 * area) as f64;
        // Twice the pixel centres are integers, so each centroid is rounded once.
        let twice_x = (2 * self.x + u128::from(area)) as f64;
        let shift = 2 * i128::from(self.first_row) + 1;
        let twice_y = (2 * self.y as i128 + shift * i128::from(area)) as f64;
        let [xx, xy, yy] = self.central_moments();
        let spread = ((xx - yy) * (xx - yy) + 4.0 * xy * xy).sqrt();
        let axis = |twice_eigenvalue: f64| 4.0 * (twice_eigenvalue / 2.0).max(0.0).sqrt();
        let height = self.last_row - self.first_row + 1;
        let (differences, component) = self.strongest();
        let is_one_of_three = differences.pixels > 0;
        let measured = if is_one_of_three {
            differences.pixels
        } else {
            area
        };
        let mut signs = differences.signs;
        for other in &self.differences {
            signs |= other.signs & MISSING;
        }
        MeasuredDefect {
            x: i32::try_from(self.x0).unwrap_or(i32::MAX),
            y: i32::try_from(self.first_row).unwrap_or(i32::MIN),
            width: self.x1.saturating_sub(self.x0),
            height: u32::try_from(height).unwrap_or(u32::MAX),
            area: u32::try_from(self.area).unwrap_or(u32::MAX),
            centroid_x: twice_x / twice,
            centroid_y: twice_y / twice,
            mean_difference: differences.sum as f64 / (DIFFERENCE_UNITS * measured as f64),
            peak_difference: differences.peak as f64 / DIFFERENCE_UNITS,
            part: 0,
            component: is_one_of_three.then_some(component),
            is_missing: signs & MISSING != 0,
            level: match signs >> FIRST_LEVEL {
                0 => 0,
                levels => levels.trailing_zeros() as u8,
            },
            polarity: match signs & SIGNS {
                ALL_BRIGHT => 1,
                ALL_DARK => -1,
                _ => 0,
            },
            flags: self.flags & (CONTINUED | CUT),
            major_axis: axis(xx + yy + spread),
            minor_axis: axis(xx + yy - spread),
            orientation: 0.5 * (2.0 * xy).atan2(xx - yy),
            boundary_length: u32::try_from(self.sides).unwrap_or(u32::MAX),
        }
    }

    /// The second central moments along x, along both and along y, divided by the area.
    fn central_moments(&self) -> [f64; 3] {
        let area = u128::from(self.area.max(1));
        let moment = |second: u128, a: u128, b: u128| {
            let square = (area * area) as f64;
            match (area.checked_mul(second), a.checked_mul(b)) {
                // Each is exact, and so is the difference before it becomes a float.
                (Some(all), Some(mean)) => (all as i128 - mean as i128) as f64 / square,
                // Only beyond a million rows and columns.
                _ => {
                    second as f64 / area as f64
                        - (a as f64 / area as f64) * (b as f64 / area as f64)
                }
            }
        };
        [
            moment(self.xx, self.x, self.x),
            moment(self.xy, self.x, self.y),
            moment(self.yy, self.y, self.y),
        ]
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn sums_of_words_equal_those_of_their_pixels() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let noise = (0..20_000).map(|round| {
            let word: u64 = random.random();
            let more: u64 = random.random();
            [
                word,
                word | more,
                word & more,
                word >> (round % 64),
                word << (round % 64),
            ][round % 5]
        });
        let bits = (0..64).flat_map(|bit| [1 << bit, u64::MAX << bit, u64::MAX >> bit]);
        for word in noise.chain(bits).filter(|&word| word != 0) {
            let mut expected = [0; 3];
            for x in (0..64).filter(|x| word << x >> 63 == 1) {
                let x = x - u64::from(word.leading_zeros() / 8 * 8);
                expected = [expected[0] + 1, expected[1] + x, expected[2] + x * x];
            }
            assert_eq!(sums_of(word), expected, "{word:x}");
        }
    }
}
