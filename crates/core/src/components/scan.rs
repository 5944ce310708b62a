//! From the packed mask to labelled runs.

use super::forest::Forest;
use super::{Blob, Run};
use std::ops::Range;

/// Bytes of a word.
const WORD: usize = 8;
/// Bytes that are looked at together for being clear.
const BLOCK: usize = 8 * WORD;

/// Working memory of a scan: labels, each a part of a component, and their blobs.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Over labels: those that touch are one tree.
    labels: Forest,
    /// One per label.
    blobs: Vec<Blob>,
    /// Columns where the current row changes, from clear to marked first.
    edges: Vec<u32>,
}

impl Scan {
    /// Writes the runs of a packed mask in scan order, `defect` being a label, and joins labels
    /// of runs that touch along an edge or a corner.
    ///
    /// Linear in the mask's bytes and runs, but for the near-linear joining.
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

    /// Adds up the components: the number of each label's component, which may be overwritten,
    /// and one blob per component in the scan order of their first pixels.
    pub(super) fn components(&mut self) -> (&mut [u32], &mut Vec<Blob>) {
        self.labels.fold(&mut self.blobs);
        (self.labels.numbers(), &mut self.blobs)
    }

    /// Appends the runs of row `y`, each with the label of what it touches among those `above`,
    /// the runs of the row before.
    fn connect(&mut self, y: u32, above: Range<usize>, runs: &mut Vec<Run>) {
        let mut first = above.start;
        for edge in self.edges.chunks_exact(2) {
            let (x0, x1) = (edge[0], edge[1]);
            // Half-open, so that equal ends touch at a corner.
            while first < above.end && runs[first].x1 < x0 {
                first += 1;
            }
            let blob = Blob::of_run(x0, x1, y);
            let label = if first < above.end && runs[first].x0 <= x1 {
                let mut label = self.labels.root(runs[first].defect);
                // The last one that touches may touch the next run too.
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

/// Writes the columns where a packed row changes; an even number, as past the width it is clear.
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
        // 1 to 63 pixels are left; what the row holds after them has no meaning.
        let word = u64::from_be_bytes(bytes) & !(u64::MAX >> (width % 64));
        before = edges_of_word(word, before, x, edges);
    }
    if before != 0 {
        edges.push(width as u32);
    }
}

/// Writes the columns where a word of 64 pixels from column `x` changes, `before` being 1 where
/// the pixel before it is marked; returns its last pixel.
fn edges_of_word(word: u64, before: u64, x: u32, edges: &mut Vec<u32>) -> u64 {
    let mut changes = word ^ ((word >> 1) | (before << 63));
    while changes != 0 {
        let at = changes.leading_zeros();
        edges.push(x + at);
        changes ^= 1 << (63 - at);
    }
    word & 1
}
