//! [`ClBuffer`]: memory of the device that the host can map.

use std::{
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use opencl3::{
    command_queue::{enqueue_map_buffer, enqueue_unmap_mem_object, enqueue_write_buffer},
    memory::{
        CL_MAP_READ, CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION, CL_MEM_ALLOC_HOST_PTR,
        CL_MEM_READ_WRITE,
    },
    types::{CL_FALSE, CL_TRUE, cl_mem},
};

use super::{
    context::{ClContext, first_of},
    handle::{CAT, Mem, release},
    meter::Meter,
    queue::{Event, InOrderQueue, Status},
};
use clinspect_core::ClError;

/// How the host accesses mapped memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The host reads.
    pub read: bool,
    /// The host writes; bytes that it does not write keep their value.
    pub write: bool,
}

/// A buffer in memory that host and device can both access (`CL_MEM_ALLOC_HOST_PTR`). A map costs
/// nothing where they share memory, and is a pinned transfer where they do not.
#[derive(Debug)]
pub struct ClBuffer {
    mem: Mem,
    size: usize,
    /// Locked while a map waits for the device: no other thread can use the buffer then.
    state: Mutex<State>,
    meter: Arc<Meter>,
    context: Arc<ClContext>,
}

impl ClBuffer {
    /// Allocates `size` ≥ 1 bytes, contents undefined; `meter` counts the transfers.
    ///
    /// # Errors
    /// The device is out of memory, or `size` exceeds its limit.
    pub fn new(context: &Arc<ClContext>, size: usize, meter: &Arc<Meter>) -> Result<Self, ClError> {
        let mem = context.create_buffer(
            CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
            size,
            ptr::null_mut(),
        )?;
        Ok(Self {
            mem,
            size,
            state: Mutex::new(State::Device(Contents::NEW)),
            meter: meter.clone(),
            context: context.clone(),
        })
    }

    pub(super) fn mem(&self) -> &Mem {
        &self.mem
    }

    /// Size, bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The context of the buffer.
    pub fn context(&self) -> &Arc<ClContext> {
        &self.context
    }

    /// Fails if an unmap failed before: what the host wrote may not have reached the device, so no command may use the
    /// contents.
    ///
    /// # Errors
    /// The failure of that unmap.
    pub fn check(&self) -> Result<(), ClError> {
        self.state().check()
    }

    /// Declares the contents undefined: the next write map need not preserve them, but still waits
    /// for the command that wrote them. Returns the failure of that command.
    pub fn mark_undefined(&self) -> Option<ClError> {
        self.state().contents()?.set_undefined()
    }

    /// The command that a reader of the buffer must wait for: the last writer.
    ///
    /// # Errors
    /// See [`Self::check`].
    pub(super) fn before_read(&self) -> Result<Option<Arc<Event>>, ClError> {
        let mut state = self.state();
        state.check()?;
        Ok(state.contents().and_then(|c| c.writer()).cloned())
    }

    /// The commands that a writer in `queue` must wait for in addition to the queue's order: those of other queues that
    /// still use the buffer. Ends a mapping that was kept.
    ///
    /// # Errors
    /// The failure of that unmap; see [`Self::check`].
    pub(super) fn before_write(
        &self,
        queue: &Arc<InOrderQueue>,
    ) -> Result<Vec<Arc<Event>>, ClError> {
        let mut state = self.state();
        self.end_kept(&mut state)?;
        let uses = state.contents().map(|contents| contents.uses());
        // A command that has ended, perhaps with a failure, must not fail the writer.
        let has_ended =
            |event: &Event| matches!(event.status(), Ok(Status::Complete | Status::Failed(_)));
        let is_awaited = |event: &&Arc<Event>| !event.is_in(queue) && !has_ended(event);
        Ok(uses
            .into_iter()
            .flatten()
            .filter(is_awaited)
            .cloned()
            .collect())
    }

