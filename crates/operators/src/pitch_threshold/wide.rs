//! The launch of the wide kernels, `kernels/pitch_threshold_wide.cl`.

use clinspect_core::{ClError, ndrange::NdRange};
use clinspect_opencl::Arg;

use crate::to_i32;

/// Work-items per work-group of the wide kernel.
pub(super) const WIDE_GROUP: usize = 128;

/// The items of a frame: those at the left and the right edge, which also compare pixels that lack a
/// neighbour along x, have rows of the launch of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WideSplit {
    /// Rows of the frame per item.
    item_rows: usize,
    /// Items of a row at the left edge.
    left: usize,
    /// Items of a row in the interior.
    interior: usize,
    /// Items of a row at both edges.
    edge: usize,
    /// Rows of items.
    rows: usize,
}

impl WideSplit {
    /// Splits the items of `pixels` × `item_rows` pixels of a frame; `margin` is the largest number of
    /// pixels at an edge that are compared inward along x.
    pub fn new(
        [width, height]: [usize; 2],
        margin: usize,
        pixels: usize,
        item_rows: usize,
    ) -> Self {
        let across = width.div_ceil(pixels);
        let left = margin.div_ceil(pixels).min(across);
        let right_from = (width.saturating_sub(margin) / pixels).clamp(left, across);
        let right = if margin > 0 { across - right_from } else { 0 };
        Self {
            item_rows,
            left,
            interior: across - left - right,
            edge: left + right,
            rows: height.div_ceil(item_rows),
        }
    }

    /// The split for this number of judged rows.
    #[must_use]
    pub fn of_rows(self, rows: usize) -> Self {
        Self {
            rows: rows.div_ceil(self.item_rows),
            ..self
        }
    }

    /// Rows of the launch with interior items.
    fn interior_rows(&self) -> usize {
        if self.interior > 0 { self.rows } else { 0 }
    }

    /// Rows of the launch with edge items.
    fn edge_rows(&self, across: usize) -> usize {
        (self.edge * self.rows).div_ceil(across)
    }

    /// The launch with work-groups of `group` items; `tile_groups` work-groups sum up tiles.
    pub fn range(&self, group: usize, tile_groups: usize) -> NdRange {
        let across = self.interior.max(1).next_multiple_of(group);
        let tile_rows = tile_groups.div_ceil(across / group);
        NdRange {
            global: [
                across,
                tile_rows + self.edge_rows(across) + self.interior_rows(),
            ],
            local: Some([group, 1]),
        }
    }

    /// The kernel's arguments from `item_rows` to `tile_groups` for that launch.
    pub fn args(&self, group: usize, tile_groups: usize) -> Result<[Arg<'static>; 5], ClError> {
        let across = self.interior.max(1).next_multiple_of(group);
        let numbers = [self.left, self.interior, self.edge, self.edge_rows(across)];
        let [a, b, c, d] = numbers.map(|n| to_i32(n, "items"));
        let tile_rows = tile_groups.div_ceil(across / group);
        Ok([
            Arg::I32(to_i32(self.item_rows, "rows")?),
            Arg::I32x4([a?, b?, c?, d?]),
            Arg::I32(to_i32(tile_rows, "rows")?),
            Arg::I32(to_i32(self.rows, "rows")?),
            Arg::I32(to_i32(tile_groups, "work-groups")?),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_split_covers_every_item_once() {
        for width in 1..200 {
            for margin in [0, 1, 7, 16, 17, 60, 400] {
                let split = WideSplit::new([width, 10], margin, 16, 2);
                assert_eq!(split.interior + split.edge, width.div_ceil(16));
                let [across, rows] = split.range(128, 0).global;
                assert!(across >= split.interior);
                let edge = across * (rows - split.interior_rows());
                assert!(edge >= split.edge * split.rows, "{width} {margin}");
                let [_, more] = split.range(128, 3).global;
                assert_eq!(more - rows, 3_usize.div_ceil(across / 128));
                // Interior items hold no pixel within the margin.
                if split.interior > 0 {
                    assert!(16 * split.left >= margin);
                    assert!(
                        16 * (split.left + split.interior) <= width.saturating_sub(margin)
                            || margin == 0
                    );
                }
            }
        }
    }
}
