//! The kernel variants of the Gaussian.

use crate::{device_caps::DeviceCaps, weights::is_binomial};

/// How a Gaussian is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GaussianVariant {
    /// CPU: bands of rows, through a line buffer; [`row_kernel`] chooses the kernel.
    Rows,
    /// GPU: the vertical sums of a tile in local memory.
    Tile {
        /// Work-items of a group: columns of 4 samples, halo included.
        columns: usize,
        /// Rows of a tile.
        rows: usize,
    },
    /// Every tap from global memory, or from an image.
    Direct,
}

/// The work that decides the variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GaussianShape {
    /// Taps along each axis.
    pub taps: usize,
    /// Samples from one sample of a component to the next.
    pub lanes: usize,
    /// 8-bit samples and integer arithmetic: two vertical sums share a word.
    pub packed: bool,
    /// Samples per row, and rows, of the frame's largest plane.
    pub extent: [usize; 2],
    /// Images instead of buffers.
    pub image: bool,
}

/// Samples of a column of a tile.
pub const COLUMN_SAMPLES: usize = 4;
/// Columns and rows of a tile.
const TILE: [usize; 2] = [128, 12];
/// Rows of a tile in frames that would otherwise have too few tiles.
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

/// The kernels that filter rows on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowKernel {
    /// `gaussian_binomial`: `gaussian_bytes` for weights of small integers, without widening bytes.
    Binomial,
    /// `gaussian_bytes`: sums in 16-bit lanes, tiles of a row in the first-level cache.
    Bytes,
    /// `gaussian_rows`: any samples.
    Any,
}

/// Samples of a vector; the row kernels for bytes need at least one vector per row.
const BYTES_SAMPLES: usize = 16;
const BINOMIAL_SAMPLES: usize = 32;

/// The row kernel for rows of `samples`; `weights_q8`: the weights of integer arithmetic, if that is used; `bytes`:
/// 8-bit samples; `pitch`: the kernels' macro `SAMPLE_STEP`.
pub fn row_kernel(
    samples: usize,
    weights_q8: Option<&[u32]>,
    bytes: bool,
    pitch: usize,
) -> RowKernel {
    match weights_q8 {
        Some(weights) if bytes && pitch == 1 => {
            if samples >= BINOMIAL_SAMPLES && is_binomial(weights) {
                RowKernel::Binomial
            } else if samples >= BYTES_SAMPLES {
                RowKernel::Bytes
            } else {
                RowKernel::Any
            }
        }
        _ => RowKernel::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::devices::{cpu, gpu},
        *,
    };
    use crate::weights::weights_q8;

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
        let binomial = weights_q8(5, 0.0);
        let other = weights_q8(5, 0.8);
        for (samples, weights, bytes, pitch, expected) in [
            (32, Some(&binomial), true, 1, RowKernel::Binomial),
            (31, Some(&binomial), true, 1, RowKernel::Bytes),
            (32, Some(&other), true, 1, RowKernel::Bytes),
            (16, Some(&other), true, 1, RowKernel::Bytes),
            (15, Some(&binomial), true, 1, RowKernel::Any),
            (4096, Some(&binomial), false, 1, RowKernel::Any),
            (4096, None, true, 1, RowKernel::Any),
            (4096, Some(&binomial), true, 2, RowKernel::Any),
        ] {
            let weights = weights.map(Vec::as_slice);
            assert_eq!(row_kernel(samples, weights, bytes, pitch), expected);
        }
    }
}
