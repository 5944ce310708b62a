//! Lists the defects of a mask.

use std::sync::Arc;

use super::{
    PitchThreshold,
    mask::{MaskTarget, packed_mask},
    run_differences::{RunDifference, RunDifferences},
};
use crate::{source::source_args, to_i32};
use clinspect_core::ClError;
use clinspect_core::{
    components::{DefectShape, Finder, Limits, Run},
    mask::packed_stride,
};
use clinspect_opencl::frame::ClFrame;
use clinspect_opencl::{Arg, ClContext, Meter, Program};

/// The kernel sums differences in units of 1/512 grey level.
const DIFFERENCE_UNITS: f64 = 512.0;
/// Values of [`RunDifference::signs`]: every pixel is brighter, every pixel is darker.
const ALL_BRIGHT: u32 = 1;
const ALL_DARK: u32 = 2;

/// A defect and its differences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredDefect {
    /// Position and size.
    pub shape: DefectShape,
    /// Mean difference of the pixels, grey levels; positive is brighter.
    pub mean_difference: f64,
    /// Difference of largest magnitude, grey levels; the first in scan order of equal ones.
    pub peak_difference: f64,
    /// 1 if all pixels are brighter, -1 if all are darker, otherwise 0.
    pub polarity: i32,
}

/// The defects of a frame.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listed {
    /// Largest area first, ties in scan order.
    pub defects: Vec<MeasuredDefect>,
    /// There were more defects.
    pub overflow: bool,
}

/// Working memory.
#[derive(Debug)]
pub(super) struct Lister {
    finder: Finder,
    differences: RunDifferences,
}

impl Lister {
    pub fn new(context: &ClContext, program: &Program) -> Result<Self, ClError> {
        Ok(Self {
            finder: Finder::default(),
            differences: RunDifferences::new(context, program)?,
        })
    }
}

impl PitchThreshold {
    /// Lists the defects of the frame and the mask of the last [`Self::run`].
    ///
    /// The host reads only the packed mask. The device sums the differences, so the frame is not
    /// transferred.
    ///
    /// # Errors
    /// The failing call.
    pub fn list(
        &mut self,
        frame: &ClFrame,
        target: MaskTarget,
        limits: &Limits,
        meter: &Arc<Meter>,
    ) -> Result<Listed, ClError> {
        if self.marked.pixels == 0 {
            return Ok(Listed::default());
        }
        let Some((buffer, offset)) = packed_mask(target, &self.packed) else {
            return Ok(Listed::default());
        };
        let stride = packed_stride(self.width);
        let finder = &mut self.lister.finder;
        let window = self.window;
        let (width, height) = (self.width, window.rows);
        let found = buffer.read_with(|bytes| {
            let mask = bytes.get(offset..).unwrap_or(&[]);
            finder.find(mask, stride, width, height, limits)
        })?;
        let [src, src_offset, src_stride] = source_args(frame.plane(0)?, None, 0)?;
        // Without a search the comparisons stand in for the table, which the kernel does not read.
        let (tiles, tile_rows, table) = match &self.presence {
            Some(presence) => (
                presence.tiles_arg()?,
                presence.rows_arg()?,
                Arg::Mem(presence.table()),
            ),
            None => (
                Arg::I32x4([1; 4]),
                Arg::I32x4([0; 4]),
                Arg::Mem(&self.comparisons),
            ),
        };
        let frame_args = [
            src,
            src_offset,
            src_stride,
            Arg::I32(to_i32(self.width, "a width")?),
            Arg::I32(to_i32(window.height, "a height")?),
            Arg::I32(to_i32(window.first, "a row")?),
            Arg::Mem(&self.comparisons),
            Arg::I32(to_i32(self.comparison_list.len(), "comparisons")?),
            Arg::I32(self.theta),
            Arg::I32(self.flags),
            tiles,
            tile_rows,
            table,
            Arg::I32(i32::from(self.marked.missing > 0)),
        ];
        let differences = &mut self.lister.differences;
        let measured = differences.run(&self.context, &frame_args, &found.runs, meter)?;
        Ok(Listed {
            defects: assemble(&found.shapes, &found.runs, measured),
            overflow: found.overflow,
        })
    }

    /// Compiles the kernel that lists need, and runs it once.
    pub(super) fn warm_up_list(
        &mut self,
        frame: &ClFrame,
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        // The frame of zeros has no defect, so mark one pixel.
        if let Some(packed) = &self.packed {
            packed.write(0, &[0x80], "a mask to warm up with")?;
        }
        let target = MaskTarget::Grey(frame);
        self.marked.pixels = 1;
        let limits = Limits {
            min_area: 0,
            merge_distance: 0,
            max_defects: 1,
        };
        self.list(frame, target, &limits, meter).map(|_| ())
    }
}

/// Sums up the runs of each defect.
fn assemble(
    shapes: &[DefectShape],
    runs: &[Run],
    measured: &[RunDifference],
) -> Vec<MeasuredDefect> {
    let mut sums = vec![RunDifferenceSum::default(); shapes.len()];
    for (run, difference) in runs.iter().zip(measured) {
        if let Some(sum) = sums.get_mut(run.defect as usize) {
            sum.sum += difference.sum;
            sum.signs |= difference.signs;
            // Runs are in scan order, so the first of equal ones stays.
            if difference.peak.unsigned_abs() > sum.peak.unsigned_abs() {
                sum.peak = difference.peak;
            }
        }
    }
    shapes
        .iter()
        .zip(&sums)
        .map(|(shape, sum)| MeasuredDefect {
            shape: *shape,
            mean_difference: sum.sum as f64 / (DIFFERENCE_UNITS * f64::from(shape.area.max(1))),
            peak_difference: f64::from(sum.peak) / DIFFERENCE_UNITS,
            polarity: match sum.signs {
                ALL_BRIGHT => 1,
                ALL_DARK => -1,
                _ => 0,
            },
        })
        .collect()
}

#[derive(Debug, Clone, Copy, Default)]
struct RunDifferenceSum {
    sum: i64,
    peak: i32,
    signs: u32,
}
