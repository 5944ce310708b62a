//! The OpenCL calls that the baselines need, through opencl3 and independent of the crate under
//! test.

use std::ptr;

use opencl3::{
    command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue},
    context::Context,
    device::{CL_DEVICE_TYPE_ALL, Device as ClDevice, get_all_devices},
    event::Event,
    kernel::Kernel,
    memory::{
        Buffer, CL_FLOAT, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_OBJECT_IMAGE2D,
        CL_MEM_READ_ONLY, CL_MEM_READ_WRITE, CL_R, CL_UNORM_INT8, CL_UNSIGNED_INT8, ClMem, Image,
    },
    program::Program,
    types::{CL_BLOCKING, CL_NON_BLOCKING, cl_image_desc, cl_image_format},
};

use crate::Error;

/// A device with a context and a queue of its own.
pub struct Device {
    queue: CommandQueue,
    context: Context,
    device: ClDevice,
}

/// Host memory that the device reads without another copy; owned by the device's context.
pub struct Pinned {
    buffer: Buffer<u8>,
    bytes: *mut u8,
    len: usize,
}

/// A kernel argument.
pub enum Arg<'a> {
    Buffer(&'a Buffer<u8>),
    Image(&'a Image),
    I32(i32),
    Local(usize),
}

/// How an image's samples are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pixels {
    /// As integers.
    Integer,
    /// As 0..1.
    Unit,
    /// As they are; samples are floats in memory.
    Float,
}

impl Pixels {
    /// Bytes of a sample.
    pub fn bytes(self) -> usize {
        match self {
            Self::Integer | Self::Unit => 1,
            Self::Float => size_of::<f32>(),
        }
    }
}

impl Device {
    /// Opens the device that the plugin's `device` property would choose for `selector`.
    pub fn open(selector: &str) -> Result<Self, Error> {
        let wanted = clinspect_opencl::open(selector)?.device_name().to_owned();
        let id = get_all_devices(CL_DEVICE_TYPE_ALL)?
            .into_iter()
            .find(|&id| ClDevice::new(id).name().is_ok_and(|n| n.trim() == wanted))
            .ok_or("the device is gone")?;
        let device = ClDevice::new(id);
        let context = Context::from_device(&device)?;
        // SAFETY: the device belongs to the context, which is kept as long as the queue.
        let queue =
            unsafe { CommandQueue::create(&context, device.id(), CL_QUEUE_PROFILING_ENABLE)? };
        Ok(Self {
            queue,
            context,
            device,
        })
    }

    /// Name, driver version and OpenCL version.
    pub fn about(&self) -> Result<[String; 3], Error> {
        Ok([
            self.device.name()?.trim().to_owned(),
            self.device.driver_version()?,
            self.device.version()?.trim().to_owned(),
        ])
    }

    /// Compute units.
    pub fn units(&self) -> Result<usize, Error> {
        Ok(self.device.max_compute_units()?.max(1) as usize)
    }

    /// Bytes of local memory of a work-group.
    pub fn local_memory(&self) -> Result<usize, Error> {
        Ok(self.device.local_mem_size()? as usize)
    }

    /// Most work-items of a group.
    pub fn work_group(&self) -> Result<usize, Error> {
        Ok(self.device.max_work_group_size()?.max(1))
    }

    /// Largest image.
    pub fn image_size(&self) -> Result<[usize; 2], Error> {
        Ok([
            self.device.image2d_max_width()?,
            self.device.image2d_max_height()?,
        ])
    }

    /// Builds a kernel.
    pub fn kernel(&self, source: &str, options: &str, name: &str) -> Result<Kernel, Error> {
        let options = format!("-cl-std=CL1.2 {options}");
        let program = Program::create_and_build_from_source(&self.context, source, &options)?;
        Ok(Kernel::create(&program, name)?)
    }

    /// A buffer of undefined contents.
    pub fn buffer(&self, bytes: usize) -> Result<Buffer<u8>, Error> {
        // SAFETY: no host pointer is given.
        Ok(unsafe {
            Buffer::create(
                &self.context,
                CL_MEM_READ_WRITE,
                bytes.max(1),
                ptr::null_mut(),
            )?
        })
    }

