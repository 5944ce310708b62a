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

use crate::sync::{Lock, Rank, TurnGuard, Turns};
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

    /// Whether threads wait for the right to enqueue.
    pub fn is_crowded(&self) -> bool {
        self.turns.is_crowded()
    }

    /// The right to enqueue a kernel or a read without the lock, on a device with one queue: whatever the queue has first comes
    /// first, so it matters little when a buffer learns of it. A call that stalls then holds up no other thread.
    pub fn free_turn(&self) -> Option<Turn> {
        self.is_free.then_some(Turn(()))
    }

    /// The state of a new buffer with undefined contents. `has_copy`: the host uses a copy, because the device has memory of
    /// its own.
    pub fn own<C: Command>(&self, has_copy: bool) -> Owned<C> {
        Owned {
            owner: self.number,
            contents: UnsafeCell::new(Contents::Undefined { users: Vec::new() }),
            side: Lock::new(Rank::Host, HostSide::new(has_copy)),
            is_recycled: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
        }
    }
}

/// The state of a buffer: its contents belong to an [`Order`]. What the host does with it is behind a lock of its own, because
/// a map that moves nothing need not wait for the order. Whoever takes both takes the order first.
#[derive(Debug)]
pub(crate) struct Owned<C> {
    owner: u64,
    contents: UnsafeCell<Contents<C>>,
    side: Lock<HostSide<C>>,
    /// The contents become undefined before the next use: a thread that only says this needs no lock.
    is_recycled: AtomicBool,
    /// An unmap has failed.
    is_broken: AtomicBool,
}

// SAFETY: a reference to the contents needs the only `Key` of its owner, which is behind a lock.
unsafe impl<C: Send> Sync for Owned<C> {}

impl<C: Command> Owned<C> {
    /// The contents.
    ///
    /// # Panics
    /// The key is of another device.
    #[track_caller]
    fn get<'a>(&'a self, key: &'a mut Key) -> &'a mut Contents<C> {
        assert_eq!(self.owner, key.0, "a buffer of another device");
        // SAFETY: there is one `Key` with this number, and it is borrowed exclusively for as long as the result.
        let contents = unsafe { &mut *self.contents.get() };
        if self.is_recycled.swap(false, Ordering::AcqRel) {
            self.side.lock().outdate_copy();
            contents.set_undefined();
        }
        contents
    }

    /// The contents, for a command that uses them.
    ///
    /// # Errors
    /// An unmap has failed before: what the host wrote may not have reached the device.
    pub fn contents<'a>(&'a self, key: &'a mut Key) -> Result<&'a Contents<C>, ClError> {
        self.check()?;
        Ok(self.get(key))
    }

    /// A command that was enqueued reads the contents.
    pub fn set_reader(&self, key: &mut Key, command: C) {
        self.get(key).set_reader(command);
    }

    /// A command that was enqueued writes the contents, after all users before.
    pub fn set_writer(&self, key: &mut Key, command: C) {
        *self.get(key) = Contents::written_by(command);
        self.side.lock().outdate_copy();
    }

    /// A command that was enqueued writes a part of the contents. Later readers wait for it; the readers remain.
    pub fn set_part_writer(&self, key: &mut Key, command: C) {
        self.get(key).set_part_writer(command);
        self.side.lock().outdate_copy();
    }

    /// The next writer need not preserve the contents. Returns the failure of the command that wrote them.
    pub fn set_undefined(&self, key: &mut Key) -> Option<ClError> {
        let contents = self.get(key);
        self.side.lock().outdate_copy();
        contents.set_undefined()
    }

    /// Like [`Self::set_undefined`], before the next use.
    pub fn recycle(&self) {
        self.is_recycled.store(true, Ordering::Release);
    }

    /// Fails if an unmap has failed.
    pub fn check(&self) -> Result<(), ClError> {
        match self.is_broken.load(Ordering::Acquire) {
            true => self.side.lock().check(),
            false => Ok(()),
        }
    }

    /// The map that lasts, where host and device share memory; for the end of the buffer.
    pub fn shared_map(&mut self) -> Option<Address> {
        let side = self.side.get_mut();
        match side.host {
            Host::Mapped { address, .. } if side.copy.is_none() => Some(address),
            _ => None,
        }
    }

