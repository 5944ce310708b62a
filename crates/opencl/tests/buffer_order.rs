//! The order of a device's commands ([`order`]) with a simulated device, in many orders of threads.
//!
//! Threads map a buffer, enqueue kernels that read and write it, and drop it. Each queue is a thread that executes its
//! commands one after the other. The memories of the simulated device notice two accesses at the same time of which one
//! writes, an access after the end, and bytes that are not those of the last writer before the reader. The scheduler notices
//! threads that wait for each other.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    dead_code,
    reason = "a test fails by panicking, and uses a part of the file"
)]

#[path = "../src/order.rs"]
mod order;

/// The locks of the scheduler instead of the system's.
mod sync {
    #[derive(Debug)]
    pub struct Turns<T>(shuttle::sync::Mutex<T>);
    pub type TurnGuard<'a, T> = shuttle::sync::MutexGuard<'a, T>;

    impl<T> Turns<T> {
        pub fn new(value: T, _looks: bool) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> TurnGuard<'_, T> {
            self.0.lock().unwrap()
        }

        pub fn is_crowded(&self) -> bool {
            false
        }
    }

    #[derive(Debug)]
    pub enum Rank {
        Host,
    }

    #[derive(Debug)]
    pub struct Lock<T>(shuttle::sync::Mutex<T>);

    impl<T> Lock<T> {
        pub fn new(_: Rank, value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> TurnGuard<'_, T> {
            self.0.lock().unwrap()
        }

        pub fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().unwrap()
        }
    }
}

use std::collections::VecDeque;

use clinspect_core::ClError;
use order::{Access, Address, Command, Contents, Order, Ordered, Owned, Transfers, Turn};
use shuttle::{
    sync::{Arc, Condvar, Mutex},
    thread,
};

const READ: Access = Access {
    read: true,
    write: false,
};
const WRITE: Access = Access {
    read: false,
    write: true,
};
/// Queue of kernels and of transfers to the host.
const KERNELS: usize = 0;
/// Queue of another element's kernels.
const OTHERS: usize = 1;
/// Queue of transfers to the device.
const UPLOADS: usize = 2;
const ITERATIONS: usize = 2_000;

/// One memory, with a number for its bytes.
#[derive(Debug, Default)]
struct Memory(Mutex<Bytes>);

#[derive(Debug, Default)]
struct Bytes {
    value: u64,
    readers: usize,
    is_written: bool,
    is_freed: bool,
}

impl Memory {
    fn begin_read(&self) -> u64 {
        let mut bytes = self.0.lock().unwrap();
        assert!(!bytes.is_written, "memory is read while it is written");
        assert!(!bytes.is_freed, "memory is read after its end");
        bytes.readers += 1;
        bytes.value
    }

    fn end_read(&self) {
        self.0.lock().unwrap().readers -= 1;
    }

    fn read(&self) -> u64 {
        let value = self.begin_read();
        thread::yield_now();
        self.end_read();
        value
    }

    fn begin_write(&self) {
        let mut bytes = self.0.lock().unwrap();
        assert!(!bytes.is_freed, "memory is written after its end");
        assert!(
            !bytes.is_written && bytes.readers == 0,
            "memory is written while it is used"
        );
        bytes.is_written = true;
    }

    fn end_write(&self, value: u64) {
        let mut bytes = self.0.lock().unwrap();
        (bytes.is_written, bytes.value) = (false, value);
    }

    fn write(&self, value: u64) {
        self.begin_write();
        thread::yield_now();
        self.end_write(value);
    }

    fn free(&self) {
        let mut bytes = self.0.lock().unwrap();
        assert!(
            !bytes.is_written && bytes.readers == 0,
            "memory in use is freed"
        );
        bytes.is_freed = true;
    }
}

/// A command, which others wait for.
#[derive(Clone)]
struct Cmd(Arc<Inner>);

struct Inner {
    queue: usize,
    waits: Vec<Cmd>,
    work: Box<dyn Fn() + Send + Sync>,
    has_ended: Mutex<bool>,
    ended: Condvar,
}

impl Cmd {
    fn wait(&self) {
        let mut has_ended = self.0.has_ended.lock().unwrap();
        while !*has_ended {
            has_ended = self.0.ended.wait(has_ended).unwrap();
        }
    }
}

impl Command for Cmd {
    fn shares_queue(&self, other: &Self) -> bool {
        self.0.queue == other.0.queue
    }

    fn is_over(&self) -> bool {
        *self.0.has_ended.lock().unwrap()
    }

    fn failure(&self) -> Option<ClError> {
        None
    }
}

/// A queue: its commands, and whether no more come.
#[derive(Default)]
struct Queue {
    commands: Mutex<(VecDeque<Cmd>, bool)>,
    more: Condvar,
}

