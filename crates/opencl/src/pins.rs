//! Memory of other elements that the driver keeps pinned, so that its frames cross the bus without a
//! copy by the CPU.
//!
//! A pin is a buffer with `CL_MEM_USE_HOST_PTR` that no command uses. On NVIDIA, transfers from
//! its memory then are DMA. The driver reads the pages that it pinned, even if other pages are
//! mapped at that address by then. So a pin never outlives its GstMemory, whose free function
//! releases it first; and no memory is pinned while a release is late or after one has failed.

use std::{
    collections::HashMap,
    ffi::{CStr, c_void},
    sync::{
        Arc, LazyLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use gst::glib::{self, translate::IntoGlib};
use opencl3::{
    memory::{CL_MEM_READ_WRITE, CL_MEM_USE_HOST_PTR, release_mem_object},
    types::cl_mem,
};

use super::{
    handle::{CAT, Mem, are_late, release},
    sync::{Lock, Rank},
};
use clinspect_core::ClError;

/// Smallest memory that is pinned, bytes. A copy of less takes no longer than a transfer.
const MIN_BYTES: usize = 1 << 16;
/// Limit of the bytes that a context pins. The system cannot move or swap pinned memory.
const MAX_BYTES: usize = 1 << 30;
/// Types of memory whose bytes stay at one address, in the same pages, until the memory is freed.
/// `V4l2Memory` is not one of them: with imported memory it gets other bytes for each frame.
const FIXED_TYPES: [&CStr; 2] = [
    c"SystemMemory",
    // Memory made from a slice by GStreamer's Rust bindings.
    c"RustGlobalAllocatorMemory",
];

/// A pin could not be released: the driver may use outdated pages for any address from now on.
static RELEASE_FAILED: AtomicBool = AtomicBool::new(false);

/// Pinned memory.
#[derive(Debug)]
struct Pin(cl_mem);

// SAFETY: OpenCL 1.2 (A.2) makes objects usable from any thread.
unsafe impl Send for Pin {}

impl Pin {
    /// Pins `len` bytes.
    ///
    /// # Errors
    /// The driver refuses the memory.
    fn new(
        start: usize,
        len: usize,
        create: impl FnOnce(u64, *mut c_void, usize) -> Result<Mem, ClError>,
    ) -> Result<Self, ClError> {
        // Writable for the device: otherwise the driver may pin pages that the first write of the
        // source replaces.
        let flags = CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR;
        let mem = create(flags, start as *mut c_void, len)?;
        Ok(Self(mem.into_raw()))
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        release("clReleaseMemObject", self.0, |mem| {
            // SAFETY: the pin owned this one reference, and it is released only here.
            let released = unsafe { release_mem_object(mem) };
            if released.is_err() {
                RELEASE_FAILED.store(true, Ordering::Release);
            }
            released
        });
    }
}

/// A GstMemory in which frames came.
#[derive(Debug)]
struct SourceMemory {
    /// Address and length of all its bytes.
    range: (usize, usize),
    /// The importers that had a frame in this memory.
    seen_by: Vec<u64>,
    pin: Option<Pin>,
    /// The memory cannot be pinned.
    is_refused: bool,
}

/// The memories of frames that came to a context, by the address of their GstMemory.
#[derive(Debug)]
pub(crate) struct Pins {
    known: Lock<HashMap<usize, SourceMemory>>,
}

impl Default for Pins {
    fn default() -> Self {
        Self {
            known: Lock::new(Rank::Pins, HashMap::new()),
        }
    }
}

impl Pins {
    /// Whether `memory` is pinned, so that a frame in it needs no copy; `bytes` are the memory's bytes, as mapped. Pins
    /// memory at the second frame that the importer with this number gets in it: pinning takes as long as a copy, so
    /// memory that is used only once is not pinned. `create` makes a memory object with
    /// the given flags over the bytes from an address on.
    pub fn pin(
        self: &Arc<Self>,
        memory: &gst::MemoryRef,
        bytes: &[u8],
        importer: u64,
        create: impl FnOnce(u64, *mut c_void, usize) -> Result<Mem, ClError>,
    ) -> bool {
        let range = (
            (bytes.as_ptr() as usize).wrapping_sub(memory.offset()),
            memory.maxsize(),
        );
        let is_usable = range.1 >= MIN_BYTES
            && FIXED_TYPES.iter().any(|name| is_type(memory, name))
            && !RELEASE_FAILED.load(Ordering::Acquire)
            && !are_late();
        if !is_usable {
            return false;
        }
        let key = key_of(memory);
        let mut known = self.known.lock();
        let Some(entry) = known.get_mut(&key) else {
            let entry = SourceMemory {
                range,
                seen_by: vec![importer],
                pin: None,
                is_refused: false,
            };
            known.insert(key, entry);
            drop(known);
            forget_when_freed(memory.parent().unwrap_or(memory), self);
            return false;
        };
        if entry.range != range {
            // The address is not fixed after all.
            entry.is_refused = true;
            entry.pin = None;
        }
        if entry.pin.is_some() || entry.is_refused {
            return entry.pin.is_some();
        }
        if !entry.seen_by.contains(&importer) {
            entry.seen_by.push(importer);
            return false;
        }
        let pinned = known.values().filter(|entry| entry.pin.is_some());
        if pinned.map(|entry| entry.range.1).sum::<usize>() + range.1 > MAX_BYTES {
            return false;
        }
        // The driver pins slowly, and other threads must not wait for the lock meanwhile.
        drop(known);
        let pin = Pin::new(range.0, range.1, create);
        let mut known = self.known.lock();
        let Some(entry) = known.get_mut(&key) else {
            return false;
        };
        match pin {
            Ok(pin) => {
                gst::debug!(CAT, "pinned {} bytes of a source's memory", range.1);
                entry.pin = Some(pin);
            }
            Err(error) => {
                gst::info!(CAT, "a source's memory is not pinned but copied: {error}");
                entry.is_refused = true;
            }
        }
        entry.pin.is_some()
    }

    /// Whether `memory` is pinned.
    pub fn has(&self, memory: &gst::MemoryRef) -> bool {
        let known = self.known.lock();
        let entry = known.get(&key_of(memory));
        entry.is_some_and(|entry| entry.pin.is_some())
    }

    /// Releases all pins, before their context.
    pub fn clear(&self) {
        // Under the lock: a thread that frees a memory now must wait until its pin is released.
        self.known.lock().clear();
    }

    fn forget(&self, memory: usize) {
        self.known.lock().remove(&memory);
    }
}

/// The address of the GstMemory that owns the bytes of `memory`, which may be a part of it.
fn key_of(memory: &gst::MemoryRef) -> usize {
    memory.parent().unwrap_or(memory).as_ptr() as usize
}

fn is_type(memory: &gst::MemoryRef, name: &CStr) -> bool {
    // SAFETY: the memory lives while it is borrowed, and the name ends with a zero.
    unsafe {
        gst::ffi::gst_memory_is_type(memory.as_ptr().cast_mut(), name.as_ptr()) != glib::ffi::GFALSE
    }
}

/// The contexts that know a memory; kept with the memory.
struct Tag {
    memory: usize,
    contexts: Vec<Weak<Pins>>,
}

/// Makes `pins` forget the memory before the memory is freed.
fn forget_when_freed(memory: &gst::MemoryRef, pins: &Arc<Pins>) {
    static QUARK: LazyLock<glib::Quark> = LazyLock::new(|| glib::Quark::from_str("clinspect-pins"));
    /// Locked while a tag is looked up and changed.
    static TAGS: Lock<()> = Lock::new(Rank::Tags, ());
    let _tags = TAGS.lock();
    let object = memory.as_ptr().cast_mut().cast::<gst::ffi::GstMiniObject>();
    let quark = QUARK.into_glib();
    // SAFETY: the memory lives while it is borrowed. Only this function sets data with this quark:
    // a `Tag`, which lives until the memory is freed, and which the lock protects.
    unsafe {
        let tag = gst::ffi::gst_mini_object_get_qdata(object, quark).cast::<Tag>();
        if let Some(tag) = tag.as_mut() {
            tag.contexts.retain(|context| context.strong_count() > 0);
            tag.contexts.push(Arc::downgrade(pins));
            return;
        }
        let tag = Box::new(Tag {
            memory: object as usize,
            contexts: vec![Arc::downgrade(pins)],
        });
        let tag = Box::into_raw(tag).cast();
        gst::ffi::gst_mini_object_set_qdata(object, quark, tag, Some(freed));
    }
}

/// `GDestroyNotify` of a [`Tag`]: GStreamer calls it before the memory's free function.
unsafe extern "C" fn freed(tag: glib::ffi::gpointer) {
    // SAFETY: the data of this quark is a boxed `Tag`, given to GStreamer once.
    let tag = unsafe { Box::from_raw(tag.cast::<Tag>()) };
    for pins in tag.contexts.iter().filter_map(Weak::upgrade) {
        pins.forget(tag.memory);
    }
}
