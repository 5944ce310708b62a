//! Joins components whose boxes are near each other.
//!
//! Every box is grown by the distance, to the right and downward. Two boxes are near exactly if the
//! grown boxes share a pixel. A sweep visits the boxes by their top rows. For every column it keeps
//! the grown box that reaches farthest down: its last row, and a component of its set. Adjacent
//! columns with equal values form a piece. A new box is joined with every piece in its columns that
//! reaches its top row. From then on these are one set, so keeping the deepest box per column
//! suffices.
//!
//! Time: a box visits the pieces that it replaces and the pieces in its columns that reach deeper.
//! Each box makes at most two pieces. Deeper pieces are few unless many narrow boxes of different
//! depths stand side by side. All boxes together cost at most the marked pixels plus the distance
//! times the components.

use super::Blob;
use super::columns::Columns;
use super::forest::Forest;

/// The grown box that reaches farthest down in some adjacent columns.
#[derive(Debug, Clone, Copy, Default)]
struct Piece {
    /// One past the last row; 0 before the first box.
    end: u32,
    /// A component of the box's set.
    component: u32,
}

/// Working memory of the sweep: the columns, cut into pieces.
#[derive(Debug, Default)]
pub(super) struct Nearby {
    /// First columns of the pieces; always includes column 0.
    starts: Columns,
    /// By first column; other entries are unused.
    pieces: Vec<Piece>,
}

impl Nearby {
    /// Joins the components whose boxes are at most `distance` pixels apart along x and along y,
    /// transitively.
    ///
    /// `blobs` are in scan order, hence by top row, in a frame of `width` × `height`.
    pub(super) fn join(
        &mut self,
        blobs: &[Blob],
        width: usize,
        height: usize,
        distance: u32,
        components: &mut Forest,
    ) {
        components.reset(blobs.len());
        self.starts.reset(width);
        self.pieces.resize(width, Piece::default());
        if let Some(first) = self.pieces.first_mut() {
            *first = Piece::default();
            self.starts.insert(0);
        }
        for (component, blob) in (0..).zip(blobs) {
            // Clip to the frame: no box lies outside, and boxes clipped at the last row are equally
            // deep, so they can share a piece.
            let right = blob.x1.saturating_add(distance).min(width as u32);
            let end = blob.y1.saturating_add(distance).min(height as u32);
            let piece = Piece { end, component };
            self.lay(blob.x0, right, blob.y0, piece, components);
        }
    }

    /// Joins a grown box of columns `left..right` with the pieces there that reach its row `top`,
    /// and replaces the pieces that do not reach deeper.
    fn lay(&mut self, left: u32, right: u32, top: u32, mut own: Piece, components: &mut Forest) {
        // Column 0 is always a start.
        let mut start = self.starts.at_or_before(left).unwrap_or(0);
        // Whether the piece before has the same set and depth and can absorb this one.
        let mut extend = false;
        loop {
            let old = self.pieces[start as usize];
            let next = self.starts.after(start).unwrap_or(u32::MAX);
            if old.end > top {
                own.component = components.join(own.component, old.component);
            }
            if old.end > own.end {
                extend = false;
            } else if extend {
                self.starts.remove(start);
            } else {
                extend = true;
                if old.end < own.end {
                    start = start.max(left);
                    self.starts.insert(start);
                    self.pieces[start as usize] = own;
                }
            }
            if next >= right {
                // The part of the old piece to the right of the box becomes a piece of its own.
                if old.end < own.end && next > right && (right as usize) < self.pieces.len() {
                    self.starts.insert(right);
                    self.pieces[right as usize] = old;
                }
                return;
            }
            start = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: u32 = 90;
    const HEIGHT: u32 = 50;

    /// Random rectangles, sorted by top row. They may cross, which boxes of components cannot.
    fn rectangles(seed: u32) -> Vec<Blob> {
        let mut state = seed;
        let mut below = |n: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % n
        };
        let mut blobs: Vec<Blob> = (0..2 + below(30))
            .map(|_| {
                let (x0, y0) = (below(WIDTH), below(HEIGHT));
                let largest = [3, 12, 60][below(3) as usize];
                Blob {
                    x1: (x0 + 1 + below(largest)).min(WIDTH),
                    y1: (y0 + 1 + below(20)).min(HEIGHT),
                    ..Blob::of_run(x0, x0 + 1, y0)
                }
            })
            .collect();
        blobs.sort_by_key(|blob| blob.y0);
        blobs
    }

    /// Whether the nearest pixels of two boxes are at most `distance` apart.
    fn near(a: &Blob, b: &Blob, distance: u32) -> bool {
        let apart = |a0: u32, a1: u32, b0: u32, b1: u32| {
            let (left_end, right_start) = (a1.min(b1) - 1, a0.max(b0));
            right_start.saturating_sub(left_end) <= distance
        };
        apart(a.x0, a.x1, b.x0, b.x1) && apart(a.y0, a.y1, b.y0, b.y1)
    }

    #[test]
    fn join_any_rectangles_equals_all_pairs() {
        let mut nearby = Nearby::default();
        let (mut swept, mut paired) = (Forest::default(), Forest::default());
        for seed in 0..3000 {
            let blobs = rectangles(seed);
            let distance = [0, 1, 2, 5, 17][seed as usize % 5];
            nearby.join(
                &blobs,
                WIDTH as usize,
                HEIGHT as usize,
                distance,
                &mut swept,
            );
            paired.reset(blobs.len());
            for (i, a) in (0..).zip(&blobs) {
                for (j, b) in (0..i).zip(&blobs) {
                    if near(a, b, distance) {
                        let root = paired.root(i);
                        paired.join(root, j);
                    }
                }
            }
            for i in 0..blobs.len() as u32 {
                assert_eq!(
                    swept.root(i),
                    paired.root(i),
                    "{i} of {blobs:?} at {distance}"
                );
            }
        }
    }
}
