//! The OpenCL runtime: devices, contexts, programs, and OpenCL memory as GStreamer memory.
//!
//! Only this crate uses `opencl3`. It calls the low-level functions with its own handles, because
//! the high-level types panic in `drop` when a release fails.

mod allocator;
mod buffer;
mod cache;
mod caller;
mod context;
mod device;
pub mod frame;
mod handle;
mod memory;
mod meter;
mod order;
mod pins;
mod pocl;
mod program;
mod queue;
mod start;
mod submission;
mod sync;

pub use allocator::{ClAllocator, ClBufferPool, buffer_of, new_plain_pool, new_video_pool};
pub use buffer::ClBuffer;
pub use cache::Cache;
pub use context::{ClContext, DeviceContext, open, open_before, open_profiled};
pub use device::{DeviceInfo, devices, selectors};
pub use handle::{Kernel, Mem, NdRange};
pub use memory::{ClImage, ResultMemory};
pub use meter::{FrameTimeline, ImportPath, Meter, Step, StepProfile, StepSpan, Totals};
pub use order::Access;
pub use pocl::{cache_folder as pocl_cache_folder, check_cache as check_pocl_cache};
pub use program::{
    Compiling, Program, ProgramSource, beside_frames, observe_compiler, without_compiler,
};
pub use start::fail as fail_start;
pub use submission::{Arg, Completion, HostBytes, HostMemory, Memory, Reading, Rows, Submission};
