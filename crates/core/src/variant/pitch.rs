//! The kernel variants of the pitch comparison.

use crate::device_caps::DeviceCaps;

/// How a pitch comparison writes its mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PitchVariant {
    /// One work-item per byte (8 pixels); any device, buffers or images.
    Bytes,
    /// CPU: bands of rows, a 32-bit word (32 pixels) at a time.
    Words,
    /// GPU: one work-item per 16 bytes of a row, read as aligned words.
    Wide {
        /// With dot products of bytes.
        dot4: bool,
    },
}

/// Bytes of a memory object that the wide kernel can address.
pub const WIDE_MEMORY: usize = 1 << 31;

/// Local memory of the wide kernel, bytes: a counter of the pixels that the work-group marked, and a
/// sum per work-item for the search for the pattern.
const WIDE_LOCAL: u64 = 4 + 128 * 16;

/// The pitch comparison's variant for a device; `bytes`: 8-bit samples, `frame`: bytes of a frame.
pub fn pitch_variant(caps: &DeviceCaps, image: bool, bytes: bool, frame: usize) -> PitchVariant {
    if image {
        PitchVariant::Bytes
    } else if caps.is_cpu {
        PitchVariant::Words
    } else if caps.shares_host_memory || frame >= WIDE_MEMORY / 2 || caps.local_memory < WIDE_LOCAL
    {
        // Wrapped host memory may start at any byte, and padding may double a frame's size.
        PitchVariant::Bytes
    } else {
        PitchVariant::Wide {
            dot4: bytes && caps.has_dot4,
        }
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

#[cfg(test)]
mod tests {
    use super::{
        super::devices::{cpu, gpu},
        *,
    };

    #[test]
    fn pitch_variant_needs_what_its_loads_need() {
        let wide = |dot4| PitchVariant::Wide { dot4 };
        let frame = 4096 * 3072;
        assert_eq!(
            pitch_variant(&cpu(), false, true, frame),
            PitchVariant::Words
        );
        assert_eq!(
            pitch_variant(&cpu(), true, true, frame),
            PitchVariant::Bytes
        );
        assert_eq!(
            pitch_variant(&gpu(), true, true, frame),
            PitchVariant::Bytes
        );
        assert_eq!(pitch_variant(&gpu(), false, true, frame), wide(true));
        assert_eq!(pitch_variant(&gpu(), false, false, frame), wide(false));
        assert_eq!(
            pitch_variant(&gpu(), false, true, 1 << 30),
            PitchVariant::Bytes
        );
        let mut other = gpu();
        other.has_dot4 = false;
        assert_eq!(pitch_variant(&other, false, true, frame), wide(false));
        other.shares_host_memory = true;
        assert_eq!(
            pitch_variant(&other, false, true, frame),
            PitchVariant::Bytes
        );
        let mut bare = gpu();
        bare.local_memory = 0;
        assert_eq!(
            pitch_variant(&bare, false, true, frame),
            PitchVariant::Bytes
        );
    }

    #[test]
    fn wide_rows_grow_with_the_frame() {
        let rows = |width: usize, height| wide_rows(&gpu(), width / 16 * height);
        assert_eq!(rows(1920, 1080), 1);
        assert_eq!(rows(4096, 3072), 2);
        assert_eq!(rows(16_384, 16_384), 8);
    }
}
