//! Components whose boxes are near each other.
//!
//! Each box, grown by the distance to the right and downward, shares a pixel with those and only
//! those grown boxes that are near it. A sweep goes down over the top rows. For every column it
//! knows how far down the grown boxes so far reach, and a component of the set that reaches
//! farthest; equal columns are one piece. A box joins what its columns hold, which is one set from
//! then on, so that only the deepest of it has to be kept.
//!
//! A box costs the pieces that it covers for good, of which each box makes at most two, and those
//! in its columns that reach deeper than itself. The latter are few unless many narrow boxes of
//! different depths stand side by side: all boxes together cost no more than the marked pixels
//! plus the distance times the components.

use super::Blob;
use super::columns::Columns;
use super::forest::Forest;

/// The deepest of the grown boxes that some columns have met.
#[derive(Debug, Clone, Copy, Default)]
struct Piece {
    /// One past its last row; 0 where there was no box yet.
    end: u32,
    /// A component of its set.
    component: u32,
}

/// Working memory of the sweep: the columns, cut into pieces.
#[derive(Debug, Default)]
pub(super) struct Nearby {
    /// First columns of pieces; column 0 is always one.
    starts: Columns,
    /// By first column; elsewhere without meaning.
    pieces: Vec<Piece>,
}

impl Nearby {
    /// Makes one set of the components whose boxes are at most `distance` pixels apart along x
    /// and along y, transitively.
    ///
    /// `blobs` are in scan order, and so by their top rows, in a frame of `width` × `height`.
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
            // Cut to the frame: below and beyond it is no box to meet, and what reaches its end
            // is equally deep and needs one piece.
            let right = blob.x1.saturating_add(distance).min(width as u32);
            let end = blob.y1.saturating_add(distance).min(height as u32);
            let piece = Piece { end, component };
            self.lay(blob.x0, right, blob.y0, piece, components);
        }
    }

    /// Joins a grown box with what its columns `left..right` hold at its row `top`, and lays it
    /// over those pieces that do not reach deeper.
    fn lay(&mut self, left: u32, right: u32, top: u32, mut own: Piece, components: &mut Forest) {
        // Column 0 is always a start.
        let mut start = self.starts.at_or_before(left).unwrap_or(0);
        // The piece before is of the same set and depth, so that this one can be a part of it.
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
                // What the piece held past the box is a piece of its own now.
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

    /// Rectangles of any size and place, by their top rows. Unlike boxes of components they lie
    /// across each other, too.
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

    /// Whether the nearest pixels are at most `distance` apart.
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
