//! What kernels get: options, lengths, work-groups, and as input a plane's buffer or an image made from it on the device.

use clinspect_core::{
    ClError,
    layout::{FrameLayout, SampleType},
};
use clinspect_opencl::frame::{ClFrame, Plane};
use clinspect_opencl::{Arg, ClContext, ClImage, Kernel, Mem, NdRange, ProgramSource, Submission};

/// Work-group size on a GPU for plain kernels with one work-item per sample.
const PLAIN_GROUP: [usize; 2] = [64, 4];

/// Options that tell a program how samples are stored.
pub(super) fn sample_options(sample: SampleType, image: bool) -> String {
    format!(
        "-DSAMPLE_BYTES={} -DBIG_ENDIAN_SAMPLES={} -DUSE_IMAGE={}",
        sample.bytes(),
        u8::from(sample == SampleType::U16Be),
        u8::from(image),
    )
}

/// Memory with these words; `subject` names it in errors.
pub(super) fn upload<T: bytemuck::NoUninit>(
    context: &ClContext,
    words: &[T],
    subject: &str,
) -> Result<Mem, ClError> {
    let bytes: &[u8] = bytemuck::cast_slice(words);
    let mem = context.device_memory(bytes.len())?;
    // OpenCL refuses a write of no bytes.
    if !bytes.is_empty() {
        context.write(&mem, 0, bytes, subject)?;
    }
    Ok(mem)
}

/// A length as the kernels' `int`.
pub(super) fn to_i32(value: usize, what: &str) -> Result<i32, ClError> {
    i32::try_from(value).map_err(|_| ClError::Refused(format!("{what} of {value} is too large")))
}

/// A length as the kernels' `uint`.
pub(super) fn to_u32(value: usize, what: &str) -> Result<u32, ClError> {
    u32::try_from(value).map_err(|_| ClError::Refused(format!("{what} of {value} is too large")))
}

/// The three kernel arguments for an input: a plane from `component_offset` on, or its image.
pub(super) fn source_args<'a>(
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
        None => plane_args(Arg::Reads(plane.memory()), plane, component_offset)?,
    })
}

/// The three kernel arguments for an output: a plane from `component_offset` on.
pub(super) fn target_args(plane: &Plane, component_offset: usize) -> Result<[Arg<'_>; 3], ClError> {
    plane_args(Arg::Writes(plane.memory()), plane, component_offset)
}

fn plane_args<'a>(
    memory: Arg<'a>,
    plane: &Plane,
    component_offset: usize,
) -> Result<[Arg<'a>; 3], ClError> {
    Ok([
        memory,
        Arg::U64((plane.offset + component_offset) as u64),
        Arg::U32(to_u32(plane.stride, "a stride")?),
    ])
}

/// Work-group size of a kernel with one work-item per sample.
pub(super) fn plain_group(context: &ClContext, kernel: &Kernel) -> Result<[usize; 2], ClError> {
    let caps = context.caps();
    Ok(if caps.is_cpu {
        // PoCL turns a work-group into a loop, so work-groups are long.
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

/// Shrinks a work-group until the device and the kernel allow it.
///
/// The height is halved first, so that rows stay as long as possible.
fn fit_work_group(wish: [usize; 2], max_items: usize, max_extent: [usize; 2]) -> [usize; 2] {
    let mut size = [
        wish[0].min(max_extent[0]).max(1),
        wish[1].min(max_extent[1]).max(1),
    ];
    while size[0] * size[1] > max_items.max(1) {
        if size[1] > 1 {
            size[1] = size[1].div_ceil(2);
        } else {
            size[0] = max_items.max(1);
        }
    }
    size
}

/// Images of a frame's planes; each frame is copied into them.
#[derive(Debug)]
pub(super) struct PlaneImages {
    kernel: Kernel,
    group: [usize; 2],
    images: Vec<ClImage>,
}

const KERNEL: &str = "plane_to_image";

impl PlaneImages {
    /// Images for frames of `layout`.
    ///
    /// # Errors
    /// [`ClError::Refused`] for 16-bit samples, or a frame that exceeds the device's image size.
    pub fn new(context: &ClContext, layout: &FrameLayout) -> Result<Self, ClError> {
        if layout.sample != SampleType::U8 {
            return Err(ClError::Refused(
                "images support 8-bit formats only; set memory-object=buffer for 16-bit frames"
                    .into(),
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
            kernel,
            group,
            images,
        })
    }

    /// Copies a frame's planes.
    ///
    /// # Errors
    /// The failing call.
    pub fn update(&mut self, frame: &ClFrame, submission: &mut Submission) -> Result<(), ClError> {
        for (plane, image) in frame.planes().iter().zip(&self.images) {
            let [width, height] = image.size();
            let [src, offset, stride] = source_args(plane, None, 0)?;
            let args = [
                src,
                offset,
                stride,
                Arg::Mem(image.mem()),
                Arg::I32(to_i32(width, "a row")?),
                Arg::I32(to_i32(height, "a height")?),
            ];
            let range = NdRange::cover([width, height], self.group);
            submission.run(&mut self.kernel, KERNEL, &args, &range)?;
            submission.count_image_copy();
        }
        Ok(())
    }

    /// The image of a plane.
    // Inlined, the optimizer tests the number of images before it asks whether there are any. That is
    // harmless, but Valgrind reports it.
    #[inline(never)]
    pub fn get(&self, plane: usize) -> Option<&ClImage> {
        self.images.get(plane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fit_work_group_small_device_shrinks_rows_first() {
        assert_eq!(fit_work_group([32, 8], 256, [1024, 1024]), [32, 8]);
        assert_eq!(fit_work_group([32, 8], 64, [1024, 1024]), [32, 2]);
        assert_eq!(fit_work_group([32, 8], 16, [1024, 1024]), [16, 1]);
        assert_eq!(fit_work_group([32, 8], 100, [1024, 1024]), [32, 2]);
        assert_eq!(fit_work_group([32, 8], 1, [1, 1]), [1, 1]);
        assert_eq!(fit_work_group([32, 8], 0, [1, 1]), [1, 1]);
    }
}
