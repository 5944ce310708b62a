//! Learns a model of a surface, and what good frames demand of its limits, in a thread of its own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use super::{
    imp::{Operator, comparison},
    properties::Plan,
};
use crate::elements::{
    base_filter::{ClBaseFilter, Target},
    inspector::{DemandSettings, GoodFrame, Lesson},
};
use clinspect_core::{
    ClError,
    ignored::Ignored,
    layout::FrameLayout,
    learning::{Contrasts, Good},
    mask::packed_stride,
    surface::{Model, ROWS_ABOVE, ROWS_BELOW, Samples},
    window::Window,
};
use clinspect_opencl::{ClBuffer, Meter, frame::ClFrame};
use clinspect_operators::{Inspection, MaskTarget, Subject, Surface, SurfaceSettings, is_colour};

/// Good frames take at most so much memory, bytes.
const MOST_BYTES: usize = 1 << 30;
/// A frame is judged by what others have shown.
const LEAST_FRAMES: usize = 2;

/// The good frames, and the thread that learns from them.
#[derive(Default)]
pub struct School {
    target: Option<Target>,
    /// The settings under which the frames were gathered.
    under: Option<DemandSettings<Plan>>,
    /// The frames, while no thread has them. They stay after the learning, because one may be forgotten.
    frames: Vec<Kept>,
    thread: Option<Thread>,
    /// Frames to forget when the thread gives them back.
    forgotten: Vec<u64>,
    /// Why no thread could learn.
    failure: Option<ClError>,
    /// The frames were learned from.
    has_learned: bool,
}

/// A good frame.
struct Kept {
    number: u64,
    /// Its plane that is judged; of a web, with the rows around the strip.
    frame: ClFrame,
    window: Window,
    /// The ignored pixels, if its regions follow a part.
    ignored: Option<Arc<Ignored>>,
}

impl Kept {
    /// Ignores the pixels of this frame.
    fn show(&self, operator: &mut Surface) -> Result<(), ClError> {
        (self.ignored.as_ref()).map_or(Ok(()), |ignored| operator.set_ignored(ignored))
    }
}

/// What a thread learns from.
struct Task {
    target: Target,
    under: DemandSettings<Plan>,
    settings: SurfaceSettings,
    layout: FrameLayout,
    is_cancelled: Arc<AtomicBool>,
}

/// A thread that learns.
struct Thread {
    /// The numbers of its frames.
    numbers: Vec<u64>,
    is_cancelled: Arc<AtomicBool>,
    handle: Option<JoinHandle<Taught>>,
}

type Learned = (Model, Lesson);
/// The frames that a thread gives back, and what it has learned from them.
type Taught = (Vec<Kept>, Result<Learned, ClError>);

/// The layout of what is kept of a frame.
fn kept_layout(target: &Target) -> FrameLayout {
    if is_colour(&target.layout) {
        target.layout.grey()
    } else {
        target.layout.first_plane()
    }
}

impl School {
    /// For the frames of a target.
    pub fn new(target: Target) -> Self {
        Self {
            target: Some(target),
            ..Self::default()
        }
    }

    /// See [`Together::possible_frames`](crate::elements::inspector::Together::possible_frames).
    pub fn possible_frames(&self, element: &ClBaseFilter, wanted: usize) -> usize {
        let bytes = self.target.as_ref().map_or(1, |target| {
            let strip = kept_layout(target);
            let rows = if target.line_scan {
                ROWS_ABOVE + ROWS_BELOW
            } else {
                0
            };
            strip.of_rows(strip.height + rows).bytes()
        });
        let most = (MOST_BYTES / bytes.max(1)).max(LEAST_FRAMES);
        let possible = wanted.clamp(LEAST_FRAMES, most);
        if possible != wanted {
            gst::element_warning!(
                element,
                gst::LibraryError::Settings,
                ("a surface of this size is learned from {LEAST_FRAMES} to {most} good frames, not from {wanted}; set \
                     frames of learn to such a number"),
                ["it is learned from {possible}"]
            );
        }
        possible
    }

