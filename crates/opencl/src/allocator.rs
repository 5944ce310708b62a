//! `GstClMemory`: a GstMemory over a [`ClBuffer`], its allocator and its buffer pools.

use std::sync::{Arc, LazyLock, OnceLock};

use gst::{
    glib::{self, translate::FromGlibPtrBorrow},
    prelude::*,
    subclass::prelude::*,
};

use super::{buffer::ClBuffer, context::ClContext, meter::Meter, order::Access, sync::Lock};
use clinspect_core::ClError;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "clmemory",
        gst::DebugColorFlags::empty(),
        Some("OpenCL memory"),
    )
});

/// Name of the memory type.
const MEMORY_TYPE: &std::ffi::CStr = c"GstClMemory";

/// A GstMemory whose bytes are a [`ClBuffer`]'s.
#[repr(C)]
struct ClMemory {
    parent: gst::ffi::GstMemory,
    buffer: Arc<ClBuffer>,
}

mod imp {
    use super::*;

    #[derive(Default)]
    pub struct ClAllocator {
        pub(super) source: OnceLock<(Arc<ClContext>, Arc<Meter>)>,
        pub(super) failure: Lock<Option<ClError>>,
        pub(super) tell_refusal: OnceLock<Box<dyn Fn(ClError) + Send + Sync>>,
    }

    #[glib::object_subclass]
    impl ObjectSubclass for ClAllocator {
        const NAME: &'static str = "GstClAllocator";
        type Type = super::ClAllocator;
        type ParentType = gst::Allocator;

        fn instance_init(obj: &glib::subclass::InitializingObject<Self>) {
            let allocator = obj.as_ptr() as *mut gst::ffi::GstAllocator;
            // SAFETY: the instance is under construction, so no other thread sees it; the function
            // pointers and the type name live as long as the plugin, which is resident.
            unsafe {
                (*allocator).mem_type = MEMORY_TYPE.as_ptr();
                (*allocator).mem_map_full = Some(map);
                (*allocator).mem_unmap_full = Some(unmap);
                (*allocator).mem_share = Some(share);
                (*allocator).mem_copy = Some(copy);
            }
        }
    }

    impl ObjectImpl for ClAllocator {}
    impl GstObjectImpl for ClAllocator {}

    // SAFETY: `alloc` returns an initialised GstMemory of this allocator or null; `free` is its
    // inverse.
    unsafe impl AllocatorImpl for ClAllocator {
        unsafe fn alloc(
            &self,
            size: usize,
            params: &gst::AllocationParams,
        ) -> *mut gst::ffi::GstMemory {
            let total = size
                .checked_add(params.prefix())
                .and_then(|s| s.checked_add(params.padding()));
            let (Some(total), Some((context, meter))) = (total, self.source.get()) else {
                return std::ptr::null_mut();
            };
            let buffer = match ClBuffer::new(context, total.max(1), meter) {
                Ok(buffer) => buffer,
                Err(error) => {
                    gst::error!(CAT, imp = self, "cannot allocate {total} bytes: {error}");
                    match self.tell_refusal.get() {
                        Some(tell) => tell(error),
                        None => self.obj().keep_failure(error),
                    }
                    return std::ptr::null_mut();
                }
            };
            // SAFETY: the allocator outlives its memories, which hold a reference to it; offset
            // and size lie inside `total`.
            unsafe {
                new_memory(
                    self.obj().as_ptr().cast(),
                    std::ptr::null_mut(),
                    Arc::new(buffer),
                    params.flags().bits(),
                    total,
                    params.align(),
                    params.prefix(),
                    size,
                )
            }
        }

        unsafe fn free(&self, memory: *mut gst::ffi::GstMemory) {
            // SAFETY: `memory` came from `new_memory` and its last reference is gone.
            drop(unsafe { Box::from_raw(memory.cast::<ClMemory>()) });
        }
    }

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
    /// Allocates memory that host and device can both access.
    pub struct ClAllocator(ObjectSubclass<imp::ClAllocator>) @extends gst::Allocator, gst::Object;
}

