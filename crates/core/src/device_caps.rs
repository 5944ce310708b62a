//! What a device can do, as plain numbers.

/// Limits and traits of an OpenCL device that decide how work is laid out on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceCaps {
    /// The device is a CPU: few work-items with long rows are faster than many small ones.
    pub is_cpu: bool,
    /// Device and host share memory: host memory can be wrapped without a copy.
    pub shares_host_memory: bool,
    /// The device is a CPU whose results the host can read in place, without a command (fine-grained shared virtual
    /// memory).
    pub shares_results: bool,
    /// Number of compute units.
    pub compute_units: usize,
    /// Largest number of work-items in a work-group.
    pub max_work_group: usize,
    /// Largest extent of a work-group along each dimension.
    pub max_work_item: [usize; 3],
    /// Local memory per work-group, bytes.
    pub local_memory: u64,
    /// Largest single buffer, bytes.
    pub max_allocation: u64,
    /// The compiler accepts the instructions of `kernels/nvidia.cl`.
    pub has_dot4: bool,
    /// Largest 2-D image, pixels; zero where the device has no images.
    pub max_image: [usize; 2],
}

impl DeviceCaps {
    /// Whether the device supports images.
    pub fn has_images(&self) -> bool {
        self.max_image[0] > 0 && self.max_image[1] > 0
    }
}
