//! All levels of a comparison across scales in one launch, `kernels/scales_tiles.cl`.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    ndrange::NdRange,
    pitch::{Axis, Comparison},
    scale_tiles::{ScaleTiles, TILE_GROUP},
    scales::Level,
};
use clinspect_opencl::{Arg, ClContext, Kernel, Program, ProgramSource, Submission, frame::Plane};

use super::{
    fixed::{self, ROW_ALIGNMENT},
    settings::{ComparisonWords, PitchThresholdSettings},
};
use crate::to_i32;

/// The kernels for one list of comparisons.
#[derive(Debug)]
pub(super) struct Tiles {
    launches: Vec<Launch>,
    sizes: ScaleTiles,
}

/// The kernel for some axes.
#[derive(Debug)]
struct Launch {
    kernel: Kernel,
    /// 1 x, 2 y, 3 both.
    axes: usize,
    /// Keeps the program among the context's programs: an operator for other regions needs it again.
    _program: Arc<Program>,
}

impl Tiles {
    /// The kernels' name.
    const NAME: &str = "scales_tiles";

    /// Compiles the kernels for frames of 8-bit samples. `None` for too many comparisons, or for neighbours so far away
    /// that no tile holds them.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(
        context: &ClContext,
        settings: &PitchThresholdSettings,
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
        // PoCL's compiler cannot handle barriers inside a branch, so each axis has a launch there.
        let launches = match axes {
            3 if context.caps().is_cpu => vec![1, 2],
            axes => vec![axes],
        };
        let mut tiles = Self {
            launches: Vec::new(),
            sizes,
        };
        for axes in launches {
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
            let Some(program) = fixed::program(context, ProgramSource::ScalesTiles, &options)?
            else {
                return Ok(None);
            };
            let kernel = program.kernel(Self::NAME)?;
            if context.kernel_work_group(&kernel)? < TILE_GROUP {
                return Ok(None);
            }
            tiles.launches.push(Launch {
                kernel,
                axes,
                _program: program,
            });
        }
        Ok(Some(tiles))
    }

    /// Whether the kernels can read this plane: they read whole 16 bytes, also at the ends of rows.
    pub fn reads(&self, plane: &Plane, [width, height]: [usize; 2]) -> bool {
        let row = width.next_multiple_of(ROW_ALIGNMENT);
        let end = plane.offset + height.saturating_sub(1) * plane.stride + row;
        (plane.offset | plane.stride).is_multiple_of(ROW_ALIGNMENT)
            && plane.aligned_len().is_some_and(|len| end <= len)
    }

    /// Enqueues the kernels for a frame `width` px wide whose coarsest level is `last`. `args`: those of the kernel up to
    /// `slot`.
    ///
    /// # Errors
    /// [`ClError::Refused`] for sizes that are too large; the failing call.
    pub fn run(
        &mut self,
        width: usize,
        last: &Level,
        args: &[Arg],
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let rows = (last.past - last.from) << last.shift;
        let top = to_i32(last.from << last.shift, "a row")? - to_i32(last.remainder, "a row")?;
        let sizes = [self.sizes.x, self.sizes.y];
        for launch in &mut self.launches {
            let [x, y] = [0, 1].map(|axis| match launch.axes >> axis & 1 {
                0 => [0, 0],
                _ => [
                    width.div_ceil(sizes[axis][0]),
                    rows.div_ceil(sizes[axis][1]),
                ],
            });
            let [x_tiles, y_tiles] = [x, y].map(|grid| grid[0] * grid[1]);
            let mut args = args.to_vec();
            args.extend([
                Arg::I32(top),
                Arg::I32(to_i32(x_tiles, "tiles")?),
                Arg::I32(to_i32(x[0], "tiles")?),
                Arg::I32(to_i32(y[0], "tiles")?),
            ]);
            let range = NdRange::groups(x_tiles + y_tiles, TILE_GROUP);
            submission.run(&mut launch.kernel, Self::NAME, &args, &range)?;
        }
        Ok(())
    }
}