impl ClAllocator {
    /// An allocator for `context`; `meter` counts maps and transfers of its memories.
    pub fn new(context: &Arc<ClContext>, meter: &Arc<Meter>) -> Self {
        let allocator: Self = glib::Object::new();
        // A new object's cell is empty.
        let _ = allocator.imp().source.set((context.clone(), meter.clone()));
        allocator
    }

    /// The same for elements upstream, which say of memory that is refused only that their stream has an error: `tell` gets
    /// each refusal, in the thread that asked for the memory.
    pub fn for_upstream(
        context: &Arc<ClContext>,
        meter: &Arc<Meter>,
        tell: impl Fn(ClError) + Send + Sync + 'static,
    ) -> Self {
        let allocator = Self::new(context, meter);
        // A new object's cell is empty.
        let _ = allocator.imp().tell_refusal.set(Box::new(tell));
        allocator
    }

    /// Takes the first failure of the allocator's memory since the last call. GStreamer itself only
    /// reports that there is no buffer, or that a buffer cannot be mapped.
    pub fn take_failure(&self) -> Option<ClError> {
        self.imp().failure.lock().take()
    }

    pub(super) fn keep_failure(&self, error: ClError) {
        self.imp().failure.lock().get_or_insert(error);
    }

    /// The context in which memory is allocated.
    pub fn context(&self) -> Option<&Arc<ClContext>> {
        self.imp().source.get().map(|(context, _)| context)
    }
}

/// The [`ClBuffer`] behind a memory of a [`ClAllocator`]; the memory starts `memory.offset()` bytes
/// into the buffer.
pub fn buffer_of(memory: &gst::MemoryRef) -> Option<&Arc<ClBuffer>> {
    memory.allocator()?.downcast_ref::<ClAllocator>()?;
    // SAFETY: every memory of a ClAllocator is a ClMemory and lives while it is borrowed.
    Some(unsafe { &(*memory.as_ptr().cast::<ClMemory>()).buffer })
}

/// Declares the contents of a memory from a pool undefined. If a kernel failed to write the memory,
/// the allocator keeps the failure for [`ClAllocator::take_failure`].
fn recycle(memory: &gst::MemoryRef) {
    let Some(buffer) = buffer_of(memory) else {
        return;
    };
    let failure = buffer.mark_undefined();
    let allocator = memory.allocator();
    if let (Some(error), Some(allocator)) = (
        failure,
        allocator.and_then(|a| a.downcast_ref::<ClAllocator>()),
    ) {
        allocator.keep_failure(error);
    }
}

/// # Safety
/// `allocator` is a ClAllocator, `parent` null or one of its memories, and
/// `offset + size ≤ maxsize ≤` the buffer's size.
#[allow(clippy::too_many_arguments)]
unsafe fn new_memory(
    allocator: *mut gst::ffi::GstAllocator,
    parent: *mut gst::ffi::GstMemory,
    buffer: Arc<ClBuffer>,
    flags: u32,
    maxsize: usize,
    align: usize,
    offset: usize,
    size: usize,
) -> *mut gst::ffi::GstMemory {
    let memory = Box::into_raw(Box::new(ClMemory {
        // SAFETY: GstMemory is plain data, and gst_memory_init fills it below.
        parent: unsafe { std::mem::zeroed() },
        buffer,
    }));
    // SAFETY: the struct is large enough, and the caller promises the rest.
    unsafe {
        gst::ffi::gst_memory_init(
            memory.cast(),
            flags,
            allocator,
            parent,
            maxsize,
            align,
            offset,
            size,
        );
    }
    memory.cast()
}

