//! [`ClBuffer`]: memory of the device that the host can map.

use std::{
    ptr,
    sync::{Arc, OnceLock},
};

use opencl3::{
    command_queue::{enqueue_map_buffer, enqueue_unmap_mem_object},
    memory::{
        CL_MAP_READ, CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION, CL_MEM_ALLOC_HOST_PTR,
        CL_MEM_READ_WRITE,
    },
    types::{CL_FALSE, cl_mem},
};

use super::{
    context::ClContext,
    handle::{CAT, Mem, first_of, release},
    meter::Meter,
    order::{self, Access, Address, Command, Contents, Owned, Transfers, Turn, Unmapped},
    queue::{Event, InOrderQueue, Pinned},
};
use clinspect_core::ClError;

/// What the commands of a buffer are for, in errors.
const SUBJECT: &str = "a frame";

/// A buffer that host and device can both use.
///
/// Where they share memory, the host maps the buffer, which costs nothing. A device with memory of its own keeps the buffer
/// there, and the host uses a copy in pinned memory, which is made at the first map and moved when one side needs what the
/// other one wrote (docs/adr/0030).
#[derive(Debug)]
pub struct ClBuffer {
    mem: Mem,
    size: usize,
    state: Owned<Arc<Event>>,
    copy: OnceLock<Pinned>,
    meter: Arc<Meter>,
    context: Arc<ClContext>,
}

