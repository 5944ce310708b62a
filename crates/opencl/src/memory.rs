//! Memory of the device and of the host, and transfers of small results and settings.

use std::{
    ffi::c_void,
    fmt::Debug,
    mem::{ManuallyDrop, size_of},
    ptr::{self, NonNull},
    slice,
    sync::Arc,
    time::Duration,
};

use opencl3::{
    command_queue::{enqueue_fill_buffer, enqueue_read_buffer, enqueue_write_buffer},
    memory::{
        CL_MEM_ALLOC_HOST_PTR, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE,
        CL_MEM_SVM_FINE_GRAIN_BUFFER, CL_MEM_USE_HOST_PTR, CL_R, CL_UNSIGNED_INT8, cl_image_desc,
        cl_image_format, create_buffer, create_image, svm_alloc, svm_free,
    },
    types::{CL_FALSE, cl_mem},
};

use super::{
    context::{ClContext, DeviceContext},
    handle::{CAT, Mem, call_error, first_of, release, wait_for_late},
    order::Turn,
    queue::{Event, InOrderQueue, Pinned, Transfer},
    submission::Submission,
};
use clinspect_core::ClError;

/// Pinned memory for small results and settings: the histograms of a colour frame fit.
const PINNED_BYTES: usize = 4096;
/// Pieces of pinned memory that an element keeps: one for its frames, one for a thread that builds its next operator.
const MOST_PINNED: usize = 2;

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
        wait_for_late();
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

    /// `len` bytes of pinned memory, contents undefined, for commands of [`Self::commands`]. Waits for none of them.
    ///
    /// # Errors
    /// The device is out of memory; a failing call.
    pub(super) fn new_pinned(&self, len: usize) -> Result<Pinned, ClError> {
        let (pinned, mapped) =
            self.map_pinned(&self.order().lock().turn, self.common_queue(), len)?;
        self.wait(&mapped, "pinned memory")?;
        Ok(pinned.for_queue(self.commands()))
    }

    fn map_pinned(
        &self,
        turn: &Turn,
        queue: &Arc<InOrderQueue>,
        len: usize,
    ) -> Result<(Pinned, Arc<Event>), ClError> {
        let flags = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
        let mem = self.create_buffer(flags, len, ptr::null_mut())?;
        Pinned::over(mem, len, turn, queue)
            .map_err(|code| self.failed("clEnqueueMapBuffer", code, "pinned memory"))
    }

    /// The largest pinned memory that no transfer uses now.
    pub(super) fn spare_pinned(&self) -> Option<Pinned> {
        let mut spare = self.pinned().lock();
        let largest = (0..spare.len()).max_by_key(|&index| spare[index].len())?;
        Some(spare.swap_remove(largest))
    }

    /// Keeps pinned memory for the next transfer, if the element has not enough of it.
    pub(super) fn keep_pinned(&self, pinned: Pinned) {
        let mut spare = self.pinned().lock();
        spare.push(pinned);
        let smallest = (0..spare.len()).min_by_key(|&index| spare[index].len());
        let surplus =
            (smallest.filter(|_| spare.len() > MOST_PINNED)).map(|at| spare.swap_remove(at));
        drop(spare);
        // Released after the lock.
        drop(surplus);
    }

    /// Spare memory if it holds `len` bytes, else new memory for later commands of [`Self::commands`].
    fn pinned_for(&self, turn: &Turn, len: usize) -> Result<Pinned, ClError> {
        match self.spare_pinned() {
            Some(pinned) if pinned.len() >= len => Ok(pinned),
            _ => self
                .map_pinned(turn, self.commands(), len.max(PINNED_BYTES))
                .map(|(pinned, _)| pinned),
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
        let parts = [(mem, offset, out.len())];
        let reading = self.read_after(&self.order().lock().turn, &parts, None, subject)?;
        self.finish_read(reading, &mut [out], subject).map(drop)
    }

    /// Enqueues reads of parts of memories (the memory, offset and length), and hands them to the device; a failure of
    /// `before` fails the reads.
    pub(super) fn read_after(
        &self,
        turn: &Turn,
        parts: &[(&Mem, usize, usize)],
        before: Option<&Arc<Event>>,
        subject: &str,
    ) -> Result<Transfer, ClError> {
        let queue = self.commands();
        let len = parts.iter().map(|(_, _, len)| len).sum();
        let pinned = self.pinned_for(turn, len)?;
        let mut last = before.cloned();
        let mut to = pinned.address().0;
        for &part in parts {
            // SAFETY: `Transfer` keeps the pinned memory, which has room for all parts, until the last command has ended.
            let command =
                unsafe { self.enqueue_read(turn, queue, part, to, last.as_ref(), subject) };
            last = Some(command?);
            let (_, _, len) = part;
            // SAFETY: as above.
            to = unsafe { to.add(len) };
        }
        self.flush(turn, queue)?;
        let command = last.ok_or_else(|| ClError::Input("nothing is read".into()))?;
        Ok(Transfer { command, pinned })
    }

    /// Waits for a read, and copies what was read of each part. Returns the last command.
    pub(super) fn finish_read(
        &self,
        reading: Transfer,
        outs: &mut [&mut [u8]],
        subject: &str,
    ) -> Result<Arc<Event>, ClError> {
        let Transfer { command, pinned } = reading;
        self.wait(&command, subject)?;
        let mut at = 0;
        for out in outs {
            pinned.copy_to(at, out);
            at += out.len();
        }
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
        let mut pinned = match self.spare_pinned() {
            Some(pinned) if pinned.len() >= len => pinned,
            _ => self.new_pinned(len.max(PINNED_BYTES))?,
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
        let part = (mem, offset, len.min(pinned.len()));
        let from = pinned.address().0;
        // SAFETY: the caller keeps the pinned memory until the command has ended.
        unsafe { self.enqueue_write(turn, self.commands(), part, from, before, subject) }
    }

    /// Enqueues a read of a part of a memory (the memory, offset and length) to the host's memory at `to`, after `before`.
    ///
    /// # Safety
    /// There is room at `to`, which nobody uses until the command has ended.
    pub(super) unsafe fn enqueue_read<'a>(
        &self,
        turn: &Turn,
        queue: &Arc<InOrderQueue>,
        (mem, offset, len): (&Mem, usize, usize),
        to: *mut u8,
        before: impl IntoIterator<Item = &'a Arc<Event>>,
        subject: &str,
    ) -> Result<Arc<Event>, ClError> {
        let waits = self.wait_list(turn, queue, before.into_iter())?;
        // SAFETY: the driver checks the range in the memory; the rest is promised by the caller.
        let command = queue.enqueue(turn, |raw| unsafe {
            enqueue_read_buffer(
                raw,
                mem.raw(),
                CL_FALSE,
                offset,
                len,
                to.cast(),
                waits.len() as u32,
                first_of(&waits),
            )
        });
        command.map_err(|code| self.failed("clEnqueueReadBuffer", code, subject))
    }

    /// Enqueues a write of the host's bytes at `from` to a part of a memory (the memory, offset and length), after `before`.
    ///
    /// # Safety
    /// The bytes stay valid and unchanged until the command has ended.
    pub(super) unsafe fn enqueue_write<'a>(
        &self,
        turn: &Turn,
        queue: &Arc<InOrderQueue>,
        (mem, offset, len): (&Mem, usize, usize),
        from: *const u8,
        before: impl IntoIterator<Item = &'a Arc<Event>>,
        subject: &str,
    ) -> Result<Arc<Event>, ClError> {
        let waits = self.wait_list(turn, queue, before.into_iter())?;
        // SAFETY: the driver checks the range in the memory; the rest is promised by the caller.
        let command = queue.enqueue(turn, |raw| unsafe {
            enqueue_write_buffer(
                raw,
                mem.raw(),
                CL_FALSE,
                offset,
                len,
                from.cast_mut().cast(),
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
        wait_for_late();
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

/// Longest time that a drop waits for the device. A drop waits only after a frame has failed midway.
const DROP_LIMIT: Duration = Duration::from_secs(1);

/// Memory that kernels write and the host reads after each frame.
///
/// A command that reads a result makes PoCL wake a thread. A CPU device with fine-grained
/// shared virtual memory (OpenCL 2.0, 5.6.1) needs no such command: the host reads the memory in place, as soon as the
/// kernels have ended.
#[derive(Debug)]
pub struct ResultMemory {
    mem: ManuallyDrop<Mem>,
    /// The bytes of `mem`, if the host may use them in place.
    host: Option<NonNull<u8>>,
    len: usize,
    context: Arc<ClContext>,
}

// SAFETY: the host's access needs `&mut self` (`Submission::shared_result`), and OpenCL lets any thread use the buffer.
unsafe impl Send for ResultMemory {}
// SAFETY: as above; `&self` gives no access to the bytes.
unsafe impl Sync for ResultMemory {}

impl ResultMemory {
    /// `len` bytes, all zero.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn new(context: &Arc<ClContext>, len: usize, subject: &str) -> Result<Self, ClError> {
        let len = len.max(1);
        let host = Self::shared(context, len);
        let (flags, pointer) = match host {
            Some(host) => (CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, host.as_ptr()),
            None => (CL_MEM_READ_WRITE, ptr::null_mut()),
        };
        let mem = (context.create_buffer(flags, len, pointer.cast())).inspect_err(|_| {
            if let Some(host) = host {
                // SAFETY: no buffer uses the memory.
                let _ = unsafe { svm_free(context.raw_context(), host.as_ptr().cast()) };
            }
        })?;
        let memory = Self {
            mem: ManuallyDrop::new(mem),
            host,
            len,
            context: context.clone(),
        };
        match host {
            // SAFETY: the memory has `len` bytes, and no command uses the new buffer.
            Some(host) => unsafe { host.write_bytes(0, len) },
            None => context.zero(&memory.mem, len, subject)?,
        }
        Ok(memory)
    }

    /// Memory that device and host use in turns; `None` if the device or the driver has none.
    fn shared(context: &ClContext, len: usize) -> Option<NonNull<u8>> {
        if !context.caps().shares_results {
            return None;
        }
        let flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER;
        // SAFETY: the device supports these flags; the alignment is the default.
        let memory = unsafe { svm_alloc(context.raw_context(), flags, len, 0) };
        memory.ok().and_then(|bytes| NonNull::new(bytes.cast()))
    }

    /// The buffer, for a kernel's argument.
    pub fn mem(&self) -> &Mem {
        &self.mem
    }

    /// Whether the host uses the bytes in place.
    pub fn is_shared(&self) -> bool {
        self.host.is_some()
    }
}

impl Submission<'_> {
    /// Ends the commands, waits for them, and reads the result that they wrote.
    ///
    /// # Errors
    /// The failing call, or the failure of a command.
    pub fn read_result(
        self,
        memory: &mut ResultMemory,
        offset: usize,
        out: &mut [u8],
        subject: &str,
    ) -> Result<(), ClError> {
        let len = out.len();
        let bytes = self.shared_result(memory, len, subject)?;
        let part = offset
            .checked_add(len)
            .and_then(|end| bytes.get(offset..end));
        let part = part
            .ok_or_else(|| ClError::Input(format!("{subject} end before byte {offset} + {len}")))?;
        out.copy_from_slice(part);
        Ok(())
    }

    /// Ends the commands, waits for them, and lends the bytes of a result that the host uses in place; the host may
    /// change the bytes, too. `read` is the number of bytes that count as downloaded.
    ///
    /// # Errors
    /// The failing call, or the failure of a command; [`ClError::Input`] for memory that is not shared.
    pub fn shared_result<'m>(
        self,
        memory: &'m mut ResultMemory,
        read: usize,
        subject: &str,
    ) -> Result<&'m mut [u8], ClError> {
        let host = memory
            .host
            .ok_or_else(|| ClError::Input(format!("the host does not share {subject}")))?;
        self.finish(read, subject)?;
        // SAFETY: the memory has `len` bytes, which only its owner's commands use. The owner lends `memory`
        // exclusively, so it enqueues no command meanwhile, and the queue is in order, so all commands before have
        // ended.
        Ok(unsafe { slice::from_raw_parts_mut(host.as_ptr(), memory.len) })
    }
}

impl Drop for ResultMemory {
    fn drop(&mut self) {
        if let Some(host) = self.host {
            if !self.context.has_ended_within(DROP_LIMIT) {
                gst::error!(
                    CAT,
                    "the device may still write a result; leaking the result's memory"
                );
                return;
            }
            // SAFETY: dropped only here. The driver releases the buffer before the memory under it.
            unsafe { ManuallyDrop::drop(&mut self.mem) };
            let context = self.context.clone();
            release("clSVMFree", host.as_ptr().cast(), move |bytes| {
                // SAFETY: the bytes came from this context, and their buffer was released before.
                unsafe { svm_free(context.raw_context(), bytes) }
            });
        } else {
            // SAFETY: dropped only here.
            unsafe { ManuallyDrop::drop(&mut self.mem) };
        }
    }
}
