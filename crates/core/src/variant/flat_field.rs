//! The kernel variants of the flat field.

use crate::device_caps::DeviceCaps;

/// How a flat field corrects a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlatFieldVariant {
    /// CPU: bands of rows, 16 samples at a time.
    Rows,
    /// Any device, buffers or images: one work-item per 16 bytes of several rows.
    Items {
        /// Rows per work-item.
        rows: usize,
    },
}

/// Rows per work-item: enough loads in flight.
const ITEM_ROWS: usize = 2;

/// The flat field's variant for a device.
pub fn flat_field_variant(caps: &DeviceCaps, image: bool) -> FlatFieldVariant {
    if caps.is_cpu && !image {
        FlatFieldVariant::Rows
    } else {
        FlatFieldVariant::Items { rows: ITEM_ROWS }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::devices, *};

    #[test]
    fn flat_field_variant_depends_on_device_and_images() {
        use FlatFieldVariant::{Items, Rows};
        let items = Items { rows: ITEM_ROWS };
        assert_eq!(flat_field_variant(&devices::cpu(), false), Rows);
        assert_eq!(flat_field_variant(&devices::cpu(), true), items);
        assert_eq!(flat_field_variant(&devices::gpu(), false), items);
    }
}
