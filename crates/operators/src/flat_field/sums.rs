//! Sums of frames, for the references of the flat field.

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::{
    flat_field::{Reference, Shape},
    layout::{Component, FrameLayout},
};
use clinspect_opencl::frame::ClFrame;
use clinspect_opencl::{Arg, ClContext, Kernel, Mem, Meter, NdRange, ProgramSource};

use crate::{
    sample_options,
    source::{plain_group, source_args},
    to_i32, to_u32,
};

/// Most frames: the sums of 16-bit samples have 32 bits.
const MOST_FRAMES: u64 = 65_536;

/// Sums of frames on the device.
#[derive(Debug)]
pub struct FrameSums {
    context: Arc<ClContext>,
    shape: Shape,
    height: usize,
    components: Vec<Component>,
    kernel: Kernel,
    name: &'static str,
    group: [usize; 2],
    sums: Mem,
    /// Bytes of a sum.
    size: usize,
    /// Bytes of a frame.
    bytes: usize,
    saturated: Mem,
    most: u32,
    frames: u64,
    saturated_samples: u64,
}

impl FrameSums {
    pub(super) fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        shape: Shape,
        most: u32,
    ) -> Result<Self, ClError> {
        let is_line = shape.rows == 1;
        let (name, size) = if is_line {
            ("flat_field_sum_line", size_of::<u64>())
        } else {
            ("flat_field_sum_area", size_of::<u32>())
        };
        let options = sample_options(layout.sample, false);
        let kernel = context
            .program(ProgramSource::FlatField, &options)?
            .kernel(name)?;
        let bytes = shape.len() * size;
        let sums = context.device_memory(bytes)?;
        context.zero(&sums, bytes, "sums of frames")?;
        Ok(Self {
            context: context.clone(),
            shape,
            height: layout.height,
            components: layout
                .components
                .iter()
                .take(shape.components)
                .cloned()
                .collect(),
            group: plain_group(context, &kernel)?,
            kernel,
            name,
            sums,
            size,
            bytes: layout.bytes(),
            saturated: context.device_memory(size_of::<u32>())?,
            most,
            frames: 0,
            saturated_samples: 0,
        })
    }

    /// Adds a frame, and waits until it was read.
    ///
    /// # Errors
    /// [`ClError::Refused`] after 65536 frames; the failing call.
    pub fn add(&mut self, frame: &ClFrame, meter: &Meter) -> Result<(), ClError> {
        if self.frames >= MOST_FRAMES {
            return Err(ClError::Refused(format!(
                "sums hold at most {MOST_FRAMES} frames"
            )));
        }
        let mut submission = self.context.submit(meter, self.bytes);
        submission.zero(&self.saturated, size_of::<u32>(), "saturated samples")?;
        let rows = if self.shape.rows == 1 { 1 } else { self.height };
        let range = NdRange::cover([self.shape.width, rows], self.group);
        for (index, component) in self.components.iter().enumerate() {
            let plane = frame.plane(component.plane)?;
            let [src, offset, stride] = source_args(plane, None, component.offset)?;
            let args = [
                src,
                offset,
                stride,
                Arg::I32(to_i32(self.shape.width, "a width")?),
                Arg::I32(to_i32(self.height, "a height")?),
                Arg::I32(to_i32(self.shape.components, "a number")?),
                Arg::I32(to_i32(index, "a number")?),
                Arg::U32(to_u32(component.pixel_stride, "a step")?),
                Arg::U32(self.most),
                Arg::Mem(&self.sums),
                Arg::Mem(&self.saturated),
            ];
            submission.run(&mut self.kernel, self.name, &args, &range)?;
        }
        let mut count = [0; size_of::<u32>()];
        submission.read(&self.saturated, 0, &mut count, "saturated samples")?;
        self.saturated_samples += u64::from(u32::from_ne_bytes(count));
        self.frames += 1;
        Ok(())
    }

    /// Number of frames so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Share of the samples of all frames that are at the highest level.
    pub fn saturated(&self) -> f64 {
        let frame = self.shape.width * self.height * self.shape.components;
        self.saturated_samples as f64 / (frame as u64 * self.frames).max(1) as f64
    }

    /// The average of the frames.
    ///
    /// # Errors
    /// The failing call.
    pub fn average(&self) -> Result<Reference, ClError> {
        let mut bytes = vec![0; self.shape.len() * self.size];
        self.context
            .read(&self.sums, 0, &mut bytes, "sums of frames")?;
        let rows = if self.shape.rows == 1 {
            self.height as u64
        } else {
            1
        };
        let count = self.frames * rows;
        Ok(if self.size == size_of::<u64>() {
            let sums = bytes
                .as_chunks()
                .0
                .iter()
                .map(|&sum| u64::from_ne_bytes(sum));
            Reference::average(self.shape, sums, count)
        } else {
            let sums = bytes
                .as_chunks()
                .0
                .iter()
                .map(|&sum| u32::from_ne_bytes(sum).into());
            Reference::average(self.shape, sums, count)
        })
    }
}
