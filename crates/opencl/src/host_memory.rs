//! Memory of the host that commands of the device use.

use std::{
    fmt::Debug,
    mem::ManuallyDrop,
    ptr::{self, NonNull},
    slice,
    sync::Arc,
    time::Duration,
};

use opencl3::{
    command_queue::{enqueue_map_buffer, enqueue_unmap_mem_object},
    memory::{
        CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE,
        CL_MEM_SVM_FINE_GRAIN_BUFFER, CL_MEM_USE_HOST_PTR, svm_alloc, svm_free,
    },
    types::{CL_FALSE, cl_mem},
};

use super::{
    context::{ClContext, DeviceContext},
    handle::{CAT, Mem, release},
    order::{Address, Turn},
    queue::{Event, InOrderQueue},
    submission::Submission,
    sync::{Lock, Rank},
};
use clinspect_core::ClError;

/// Longest time that a drop waits for the device. A drop waits only after a frame has failed midway.
const DROP_LIMIT: Duration = Duration::from_secs(1);

/// Bytes of host memory that do not move.
///
/// # Safety
/// Until the value is dropped, [`Self::bytes`] returns the same address and length, even after the
/// value was moved, and nobody changes the bytes.
pub unsafe trait HostBytes: Debug + Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];
}

/// Host memory that the device reads in place (`CL_MEM_USE_HOST_PTR`). It stays alive until the
/// last command that reads it has ended; an earlier drop waits.
#[derive(Debug)]
pub struct HostMemory<T: HostBytes + ?Sized = dyn HostBytes> {
    mem: ManuallyDrop<Mem>,
    /// The last command that reads this memory.
    reader: Lock<Option<Arc<Event>>>,
    bytes: ManuallyDrop<T>,
}

impl<T: HostBytes> HostMemory<T> {
    /// Lets the device read `bytes`.
    ///
    /// # Errors
    /// The device refuses the memory.
    pub fn new(context: &ClContext, bytes: T) -> Result<Self, ClError> {
        let data = bytes.bytes();
        let mem = context.create_buffer(
            CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR,
            data.len(),
            data.as_ptr().cast_mut().cast(),
        )?;
        Ok(Self {
            mem: ManuallyDrop::new(mem),
            reader: Lock::new(Rank::Value, None),
            bytes: ManuallyDrop::new(bytes),
        })
    }
}

impl<T: HostBytes + ?Sized> HostMemory<T> {
    pub(super) fn mem(&self) -> &Mem {
        &self.mem
    }

    /// Sets the last command that reads the bytes.
    pub(super) fn set_reader(&self, reader: Arc<Event>) {
        let before = self.reader.lock().replace(reader);
        // Release the event after the lock.
        drop(before);
    }
}

impl<T: HostBytes + ?Sized> Drop for HostMemory<T> {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.get_mut().take()
            && !reader.ends_within(DROP_LIMIT)
        {
            gst::error!(
                CAT,
                "the device may still read a frame; leaking the frame's memory"
            );
            return;
        }
        // SAFETY: both are dropped only here, the memory object before the bytes under it.
        unsafe {
            ManuallyDrop::drop(&mut self.mem);
            ManuallyDrop::drop(&mut self.bytes);
        }
    }
}

/// Host memory that the driver pinned, so that transfers from and to it are fast and wait in no call. A drop waits for
/// nothing: the driver frees the memory after the commands before it in the queue.
#[derive(Debug)]
pub(super) struct Pinned {
    mem: Mem,
    address: Address,
    len: usize,
    /// The queue of the last command on the memory.
    queue: Arc<InOrderQueue>,
}

impl Pinned {
    /// `len` bytes, contents undefined, for commands of `queue`.
    ///
    /// # Errors
    /// The device is out of memory; a failing call.
    pub fn new(
        context: &DeviceContext,
        queue: &Arc<InOrderQueue>,
        len: usize,
    ) -> Result<Self, ClError> {
        let (pinned, mapped) = Self::enqueued(context, &context.order().lock().turn, queue, len)?;
        context.wait(&mapped, "pinned memory")?;
        Ok(pinned)
    }

    /// Like [`Self::new`]; the memory can be used after the command, or by later commands of the queue.
    ///
    /// # Errors
    /// The device is out of memory; a failing call.
    pub fn enqueued(
        context: &DeviceContext,
        turn: &Turn,
        queue: &Arc<InOrderQueue>,
        len: usize,
    ) -> Result<(Self, Arc<Event>), ClError> {
        let flags = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
        let mem = context.create_buffer(flags, len, ptr::null_mut())?;
        let mut pointer: cl_mem = ptr::null_mut();
        // SAFETY: the range is the whole buffer. Nobody uses the pointer before the command has ended.
        let mapped = queue.enqueue(turn, |raw| unsafe {
            enqueue_map_buffer(
                raw,
                mem.raw(),
                CL_FALSE,
                CL_MAP_READ | CL_MAP_WRITE,
                0,
                len,
                &mut pointer,
                0,
                ptr::null(),
            )
        });
        let mapped =
            mapped.map_err(|code| context.failed("clEnqueueMapBuffer", code, "pinned memory"))?;
        let pinned = Self {
            mem,
            address: Address(pointer.cast()),
            len,
            queue: queue.clone(),
        };
        Ok((pinned, mapped))
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn address(&self) -> Address {
        self.address
    }

    /// Copies the first bytes to `out`, which is no longer than the memory. All commands on the memory have ended.
    pub fn copy_to(&self, out: &mut [u8]) {
        let len = out.len().min(self.len);
        // SAFETY: the memory has `len` bytes, and no command uses it.
        unsafe { ptr::copy_nonoverlapping(self.address.0, out.as_mut_ptr(), len) };
    }

    /// Copies `bytes`, which are no longer than the memory, into it. No command uses the memory.
    pub fn copy_from(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(self.len);
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.address.0, len) };
    }

    /// Drops the memory after `user`, the last command on it.
    pub fn drop_after(mut self, user: &Event) {
        self.queue = user.queue().clone();
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let (queue, address) = (self.queue.clone(), self.address);
        release("clEnqueueUnmapMemObject", self.mem.raw(), move |mem| {
            let address = address;
            // SAFETY: the address came from mapping this buffer, which is released after this call, and nobody uses it
            // any more.
            queue.enqueue_late(|raw| unsafe {
                enqueue_unmap_mem_object(raw, mem, address.0.cast(), 0, ptr::null())
            })
        });
    }
}

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
        if !memory.is_shared() {
            return self.read(&memory.mem, offset, out, subject);
        }
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
