//! Counters, step times and timelines of frames, for the `stats` property.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use super::{
    queue::{Event, PATIENCE},
    sync::Lock,
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
pub enum ImportPath {
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

/// Maximum number of commands that wait for their times; beyond that the oldest is dropped unmeasured.
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
    profile: Lock<Profile>,
    /// The last command that the element submitted.
    last: Lock<Option<Arc<Event>>>,
}

impl Meter {
    /// Counters at zero; step times are taken only if `profiling`.
    pub fn new(profiling: bool) -> Arc<Self> {
        let meter = Self::default();
        meter.profiling.store(profiling, Relaxed);
        Arc::new(meter)
    }

    /// Counts a frame.
    pub fn count_frame(&self, taken: ImportPath) {
        self.frames.fetch_add(1, Relaxed);
        match taken {
            ImportPath::ZeroCopy => &self.zero_copy,
            ImportPath::Wrapped => &self.wrapped,
            ImportPath::Copied => &self.copied,
        }
        .fetch_add(1, Relaxed);
        self.update_timeline(Timeline::begin_frame);
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
        self.update_timeline(|timeline| timeline.uploaded([first, last], bytes));
        self.measure(Step::Upload, first, last, bytes);
    }

    /// Counts a frame or mask, which the command `writer` wrote, moved to the host.
    pub(super) fn downloaded(&self, event: &Arc<Event>, writer: Option<&Arc<Event>>, bytes: usize) {
        self.downloads.fetch_add(1, Relaxed);
        self.bytes_downloaded.fetch_add(bytes as u64, Relaxed);
        self.update_timeline(|timeline| timeline.downloaded(event, writer, bytes));
        self.measure(Step::Download, event, event, bytes);
    }

    /// Counts a small result read back: its bytes, but no frame.
    pub(super) fn result(&self, event: &Arc<Event>, bytes: usize) {
        self.bytes_downloaded.fetch_add(bytes as u64, Relaxed);
        self.update_timeline(|timeline| timeline.read(event, bytes));
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
        self.update_timeline(|timeline| timeline.computed([first, last], waited, bytes));
        self.measure(Step::Kernel, first, last, bytes);
    }

    /// Updates the timeline, if profiling is on.
    fn update_timeline(&self, update: impl FnOnce(&mut Timeline)) {
        if !self.profiling.load(Relaxed) {
            return;
        }
        let mut profile = self.profile.lock();
        if !profile.closed {
            update(&mut profile.timeline);
        }
    }

    /// Takes the time from the start of `first` to the end of `last` once both are complete, if
    /// profiling is on; `bytes` is the amount processed.
    fn measure(&self, step: Step, first: &Arc<Event>, last: &Arc<Event>, bytes: usize) {
        if !self.profiling.load(Relaxed) {
            return;
        }
        let mut profile = self.profile.lock();
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
            let Some(pending) = self.profile.lock().pending.pop_front() else {
                return;
            };
            if !pending.last.has_ended() {
                let mut profile = self.profile.lock();
                if !profile.closed {
                    profile.pending.push_front(pending);
                }
                return;
            }
            if let Some([start, end]) = pending.first.span_until_ns(&pending.last) {
                self.profile.lock().steps[pending.step as usize].add(end - start, pending.bytes);
            }
        }
    }

    /// Stops taking times: the counters stay, but hold no OpenCL object.
    pub fn close(&self) {
        let last_frame = self.last_frame();
        let mut profile = self.profile.lock();
        profile.closed = true;
        profile.last_frame = last_frame;
        // Release the events after the lock.
        let events = (
            std::mem::take(&mut profile.pending),
            std::mem::take(&mut profile.timeline),
        );
        drop(profile);
        drop(events);
        let last = self.last.lock().take();
        drop(last);
    }

    /// Sets the last command that the element has submitted.
    pub(super) fn set_last_command(&self, event: Arc<Event>) {
        let before = self.last.lock().replace(event);
        // Release the event after the lock.
        drop(before);
    }

    /// The last command that the element has submitted.
    pub(super) fn last_command(&self) -> Option<Arc<Event>> {
        self.last.lock().clone()
    }

    /// Step times so far; `None` if profiling is off.
    pub fn steps(&self) -> Option<[(Step, StepProfile); 3]> {
        if !self.profiling.load(Relaxed) {
            return None;
        }
        self.harvest();
        let [upload, kernel, download] = self.profile.lock().steps;
        Some([
            (Step::Upload, upload),
            (Step::Kernel, kernel),
            (Step::Download, download),
        ])
    }

    /// The steps of the last frame whose commands have ended; `None` if profiling is off.
    pub fn last_frame(&self) -> Option<FrameTimeline> {
        let frames = {
            let profile = self.profile.lock();
            if profile.closed {
                return profile.last_frame.clone();
            }
            profile.timeline.newest_first()
        };
        // The driver is queried without the lock. The stop of an element calls this too, and must not wait long for a
        // driver that stalls.
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
}

/// Frames whose commands are kept: a `queue` after the element may hold as many frames before one is read.
const FRAMES: usize = 16;
/// Commands of a frame that are kept.
const STEPS: usize = 16;
/// Uploads that are kept until a kernel reads the frame.
const UPLOADS: usize = 64;

/// When a step of a frame was executed, in nanoseconds from the start of the frame's first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepSpan {
    /// The step.
    pub step: Step,
    /// Its start.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// From the end of the steps before it to its start; 0 if the steps overlap.
    pub gap_ns: u64,
    /// Bytes processed or moved.
    pub bytes: u64,
}

/// The steps of one frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrameTimeline {
    /// The steps, by their start.
    pub steps: Vec<StepSpan>,
    /// From the start of the first step to the end of the last one, ns.
    pub total_ns: u64,
}

