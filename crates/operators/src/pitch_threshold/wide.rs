//! The kernels that compare wide runs of samples: `kernels/pitch_threshold_wide.cl`, and
//! `kernels/pitch_threshold_fixed.cl` with its comparisons as constants of the program.

use std::sync::Arc;

use clinspect_core::{ClError, kernels::pitch_threshold_wide::WIDE_GROUP, variant::fixed_rows};
use clinspect_opencl::{Arg, ClContext, Kernel, NdRange, Program, ProgramSource, frame::Plane};

use super::settings::ComparisonWords;
use crate::to_i32;

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

/// Comparisons of a program; more would make it large.
const MAX_COMPARISONS: usize = 8;
/// Offsets of the frame and distances of its rows are multiples of this many bytes.
pub(super) const ROW_ALIGNMENT: usize = 16;

/// The comparisons as constants of a program; `None` for none, or for more than a program holds.
pub(super) fn list(comparisons: &[ComparisonWords]) -> Option<String> {
    if comparisons.is_empty() || comparisons.len() > MAX_COMPARISONS {
        return None;
    }
    let braces = comparisons.iter().map(|words| {
        let numbers: &[i32; 7] = bytemuck::cast_ref(words);
        format!("{{{}}}", numbers.map(|n| n.to_string()).join(","))
    });
    Some(braces.collect::<Vec<_>>().join(","))
}

/// Builds a program of comparisons that are constants; `None` if that fails, because general kernels give the same masks.
///
/// # Errors
/// The failing call.
pub(super) fn program(
    context: &ClContext,
    source: ProgramSource,
    options: &str,
) -> Result<Option<Arc<Program>>, ClError> {
    match context.program(source, options) {
        Err(error @ ClError::Build { .. }) => {
            gst::warning!(gst::CAT_DEFAULT, "{error}");
            Ok(None)
        }
        program => program.map(Some),
    }
}

/// The kernel for one list of comparisons.
#[derive(Debug)]
pub(super) struct Fixed {
    pub kernel: Kernel,
    pub split: WideSplit,
    /// Work-items per work-group.
    pub group: usize,
    /// Keeps the program among the context's programs: an operator for other regions needs it again.
    _program: Arc<Program>,
}

impl Fixed {
    /// The kernel's name.
    pub const NAME: &str = "pitch_threshold_fixed";

    /// Compiles the kernel for frames of 8-bit samples. `reach` is the largest distance along x, px;
    /// `options` are those of the samples. `None` for too many comparisons.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(
        context: &ClContext,
        options: &str,
        comparisons: &[ComparisonWords],
        flags: i32,
        [width, height]: [usize; 2],
        reach: usize,
    ) -> Result<Option<Self>, ClError> {
        let Some(list) = list(comparisons) else {
            return Ok(None);
        };
        let (block_rows, item_rows) =
            fixed_rows(context.caps(), width.div_ceil(ROW_ALIGNMENT) * height);
        let options = format!(
            "{options} -DNVIDIA={} -DWIDE_ROWS={block_rows} -DFIXED_FLAGS={flags} -DFIXED_COMPARISONS={list}",
            u8::from(context.caps().has_dot4)
        );
        let Some(program) = program(context, ProgramSource::PitchThresholdFixed, &options)? else {
            return Ok(None);
        };
        let kernel = program.kernel(Self::NAME)?;
        // Items at the edges lack neighbours, or a run would reach past the row.
        let margin = reach + ROW_ALIGNMENT;
        Ok(Some(Self {
            split: WideSplit::new([width, height], margin, ROW_ALIGNMENT, item_rows),
            group: WIDE_GROUP.min(context.kernel_work_group(&kernel)?),
            kernel,
            _program: program,
        }))
    }

    /// Whether the kernel can read this plane.
    pub fn reads(&self, plane: &Plane) -> bool {
        (plane.offset | plane.stride).is_multiple_of(ROW_ALIGNMENT)
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