impl Queue {
    fn execute(&self) {
        loop {
            let mut commands = self.commands.lock().unwrap();
            let command = loop {
                if let Some(command) = commands.0.pop_front() {
                    break command;
                }
                if commands.1 {
                    return;
                }
                commands = self.more.wait(commands).unwrap();
            };
            drop(commands);
            command.0.waits.iter().for_each(Cmd::wait);
            (command.0.work)();
            *command.0.has_ended.lock().unwrap() = true;
            command.0.ended.notify_all();
        }
    }

    fn close(&self) {
        self.commands.lock().unwrap().1 = true;
        self.more.notify_all();
    }
}

/// A device, a buffer in its memory, and the host's copy.
struct Buffer {
    order: Order,
    state: Owned<Cmd>,
    queues: Arc<[Queue; 3]>,
    device: Arc<Memory>,
    /// `None`: host and device share the memory.
    copy: Option<Arc<Memory>>,
    /// The value of the last writer in the order.
    last_written: Mutex<u64>,
}

impl Buffer {
    fn new(has_copy: bool) -> Self {
        let order = Order::new(true, false);
        Self {
            state: order.own(has_copy),
            order,
            queues: Arc::default(),
            device: Arc::default(),
            copy: has_copy.then(Arc::default),
            last_written: Mutex::new(0),
        }
    }

    fn enqueue(
        &self,
        queue: usize,
        waits: Vec<Cmd>,
        work: impl Fn() + Send + Sync + 'static,
    ) -> Cmd {
        let command = Cmd(Arc::new(Inner {
            queue,
            waits,
            work: Box::new(work),
            has_ended: Mutex::new(false),
            ended: Condvar::new(),
        }));
        self.queues[queue]
            .commands
            .lock()
            .unwrap()
            .0
            .push_back(command.clone());
        self.queues[queue].more.notify_all();
        command
    }

    /// The host's memory.
    fn host(&self) -> &Arc<Memory> {
        self.copy.as_ref().unwrap_or(&self.device)
    }

    /// A kernel that reads, as a submission enqueues it.
    fn kernel_reads(&self, queue: usize) {
        let mut ordered = self.order.lock();
        let Ordered { key, .. } = &mut *ordered;
        // No element reads a buffer that went back to its pool.
        let Some(writer) = self.state.contents(key).unwrap().writer() else {
            return;
        };
        let waits = vec![writer.clone()];
        let (device, expected) = (self.device.clone(), *self.last_written.lock().unwrap());
        let command = self.enqueue(queue, waits, move || {
            assert_eq!(device.read(), expected, "a kernel read other bytes");
        });
        self.state.set_reader(key, command);
    }

    /// A kernel that writes.
    fn kernel_writes(&self, queue: usize, value: u64) {
        let mut ordered = self.order.lock();
        let Ordered { key, .. } = &mut *ordered;
        let waits = elsewhere(self.state.contents(key).unwrap(), queue);
        let device = self.device.clone();
        let command = self.enqueue(queue, waits, move || device.write(value));
        self.state.set_writer(key, command);
        *self.last_written.lock().unwrap() = value;
        order::download_ahead(&mut ordered, &self.state, self).unwrap();
    }

    fn host_reads(&self) -> u64 {
        order::map(&self.order, &self.state, self, READ).unwrap();
        let value = self.host().read();
        order::unmap(&self.order, &self.state, self);
        value
    }

    fn host_writes(&self, value: u64) {
        order::map(&self.order, &self.state, self, WRITE).unwrap();
        self.host().write(value);
        order::unmap(&self.order, &self.state, self);
    }

    /// The buffer goes back to its pool.
    fn recycle(&self) {
        self.state.recycle();
    }
}

fn elsewhere(contents: &Contents<Cmd>, queue: usize) -> Vec<Cmd> {
    let uses = contents.uses().filter(|command| command.0.queue != queue);
    uses.cloned().collect()
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let user = self.state.user_of_copy();
        if let Some(copy) = self.copy.clone() {
            // As the driver does after the command that ends the use.
            let queue = user.map_or(KERNELS, |user| user.0.queue);
            self.enqueue(queue, Vec::new(), move || copy.free());
        }
        self.queues.iter().for_each(Queue::close);
    }
}

impl Transfers for Buffer {
    type Command = Cmd;

    fn map(
        &self,
        _: &Turn,
        access: Access,
        contents: &Contents<Cmd>,
    ) -> Result<(Address, Cmd), ClError> {
        let mut waits: Vec<Cmd> = contents.writer().cloned().into_iter().collect();
        if access.write {
            waits.extend(elsewhere(contents, KERNELS));
        }
        let address = Address(std::ptr::null_mut());
        Ok((address, self.enqueue(KERNELS, waits, || ())))
    }

