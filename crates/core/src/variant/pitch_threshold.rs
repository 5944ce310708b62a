//! The kernel variants of the pitch comparison.

use crate::{device_caps::DeviceCaps, kernels::pitch_threshold_wide::WIDE_GROUP};

/// How a pitch comparison writes its mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PitchThresholdVariant {
    /// One work-item per byte (8 pixels); any device, buffers or images.
    Bytes,
    /// CPU: bands of rows, a 32-bit word (32 pixels) at a time.
    Words,
    /// GPU: one work-item per 16 bytes of a row, read as aligned words.
    Wide,
    /// The same with the comparisons as constants of the program, for frames of 8-bit samples whose rows
    /// start at multiples of 16 bytes; other frames as [`Self::Wide`].
    Fixed,
}

/// Bytes of a memory object that the wide kernel can address.
pub const WIDE_MEMORY: usize = 1 << 31;

/// Smallest frame for fixed comparisons, bytes: in smaller ones the work of a few edges decides, which
/// the general kernel does faster.
const FIXED_FRAME: usize = 3 << 19;

/// Local memory of the wide kernel, bytes: a counter of the pixels that the work-group marked, and a
/// sum per work-item for the search for the pattern.
const WIDE_LOCAL: u64 = 4 + WIDE_GROUP as u64 * 16;

/// The pitch comparison's variant for a device; `bytes`: 8-bit samples, `frame`: bytes of a frame,
/// `is_steady`: the settings will stay as they are for long.
pub fn pitch_threshold_variant(
    caps: &DeviceCaps,
    image: bool,
    bytes: bool,
    frame: usize,
    is_steady: bool,
) -> PitchThresholdVariant {
    if image {
        PitchThresholdVariant::Bytes
    } else if caps.is_cpu {
        PitchThresholdVariant::Words
    } else if caps.shares_host_memory || frame >= WIDE_MEMORY / 2 || caps.local_memory < WIDE_LOCAL
    {
        // Wrapped host memory may start at any byte, and padding may double a frame's size.
        PitchThresholdVariant::Bytes
    } else if bytes && caps.has_dot4 && is_steady && frame >= FIXED_FRAME {
        PitchThresholdVariant::Fixed
    } else {
        PitchThresholdVariant::Wide
    }
}

/// Rows per work-item of the wide kernel; `single` is the number of work-items of one row each.
///
/// More rows share more of the preparation, but leave fewer work-items to hide latency.
pub fn wide_rows(caps: &DeviceCaps, single: usize) -> usize {
    const RESIDENT: usize = 2048;
    let times = single / (RESIDENT * caps.compute_units);
    match times {
        0..=1 => 1,
        2..=7 => 2,
        _ => 8,
    }
}

/// Rows per block, and rows per work-item, of the kernel with fixed comparisons; `single` is the number of
/// work-items of one row each.
///
/// A small frame has too few work-items to hide the latency of two rows.
pub fn fixed_rows(caps: &DeviceCaps, single: usize) -> (usize, usize) {
    match wide_rows(caps, single) {
        1 | 2 => (1, 1),
        rows => (2, rows),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::devices::{cpu, gpu},
        *,
    };

    #[test]
    fn pitch_variant_needs_what_its_loads_need() {
        let frame = 4096 * 3072;
        assert_eq!(
            pitch_threshold_variant(&cpu(), false, true, frame, false),
            PitchThresholdVariant::Words
        );
        assert_eq!(
            pitch_threshold_variant(&cpu(), true, true, frame, false),
            PitchThresholdVariant::Bytes
        );
        assert_eq!(
            pitch_threshold_variant(&gpu(), true, true, frame, false),
            PitchThresholdVariant::Bytes
        );
        assert_eq!(
            pitch_threshold_variant(&gpu(), false, true, frame, false),
            PitchThresholdVariant::Wide
        );
        let steady = |caps, bytes| pitch_threshold_variant(&caps, false, bytes, frame, true);
        assert_eq!(steady(gpu(), true), PitchThresholdVariant::Fixed);
        assert_eq!(steady(gpu(), false), PitchThresholdVariant::Wide);
        assert_eq!(
            pitch_threshold_variant(&gpu(), false, true, 1280 * 720, true),
            PitchThresholdVariant::Wide
        );
        assert_eq!(steady(cpu(), true), PitchThresholdVariant::Words);
        assert_eq!(
            pitch_threshold_variant(&gpu(), false, false, frame, false),
            PitchThresholdVariant::Wide
        );
        assert_eq!(
            pitch_threshold_variant(&gpu(), false, true, 1 << 30, false),
            PitchThresholdVariant::Bytes
        );
        let mut other = gpu();
        other.has_dot4 = false;
        assert_eq!(
            pitch_threshold_variant(&other, false, true, frame, false),
            PitchThresholdVariant::Wide
        );
        other.shares_host_memory = true;
        assert_eq!(
            pitch_threshold_variant(&other, false, true, frame, false),
            PitchThresholdVariant::Bytes
        );
        let mut bare = gpu();
        bare.local_memory = 0;
        assert_eq!(
            pitch_threshold_variant(&bare, false, true, frame, false),
            PitchThresholdVariant::Bytes
        );
    }

    #[test]
    fn rows_of_an_item_grow_with_the_frame() {
        let fixed = |width: usize, height| fixed_rows(&gpu(), width / 16 * height);
        assert_eq!(fixed(4096, 3072), (1, 1));
        assert_eq!(fixed(16_384, 16_384), (2, 8));
        let rows = |width: usize, height| wide_rows(&gpu(), width / 16 * height);
        assert_eq!(rows(1920, 1080), 1);
        assert_eq!(rows(4096, 3072), 2);
        assert_eq!(rows(16_384, 16_384), 8);
    }
}
