//! Widens pixels so that near ones touch.

use super::rows::{BITS, inside};

/// Widens every pixel to the `distance` columns right of it and the `distance` rows below.
///
/// Two boxes of `distance + 1` columns and rows touch exactly if the distance of their pixels is at
/// most `distance + 1` columns and rows. The widened mask therefore has one 8-connected component per
/// defect. Columns past the width are not needed: where two boxes touch, they touch left of the
/// pixel that lies farther right.
///
/// A column counts down the rows for which its newest pixel still reaches. The counters of 64 columns
/// are kept as one word per binary digit, so that a step handles 64 columns at once.
#[derive(Debug, Default)]
pub(super) struct Dilate {
    distance: u32,
    /// For each word of a row the digits, lowest first.
    digits: Vec<u64>,
}

impl Dilate {
    /// Forgets all pixels.
    pub(super) fn clear(&mut self) {
        self.digits.clear();
    }

    /// Prepares for rows of `words` words. Pixels that were seen with another distance are forgotten.
    pub(super) fn prepare(&mut self, words: usize, distance: u32) {
        if distance != self.distance {
            self.clear();
            self.distance = distance;
        }
        self.digits.resize(words * self.digits_per_word(), 0);
    }

    fn digits_per_word(&self) -> usize {
        (u32::BITS - self.distance.leading_zeros()) as usize
    }

    /// Replaces a row of pixels, the next one of the web, by the widened row. Returns whether a bit is
    /// set.
    pub(super) fn step(&mut self, row: &mut [u64], width: usize) -> bool {
        if row.iter().any(|&word| word != 0) {
            widen(row, width, self.distance);
        }
        let mut any = 0;
        let count = self.digits_per_word().max(1);
        for (word, digits) in row.iter_mut().zip(self.digits.chunks_exact_mut(count)) {
            let marked = *word;
            let running = digits.iter().fold(0, |running, digit| running | *digit);
            if marked | running != 0 {
                count_down(digits, running, marked, self.distance);
                *word = marked | running;
                any |= *word;
            }
        }
        any != 0
    }

    /// Moves the counters of some columns to `other`, which is prepared alike.
    pub(super) fn take(&mut self, columns: &[u64], other: &mut Self) {
        let count = self.digits_per_word().max(1);
        let own = self.digits.chunks_exact_mut(count);
        let other = other.digits.chunks_exact_mut(count);
        for ((own, other), columns) in own.zip(other).zip(columns) {
            for (own, other) in own.iter_mut().zip(other) {
                *other = *other & !columns | *own & columns;
                *own &= !columns;
            }
        }
    }
}

/// Takes 1 from the counters of the columns that are `running`, and starts those of `marked` columns
/// at `distance`.
fn count_down(digits: &mut [u64], running: u64, marked: u64, distance: u32) {
    let mut borrow = running;
    for (i, digit) in digits.iter_mut().enumerate() {
        let less = *digit ^ borrow;
        borrow &= !*digit;
        let start = if distance >> i & 1 == 1 { marked } else { 0 };
        *digit = less & !marked | start;
    }
}

/// Marks the `distance` columns right of every pixel.
fn widen(row: &mut [u64], width: usize, distance: u32) {
    let distance = (distance as usize).min(width);
    let mut reach = 0;
    while reach < distance {
        let step = (reach + 1).min(distance - reach);
        shift_in(row, step);
        reach += step;
    }
    if let Some(last) = row.last_mut() {
        *last &= inside(width);
    }
}

/// Marks the pixels that lie `columns` right of a pixel.
fn shift_in(row: &mut [u64], columns: usize) {
    let (words, bits) = (columns / BITS, columns % BITS);
    for at in (words..row.len()).rev() {
        let mut shifted = row[at - words] >> bits;
        if bits > 0 && at > words {
            shifted |= row[at - words - 1] << (BITS - bits);
        }
        row[at] |= shifted;
    }
}
