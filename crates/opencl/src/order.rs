//! The order of a device's commands: which of them last used each buffer, and how the host uses the buffer.
//!
//! One lock, [`Order`], owns this for all buffers of a device. A submission takes it once and enqueues its commands under
//! it, so what a buffer remembers agrees with what the queues hold. Nothing waits while the lock is held: a thread that
//! maps a buffer enqueues what that needs, gives the lock back, and waits then. Meanwhile other threads may map the same
//! buffer, and enqueue kernels that read it (docs/adr/0030).
//!
//! This file makes no OpenCL call: tests/buffer_order.rs runs it with a device of its own and in many orders of threads.

use std::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::sync::{TurnGuard, Turns};
use clinspect_core::ClError;

/// Owns the order of a device's commands.
#[derive(Debug)]
pub(crate) struct Order {
    number: u64,
    /// See [`Self::free_turn`].
    is_free: bool,
    turns: Turns<Ordered>,
}

/// What the holder of an [`Order`] may do.
#[derive(Debug)]
pub(crate) struct Ordered {
    /// To enqueue commands.
    pub turn: Turn,
    /// To see what is [`Owned`] by the order.
    pub key: Key,
}

/// The right to enqueue commands in any queue of the device.
#[derive(Debug)]
pub(crate) struct Turn(());

/// The right to see what is [`Owned`] by the order with this number.
#[derive(Debug)]
pub(crate) struct Key(u64);

impl Order {
    /// `looks`: see [`Turns::new`]; `is_free`: see [`Self::free_turn`].
    pub fn new(looks: bool, is_free: bool) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let ordered = Ordered {
            turn: Turn(()),
            key: Key(number),
        };
        Self {
            number,
            is_free,
            turns: Turns::new(ordered, looks),
        }
    }

    /// Waits for the right to enqueue. A thread that has it must not ask again, nor wait for anything.
    #[track_caller]
    pub fn lock(&self) -> TurnGuard<'_, Ordered> {
        self.turns.lock()
    }

    /// The right to enqueue a kernel or a read without the lock, on a device with one queue: whatever the queue has first comes
    /// first, so it matters little when a buffer learns of it. A call that stalls then holds up no other thread.
    pub fn free_turn(&self) -> Option<Turn> {
        self.is_free.then_some(Turn(()))
    }

    /// The state of a new buffer, which only the holder of this order sees; see [`BufferState::new`].
    pub fn own<C: Command>(&self, has_copy: bool) -> Owned<C> {
        Owned {
            owner: self.number,
            state: UnsafeCell::new(BufferState::new(has_copy)),
            is_recycled: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
        }
    }
}

/// The state of a buffer, which belongs to an [`Order`].
#[derive(Debug)]
pub(crate) struct Owned<C> {
    owner: u64,
    state: UnsafeCell<BufferState<C>>,
    /// The contents become undefined before the next use: a thread that only says this needs no lock.
    is_recycled: AtomicBool,
    /// An unmap has failed.
    is_broken: AtomicBool,
}

// SAFETY: a reference to the state needs the only `Key` of its owner, which is behind a lock.
unsafe impl<C: Send> Sync for Owned<C> {}

impl<C: Command> Owned<C> {
    /// The state.
    ///
    /// # Panics
    /// The key is of another device.
    #[track_caller]
    pub fn get<'a>(&'a self, key: &'a mut Key) -> &'a mut BufferState<C> {
        assert_eq!(self.owner, key.0, "a buffer of another device");
        // SAFETY: there is one `Key` with this number, and it is borrowed exclusively for as long as the result.
        let state = unsafe { &mut *self.state.get() };
        if self.is_recycled.swap(false, Ordering::AcqRel) {
            state.set_undefined();
        }
        state
    }

    pub fn get_mut(&mut self) -> &mut BufferState<C> {
        self.state.get_mut()
    }

    /// Like [`BufferState::set_undefined`], before the next use.
    pub fn recycle(&self) {
        self.is_recycled.store(true, Ordering::Release);
    }

    /// Whether an unmap has failed.
    pub fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }
}

/// How the host accesses mapped memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The host reads.
    pub read: bool,
    /// The host writes; bytes that it does not write keep their value.
    pub write: bool,
}

/// The address of a buffer's first byte in the host's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address(pub *mut u8);

// SAFETY: the address is only handed out to threads that map the memory.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

/// A command in a queue of the device.
pub(crate) trait Command: Clone {
    /// Whether both are in one queue, so that one ends before the other.
    fn shares_queue(&self, other: &Self) -> bool;

