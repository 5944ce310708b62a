//! Commands for one frame, in order with the commands of other elements on the frame's memory.

use std::{
    ffi::c_void,
    fmt::Debug,
    mem::{ManuallyDrop, size_of, size_of_val},
    ptr,
    sync::Arc,
    time::Duration,
};

use opencl3::{
    command_queue::{enqueue_copy_buffer, enqueue_copy_buffer_rect},
    kernel::set_kernel_arg,
    memory::{CL_MEM_READ_ONLY, CL_MEM_USE_HOST_PTR},
    types::{cl_event, cl_mem},
};

use super::{
    buffer::{ClBuffer, unended_elsewhere},
    context::ClContext,
    handle::{CAT, Kernel, Mem, NdRange, call_error, enqueue_kernel, first_of},
    meter::Meter,
    order::{self, Ordered, Turn},
    program::{Compiling, notify_compiler},
    queue::{Event, Transfer},
    start::FirstUse,
    sync::{Lock, Rank, TurnGuard},
};
use clinspect_core::ClError;

/// Longest time that a drop waits for the device. A drop waits only after a frame has failed midway.
const DROP_LIMIT: Duration = Duration::from_secs(1);

/// Bytes of host memory that do not move.
///
/// # Safety
/// Until the value is dropped, [`Self::bytes`] returns the same address and length, even after the
/// value was moved, and nobody changes the bytes.
pub unsafe trait HostBytes: Debug + Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];
}

/// Host memory that the device reads in place (`CL_MEM_USE_HOST_PTR`). It stays alive until the
/// last command that reads it has ended; an earlier drop waits.
#[derive(Debug)]
pub struct HostMemory<T: HostBytes + ?Sized = dyn HostBytes> {
    mem: ManuallyDrop<Mem>,
    /// The last command that reads this memory.
    reader: Lock<Option<Arc<Event>>>,
    bytes: ManuallyDrop<T>,
}

impl<T: HostBytes> HostMemory<T> {
    /// Lets the device read `bytes`.
    ///
    /// # Errors
    /// The device refuses the memory.
    pub fn new(context: &ClContext, bytes: T) -> Result<Self, ClError> {
        let data = bytes.bytes();
        let mem = context.create_buffer(
            CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR,
            data.len(),
            data.as_ptr().cast_mut().cast(),
        )?;
        Ok(Self {
            mem: ManuallyDrop::new(mem),
            reader: Lock::new(Rank::Value, None),
            bytes: ManuallyDrop::new(bytes),
        })
    }
}

impl<T: HostBytes + ?Sized> HostMemory<T> {
    pub(super) fn mem(&self) -> &Mem {
        &self.mem
    }

    /// Sets the last command that reads the bytes.
    pub(super) fn set_reader(&self, reader: Arc<Event>) {
        let before = self.reader.lock().replace(reader);
        // Release the event after the lock.
        drop(before);
    }
}

impl<T: HostBytes + ?Sized> Drop for HostMemory<T> {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.get_mut().take()
            && !reader.ends_within(DROP_LIMIT)
        {
            gst::error!(
                CAT,
                "the device may still read a frame; leaking the frame's memory"
            );
            return;
        }
        // SAFETY: both are dropped only here, the memory object before the bytes under it.
        unsafe {
            ManuallyDrop::drop(&mut self.mem);
            ManuallyDrop::drop(&mut self.bytes);
        }
    }
}

/// Memory that the host and the kernels of other elements use too.
#[derive(Debug, Clone, Copy)]
pub enum Memory<'a> {
    /// A buffer in OpenCL memory.
    Buffer(&'a ClBuffer),
    /// Host memory that the device reads in place.
    Host(&'a Arc<HostMemory>),
}

impl Memory<'_> {
    fn mem(&self) -> &Mem {
        match self {
            Self::Buffer(buffer) => buffer.mem(),
            Self::Host(host) => host.mem(),
        }
    }
}

/// Rows in a memory.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The memory.
    pub memory: Memory<'a>,
    /// Bytes from the start of the memory to the first row.
    pub offset: usize,
    /// Bytes between rows.
    pub stride: usize,
}

