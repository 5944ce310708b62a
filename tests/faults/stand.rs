//! Elements between two pads, driven step by step in this thread, so that every run makes the same
//! OpenCL calls in the same order.

use std::{
    collections::{BTreeMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use clinspect_testkit::panels::without_ids;
use gst::prelude::*;
use gstclinspect::results::{DefectResult, HistogramResult};

use crate::layer::{self, Report};

/// Frames after the first.
const FRAMES: usize = 4;
/// Time from one frame to the next, ms.
const FRAME_MS: u64 = 40;

/// A phase of an element's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// NULL to PLAYING.
    Start,
    /// Caps and the first frame, which creates the pools.
    Caps,
    /// More frames, and EOS.
    Streaming,
    /// To NULL, and the release of a buffer that was held until then.
    Stop,
}

/// Elements and their input.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    /// A piece of a gst-launch line; WHITE stands for a file with a white reference, MODEL for one with a model.
    pub elements: &'static str,
    pub format: &'static str,
    pub size: [u32; 2],
    /// Input frames are in memory that the first element offers.
    pub ours: bool,
    /// Rules for the whole run: the kind of device.
    pub lies: &'static str,
}

impl Case {
    /// Frames are strips of a web, which are held until the rows below have come.
    pub fn is_web(&self) -> bool {
        self.elements.contains("line-scan=true")
    }
}

/// Rules for one phase, or from that phase on.
#[derive(Debug, Clone)]
pub struct Fault {
    pub phase: Phase,
    pub rules: String,
    /// True: until the elements are stopped; false: until the phase ends.
    pub lasting: bool,
    /// True: a buffer, and with it the context, is kept until after the next start.
    pub keep: bool,
}

/// The record of one run.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// Calls in each phase.
    pub calls: BTreeMap<Phase, BTreeMap<String, u64>>,
    /// The outcome of each pushed frame.
    pub frames: Vec<Frame>,
    /// What each frame may be if it is sent. In a web that depends on where a fault ends the web.
    pub allowed: Vec<Vec<Frame>>,
    /// Errors on the bus, each after the name of the element.
    pub errors: Vec<String>,
    /// Warnings on the bus.
    pub warnings: Vec<String>,
    /// The elements started.
    pub started: bool,
    /// Duration of each phase, without waits for a processor.
    pub phase_times: BTreeMap<Phase, Duration>,
}

/// The outcome of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The source could not fill the frame and did not send it.
    NotSent,
    /// An element refused it.
    Refused,
    /// No output.
    Lost,
    /// The frame was sent, but mapping it failed.
    Unreadable,
    /// The frame was sent: its bytes and metas.
    Out(u64),
}

/// Elements between two pads.
pub struct Stand {
    case: Case,
    files: Vec<PathBuf>,
    bin: gst::Bin,
    bus: gst::Bus,
    source: gst::Pad,
    sink: gst::Pad,
    received: Arc<Mutex<Vec<gst::Buffer>>>,
    pool: Option<gst::BufferPool>,
    /// Number of the first frame that is pushed.
    first: usize,
    /// See [`Fault::keep`].
    pub kept: Option<gst::Buffer>,
}

impl Stand {
    pub fn new(case: Case) -> Self {
        let (elements, files) = with_models(&case);
        let bin = gst::parse::bin_from_description(&elements, true).unwrap();
        let bus = gst::Bus::new();
        bin.set_bus(Some(&bus));
        let received: Arc<Mutex<Vec<gst::Buffer>>> = Arc::default();
        let keep = received.clone();
        let source = gst::Pad::builder(gst::PadDirection::Src).build();
        let any = gst::PadTemplate::new(
            "sink",
            gst::PadDirection::Sink,
            gst::PadPresence::Always,
            &gst::Caps::new_any(),
        );
        let sink = gst::Pad::builder_from_template(&any.unwrap())
            .chain_function(move |_, _, buffer| {
                keep.lock().unwrap().push(buffer);
                Ok(gst::FlowSuccess::Ok)
            })
            .build();
        source.link(&bin.static_pad("sink").unwrap()).unwrap();
        bin.static_pad("src").unwrap().link(&sink).unwrap();
        Self {
            case,
            files,
            bin,
            bus,
            source,
            sink,
            received,
            pool: None,
            first: 0,
            kept: None,
        }
    }