    /// Whether the command is known to have ended, without a call of the driver.
    fn is_over(&self) -> bool;

    /// The failure of the command, if it has failed by now.
    fn failure(&self) -> Option<ClError>;
}

/// Moves a buffer's bytes between host and device. No call but the waits may wait.
pub(crate) trait Transfers {
    type Command: Command;

    /// Where host and device share memory: enqueues a map after `writer` and, if the host writes, after `readers`.
    fn map(
        &self,
        turn: &Turn,
        access: Access,
        contents: &Contents<Self::Command>,
    ) -> Result<(Address, Self::Command), ClError>;

    /// Where host and device share memory: enqueues the end of a map.
    fn unmap(&self, turn: &Turn, address: Address) -> Result<Self::Command, ClError>;

    /// The host's copy, on a device with memory of its own.
    fn host_copy(&self) -> Address;

    /// Enqueues a transfer to the host's copy, after the writer of `contents` and after `user` of the copy.
    fn download(
        &self,
        turn: &Turn,
        contents: &Contents<Self::Command>,
        user: Option<&Self::Command>,
    ) -> Result<Self::Command, ClError>;

    /// Enqueues a transfer from the host's copy, after all that use `contents`.
    fn upload(
        &self,
        turn: &Turn,
        contents: &Contents<Self::Command>,
    ) -> Result<Self::Command, ClError>;

    /// Waits for the end of a command.
    ///
    /// # Errors
    /// The command has failed, or the wait.
    fn wait(&self, command: &Self::Command) -> Result<(), ClError>;

    /// Waits for the end of a command, with or without a failure.
    ///
    /// # Errors
    /// The wait has failed.
    fn wait_for_end(&self, command: &Self::Command) -> Result<(), ClError>;
}

/// Who uses a buffer.
#[derive(Debug)]
pub(crate) struct BufferState<C> {
    contents: Contents<C>,
    host: Host<C>,
    /// The host's copy, on a device with memory of its own.
    copy: Option<HostCopy<C>>,
}

/// What the host does with a buffer.
#[derive(Debug)]
enum Host<C> {
    /// Nothing.
    Away,
    /// It uses `address` through `maps` maps, each after `ready`.
    Mapped {
        address: Address,
        writes: bool,
        maps: usize,
        ready: Ready<C>,
    },
    /// An unmap failed. What the host wrote may be lost, and the driver may still count the buffer as mapped.
    Broken(ClError),
}

/// When the host may use a mapped buffer.
#[derive(Debug, Clone)]
enum Ready<C> {
    Now,
    /// When this command has succeeded.
    Done(C),
    /// When this command has ended, with or without a failure.
    Ended(C),
}

/// The host's copy of a buffer.
#[derive(Debug)]
struct HostCopy<C> {
    /// It has, or gets by `user`, the same bytes as the device's memory.
    is_current: bool,
    /// The last transfer from or to the copy.
    user: Option<C>,
}

/// What [`map`] did.
#[derive(Debug)]
pub(crate) struct Mapped<C> {
    pub address: Address,
    /// The buffer was not mapped before.
    pub is_first: bool,
    /// The transfer to the host, and the command that wrote what was transferred.
    pub downloaded: Option<(C, Option<C>)>,
}

/// What [`unmap`] did.
#[derive(Debug)]
pub(crate) enum Unmapped<C> {
    /// Other maps last, or the host wrote nothing.
    Ended,
    /// What the host wrote is transferred to the device.
    Uploaded(C),
    /// There was no map.
    NotMapped,
    /// The call failed.
    Failed(ClError),
}

/// Maps a buffer, and waits until the host may use it. Maps nest. A map for writing inside a map for reading is refused, as
/// GStreamer's locks do.
///
/// # Errors
/// The failing call, or the failure of the command that wrote the contents, or of the last unmap.
pub(crate) fn map<T: Transfers>(
    order: &Order,
    state: &Owned<T::Command>,
    device: &T,
    access: Access,
) -> Result<Mapped<T::Command>, ClError> {
    let (mapped, ready) = {
        let mut ordered = order.lock();
        let Ordered { turn, key } = &mut *ordered;
        state.get(key).map(turn, device, access)?
    };
    let waited = match &ready {
        Ready::Now => return Ok(mapped),
        Ready::Done(command) => device.wait(command),
        Ready::Ended(command) => device.wait_for_end(command),
    };
    if let Err(error) = waited {
        let mut ordered = order.lock();
        state.get(&mut ordered.key).give_up(access);
        return Err(error);
    }
    Ok(mapped)
}

