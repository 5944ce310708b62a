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
        /// Copies of each counter of the plane with the most; a power of two.
        copies: usize,
    },
    /// One table per work-group in local memory.
    Local,
}

/// What a histogram has to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistogramShape {
    /// Counters that a frame needs: channels × bins.
    pub counters: usize,
    /// Counters that the plane with the most channels needs.
    pub plane_counters: usize,
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
    let fit = caps.local_memory / (COUNTER_BYTES * shape.plane_counters.max(1) as u64);
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
    } else {
        without_banks(caps, shape)
    }
}

/// The histogram variant for a device whose compiler allows no groups for counters in banks.
pub fn without_banks(caps: &DeviceCaps, shape: &HistogramShape) -> HistogramVariant {
    if caps.is_cpu {
        histogram_variant(caps, shape)
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
    /// GPU: vertical sums of a tile in local memory.
    Tile {
        /// Work-items of a group: columns of 4 samples, halo included.
        columns: usize,
        /// Rows.
        rows: usize,
    },
    /// Every tap from global memory, or from an image.
    Direct,
}

/// What a Gaussian has to filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GaussianShape {
    /// Taps along each axis.
    pub taps: usize,
    /// Distance of neighbours of one component, in samples.
    pub lanes: usize,
    /// 8-bit samples and integer sums.
    pub packed: bool,
    /// Samples of a row, and rows of the frame's largest plane.
    pub extent: [usize; 2],
    /// Images instead of buffers.
    pub image: bool,
}

/// Samples of a column of a tile.
pub const COLUMN_SAMPLES: usize = 4;
/// Columns and rows of a tile: of large frames, and of those that would have too few tiles.
const TILE: [usize; 2] = [128, 12];
const SMALL_TILE_ROWS: usize = 4;
/// Tiles per compute unit under which a frame is small.
const FEW_TILES: usize = 8;

/// Columns of halo on each side of a tile.
pub fn tile_halo(taps: usize, lanes: usize) -> usize {
    (taps / 2 * lanes).div_ceil(COLUMN_SAMPLES)
}

/// Local memory of a tile's vertical sums, bytes.
pub fn tile_bytes(columns: usize, rows: usize, packed: bool) -> u64 {
    // Packed sums are 16 bits, others 32.
    let sum = if packed { 2 } else { 4 };
    (columns * rows * COLUMN_SAMPLES * sum) as u64
}

/// The Gaussian variant for a device.
pub fn gaussian_variant(caps: &DeviceCaps, shape: &GaussianShape) -> GaussianVariant {
    if shape.image {
        return GaussianVariant::Direct;
    }
    if caps.is_cpu {
        return GaussianVariant::Rows;
    }
    let columns = TILE[0].min(caps.max_work_group).min(caps.max_work_item[0]);
    let halo = 2 * tile_halo(shape.taps, shape.lanes);
    if columns <= halo {
        return GaussianVariant::Direct;
    }
    let [samples, height] = shape.extent;
    let across = samples.div_ceil(COLUMN_SAMPLES * (columns - halo));
    let small = across * height.div_ceil(TILE[1]) < FEW_TILES * caps.compute_units;
    let rows = if small { SMALL_TILE_ROWS } else { TILE[1] };
    [rows, 1]
        .into_iter()
        .find(|&rows| tile_bytes(columns, rows, shape.packed) <= caps.local_memory)
        .map_or(GaussianVariant::Direct, |rows| GaussianVariant::Tile {
            columns,
            rows,
        })
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
    /// GPU: 16 bytes of a row a work-item, from aligned words.
    Wide {
        /// By dot products of bytes.
        dot4: bool,
    },
}

/// Bytes of a memory object that the wide kernel can address.
pub const WIDE_MEMORY: usize = 1 << 31;

/// The pitch comparison's variant for a device; `bytes`: 8-bit samples, `frame`: bytes of a frame.
pub fn pitch_variant(caps: &DeviceCaps, image: bool, bytes: bool, frame: usize) -> PitchVariant {
    if image {
        PitchVariant::Bytes
    } else if caps.is_cpu {
        PitchVariant::Words
    } else if caps.shares_host_memory || frame >= WIDE_MEMORY / 2 {
        // Host memory that is used in place starts anywhere; strides may double a frame.
        PitchVariant::Bytes
    } else {
        PitchVariant::Wide {
            dot4: bytes && caps.has_dot4,
        }
    }
}

/// Rows of a work-item of the wide kernel, by the work-items that one row each would make.
///
/// More rows share more of the preparation, but leave fewer work-items to hide latency with.
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
    use super::*;

    fn cpu() -> DeviceCaps {
        DeviceCaps {
            is_cpu: true,
            shares_host_memory: true,
            compute_units: 2,
            max_work_group: 4096,
            max_work_item: [4096; 3],
            local_memory: 512 << 10,
            has_dot4: false,
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
            has_dot4: true,
            ..cpu()
        }
    }

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
        // Banks hold a plane's counters at a time, a shared table those of all planes.
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

    fn gaussian(taps: usize, lanes: usize) -> GaussianShape {
        GaussianShape {
            taps,
            lanes,
            packed: true,
            extent: [3 * 4096, 3072],
            image: false,
        }
    }

    #[test]
    fn gaussian_variant_tile_fits_frame_and_local_memory() {
        let of = |shape: &GaussianShape| gaussian_variant(&gpu(), shape);
        let tile = |columns, rows| GaussianVariant::Tile { columns, rows };
        assert_eq!(
            gaussian_variant(&cpu(), &gaussian(3, 3)),
            GaussianVariant::Rows
        );
        assert_eq!(of(&gaussian(3, 3)), tile(128, 12));
        assert_eq!(of(&gaussian(31, 4)), tile(128, 12));
        let hd = GaussianShape {
            extent: [1920, 1080],
            ..gaussian(3, 1)
        };
        assert_eq!(of(&hd), tile(128, 4));
        let words = GaussianShape {
            packed: false,
            ..gaussian(3, 1)
        };
        assert_eq!(of(&words), tile(128, 12));
        let image = GaussianShape {
            image: true,
            ..gaussian(3, 1)
        };
        assert_eq!(of(&image), GaussianVariant::Direct);
        let mut small = gpu();
        small.local_memory = 8 << 10;
        assert_eq!(gaussian_variant(&small, &words), tile(128, 1));
        small.local_memory = 1 << 10;
        assert_eq!(gaussian_variant(&small, &words), GaussianVariant::Direct);
        small = gpu();
        small.max_work_group = 30;
        assert_eq!(
            gaussian_variant(&small, &gaussian(31, 4)),
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
    }

    #[test]
    fn wide_rows_grow_with_the_frame() {
        let rows = |width: usize, height| wide_rows(&gpu(), width / 16 * height);
        assert_eq!(rows(1920, 1080), 1);
        assert_eq!(rows(4096, 3072), 2);
        assert_eq!(rows(16_384, 16_384), 8);
    }
}