    /// A buffer that holds these bytes.
    pub fn filled(&self, bytes: &[u8]) -> Result<Buffer<u8>, Error> {
        let mut buffer = self.buffer(bytes.len())?;
        self.upload(&mut buffer, bytes)?;
        Ok(buffer)
    }

    /// An image of one sample per pixel.
    pub fn image(&self, [width, height]: [usize; 2], pixels: Pixels) -> Result<Image, Error> {
        let [most_x, most_y] = self.image_size()?;
        if width > most_x || height > most_y {
            return Err(crate::skip(format!(
                "an image is at most {most_x}x{most_y} here"
            )));
        }
        let format = cl_image_format {
            image_channel_order: CL_R,
            image_channel_data_type: match pixels {
                Pixels::Integer => CL_UNSIGNED_INT8,
                Pixels::Unit => CL_UNORM_INT8,
                Pixels::Float => CL_FLOAT,
            },
        };
        let shape = cl_image_desc {
            image_type: CL_MEM_OBJECT_IMAGE2D,
            image_width: width,
            image_height: height,
            image_depth: 1,
            image_array_size: 1,
            image_row_pitch: 0,
            image_slice_pitch: 0,
            num_mip_levels: 0,
            num_samples: 0,
            buffer: ptr::null_mut(),
        };
        // SAFETY: no host pointer is given; format and shape live during the call.
        Ok(unsafe {
            Image::create(
                &self.context,
                CL_MEM_READ_WRITE,
                &format,
                &shape,
                ptr::null_mut(),
            )?
        })
    }

    /// Writes bytes to a buffer's start and waits; the completed command.
    pub fn write(&self, buffer: &mut Buffer<u8>, bytes: &[u8]) -> Result<Event, Error> {
        // SAFETY: the write is blocking; the driver checks the range.
        Ok(unsafe {
            self.queue
                .enqueue_write_buffer(buffer, CL_BLOCKING, 0, bytes, &[])?
        })
    }

    /// Reads bytes from a buffer's start and waits; the completed command.
    pub fn read(&self, buffer: &Buffer<u8>, bytes: &mut [u8]) -> Result<Event, Error> {
        // SAFETY: the read is blocking; the driver checks the range.
        Ok(unsafe {
            self.queue
                .enqueue_read_buffer(buffer, CL_BLOCKING, 0, bytes, &[])?
        })
    }

    /// These bytes in pinned memory. `unpin` ends it.
    pub fn pinned(&self, bytes: &[u8]) -> Result<Pinned, Error> {
        let flags = CL_MEM_READ_ONLY | CL_MEM_ALLOC_HOST_PTR;
        let mut at: *mut std::ffi::c_void = ptr::null_mut();
        // SAFETY: no host pointer is given; the mapping is blocking and has the buffer's size, so that `at` holds
        // `bytes.len()` bytes until `unpin`.
        let buffer = unsafe {
            let buffer = Buffer::create(&self.context, flags, bytes.len(), ptr::null_mut())?;
            let all = bytes.len();
            self.queue.enqueue_map_buffer(
                &buffer,
                CL_BLOCKING,
                CL_MAP_WRITE,
                0,
                all,
                &mut at,
                &[],
            )?;
            ptr::copy_nonoverlapping(bytes.as_ptr(), at.cast(), all);
            buffer
        };
        Ok(Pinned {
            buffer,
            bytes: at.cast(),
            len: bytes.len(),
        })
    }

    /// Ends the mapping.
    pub fn unpin(&self, pinned: &Pinned) -> Result<(), Error> {
        let at = pinned.bytes.cast();
        // SAFETY: `at` is the mapping of this buffer; no command reads it any more, as all of them were waited for.
        unsafe {
            self.queue
                .enqueue_unmap_mem_object(pinned.buffer.get(), at, &[])?
        };
        Ok(self.queue.finish()?)
    }

    /// Writes pinned memory to buffers' starts `times` times in all, in turns, and waits for the last write.
    pub fn write_many(
        &self,
        pairs: &mut [(Pinned, Buffer<u8>)],
        times: usize,
    ) -> Result<(), Error> {
        let count = pairs.len().max(1);
        for at in (0..times).map(|n| n % count) {
            let (from, to) = &mut pairs[at];
            // SAFETY: the memory is mapped until `unpin`, and the queue is finished below.
            unsafe {
                let bytes = std::slice::from_raw_parts(from.bytes, from.len);
                self.queue
                    .enqueue_write_buffer(to, CL_NON_BLOCKING, 0, bytes, &[])?;
            }
            if at == 0 {
                self.queue.flush()?;
            }
        }
        Ok(self.queue.finish()?)
    }