    /// Forgets all frames, and what is being learned.
    pub fn begin_again(&mut self) {
        let target = self.target.take();
        *self = Self {
            target,
            ..Self::default()
        };
    }

    /// Number of frames.
    pub fn gathered(&self) -> usize {
        let in_thread = self
            .thread
            .as_ref()
            .map_or(0, |thread| thread.numbers.len());
        in_thread + self.frames.len()
    }

    /// See [`Together::gather`](crate::elements::inspector::Together::gather).
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn gather(
        &mut self,
        operator: &mut Operator,
        GoodFrame {
            number,
            subject,
            under,
            wanted,
            ignored,
        }: GoodFrame<Plan>,
    ) -> Result<(), ClError> {
        let Some(target) = self.target.as_ref().filter(|_| self.thread.is_none()) else {
            return Ok(());
        };
        if self.under.as_ref() != Some(&under) {
            self.frames.clear();
            self.has_learned = false;
            self.under = Some(under);
        }
        let window = subject.window;
        let layout = kept_layout(target).of_rows(window.height);
        let context = target.context.clone();
        let grey = operator.grey(subject.frame, window.height, subject.meter)?;
        let frame = grey.copy_of_first_plane(&context, &layout, subject.meter)?;
        self.frames.push(Kept {
            number,
            frame,
            window,
            ignored: ignored.cloned(),
        });
        if self.frames.len() >= wanted {
            self.start();
        }
        Ok(())
    }

    /// See [`Together::forget`](crate::elements::inspector::Together::forget).
    pub fn forget(&mut self, number: u64) -> bool {
        if let Some(thread) = &self.thread {
            let is_there = thread.numbers.contains(&number);
            self.forgotten.extend(is_there.then_some(number));
            return is_there;
        }
        let before = self.frames.len();
        self.frames.retain(|kept| kept.number != number);
        let is_changed = self.frames.len() < before;
        if is_changed && self.has_learned && before > LEAST_FRAMES {
            self.start();
        }
        is_changed
    }

    /// Begins to learn from the frames.
    fn start(&mut self) {
        let (Some(target), Some(under)) = (self.target.clone(), self.under.clone()) else {
            return;
        };
        let started = comparison(&target, &under.comparison).and_then(|settings| {
            let task = Task {
                layout: kept_layout(&target),
                target,
                under,
                settings: SurfaceSettings {
                    model: None,
                    limits: Vec::new(),
                    // The frames lie in buffers.
                    image: false,
                    ..settings
                },
                is_cancelled: Arc::default(),
            };
            Thread::start(task, std::mem::take(&mut self.frames))
        });
        match started {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => self.failure = Some(error),
        }
    }

    /// See [`Together::lesson`](crate::elements::inspector::Together::lesson).
    ///
    /// # Errors
    /// See there.
    pub fn lesson(
        &mut self,
        under: &dyn Fn() -> DemandSettings<Plan>,
        waits: bool,
    ) -> Result<Option<Learned>, ClError> {
        loop {
            if let Some(failure) = self.failure.take() {
                self.begin_again();
                return Err(failure);
            }
            let Some(thread) = self.thread.take_if(|t| waits || t.is_finished()) else {
                return Ok(None);
            };
            let (frames, learned) = thread.join()?;
            self.frames = frames;
            if self.under.as_ref() != Some(&under()) {
                self.begin_again();
                return Ok(None);
            }
            let forgotten = std::mem::take(&mut self.forgotten);
            if forgotten.is_empty() {
                let learned = learned.inspect_err(|_| self.begin_again())?;
                self.has_learned = true;
                return Ok(Some(learned));
            }
            self.frames.retain(|kept| !forgotten.contains(&kept.number));
            if self.frames.len() >= LEAST_FRAMES {
                self.start();
            }
        }
    }
}