    /// From NULL through frames and back to NULL.
    pub fn live(&mut self, fault: Option<&Fault>) -> Trace {
        let mut trace = Trace::default();
        let mut held = None;
        layer::set_rules(self.case.lies);
        self.phase(Phase::Start, fault, &mut trace, |stand, trace| {
            stand.sink.set_active(true).unwrap();
            stand.source.set_active(true).unwrap();
            trace.started = stand.bin.set_state(gst::State::Playing).is_ok();
        });
        if trace.started {
            self.phase(Phase::Caps, fault, &mut trace, |stand, trace| {
                stand.negotiate();
                stand.pass(0, trace, &mut held);
            });
            self.phase(Phase::Streaming, fault, &mut trace, |stand, trace| {
                for number in 1..=FRAMES {
                    // Sources stop at a refusal; after a single fault elements could continue.
                    let refused = trace.frames.contains(&Frame::Refused);
                    if refused && fault.is_some_and(|fault| fault.lasting) {
                        break;
                    }
                    stand.pass(number, trace, &mut held);
                }
                stand.end_stream(trace, &mut held);
            });
        }
        self.phase(Phase::Stop, fault, &mut trace, |stand, _| {
            stand.stop();
            if fault.is_some_and(|fault| fault.keep) {
                stand.kept = held;
            }
        });
        layer::set_rules("");
        let wanted = [gst::MessageType::Error, gst::MessageType::Warning];
        while let Some(message) = self.bus.pop_filtered(&wanted) {
            let source = message.src().map(|s| s.name().to_string());
            let source = source.unwrap_or_default();
            match message.view() {
                gst::MessageView::Error(error) => {
                    trace
                        .errors
                        .push(format!("{source}: {}", error.error().message()));
                }
                gst::MessageView::Warning(warning) => {
                    trace
                        .warnings
                        .push(format!("{source}: {}", warning.error().message()));
                }
                _ => (),
            }
        }
        self.bus.set_flushing(true);
        self.bus.set_flushing(false);
        trace
    }

    /// From NULL through frames of several sizes and back to NULL.
    pub fn live_with_sizes(&mut self, sizes: &[[u32; 2]]) -> Trace {
        let mut trace = Trace::default();
        let mut held = None;
        self.play();
        for (number, &size) in sizes.iter().enumerate() {
            self.case.size = size;
            self.negotiate();
            self.pass(number, &mut trace, &mut held);
        }
        self.stop();
        layer::settle();
        trace
    }

    /// What each strip may be: its outcome in every web of consecutive strips.
    pub fn of_every_web(&mut self) -> Vec<Vec<Frame>> {
        let mut allowed = vec![Vec::new(); FRAMES + 1];
        for first in 0..=FRAMES {
            for last in first..=FRAMES {
                self.first = first;
                let mut trace = Trace::default();
                let mut held = None;
                self.play();
                self.negotiate();
                (first..=last).for_each(|number| self.pass(number, &mut trace, &mut held));
                self.end_stream(&mut trace, &mut held);
                drop(held);
                self.stop();
                for (number, frame) in (first..=last).zip(trace.frames) {
                    assert!(matches!(frame, Frame::Out(_)), "strip {number}: {frame:?}");
                    allowed[number].push(frame);
                }
            }
        }
        self.first = 0;
        layer::settle();
        allowed
    }

    fn play(&mut self) {
        layer::set_rules(self.case.lies);
        self.sink.set_active(true).unwrap();
        self.source.set_active(true).unwrap();
        self.bin.set_state(gst::State::Playing).unwrap();
    }

    fn stop(&mut self) {
        self.pool = None;
        self.bin.set_state(gst::State::Null).unwrap();
        self.source.set_active(false).unwrap();
        self.sink.set_active(false).unwrap();
    }

