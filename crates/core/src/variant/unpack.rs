//! The kernel variants that unpack what cameras send.

use crate::device_caps::DeviceCaps;

/// How a frame is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnpackVariant {
    /// CPU: bands of rows, 16 packed samples or 32 pixels at a time.
    Rows,
    /// GPU: one work-item per 16 packed samples, or per 16 bytes of two rows of Bayer samples.
    Items,
}

/// The variant for a device.
pub fn unpack_variant(caps: &DeviceCaps) -> UnpackVariant {
    if caps.is_cpu {
        UnpackVariant::Rows
    } else {
        UnpackVariant::Items
    }
}

#[cfg(test)]
mod tests {
    use super::{super::devices, *};

    #[test]
    fn unpack_variant_depends_on_the_device() {
        assert_eq!(unpack_variant(&devices::cpu()), UnpackVariant::Rows);
        assert_eq!(unpack_variant(&devices::gpu()), UnpackVariant::Items);
    }
}
