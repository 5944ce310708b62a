//! A model on the device.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    reference::{Limits, Model},
};
use clinspect_opencl::Mem;

use super::{Base, ReferenceSettings, reader::Reader, upload};

/// Rows of limits have a multiple of this many samples: the kernel's BLOCK.
const BLOCK: usize = 16;

/// The limits around a model, its mean, and what frames need to be read against it.
#[derive(Debug)]
pub(super) struct DeviceModel {
    pub reader: Reader,
    pub limits: Mem,
    /// Bytes of a row of limits.
    pub limit_stride: usize,
    pub mean: Mem,
}

impl DeviceModel {
    pub fn new(
        base: &Base,
        settings: &ReferenceSettings,
        model: &Arc<Model>,
    ) -> Result<Self, ClError> {
        let reader = Reader::new(base, settings, model)?;
        let limits = Limits::new(model, reader.judged(), &settings.deviations());
        let row_samples = base.size[0].next_multiple_of(BLOCK);
        let bytes = limits.to_bytes(row_samples, base.sample.bytes());
        Ok(Self {
            reader,
            limits: upload(&base.context, &bytes, "the limits")?,
            limit_stride: row_samples * base.sample.bytes(),
            mean: upload(&base.context, model.mean(), "the model")?,
        })
    }

    /// # Errors
    /// [`ClError::Refused`] if no pixel can be judged.
    pub fn check_judged(&self) -> Result<(), ClError> {
        if self.reader.all_judged() > 0 {
            return Ok(());
        }
        Err(ClError::Refused(
            "no pixel of the frame can be judged, because mask and regions of ignore cover all those of rois; \
             leave pixels to judge"
                .into(),
        ))
    }
}
