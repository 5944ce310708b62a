//! The OpenCL runtime: devices, contexts, programs, and OpenCL memory as GStreamer memory.
//!
//! `opencl3` is named only here. Its low-level calls are used with handles of our own, because
//! the drop of its high-level types panics where a release fails.

mod allocator;
mod buffer;
mod context;
mod device;
mod device_memory;
pub mod frame;
mod handle;
mod image;
mod mapping;
mod meter;
mod pocl_cache;
mod pool;
mod program;
mod registry;
mod releases;

pub use allocator::{ClAllocator, buffer_of};
pub use buffer::ClBuffer;
pub use context::{Arg, ClContext};
pub use device::{DeviceInfo, devices};
pub use device_memory::Wrapped;
pub use handle::{Event, Kernel, Mem};
pub use image::ClImage;
pub use mapping::Access;
pub use meter::{Meter, Step, StepProfile, Taken, Totals};
pub use pool::{ClBufferPool, new_plain_pool, new_video_pool};
pub use program::{Program, ProgramSource};
pub use registry::open;