    /// The last transfer from or to the host's copy; for the end of the buffer.
    pub fn user_of_copy(&mut self) -> Option<C> {
        self.side.get_mut().copy.as_ref()?.user.clone()
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
pub(crate) trait Command: Clone + Send + Sync {
    /// Whether both are in one queue, so that one ends before the other.
    fn shares_queue(&self, other: &Self) -> bool;

    /// Whether the command is known to have ended, without a call of the driver.
    fn is_over(&self) -> bool;

    /// The failure of the command, if it has failed by now.
    fn failure(&self) -> Option<ClError>;
}

/// Moves a buffer's bytes between host and device. No call but the waits may wait.
pub(crate) trait Transfers: Sync {
    type Command: Command;

    /// Makes calls that belong together, and waits for none of them.
    fn together<R: Send>(&self, calls: impl FnOnce() -> R + Send) -> R {
        calls()
    }

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

    /// Enqueues a transfer to the host's copy, after the writer of `contents` and after `user` of the copy. The device gets it
    /// with [`Self::flush_downloads`] or later commands.
    fn download(
        &self,
        turn: &Turn,
        contents: &Contents<Self::Command>,
        user: Option<&Self::Command>,
    ) -> Result<Self::Command, ClError>;

    /// Hands downloads to the device.
    fn flush_downloads(&self, turn: &Turn) -> Result<(), ClError>;

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

/// How the host uses a buffer.
#[derive(Debug)]
struct HostSide<C> {
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
    /// The host read the contents before these, so that it probably reads these, too.
    is_wanted: bool,
    /// The writer of the contents that `user` brings before the host has asked for them.
    ahead_of: Option<C>,
}

/// What [`map`] did.
#[derive(Debug)]
pub(crate) struct Mapped<C> {
    pub address: Address,
    /// The buffer was not mapped before.
    pub is_first: bool,
    /// The transfer to the host, and the command that wrote what was transferred.
    pub downloaded: Option<(C, Option<C>)>,
    ready: Ready<C>,
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
    let begun = state.map_in_place(device, access)?;
    let mapped = match begun {
        Some(mapped) => mapped,
        None => {
            let map = || state.map(&mut order.lock(), device, access);
            device.together(map)?
        }
    };
    let waited = match &mapped.ready {
        Ready::Now => return Ok(mapped),
        Ready::Done(command) => device.wait(command),
        Ready::Ended(command) => device.wait_for_end(command),
    };
    if let Err(error) = waited {
        let mut ordered = order.lock();
        state.give_up(&mut ordered.key, access);
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
    // The lock of the side ends with this statement: the order is locked first.
    let unmapped = state.side.lock().unmap_in_place();
    unmapped.unwrap_or_else(|| device.together(|| state.unmap(&mut order.lock(), device)))
}

/// Enqueues a transfer of the contents to the host's copy, if the host will probably ask for it: a thread that maps the buffer
/// then neither enqueues nor waits.
///
/// # Errors
/// The failing call.
pub(crate) fn download_ahead<T: Transfers>(
    ordered: &mut Ordered,
    state: &Owned<T::Command>,
    device: &T,
) -> Result<(), ClError> {
    let contents = state.get(&mut ordered.key);
    let mut side = state.side.lock();
    if let Host::Away = side.host
        && let Some(copy) = &mut side.copy
        && copy.is_wanted
    {
        copy.download(&ordered.turn, device, contents)?;
        copy.ahead_of = contents.writer().cloned();
    }
    Ok(())
}

impl<C: Command> Owned<C> {
    /// Maps without the order, if nothing must be enqueued; `None` if something must.
    fn map_in_place<T: Transfers<Command = C>>(
        &self,
        device: &T,
        access: Access,
    ) -> Result<Option<Mapped<C>>, ClError> {
        // What a recycled buffer holds is undefined.
        let is_undefined = self.is_recycled.load(Ordering::Acquire);
        self.side.lock().map_in_place(device, access, is_undefined)
    }

    fn map<T: Transfers<Command = C>>(
        &self,
        Ordered { turn, key }: &mut Ordered,
        device: &T,
        access: Access,
    ) -> Result<Mapped<C>, ClError> {
        let contents = self.get(key);
        let mut side = self.side.lock();
        // Another thread may have mapped the buffer meanwhile.
        let is_undefined = contents.is_undefined();
        if let Some(begun) = side.map_in_place(device, access, is_undefined)? {
            return Ok(begun);
        }
        let mut downloaded = None;
        let (address, command) = if let Some(copy) = &mut side.copy {
            let writer = contents.writer().cloned();
            let command = copy.download(turn, device, contents)?;
            copy.is_wanted = access.read;
            device.flush_downloads(turn)?;
            downloaded = Some((command.clone(), writer));
            (device.host_copy(), command)
        } else {
            let begun = device.map(turn, access, contents);
            if begun.is_err() && access.write {
                contents.forget_readers();
            }
            begun?
        };
        Ok(side.begin(address, access, Ready::Done(command), downloaded))
    }

    /// The host cannot use its map, because what it waited for has failed.
    fn give_up(&self, key: &mut Key, access: Access) {
        let contents = self.get(key);
        let mut side = self.side.lock();
        if let Host::Mapped { maps, .. } = &mut side.host {
            *maps -= 1;
            if *maps == 0 {
                side.host = Host::Away;
            }
        }
        side.outdate_copy();
        if access.write {
            // The failure of a reader fails only this map.
            contents.forget_readers();
        }
    }

    fn unmap<T: Transfers<Command = C>>(
        &self,
        Ordered { turn, key }: &mut Ordered,
        device: &T,
    ) -> Unmapped<C> {
        let contents = self.get(key);
        let mut side = self.side.lock();
        if let Some(unmapped) = side.unmap_in_place() {
            return unmapped;
        }
        let Host::Mapped {
            address, writes, ..
        } = side.host
        else {
            return Unmapped::NotMapped;
        };
        side.host = Host::Away;
        let ended = match &mut side.copy {
            Some(copy) => device.upload(turn, contents).inspect(|command| {
                copy.is_current = true;
                copy.user = Some(command.clone());
            }),
            None => device.unmap(turn, address),
        };
        match ended {
            Ok(command) if !writes => {
                contents.set_reader(command);
                Unmapped::Ended
            }
            Ok(command) => {
                // If the transfer fails, every reader of the contents must fail.
                *contents = Contents::written_by(command.clone());
                match side.copy {
                    Some(_) => Unmapped::Uploaded(command),
                    None => Unmapped::Ended,
                }
            }
            Err(error) => {
                side.host = Host::Broken(error.clone());
                self.is_broken.store(true, Ordering::Release);
                Unmapped::Failed(error)
            }
        }
    }
}

impl<C: Command> HostCopy<C> {
    /// Enqueues a transfer of the contents to the copy, which is outdated.
    fn download<T: Transfers<Command = C>>(
        &mut self,
        turn: &Turn,
        device: &T,
        contents: &mut Contents<C>,
    ) -> Result<C, ClError> {
        let command = device.download(turn, contents, self.user.as_ref())?;
        contents.set_reader(command.clone());
        (self.is_current, self.user) = (true, Some(command.clone()));
        Ok(command)
    }
}

impl<C: Command> HostSide<C> {
    fn new(has_copy: bool) -> Self {
        let copy = HostCopy {
            is_current: false,
            user: None,
            is_wanted: false,
            ahead_of: None,
        };
        Self {
            host: Host::Away,
            copy: has_copy.then_some(copy),
        }
    }

    fn check(&self) -> Result<(), ClError> {
        match &self.host {
            Host::Broken(error) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// The device gets other contents.
    fn outdate_copy(&mut self) {
        if let Some(copy) = &mut self.copy {
            copy.is_current = false;
            if copy.ahead_of.take().is_some() {
                // The transfer was in vain.
                copy.is_wanted = false;
            }
        }
    }

    /// Maps, if nothing must be enqueued.
    fn map_in_place<T: Transfers<Command = C>>(
        &mut self,
        device: &T,
        access: Access,
        is_undefined: bool,
    ) -> Result<Option<Mapped<C>>, ClError> {
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
                    ready: ready.clone(),
                };
                return Ok(Some(mapped));
            }
            Host::Away => {}
        }
        let Some(copy) = &mut self.copy else {
            return Ok(None);
        };
        let has_bytes = if is_undefined {
            access.write
        } else {
            copy.is_current
        };
        if !has_bytes {
            return Ok(None);
        }
        let user = copy.user.clone();
        let unended = user.clone().filter(|user| !user.is_over());
        let (ready, downloaded) = match (copy.ahead_of.take(), user) {
            (Some(writer), Some(user)) => {
                let ready = unended.map_or(Ready::Now, Ready::Done);
                (ready, Some((user, Some(writer))))
            }
            // The host may read while an upload does, but not write.
            _ => {
                let unended = unended.filter(|_| access.write);
                (unended.map_or(Ready::Now, Ready::Ended), None)
            }
        };
        Ok(Some(self.begin(
            device.host_copy(),
            access,
            ready,
            downloaded,
        )))
    }

    /// Notes the first map.
    fn begin(
        &mut self,
        address: Address,
        access: Access,
        ready: Ready<C>,
        downloaded: Option<(C, Option<C>)>,
    ) -> Mapped<C> {
        self.host = Host::Mapped {
            address,
            writes: access.write,
            maps: 1,
            ready: ready.clone(),
        };
        Mapped {
            address,
            is_first: true,
            downloaded,
            ready,
        }
    }

    /// Ends a map, if nothing must be enqueued.
    fn unmap_in_place(&mut self) -> Option<Unmapped<C>> {
        match &mut self.host {
            Host::Mapped { maps, .. } if *maps > 1 => {
                *maps -= 1;
                Some(Unmapped::Ended)
            }
            Host::Mapped { writes: false, .. } if self.copy.is_some() => {
                self.host = Host::Away;
                Some(Unmapped::Ended)
            }
            Host::Mapped { .. } => None,
            Host::Away | Host::Broken(_) => Some(Unmapped::NotMapped),
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