impl Thread {
    /// Begins to learn from frames.
    ///
    /// # Errors
    /// [`ClError::Refused`] if the system can start no thread.
    fn start(task: Task, frames: Vec<Kept>) -> Result<Self, ClError> {
        let numbers = frames.iter().map(|kept| kept.number).collect();
        let is_cancelled = task.is_cancelled.clone();
        let work = move || {
            let learned = task.learn(&frames);
            (frames, learned)
        };
        let handle = std::thread::Builder::new()
            .name("cllearn".into())
            .spawn(work)
            .map_err(|error| ClError::Refused(format!("no thread could be started: {error}")))?;
        Ok(Self {
            numbers,
            is_cancelled,
            handle: Some(handle),
        })
    }

    fn is_finished(&self) -> bool {
        self.handle.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the thread, and takes its frames and what it has learned.
    fn join(mut self) -> Result<Taught, ClError> {
        let joined = self.handle.take().map(JoinHandle::join);
        let ended = joined.and_then(Result::ok);
        ended.ok_or_else(|| ClError::Refused("the thread that learns has ended".into()))
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        if let Some(handle) = self.handle.take() {
            // Nobody wants the result.
            let _ = handle.join();
        }
    }
}

impl Task {
    /// A frame to compare.
    ///
    /// # Errors
    /// Nobody wants the result any more.
    fn subject<'a>(&self, kept: &'a Kept, meter: &'a Arc<Meter>) -> Result<Subject<'a>, ClError> {
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Err(ClError::Refused("the learning was cancelled".into()));
        }
        Ok(Subject {
            frame: &kept.frame,
            window: kept.window,
            meter,
        })
    }

    /// Learns a model of all frames, and what each demands of a model of the other half.
    fn learn(&self, frames: &[Kept]) -> Result<Learned, ClError> {
        let context = &self.target.context;
        let (width, height) = (self.layout.width, self.layout.height);
        let meter = Meter::new(false);
        let mut operator = Surface::new(context, &self.layout, &self.settings)?;
        let buffer = ClBuffer::new(context, packed_stride(width) * height, &meter)?;
        let mask = MaskTarget::Packed {
            buffer: &buffer,
            offset: 0,
        };
        let subject = |kept| self.subject(kept, &meter);
        let mut counts = [0; 2];
        for (n, kept) in frames.iter().enumerate() {
            kept.show(&mut operator)?;
            counts[n % 2] += operator.count_cells(&kept.window)?;
        }
        let mut whole = Samples::new(counts[0] + counts[1]);
        let mut halves = counts.map(Samples::new);
        for (n, kept) in frames.iter().enumerate() {
            kept.show(&mut operator)?;
            operator.mark(subject(kept)?, mask)?;
            let cells = operator.features()?;
            halves[n % 2].add(&cells);
            whole.add(&cells);
        }
        let model = |samples: &Samples| Model::learn(samples).map_err(ClError::Refused);
        let mut good: Vec<(usize, Good)> = Vec::new();
        for (parity, others) in halves.iter().rev().enumerate() {
            operator.set_model(&model(others)?)?;
            for (n, kept) in frames.iter().enumerate().skip(parity).step_by(2) {
                kept.show(&mut operator)?;
                let demands = (self.under).demands(&mut operator, subject(kept)?, mask)?;
                let frame = kept.number;
                good.extend(demands.map(|demands| {
                    (
                        n,
                        Good {
                            frame,
                            demands,
                            contrasts: Contrasts::default(),
                        },
                    )
                }));
            }
        }
        good.sort_by_key(|(n, _)| *n);
        let model = model(&whole)?;
        operator.set_model(&model)?;
        if let Some(kept) = frames.last() {
            kept.show(&mut operator)?;
            operator.mark(subject(kept)?, mask)?;
        }
        let lesson = Lesson {
            good: good.into_iter().map(|(_, good)| good).collect(),
            operator: Box::new(operator),
        };
        Ok((model, lesson))
    }
}
