//! Splits interleaved pixels into planes.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::COMPONENTS,
    kernels::colour::BLOCK,
    layout::{Component, FrameLayout, SampleType},
};
use clinspect_opencl::{Arg, ClContext, Kernel, Meter, NdRange, ProgramSource, frame::ClFrame};

use crate::{
    source::{plain_group, source_args},
    to_i32, to_u32,
};

/// Bands of rows per compute unit of a CPU.
const BANDS_PER_UNIT: usize = 4;

/// Whether frames have red, green and blue in one plane of 8-bit samples.
pub fn is_colour(layout: &FrameLayout) -> bool {
    offsets(layout).is_some()
}

/// The layout of what an operator of grey frames reads of frames: the luma of colours, else the first plane.
pub fn grey_of(layout: &FrameLayout) -> FrameLayout {
    if is_colour(layout) {
        layout.grey()
    } else {
        layout.first_plane()
    }
}

/// The bytes of red, green and blue in a pixel, and the bytes of a pixel.
fn offsets(layout: &FrameLayout) -> Option<([usize; COMPONENTS], usize)> {
    let [red, green, blue] = layout.components.first_chunk()?;
    let pixel = red.pixel_stride;
    let is_one = |component: &Component| component.plane == 0 && component.pixel_stride == pixel;
    let all = [red, green, blue];
    let is_interleaved = (3..=4).contains(&pixel) && all.into_iter().all(is_one);
    (layout.sample == SampleType::U8 && is_interleaved)
        .then(|| (all.map(|component| component.offset), pixel))
}

/// Whether a plane has as many rows.
pub(super) fn holds(plane: &ClFrame, [_, height]: [usize; 2]) -> bool {
    let plane = plane.planes().first();
    plane.is_some_and(|plane| {
        (plane.aligned_len()).is_some_and(|bytes| plane.stride * height <= bytes)
    })
}

/// The kernels.
#[derive(Debug)]
pub(crate) struct Splitter {
    split: Kernel,
    luma: Kernel,
    group: [usize; 2],
}

impl Splitter {
    /// For frames of a layout with red, green and blue.
    pub fn new(context: &ClContext, layout: &FrameLayout) -> Result<Self, ClError> {
        let ([red, green, blue], pixel) = offsets(layout)
            .ok_or_else(|| ClError::Refused("the frames have no red, green and blue".into()))?;
        let options = format!("-DPIXEL_BYTES={pixel} -DRED={red} -DGREEN={green} -DBLUE={blue}");
        let program = context.program(ProgramSource::Colour, &options)?;
        let split = program.kernel("colour_split")?;
        Ok(Self {
            group: plain_group(context, &split)?,
            split,
            luma: program.kernel("colour_luma")?,
        })
    }

    /// Enqueues the split of a frame into three planes, or its luma into one.
    pub fn run(
        &mut self,
        context: &Arc<ClContext>,
        frame: &ClFrame,
        planes: &[ClFrame],
        [width, height]: [usize; 2],
        meter: &Meter,
    ) -> Result<(), ClError> {
        let blocks = width.div_ceil(BLOCK);
        let (item_blocks, item_rows, range) = if context.caps().is_cpu {
            let bands = (BANDS_PER_UNIT * context.caps().compute_units).min(height.max(1));
            let rows = height.div_ceil(bands).max(1);
            (blocks, rows, NdRange::tiles([1, height.div_ceil(rows)], 1))
        } else {
            (1, 1, NdRange::cover([blocks, height], self.group))
        };
        let [src, offset, stride] = source_args(frame.plane(0)?, None, 0)?;
        let mut args = vec![
            src,
            offset,
            stride,
            Arg::I32(to_i32(width, "a width")?),
            Arg::I32(to_i32(height, "a height")?),
        ];
        let mut plane_stride = 0;
        for plane in planes {
            let plane = plane.plane(0)?;
            plane_stride = plane.stride;
            args.push(Arg::Writes(plane.memory()));
        }
        args.extend([
            Arg::U32(to_u32(plane_stride, "a stride")?),
            Arg::I32(to_i32(item_blocks, "blocks")?),
            Arg::I32(to_i32(item_rows, "rows")?),
        ]);
        let (kernel, name) = if planes.len() == COMPONENTS {
            (&mut self.split, "colour_split")
        } else {
            (&mut self.luma, "colour_luma")
        };
        let bytes = width * height * COMPONENTS;
        let mut submission = context.submit(meter, bytes);
        submission.run(kernel, name, &args, &range)?;
        submission.enqueued().map(drop)
    }
}
