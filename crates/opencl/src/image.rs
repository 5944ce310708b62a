//! 2-D images of one 8-bit channel.

use opencl3::{
    memory::{
        CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE, CL_R, CL_UNSIGNED_INT8, cl_image_desc,
        cl_image_format, create_image,
    },
    types::cl_mem,
};
use std::ptr;

use super::{
    context::ClContext,
    handle::{Mem, call_error},
};
use clinspect_core::ClError;

/// An image of one 8-bit channel; a packed format is `width × components` wide.
#[derive(Debug)]
pub struct ClImage {
    mem: Mem,
    width: usize,
    height: usize,
}

impl ClImage {
    /// Allocates an image of `width` × `height` samples.
    ///
    /// # Errors
    /// [`ClError::Refused`] if the device has no images or only smaller ones.
    pub fn new(context: &ClContext, width: usize, height: usize) -> Result<Self, ClError> {
        let caps = context.caps();
        if !caps.has_images() {
            return Err(ClError::Refused(format!(
                "{} has no images: set memory-object=buffer",
                context.device_name()
            )));
        }
        let [max_width, max_height] = caps.max_image;
        if width > max_width || height > max_height {
            return Err(ClError::Refused(format!(
                "an image of {width}x{height} samples is over the {max_width}x{max_height} that \
                 {} allows: set memory-object=buffer",
                context.device_name()
            )));
        }
        let format = cl_image_format {
            image_channel_order: CL_R,
            image_channel_data_type: CL_UNSIGNED_INT8,
        };
        let description = cl_image_desc {
            image_type: CL_MEM_OBJECT_IMAGE2D,
            image_width: width,
            image_height: height,
            image_depth: 1,
            image_array_size: 1,
            image_row_pitch: 0,
            image_slice_pitch: 0,
            num_mip_levels: 0,
            num_samples: 0,
            buffer: ptr::null_mut::<std::ffi::c_void>() as cl_mem,
        };
        // SAFETY: format and description are read during the call; no host memory is given.
        unsafe {
            create_image(
                context.raw_context(),
                CL_MEM_READ_WRITE,
                &raw const format,
                &raw const description,
                ptr::null_mut(),
            )
        }
        .map(|mem| Self {
            mem: Mem::new(mem),
            width,
            height,
        })
        .map_err(|code| call_error("clCreateImage", code, format!("{width}x{height} samples")))
    }

    /// The memory object for kernels.
    pub fn mem(&self) -> &Mem {
        &self.mem
    }

    /// Samples per row, and rows.
    pub fn size(&self) -> [usize; 2] {
        [self.width, self.height]
    }
}
