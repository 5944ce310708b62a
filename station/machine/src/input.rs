//! An input of this PC: an edge at its line is a trigger of the machine, such as that of a light barrier which also triggers
//! the camera.

#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use gpiocdev::{Request, line::EdgeDetection};
use nix::time::{ClockId, clock_gettime};
use plan::{Edge, InputSettings};

use crate::{
    answer::{Alarm, InputEdge, InputState, Machine, NotReady, keep_times},
    gpio,
    worker::Worker,
};

/// Pause between two looks whether the input is to end, and longest time until it has ended.
const LOOK: Duration = Duration::from_millis(100);
/// Pause before a line that cannot be read is opened again.
const RETRY: Duration = Duration::from_millis(200);
/// Edges that the kernel keeps until they are read.
const KEPT: u32 = 1024;
/// Least time between two alarms for edges that count as lost.
const TELL: Duration = Duration::from_secs(60);
/// The time of an edge is known so exactly, unless the PC is busy all the time.
const EXACT: Duration = Duration::from_micros(50);

/// A line that is read.
pub trait Edges: Send {
    /// Takes the line. Edges from now on are seen.
    ///
    /// # Errors
    /// The line cannot be read; a sentence.
    fn open(&mut self) -> Result<(), String>;

    /// The next edge, `None` if none comes for so long. The line is open.
    ///
    /// # Errors
    /// The line cannot be read any more; a sentence.
    fn next(&mut self, limit: Duration) -> Result<Option<InputEdge>, String>;
}

/// A line of this PC.
pub struct GpioInput {
    settings: InputSettings,
    request: Option<Request>,
    /// The kernel's number of the edge before.
    before: u32,
    /// Room for an edge.
    words: Vec<u64>,
}

impl GpioInput {
    /// The line, which is not opened yet.
    pub fn new(settings: &InputSettings) -> Self {
        Self {
            settings: settings.clone(),
            request: None,
            before: 0,
            words: Vec::new(),
        }
    }
}

impl Edges for GpioInput {
    fn open(&mut self) -> Result<(), String> {
        // One that fails must be given back first.
        self.request = None;
        self.before = 0;
        let request = gpio::take(&self.settings.gpio, |wanted| {
            wanted
                .as_input()
                .with_kernel_event_buffer_size(KEPT)
                .with_edge_detection(match self.settings.edge {
                    Edge::Rising => EdgeDetection::RisingEdge,
                    Edge::Falling => EdgeDetection::FallingEdge,
                });
        });
        self.request = Some(request?);
        Ok(())
    }

    fn next(&mut self, limit: Duration) -> Result<Option<InputEdge>, String> {
        let chip = self.settings.gpio.chip.display();
        let failed = |why| format!("{chip}: {why}");
        let request = self.request.as_ref();
        let request = request.ok_or_else(|| format!("{chip}: the line is not open"))?;
        if !request.wait_edge_event(limit).map_err(failed)? {
            return Ok(None);
        }
        // read_edge_event of gpiocdev 0.8.0 reads eight edges and returns the first.
        self.words.resize(request.edge_event_u64_size(), 0);
        let read = request.read_edge_events_into_slice(&mut self.words);
        let words = self.words.get(..read.map_err(failed)?).unwrap_or_default();
        let event = request.edge_event_from_slice(words).map_err(failed)?;
        let missed = event.line_seqno.wrapping_sub(self.before).saturating_sub(1);
        self.before = event.line_seqno;
        let at = instant_of(Duration::from_nanos(event.timestamp_ns));
        Ok(Some(InputEdge { at, missed }))
    }
}

/// A time of the kernel's monotonic clock, which is that of `Instant`. If this thread is held up between the two clocks, the
/// time is too early, never too late.
fn instant_of(time: Duration) -> Instant {
    let mut now = Instant::now();
    let mut clock = time;
    for _ in 0..8 {
        now = Instant::now();
        // It cannot fail.
        clock = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(time, Duration::from);
        if now.elapsed() < EXACT {
            break;
        }
    }
    let age = clock.saturating_sub(time);
    now.checked_sub(age).unwrap_or(now)
}

/// An input with its thread, which gives the camera's machine each edge. Dropped, it gives its line back.
pub struct Input {
    settings: InputSettings,
    is_over: Arc<AtomicBool>,
    _thread: Worker,
}

impl Input {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(
        settings: &InputSettings,
        edges: Box<dyn Edges>,
        camera: &str,
        machine: &Arc<Machine>,
        alarm: Alarm,
    ) -> std::io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let state = Arc::new(InputState::default());
        let reader = Reader {
            is_over: is_over.clone(),
            state: state.clone(),
            edges,
            machine: machine.clone(),
            alarm,
            refused: 0,
            told: None,
        };
        let thread = Worker::start(format!("{camera} input"), move || reader.run())?;
        machine.set_input(Some(state));
        Ok(Self {
            settings: settings.clone(),
            is_over,
            _thread: thread,
        })
    }

    /// What the file says of it.
    pub fn settings(&self) -> &InputSettings {
        &self.settings
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        // The thread ends at its next look.
        self.is_over.store(true, Relaxed);
    }
}

/// What the thread owns.
struct Reader {
    is_over: Arc<AtomicBool>,
    state: Arc<InputState>,
    edges: Box<dyn Edges>,
    machine: Arc<Machine>,
    alarm: Alarm,
    /// Edges that count as lost, since the alarm before.
    refused: u64,
    /// When that alarm was raised.
    told: Option<Instant>,
}

impl Reader {
    fn run(mut self) {
        keep_times();
        while !self.is_over.load(Relaxed) {
            if let Err(why) = self.read() {
                let is_new = self.state.set_trouble(Some(why.clone())).is_none();
                if is_new {
                    (self.alarm)(format!(
                        "the input cannot be read: {why}; pieces get no outcome until it can be read"
                    ));
                }
                std::thread::sleep(RETRY);
            }
        }
    }

    /// Opens the line and reads it until the end.
    fn read(&mut self) -> Result<(), String> {
        self.edges.open()?;
        self.machine.miss_edges();
        if self.state.set_trouble(None).is_some() {
            (self.alarm)("the input can be read again and is in force".to_owned());
        }
        let read = loop {
            match self.edges.next(LOOK) {
                _ if self.is_over.load(Relaxed) => break Ok(()),
                Ok(Some(came)) => self.take(came),
                Ok(None) => {}
                Err(why) => break Err(why),
            }
        };
        self.machine.miss_edges();
        read
    }

    fn take(&mut self, came: InputEdge) {
        let Err(why) = self.machine.edge(came) else {
            return;
        };
        self.refused += 1 + u64::from(came.missed);
        if self.told.is_some_and(|told| told.elapsed() < TELL) {
            return;
        }
        self.told = Some(Instant::now());
        let count = std::mem::take(&mut self.refused);
        let advice = match why {
            NotReady::Waiting => {
                "frame-within-ms must be shorter than the time between two edges, and a contact must not bounce"
            }
            NotReady::Overtaken => "this PC is too slow, or the camera runs freely",
            _ => "look for what keeps frames away",
        };
        (self.alarm)(format!(
            "edges at the input that count as lost: {count}; the newest because {why}; {advice}"
        ));
    }
}
