//! The device of an element, from its start to its stop, and the buffer pools in its memory.

use std::sync::Arc;

use gst::{glib, prelude::*};

use super::properties::{self, MemoryObject};
use clinspect_core::ClError;
use clinspect_opencl::{ClAllocator, ClContext, Meter, new_plain_pool, new_video_pool};
use clinspect_operators::SelfTest;
use clinspect_results::mask_caps::buffer_size;

/// The device of a started element, and the properties latched at the start.
#[derive(Debug, Clone)]
pub(super) struct Device {
    pub context: Arc<ClContext>,
    /// Counters of the element.
    pub meter: Arc<Meter>,
    /// Allocates memory in the context; the meter counts it.
    pub allocator: ClAllocator,
    /// Allocates the memory that is offered upstream.
    pub offered: ClAllocator,
    /// Kernels read images instead of buffers.
    pub images: bool,
    /// Frames are strips of a web.
    pub line_scan: bool,
    /// When operators are tested.
    pub self_test: SelfTest,
}

impl Device {
    /// Opens the device, and takes the properties that take effect at the start. Frames leave through the pad `source`.
    /// `tell` gets the refusals of memory that is offered upstream.
    ///
    /// # Errors
    /// There is no such device, or it cannot be used.
    pub fn open(
        settings: &properties::Settings,
        source: &gst::Pad,
        tell: impl Fn(ClError) + Send + Sync + 'static,
    ) -> Result<Self, ClError> {
        let context = if settings.profile {
            clinspect_opencl::open_profiled(&settings.device)?
        } else {
            let next = QueueQuery::ask(source);
            clinspect_opencl::open_before(&settings.device, next.as_deref())?
        };
        let meter = Meter::new(settings.profile);
        Ok(Self {
            allocator: ClAllocator::new(&context, &meter),
            offered: ClAllocator::for_upstream(&context, &meter, tell),
            context,
            meter,
            images: settings.memory_object == MemoryObject::Image,
            line_scan: settings.line_scan,
            self_test: settings.self_test,
        })
    }
}

/// The query by which an element finds the next one that uses OpenCL, past tees, queues and elements that let queries pass.
/// Elements start from the sinks on, so the next one has started.
pub(super) struct QueueQuery;

/// The context of an element in a query.
#[derive(Clone, glib::Boxed)]
#[boxed_type(name = "GstClInspectContext")]
struct NextContext(Arc<ClContext>);

impl QueueQuery {
    const NAME: &'static str = "clinspect-queue";
    const FIELD: &'static str = "context";

    fn ask(source: &gst::Pad) -> Option<Arc<ClContext>> {
        let mut query = gst::query::Custom::new(gst::Structure::new_empty(Self::NAME));
        if !source.peer_query(&mut query) {
            return None;
        }
        let answer = query.structure()?.get::<NextContext>(Self::FIELD).ok()?;
        Some(answer.0)
    }

    /// Answers if this is such a query; false else.
    pub fn answer(query: &mut gst::QueryRef, device: Option<&Device>) -> bool {
        let gst::QueryViewMut::Custom(query) = query.view_mut() else {
            return false;
        };
        let structure = query.structure_mut();
        match device {
            Some(device) if structure.name() == Self::NAME => {
                structure.set(Self::FIELD, NextContext(device.context.clone()));
                true
            }
            _ => false,
        }
    }
}

/// Number of buffers that a source may hold while the element works on one.
const MIN_BUFFERS: u32 = 2;

/// The caps of a query, and the size in bytes of a buffer with these caps.
fn checked(caps: Option<gst::Caps>, size: Option<usize>) -> Result<(gst::Caps, u32), ClError> {
    let caps = caps.ok_or_else(|| ClError::Refused("the allocation query has no caps".into()))?;
    let size = (size.and_then(|size| u32::try_from(size).ok()))
        .ok_or_else(|| ClError::Refused(format!("a buffer with the caps {caps} exceeds 4 GiB")))?;
    Ok((caps, size))
}

/// A pool of buffers with these caps.
fn pool(
    allocator: &ClAllocator,
    caps: &gst::Caps,
    size: u32,
    min: u32,
    video_meta: bool,
) -> Result<gst::BufferPool, ClError> {
    if caps.structure(0).is_some_and(|s| s.name() == "video/x-raw") {
        new_video_pool(allocator, caps, size, min, video_meta)
    } else {
        new_plain_pool(allocator, caps, size, min)
    }
}

/// Proposes a pool of OpenCL memory to upstream, with buffers of `size` bytes; `held` buffers wait in the element.
pub(super) fn propose(
    device: &Device,
    query: &mut gst::query::Allocation,
    size: Option<usize>,
    held: u32,
) -> Result<(), ClError> {
    let (caps, need_pool) = query.get_owned();
    let (caps, size) = checked(caps, size)?;
    let min = MIN_BUFFERS.saturating_add(held);
    let pool = need_pool
        .then(|| pool(&device.offered, &caps, size, min, false))
        .transpose()?;
    query.add_allocation_pool(pool.as_ref(), size, min, 0);
    query.add_allocation_param(
        Some(device.offered.upcast_ref::<gst::Allocator>()),
        gst::AllocationParams::default(),
    );
    query.add_allocation_meta::<gst_video::VideoMeta>(None);
    Ok(())
}

/// Decides on a pool of OpenCL memory: memory of another pool could not be written without a copy.
pub(super) fn decide(device: &Device, query: &mut gst::query::Allocation) -> Result<(), ClError> {
    let (caps, _) = query.get_owned();
    let size = caps.as_ref().and_then(buffer_size);
    let (caps, size) = checked(caps, size)?;
    let asked = query.allocation_pools().next().map(|(_, _, min, _)| min);
    let min = asked.unwrap_or(0);
    let video_meta = query
        .find_allocation_meta::<gst_video::VideoMeta>()
        .is_some();
    let pool = pool(&device.allocator, &caps, size, min, video_meta)?;
    if asked.is_some() {
        query.set_nth_allocation_pool(0, Some(&pool), size, min, 0);
    } else {
        query.add_allocation_pool(Some(&pool), size, min, 0);
    }
    Ok(())
}
