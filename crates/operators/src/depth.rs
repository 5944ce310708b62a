//! The bits of a sample that a camera fills.

use clinspect_core::{ClError, layout::SampleType};

/// Number of bits that samples fill.
///
/// # Errors
/// [`ClError::Refused`] if `bit_depth` does not fit the format.
pub(super) fn effective_depth(bit_depth: u32, sample: SampleType) -> Result<u32, ClError> {
    let bits = sample.bits();
    match bit_depth {
        0 => Ok(bits),
        8 if bits == 8 => Ok(8),
        1..=16 if bits == 16 => Ok(bit_depth),
        _ => Err(ClError::Refused(format!(
            "bit-depth={bit_depth} does not fit {bits}-bit samples; set it to 0{}",
            if bits == 16 { " or to 1..16" } else { "" }
        ))),
    }
}

/// The most bits that samples of any format fill with this `bit-depth`.
pub fn largest_depth(bit_depth: u32) -> u32 {
    if bit_depth == 0 {
        SampleType::U16Le.bits()
    } else {
        bit_depth
    }
}

/// Checks a threshold for samples that fill `depth` bits.
///
/// # Errors
/// [`ClError::Refused`] if it is not one of their grey levels.
pub fn check_threshold(threshold: f64, depth: u32) -> Result<(), ClError> {
    let highest = f64::from((1_u32 << depth) - 1);
    if (0.0..=highest).contains(&threshold) {
        return Ok(());
    }
    Err(ClError::Refused(format!(
        "threshold={threshold} is not a grey level of {depth}-bit samples; set it to 0..{highest}"
    )))
}
