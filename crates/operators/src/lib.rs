//! One struct an algorithm: it validates, chooses a variant, and enqueues. No element here.

mod gaussian;
mod histogram;
mod pitch_threshold;
mod probe;
mod source;

pub use gaussian::{Arithmetic, Gaussian, GaussianSettings};
pub use histogram::{Histogram, HistogramSettings, Strategy};
pub use pitch_threshold::{
    Compare, Listed, MaskTarget, MeasuredDefect, PitchSettings, PitchThreshold, Polarity,
    judged_pixels,
};

pub use probe::Probe;

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::layout::SampleType;
use clinspect_opencl::Event;

/// Work-group that plain kernels with one work-item a sample are launched in on a GPU.
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

/// What the next command of a frame waits for: the one before it, so that the failure of any
/// reaches the last; the first one waits for who wrote the frame.
fn after<'a>(writers: &'a [Arc<Event>], events: &'a [Arc<Event>]) -> Vec<&'a Event> {
    let before = events.last().map_or(writers, std::slice::from_ref);
    before.iter().map(AsRef::as_ref).collect()
}

/// A length as the kernels' `int`.
fn to_i32(value: usize, what: &str) -> Result<i32, ClError> {
    i32::try_from(value).map_err(|_| ClError::Refused(format!("{what} of {value} is too large")))
}

/// A length as the kernels' `uint`.
fn to_u32(value: usize, what: &str) -> Result<u32, ClError> {
    u32::try_from(value).map_err(|_| ClError::Refused(format!("{what} of {value} is too large")))
}

/// A height that is enough to warm kernels up with.
pub const WARM_UP_ROWS: usize = 64;