    fn unmap(&self, _: &Turn, _: Address) -> Result<Cmd, ClError> {
        Ok(self.enqueue(KERNELS, Vec::new(), || ()))
    }

    fn host_copy(&self) -> Address {
        Address(std::ptr::null_mut())
    }

    fn download(
        &self,
        _: &Turn,
        contents: &Contents<Cmd>,
        user: Option<&Cmd>,
    ) -> Result<Cmd, ClError> {
        let waits = contents.writer().into_iter().chain(user).cloned().collect();
        let (from, to) = (self.device.clone(), self.host().clone());
        let expected = *self.last_written.lock().unwrap();
        Ok(self.enqueue(KERNELS, waits, move || {
            to.begin_write();
            let value = from.read();
            assert_eq!(value, expected, "other bytes were downloaded");
            to.end_write(value);
        }))
    }

    fn flush_downloads(&self, _: &Turn) -> Result<(), ClError> {
        Ok(())
    }

    fn upload(&self, _: &Turn, contents: &Contents<Cmd>) -> Result<Cmd, ClError> {
        let (from, to) = (self.host().clone(), self.device.clone());
        *self.last_written.lock().unwrap() = from.read();
        Ok(
            self.enqueue(UPLOADS, elsewhere(contents, UPLOADS), move || {
                let value = from.begin_read();
                to.write(value);
                from.end_read();
            }),
        )
    }

    fn wait(&self, command: &Cmd) -> Result<(), ClError> {
        command.wait();
        Ok(())
    }

    fn wait_for_end(&self, command: &Cmd) -> Result<(), ClError> {
        command.wait();
        Ok(())
    }
}

type Work = fn(&Buffer);

/// Runs each work in a thread of its own on one buffer, which the last thread drops.
fn all_at_once(has_copy: bool, threads: &'static [Work]) {
    shuttle::check_random(
        move || {
            let buffer = Arc::new(Buffer::new(has_copy));
            let queues = buffer.queues.clone();
            let executing: Vec<_> = (0..queues.len())
                .map(|number| {
                    let queues = queues.clone();
                    thread::spawn(move || queues[number].execute())
                })
                .collect();
            let working: Vec<_> = threads
                .iter()
                .map(|work| {
                    let buffer = buffer.clone();
                    thread::spawn(move || work(&buffer))
                })
                .collect();
            drop(buffer);
            for thread in working.into_iter().chain(executing) {
                thread.join().unwrap();
            }
        },
        ITERATIONS,
    );
}

#[test]
fn a_copy_of_the_host_is_right_whoever_uses_the_buffer() {
    all_at_once(
        true,
        &[
            |buffer| {
                for _ in 0..2 {
                    buffer.host_reads();
                }
            },
            |buffer| (0..2).for_each(|_| buffer.kernel_reads(KERNELS)),
            |buffer| (1..3).for_each(|value| buffer.kernel_writes(OTHERS, value)),
        ],
    );
}

#[test]
fn what_the_host_writes_reaches_the_device_behind_its_readers() {
    all_at_once(
        true,
        &[
            |buffer| {
                for value in 11..13 {
                    buffer.host_writes(value);
                    assert_eq!(buffer.host_reads(), value);
                    buffer.recycle();
                }
                assert_eq!(buffer.host_reads(), 12);
            },
            |buffer| (0..2).for_each(|_| buffer.kernel_reads(KERNELS)),
            |buffer| (0..2).for_each(|_| buffer.kernel_reads(OTHERS)),
        ],
    );
}

#[test]
fn what_a_kernel_writes_reaches_the_host() {
    all_at_once(
        true,
        &[
            |buffer| {
                buffer.host_writes(11);
                // The host asks for the first one, for the next one not; that one comes ahead, and the last one does not.
                for (value, is_read) in [(1, true), (2, false), (3, false), (4, true)] {
                    buffer.kernel_writes(OTHERS, value);
                    if is_read {
                        assert_eq!(buffer.host_reads(), value);
                    }
                }
            },
            |buffer| (0..2).for_each(|_| buffer.kernel_reads(KERNELS)),
        ],
    );
}

#[test]
fn readers_of_shared_memory_wait_for_its_writer_alone() {
    all_at_once(
        false,
        &[
            |buffer| {
                for value in 1..3 {
                    buffer.kernel_writes(OTHERS, value);
                    assert_eq!(buffer.host_reads(), value);
                }
            },
            |buffer| (0..2).for_each(|_| buffer.kernel_reads(KERNELS)),
            |buffer| buffer.kernel_reads(OTHERS),
        ],
    );
}