/// A kernel argument.
#[derive(Debug, Clone, Copy)]
pub enum Arg<'a> {
    /// Memory of a frame or a mask that the kernel reads.
    Reads(Memory<'a>),
    /// Memory of a frame or a mask that the kernel writes.
    Writes(Memory<'a>),
    /// A buffer or image that only the operator uses: the queue's order is sufficient.
    Mem(&'a Mem),
    /// `int`
    I32(i32),
    /// `uint`
    U32(u32),
    /// `ulong`
    U64(u64),
    /// `int4`
    I32x4([i32; 4]),
    /// `__local` memory of this many bytes.
    Local(usize),
}

/// The commands of an operator for one frame: [`Self::run`] for each kernel, then [`Self::read`] if the
/// host needs a result, else [`Self::send`]. The commands before the read are measured as one
/// [`Step::Kernel`](crate::Step::Kernel).
///
/// Each command waits for the command before it, so that a failure reaches the last command. It also
/// waits for the commands of other elements that use the memory in its [`Arg::Reads`] and
/// [`Arg::Writes`], and that memory then knows the command as its last reader or writer. An operator needs no waits of
/// its own between commands.
#[derive(Debug)]
pub struct Submission<'a> {
    context: &'a Arc<ClContext>,
    meter: &'a Meter,
    /// Bytes that the kernels process.
    bytes: usize,
    first: Option<Arc<Event>>,
    last: Option<Arc<Event>>,
    /// Commands of other elements, and uploads, that these commands wait for.
    waited: Vec<Arc<Event>>,
    /// How many of `waited` know the command that waits for them.
    followed: usize,
    /// A kernel of these commands runs for the first time.
    first_use: Option<FirstUse>,
    /// Host memory that these commands read.
    host: Vec<Arc<HostMemory>>,
    /// Held from the first command to the last one: commands of other threads do not come between them.
    order: Option<TurnGuard<'a, Ordered>>,
}

impl ClContext {
    /// Begins the commands for a frame, whose kernels process `bytes` bytes; `meter` counts and measures them.
    pub fn submit<'a>(self: &'a Arc<Self>, meter: &'a Meter, bytes: usize) -> Submission<'a> {
        Submission {
            context: self,
            meter,
            bytes,
            first: None,
            last: None,
            waited: Vec::new(),
            followed: 0,
            first_use: None,
            host: Vec::new(),
            order: None,
        }
    }
}

impl<'a> Submission<'a> {
    /// Continues the commands of another submission, if there are any: their failure reaches the last command, too.
    /// Call it before the first command.
    pub fn after(&mut self, before: Option<&Completion>) {
        debug_assert!(self.last.is_none(), "a command was enqueued already");
        self.last = before.map(|before| before.last.clone());
    }

    /// Sets the arguments and enqueues the kernel. `args` are in the order of the kernel's parameters.
    /// A missing argument or one of another size makes an OpenCL call fail.
    ///
    /// # Errors
    /// The failing call, with the kernel's name as its subject; an unusable argument.
    pub fn run(
        &mut self,
        kernel: &mut Kernel,
        name: &'static str,
        args: &[Arg],
        range: &NdRange,
    ) -> Result<(), ClError> {
        if kernel.begin_launch() {
            notify_compiler(Compiling::Kernel(name));
            if self.context.info().is_pocl {
                self.first_use.get_or_insert_with(FirstUse::begin);
            }
        }
        let mut ordered = self.take_order();
        for (index, arg) in args.iter().enumerate() {
            set_arg(kernel, index as u32, arg).map_err(|code| {
                call_error("clSetKernelArg", code, format!("{name}, argument {index}"))
            })?;
        }
        let waits = self.waits(&mut ordered, args)?;
        let wants_event = self.context.marks_all();
        self.enqueue(ordered, args, |context, turn| {
            (context.commands())
                // SAFETY: the kernel bounds-checks against its arguments, or the operator fulfils what the kernel's header
                // requires. The driver keeps buffers until the command has ended, and `drop` sets the last reader of host
                // memory.
                .enqueue(turn, |raw| unsafe {
                    enqueue_kernel(raw, kernel.raw(), range, &waits, wants_event)
                })
                .map_err(|code| context.failed("clEnqueueNDRangeKernel", code, name))
        })
    }

    /// Enqueues a copy of `rows` rows of `row_bytes` bytes. The rows may not overlap in memory.
    pub fn copy(
        &mut self,
        from: Rows,
        to: Rows,
        row_bytes: usize,
        rows: usize,
    ) -> Result<(), ClError> {
        let args = [Arg::Reads(from.memory), Arg::Writes(to.memory)];
        let mut ordered = self.take_order();
        let waits = self.waits(&mut ordered, &args)?;
        let region = [row_bytes, rows, 1];
        let (source, target) = (from.memory.mem().raw(), to.memory.mem().raw());
        let (count, list) = (waits.len() as u32, first_of(&waits));
        // Rows at the same distances are one run of bytes. PoCL 3.1 also refuses a copy of rows within a
        // buffer that do not overlap.
        let is_one_run = from.stride == to.stride;
        let call = if is_one_run {
            "clEnqueueCopyBuffer"
        } else {
            "clEnqueueCopyBufferRect"
        };
        let enqueue = |context: &ClContext, turn: &Turn| {
            // SAFETY: the driver checks the ranges and keeps the buffers until the command has ended; `drop` sets the last
            // reader of host memory.
            let event = context.commands().enqueue(turn, |raw| unsafe {
                if is_one_run {
                    let bytes = rows.saturating_sub(1) * from.stride + row_bytes;
                    let (at, to) = (from.offset, to.offset);
                    enqueue_copy_buffer(raw, source, target, at, to, bytes, count, list)
                } else {
                    enqueue_copy_buffer_rect(
                        raw,
                        source,
                        target,
                        [from.offset, 0, 0].as_ptr(),
                        [to.offset, 0, 0].as_ptr(),
                        region.as_ptr(),
                        from.stride,
                        0,
                        to.stride,
                        0,
                        count,
                        list,
                    )
                }
            });
            event.map_err(|code| context.failed(call, code, "rows of a web"))
        };
        self.enqueue(ordered, &args, enqueue)
    }

    /// Enqueues a fill of the first `len` bytes with zeros; `len` is a multiple of 4.
    pub fn zero(&mut self, mem: &Mem, len: usize, subject: &str) -> Result<(), ClError> {
        let ordered = self.take_order();
        let before = Vec::from_iter(self.last.clone());
        self.enqueue(ordered, &[], |context, turn| {
            context.zero_after(turn, mem, len, &before, subject)
        })
    }

    /// Number of the device's compute units.
    pub fn compute_units(&self) -> usize {
        self.context.caps().compute_units
    }

    /// Counts a plane that a command copies into an image.
    pub fn count_image_copy(&self) {
        self.meter.count_image_copy();
    }

    /// Ends the commands with a blocking read of a result.
    ///
    /// # Errors
    /// The failing call, or the failure of a command.
    pub fn read(
        self,
        mem: &Mem,
        offset: usize,
        out: &mut [u8],
        subject: &str,
    ) -> Result<(), ClError> {
        let reading = self.begin_reads(&[(mem, offset, out.len())], subject)?;
        reading.finish(&mut [out], subject)
    }

    /// Ends the commands with reads of parts of memories: the memory, offset and length.
    ///
    /// # Errors
    /// The failing call.
    pub fn begin_reads(
        mut self,
        parts: &[(&Mem, usize, usize)],
        subject: &str,
    ) -> Result<Reading<'a>, ClError> {
        let (context, last) = (self.context, self.last.as_ref());
        let transfer = match context.order().free_turn() {
            Some(turn) => context.read_after(&turn, parts, last, subject),
            None => {
                let kept = self.order.take();
                let ordered = kept.unwrap_or_else(|| context.order().lock());
                context.read_after(&ordered.turn, parts, last, subject)
            }
        };
        let mut before = self.waited.clone();
        before.extend(last.cloned());
        Ok(Reading {
            context,
            meter: self.meter,
            transfer: transfer?,
            before,
        })
    }

    /// Ends the commands and waits for them; the host then reads `read` bytes of a result in place.
    ///
    /// # Errors
    /// The failing call, or the failure of a command.
    pub(super) fn finish(self, read: usize, subject: &str) -> Result<(), ClError> {
        self.meter.result_in_place(read);
        if self.last.is_none() {
            // Nothing was enqueued, but commands of a frame that failed may still run.
            return self.context.wait_for_last();
        }
        self.send()?.wait(subject)
    }

    /// Flushes the commands without waiting for them.
    ///
    /// # Errors
    /// The failing call; [`ClError::Input`] if there was no command.
    pub fn send(mut self) -> Result<Completion, ClError> {
        let completion = self.completion()?;
        match self.context.order().free_turn() {
            Some(turn) => self.context.flush(&turn, self.context.commands())?,
            None => {
                let ordered = self.take_order();
                (self.context).flush(&ordered.turn, self.context.commands())?;
            }
        }
        Ok(completion)
    }

    /// Ends the commands of a frame that stays on the device: without a flush if it goes to an element whose commands follow in
    /// the same queue.
    ///
    /// # Errors
    /// As for [`Self::send`].
    pub fn pass_on(self) -> Result<Completion, ClError> {
        if self.context.is_followed(self.bytes) {
            self.enqueued()
        } else {
            self.send()
        }
    }

    /// Ends the commands without a flush: the device gets them with the commands that follow, or when a thread waits.
    ///
    /// # Errors
    /// [`ClError::Input`] if there was no command.
    pub fn enqueued(self) -> Result<Completion, ClError> {
        self.completion()
    }

    fn completion(&self) -> Result<Completion, ClError> {
        let last = self.last.clone();
        let last = last.ok_or_else(|| ClError::Input("the frame has no plane".into()))?;
        Ok(Completion {
            context: self.context.clone(),
            last,
            bytes: self.bytes,
        })
    }

    /// The device's order, which [`Self::enqueue`] keeps for the next command.
    fn take_order(&mut self) -> TurnGuard<'a, Ordered> {
        let kept = self.order.take();
        kept.unwrap_or_else(|| self.context.order().lock())
    }

    /// What a command with these arguments waits for.
    fn waits(&mut self, ordered: &mut Ordered, args: &[Arg]) -> Result<Vec<cl_event>, ClError> {
        let (context, queue) = (self.context, self.context.commands());
        let known = self.waited.len();
        for arg in args {
            let before = match arg {
                Arg::Reads(Memory::Buffer(buffer)) => {
                    let contents = buffer.state().contents(&mut ordered.key)?;
                    contents.writer().cloned().into_iter().collect()
                }
                Arg::Writes(Memory::Buffer(buffer)) => {
                    let contents = buffer.state().contents(&mut ordered.key)?;
                    unended_elsewhere(contents, queue)
                }
                Arg::Writes(Memory::Host(_)) => {
                    return Err(ClError::Input(
                        "the output frame is not in OpenCL memory".into(),
                    ));
                }
                _ => continue,
            };
            for event in before {
                let mut known = self.waited.iter().chain(&self.last);
                if !known.any(|known| Arc::ptr_eq(known, &event)) {
                    self.waited.push(event);
                }
            }
        }
        let before = self.last.iter().chain(&self.waited[known..]);
        context.wait_list(&ordered.turn, queue, before)
    }

    /// Enqueues a command with `call`, records what it uses, and keeps the order for the next one.
    fn enqueue(
        &mut self,
        mut ordered: TurnGuard<'a, Ordered>,
        args: &[Arg],
        call: impl FnOnce(&ClContext, &Turn) -> Result<Arc<Event>, ClError>,
    ) -> Result<(), ClError> {
        let free = self.context.order().free_turn();
        let event = match &free {
            None => call(self.context, &ordered.turn)?,
            Some(turn) => {
                drop(ordered);
                let event = call(self.context, turn)?;
                ordered = self.context.order().lock();
                event
            }
        };
        for arg in args {
            match arg {
                Arg::Reads(Memory::Buffer(buffer)) => {
                    buffer.state().set_reader(&mut ordered.key, event.clone());
                }
                Arg::Writes(Memory::Buffer(buffer)) => {
                    let state = buffer.state();
                    state.set_writer(&mut ordered.key, event.clone());
                    order::download_ahead(&mut ordered, state, *buffer)?;
                }
                Arg::Reads(Memory::Host(host))
                    if !self.host.iter().any(|known| Arc::ptr_eq(known, host)) =>
                {
                    self.host.push((*host).clone());
                }
                _ => {}
            }
        }
        self.order = Some(ordered).filter(|_| free.is_none());
        for upload in &self.waited[self.followed..] {
            upload.set_follower(&event);
        }
        self.followed = self.waited.len();
        self.first.get_or_insert_with(|| event.clone());
        self.last = Some(event);
        Ok(())
    }
}

