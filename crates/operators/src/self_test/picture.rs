//! Test frames on the host.

use clinspect_core::layout::{FrameLayout, SampleType};
use clinspect_oracle::{Geometry, SampleKind, Samples, put};

/// A frame on the host, with GStreamer's own strides.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    /// The frame.
    pub bytes: Vec<u8>,
    /// Format and size.
    pub info: gst_video::VideoInfo,
    /// Where each component lies.
    pub components: Vec<Geometry>,
}

impl Picture {
    /// A black frame.
    pub fn new(info: &gst_video::VideoInfo, layout: &FrameLayout) -> Self {
        let depth = match layout.sample {
            SampleType::U8 => SampleKind::U8,
            SampleType::U16Le => SampleKind::U16Le,
            SampleType::U16Be => SampleKind::U16Be,
        };
        let components = layout.components.iter().map(|component| Geometry {
            offset: info.offset()[component.plane] + component.offset,
            stride: info.stride()[component.plane].unsigned_abs() as usize,
            pixel_stride: component.pixel_stride,
            width: component.width,
            height: component.height,
            depth,
        });
        Self {
            bytes: vec![0; info.size()],
            info: info.clone(),
            components: components.collect(),
        }
    }

    /// The samples of a component.
    pub fn component(&self, index: usize) -> Samples<'_> {
        self.components[index].samples(&self.bytes)
    }

    /// Sets each sample of each component to a value of component, column and row.
    pub fn fill(&mut self, value: impl Fn(usize, usize, usize) -> u32) {
        for (index, geometry) in self.components.iter().enumerate() {
            for y in 0..geometry.height {
                for x in 0..geometry.width {
                    put(&mut self.bytes, geometry, x, y, value(index, x, y));
                }
            }
        }
    }
}

/// A number that looks random, the same for the same arguments.
///
/// # Source
/// The finaliser of MurmurHash3.
pub(super) fn noise(seed: u64, component: usize, x: usize, y: usize) -> u32 {
    let mut key = seed << 56 ^ (component as u64) << 48 ^ (y as u64) << 24 ^ x as u64;
    for _ in 0..2 {
        key = (key ^ key >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        key = (key ^ key >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    }
    (key ^ key >> 33) as u32
}
