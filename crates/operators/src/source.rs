//! What a kernel reads: a plane's buffer, or an image made of it on the device.

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::{
    layout::{Layout, SampleType},
    ndrange::{NdRange, fit_work_group},
};
use clinspect_opencl::frame::{ClFrame, Plane};
use clinspect_opencl::{Arg, ClContext, ClImage, Event, Kernel, Meter, ProgramSource};

use super::{PLAIN_GROUP, after, to_i32, to_u32};

/// The three arguments that every kernel begins with.
pub(super) fn plane_args<'a>(
    plane: &'a Plane,
    image: Option<&'a ClImage>,
    component_offset: usize,
) -> Result<[Arg<'a>; 3], ClError> {
    Ok(match image {
        Some(image) => [
            Arg::Mem(image.mem()),
            Arg::U64(component_offset as u64),
            Arg::U32(0),
        ],
        None => [
            Arg::Mem(plane.mem()),
            Arg::U64((plane.offset + component_offset) as u64),
            Arg::U32(to_u32(plane.stride, "a stride")?),
        ],
    })
}

/// Work-group of a kernel with one work-item a sample.
pub(super) fn plain_group(context: &ClContext, kernel: &Kernel) -> Result<[usize; 2], ClError> {
    let caps = context.caps();
    Ok(if caps.is_cpu {
        // Long groups: PoCL turns a group into a loop.
        fit_work_group(
            [256, 1],
            context.kernel_work_group(kernel)?,
            [caps.max_work_item[0], 1],
        )
    } else {
        fit_work_group(
            PLAIN_GROUP,
            context.kernel_work_group(kernel)?,
            [caps.max_work_item[0], caps.max_work_item[1]],
        )
    })
}

/// Images of a frame's planes, refilled for every frame.
#[derive(Debug)]
pub(super) struct PlaneImages {
    context: Arc<ClContext>,
    kernel: Kernel,
    group: [usize; 2],
    images: Vec<ClImage>,
}

const KERNEL: &str = "plane_to_image";

impl PlaneImages {
    /// Images for frames of `layout`.
    ///
    /// # Errors
    /// [`ClError::Refused`] for 16-bit samples, or a frame over the device's image size.
    pub fn new(context: &Arc<ClContext>, layout: &Layout) -> Result<Self, ClError> {
        if layout.sample != SampleType::U8 {
            return Err(ClError::Refused(
                "images hold 8-bit formats only: set memory-object=buffer for 16-bit frames".into(),
            ));
        }
        let kernel = context
            .program(ProgramSource::PlaneImage, "")?
            .kernel(KERNEL)?;
        let group = plain_group(context, &kernel)?;
        let images = layout
            .planes
            .iter()
            .map(|plane| ClImage::new(context, plane.row_bytes, plane.rows))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            context: context.clone(),
            kernel,
            group,
            images,
        })
    }

    /// Enqueues the copies of a frame's planes after `writers`, each after the one before, and
    /// returns them.
    ///
    /// # Errors
    /// The failing call.
    pub fn update(
        &mut self,
        frame: &ClFrame,
        writers: &[Arc<Event>],
        meter: &Meter,
    ) -> Result<Vec<Arc<Event>>, ClError> {
        let mut events = Vec::with_capacity(self.images.len());
        for (plane, image) in frame.planes().iter().zip(&self.images) {
            let [width, height] = image.size();
            let [src, offset, stride] = plane_args(plane, None, 0)?;
            let args = [
                src,
                offset,
                stride,
                Arg::Mem(image.mem()),
                Arg::I32(to_i32(width, "a row")?),
                Arg::I32(to_i32(height, "a height")?),
            ];
            let range = NdRange::cover([width, height], self.group);
            let event = self.context.run(
                &mut self.kernel,
                KERNEL,
                &args,
                &range,
                &after(writers, &events),
            )?;
            meter.count_image_copy();
            events.push(Arc::new(event));
        }
        Ok(events)
    }

    /// The image of a plane.
    pub fn get(&self, plane: usize) -> Option<&ClImage> {
        self.images.get(plane)
    }
}