/// The reads at the end of a frame's commands.
#[derive(Debug)]
pub struct Reading<'a> {
    context: &'a Arc<ClContext>,
    meter: &'a Meter,
    transfer: Transfer,
    /// Commands that have ended when the reads have.
    before: Vec<Arc<Event>>,
}

impl Reading<'_> {
    /// Waits, and copies what was read of each part.
    ///
    /// # Errors
    /// The failure of a command, or of the wait.
    pub fn finish(self, outs: &mut [&mut [u8]], subject: &str) -> Result<(), ClError> {
        let bytes = outs.iter().map(|out| out.len()).sum();
        let read = (self.context).finish_read(self.transfer, outs, subject)?;
        for done in &self.before {
            done.set_done();
        }
        self.meter.result(&read, bytes);
        Ok(())
    }
}

impl Drop for Submission<'_> {
    fn drop(&mut self) {
        // The rest is not part of the order.
        drop(self.order.take());
        let Some(last) = self.last.take() else {
            return;
        };
        if let Some(launch) = self.first_use.take() {
            launch.returned(&last);
        }
        if let Some(first) = &self.first {
            self.meter
                .computed([first, &last], &self.waited, self.bytes);
        }
        for host in &self.host {
            host.set_reader(last.clone());
        }
        self.meter.set_last_command(last.clone());
        self.context.add_recent(last);
    }
}

