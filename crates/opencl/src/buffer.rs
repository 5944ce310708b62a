//! Device memory that the host can map.

use std::{
    ptr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use opencl3::{
    command_queue::enqueue_map_buffer,
    memory::{
        CL_MAP_READ, CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION, CL_MEM_ALLOC_HOST_PTR,
        CL_MEM_READ_WRITE,
    },
    types::{CL_TRUE, cl_event, cl_mem},
};

use super::{
    context::{ClContext, wait_list},
    device_memory::create,
    handle::{CAT, Event, Mem},
    mapping::{Access, Mapping},
    meter::{Meter, Step},
};
use clinspect_core::ClError;

/// The last commands that used a buffer; whoever is enqueued elsewhere waits for them.
#[derive(Debug, Default)]
struct Uses {
    /// Wrote it; a failure surfaces at the first consumer.
    written: Option<Arc<Event>>,
    /// Came after that, and nobody has waited for it: whoever writes next must not overtake it.
    read: Option<Arc<Event>>,
}

impl Uses {
    fn set_written(&mut self, event: Arc<Event>) {
        (self.written, self.read) = (Some(event), None);
    }
}

/// A buffer in memory that host and device both reach (`CL_MEM_ALLOC_HOST_PTR`): mapping it is
/// free where they share memory, and a pinned transfer where they do not.
#[derive(Debug)]
pub struct ClBuffer {
    mem: Mem,
    size: usize,
    mapping: Mutex<Mapping>,
    /// Nobody has written yet, so a write map need not fetch what is there.
    undefined: AtomicBool,
    uses: Mutex<Uses>,
    /// The unmap that failed: what the host wrote may be lost, and the driver may think that it
    /// still writes.
    broken: OnceLock<ClError>,
    meter: Arc<Meter>,
    context: Arc<ClContext>,
}

impl ClBuffer {
    /// Allocates `size` ≥ 1 bytes, contents undefined; `meter` counts the transfers.
    ///
    /// # Errors
    /// The device has no room, or `size` is over its limit.
    pub fn new(context: &Arc<ClContext>, size: usize, meter: &Arc<Meter>) -> Result<Self, ClError> {
        let mem = create(
            context,
            CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
            size,
            ptr::null_mut(),
        )?;
        Ok(Self {
            mem,
            size,
            mapping: Mutex::default(),
            undefined: AtomicBool::new(true),
            uses: Mutex::default(),
            broken: OnceLock::new(),
            meter: meter.clone(),
            context: context.clone(),
        })
    }

    /// The memory object for kernels.
    pub fn mem(&self) -> &Mem {
        &self.mem
    }

    /// Size, bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whose memory it is.
    pub fn context(&self) -> &Arc<ClContext> {
        &self.context
    }

    /// Refuses memory that could not be unmapped: whoever uses it next fails, so that no frame
    /// with other contents than the host wrote is taken for one.
    ///
    /// # Errors
    /// The failure of the unmap.
    pub fn check(&self) -> Result<(), ClError> {
        self.broken.get().cloned().map_or(Ok(()), Err)
    }

    /// Declares the contents worthless: the next write map need not preserve them, but runs after
    /// the command that wrote them. Returns the failure of that command.
    pub fn mark_undefined(&self) -> Option<ClError> {
        self.undefined.store(true, Ordering::Release);
        let mut uses = self.uses();
        let writer = uses.written.take()?;
        let failure = writer.failure("a frame");
        if failure.is_none() && uses.read.is_none() {
            uses.read = Some(writer);
        }
        failure
    }

    /// Notes that `event`'s kernel writes the contents.
    pub fn set_written(&self, event: Arc<Event>) {
        self.undefined.store(false, Ordering::Release);
        self.end_kept(&mut self.mapping());
        self.uses().set_written(event);
    }

    /// Notes that `event`'s kernel reads the contents, for callers that do not wait for it: the
    /// next that the host writes must not overtake it.
    pub fn set_read(&self, event: Arc<Event>) {
        self.uses().read = Some(event);
    }

    /// The last command that writes here, for wait lists.
    pub fn writer(&self) -> Option<Arc<Event>> {
        self.uses().written.clone()
    }

    /// Prepares for a kernel that writes here: returns the last command that used the contents,
    /// for its wait list, where that is not done yet.
    pub fn begin_overwrite(&self) -> Option<Arc<Event>> {
        self.end_kept(&mut self.mapping());
        let uses = self.uses();
        let last = uses.read.as_ref().or(uses.written.as_ref())?;
        (!last.is_complete()).then(|| last.clone())
    }

    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Maps the whole buffer; every map needs an [`Self::unmap`].
    ///
    /// Maps nest. A writing map inside a reading one is refused, as GStreamer's locks do.
    ///
    /// # Errors
    /// The failing call, the failure of the kernel that wrote the contents, or of the unmap
    /// before.
    pub fn map(&self, access: Access) -> Result<*mut u8, ClError> {
        let mut mapping = self.mapping();
        if mapping.count > 0 {
            if access.write && !mapping.writable {
                return Err(ClError::Refused(
                    "memory that is mapped for reading cannot be mapped for writing".into(),
                ));
            }
            mapping.count += 1;
            return Ok(mapping.pointer);
        }
        self.check()?;
        if mapping.kept && !access.write {
            mapping.kept = false;
            mapping.count = 1;
            self.meter.count_map();
            return Ok(mapping.pointer);
        }
        self.end_kept(&mut mapping);
        let undefined = self.undefined.load(Ordering::Acquire);
        let fetches = !(access.write && undefined);
        let flags = match (access.write, access.read) {
            (true, _) if undefined => CL_MAP_WRITE_INVALIDATE_REGION,
            (true, true) => CL_MAP_READ | CL_MAP_WRITE,
            (true, false) => CL_MAP_WRITE,
            (false, _) => CL_MAP_READ,
        };
        // After `end_kept`, whose command a map in the other queue waits for.
        let (queue, read) = if access.write {
            // Taken: should it fail, it fails this map alone.
            (self.context.raw_upload_queue(), self.uses().read.take())
        } else {
            (self.context.raw_queue(), None)
        };
        let writer = self.writer();
        let waits: Vec<cl_event> = writer.iter().chain(&read).map(|e| e.raw()).collect();
        let mut pointer: cl_mem = ptr::null_mut();
        // SAFETY: the range is the whole buffer, which lives as long as `self`.
        let event = unsafe {
            enqueue_map_buffer(
                queue,
                self.mem.raw(),
                CL_TRUE,
                flags,
                0,
                self.size,
                &mut pointer,
                waits.len() as u32,
                wait_list(&waits),
            )
        }
        .map(Event::new)
        .map_err(|code| self.context.failed("clEnqueueMapBuffer", code, "a frame"))?;
        if access.write {
            self.undefined.store(false, Ordering::Release);
        }
        self.meter.count_map();
        if fetches && !self.context.caps().shares_host_memory {
            self.meter
                .transfer(Step::Download, Arc::new(event), self.size);
        }
        *mapping = Mapping {
            count: 1,
            pointer: pointer.cast(),
            writable: access.write,
            kept: false,
        };
        Ok(mapping.pointer)
    }

    /// Ends one [`Self::map`]; the last one gives the memory back to the device.
    pub fn unmap(&self) {
        let mut mapping = self.mapping();
        if mapping.count == 0 {
            gst::error!(CAT, "an unmap without a map");
            return;
        }
        mapping.count -= 1;
        if mapping.count > 0 {
            return;
        }
        if !mapping.writable && !self.context.caps().shares_host_memory {
            mapping.kept = true;
        } else {
            self.give_back(&mapping);
        }
    }

    /// Ends a mapping for reading that nobody uses.
    fn end_kept(&self, mapping: &mut Mapping) {
        if std::mem::take(&mut mapping.kept) {
            self.give_back(mapping);
        }
    }

    fn give_back(&self, mapping: &Mapping) {
        // SAFETY: the pointer came from mapping this buffer and is used no more.
        match unsafe { mapping.end(&self.context, self.mem.raw()) } {
            Ok(event) if mapping.writable => self.sent(event),
            Ok(event) => self.set_read(event),
            Err(error) => self.set_broken(error),
        }
    }

    fn set_broken(&self, error: ClError) {
        gst::error!(CAT, "{error}");
        // The first failure is the one to tell.
        let _ = self.broken.set(error);
    }

    /// Notes that the host has written, and `event` brings it to the device.
    fn sent(&self, event: Arc<Event>) {
        if !self.context.caps().shares_host_memory {
            self.meter.transfer(Step::Upload, event.clone(), self.size);
        }
        // A failed upload must fail whoever reads the frame.
        self.uses().set_written(event);
        if let Err(error) = self.context.flush_uploads() {
            self.set_broken(error);
        }
    }

    /// Writes a few bytes at `offset`, and waits for them.
    ///
    /// # Errors
    /// The failing call.
    pub fn write(&self, offset: usize, data: &[u8], subject: &str) -> Result<(), ClError> {
        if let Some(before) = self.begin_overwrite() {
            before.wait(subject)?;
        }
        self.context
            .write(&self.mem, offset, data, subject)
            .map(drop)
    }

    /// Shows the bytes to `look`, mapped for reading.
    ///
    /// # Errors
    /// See [`Self::map`].
    pub fn read_with<T>(&self, look: impl FnOnce(&[u8]) -> T) -> Result<T, ClError> {
        let pointer = self.map(Access {
            read: true,
            write: false,
        })?;
        // SAFETY: the mapping holds `size` bytes and stands until the unmap below; nobody writes
        // while it is mapped for reading.
        let bytes = unsafe { std::slice::from_raw_parts(pointer, self.size) };
        let result = look(bytes);
        self.unmap();
        Ok(result)
    }

    fn mapping(&self) -> MutexGuard<'_, Mapping> {
        self.mapping.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClBuffer {
    fn drop(&mut self) {
        let mapping = self.mapping.get_mut();
        let mapping = mapping.unwrap_or_else(PoisonError::into_inner);
        // SAFETY: nobody has the buffer, or its pointer, any more; its handle is dropped after this.
        unsafe { mapping.end_with_buffer(&self.context, self.mem.raw()) };
    }
}
