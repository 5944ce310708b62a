//! Counters and step times behind the `stats` property.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use super::{
    event::{Event, PATIENCE},
    timeline::{FrameTimeline, Timeline},
};

/// A step of a frame's processing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Host to device.
    Upload,
    /// Work on the device.
    Kernel,
    /// Device to host.
    Download,
}

impl Step {
    /// Every step, in order.
    pub const ALL: [Self; 3] = [Self::Upload, Self::Kernel, Self::Download];

    /// The name in `stats`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Kernel => "kernel",
            Self::Download => "download",
        }
    }
}

/// Times of one step, measured by the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepProfile {
    /// Commands measured.
    pub count: u64,
    /// Nanoseconds of the last one.
    pub last_ns: u64,
    /// Bytes of the last one.
    pub last_bytes: u64,
    /// Nanoseconds of all.
    pub total_ns: u64,
    /// Bytes of all.
    pub total_bytes: u64,
}

impl StepProfile {
    fn add(&mut self, ns: u64, bytes: u64) {
        self.count += 1;
        (self.last_ns, self.last_bytes) = (ns, bytes);
        self.total_ns += ns;
        self.total_bytes += bytes;
    }

    /// Mean duration, ns.
    pub fn mean_ns(&self) -> u64 {
        self.total_ns.checked_div(self.count).unwrap_or(0)
    }

    /// Rate of the last command, MB/s (10⁶ bytes); 0 while nothing was measured.
    pub fn last_rate(&self) -> f64 {
        rate(self.last_bytes, self.last_ns)
    }

    /// Mean rate, MB/s.
    pub fn mean_rate(&self) -> f64 {
        rate(self.total_bytes, self.total_ns)
    }
}

fn rate(bytes: u64, ns: u64) -> f64 {
    if ns == 0 {
        0.0
    } else {
        bytes as f64 * 1e3 / ns as f64
    }
}

/// How a frame reached the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It was in device memory already.
    ZeroCopy,
    /// The device reads the source's memory in place: wait for the kernels before the frame is sent.
    Wrapped,
    /// It was copied once.
    Copied,
}

/// Counts since the start of the element.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Frames received.
    pub frames: u64,
    /// Frames that were in device memory already.
    pub zero_copy: u64,
    /// Frames whose host memory the device reads in place.
    pub wrapped: u64,
    /// Frames copied into device memory.
    pub copied: u64,
    /// Copies of a plane into an image, on the device.
    pub image_copies: u64,
    /// Maps of this element's frame memory by the host.
    pub host_maps: u64,
    /// Frames and masks moved to the device.
    pub uploads: u64,
    /// Frames and masks moved to the host.
    pub downloads: u64,
    /// Bytes moved to the device.
    pub bytes_uploaded: u64,
    /// Bytes moved to the host, results included.
    pub bytes_downloaded: u64,
}

/// Maximum number of commands that wait for their times; further ones are dropped unmeasured.
const MAX_PENDING: usize = 64;

/// Commands of one step of one frame, executed one after the other.
#[derive(Debug)]
struct Pending {
    step: Step,
    first: Arc<Event>,
    last: Arc<Event>,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Profile {
    pending: VecDeque<Pending>,
    /// The element has stopped; its memory may still be mapped.
    closed: bool,
    steps: [StepProfile; 3],
    timeline: Timeline,
    /// The timeline of the last frame before the element stopped.
    last_frame: Option<FrameTimeline>,
}

/// Counters of one element, shared with the memory it allocates.
#[derive(Debug, Default)]
pub struct Meter {
    frames: AtomicU64,
    zero_copy: AtomicU64,
    wrapped: AtomicU64,
    copied: AtomicU64,
    image_copies: AtomicU64,
    host_maps: AtomicU64,
    uploads: AtomicU64,
    downloads: AtomicU64,
    bytes_uploaded: AtomicU64,
    bytes_downloaded: AtomicU64,
    profiling: AtomicBool,
    profile: Mutex<Profile>,
    /// The last command that the element submitted.
    last: Mutex<Option<Arc<Event>>>,
}

impl Meter {
    /// Counters at zero; step times are taken only if `profiling`.
    pub fn new(profiling: bool) -> Arc<Self> {
        let meter = Self::default();
        meter.profiling.store(profiling, Relaxed);
        Arc::new(meter)
    }

    /// Counts a frame.
    pub fn count_frame(&self, taken: Taken) {
        self.frames.fetch_add(1, Relaxed);
        match taken {
            Taken::ZeroCopy => &self.zero_copy,
            Taken::Wrapped => &self.wrapped,
            Taken::Copied => &self.copied,
        }
        .fetch_add(1, Relaxed);
        self.note_steps(Timeline::begin_frame);
    }

    /// Counts a plane copied into an image.
    pub fn count_image_copy(&self) {
        self.image_copies.fetch_add(1, Relaxed);
    }

    pub(super) fn count_map(&self) {
        self.host_maps.fetch_add(1, Relaxed);
    }

    /// Counts a frame or mask moved to the device by the commands from `first` to `last`.
    pub(super) fn uploaded(&self, first: &Arc<Event>, last: &Arc<Event>, bytes: usize) {
        self.uploads.fetch_add(1, Relaxed);
        self.bytes_uploaded.fetch_add(bytes as u64, Relaxed);
        self.note_steps(|timeline| timeline.uploaded([first, last], bytes));
        self.measure(Step::Upload, first, last, bytes);
    }

