//! Host memory that the device uses in place.

use std::{
    fmt::Debug,
    mem::ManuallyDrop,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use opencl3::memory::{CL_MEM_READ_ONLY, CL_MEM_USE_HOST_PTR};

use super::{
    context::ClContext,
    handle::{CAT, Mem},
    queue::Event,
};
use clinspect_core::ClError;

/// Longest time that a drop waits for the device. A drop waits only after an operator has failed midway.
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
    reader: Mutex<Option<Arc<Event>>>,
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
            reader: Mutex::default(),
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
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader);
    }
}

impl<T: HostBytes + ?Sized> Drop for HostMemory<T> {
    fn drop(&mut self) {
        let reader = self.reader.get_mut();
        let reader = reader.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reader) = reader
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
