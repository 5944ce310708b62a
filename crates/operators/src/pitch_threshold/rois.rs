//! The regions of interest on the device.

use clinspect_core::{ClError, region::Rect};
use clinspect_opencl::{ClContext, Mem};

use super::upload;
use crate::to_i32;

/// The regions of interest on the device.
#[derive(Debug)]
pub(super) struct Rois {
    pub words: Vec<[i32; 4]>,
    pub memory: Mem,
}

impl Rois {
    pub fn new(context: &ClContext, regions: &[Rect]) -> Result<Self, ClError> {
        let words = roi_words(regions)?;
        let memory = upload(context, &words, "regions of interest")?;
        Ok(Self { words, memory })
    }

    /// Writes the regions, if they have changed. Their number stays the same.
    pub fn update(&mut self, context: &ClContext, regions: &[Rect]) -> Result<(), ClError> {
        let words = roi_words(regions)?;
        if words != self.words {
            let bytes = bytemuck::cast_slice(&words);
            context.write(&self.memory, 0, bytes, "regions of interest")?;
            self.words = words;
        }
        Ok(())
    }
}

fn roi_words(regions: &[Rect]) -> Result<Vec<[i32; 4]>, ClError> {
    let words = |r: &Rect| {
        let [x0, y0, x1, y1] = [r.x0, r.y0, r.x1, r.y1].map(|v| to_i32(v, "a region"));
        Ok([x0?, y0?, x1?, y1?])
    };
    regions.iter().map(words).collect()
}
