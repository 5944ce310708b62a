//! What the test compares of a frame.

use std::hash::{DefaultHasher, Hash, Hasher};

use clinspect_testkit::panels::without_ids;
use gst_video::prelude::*;
use gstclinspect::results::{DefectResult, HistogramResult};

/// Hashes of a frame's pixels and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// Without the bytes between rows; `None` if they were not read.
    pixels: Option<u64>,
    /// The results in metas.
    results: u64,
    /// The masks in metas, read when the pixels are read.
    masks: Option<u64>,
}

impl Fingerprint {
    /// Maps the frame and its masks only if `reads`.
    ///
    /// # Errors
    /// A map fails, or the caps are those of no frame.
    pub fn of(buffer: &gst::Buffer, caps: &gst::Caps, reads: bool) -> Result<Self, String> {
        let mut results = DefaultHasher::new();
        let mut masks = DefaultHasher::new();
        for found in HistogramResult::read(buffer) {
            format!("{found:?}").hash(&mut results);
        }
        for found in DefectResult::read(buffer) {
            if reads {
                for mask in found.mask.iter().chain(&found.ignored) {
                    let map = mask.map_readable().map_err(|why| why.to_string())?;
                    map.as_slice().hash(&mut masks);
                }
            }
            (found.mask.is_some(), found.ignored.is_some()).hash(&mut results);
            let found = DefectResult {
                // Ids count over all frames.
                defects: without_ids(&found.defects),
                mask: None,
                ignored: None,
                ..found
            };
            format!("{found:?}").hash(&mut results);
        }
        Ok(Self {
            pixels: reads.then(|| pixels(buffer, caps)).transpose()?,
            results: results.finish(),
            masks: reads.then(|| masks.finish()),
        })
    }

    /// How a frame differs from the expected one, of which everything was read.
    pub fn difference(&self, expected: &Self) -> Option<&'static str> {
        if self.pixels.is_some() && self.pixels != expected.pixels {
            Some("other pixels")
        } else if self.results != expected.results {
            Some("other results")
        } else if self.masks.is_some() && self.masks != expected.masks {
            Some("another mask")
        } else {
            None
        }
    }
}

fn pixels(buffer: &gst::Buffer, caps: &gst::Caps) -> Result<u64, String> {
    let mut hasher = DefaultHasher::new();
    let Ok(info) = gst_video::VideoInfo::from_caps(caps) else {
        let map = buffer.map_readable().map_err(|why| why.to_string())?;
        map.as_slice().hash(&mut hasher);
        return Ok(hasher.finish());
    };
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info)
        .map_err(|why| why.to_string())?;
    for plane in 0..frame.n_planes() {
        // A row ends with the last sample of the component that the plane holds first.
        let component = info.format_info().plane().iter().position(|&p| p == plane);
        let component = component.ok_or("a plane without component")?;
        let width =
            frame.comp_width(component as u32) * frame.comp_pstride(component as u32) as u32;
        let rows = frame.comp_height(component as u32) as usize;
        let stride = frame.plane_stride()[plane as usize] as usize;
        let data = frame.plane_data(plane).map_err(|why| why.to_string())?;
        for row in data.chunks(stride).take(rows) {
            row[..width as usize].hash(&mut hasher);
        }
    }
    Ok(hasher.finish())
}