/// The last of a frame's commands, which are still in flight.
#[derive(Debug, Clone)]
pub struct Completion {
    pub(super) context: Arc<ClContext>,
    pub(super) last: Arc<Event>,
    /// Bytes that the kernels process; 0 if there are none.
    pub(super) bytes: usize,
}

impl Completion {
    /// Waits for the last command; `subject` names the commands in an error.
    ///
    /// # Errors
    /// A command or the wait has failed.
    pub fn wait(&self, subject: &str) -> Result<(), ClError> {
        (self.context).wait_for_kernels(&self.last, self.bytes, subject)
    }
}

fn set_arg(kernel: &mut Kernel, index: u32, arg: &Arg) -> Result<(), i32> {
    let raw_mem: cl_mem;
    let (size, value): (usize, *const c_void) = match arg {
        Arg::Reads(memory) | Arg::Writes(memory) => {
            raw_mem = memory.mem().raw();
            (size_of::<cl_mem>(), (&raw const raw_mem).cast())
        }
        Arg::Mem(mem) => {
            raw_mem = mem.raw();
            (size_of::<cl_mem>(), (&raw const raw_mem).cast())
        }
        Arg::I32(v) => (size_of_val(v), ptr::from_ref(v).cast()),
        Arg::U32(v) => (size_of_val(v), ptr::from_ref(v).cast()),
        Arg::U64(v) => (size_of_val(v), ptr::from_ref(v).cast()),
        Arg::I32x4(v) => (size_of_val(v), v.as_ptr().cast()),
        Arg::Local(bytes) => (*bytes, ptr::null()),
    };
    // SAFETY: the value is read during the call and is as large as `size` says; the kernel is
    // borrowed mutably, so no other thread sets its arguments.
    unsafe { set_kernel_arg(kernel.raw(), index, size, value) }
}
