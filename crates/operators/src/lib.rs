//! One struct per algorithm: it checks its settings, chooses a kernel variant and enqueues. No
//! GStreamer element is defined here.

mod colour;
mod depth;
mod flat_field;
mod gaussian;
mod histogram;
mod inspection;
mod lister;
mod mask;
mod pitch_threshold;
mod presence;
mod probe;
mod reference;
mod regions;
mod self_test;
mod source;
mod texture;
mod unpack;

pub use colour::{Components, Contrasts, JudgedComponents, is_colour};
pub use depth::{check_threshold, largest_depth};
pub use flat_field::{FlatField, FlatFieldMode, FlatFieldSettings, FrameSums};
pub use gaussian::{Arithmetic, Gaussian, GaussianSettings};
pub use histogram::{Histogram, HistogramSettings, Strategy, check_bins};
pub use inspection::{
    Alignment, Basis, Component, Inspection, JudgedPixels, Limit, Marked, Picture, Repeating,
    Subject, Submitted,
};
pub use mask::MaskTarget;
pub use pitch_threshold::{Borders, Compare, PitchThreshold, PitchThresholdSettings, Polarity};
pub use presence::Contrast;
pub use probe::Probe;
pub use reference::{
    Align, ComponentTraining, HeldOut, Models, NormalizeBy, Progress, Reading, Reference,
    ReferenceSettings, Training, check_opening, learns_factor,
};
pub use self_test::{SelfTest, Trial};
pub use texture::{NoiseFrom, Texture, TextureSettings};
pub use unpack::Unpack;

use clinspect_core::ClError;
use clinspect_core::layout::SampleType;
use clinspect_opencl::{ClContext, Mem};

/// Work-group size on a GPU for plain kernels with one work-item per sample.
const PLAIN_GROUP: [usize; 2] = [64, 4];

/// Options that tell a program how samples are stored.
fn sample_options(sample: SampleType, image: bool) -> String {
    format!(
        "-DSAMPLE_BYTES={} -DBIG_ENDIAN_SAMPLES={} -DUSE_IMAGE={}",
        sample.bytes(),
        u8::from(sample == SampleType::U16Be),
        u8::from(image),
    )
}

/// Memory with these words; `subject` names it in errors.
fn upload<T: bytemuck::NoUninit>(
    context: &ClContext,
    words: &[T],
    subject: &str,
) -> Result<Mem, ClError> {
    let bytes: &[u8] = bytemuck::cast_slice(words);
    let mem = context.device_memory(bytes.len())?;
    // OpenCL refuses a write of no bytes.
    if !bytes.is_empty() {
        context.write(&mem, 0, bytes, subject)?;
    }
    Ok(mem)
}

/// A length as the kernels' `int`.
fn to_i32(value: usize, what: &str) -> Result<i32, ClError> {
    i32::try_from(value).map_err(|_| ClError::Refused(format!("{what} of {value} is too large")))
}

/// A length as the kernels' `uint`.
fn to_u32(value: usize, what: &str) -> Result<u32, ClError> {
    u32::try_from(value).map_err(|_| ClError::Refused(format!("{what} of {value} is too large")))
}

/// Rows of the frame that warms up a kernel.
pub const WARM_UP_ROWS: usize = 64;
