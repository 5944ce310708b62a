//! Memory objects, and commands on memory that only one operator uses, for which the order of the queue is enough.

use std::{ffi::c_void, mem::size_of, ptr, sync::Arc};

use opencl3::{
    command_queue::{enqueue_fill_buffer, enqueue_read_buffer, enqueue_write_buffer},
    memory::{
        CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE, CL_R, CL_UNSIGNED_INT8, cl_image_desc,
        cl_image_format, create_buffer, create_image,
    },
    types::{CL_FALSE, cl_mem},
};

use super::{
    context::{ClContext, DeviceContext, first_of},
    handle::{Mem, call_error},
    host_memory::Pinned,
    order::Turn,
    queue::Event,
};
use clinspect_core::ClError;

/// Pinned memory for small results and settings: the histograms of a colour frame fit.
const PINNED_BYTES: usize = 4096;
/// Larger pinned memory is not kept for the next transfer.
const MOST_PINNED_BYTES: usize = 1 << 20;

/// A transfer between the device and pinned memory that was enqueued.
#[derive(Debug)]
pub(super) struct Transfer {
    command: Arc<Event>,
    pinned: Pinned,
}

impl DeviceContext {
    /// A memory object of `size` bytes; with `CL_MEM_USE_HOST_PTR` in `flags`, the bytes at `host`, which the caller
    /// keeps for longer than the object.
    pub(super) fn create_buffer(
        &self,
        flags: u64,
        size: usize,
        host: *mut c_void,
    ) -> Result<Mem, ClError> {
        let limit = self.caps().max_allocation;
        if size as u64 > limit {
            return Err(ClError::Refused(format!(
                "{size} bytes are over the {limit} that {} allows for one buffer: send smaller frames, \
                 or set device to another one",
                self.device_name()
            )));
        }
        // SAFETY: `host` is null, or the caller keeps the bytes for longer than the memory object.
        unsafe { create_buffer(self.raw_context(), flags, size, host) }
            .map(Mem::new)
            .map_err(|code| call_error("clCreateBuffer", code, format!("{size} bytes")))
    }
}

impl ClContext {
    /// Memory that only the device uses: tables, weights, intermediate results.
    ///
    /// # Errors
    /// The device is out of memory, or `size` exceeds its limit.
    pub fn device_memory(&self, size: usize) -> Result<Mem, ClError> {
        self.create_buffer(CL_MEM_READ_WRITE, size.max(1), ptr::null_mut())
    }

    /// Pinned memory that no transfer uses now, if there is some for `len` bytes.
    pub(super) fn spare_pinned(&self, len: usize) -> Option<Pinned> {
        let mut spare = self.pinned().lock();
        let fitting = spare.iter().position(|pinned| pinned.len() >= len)?;
        Some(spare.swap_remove(fitting))
    }

    /// Keeps pinned memory for the next transfer.
    pub(super) fn keep_pinned(&self, pinned: Pinned) {
        if pinned.len() <= MOST_PINNED_BYTES {
            self.pinned().lock().push(pinned);
        }
    }

    /// `spare` if it holds `len` bytes, else new memory for later commands of [`Self::commands`].
    fn pinned_for(
        &self,
        turn: &Turn,
        spare: Option<Pinned>,
        len: usize,
    ) -> Result<Pinned, ClError> {
        match spare {
            Some(pinned) if pinned.len() >= len => Ok(pinned),
            _ => {
                let len = len.max(PINNED_BYTES);
                Pinned::enqueued(self, turn, self.commands(), len).map(|(pinned, _)| pinned)
            }
        }
    }

    /// Reads `out.len()` bytes from `offset`, and waits for the read and for all commands before
    /// it.
    pub fn read(
        &self,
        mem: &Mem,
        offset: usize,
        out: &mut [u8],
        subject: &str,
    ) -> Result<(), ClError> {
        let spare = self.spare_pinned(out.len());
        let range = [offset, out.len()];
        let reading =
            self.read_after(&self.order().lock().turn, mem, range, None, spare, subject)?;
        self.finish_read(reading, out, subject).map(drop)
    }

