//! The OpenCL runtime: devices, contexts, programs, and OpenCL memory as GStreamer memory.
//!
//! Only this crate uses `opencl3`. It calls the low-level functions with its own handles, because
//! the high-level types panic in `drop` when a release fails.

mod allocator;
mod buffer;
mod cache;
mod context;
mod device;
mod device_memory;
pub mod frame;
mod handle;
mod host_memory;
mod meter;
mod order;
mod pins;
mod pocl_cache;
mod program;
mod queue;
mod registry;
mod submission;
mod sync;
mod workers;

pub use allocator::{ClAllocator, ClBufferPool, buffer_of, new_plain_pool, new_video_pool};
pub use buffer::ClBuffer;
pub use cache::Cache;
pub use context::{ClContext, DeviceContext};
pub use device::DeviceInfo;
pub use device_memory::ClImage;
pub use handle::{Kernel, Mem};
pub use host_memory::{HostBytes, HostMemory, ResultMemory};
pub use meter::{FrameTimeline, Meter, Step, StepProfile, StepSpan, Taken, Totals};
pub use order::Access;
pub use pocl_cache::{check as check_pocl_cache, folder as pocl_cache_folder};
pub use program::{
    Compiling, Program, ProgramSource, beside_frames, observe_compiler, without_compiler,
};
pub use registry::{devices, open, open_profiled, selectors};
pub use submission::{Arg, Completion, Memory, Rows, Submission};
