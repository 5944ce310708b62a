//! The kernel variants of the texture comparison.

use crate::{device_caps::DeviceCaps, texture::Repeat};

/// How a texture is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextureVariant {
    /// A work-item takes bands of rows; for a CPU, and for GPUs without the local memory for [`Self::Items`].
    Rows,
    /// A work-group takes a block of pixels.
    Items,
}

/// Work-items per work-group of [`TextureVariant::Items`].
pub const TEXTURE_GROUP: usize = 256;
/// Pixels of a row that a work-group of `texture_smooth` takes, four per work-item.
pub const TEXTURE_LINE: usize = 4 * TEXTURE_GROUP;
/// Local memory of `texture_mark`, bytes.
const MARK_LOCAL: u64 = 34 << 10;

/// Samples beyond the pixels of a work-group that the first kernel reads: those of a repeat's neighbours.
pub fn texture_line_reach(along_x: Option<&Repeat>) -> usize {
    along_x.map_or(0, |repeat| repeat.margin().max(repeat.full as usize + 1))
}

/// Local memory of `texture_smooth`, bytes: two rows of samples.
pub fn texture_line_bytes(reach: usize) -> usize {
    2 * (TEXTURE_LINE + 2 * reach + 2) * size_of::<u16>()
}

/// Whether a device can run [`TextureVariant::Items`].
pub fn texture_items_fit(caps: &DeviceCaps, along_x: Option<&Repeat>) -> bool {
    let line = texture_line_bytes(texture_line_reach(along_x)) as u64;
    caps.max_work_group >= TEXTURE_GROUP
        && caps.max_work_item[0] >= TEXTURE_GROUP
        && caps.local_memory >= MARK_LOCAL.max(line)
}

/// The texture comparison's variant for a device.
pub fn texture_variant(caps: &DeviceCaps, along_x: Option<&Repeat>) -> TextureVariant {
    if caps.is_cpu || !texture_items_fit(caps, along_x) {
        TextureVariant::Rows
    } else {
        TextureVariant::Items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variant::devices::{cpu, gpu};

    #[test]
    fn gpu_takes_blocks_if_its_local_memory_suffices() {
        let repeat = |pitch| Repeat::new(pitch, true, usize::MAX);
        assert_eq!(texture_variant(&cpu(), None), TextureVariant::Rows);
        assert_eq!(
            texture_variant(&gpu(), repeat(9.0).as_ref()),
            TextureVariant::Items
        );
        // Two rows of 1024 and twice 6000 samples, of two bytes each.
        assert_eq!(
            texture_variant(&gpu(), repeat(6000.0).as_ref()),
            TextureVariant::Rows
        );
        let small = DeviceCaps {
            local_memory: 32 << 10,
            ..gpu()
        };
        assert_eq!(texture_variant(&small, None), TextureVariant::Rows);
    }
}
