//! Comparisons along vectors of any angle; kernels in `kernels/pitch_threshold_lattice*.cl`.

use clinspect_core::{
    ClError,
    kernels::pitch_threshold_lattice_items::LATTICE_PIXELS,
    lattice::VectorComparison,
    layout::FrameLayout,
    mask::packed_stride,
    variant::{PitchThresholdVariant, WIDE_MEMORY},
};
use clinspect_opencl::{ClContext, Kernel, NdRange, ProgramSource};

use super::{Launch, PitchThresholdSettings, prepare::BANDS_PER_UNIT};
use crate::source::{plain_group, sample_options};

/// Rows of a block: more would share more of the work, but leave few work-items.
const BLOCK_ROWS: usize = 4;

/// A comparison for the kernels. Twin of `comparison_t` of `pitch_threshold_lattice.cl`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct VectorWords {
    dx: i32,
    dy: i32,
    double_dx: i32,
    double_dy: i32,
    edge_margin: i32,
}

const _: () = assert!(size_of::<VectorWords>() == 20);

impl VectorWords {
    /// A comparison that judges no pixel inward that is closer than `inward` to the edge; `None`: it judges none inward.
    pub fn new(c: &VectorComparison, inward: Option<usize>) -> Self {
        let edge_margin = inward.and_then(|edge| i32::try_from(edge).ok());
        Self {
            dx: c.distance.x,
            dy: c.distance.y,
            double_dx: c.double.x,
            double_dy: c.double.y,
            edge_margin: edge_margin.unwrap_or(i32::MAX),
        }
    }
}

/// The work-items of a device whose kernel judges blocks of rows of [`LATTICE_PIXELS`] pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocks {
    group: [usize; 2],
}

impl Blocks {
    /// The work-items for `rows` rows of `width` pixels.
    pub fn range(&self, width: usize, rows: usize) -> NdRange {
        let across = (8 * packed_stride(width)).div_ceil(LATTICE_PIXELS);
        NdRange::cover([across, rows.div_ceil(BLOCK_ROWS)], self.group)
    }
}

/// The kernel that writes the mask of frames of `layout`, and how it is launched. [`PitchThresholdVariant::Bytes`] forces
/// that for any device.
///
/// # Errors
/// The failing call.
pub(super) fn kernel(
    context: &ClContext,
    layout: &FrameLayout,
    settings: &PitchThresholdSettings,
) -> Result<(Kernel, &'static str, Launch), ClError> {
    let options = sample_options(layout.sample, settings.image);
    let is_forced = settings.variant == Some(PitchThresholdVariant::Bytes);
    if context.caps().is_cpu && !settings.image && !is_forced {
        let name = "pitch_threshold_lattice_rows";
        let program = context.program(ProgramSource::LatticeRows, &options)?;
        let bands = context.caps().compute_units * BANDS_PER_UNIT;
        return Ok((program.kernel(name)?, name, Launch::Bands(bands)));
    }
    let name = "pitch_threshold_lattice_items";
    // Memory of a source may start at any byte, and padding may double a frame's size.
    let are_words =
        !settings.image && !context.caps().shares_host_memory && layout.bytes() < WIDE_MEMORY / 2;
    let options = format!(
        "{options} -DMODE={} -DBLOCK_ROWS={BLOCK_ROWS} -DWORDS={} -DNVIDIA={}",
        settings.mode(),
        u8::from(are_words),
        u8::from(context.caps().has_dot4)
    );
    let kernel = (context.program(ProgramSource::LatticeItems, &options)?).kernel(name)?;
    let group = plain_group(context, &kernel)?;
    Ok((kernel, name, Launch::Blocks(Blocks { group })))
}