    /// Begins to write, after the commands that still use the buffer and after `before`. If `before` fails, the writes
    /// fail too.
    ///
    /// # Errors
    /// The failure of an earlier unmap.
    pub(crate) fn begin_writes(&self, before: Option<&Arc<Event>>) -> Result<Writes<'_>, ClError> {
        Ok(Writes {
            buffer: self,
            before: before
                .cloned()
                .into_iter()
                .chain(self.before_write(self.context.uploads())?)
                .collect(),
            first: None,
            last: None,
            bytes: 0,
        })
    }

    fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Sets the last command that reads the buffer.
    pub(super) fn set_reader(&self, event: &Arc<Event>) {
        if let Some(contents) = self.state().contents() {
            contents.set_reader(event.clone());
        }
    }

    /// Sets the command that wrote the contents.
    pub(super) fn set_writer(&self, event: &Arc<Event>) {
        if let Some(contents) = self.state().contents() {
            *contents = Contents::written_by(event.clone());
        }
    }

    /// Later readers wait for `event`, whose command wrote the part that they read.
    pub(super) fn set_part_writer(&self, event: &Arc<Event>) {
        if let Some(contents) = self.state().contents() {
            contents.set_writer(event.clone());
        }
    }

    /// Maps the whole buffer; every map needs an [`Self::unmap`].
    ///
    /// Maps nest. A map for writing inside a map for reading is refused, as GStreamer's locks do.
    ///
    /// # Errors
    /// The failing call, or the failure of the kernel that wrote the contents or of the last unmap.
    pub fn map(&self, access: Access) -> Result<*mut u8, ClError> {
        let mut state = self.state();
        match &mut *state {
            State::Reading { .. } if access.write => {
                return Err(ClError::Refused(
                    "memory that is mapped for reading cannot be mapped for writing".into(),
                ));
            }
            State::Reading { mapping, maps, .. } | State::Writing { mapping, maps } => {
                *maps += 1;
                return Ok(mapping.pointer);
            }
            State::Kept { mapping, contents } if !access.write => {
                let (mapping, contents) = (*mapping, std::mem::replace(contents, Contents::NEW));
                *state = State::Reading {
                    mapping,
                    maps: 1,
                    contents,
                };
                self.meter.count_map();
                return Ok(mapping.pointer);
            }
            State::Kept { .. } | State::Device(_) | State::Broken(_) => {}
        }
        self.end_kept(&mut state)?;
        let State::Device(contents) = &mut *state else {
            return Err(ClError::Refused("the memory is mapped already".into()));
        };
        let mapping = self.begin_mapping(access, contents)?;
        let contents = std::mem::replace(contents, Contents::NEW);
        *state = if access.write {
            State::Writing { mapping, maps: 1 }
        } else {
            State::Reading {
                mapping,
                maps: 1,
                contents,
            }
        };
        Ok(mapping.pointer)
    }

    /// Maps the buffer, and waits for the map and for the commands that it depends on.
    fn begin_mapping(&self, access: Access, contents: &mut Contents) -> Result<Mapping, ClError> {
        let undefined = contents.is_undefined();
        let flags = match (access.write, access.read) {
            (true, _) if undefined => CL_MAP_WRITE_INVALIDATE_REGION,
            (true, true) => CL_MAP_READ | CL_MAP_WRITE,
            (true, false) => CL_MAP_WRITE,
            (false, _) => CL_MAP_READ,
        };
        let queue = Mapping::queue(&self.context, access.write);
        let writer = contents.writer();
        // Kernels may read while the host does.
        let readers = contents.readers().iter();
        let readers = readers.filter(|event| access.write && !event.is_in(queue));
        let before: Vec<_> = writer.into_iter().chain(readers).collect();
        let mut pointer: cl_mem = ptr::null_mut();
        let event = self.enqueue_map(queue, flags, &before, &mut pointer);
        if event.is_err() && access.write {
            // The failure of a reader fails only this map.
            contents.forget_readers();
        }
        let event = event?;
        for done in contents.writer().into_iter().chain([&event]) {
            done.set_done();
        }
        self.context.count_progress();
        self.meter.count_map();
        let fetches = !(access.write && undefined);
        if fetches && !self.context.caps().shares_host_memory {
            self.meter.downloaded(&event, contents.writer(), self.size);
        }
        Ok(Mapping {
            pointer: pointer.cast(),
            writable: access.write,
        })
    }

    /// Maps the buffer after `before`, and waits. Other threads can enqueue while this one waits for the device.
    fn enqueue_map(
        &self,
        queue: &Arc<InOrderQueue>,
        flags: u64,
        before: &[&Arc<Event>],
        pointer: &mut cl_mem,
    ) -> Result<Arc<Event>, ClError> {
        let failed = |code| self.context.failed("clEnqueueMapBuffer", code, "a frame");
        let is_fetched = flags != CL_MAP_WRITE_INVALIDATE_REGION;
        let mut waits = self.context.wait_list(queue, before.iter().copied())?;
        let takes_turns = queue.takes_turns();
        if takes_turns && !is_fetched {
            // Then the map itself takes no time.
            (before.iter().try_for_each(|event| event.wait())).map_err(failed)?;
            waits.clear();
        }
        let blocks = if takes_turns && is_fetched {
            CL_FALSE
        } else {
            CL_TRUE
        };
        let flushed = queue.enqueued();
        // SAFETY: the range is the whole buffer, which lives as long as `self`. Nobody uses the pointer before the
        // wait.
        let event = queue.enqueue(|raw| unsafe {
            enqueue_map_buffer(
                raw,
                self.mem.raw(),
                blocks,
                flags,
                0,
                self.size,
                pointer,
                waits.len() as u32,
                first_of(&waits),
            )
        });
        let event = event.map_err(failed)?;
        if blocks == CL_TRUE {
            queue.set_flushed(flushed);
        } else {
            event.wait().map_err(failed)?;
        }
        Ok(event)
    }

    /// Ends one [`Self::map`]; the last unmap gives the memory back to the device.
    pub fn unmap(&self) {
        let mut state = self.state();
        let (mapping, contents) = match &mut *state {
            State::Reading { maps, .. } | State::Writing { maps, .. } if *maps > 1 => {
                *maps -= 1;
                return;
            }
            State::Reading {
                mapping, contents, ..
            } => (*mapping, std::mem::replace(contents, Contents::NEW)),
            State::Writing { mapping, .. } => (*mapping, Contents::NEW),
            State::Device(_) | State::Kept { .. } | State::Broken(_) => {
                gst::error!(
                    CAT,
                    "OpenCL memory is unmapped more often than it was mapped"
                );
                return;
            }
        };
        *state = if mapping.writable || self.context.caps().shares_host_memory {
            self.end_mapping(mapping, contents)
        } else {
            State::Kept { mapping, contents }
        };
    }

    /// Ends a mapping for reading that was kept after its last unmap.
    ///
    /// # Errors
    /// The failure of the unmap; see [`Self::check`].
    fn end_kept(&self, state: &mut State) -> Result<(), ClError> {
        if let State::Kept { mapping, contents } = state {
            let (mapping, contents) = (*mapping, std::mem::replace(contents, Contents::NEW));
            *state = self.end_mapping(mapping, contents);
        }
        state.check()
    }

    /// Gives memory with `contents` back to the device.
    fn end_mapping(&self, mapping: Mapping, mut contents: Contents) -> State {
        // One turn for the unmap and the flush.
        let _turn = Mapping::queue(&self.context, mapping.writable).take_turn();
        // SAFETY: the pointer came from mapping this buffer, and nobody uses it any more.
        let ended = unsafe { mapping.end(&self.context, self.mem.raw()) }.and_then(|event| {
            if mapping.writable {
                self.sent(&event)?;
                // If the upload fails, every reader of the frame must fail.
                contents = Contents::written_by(event);
            } else {
                contents.set_reader(event);
            }
            Ok(())
        });
        match ended {
            Ok(()) => State::Device(contents),
            Err(error) => {
                gst::error!(CAT, "{error}");
                State::Broken(error)
            }
        }
    }

    /// Counts the transfer of what the host wrote, and flushes it to the device.
    fn sent(&self, event: &Arc<Event>) -> Result<(), ClError> {
        if self.context.caps().shares_host_memory {
            return Ok(());
        }
        self.meter.uploaded(event, event, self.size);
        self.context.flush(self.context.uploads())
    }

    /// Fills the buffer with zeros and waits; its size is a multiple of 4.
    pub fn zero(&self, subject: &str) -> Result<(), ClError> {
        let before = self.before_write(self.context.commands())?;
        let event = (self.context).zero_after(&self.mem, self.size, &before, subject)?;
        self.set_writer(&event);
        self.context.wait(&event, subject)
    }

    /// Writes a few bytes at `offset` and waits for the transfer.
    pub fn write(&self, offset: usize, data: &[u8], subject: &str) -> Result<(), ClError> {
        for before in self.before_write(self.context.commands())? {
            self.context.wait(&before, subject)?;
        }
        self.context.write(&self.mem, offset, data, subject)
    }

    /// Calls `read` with the bytes, mapped for reading.
    ///
    /// # Errors
    /// See [`Self::map`].
    pub fn read_with<T>(&self, read: impl FnOnce(&[u8]) -> T) -> Result<T, ClError> {
        let pointer = self.map(Access {
            read: true,
            write: false,
        })?;
        // SAFETY: the mapping holds `size` bytes and lasts until the unmap below; nobody writes
        // while the buffer is mapped for reading.
        let bytes = unsafe { std::slice::from_raw_parts(pointer, self.size) };
        let result = read(bytes);
        self.unmap();
        Ok(result)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClBuffer {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if let Some(mapping) = state.unwrap_or_else(PoisonError::into_inner).mapping() {
            // SAFETY: nobody has the buffer or its pointer any more; its handle is dropped after
            // this call.
            unsafe { mapping.end_with_buffer(&self.context, self.mem.raw()) };
        }
    }
}

