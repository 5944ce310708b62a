//! What the cameras of a station share: the numbers of their frames, and the thread that watches the deadlines.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use super::{Answer, Machine, deadlines::Deadlines};

/// What is served at an address.
#[derive(Debug, Clone, Copy)]
pub enum Server {
    /// The page, the metrics and the interface of programs.
    Page,
    /// Registers for PLCs.
    Modbus,
}

/// Gets each answer with the camera's name, in the thread that gives the outcome: it must neither wait nor call the
/// [`Machine`].
pub type Sink = Box<dyn Fn(&str, &Answer) + Send + Sync>;

/// The line of a station.
pub struct Line {
    epoch: u32,
    newest: AtomicU64,
    deadlines: Deadlines,
    sink: OnceLock<Sink>,
    /// Cameras begin without `enable`.
    is_commanded: AtomicBool,
    /// Whether an address cannot be used, by [`Server`].
    unreachable: [AtomicBool; 2],
}

impl Line {
    /// A line whose numbers begin at 1, with an epoch of its own.
    ///
    /// # Errors
    /// The system has no thread left, or no random numbers.
    pub fn new() -> std::io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            epoch: epoch()?,
            newest: AtomicU64::new(0),
            deadlines: Deadlines::start()?,
            sink: OnceLock::new(),
            is_commanded: AtomicBool::new(false),
            unreachable: Default::default(),
        }))
    }

    /// Where all answers go. Only the first call counts.
    pub fn set_sink(&self, sink: Sink) {
        // There is one protocol for the machine.
        let _ = self.sink.set(sink);
    }

    /// A PLC says which cameras are enabled: no output is set for a camera before.
    pub fn wait_for_commands(&self) {
        self.is_commanded.store(true, Relaxed);
    }

    pub(super) fn is_commanded(&self) -> bool {
        self.is_commanded.load(Relaxed)
    }

    /// Whether what is served cannot be reached, because its address cannot be used.
    pub fn set_unreachable(&self, what: Server, is_unreachable: bool) {
        self.unreachable[what as usize].store(is_unreachable, Relaxed);
    }

    /// See [`Self::set_unreachable`].
    pub fn is_unreachable(&self, what: Server) -> bool {
        self.unreachable[what as usize].load(Relaxed)
    }

    /// Tells this run of the station from all others; never 0.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Counts on every 100 ms, as long as deadlines are watched.
    pub fn heartbeat(&self) -> u16 {
        self.deadlines.heartbeat()
    }

    pub(super) fn watch(&self, machine: &Arc<Machine>) {
        self.deadlines.watch(machine);
    }

    /// The newest number; 0 before the first one.
    pub fn newest(&self) -> u64 {
        self.newest.load(Relaxed)
    }

    /// The next number.
    pub(super) fn next(&self) -> u64 {
        self.newest.fetch_add(1, Relaxed) + 1
    }

    /// An outcome is due at this time.
    pub(super) fn expect(&self, due: Instant) {
        self.deadlines.expect(due);
    }

    pub(super) fn tell(&self, camera: &str, answer: &Answer) {
        if let Some(sink) = self.sink.get() {
            sink(camera, answer);
        }
    }
}

/// A random number: the clock may be wrong, and stations may start twice within its resolution.
fn epoch() -> std::io::Result<u32> {
    let random = ring::rand::SystemRandom::new();
    let bytes = ring::rand::generate::<[u8; 4]>(&random);
    let bytes = bytes.map_err(|_| std::io::Error::other("the system has no random numbers"))?;
    Ok(u32::from_be_bytes(bytes.expose()).max(1))
}
