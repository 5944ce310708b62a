//! All levels of a comparison across scales in one launch, `kernels/scales_tiles.cl`.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    ndrange::NdRange,
    pitch::{Axis, Comparison},
    scale_tiles::{ScaleTiles, TILE_GROUP},
    scales::Level,
};
use clinspect_opencl::{Arg, ClContext, Kernel, Program, ProgramSource, frame::Plane};

use super::{
    fixed::{self, ROW_ALIGNMENT},
    settings::{ComparisonWords, PitchSettings},
};
use crate::to_i32;

/// The kernel for one list of comparisons.
#[derive(Debug)]
pub(super) struct Tiles {
    pub kernel: Kernel,
    sizes: ScaleTiles,
    axes: usize,
    /// Keeps the program among the context's programs: an operator for other regions needs it again.
    _program: Arc<Program>,
}

impl Tiles {
    /// The kernel's name.
    pub const NAME: &str = "scales_tiles";

    /// Compiles the kernel for frames of 8-bit samples. `None` for too many comparisons, or for neighbours so far away
    /// that no tile holds them.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(
        context: &ClContext,
        settings: &PitchSettings,
        comparisons: &[Comparison],
        words: &[ComparisonWords],
    ) -> Result<Option<Self>, ClError> {
        let reach = [Axis::X, Axis::Y].map(|axis| {
            let along = comparisons.iter().filter(|c| c.axis == axis);
            along.map(Comparison::margin).max().unwrap_or(0)
        });
        let sizes = ScaleTiles::choose(settings.scales, reach, context.caps().local_memory);
        let (Some(sizes), Some(list)) = (sizes, fixed::list(words)) else {
            return Ok(None);
        };
        let axes = usize::from(reach[0] > 0) + 2 * usize::from(reach[1] > 0);
        let options = format!(
            "-DLEVELS={} -DGROUP={TILE_GROUP} -DAXES={axes} -DTILE_FLAGS={} -DREACH_X={} -DREACH_Y={} -DTILE_X={} \
             -DTILE_X_ROWS={} -DTILE_Y={} -DTILE_Y_ROWS={} -DFIRST={} -DSECOND={} -DTILE_COMPARISONS={list}",
            settings.scales,
            settings.flags(),
            reach[0],
            reach[1],
            sizes.x[0],
            sizes.x[1],
            sizes.y[0],
            sizes.y[1],
            sizes.first,
            sizes.second,
        );
        let Some(program) = fixed::program(context, ProgramSource::ScalesTiles, &options)? else {
            return Ok(None);
        };
        let kernel = program.kernel(Self::NAME)?;
        let tiles = Self {
            sizes,
            axes,
            _program: program,
            kernel,
        };
        Ok((context.kernel_work_group(&tiles.kernel)? >= TILE_GROUP).then_some(tiles))
    }

    /// Whether the kernel can read this plane: it reads whole 16 bytes, also at the ends of rows.
    pub fn reads(&self, plane: &Plane, [width, height]: [usize; 2]) -> bool {
        let row = width.next_multiple_of(ROW_ALIGNMENT);
        let end = plane.offset + height.saturating_sub(1) * plane.stride + row;
        (plane.offset | plane.stride).is_multiple_of(ROW_ALIGNMENT)
            && plane.aligned_len().is_some_and(|len| end <= len)
    }

    /// The last arguments, and the work-items, for frames `width` px wide whose coarsest level is `last`.
    ///
    /// # Errors
    /// [`ClError::Refused`] for sizes that are too large.
    pub fn launch(
        &self,
        width: usize,
        last: &Level,
    ) -> Result<([Arg<'static>; 4], NdRange), ClError> {
        let rows = (last.past - last.from) << last.shift;
        let top = to_i32(last.from << last.shift, "a row")? - to_i32(last.remainder, "a row")?;
        let grid = |axis: usize, size: [usize; 2]| {
            if self.axes & axis == 0 {
                return [0, 0];
            }
            [width.div_ceil(size[0]), rows.div_ceil(size[1])]
        };
        let (x, y) = (grid(1, self.sizes.x), grid(2, self.sizes.y));
        let tiles = |grid: [usize; 2]| grid[0] * grid[1];
        let args = [
            Arg::I32(top),
            Arg::I32(to_i32(tiles(x), "tiles")?),
            Arg::I32(to_i32(x[0], "tiles")?),
            Arg::I32(to_i32(y[0], "tiles")?),
        ];
        Ok((args, NdRange::groups(tiles(x) + tiles(y), TILE_GROUP)))
    }
}