    /// Enqueues a read of `len` bytes from `offset`, and hands it to the device; a failure of `before` fails the read.
    pub(super) fn read_after(
        &self,
        turn: &Turn,
        mem: &Mem,
        [offset, len]: [usize; 2],
        before: Option<&Arc<Event>>,
        spare: Option<Pinned>,
        subject: &str,
    ) -> Result<Transfer, ClError> {
        let queue = self.commands();
        let pinned = self.pinned_for(turn, spare, len)?;
        let waits = self.wait_list(turn, queue, before.into_iter())?;
        // SAFETY: the driver checks the range against the buffer, and `Transfer` keeps the pinned memory, which has `len`
        // bytes, until the command has ended.
        let command = queue.enqueue(turn, |raw| unsafe {
            enqueue_read_buffer(
                raw,
                mem.raw(),
                CL_FALSE,
                offset,
                len,
                pinned.address().0.cast(),
                waits.len() as u32,
                first_of(&waits),
            )
        });
        let command = command.map_err(|code| self.failed("clEnqueueReadBuffer", code, subject))?;
        let transfer = Transfer { command, pinned };
        self.flush(turn, queue)?;
        Ok(transfer)
    }

    /// Waits for a read, and copies what was read to `out`. Returns the command.
    pub(super) fn finish_read(
        &self,
        reading: Transfer,
        out: &mut [u8],
        subject: &str,
    ) -> Result<Arc<Event>, ClError> {
        let Transfer { command, pinned } = reading;
        self.wait(&command, subject)?;
        pinned.copy_to(out);
        self.keep_pinned(pinned);
        Ok(command)
    }

    /// Writes bytes at `offset`, and waits until the device has them.
    pub fn write(
        &self,
        mem: &Mem,
        offset: usize,
        data: &[u8],
        subject: &str,
    ) -> Result<(), ClError> {
        self.write_by(data, subject, |pinned| {
            let ordered = self.order().lock();
            self.write_after(
                &ordered.turn,
                mem,
                [offset, data.len()],
                pinned,
                &[],
                subject,
            )
        })
    }

    /// Copies bytes to pinned memory, lets `enqueue` write them from there, and waits.
    pub(super) fn write_by(
        &self,
        data: &[u8],
        subject: &str,
        enqueue: impl FnOnce(&Pinned) -> Result<Arc<Event>, ClError>,
    ) -> Result<(), ClError> {
        let len = data.len();
        let mut pinned = match self.spare_pinned(len) {
            Some(pinned) => pinned,
            None => Pinned::new(self, self.commands(), len.max(PINNED_BYTES))?,
        };
        pinned.copy_from(data);
        let command = enqueue(&pinned)?;
        self.wait(&command, subject)?;
        self.keep_pinned(pinned);
        Ok(())
    }

    /// Enqueues a write of the first `len` bytes of `pinned` to `offset`, after `before`.
    pub(super) fn write_after(
        &self,
        turn: &Turn,
        mem: &Mem,
        [offset, len]: [usize; 2],
        pinned: &Pinned,
        before: &[Arc<Event>],
        subject: &str,
    ) -> Result<Arc<Event>, ClError> {
        let queue = self.commands();
        let waits = self.wait_list(turn, queue, before.iter())?;
        // SAFETY: the driver checks the range in the buffer; the caller keeps the pinned memory until the command has
        // ended.
        let command = queue.enqueue(turn, |raw| unsafe {
            enqueue_write_buffer(
                raw,
                mem.raw(),
                CL_FALSE,
                offset,
                len.min(pinned.len()),
                pinned.address().0.cast(),
                waits.len() as u32,
                first_of(&waits),
            )
        });
        command.map_err(|code| self.failed("clEnqueueWriteBuffer", code, subject))
    }

    /// Fills the first `len` bytes with zeros, and waits; `len` is a multiple of 4.
    pub fn zero(&self, mem: &Mem, len: usize, subject: &str) -> Result<(), ClError> {
        let zeroed = self.zero_after(&self.order().lock().turn, mem, len, &[], subject)?;
        self.wait(&zeroed, subject)
    }

    /// Enqueues the fill with zeros, after `before`.
    pub(super) fn zero_after(
        &self,
        turn: &Turn,
        mem: &Mem,
        len: usize,
        before: &[Arc<Event>],
        subject: &str,
    ) -> Result<Arc<Event>, ClError> {
        let queue = self.commands();
        let waits = self.wait_list(turn, queue, before.iter())?;
        let zero = 0_u32;
        // SAFETY: the pattern is copied during the call; the driver checks the range.
        queue
            .enqueue(turn, |raw| unsafe {
                enqueue_fill_buffer(
                    raw,
                    mem.raw(),
                    (&raw const zero).cast(),
                    size_of::<u32>(),
                    0,
                    len,
                    waits.len() as u32,
                    first_of(&waits),
                )
            })
            .map_err(|code| self.failed("clEnqueueFillBuffer", code, subject))
    }
}

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