impl ClBuffer {
    /// Allocates `size` ≥ 1 bytes, contents undefined; `meter` counts the transfers.
    ///
    /// # Errors
    /// The device is out of memory, or `size` exceeds its limit.
    pub fn new(context: &Arc<ClContext>, size: usize, meter: &Arc<Meter>) -> Result<Self, ClError> {
        let is_shared = context.caps().shares_host_memory;
        let flags = if is_shared {
            CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR
        } else {
            CL_MEM_READ_WRITE
        };
        Ok(Self {
            // Kernels may read the last bytes as a whole word.
            mem: context.create_buffer(flags, size.next_multiple_of(4), ptr::null_mut())?,
            size,
            state: context.order().own(!is_shared),
            copy: OnceLock::new(),
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

    pub(super) fn state(&self) -> &Owned<Arc<Event>> {
        &self.state
    }

    /// Fails if an unmap failed before: what the host wrote may not have reached the device, so no command may use the
    /// contents.
    ///
    /// # Errors
    /// The failure of that unmap.
    pub fn check(&self) -> Result<(), ClError> {
        self.state.check()
    }

    /// Declares the contents undefined: the next write map need not preserve them. Returns the failure of the command that
    /// wrote them.
    pub fn mark_undefined(&self) -> Option<ClError> {
        if self.context.commands().fails_whole() {
            // The failure ends the context, which every later command tells.
            self.state.recycle();
            return None;
        }
        let mut ordered = self.context.order().lock();
        self.state.set_undefined(&mut ordered.key)
    }

    /// Sets the command that wrote the contents, after all that used them.
    pub(super) fn set_writer(&self, event: &Arc<Event>) {
        let mut ordered = self.context.order().lock();
        self.state.set_writer(&mut ordered.key, event.clone());
    }

    /// Later readers wait for `event`, whose command wrote the part that they read.
    pub(super) fn set_part_writer(&self, event: &Arc<Event>) {
        let mut ordered = self.context.order().lock();
        self.state.set_part_writer(&mut ordered.key, event.clone());
    }

    /// Maps the whole buffer, and waits until the host may use it; every map needs an [`Self::unmap`].
    ///
    /// Maps nest. A map for writing inside a map for reading is refused, as GStreamer's locks do.
    ///
    /// # Errors
    /// The failing call, or the failure of the kernel that wrote the contents or of the last unmap.
    pub fn map(&self, access: Access) -> Result<*mut u8, ClError> {
        if !self.context.caps().shares_host_memory && self.copy.get().is_none() {
            let made = self.context.new_pinned(self.size)?;
            // Another thread may have made one meanwhile.
            let _ = self.copy.set(made);
        }
        let mapped = order::map(self.context.order(), &self.state, self, access)?;
        if mapped.is_first {
            self.context.count_progress();
            self.meter.count_map();
        }
        if let Some((command, writer)) = &mapped.downloaded {
            if let Some(writer) = writer {
                writer.set_done();
            }
            self.meter.downloaded(command, writer.as_ref(), self.size);
        }
        Ok(mapped.address.0)
    }

    /// Ends one [`Self::map`]; the last unmap gives the memory back to the device.
    pub fn unmap(&self) {
        match order::unmap(self.context.order(), &self.state, self) {
            Unmapped::Ended => {}
            Unmapped::Uploaded(command) => self.meter.uploaded(&command, &command, self.size),
            Unmapped::Failed(error) => gst::error!(CAT, "{error}"),
            Unmapped::NotMapped => gst::error!(
                CAT,
                "OpenCL memory is unmapped more often than it was mapped"
            ),
        }
    }

    /// Fills the buffer with zeros and waits; its size is a multiple of 4.
    pub fn zero(&self, subject: &str) -> Result<(), ClError> {
        let zeroed = {
            let mut ordered = self.context.order().lock();
            let contents = self.state.contents(&mut ordered.key)?;
            let before = unended_elsewhere(contents, self.context.commands());
            let turn = &ordered.turn;
            let zeroed = (self.context).zero_after(turn, &self.mem, self.size, &before, subject)?;
            self.state.set_writer(&mut ordered.key, zeroed.clone());
            zeroed
        };
        self.context.wait(&zeroed, subject)
    }

    /// Writes a few bytes at `offset` and waits for the transfer.
    pub fn write(&self, offset: usize, data: &[u8], subject: &str) -> Result<(), ClError> {
        self.context.write_by(data, subject, |pinned| {
            let mut ordered = self.context.order().lock();
            let contents = self.state.contents(&mut ordered.key)?;
            let before = unended_elsewhere(contents, self.context.commands());
            let (turn, range) = (&ordered.turn, [offset, data.len()]);
            let written =
                (self.context).write_after(turn, &self.mem, range, pinned, &before, subject)?;
            self.state
                .set_part_writer(&mut ordered.key, written.clone());
            Ok(written)
        })
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

    /// Begins to write from the host's memory in `queue`, after the commands that still use the buffer and after `before`. If
    /// `before` fails, the writes fail too.
    ///
    /// # Errors
    /// The failure of an earlier unmap.
    pub(crate) fn begin_writes(
        &self,
        queue: &Arc<InOrderQueue>,
        before: Option<&Arc<Event>>,
    ) -> Result<Writes<'_>, ClError> {
        let mut ordered = self.context.order().lock();
        let contents = self.state.contents(&mut ordered.key)?;
        let users = unended_elsewhere(contents, queue);
        Ok(Writes {
            buffer: self,
            queue: queue.clone(),
            before: before.cloned().into_iter().chain(users).collect(),
            first: None,
            last: None,
            bytes: 0,
        })
    }

    fn failed(&self, call: &'static str) -> impl FnOnce(i32) -> ClError {
        move |code| self.context.failed(call, code, SUBJECT)
    }
}

/// The commands of other queues than `queue` that still use the contents. One that has ended, perhaps with a failure, must
/// not fail the next writer.
pub(super) fn unended_elsewhere(
    contents: &Contents<Arc<Event>>,
    queue: &Arc<InOrderQueue>,
) -> Vec<Arc<Event>> {
    let uses = contents.uses();
    uses.filter(|event| !event.is_in(queue) && !event.is_known_to_have_ended())
        .cloned()
        .collect()
}

impl Command for Arc<Event> {
    fn shares_queue(&self, other: &Self) -> bool {
        Event::shares_queue(self, other)
    }

    fn is_over(&self) -> bool {
        Event::is_known_to_be_complete(self)
    }

    fn failure(&self) -> Option<ClError> {
        Event::failure(self, SUBJECT)
    }
}

impl Transfers for ClBuffer {
    type Command = Arc<Event>;

    fn together<R: Send>(&self, calls: impl FnOnce() -> R + Send) -> R {
        self.context.together(calls)
    }

    fn map(
        &self,
        turn: &Turn,
        access: Access,
        contents: &Contents<Arc<Event>>,
    ) -> Result<(Address, Arc<Event>), ClError> {
        let flags = match (access.write, access.read) {
            (true, _) if contents.is_undefined() => CL_MAP_WRITE_INVALIDATE_REGION,
            (true, true) => CL_MAP_READ | CL_MAP_WRITE,
            (true, false) => CL_MAP_WRITE,
            (false, _) => CL_MAP_READ,
        };
        let queue = self.context.commands();
        // Kernels may read while the host does.
        let readers = contents.readers().iter();
        let readers = readers.filter(|event| access.write && !event.is_in(queue));
        let before = contents.writer().into_iter().chain(readers);
        let waits = self.context.wait_list(turn, queue, before)?;
        let mut pointer: cl_mem = ptr::null_mut();
        // SAFETY: the range is the whole buffer, which lives as long as `self`. Nobody uses the pointer before the
        // command has ended.
        let event = queue.enqueue(turn, |raw| unsafe {
            enqueue_map_buffer(
                raw,
                self.mem.raw(),
                CL_FALSE,
                flags,
                0,
                self.size,
                &mut pointer,
                waits.len() as u32,
                first_of(&waits),
            )
        });
        let event = event.map_err(self.failed("clEnqueueMapBuffer"))?;
        Ok((Address(pointer.cast()), event))
    }

    fn unmap(&self, turn: &Turn, address: Address) -> Result<Arc<Event>, ClError> {
        let queue = self.context.commands();
        // SAFETY: the address came from mapping this buffer, and nobody uses it any more.
        let event = queue.enqueue(turn, |raw| unsafe {
            enqueue_unmap_mem_object(raw, self.mem.raw(), address.0.cast(), 0, ptr::null())
        });
        event.map_err(self.failed("clEnqueueUnmapMemObject"))
    }

    fn host_copy(&self) -> Address {
        let copy = self.copy.get().map(Pinned::address);
        copy.unwrap_or(Address(ptr::null_mut()))
    }

    fn download(
        &self,
        turn: &Turn,
        contents: &Contents<Arc<Event>>,
        user: Option<&Arc<Event>>,
    ) -> Result<Arc<Event>, ClError> {
        let queue = self.context.commands();
        let user = user.filter(|user| !user.is_known_to_have_ended());
        let before = contents.writer().into_iter().chain(user);
        let (part, to) = ((&self.mem, 0, self.size), self.host_copy().0);
        // SAFETY: the copy is as large as the buffer, and lives until this command has ended (`drop`).
        unsafe { (self.context).enqueue_read(turn, queue, part, to, before, SUBJECT) }
    }

    fn flush_downloads(&self, turn: &Turn) -> Result<(), ClError> {
        self.context.flush(turn, self.context.commands())
    }

    fn upload(&self, turn: &Turn, contents: &Contents<Arc<Event>>) -> Result<Arc<Event>, ClError> {
        let queue = self.context.uploads_of(self.size);
        let before = unended_elsewhere(contents, queue);
        let (part, from) = ((&self.mem, 0, self.size), self.host_copy().0);
        // SAFETY: as above.
        let event =
            unsafe { (self.context).enqueue_write(turn, queue, part, from, &before, SUBJECT) }?;
        if !Arc::ptr_eq(queue, self.context.commands()) {
            self.context.flush(turn, queue)?;
        }
        Ok(event)
    }

    fn wait(&self, command: &Arc<Event>) -> Result<(), ClError> {
        self.context.wait(command, SUBJECT)
    }

    fn wait_for_end(&self, command: &Arc<Event>) -> Result<(), ClError> {
        self.context.wait_for_end(command)
    }
}

impl Drop for ClBuffer {
    fn drop(&mut self) {
        if let Some(address) = self.state.shared_map() {
            let queue = self.context.commands().clone();
            release("clEnqueueUnmapMemObject", self.mem.raw(), move |mem| {
                let address = address;
                // SAFETY: nobody has the buffer or its address any more; the handle is released after this call.
                queue.enqueue_late(|raw| unsafe {
                    enqueue_unmap_mem_object(raw, mem, address.0.cast(), 0, ptr::null())
                })
            });
        }
        if let (Some(user), Some(copy)) = (self.state.user_of_copy(), self.copy.take()) {
            copy.drop_after(&user);
        }
    }
}

/// Writes into a buffer, in one queue. Each waits for the write before it, so that a failure
/// reaches the last one.
#[derive(Debug)]
pub(crate) struct Writes<'a> {
    buffer: &'a ClBuffer,
    queue: Arc<InOrderQueue>,
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
        let (context, queue) = (self.buffer.context(), &self.queue);
        let before = self.last.iter().chain(&self.before);
        let part = (self.buffer.mem(), offset, len);
        let from = Address(bytes.cast_mut());
        let event = context.together(move || {
            let from = from;
            let ordered = context.order().lock();
            let turn = &ordered.turn;
            // SAFETY: promised by the caller.
            let event =
                unsafe { context.enqueue_write(turn, queue, part, from.0, before, SUBJECT) }?;
            context.flush(turn, queue)?;
            Ok(event)
        })?;
        self.before.clear();
        self.bytes += len;
        self.first.get_or_insert_with(|| event.clone());
        self.last = Some(event);
        Ok(())
    }

    /// The queue of the writes.
    pub fn queue(&self) -> &Arc<InOrderQueue> {
        &self.queue
    }

    /// The last write so far.
    pub fn last(&self) -> Option<Arc<Event>> {
        self.last.clone()
    }

    /// Ends the writes, and counts them. Returns the last one.
    pub fn end(self) -> Option<Arc<Event>> {
        if let (Some(first), Some(last)) = (&self.first, &self.last) {
            (self.buffer.meter).uploaded(first, last, self.bytes);
        }
        self.last
    }
}
