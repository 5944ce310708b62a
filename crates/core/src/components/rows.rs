//! Rows of a packed mask as 64-bit words. Column 0 is the highest bit of the first word.

use super::Run;

/// Bytes of a word.
const WORD: usize = 8;
/// Columns of a word.
pub(super) const BITS: usize = 64;

/// Words of a row.
pub(super) fn words_of(width: usize) -> usize {
    width.div_ceil(BITS)
}

/// A packed mask.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mask<'a> {
    pub bytes: &'a [u8],
    /// Bytes from a row to the next.
    pub stride: usize,
    /// Columns.
    pub width: usize,
}

impl<'a> Mask<'a> {
    /// Reads row `y` into `row`; a row that does not lie completely in the bytes is clear. Returns whether a pixel is
    /// marked. `row` holds [`words_of`] words; bits past the width are clear.
    // A call costs as much as a row of few spans.
    #[inline(always)]
    pub(super) fn read(&self, y: usize, row: &mut [u64]) -> bool {
        // Most rows are clear, and this is several times faster than the conversion below.
        let bytes = self.bytes_of(y).filter(|bytes| is_set(bytes));
        let Some(bytes) = bytes else {
            row.fill(0);
            return false;
        };
        let (whole, rest) = bytes.as_chunks::<WORD>();
        let mut any = 0;
        for (word, bytes) in row.iter_mut().zip(whole) {
            *word = u64::from_be_bytes(*bytes);
            any |= *word;
        }
        if let Some(last) = row.last_mut() {
            if !rest.is_empty() {
                let mut bytes = [0; WORD];
                bytes[..rest.len()].copy_from_slice(rest);
                *last = u64::from_be_bytes(bytes);
            }
            let before = any;
            *last &= inside(self.width);
            // The last word may have been only bits past the width.
            any = before | *last;
        }
        any != 0
    }

    /// The bytes of row `y`, if they all lie in the mask.
    pub(super) fn bytes_of(&self, y: usize) -> Option<&'a [u8]> {
        let len = self.width.div_ceil(8);
        let start = y.checked_mul(self.stride)?;
        self.bytes
            .get(start..start.checked_add(len)?)
            .filter(|_| self.stride >= len)
    }
}

/// Whether a byte is set.
pub(super) fn is_set(bytes: &[u8]) -> bool {
    let (whole, rest) = bytes.as_chunks::<WORD>();
    let set = whole
        .iter()
        .fold(0, |set, word| set | u64::from_ne_bytes(*word));
    set != 0 || rest.iter().any(|&byte| byte != 0)
}

/// The bits of a row's last word that lie inside the width.
pub(super) fn inside(width: usize) -> u64 {
    u64::MAX << ((BITS - width % BITS) % BITS)
}

/// The number of runs of a row.
pub(super) fn count_runs(row: &[u64]) -> usize {
    let mut before = 0;
    let mut runs = 0;
    for &word in row {
        runs += (word & !(word >> 1 | before << 63)).count_ones() as usize;
        before = word;
    }
    runs
}

/// Writes the columns where a row changes, and returns their number, which is even: the row counts as
/// clear before its first and past its last column. `edges` holds at least `width + 1` columns.
// As for `Mask::read`.
#[inline(always)]
pub(super) fn find_edges(row: &[u64], width: usize, edges: &mut [u32]) -> usize {
    let mut before = 0;
    let mut count = 0;
    let mut x = 0;
    for &word in row {
        // Column 0 becomes the lowest bit, which is cheaper to clear.
        let mut changes = (word ^ (word >> 1 | before << 63)).reverse_bits();
        while changes != 0 {
            if let Some(edge) = edges.get_mut(count) {
                *edge = x + changes.trailing_zeros();
            }
            count += 1;
            changes &= changes - 1;
        }
        before = word;
        x += BITS as u32;
    }
    if count % 2 == 1 {
        if let Some(edge) = edges.get_mut(count) {
            *edge = width as u32;
        }
        count += 1;
    }
    count
}

/// Calls `visit` with each word that the columns `x0..x1` touch and the bits of these columns.
pub(super) fn for_words(x0: u32, x1: u32, mut visit: impl FnMut(usize, u64)) {
    let (mut x, end) = (x0 as usize, x1 as usize);
    while x < end {
        let word = x / BITS;
        let stop = end.min((word + 1) * BITS);
        let bits = u64::MAX >> (x % BITS);
        let bits = bits & (u64::MAX << ((BITS - stop % BITS) % BITS));
        visit(word, bits);
        x = stop;
    }
}

/// The number of marked pixels in the columns `x0..x1`.
pub(super) fn count(row: &[u64], x0: u32, x1: u32) -> u64 {
    let mut count = 0;
    for_words(x0, x1, |word, bits| {
        count += u64::from((row[word] & bits).count_ones());
    });
    count
}

/// Adds the runs of the marked pixels in the columns `x0..x1`, each like `run`. Columns of different words are
/// different runs, except where a pixel of one word touches a pixel of the next.
pub(super) fn add_runs(row: &[u64], x0: u32, x1: u32, run: Run, runs: &mut Vec<Run>) {
    let mut next = Run {
        x1: u32::MAX,
        ..run
    };
    for_words(x0, x1, |word, bits| {
        let marked = row[word] & bits;
        if marked == 0 {
            return;
        }
        let start = (word * BITS) as u32;
        let first = start + marked.leading_zeros();
        let end = start + BITS as u32 - marked.trailing_zeros();
        if next.x1 != first {
            if next.x1 != u32::MAX {
                runs.push(next);
            }
            next.x0 = first;
        }
        next.x1 = end;
    });
    if next.x1 != u32::MAX {
        runs.push(next);
    }
}

/// Clears some columns of a row.
pub(super) fn remove(row: &mut [u64], columns: &[u64]) {
    for (row, columns) in row.iter_mut().zip(columns) {
        *row &= !columns;
    }
}
