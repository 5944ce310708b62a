//! Memory for small results, which the host reads after each frame.

use std::{
    mem::ManuallyDrop,
    ptr::{self, NonNull},
    slice,
    sync::Arc,
    time::Duration,
};

use opencl3::memory::{
    CL_MEM_READ_WRITE, CL_MEM_SVM_FINE_GRAIN_BUFFER, CL_MEM_USE_HOST_PTR, svm_alloc, svm_free,
};

use super::{
    context::ClContext,
    handle::{CAT, Mem, release},
    submission::Submission,
};
use clinspect_core::ClError;

/// Longest time that a drop waits for the device. A drop waits only after an operator has failed midway.
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
