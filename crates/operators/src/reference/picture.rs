//! Draws the model, or a frame's difference from the model.

use std::sync::Arc;

use clinspect_core::{ClError, ndrange::NdRange};
use clinspect_opencl::{Arg, Kernel, Mem, Meter, frame::ClFrame};

use super::{Base, Reading, Reference};
use crate::{source::target_args, to_i32};

/// What a picture shows. Twin: `SHOW_MODEL` of `kernels/reference.cl`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Show {
    /// The mean; black without a model.
    Model,
    /// 128, plus the difference times this gain; 128 where nothing is judged.
    Difference(f64),
}

const KERNEL: &str = "reference_picture";

/// The kernel.
#[derive(Debug)]
pub(super) struct Pictures {
    kernel: Kernel,
    group: [usize; 2],
    /// A mean of zeros, made when a picture is drawn without a model.
    black: Option<Mem>,
}

impl Pictures {
    pub fn new(base: &Base) -> Result<Self, ClError> {
        let (kernel, group) = base.kernel(KERNEL)?;
        Ok(Self {
            kernel,
            group,
            black: None,
        })
    }
}

impl Reference {
    /// Draws a picture of the frame of the last [`Self::run`] into plane 0 of a GRAY8 frame, and waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn show(
        &mut self,
        frame: &ClFrame,
        out: &ClFrame,
        show: Show,
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        let base = &self.base;
        let pictures = &mut self.pictures;
        if self.model.is_none() && pictures.black.is_none() {
            let len = base.pixels() * size_of::<u32>();
            let black = base.context.device_memory(len)?;
            base.context
                .zero(&black, len, "a picture without a model")?;
            pictures.black = Some(black);
        }
        let Some(mean) = (self.model.as_ref().map(|model| &model.mean)).or(pictures.black.as_ref())
        else {
            return Ok(());
        };
        let plain = Reading::plain();
        let reading = self.reading.as_ref().unwrap_or(&plain);
        let (number, gain) = match show {
            Show::Model => (0, 0.0),
            Show::Difference(gain) => (1, gain),
        };
        let bitmap = match &self.model {
            Some(model) => model.reader.bitmap_args(),
            None => [Arg::Mem(mean), Arg::I32(0)],
        };
        let [dst, dst_offset, dst_stride] = target_args(out.plane(0)?, 0)?;
        let [width, height] = base.size;
        let mut args = base.frame_args(frame.plane(0)?)?.to_vec();
        args.extend([
            reading.judged_arg()?,
            reading.shift_arg(),
            reading.level_arg(base),
        ]);
        args.extend(bitmap);
        args.extend([
            Arg::Mem(mean),
            Arg::I32(number),
            Arg::I32(to_i32(base.depth.saturating_sub(8) as usize, "bits")?),
            Arg::I32((256.0 * gain).round() as i32),
            dst,
            dst_offset,
            dst_stride,
        ]);
        let range = NdRange::cover([width, height], pictures.group);
        let mut submission = base.context.submit(meter, base.bytes());
        submission.run(&mut pictures.kernel, KERNEL, &args, &range)?;
        submission.send()?.wait("the picture")
    }
}
