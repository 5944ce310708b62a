//! Device memory that the host can map.

use std::{
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use opencl3::{
    command_queue::enqueue_map_buffer,
    memory::{
        CL_MAP_READ, CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION, CL_MEM_ALLOC_HOST_PTR,
        CL_MEM_READ_WRITE,
    },
    types::{CL_TRUE, cl_mem},
};

use super::{
    context::{ClContext, first_of},
    device_memory::create,
    event::{Event, Status},
    handle::Mem,
    log::CAT,
    mapping::{Access, Mapping},
    meter::Meter,
    state::{Contents, State},
};
use clinspect_core::ClError;

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
    /// The device is out of memory, or `size` exceeds its limit.
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

    /// Fails if an unmap failed before: the device may not have what the host wrote, so nobody may
    /// use the contents.
    ///
    /// # Errors
    /// The failure of that unmap.
    pub fn check(&self) -> Result<(), ClError> {
        check(&self.state())
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
        check(&state)?;
        Ok(state.contents().and_then(|c| c.writer()).cloned())
    }

    /// The command that a writer of the buffer must wait for in addition to the queue's order: the
    /// host's last write, while the upload queue still executes it. Ends a mapping that was kept.
    ///
    /// # Errors
    /// The failure of that unmap; see [`Self::check`].
    pub(super) fn before_write(&self) -> Result<Option<Arc<Event>>, ClError> {
        let mut state = self.state();
        self.end_kept(&mut state)?;
        let commands = self.context.commands();
        let last = state.contents().and_then(|c| c.last_use());
        Ok(last
            .filter(|last| !last.is_in(commands) && !last.has_ended())
            .cloned())
    }

    /// The command that an upload into the buffer must wait for in addition to the upload queue's
    /// order. Ends a mapping that was kept.
    ///
    /// # Errors
    /// The failure of that unmap; see [`Self::check`].
    pub(super) fn before_upload(&self) -> Result<Option<Arc<Event>>, ClError> {
        let mut state = self.state();
        self.end_kept(&mut state)?;
        let uploads = self.context.uploads();
        let last = state.contents().and_then(|c| c.last_use());
        // A command that has failed must not fail the upload.
        let has_ended =
            |last: &Event| matches!(last.status(), Ok(Status::Complete | Status::Failed(_)));
        Ok(last
            .filter(|last| !last.is_in(uploads) && !has_ended(last))
            .cloned())
    }

    pub(super) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Notes that `event`'s command reads the buffer.
    pub(super) fn note_read(&self, event: &Arc<Event>) {
        if let Some(contents) = self.state().contents() {
            contents.note_read(event.clone());
        }
    }

    /// Notes that `event`'s command writes the buffer.
    pub(super) fn note_written(&self, event: &Arc<Event>) {
        if let Some(contents) = self.state().contents() {
            *contents = Contents::written_by(event.clone());
        }
    }

    /// Later readers wait for `event`, whose command wrote the part that they read.
    pub(super) fn note_part_written(&self, event: &Arc<Event>) {
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
        // Kernels read in the command queue. A map for reading is in the same queue and needs no
        // wait.
        let reader = contents
            .reader()
            .filter(|e| access.write && !e.is_in(queue));
        let waits = self
            .context
            .wait_list(queue, writer.into_iter().chain(reader));
        let flushed = queue.enqueued();
        let mut pointer: cl_mem = ptr::null_mut();
        let event = waits.and_then(|waits| {
            // SAFETY: the range is the whole buffer, which lives as long as `self`.
            queue
                .enqueue(|raw| unsafe {
                    enqueue_map_buffer(
                        raw,
                        self.mem.raw(),
                        CL_TRUE,
                        flags,
                        0,
                        self.size,
                        &mut pointer,
                        waits.len() as u32,
                        first_of(&waits),
                    )
                })
                .map_err(|code| self.context.failed("clEnqueueMapBuffer", code, "a frame"))
        });
        if event.is_err() && access.write {
            // The failure of a reader fails only this map.
            contents.forget_reader();
        }
        let event = event?;
        queue.note_flushed(flushed);
        for done in contents.writer().into_iter().chain([&event]) {
            done.note_done();
        }
        self.context.note_progress();
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

    /// Ends a mapping that was kept without a user.
    ///
    /// # Errors
    /// The failure of the unmap; see [`Self::check`].
    fn end_kept(&self, state: &mut State) -> Result<(), ClError> {
        if let State::Kept { mapping, contents } = state {
            let (mapping, contents) = (*mapping, std::mem::replace(contents, Contents::NEW));
            *state = self.end_mapping(mapping, contents);
        }
        check(state)
    }

    /// Gives memory with `contents` back to the device.
    fn end_mapping(&self, mapping: Mapping, mut contents: Contents) -> State {
        // SAFETY: the pointer came from mapping this buffer, and nobody uses it any more.
        let ended = unsafe { mapping.end(&self.context, self.mem.raw()) }.and_then(|event| {
            if mapping.writable {
                self.sent(&event)?;
                // If the upload fails, every reader of the frame must fail.
                contents = Contents::written_by(event);
            } else {
                contents.note_read(event);
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

    /// Counts the host's write and flushes its transfer to the device.
    fn sent(&self, event: &Arc<Event>) -> Result<(), ClError> {
        if self.context.caps().shares_host_memory {
            return Ok(());
        }
        self.meter.uploaded(event, event, self.size);
        self.context.flush(self.context.uploads())
    }

    /// Fills the buffer with zeros and waits; its size is a multiple of 4.
    ///
    /// # Errors
    /// The failing call.
    pub fn zero(&self, subject: &str) -> Result<(), ClError> {
        let before: Vec<_> = self.before_write()?.into_iter().collect();
        let event = (self.context).zero_after(&self.mem, self.size, &before, subject)?;
        self.note_written(&event);
        self.context.wait(&event, subject)
    }

    /// Writes a few bytes at `offset` and waits for the transfer.
    ///
    /// # Errors
    /// The failing call.
    pub fn write(&self, offset: usize, data: &[u8], subject: &str) -> Result<(), ClError> {
        if let Some(before) = self.before_write()? {
            self.context.wait(&before, subject)?;
        }
        self.context.write(&self.mem, offset, data, subject)
    }

    /// Calls `look` with the bytes, mapped for reading.
    ///
    /// # Errors
    /// See [`Self::map`].
    pub fn read_with<T>(&self, look: impl FnOnce(&[u8]) -> T) -> Result<T, ClError> {
        let pointer = self.map(Access {
            read: true,
            write: false,
        })?;
        // SAFETY: the mapping holds `size` bytes and lasts until the unmap below; nobody writes
        // while the buffer is mapped for reading.
        let bytes = unsafe { std::slice::from_raw_parts(pointer, self.size) };
        let result = look(bytes);
        self.unmap();
        Ok(result)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check(state: &State) -> Result<(), ClError> {
    match state {
        State::Broken(error) => Err(error.clone()),
        _ => Ok(()),
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