/// Ends one [`map`]. The last one gives the memory back to the device.
pub(crate) fn unmap<T: Transfers>(
    order: &Order,
    state: &Owned<T::Command>,
    device: &T,
) -> Unmapped<T::Command> {
    let mut ordered = order.lock();
    let Ordered { turn, key } = &mut *ordered;
    let unmapped = state.get(key).unmap(turn, device);
    if let Unmapped::Failed(_) = &unmapped {
        state.is_broken.store(true, Ordering::Release);
    }
    unmapped
}

impl<C: Command> BufferState<C> {
    /// Undefined contents. `has_copy`: the host uses a copy, because the device has memory of its own.
    pub fn new(has_copy: bool) -> Self {
        let copy = HostCopy {
            is_current: false,
            user: None,
        };
        Self {
            contents: Contents::Undefined { users: Vec::new() },
            host: Host::Away,
            copy: has_copy.then_some(copy),
        }
    }

    /// The contents, for a command that uses them.
    ///
    /// # Errors
    /// An unmap has failed before: what the host wrote may not have reached the device.
    pub fn contents(&self) -> Result<&Contents<C>, ClError> {
        match &self.host {
            Host::Broken(error) => Err(error.clone()),
            _ => Ok(&self.contents),
        }
    }

    /// A command that was enqueued reads the contents.
    pub fn set_reader(&mut self, command: C) {
        self.contents.set_reader(command);
    }

    /// A command that was enqueued writes the contents, after all users before.
    pub fn set_writer(&mut self, command: C) {
        self.contents = Contents::written_by(command);
        self.outdate_copy();
    }

    /// A command that was enqueued writes a part of the contents. Later readers wait for it; the readers remain.
    pub fn set_part_writer(&mut self, command: C) {
        self.contents.set_part_writer(command);
        self.outdate_copy();
    }

    /// The next writer need not preserve the contents. Returns the failure of the command that wrote them.
    pub fn set_undefined(&mut self) -> Option<ClError> {
        self.outdate_copy();
        // What reads the contents has waited for the transfer that wrote them, or is itself one.
        if let (Contents::Written { readers, .. }, Some(copy)) = (&self.contents, &mut self.copy)
            && readers.iter().any(C::is_over)
            && readers.iter().all(C::is_over)
        {
            copy.user = None;
        }
        self.contents.set_undefined()
    }

    fn outdate_copy(&mut self) {
        if let Some(copy) = &mut self.copy {
            copy.is_current = false;
        }
    }

    /// The map that lasts, where host and device share memory; for the end of the buffer.
    pub fn shared_map(&self) -> Option<Address> {
        match self.host {
            Host::Mapped { address, .. } if self.copy.is_none() => Some(address),
            _ => None,
        }
    }

    /// The last transfer from or to the host's copy.
    pub fn user_of_copy(&self) -> Option<&C> {
        self.copy.as_ref()?.user.as_ref()
    }

    fn map<T: Transfers<Command = C>>(
        &mut self,
        turn: &Turn,
        device: &T,
        access: Access,
    ) -> Result<(Mapped<C>, Ready<C>), ClError> {
        match &mut self.host {
            Host::Broken(error) => return Err(error.clone()),
            Host::Mapped { writes: false, .. } if access.write => {
                return Err(ClError::Refused(
                    "memory that is mapped for reading cannot be mapped for writing".into(),
                ));
            }
            Host::Mapped {
                address,
                maps,
                ready,
                ..
            } => {
                *maps += 1;
                let mapped = Mapped {
                    address: *address,
                    is_first: false,
                    downloaded: None,
                };
                return Ok((mapped, ready.clone()));
            }
            Host::Away => {}
        }
        let mut mapped = Mapped {
            address: Address(std::ptr::null_mut()),
            is_first: true,
            downloaded: None,
        };
        let ready = if let Some(copy) = &mut self.copy {
            mapped.address = device.host_copy();
            if copy.is_current || (access.write && self.contents.is_undefined()) {
                // The host may read while an upload does, but not write.
                let user = copy.user.clone();
                let user = user.filter(|user| access.write && !user.is_over());
                user.map_or(Ready::Now, Ready::Ended)
            } else {
                let writer = self.contents.writer().cloned();
                let command = device.download(turn, &self.contents, copy.user.as_ref())?;
                self.contents.set_reader(command.clone());
                copy.is_current = true;
                copy.user = Some(command.clone());
                mapped.downloaded = Some((command.clone(), writer));
                Ready::Done(command)
            }
        } else {
            let begun = device.map(turn, access, &self.contents);
            if begun.is_err() && access.write {
                self.contents.forget_readers();
            }
            let (address, command) = begun?;
            mapped.address = address;
            Ready::Done(command)
        };
        self.host = Host::Mapped {
            address: mapped.address,
            writes: access.write,
            maps: 1,
            ready: ready.clone(),
        };
        Ok((mapped, ready))
    }