/// Writes into a buffer, in the upload queue. Each waits for the write before it, so that a failure
/// reaches the last one.
#[derive(Debug)]
pub(crate) struct Writes<'a> {
    buffer: &'a ClBuffer,
    before: Vec<Arc<Event>>,
    first: Option<Arc<Event>>,
    last: Option<Arc<Event>>,
    bytes: usize,
}

impl Writes<'_> {
    /// Enqueues a write of `len` bytes at `offset`, and hands it to the device.
    ///
    /// # Safety
    /// The bytes stay valid and unchanged until [`Self::last`] has ended.
    pub unsafe fn write(
        &mut self,
        offset: usize,
        bytes: *const u8,
        len: usize,
    ) -> Result<(), ClError> {
        let context = self.buffer.context();
        let queue = context.uploads();
        // One turn for the write and the flush.
        let _turn = queue.take_turn();
        let waits = context.wait_list(queue, self.last.iter().chain(&self.before))?;
        // SAFETY: the caller keeps the bytes; the driver checks the range in the buffer.
        let event = queue
            .enqueue(|raw| unsafe {
                enqueue_write_buffer(
                    raw,
                    self.buffer.mem().raw(),
                    CL_FALSE,
                    offset,
                    len,
                    bytes.cast_mut().cast(),
                    waits.len() as u32,
                    first_of(&waits),
                )
            })
            .map_err(|code| context.failed("clEnqueueWriteBuffer", code, "a frame"))?;
        self.before.clear();
        self.bytes += len;
        self.first.get_or_insert_with(|| event.clone());
        self.last = Some(event);
        context.flush(queue)
    }

    /// The last write so far.
    pub fn last(&self) -> Option<Arc<Event>> {
        self.last.clone()
    }

    /// Ends the writes, and counts them. Returns the last one.
    pub fn end(self) -> Option<Arc<Event>> {
        if let (Some(first), Some(last)) = (&self.first, &self.last) {
            self.buffer.meter().uploaded(first, last, self.bytes);
        }
        self.last
    }
}

