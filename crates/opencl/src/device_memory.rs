//! Memory objects as they are made: for the device alone, and over host memory that it uses in place.

use std::{ffi::c_void, ptr};

use opencl3::memory::{CL_MEM_READ_ONLY, CL_MEM_READ_WRITE, CL_MEM_USE_HOST_PTR, create_buffer};

use super::{
    context::ClContext,
    handle::{Mem, call_error},
};
use clinspect_core::ClError;

/// Host memory that the device uses in place.
#[derive(Debug)]
pub struct Wrapped {
    mem: Mem,
}

impl Wrapped {
    /// Wraps `data` for reading.
    ///
    /// # Safety
    /// `data` stays valid and unchanged until this value is dropped, and no command that uses it
    /// is pending then.
    ///
    /// # Errors
    /// The device refuses the memory.
    pub unsafe fn new(context: &ClContext, data: &[u8]) -> Result<Self, ClError> {
        create(
            context,
            CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR,
            data.len(),
            data.as_ptr().cast_mut().cast(),
        )
        .map(|mem| Self { mem })
    }

    /// The memory object for kernels.
    pub fn mem(&self) -> &Mem {
        &self.mem
    }
}

impl ClContext {
    /// Memory for the device alone: tables, weights, intermediate results.
    ///
    /// # Errors
    /// The device has no room, or `size` is over its limit.
    pub fn device_memory(&self, size: usize) -> Result<Mem, ClError> {
        create(self, CL_MEM_READ_WRITE, size.max(1), ptr::null_mut())
    }
}

pub(super) fn create(
    context: &ClContext,
    flags: u64,
    size: usize,
    host: *mut c_void,
) -> Result<Mem, ClError> {
    let limit = context.caps().max_allocation;
    if size as u64 > limit {
        return Err(ClError::Refused(format!(
            "{size} bytes are over the {limit} that {} allows for one buffer: send smaller frames, \
             or set device to another one",
            context.device_name()
        )));
    }
    // SAFETY: `host` is null, or the caller of `Wrapped::new` promises its memory.
    unsafe { create_buffer(context.raw_context(), flags, size, host) }
        .map(Mem::new)
        .map_err(|code| call_error("clCreateBuffer", code, format!("{size} bytes")))
}