    /// Counts a frame or mask, which the command `writer` wrote, moved to the host.
    pub(super) fn downloaded(&self, event: &Arc<Event>, writer: Option<&Arc<Event>>, bytes: usize) {
        self.downloads.fetch_add(1, Relaxed);
        self.bytes_downloaded.fetch_add(bytes as u64, Relaxed);
        self.note_steps(|timeline| timeline.downloaded(event, writer, bytes));
        self.measure(Step::Download, event, event, bytes);
    }

    /// Counts a small result read back: its bytes, but no frame.
    pub(super) fn result(&self, event: &Arc<Event>, bytes: usize) {
        self.bytes_downloaded.fetch_add(bytes as u64, Relaxed);
        self.note_steps(|timeline| timeline.read(event, bytes));
        self.measure(Step::Download, event, event, bytes);
    }

    /// Counts the bytes of a small result that the host read in place.
    pub(super) fn result_in_place(&self, bytes: usize) {
        self.bytes_downloaded.fetch_add(bytes as u64, Relaxed);
    }

    /// Measures the kernels from `first` to `last`, which process `bytes` and wait for the commands
    /// `waited` of others.
    pub(super) fn computed(
        &self,
        [first, last]: [&Arc<Event>; 2],
        waited: &[Arc<Event>],
        bytes: usize,
    ) {
        self.note_steps(|timeline| timeline.computed([first, last], waited, bytes));
        self.measure(Step::Kernel, first, last, bytes);
    }

    /// Notes a command in the timeline, if profiling is on.
    fn note_steps(&self, note: impl FnOnce(&mut Timeline)) {
        if !self.profiling.load(Relaxed) {
            return;
        }
        let mut profile = self.profile();
        if !profile.closed {
            note(&mut profile.timeline);
        }
    }

    /// Takes the time from the start of `first` to the end of `last` once both are complete, if
    /// profiling is on; `bytes` is the amount processed.
    fn measure(&self, step: Step, first: &Arc<Event>, last: &Arc<Event>, bytes: usize) {
        if !self.profiling.load(Relaxed) {
            return;
        }
        let mut profile = self.profile();
        if profile.closed {
            return;
        }
        if profile.pending.len() == MAX_PENDING {
            profile.pending.pop_front();
        }
        profile.pending.push_back(Pending {
            step,
            first: first.clone(),
            last: last.clone(),
            bytes: bytes as u64,
        });
        drop(profile);
        self.harvest();
    }

    /// Takes the times of completed commands; the queue completes them in order.
    ///
    /// The driver is queried without the lock, so a driver that stalls does not block other
    /// threads.
    pub(super) fn harvest(&self) {
        loop {
            let Some(pending) = self.profile().pending.pop_front() else {
                return;
            };
            if !pending.last.has_ended() {
                let mut profile = self.profile();
                if !profile.closed {
                    profile.pending.push_front(pending);
                }
                return;
            }
            if let Some([start, end]) = pending.first.span_until_ns(&pending.last) {
                self.profile().steps[pending.step as usize].add(end - start, pending.bytes);
            }
        }
    }

    /// Stops taking times: the counters stay, but hold no OpenCL object.
    pub fn close(&self) {
        let last_frame = self.last_frame();
        let mut profile = self.profile();
        profile.closed = true;
        profile.last_frame = last_frame;
        // Release the events after the lock.
        let events = (
            std::mem::take(&mut profile.pending),
            std::mem::take(&mut profile.timeline),
        );
        drop(profile);
        drop(events);
        let last = self.last().take();
        drop(last);
    }

    /// Notes the last command that the element has submitted.
    pub(super) fn note_command(&self, event: Arc<Event>) {
        let before = self.last().replace(event);
        // Release the event after the lock.
        drop(before);
    }

    /// The last command that the element has submitted.
    pub(super) fn last_command(&self) -> Option<Arc<Event>> {
        self.last().clone()
    }

    fn last(&self) -> MutexGuard<'_, Option<Arc<Event>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Step times so far; `None` if profiling is off.
    pub fn steps(&self) -> Option<[(Step, StepProfile); 3]> {
        if !self.profiling.load(Relaxed) {
            return None;
        }
        self.harvest();
        let [upload, kernel, download] = self.profile().steps;
        Some([
            (Step::Upload, upload),
            (Step::Kernel, kernel),
            (Step::Download, download),
        ])
    }

    /// The steps of the last frame whose commands have ended; `None` if profiling is off.
    pub fn last_frame(&self) -> Option<FrameTimeline> {
        let frames = {
            let profile = self.profile();
            if profile.closed {
                return profile.last_frame.clone();
            }
            profile.timeline.newest_first()
        };
        // The driver is queried without the lock. A stop asks too, and must not wait long for a driver that stalls.
        let begun = Instant::now();
        let mut asked = frames.iter().take_while(|_| begun.elapsed() < PATIENCE);
        asked.find_map(FrameTimeline::of)
    }

    /// The counters.
    pub fn totals(&self) -> Totals {
        let get = |counter: &AtomicU64| counter.load(Relaxed);
        Totals {
            frames: get(&self.frames),
            zero_copy: get(&self.zero_copy),
            wrapped: get(&self.wrapped),
            copied: get(&self.copied),
            image_copies: get(&self.image_copies),
            host_maps: get(&self.host_maps),
            uploads: get(&self.uploads),
            downloads: get(&self.downloads),
            bytes_uploaded: get(&self.bytes_uploaded),
            bytes_downloaded: get(&self.bytes_downloaded),
        }
    }

    fn profile(&self) -> MutexGuard<'_, Profile> {
        self.profile.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
