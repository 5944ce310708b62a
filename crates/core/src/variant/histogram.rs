//! The kernel variants of the histogram.

use crate::device_caps::DeviceCaps;

/// How a histogram is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HistogramVariant {
    /// CPU: one counter per pair of adjacent bytes, a set of tables per work-item.
    Pairs,
    /// CPU: small frames, a few tables of bytes per work-item.
    Bytes,
    /// CPU: 16-bit grey, a few tables per work-item in global memory.
    Direct,
    /// A table per work-item in global memory.
    Private,
    /// GPU: copies of each counter in local memory, one per bank.
    Banked {
        /// Copies of each counter; a power of two.
        copies: usize,
    },
    /// One table per work-group in local memory.
    Local,
}

/// The work that decides the variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistogramShape {
    /// Counters that a frame needs: channels × bins.
    pub counters: usize,
    /// Counters that the plane with the most channels needs.
    pub plane_counters: usize,
    /// Samples are single bytes.
    pub bytes: bool,
    /// Samples counted per frame.
    pub samples: u64,
    /// Images instead of buffers.
    pub image: bool,
}

/// Most copies of a counter that help: the number of local memory's banks.
const MAX_COPIES: usize = 32;
/// With fewer copies, atomics collide as much as in a shared table.
const MIN_COPIES: usize = 2;
/// Smaller frames do not repay the merging of the pair tables (65536 counters each).
const MIN_SAMPLES_FOR_PAIRS: u64 = 4 * 65_536;

/// Bytes of one counter.
const COUNTER_BYTES: u64 = 4;

/// Copies of each counter that fit into local memory; `None` if they are too few.
pub fn banked_copies(caps: &DeviceCaps, shape: &HistogramShape) -> Option<usize> {
    let fit = caps.local_memory / (COUNTER_BYTES * shape.plane_counters.max(1) as u64);
    // More copies than work-items of a group would stay unused.
    let most = MAX_COPIES.min(caps.max_work_group);
    let fit = usize::try_from(fit).unwrap_or(most).min(most);
    let copies = if fit == 0 { 0 } else { 1 << fit.ilog2() };
    (copies >= MIN_COPIES && !shape.image).then_some(copies)
}

/// Whether one table of counters fits into local memory.
pub fn local_fits(caps: &DeviceCaps, shape: &HistogramShape) -> bool {
    COUNTER_BYTES * shape.counters as u64 <= caps.local_memory
}

/// The histogram variant for a device.
pub fn histogram_variant(caps: &DeviceCaps, shape: &HistogramShape) -> HistogramVariant {
    if caps.is_cpu {
        if shape.bytes && !shape.image {
            if shape.samples >= MIN_SAMPLES_FOR_PAIRS {
                HistogramVariant::Pairs
            } else {
                HistogramVariant::Bytes
            }
        } else if !shape.bytes && !shape.image {
            HistogramVariant::Direct
        } else {
            HistogramVariant::Private
        }
    } else if let Some(copies) = banked_copies(caps, shape) {
        HistogramVariant::Banked { copies }
    } else {
        without_banks(caps, shape)
    }
}

/// The variant that [`histogram_variant`] chooses for another number of samples, if that is another one.
pub fn for_another_size(variant: HistogramVariant) -> Option<HistogramVariant> {
    match variant {
        HistogramVariant::Pairs => Some(HistogramVariant::Bytes),
        HistogramVariant::Bytes => Some(HistogramVariant::Pairs),
        _ => None,
    }
}

/// The histogram variant for a device that cannot run the banked kernel with its work-group size.
pub fn without_banks(caps: &DeviceCaps, shape: &HistogramShape) -> HistogramVariant {
    if caps.is_cpu {
        histogram_variant(caps, shape)
    } else if local_fits(caps, shape) {
        HistogramVariant::Local
    } else {
        HistogramVariant::Private
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::devices::{cpu, gpu},
        *,
    };

    fn shape(counters: usize) -> HistogramShape {
        HistogramShape {
            counters,
            plane_counters: counters,
            bytes: true,
            samples: 12 << 20,
            image: false,
        }
    }

    #[test]
    fn histogram_variant_gpu_takes_as_many_copies_as_fit() {
        let copies = |counters| histogram_variant(&gpu(), &shape(counters));
        assert_eq!(copies(256), HistogramVariant::Banked { copies: 32 });
        assert_eq!(copies(768), HistogramVariant::Banked { copies: 16 });
        assert_eq!(copies(1024), HistogramVariant::Banked { copies: 8 });
        assert_eq!(copies(12 << 10), HistogramVariant::Local);
        assert_eq!(copies(65_536), HistogramVariant::Private);
        // The banked kernel holds one plane's counters at a time, a shared table those of all
        // planes.
        let planes = |plane_counters| HistogramShape {
            plane_counters,
            ..shape(3 * 8192)
        };
        let variant = |plane_counters| histogram_variant(&gpu(), &planes(plane_counters));
        assert_eq!(variant(4096), HistogramVariant::Banked { copies: 2 });
        assert_eq!(variant(8192), HistogramVariant::Private);
        let mut small = gpu();
        small.max_work_group = 20;
        assert_eq!(
            histogram_variant(&small, &shape(256)),
            HistogramVariant::Banked { copies: 16 }
        );
        small.local_memory = 1024;
        assert_eq!(
            histogram_variant(&small, &shape(256)),
            HistogramVariant::Local
        );
        small.local_memory = 0;
        assert_eq!(
            histogram_variant(&small, &shape(256)),
            HistogramVariant::Private
        );
    }

    #[test]
    fn histogram_variant_cpu_uses_pairs_for_large_byte_frames_only() {
        assert_eq!(
            histogram_variant(&cpu(), &shape(768)),
            HistogramVariant::Pairs
        );
        let small = HistogramShape {
            samples: 640 * 240,
            ..shape(256)
        };
        assert_eq!(histogram_variant(&cpu(), &small), HistogramVariant::Bytes);
        let words = HistogramShape {
            bytes: false,
            ..shape(256)
        };
        assert_eq!(histogram_variant(&cpu(), &words), HistogramVariant::Direct);
        let image = HistogramShape {
            image: true,
            ..shape(256)
        };
        assert_eq!(histogram_variant(&cpu(), &image), HistogramVariant::Private);
    }

    #[test]
    fn for_another_size_names_what_the_smallest_and_largest_frames_need() {
        for caps in [cpu(), gpu()] {
            for (bytes, image) in [(true, false), (false, false), (true, true)] {
                let variant = |samples| {
                    let shape = HistogramShape {
                        bytes,
                        image,
                        samples,
                        ..shape(256)
                    };
                    histogram_variant(&caps, &shape)
                };
                let (least, most) = (variant(1), variant(u64::from(u32::MAX)));
                let other = (least != most).then_some(most);
                assert_eq!(for_another_size(least), other);
                assert_eq!(for_another_size(most), other.map(|_| least));
            }
        }
    }
}
