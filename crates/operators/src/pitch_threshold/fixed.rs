//! The wide kernel with its comparisons as constants of the program, `kernels/pitch_threshold_fixed.cl`.

use std::sync::Arc;

use clinspect_core::{ClError, variant::fixed_rows};
use clinspect_opencl::{ClContext, Kernel, Program, ProgramSource, frame::Plane};

use super::{
    settings::ComparisonWords,
    wide::{WIDE_GROUP, WideSplit},
};

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
        let numbers: &[i32; 8] = bytemuck::cast_ref(words);
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