/// `GstMemoryMapFullFunction`
unsafe extern "C" fn map(
    memory: *mut gst::ffi::GstMemory,
    info: *mut gst::ffi::GstMapInfo,
    _size: usize,
) -> glib::ffi::gpointer {
    // SAFETY: GStreamer calls this function with a memory of this allocator and a filled map info.
    let (buffer, flags) = unsafe { (&(*memory.cast::<ClMemory>()).buffer, (*info).flags) };
    // SAFETY: a memory holds a reference to its allocator.
    let allocator = unsafe { gst::Allocator::from_glib_borrow((*memory).allocator) };
    let access = Access {
        read: flags & gst::ffi::GST_MAP_READ != 0,
        write: flags & gst::ffi::GST_MAP_WRITE != 0,
    };
    match buffer.map(access) {
        Ok(pointer) => pointer.cast(),
        Err(error) => {
            gst::error!(CAT, "cannot map OpenCL memory: {error}");
            // A conflict between two maps is not a fault of the device.
            if let (ClError::Call { .. }, Some(allocator)) =
                (&error, allocator.downcast_ref::<ClAllocator>())
            {
                allocator.keep_failure(error);
            }
            std::ptr::null_mut()
        }
    }
}

/// `GstMemoryUnmapFullFunction`
unsafe extern "C" fn unmap(memory: *mut gst::ffi::GstMemory, _info: *mut gst::ffi::GstMapInfo) {
    // SAFETY: GStreamer calls this function with a memory of this allocator that it has mapped.
    unsafe { &(*memory.cast::<ClMemory>()).buffer }.unmap();
}

/// `GstMemoryShareFunction`: a part of the same buffer; size -1 means up to the end.
unsafe extern "C" fn share(
    memory: *mut gst::ffi::GstMemory,
    offset: isize,
    size: isize,
) -> *mut gst::ffi::GstMemory {
    // SAFETY: GStreamer calls this function with a memory of this allocator and a part inside it;
    // sizes wrap as in GStreamer's own allocators.
    unsafe {
        let parent = if (*memory).parent.is_null() {
            memory
        } else {
            (*memory).parent
        };
        let size = if size == -1 {
            (*memory).size.wrapping_sub(offset as usize)
        } else {
            size as usize
        };
        new_memory(
            (*memory).allocator,
            parent,
            (*memory.cast::<ClMemory>()).buffer.clone(),
            (*parent).mini_object.flags | gst::ffi::GST_MINI_OBJECT_FLAG_LOCK_READONLY,
            (*memory).maxsize,
            (*memory).align,
            (*memory).offset.wrapping_add(offset as usize),
            size,
        )
    }
}

/// `GstMemoryCopyFunction`: a new memory with the same bytes; size -1 means up to the end. Null if
/// the source or the copy cannot be mapped.
///
/// Replaces GStreamer's default. If that cannot map the copy, it frees the copy without dropping the copy's reference
/// to the allocator, so allocator and context would live for ever.
unsafe extern "C" fn copy(
    memory: *mut gst::ffi::GstMemory,
    offset: isize,
    size: isize,
) -> *mut gst::ffi::GstMemory {
    use gst::ffi::{
        GST_MAP_READ, GST_MAP_WRITE, gst_allocator_alloc, gst_memory_map, gst_memory_unmap,
        gst_memory_unref,
    };
    // SAFETY: GStreamer calls this function with a memory of this allocator. Both maps end before
    // it returns, and `len` bytes lie in both: in the source because `offset + len` is at most the
    // mapped size.
    unsafe {
        let mut from = std::mem::zeroed();
        if gst_memory_map(memory, &mut from, GST_MAP_READ) == glib::ffi::GFALSE {
            return std::ptr::null_mut();
        }
        let offset = usize::try_from(offset).unwrap_or(0).min(from.size);
        let rest = from.size - offset;
        let len = usize::try_from(size).map_or(rest, |size| size.min(rest));
        let mut params: gst::ffi::GstAllocationParams = std::mem::zeroed();
        params.align = (*memory).align;
        let mut made = gst_allocator_alloc((*memory).allocator, len, &mut params);
        let mut to = std::mem::zeroed();
        if !made.is_null() && gst_memory_map(made, &mut to, GST_MAP_WRITE) == glib::ffi::GFALSE {
            gst_memory_unref(made);
            made = std::ptr::null_mut();
        }
        if !made.is_null() {
            std::ptr::copy_nonoverlapping(from.data.add(offset), to.data, len);
            gst_memory_unmap(made, &mut to);
        }
        gst_memory_unmap(memory, &mut from);
        made
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
