//! Creation of memory objects, and memory that only the device uses.

use std::{ffi::c_void, ptr};

use opencl3::memory::{CL_MEM_READ_WRITE, create_buffer};

use super::{
    context::ClContext,
    handle::{Mem, call_error},
};
use clinspect_core::ClError;

impl ClContext {
    /// Memory that only the device uses: tables, weights, intermediate results.
    ///
    /// # Errors
    /// The device is out of memory, or `size` exceeds its limit.
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
    // SAFETY: `host` is null, or `HostMemory` keeps its memory for longer than the memory object.
    unsafe { create_buffer(context.raw_context(), flags, size, host) }
        .map(Mem::new)
        .map_err(|code| call_error("clCreateBuffer", code, format!("{size} bytes")))
}