impl FrameTimeline {
    /// The timeline of a frame; `None` while a command runs, and if the driver knows no times.
    fn of(frame: &Frame) -> Option<Self> {
        let spans = frame.iter().map(|command| {
            if !command.last.has_ended() {
                return None;
            }
            let span = command.first.span_until_ns(&command.last)?;
            Some((command.step, span, command.bytes))
        });
        Self::from_spans(spans.collect::<Option<Vec<_>>>()?)
    }

    /// The timeline of steps with their start and end on the device's clock.
    fn from_spans(mut spans: Vec<(Step, [u64; 2], u64)>) -> Option<Self> {
        spans.sort_by_key(|(_, [start, _], _)| *start);
        let (_, [origin, _], _) = *spans.first()?;
        let mut total_ns = 0;
        let steps = spans
            .into_iter()
            .map(|(step, span, bytes)| {
                let [start_ns, end_ns] = span.map(|time| time - origin);
                let gap_ns = start_ns.saturating_sub(total_ns);
                total_ns = total_ns.max(end_ns);
                StepSpan {
                    step,
                    start_ns,
                    end_ns,
                    gap_ns,
                    bytes,
                }
            })
            .collect();
        Some(Self { steps, total_ns })
    }
}

/// The commands of one step, in one queue.
#[derive(Debug, Clone)]
struct Command {
    step: Step,
    first: Arc<Event>,
    last: Arc<Event>,
    bytes: u64,
}

/// The commands of one frame.
type Frame = Vec<Command>;

/// The commands of the last frames.
///
/// Uploads and downloads may be made by other threads, before or after this element's work on the
/// frame. An upload belongs to the frame whose kernels wait for it, a download to the frame
/// whose kernels wrote the memory.
#[derive(Debug, Default)]
struct Timeline {
    /// The first and the last command, and the bytes.
    uploads: VecDeque<([Arc<Event>; 2], usize)>,
    frames: VecDeque<Frame>,
}

impl Timeline {
    /// The commands that follow belong to the next frame.
    pub fn begin_frame(&mut self) {
        if self.frames.len() == FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back(Frame::new());
    }

    /// Adds an upload by the commands from `first` to `last`; its frame is not known yet.
    pub fn uploaded(&mut self, [first, last]: [&Arc<Event>; 2], bytes: usize) {
        if self.uploads.len() == UPLOADS {
            self.uploads.pop_front();
        }
        self.uploads
            .push_back(([first.clone(), last.clone()], bytes));
    }

    /// Adds kernels to the newest frame, and the uploads that they waited for.
    pub fn computed(
        &mut self,
        [first, last]: [&Arc<Event>; 2],
        waited: &[Arc<Event>],
        bytes: usize,
    ) {
        let mut uploads = Vec::new();
        self.uploads.retain(|upload| {
            let ([first, last], _) = upload;
            // Kernels wait for the part that they read.
            let is_read = waited.iter().any(|event| event.is_between(first, last));
            if is_read {
                uploads.push(upload.clone());
            }
            !is_read
        });
        let Some(frame) = self.frames.back_mut() else {
            return;
        };
        for ([first, last], bytes) in uploads {
            add(frame, Step::Upload, [&first, &last], bytes);
        }
        add(frame, Step::Kernel, [first, last], bytes);
    }

    /// Adds the read of a result to the newest frame.
    pub fn read(&mut self, event: &Arc<Event>, bytes: usize) {
        if let Some(frame) = self.frames.back_mut() {
            add(frame, Step::Download, [event, event], bytes);
        }
    }

    /// Adds a move of memory to the host to the frame whose kernels include `writer`, which wrote the memory.
    pub fn downloaded(&mut self, event: &Arc<Event>, writer: Option<&Arc<Event>>, bytes: usize) {
        let Some(writer) = writer else {
            return;
        };
        let wrote = |command: &Command| {
            command.step == Step::Kernel && writer.is_between(&command.first, &command.last)
        };
        let mut frames = self.frames.iter_mut().rev();
        if let Some(frame) = frames.find(|frame| frame.iter().any(wrote)) {
            add(frame, Step::Download, [event, event], bytes);
        }
    }

    /// The commands of the frames, from the newest one.
    pub fn newest_first(&self) -> Vec<Frame> {
        self.frames.iter().rev().cloned().collect()
    }
}

fn add(frame: &mut Frame, step: Step, [first, last]: [&Arc<Event>; 2], bytes: usize) {
    if frame.len() < STEPS {
        frame.push(Command {
            step,
            first: first.clone(),
            last: last.clone(),
            bytes: bytes as u64,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeline_counts_from_the_first_start_and_shows_gaps() {
        let spans = vec![
            (Step::Kernel, [1_000_150, 1_000_400], 64),
            (Step::Upload, [1_000_000, 1_000_100], 64),
            // This step overlaps the kernel and ends before it.
            (Step::Download, [1_000_300, 1_000_350], 4),
            (Step::Download, [1_000_410, 1_000_500], 8),
        ];
        let span = |step, start_ns, end_ns, gap_ns, bytes| StepSpan {
            step,
            start_ns,
            end_ns,
            gap_ns,
            bytes,
        };
        let expected = FrameTimeline {
            steps: vec![
                span(Step::Upload, 0, 100, 0, 64),
                span(Step::Kernel, 150, 400, 50, 64),
                span(Step::Download, 300, 350, 0, 4),
                span(Step::Download, 410, 500, 10, 8),
            ],
            total_ns: 500,
        };
        assert_eq!(FrameTimeline::from_spans(spans), Some(expected));
        assert_eq!(FrameTimeline::from_spans(Vec::new()), None);
    }
}