    fn phase(
        &mut self,
        phase: Phase,
        fault: Option<&Fault>,
        trace: &mut Trace,
        work: impl FnOnce(&mut Self, &mut Trace),
    ) {
        let fault = fault.filter(|fault| fault.phase == phase);
        if let Some(fault) = fault {
            layer::set_rules(&format!("{}{}\n", self.case.lies, fault.rules));
        }
        let before = Report::now().unwrap_or_default();
        let (begun, queued) = (Instant::now(), queued_for_a_processor());
        work(self, trace);
        let queued = queued_for_a_processor().saturating_sub(queued);
        let time = begun.elapsed().saturating_sub(queued);
        trace.phase_times.insert(phase, time);
        if fault.is_some_and(|fault| fault.rules.starts_with("clRelease")) {
            layer::wait_for_fault(&before);
        }
        if phase == Phase::Stop {
            layer::settle();
        }
        let after = Report::now().unwrap_or_default();
        trace.calls.insert(phase, after.calls_since(&before));
        if fault.is_some_and(|fault| !fault.lasting) {
            layer::set_rules(self.case.lies);
        }
    }

    fn caps(&self) -> gst::Caps {
        let [width, height] = self.case.size;
        gst::Caps::builder("video/x-raw")
            .field("format", self.case.format)
            .field("width", width as i32)
            .field("height", height as i32)
            .field("framerate", gst::Fraction::new(25, 1))
            .build()
    }

    fn negotiate(&mut self) {
        let segment = gst::FormattedSegment::<gst::ClockTime>::new();
        self.source
            .push_event(gst::event::StreamStart::new("stand"));
        self.source.push_event(gst::event::Caps::new(&self.caps()));
        self.source.push_event(gst::event::Segment::new(&segment));
        if self.case.ours {
            let mut query = gst::query::Allocation::new(Some(&self.caps()), true);
            self.source.peer_query(&mut query);
            self.pool = query.allocation_pools().next().and_then(|pool| pool.0);
            // Without a pool frames are in the source's own memory.
            self.pool = self
                .pool
                .take()
                .filter(|pool| pool.set_active(true).is_ok());
        }
    }

    /// A frame of a pattern that repeats every 8 pixels, with a moving square.
    fn frame(&self, number: usize) -> Option<gst::Buffer> {
        let info = gst_video::VideoInfo::from_caps(&self.caps()).unwrap();
        let (stride, height) = (info.stride()[0] as usize, info.height() as usize);
        let mut buffer = match &self.pool {
            Some(pool) => pool.acquire_buffer(None).ok()?,
            None => gst::Buffer::with_size(info.size()).unwrap(),
        };
        let writable = buffer.make_mut();
        writable.set_pts(gst::ClockTime::from_mseconds(FRAME_MS * number as u64));
        // A refused frame does not change the numbers of later frames.
        writable.set_offset(number as u64);
        let mut map = writable.map_writable().ok()?;
        for (i, byte) in map.iter_mut().enumerate() {
            let (x, y) = (i % stride, i / stride);
            let square = |number: usize| (40 + number..44 + number).contains(&x);
            // In a web the square of each strip lies on the seam below it.
            let defect = if self.case.is_web() {
                (y + 2 >= height && square(number)) || (y == 0 && number > 0 && square(number - 1))
            } else {
                (20..23).contains(&y) && square(number)
            };
            *byte = (16 * (x % 8) + 8 * (y % 8) + if defect { 60 } else { 0 }) as u8;
        }
        drop(map);
        Some(buffer)
    }

    fn pass(&mut self, number: usize, trace: &mut Trace, held: &mut Option<gst::Buffer>) {
        let frame = match self.frame(number) {
            None => Frame::NotSent,
            Some(buffer) => match self.source.push(buffer) {
                Err(_) => Frame::Refused,
                Ok(_) => Frame::Lost,
            },
        };
        trace.frames.push(frame);
        self.collect(trace, held);
    }

