//! Reads a packed mask into labelled runs.

use super::forest::Forest;
use super::{Blob, Run};
use std::ops::Range;

/// Bytes of a word.
const WORD: usize = 8;
/// Bytes of a block; a clear block is skipped at once.
const BLOCK: usize = 8 * WORD;

/// Working memory of a scan. Each label stands for a part of a component.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Sets of labels: one set per component.
    labels: Forest,
    /// The blob of each label.
    blobs: Vec<Blob>,
    /// Columns where the current row changes; the first change is from clear to marked.
    edges: Vec<u32>,
}

impl Scan {
    /// Fills `runs` with the runs of a packed mask in scan order, with a label in `defect`. Joins
    /// the labels of runs that touch along an edge or at a corner.
    ///
    /// Linear in bytes and runs; near-linear in joins.
    pub(super) fn read(
        &mut self,
        mask: &[u8],
        stride: usize,
        width: usize,
        height: usize,
        runs: &mut Vec<Run>,
    ) {
        self.labels.reset(0);
        self.blobs.clear();
        runs.clear();
        let row_len = width.div_ceil(8);
        let mut above = 0..0;
        for (y, row) in mask.chunks(stride.max(1)).take(height).enumerate() {
            let row = row.get(..row_len).unwrap_or_default();
            self.edges.clear();
            find_edges(row, width, &mut self.edges);
            let start = runs.len();
            self.connect(y as u32, above, runs);
            above = start..runs.len();
        }
    }

    /// Sums up the components. Returns the component of each label (may be overwritten), and one
    /// blob per component, in the scan order of their first pixels.
    pub(super) fn components(&mut self) -> (&mut [u32], &mut Vec<Blob>) {
        self.labels.fold(&mut self.blobs);
        (self.labels.numbers(), &mut self.blobs)
    }

    /// Appends the runs of row `y`. A run that touches runs of the row before (`above`) takes their
    /// label.
    fn connect(&mut self, y: u32, above: Range<usize>, runs: &mut Vec<Run>) {
        let mut first = above.start;
        for edge in self.edges.chunks_exact(2) {
            let (x0, x1) = (edge[0], edge[1]);
            // Ends are half-open: a run that ends at `x0` touches this run at a corner.
            while first < above.end && runs[first].x1 < x0 {
                first += 1;
            }
            let blob = Blob::of_run(x0, x1, y);
            let label = if first < above.end && runs[first].x0 <= x1 {
                let mut label = self.labels.root(runs[first].defect);
                // The last run that touches this one may also touch the next one.
                while first + 1 < above.end && runs[first + 1].x0 <= x1 {
                    first += 1;
                    label = self.labels.join(label, runs[first].defect);
                }
                self.blobs[label as usize].add(&blob);
                label
            } else {
                self.blobs.push(blob);
                self.labels.grow()
            };
            runs.push(Run {
                x0,
                x1,
                y,
                defect: label,
            });
        }
    }
}

/// Appends the columns where a packed row changes. Their number is even, because the row counts as
/// clear past the width.
///
/// `row` holds `ceil(width / 8)` bytes, or nothing.
fn find_edges(row: &[u8], width: usize, edges: &mut Vec<u32>) {
    // 1 where the pixel before the word is marked.
    let mut before = 0;
    let mut x = 0;
    let (whole, rest) = row.split_at(row.len().min(width / 64 * WORD));
    for block in whole.chunks(BLOCK) {
        let (words, _) = block.as_chunks::<WORD>();
        let any = words
            .iter()
            .fold(0, |any, word| any | u64::from_ne_bytes(*word));
        if any | before == 0 {
            x += 64 * words.len() as u32;
            continue;
        }
        for word in words {
            before = edges_of_word(u64::from_be_bytes(*word), before, x, edges);
            x += 64;
        }
    }
    if !rest.is_empty() {
        let mut bytes = [0; WORD];
        bytes[..rest.len()].copy_from_slice(rest);
        // 1 to 63 pixels are left; bits after them are ignored.
        let word = u64::from_be_bytes(bytes) & !(u64::MAX >> (width % 64));
        before = edges_of_word(word, before, x, edges);
    }
    if before != 0 {
        edges.push(width as u32);
    }
}

/// Appends the columns where a word of 64 pixels, starting at column `x`, changes. `before` is 1 if
/// the pixel before the word is marked. Returns the word's last pixel.
fn edges_of_word(word: u64, before: u64, x: u32, edges: &mut Vec<u32>) -> u64 {
    let mut changes = word ^ ((word >> 1) | (before << 63));
    while changes != 0 {
        let at = changes.leading_zeros();
        edges.push(x + at);
        changes ^= 1 << (63 - at);
    }
    word & 1
}
