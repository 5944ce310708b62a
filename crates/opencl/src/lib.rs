//! The OpenCL runtime: devices, contexts, programs, and OpenCL memory as GStreamer memory.
//!
//! Only this crate uses `opencl3`. It calls the low-level functions with its own handles, because
//! the high-level types panic in `drop` when a release fails.

mod allocator;
mod buffer;
mod compiling;
mod context;
mod cut_file;
mod device;
mod device_memory;
mod drain;
mod driver;
mod event;
pub mod frame;
mod handle;
mod host_memory;
mod image;
mod log;
mod mapping;
mod meter;
mod pins;
mod pocl_cache;
mod pool;
mod program;
mod queue;
mod registry;
mod releases;
mod result_memory;
mod state;
mod submission;
mod timeline;
mod transfers;
mod workers;
mod writes;

pub use allocator::{ClAllocator, buffer_of};
pub use buffer::ClBuffer;
pub use compiling::{Compiling, observe_compiler};
pub use context::ClContext;
pub use device::DeviceInfo;
pub use handle::{Kernel, Mem};
pub use host_memory::{HostBytes, HostMemory};
pub use image::ClImage;
pub use mapping::Access;
pub use meter::{Meter, Step, StepProfile, Taken, Totals};
pub use pool::{ClBufferPool, new_plain_pool, new_video_pool};
pub use program::{Program, ProgramSource, beside_frames, without_compiler};
pub use registry::{devices, open, selectors};
pub use result_memory::ResultMemory;
pub use submission::{Arg, Completion, Memory, Rows, Submission};
pub use timeline::{FrameTimeline, StepSpan};