/// The owner of a buffer.
#[derive(Debug)]
enum State {
    /// The device.
    Device(Contents),
    /// The host reads through `maps` maps; kernels may read too.
    Reading {
        mapping: Mapping,
        maps: usize,
        contents: Contents,
    },
    /// The device. The host's last mapping for reading is kept, so the next map for reading needs
    /// no transfer. A writer ends the mapping first.
    Kept {
        mapping: Mapping,
        contents: Contents,
    },
    /// The host writes through `maps` maps.
    Writing { mapping: Mapping, maps: usize },
    /// None: an unmap failed. The host's write may be lost, and the driver may still count the buffer as mapped.
    Broken(ClError),
}

/// The contents of a buffer, and the last commands that used it, the last one of each queue.
#[derive(Debug)]
enum Contents {
    /// Undefined. The next write need not preserve them, but must wait for `users`.
    Undefined { users: Vec<Arc<Event>> },
    /// Written by `writer`; if it fails, the next user of the buffer fails. `readers` have read since.
    Written {
        writer: Arc<Event>,
        readers: Vec<Arc<Event>>,
    },
}

impl Contents {
    pub const NEW: Self = Self::Undefined { users: Vec::new() };

    /// Contents that `writer` wrote.
    pub fn written_by(writer: Arc<Event>) -> Self {
        Self::Written {
            writer,
            readers: Vec::new(),
        }
    }