    /// EOS, and what leaves with it.
    fn end_stream(&mut self, trace: &mut Trace, held: &mut Option<gst::Buffer>) {
        self.source.push_event(gst::event::Eos::new());
        self.collect(trace, held);
    }

    /// Records the frames that came out. A frame is judged by the output, not by the flow return.
    fn collect(&mut self, trace: &mut Trace, held: &mut Option<gst::Buffer>) {
        for buffer in std::mem::take(&mut *self.received.lock().unwrap()) {
            let number = (buffer.pts().unwrap().mseconds() / FRAME_MS) as usize;
            let frame = (number.checked_sub(self.first)).and_then(|at| trace.frames.get_mut(at));
            let frame = frame.expect("a frame came out that did not go in");
            let came = matches!(frame, Frame::Out(_) | Frame::Unreadable);
            assert!(!came, "frame {number} came out twice");
            *frame = fingerprint(&buffer).map_or(Frame::Unreadable, Frame::Out);
            *held = Some(buffer);
        }
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.bin.set_bus(None);
        for file in &self.files {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// The elements of a case, and the files that they read.
fn with_models(case: &Case) -> (String, Vec<PathBuf>) {
    let mut line = case.elements.to_owned();
    let mut files = Vec::new();
    let [width, height] = case.size.map(|size| size as usize);
    let at = |f: fn(usize, usize) -> usize| {
        let levels = (0..width * height).map(|i| 256 * f(i % width, i / width) as u32);
        levels.collect::<Vec<u32>>()
    };
    for (word, name, mean) in [
        // Darker on the right.
        ("WHITE", "white", at(|x, _| 200_usize.saturating_sub(x))),
        // The frames without their square.
        ("MODEL", "mean", at(|x, y| 16 * (x % 8) + 8 * (y % 8))),
    ] {
        if !line.contains(word) {
            continue;
        }
        let file = format!("clinspect-faults-{name}-{}.npz", std::process::id());
        let path = std::env::temp_dir().join(file);
        let (shape, none) = ([height, width], vec![0; width * height]);
        let array = |name, shape, samples| clinspect_models::ArrayRef {
            name,
            shape,
            samples,
        };
        let mut arrays = vec![array(name, &shape[..], &mean[..])];
        if word == "MODEL" {
            arrays.push(array("deviation", &shape, &none));
            arrays.push(array("frames", &[], &[1]));
            arrays.push(array("bits", &[], &[8]));
        }
        clinspect_models::write(&path, &arrays).unwrap();
        line = line.replace(word, &path.display().to_string());
        files.push(path);
    }
    (line, files)
}

/// True if a function queries times. Times are queried when the commands are complete, which may be in
/// one phase or the next.
pub fn asks_for_times(function: &str) -> bool {
    function.starts_with("clGetEvent")
}

/// Time that this thread waited for a processor: a busy machine is not a hanging driver.
pub fn queued_for_a_processor() -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited = statistics.split_whitespace().nth(1);
    Duration::from_nanos(waited.and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

/// The bytes and metas of a buffer.
pub fn fingerprint(buffer: &gst::Buffer) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    buffer.map_readable().ok()?.as_slice().hash(&mut hasher);
    results(buffer)?.hash(&mut hasher);
    Some(hasher.finish())
}

/// The metas of a buffer, with their masks.
pub fn results(buffer: &gst::Buffer) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    for histogram in HistogramResult::read(buffer) {
        (histogram.counts, histogram.frame_number).hash(&mut hasher);
        format!("{:?}", histogram.statistics).hash(&mut hasher);
    }
    for defects in DefectResult::read(buffer) {
        if let Some(mask) = &defects.mask {
            mask.map_readable().ok()?.as_slice().hash(&mut hasher);
        }
        (defects.frame_number, defects.defect_pixels).hash(&mut hasher);
        let listed = without_ids(&defects.defects);
        format!("{:?} {listed:?}", defects.verdict).hash(&mut hasher);
    }
    Some(hasher.finish())
}
