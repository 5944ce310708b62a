//! Buffer pools of OpenCL memory.

use gst::{glib, prelude::*, subclass::prelude::*};

use super::allocator::{ClAllocator, recycle};
use clinspect_core::ClError;

mod imp {
    use super::*;

    #[derive(Default)]
    pub struct ClBufferPool;

    #[glib::object_subclass]
    impl ObjectSubclass for ClBufferPool {
        const NAME: &'static str = "GstClBufferPool";
        type Type = super::ClBufferPool;
        type ParentType = gst_video::VideoBufferPool;
    }

    impl ObjectImpl for ClBufferPool {}
    impl GstObjectImpl for ClBufferPool {}

    impl BufferPoolImpl for ClBufferPool {
        fn options() -> &'static [&'static str] {
            &[
                "GstBufferPoolOptionVideoMeta",
                "GstBufferPoolOptionVideoAlignment",
            ]
        }

        fn acquire_buffer(
            &self,
            params: Option<&gst::BufferPoolAcquireParams>,
        ) -> Result<gst::Buffer, gst::FlowError> {
            let buffer = self.parent_acquire_buffer(params)?;
            // In `acquire`, not in `release`: a shallow copy may still read the memory after the
            // release.
            for memory in buffer.iter_memories() {
                recycle(memory);
            }
            Ok(buffer)
        }
    }
}

glib::wrapper! {
    /// A video buffer pool over a [`ClAllocator`]; the contents of its buffers are undefined at
    /// first.
    pub struct ClBufferPool(ObjectSubclass<imp::ClBufferPool>)
        @extends gst_video::VideoBufferPool, gst::BufferPool, gst::Object;
}

// SAFETY: GstVideoBufferPoolClass adds nothing to GstBufferPoolClass, whose class_init runs.
unsafe impl IsSubclassable<imp::ClBufferPool> for gst_video::VideoBufferPool {}

/// A pool of video frames with `caps` in the allocator's memory, ready for activation.
///
/// # Errors
/// The pool refuses the caps.
pub fn new_video_pool(
    allocator: &ClAllocator,
    caps: &gst::Caps,
    size: u32,
    min_buffers: u32,
    video_meta: bool,
) -> Result<gst::BufferPool, ClError> {
    let pool: ClBufferPool = glib::Object::new();
    let pool = pool.upcast::<gst::BufferPool>();
    configure(&pool, allocator, caps, size, min_buffers, video_meta)?;
    Ok(pool)
}

/// A pool of buffers of `size` bytes that are not raw video, in the allocator's memory.
///
/// # Errors
/// The pool refuses the caps.
pub fn new_plain_pool(
    allocator: &ClAllocator,
    caps: &gst::Caps,
    size: u32,
    min_buffers: u32,
) -> Result<gst::BufferPool, ClError> {
    let pool = gst::BufferPool::new();
    configure(&pool, allocator, caps, size, min_buffers, false)?;
    Ok(pool)
}

fn configure(
    pool: &gst::BufferPool,
    allocator: &ClAllocator,
    caps: &gst::Caps,
    size: u32,
    min_buffers: u32,
    video_meta: bool,
) -> Result<(), ClError> {
    let mut config = pool.config();
    config.set_params(Some(caps), size, min_buffers, 0);
    config.set_allocator(
        Some(allocator.upcast_ref::<gst::Allocator>()),
        Some(&gst::AllocationParams::default()),
    );
    if video_meta {
        config.add_option("GstBufferPoolOptionVideoMeta");
    }
    pool.set_config(config)
        .map_err(|_| ClError::Refused(format!("the buffer pool does not accept {caps}")))
}
