//! Chooses kernel variants: pure functions of the device's limits and of the shape of the work.

mod flat_field;
mod gaussian;
mod histogram;
mod pitch_threshold;
mod texture;
mod unpack;

pub use flat_field::{FlatFieldVariant, flat_field_variant};
pub use gaussian::{
    COLUMN_SAMPLES, GaussianShape, GaussianVariant, RowKernel, gaussian_variant, row_kernel,
    tile_bytes, tile_halo,
};
pub use histogram::{
    HistogramShape, HistogramVariant, banked_copies, for_another_size, histogram_variant,
    local_fits, without_banks,
};
pub use pitch_threshold::{
    PitchThresholdVariant, WIDE_MEMORY, fixed_rows, pitch_threshold_variant, wide_rows,
};
pub use texture::{
    TEXTURE_GROUP, TEXTURE_LINE, TextureVariant, texture_items_fit, texture_line_bytes,
    texture_line_reach, texture_variant,
};
pub use unpack::{UnpackVariant, unpack_variant};

#[cfg(test)]
mod devices {
    use crate::device_caps::DeviceCaps;

    pub fn cpu() -> DeviceCaps {
        DeviceCaps {
            is_cpu: true,
            shares_host_memory: true,
            shares_results: true,
            compute_units: 2,
            max_work_group: 4096,
            max_work_item: [4096; 3],
            local_memory: 512 << 10,
            has_dot4: false,
            max_allocation: 1 << 32,
            max_image: [16384; 2],
        }
    }

    pub fn gpu() -> DeviceCaps {
        DeviceCaps {
            is_cpu: false,
            shares_host_memory: false,
            shares_results: false,
            compute_units: 132,
            max_work_group: 1024,
            max_work_item: [1024, 1024, 64],
            local_memory: 48 << 10,
            has_dot4: true,
            ..cpu()
        }
    }
}