    /// Writes bytes to a buffer's start and waits; device time, ns.
    pub fn upload(&self, buffer: &mut Buffer<u8>, bytes: &[u8]) -> Result<u64, Error> {
        let event = self.write(buffer, bytes)?;
        device_ns(&event, &event)
    }

    /// Reads bytes from a buffer's start; device time, ns.
    pub fn download(&self, buffer: &Buffer<u8>, bytes: &mut [u8]) -> Result<u64, Error> {
        let event = self.read(buffer, bytes)?;
        device_ns(&event, &event)
    }

    /// Writes rows that lie `stride` bytes apart to an image of `pixels`.
    pub fn upload_image(
        &self,
        image: &mut Image,
        [width, height]: [usize; 2],
        pixels: Pixels,
        bytes: &[u8],
        stride: usize,
    ) -> Result<(), Error> {
        if bytes.len() < stride * (height - 1) + width * pixels.bytes() {
            return Err("the rows are too short for the image".into());
        }
        // SAFETY: the write is blocking and reads what was just measured.
        unsafe {
            self.queue.enqueue_write_image(
                image,
                CL_BLOCKING,
                [0, 0, 0].as_ptr(),
                [width, height, 1].as_ptr(),
                stride,
                0,
                bytes.as_ptr().cast_mut().cast(),
                &[],
            )?
        };
        Ok(())
    }

    /// Reads the rows of an image of `pixels` without padding.
    pub fn download_image(
        &self,
        image: &Image,
        [width, height]: [usize; 2],
        pixels: Pixels,
    ) -> Result<Vec<u8>, Error> {
        let row = width * pixels.bytes();
        let mut bytes = vec![0; row * height];
        // SAFETY: the read is blocking and writes `row`·height bytes.
        unsafe {
            self.queue.enqueue_read_image(
                image,
                CL_BLOCKING,
                [0, 0, 0].as_ptr(),
                [width, height, 1].as_ptr(),
                row,
                0,
                bytes.as_mut_ptr().cast(),
                &[],
            )?
        };
        Ok(bytes)
    }

    /// Enqueues a kernel; `global` is a multiple of `local`, which the driver chooses if it is `None`.
    pub fn launch(
        &self,
        kernel: &Kernel,
        args: &[Arg],
        global: [usize; 2],
        local: impl Into<Option<[usize; 2]>>,
    ) -> Result<Event, Error> {
        let local = local.into();
        for (index, arg) in (0..).zip(args) {
            // SAFETY: the values are as the kernels declare them and are read during the call.
            unsafe {
                match arg {
                    Arg::Buffer(buffer) => kernel.set_arg(index, &buffer.get()),
                    Arg::Image(image) => kernel.set_arg(index, &image.get()),
                    Arg::I32(value) => kernel.set_arg(index, value),
                    Arg::Local(bytes) => kernel.set_arg_local_buffer(index, *bytes),
                }?;
            }
        }
        // SAFETY: every kernel checks its bounds; the caller keeps the memory until the wait.
        Ok(unsafe {
            self.queue.enqueue_nd_range_kernel(
                kernel.get(),
                2,
                ptr::null(),
                global.as_ptr(),
                local.as_ref().map_or(ptr::null(), |local| local.as_ptr()),
                &[],
            )?
        })
    }
}

/// From the start of `first` to the end of `last`, ns.
pub fn device_ns(first: &Event, last: &Event) -> Result<u64, Error> {
    let (from, to) = (
        first.profiling_command_start()?,
        last.profiling_command_end()?,
    );
    Ok(to.saturating_sub(from))
}

/// A work-group range that covers `extent`.
pub fn cover(extent: [usize; 2], local: [usize; 2]) -> [usize; 2] {
    [0, 1].map(|i| extent[i].next_multiple_of(local[i]))
}

#[cfg(test)]
mod tests {
    #[test]
    fn cover_odd_extent_is_whole_groups() {
        assert_eq!(super::cover([65, 1], [64, 4]), [128, 4]);
    }
}
