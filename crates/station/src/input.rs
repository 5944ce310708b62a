//! An input of this PC: an edge at its line is a trigger of the machine, such as that of a light barrier which also triggers
//! the camera.

#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use gpiocdev::{Request, line::EdgeDetection};
use nix::time::{ClockId, clock_gettime};

use crate::{
    gpio::Gpio,
    machine::{Machine, keep_times},
};

/// Pause between two looks whether the input is to end, and longest time until it has ended.
const LOOK: Duration = Duration::from_millis(100);
/// Pause before a line that cannot be read is opened again.
const RETRY: Duration = Duration::from_millis(200);
/// Edges that the kernel keeps until they are read.
const KEPT: u32 = 1024;

/// What the table `[camera.machine.input]` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The line.
    pub gpio: Gpio,
    /// Which edges are triggers.
    pub edge: Edge,
    /// A level must stay so long to count; zero: each edge counts.
    pub debounce: Duration,
}

/// An edge of the line's voltage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// From low to high.
    Rising,
    /// From high to low.
    Falling,
}

/// An edge that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Came {
    /// When.
    pub at: Instant,
    /// Edges before it that are lost: too many came before they were read.
    pub missed: u32,
}

/// A line that is read.
pub trait Edges: Send {
    /// The next edge, `None` if none comes for so long.
    ///
    /// # Errors
    /// The line cannot be read; a sentence. The next call tries again from the start.
    fn next(&mut self, limit: Duration) -> Result<Option<Came>, String>;
}

/// A line of this PC. It belongs to the station from the first [`Edges::next`] on.
pub struct GpioInput {
    settings: Settings,
    request: Option<Request>,
    /// The kernel's number of the edge before.
    before: u32,
    /// Room for an edge.
    words: Vec<u64>,
}

impl GpioInput {
    /// The line, which is not opened yet.
    pub fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            request: None,
            before: 0,
            words: Vec::new(),
        }
    }

    fn open(&self) -> Result<Request, String> {
        self.settings.gpio.take(|wanted| {
            wanted
                .as_input()
                .with_kernel_event_buffer_size(KEPT)
                .with_edge_detection(match self.settings.edge {
                    Edge::Rising => EdgeDetection::RisingEdge,
                    Edge::Falling => EdgeDetection::FallingEdge,
                });
            if !self.settings.debounce.is_zero() {
                wanted.with_debounce_period(self.settings.debounce);
            }
        })
    }
}

impl Edges for GpioInput {
    fn next(&mut self, limit: Duration) -> Result<Option<Came>, String> {
        let request = match self.request.take() {
            Some(request) => request,
            None => {
                self.before = 0;
                self.open()?
            }
        };
        let failed = |why| format!("{}: {why}", self.settings.gpio.chip.display());
        let came = if request.wait_edge_event(limit).map_err(failed)? {
            // read_edge_event of gpiocdev 0.8.0 reads eight edges and returns the first.
            self.words.resize(request.edge_event_u64_size(), 0);
            let read = request.read_edge_events_into_slice(&mut self.words);
            let words = self.words.get(..read.map_err(failed)?).unwrap_or_default();
            let event = request.edge_event_from_slice(words).map_err(failed)?;
            let missed = event.line_seqno.wrapping_sub(self.before).saturating_sub(1);
            self.before = event.line_seqno;
            // The kernel's clock for edges, and that of Instant.
            let clock = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
            let now = Instant::now();
            let age =
                clock.map(|clock| clock.saturating_sub(Duration::from_nanos(event.timestamp_ns)));
            let at = now.checked_sub(age.unwrap_or_default());
            Some(Came {
                at: at.unwrap_or(now),
                missed,
            })
        } else {
            None
        };
        // After a failure the device may come back under the same name.
        self.request = Some(request);
        Ok(came)
    }
}

/// Gets a sentence for people.
pub type Alarm = Box<dyn Fn(String) + Send>;

/// An input with its thread, which gives the camera's machine each edge. Dropped, it gives its line back.
pub struct Input {
    settings: Settings,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Whether edges reach the station.
#[derive(Default)]
pub struct State {
    /// Why the line cannot be read.
    trouble: Mutex<Option<String>>,
}

impl Input {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(
        settings: &Settings,
        edges: Box<dyn Edges>,
        camera: &str,
        machine: &Arc<Machine>,
        alarm: Alarm,
    ) -> std::io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let state = Arc::new(State::default());
        machine.set_input(Some(state.clone()));
        let reader = Reader {
            is_over: is_over.clone(),
            state,
            edges,
            machine: machine.clone(),
            alarm,
            is_refusing: false,
        };
        let thread = std::thread::Builder::new().name(format!("{camera} input"));
        Ok(Self {
            settings: settings.clone(),
            is_over,
            thread: Some(thread.spawn(move || reader.run())?),
        })
    }

    /// What the file says of it.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // It ends at its next look, and a panic in it was told already.
            let _ = thread.join();
        }
    }
}

impl State {
    /// Whether edges reach the station.
    ///
    /// # Errors
    /// The line cannot be read; a sentence.
    pub fn is_in_force(&self) -> Result<(), String> {
        self.trouble().clone().map_or(Ok(()), Err)
    }

    fn trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the thread owns.
struct Reader {
    is_over: Arc<AtomicBool>,
    state: Arc<State>,
    edges: Box<dyn Edges>,
    machine: Arc<Machine>,
    alarm: Alarm,
    /// The edge before had no frame of its own, and people know it.
    is_refusing: bool,
}

impl Reader {
    fn run(mut self) {
        keep_times();
        while !self.is_over.load(Relaxed) {
            match self.edges.next(LOOK) {
                Ok(came) => {
                    if self.state.trouble().take().is_some() {
                        (self.alarm)("the input can be read again and is in force".to_owned());
                    }
                    if let Some(came) = came {
                        self.take(came);
                    }
                }
                Err(why) => {
                    let is_new = self.state.trouble().replace(why.clone()).is_none();
                    if is_new {
                        (self.alarm)(format!(
                            "the input cannot be read: {why}; pieces get no outcome until it can be read"
                        ));
                    }
                    std::thread::sleep(RETRY);
                }
            }
        }
    }

    fn take(&mut self, came: Came) {
        let refused = self.machine.edge(came);
        let is_refused = refused.is_err();
        if let Err(why) = refused
            && !self.is_refusing
        {
            (self.alarm)(format!(
                "an edge at the input counts as lost: {why}; frame-within-ms must be shorter than the time between two edges"
            ));
        }
        self.is_refusing = is_refused;
    }
}