    /// Adds a reader. Readers before it in its queue end earlier.
    pub fn set_reader(&mut self, event: Arc<Event>) {
        let (Self::Undefined { users: readers } | Self::Written { readers, .. }) = self;
        readers.retain(|reader| !reader.shares_queue(&event));
        readers.push(event);
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined { .. })
    }

    /// The command that wrote the contents.
    pub fn writer(&self) -> Option<&Arc<Event>> {
        match self {
            Self::Undefined { .. } => None,
            Self::Written { writer, .. } => Some(writer),
        }
    }

    /// Later readers wait for `writer`, which wrote the part that they read. The readers remain.
    pub fn set_writer(&mut self, writer: Arc<Event>) {
        let readers = self.readers().to_vec();
        *self = Self::Written { writer, readers };
    }

    /// The last commands that read the contents; for undefined contents, the last ones that used the memory.
    pub fn readers(&self) -> &[Arc<Event>] {
        let (Self::Undefined { users: readers } | Self::Written { readers, .. }) = self;
        readers
    }

    /// Forgets the readers, so that the failure of one fails only one map.
    pub fn forget_readers(&mut self) {
        let (Self::Undefined { users: readers } | Self::Written { readers, .. }) = self;
        readers.clear();
    }

    /// The last commands that used the memory.
    pub fn uses(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.readers().iter().chain(self.writer())
    }

    /// Declares the contents undefined, and returns the failure of the command that wrote them.
    pub fn set_undefined(&mut self) -> Option<ClError> {
        let writer = self.writer()?;
        let failure = writer.failure("a frame");
        let mut users = self.readers().to_vec();
        // A reader waited for the writer. A failed command has ended, and the next writer must not fail because of it.
        if users.is_empty() && failure.is_none() {
            users.push(writer.clone());
        }
        *self = Self::Undefined { users };
        failure
    }
}

impl State {
    /// The contents; `None` while only the host has them, and after a failed unmap.
    pub fn contents(&mut self) -> Option<&mut Contents> {
        match self {
            Self::Device(contents)
            | Self::Reading { contents, .. }
            | Self::Kept { contents, .. } => Some(contents),
            Self::Writing { .. } | Self::Broken(_) => None,
        }
    }

    /// Fails if an unmap has failed.
    fn check(&self) -> Result<(), ClError> {
        match self {
            Self::Broken(error) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// The mapping in force.
    pub fn mapping(&self) -> Option<Mapping> {
        match self {
            Self::Reading { mapping, .. }
            | Self::Kept { mapping, .. }
            | Self::Writing { mapping, .. } => Some(*mapping),
            Self::Device(_) | Self::Broken(_) => None,
        }
    }
}

/// A mapping in force.
#[derive(Debug, Clone, Copy)]
struct Mapping {
    /// Address of the first byte.
    pub pointer: *mut u8,
    /// The host may write.
    pub writable: bool,
}

// SAFETY: the pointer is handed out only while the buffer's state holds the mapping.
unsafe impl Send for Mapping {}

impl Mapping {
    /// The queue in which a mapping of this kind begins and ends.
    pub fn queue(context: &ClContext, writable: bool) -> &Arc<InOrderQueue> {
        if writable {
            context.uploads()
        } else {
            context.commands()
        }
    }

    /// Enqueues the unmap.
    ///
    /// # Safety
    /// The mapping belongs to `mem`, `mem` is alive, and nobody uses the pointer any more.
    pub unsafe fn end(self, context: &ClContext, mem: cl_mem) -> Result<Arc<Event>, ClError> {
        let queue = Self::queue(context, self.writable);
        // SAFETY: the pointer came from mapping `mem`; the caller guarantees the rest.
        queue
            .enqueue(|raw| unsafe {
                enqueue_unmap_mem_object(raw, mem, self.pointer.cast(), 0, ptr::null())
            })
            .map_err(|code| context.failed("clEnqueueUnmapMemObject", code, "a frame"))
    }

    /// Like [`Self::end`], for a buffer that is dropped. The unmap goes through [`release`], so
    /// that a stalling driver does not delay a stop once per buffer. A failure is logged.
    ///
    /// # Safety
    /// Like [`Self::end`]; `mem` is released with [`release`] after this call.
    pub unsafe fn end_with_buffer(self, context: &Arc<ClContext>, mem: cl_mem) {
        let context = context.clone();
        release("clEnqueueUnmapMemObject", mem, move |mem| {
            // SAFETY: the release of `mem` comes after this call, and the caller guarantees the
            // rest.
            match unsafe { self.end(&context, mem) } {
                Err(ClError::Call { code, .. }) => Err(code),
                _ => Ok(()),
            }
        });
    }
}