    /// The host cannot use its map, because what it waited for has failed.
    fn give_up(&mut self, access: Access) {
        if let Host::Mapped { maps, .. } = &mut self.host {
            *maps -= 1;
            if *maps == 0 {
                self.host = Host::Away;
            }
        }
        self.outdate_copy();
        if access.write {
            // The failure of a reader fails only this map.
            self.contents.forget_readers();
        }
    }

    fn unmap<T: Transfers<Command = C>>(&mut self, turn: &Turn, device: &T) -> Unmapped<C> {
        let (address, writes) = match &mut self.host {
            Host::Mapped { maps, .. } if *maps > 1 => {
                *maps -= 1;
                return Unmapped::Ended;
            }
            Host::Mapped {
                address, writes, ..
            } => (*address, *writes),
            Host::Away | Host::Broken(_) => return Unmapped::NotMapped,
        };
        self.host = Host::Away;
        let ended = match &mut self.copy {
            Some(_) if !writes => return Unmapped::Ended,
            Some(copy) => device.upload(turn, &self.contents).inspect(|command| {
                copy.is_current = true;
                copy.user = Some(command.clone());
            }),
            None => device.unmap(turn, address),
        };
        match ended {
            Ok(command) if !writes => {
                self.contents.set_reader(command);
                Unmapped::Ended
            }
            Ok(command) => {
                // If the transfer fails, every reader of the contents must fail.
                self.contents = Contents::written_by(command.clone());
                match self.copy {
                    Some(_) => Unmapped::Uploaded(command),
                    None => Unmapped::Ended,
                }
            }
            Err(error) => {
                self.host = Host::Broken(error.clone());
                Unmapped::Failed(error)
            }
        }
    }
}

/// The contents of a buffer, and the last commands that used them, the last one of each queue.
#[derive(Debug)]
pub(crate) enum Contents<C> {
    /// Undefined. The next write need not preserve them, but must wait for `users`.
    Undefined { users: Vec<C> },
    /// Written by `writer`; if it fails, the next user of the buffer fails. `readers` have read since.
    Written { writer: C, readers: Vec<C> },
}

impl<C: Command> Contents<C> {
    fn written_by(writer: C) -> Self {
        Self::Written {
            writer,
            readers: Vec::new(),
        }
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined { .. })
    }

    /// The command that wrote the contents.
    pub fn writer(&self) -> Option<&C> {
        match self {
            Self::Undefined { .. } => None,
            Self::Written { writer, .. } => Some(writer),
        }
    }

    /// The last commands that read the contents; for undefined contents, the last ones that used the memory.
    pub fn readers(&self) -> &[C] {
        let (Self::Undefined { users: readers } | Self::Written { readers, .. }) = self;
        readers
    }

    /// The last commands that used the memory.
    pub fn uses(&self) -> impl Iterator<Item = &C> {
        self.readers().iter().chain(self.writer())
    }

    /// Adds a reader. Readers before it in its queue end earlier.
    fn set_reader(&mut self, command: C) {
        let (Self::Undefined { users: readers } | Self::Written { readers, .. }) = self;
        readers.retain(|reader| !reader.shares_queue(&command));
        readers.push(command);
    }

    fn set_part_writer(&mut self, writer: C) {
        let readers = self.readers().to_vec();
        *self = Self::Written { writer, readers };
    }

    fn forget_readers(&mut self) {
        let (Self::Undefined { users: readers } | Self::Written { readers, .. }) = self;
        readers.clear();
    }

    fn set_undefined(&mut self) -> Option<ClError> {
        let writer = self.writer()?;
        let mut users = self.readers().to_vec();
        // A reader waited for the writer.
        let is_over = writer.is_over() || users.iter().any(C::is_over);
        let failure = if is_over { None } else { writer.failure() };
        // A failed command has ended, and the next writer must not fail because of it.
        if users.is_empty() && failure.is_none() {
            users.push(writer.clone());
        }
        *self = Self::Undefined { users };
        failure
    }
}
