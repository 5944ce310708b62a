//! Which variant of a kernel runs where: pure functions of [`DeviceCaps`] and the work's shape.

use super::device_caps::DeviceCaps;

/// How a histogram is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HistogramVariant {
    /// CPU: one counter per pair of neighbouring bytes, a table set per work-item.
    Pairs,
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

/// What a histogram has to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistogramShape {
    /// Counters a frame needs: channels × bins.
    pub counters: usize,
    /// Samples are single bytes.
    pub bytes: bool,
    /// Samples counted a frame.
    pub samples: u64,
    /// Images instead of buffers.
    pub image: bool,
}

/// Most copies of a counter that help: the width of local memory in banks.
const MAX_COPIES: usize = 32;
/// Fewer copies than this and atomics collide as much as in a shared table.
const MIN_COPIES: usize = 2;
/// Frames with fewer samples per work-item than a pair table has entries do not repay its merging.
const MIN_SAMPLES_FOR_PAIRS: u64 = 4 * 65_536;

/// Bytes of one counter.
const COUNTER_BYTES: u64 = 4;

/// Copies of each counter that fit into local memory, if enough do.
pub fn banked_copies(caps: &DeviceCaps, shape: &HistogramShape) -> Option<usize> {
    let fit = caps.local_memory / (COUNTER_BYTES * shape.counters.max(1) as u64);
    // A copy that no work-item of a group counts in would only take room.
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
        if shape.bytes && !shape.image && shape.samples >= MIN_SAMPLES_FOR_PAIRS {
            HistogramVariant::Pairs
        } else if !shape.bytes && !shape.image {
            HistogramVariant::Direct
        } else {
            HistogramVariant::Private
        }
    } else if let Some(copies) = banked_copies(caps, shape) {
        HistogramVariant::Banked { copies }
    } else if local_fits(caps, shape) {
        HistogramVariant::Local
    } else {
        HistogramVariant::Private
    }
}

/// How a Gaussian is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GaussianVariant {
    /// CPU: a row at a time through a line buffer; by [`row_kernel`].
    Rows,
    /// GPU: tiles with their halo in local memory.
    Tile {
        /// Work-items of a group along x and y.
        group: [usize; 2],
    },
    /// Every tap from global memory, or from an image.
    Direct,
}

/// Work-group that a tile is made for.
const TILE_GROUP: [usize; 2] = [32, 8];

/// Local memory a tile needs, bytes: input tile with halo, and its vertical sums.
///
/// `lanes` is the distance of neighbours of one component, in samples.
pub fn tile_bytes(group: [usize; 2], taps: usize, lanes: usize) -> u64 {
    let halo = taps - 1;
    let columns = group[0] + halo * lanes;
    let rows = group[1] + halo;
    // The kernel keeps both as 32-bit words.
    4 * (columns * rows + columns * group[1]) as u64
}

/// The Gaussian variant for a device; `lanes` as in [`tile_bytes`].
pub fn gaussian_variant(
    caps: &DeviceCaps,
    taps: usize,
    lanes: usize,
    image: bool,
) -> GaussianVariant {
    if image {
        return GaussianVariant::Direct;
    }
    if caps.is_cpu {
        return GaussianVariant::Rows;
    }
    let group = super::ndrange::fit_work_group(
        TILE_GROUP,
        caps.max_work_group,
        [caps.max_work_item[0], caps.max_work_item[1]],
    );
    if tile_bytes(group, taps, lanes) <= caps.local_memory {
        GaussianVariant::Tile { group }
    } else {
        GaussianVariant::Direct
    }
}

/// Which kernel filters rows on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowKernel {
    /// 16-bit lanes, tiles of a row in the first cache.
    Bytes,
    /// Any samples.
    Any,
}

/// Samples of a vector, which the row kernel for bytes takes at least.
const VECTOR_SAMPLES: usize = 16;

/// The row kernel for rows of `samples`; `bytes`: 8-bit samples, `integer`: integer arithmetic,
/// `pitch`: samples between neighbours in memory.
pub fn row_kernel(samples: usize, bytes: bool, integer: bool, pitch: usize) -> RowKernel {
    if bytes && integer && pitch == 1 && samples >= VECTOR_SAMPLES {
        RowKernel::Bytes
    } else {
        RowKernel::Any
    }
}

/// How a pitch comparison writes its mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PitchVariant {
    /// One work-item a byte (8 pixels); any device, buffers or images.
    Bytes,
    /// CPU: bands of rows, a 32-bit word (32 pixels) at a time.
    Words,
}

/// The pitch comparison's variant for a device.
pub fn pitch_variant(caps: &DeviceCaps, image: bool) -> PitchVariant {
    if caps.is_cpu && !image {
        PitchVariant::Words
    } else {
        PitchVariant::Bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu() -> DeviceCaps {
        DeviceCaps {
            is_cpu: true,
            shares_host_memory: true,
            compute_units: 2,
            max_work_group: 4096,
            max_work_item: [4096; 3],
            local_memory: 512 << 10,
            max_allocation: 1 << 32,
            max_image: [16384; 2],
        }
    }

    fn gpu() -> DeviceCaps {
        DeviceCaps {
            is_cpu: false,
            shares_host_memory: false,
            compute_units: 132,
            max_work_group: 1024,
            max_work_item: [1024, 1024, 64],
            local_memory: 48 << 10,
            ..cpu()
        }
    }

    fn shape(counters: usize) -> HistogramShape {
        HistogramShape {
            counters,
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
        assert_eq!(histogram_variant(&cpu(), &small), HistogramVariant::Private);
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
    fn gaussian_variant_tile_too_large_for_local_memory_reads_directly() {
        assert_eq!(gaussian_variant(&cpu(), 3, 3, false), GaussianVariant::Rows);
        assert_eq!(
            gaussian_variant(&gpu(), 3, 3, false),
            GaussianVariant::Tile { group: [32, 8] }
        );
        assert_eq!(
            gaussian_variant(&gpu(), 31, 1, false),
            GaussianVariant::Tile { group: [32, 8] }
        );
        let mut small = gpu();
        small.local_memory = 1024;
        assert_eq!(
            gaussian_variant(&small, 31, 1, false),
            GaussianVariant::Direct
        );
        assert_eq!(
            gaussian_variant(&cpu(), 3, 1, true),
            GaussianVariant::Direct
        );
    }

    #[test]
    fn row_kernel_bytes_need_a_whole_vector_of_neighbours() {
        assert_eq!(row_kernel(16, true, true, 1), RowKernel::Bytes);
        for (samples, bytes, integer, pitch) in [
            (15, true, true, 1),
            (4096, false, true, 1),
            (4096, true, false, 1),
            (4096, true, true, 2),
        ] {
            assert_eq!(row_kernel(samples, bytes, integer, pitch), RowKernel::Any);
        }
    }

    #[test]
    fn pitch_variant_images_never_take_the_word_kernel() {
        assert_eq!(pitch_variant(&cpu(), false), PitchVariant::Words);
        assert_eq!(pitch_variant(&cpu(), true), PitchVariant::Bytes);
        assert_eq!(pitch_variant(&gpu(), false), PitchVariant::Bytes);
    }
}
