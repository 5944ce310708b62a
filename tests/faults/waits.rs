//! Waits and their limits: devices that hang or are busy, slow compilers, and queues that wait for each
//! other.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use clinspect_opencl::{
    self as opencl, Access, ClAllocator, ClBuffer, ClContext, ImportPath, Meter, ProgramSource,
    frame::{ClFrame, Importer, layout_of},
};
use clinspect_operators::{Arithmetic, Gaussian, GaussianSettings};
use gst::prelude::*;

use crate::{
    calls,
    cases::{self, GPU},
    layer::{self, Report},
    own_strips, pins,
    stand::Trace,
    strips,
};

/// Time that a stop waits for a device.
const LIMIT: Duration = Duration::from_secs(1);

/// A scenario, and the result of the case `gaussian` without faults.
pub type Scenario = (&'static str, fn(&Trace) -> Result<(), String>);

/// The scenarios of a `cpu`, or of a CPU that claims to be a `gpu`.
pub fn scenarios(device: &str) -> Vec<Scenario> {
    if device == "gpu" {
        let own: [Scenario; 5] = [
            ("a write behind readers in two queues", write_behind_readers),
            ("a write behind a download", flush_of_a_download),
            ("a frame that the host reads each time", read_each_time),
            ("events of memory that is dropped", events_are_released),
            ("the timeline of frames written ahead", timeline_of_a_gpu),
        ];
        // The last scenarios of the pins change the process.
        let strips = strips::SCENARIOS.into_iter().chain(own_strips::SCENARIOS);
        let others = strips.chain(pins::SCENARIOS);
        return own.into_iter().chain(others).collect();
    }
    vec![
        ("the end of a stream on a device that hangs", eos_of_a_hang),
        ("a stop beside streams that keep the device busy", busy),
        ("a stop on a device that hangs", hang),
        ("a wait for a command that fails", failed_wait),
        ("memory that a lost queue has read", memory_of_a_lost_queue),
        ("a start beside a compiler", start_beside_a_build),
        ("a fault of a release after a slow one", slow_release),
        (
            "memory made after a slow release",
            memory_after_a_slow_release,
        ),
    ]
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// A filter with its own frames.
struct Filter {
    context: Arc<ClContext>,
    operator: Gaussian,
    importer: Importer,
    buffers: [gst::Buffer; 2],
}

impl Filter {
    fn new() -> Result<Self, String> {
        Self::counted_by(&Meter::new(false))
    }

    fn counted_by(meter: &Arc<Meter>) -> Result<Self, String> {
        let context = opencl::open_profiled("auto").map_err(text)?;
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, 64, 16)
            .build()
            .map_err(text)?;
        let settings = GaussianSettings {
            kernel_size: 3,
            sigma_px: 0.0,
            arithmetic: Arithmetic::Integer,
            image: false,
            variant: None,
        };
        let layout = layout_of(&info).map_err(text)?;
        let operator = Gaussian::new(&context, &layout, &settings).map_err(text)?;
        let importer = Importer::new(&context, meter, &info).map_err(text)?;
        let allocator = ClAllocator::new(&context, meter).upcast::<gst::Allocator>();
        let buffer = || {
            let mut buffer = gst::Buffer::new();
            let memory = allocator.alloc(info.size(), None).map_err(text)?;
            buffer.make_mut().append_memory(memory);
            Ok::<_, String>(buffer)
        };
        Ok(Self {
            buffers: [buffer()?, buffer()?],
            context,
            operator,
            importer,
        })
    }

    fn frames(&mut self) -> Result<[ClFrame; 2], String> {
        let input = self.importer.import(&self.buffers[0]).map_err(text)?;
        let output = self.importer.output(&self.buffers[1]).map_err(text)?;
        Ok([input, output])
    }
}

/// A pipeline whose last frame never completes: EOS is an error within the limit.
fn eos_of_a_hang(_: &Trace) -> Result<(), String> {
    // The first kernel is the warm-up.
    layer::set_rules("clEnqueueNDRangeKernel 2 hold 20000");
    let line = "videotestsrc num-buffers=1 ! video/x-raw,format=GRAY8 ! clgaussian ! fakesink";
    let pipeline = gst::parse::launch(line).map_err(text)?;
    let pipeline = pipeline.downcast::<gst::Pipeline>().unwrap();
    pipeline.set_state(gst::State::Playing).map_err(text)?;
    let ends = [gst::MessageType::Eos, gst::MessageType::Error];
    let bus = pipeline.bus().unwrap();
    let end = bus.timed_pop_filtered(gst::ClockTime::from_seconds(14), &ends);
    let stopping = Instant::now();
    pipeline.set_state(gst::State::Null).map_err(text)?;
    let stopped = stopping.elapsed();
    layer::set_rules("");
    match end.as_ref().map(|message| message.view()) {
        None => return Err("neither an end nor an error".into()),
        Some(gst::MessageView::Error(error)) => {
            let error = error.error().message().to_owned();
            if !error.contains("did not finish") || !error.contains("stop and start") {
                return Err(format!("an error that does not say what to do: {error}"));
            }
        }
        Some(_) => return Err("an end without its last frames".into()),
    }
    if stopped > 4 * LIMIT {
        return Err(format!("NULL took {stopped:?}"));
    }
    Ok(())
}

/// A stop that exceeds the limit because other commands are queued first does not mark the context as
/// failed.
fn busy(_: &Trace) -> Result<(), String> {
    let mut filters = (0..5)
        .map(|_| Filter::new())
        .collect::<Result<Vec<_>, _>>()?;
    let context = filters[0].context.clone();
    let meters: Vec<_> = filters.iter().map(|_| Meter::new(false)).collect();
    let held: Vec<String> = (1..=filters.len())
        .map(|n| format!("clEnqueueNDRangeKernel {n} hold {}", 400 * n))
        .collect();
    layer::set_rules(&held.join("\n"));
    let mut submitted = Vec::new();
    for (filter, meter) in filters.iter_mut().zip(&meters) {
        let [input, output] = filter.frames()?;
        submitted.push(filter.operator.run(&input, &output, meter).map_err(text)?);
    }
    let last = meters.last().unwrap();
    let finished = std::thread::scope(|scope| {
        // The earlier streams wait for their frames, as with wrapped memory.
        scope.spawn(|| {
            submitted
                .iter()
                .take(4)
                .try_for_each(|done| done.wait("a frame"))
        });
        context.finish_within(LIMIT, last)
    });
    layer::set_rules("");
    finished.map_err(text)?;
    if context.has_failed() {
        return Err("a busy device is given up".into());
    }
    Ok(())
}

/// A stop on a device without progress: the next start gets a new context.
fn hang(_: &Trace) -> Result<(), String> {
    let mut filter = Filter::new()?;
    let meter = Meter::new(false);
    let [input, output] = filter.frames()?;
    layer::set_rules("clEnqueueNDRangeKernel 1 hold 5000");
    let done = filter.operator.run(&input, &output, &meter).map_err(text)?;
    for limit in [LIMIT, LIMIT / 10] {
        let begun = Instant::now();
        if filter.context.finish_within(LIMIT, &meter).is_ok() {
            return Err("a hang is no error".into());
        }
        // The second element does not wait again.
        if begun.elapsed() > limit + LIMIT / 2 {
            return Err(format!("took {:?}", begun.elapsed()));
        }
    }
    let next = opencl::open("auto").map_err(text)?;
    layer::set_rules("");
    done.wait("the frame").map_err(text)?;
    if next.shares_memory_with(&filter.context) {
        return Err("the next start waits behind the hang".into());
    }
    Ok(())
}

/// A wait for a command that failed after it was enqueued marks the context as failed.
fn failed_wait(_: &Trace) -> Result<(), String> {
    let mut filter = Filter::new()?;
    let meter = Meter::new(false);
    let [input, output] = filter.frames()?;
    layer::set_rules("clEnqueueNDRangeKernel 1 late -5");
    let done = filter.operator.run(&input, &output, &meter).map_err(text)?;
    let waited = done.wait("the frame");
    layer::set_rules("");
    if waited.is_ok() {
        return Err("no error".into());
    }
    if !filter.context.has_failed() {
        return Err("the next start joins a context that has failed".into());
    }
    Ok(())
}

/// The memory of a frame that the device reads in place is released once the kernel has ended, although the queue is
/// lost and refuses the flush.
fn memory_of_a_lost_queue(_: &Trace) -> Result<(), String> {
    let mut filter = Filter::new()?;
    if !filter.context.caps().shares_host_memory {
        // The frame would be uploaded: see `pins`.
        return Ok(());
    }
    let meter = Meter::new(false);
    let [_, output] = filter.frames()?;
    let before = layer::memory();
    let own = gst::Buffer::with_size(filter.importer.info().size()).map_err(text)?;
    let input = filter.importer.import(&own).map_err(text)?;
    if input.taken() != ImportPath::Wrapped {
        return Err("the frame's own memory is not read in place".into());
    }
    layer::set_rules("clFlush 1 lose -5");
    let sent = filter.operator.run(&input, &output, &meter);
    drop(input);
    layer::set_rules("");
    if sent.is_ok() {
        return Err("no error".into());
    }
    match layer::memory() - before {
        0 => Ok(()),
        left => Err(format!("{left} memory objects are left")),
    }
}

/// Opening an open device and requesting a compiled program do not wait for another compilation.
fn start_beside_a_build(_: &Trace) -> Result<(), String> {
    let context = opencl::open("auto").map_err(text)?;
    let built = || {
        context
            .program(ProgramSource::PitchThresholdMask, "")
            .map(drop)
    };
    built().map_err(text)?;
    layer::set_rules("clBuildProgram 1 stall 2000");
    let before = Report::now().unwrap_or_default();
    let is_building = AtomicBool::new(true);
    let (build, starts) = std::thread::scope(|scope| {
        let build = scope.spawn(|| {
            let begun = Instant::now();
            let built = context.program(ProgramSource::Gaussian, "-DTAPS=5 -DNEVER_COMPILED=1");
            is_building.store(false, Ordering::Release);
            built.map(|_| begun.elapsed())
        });
        while Report::now().unwrap_or_default().faults_since(&before) == 0 {
            std::thread::yield_now();
        }
        let start = || {
            let begun = Instant::now();
            let opened = opencl::open("auto").and_then(|_| built());
            let beside = is_building.load(Ordering::Acquire);
            opened.map(|()| (begun.elapsed(), beside))
        };
        let starts: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
        let starts: Result<Vec<_>, _> = starts.into_iter().map(|s| s.join().unwrap()).collect();
        (build.join().unwrap(), starts)
    });
    layer::set_rules("");
    let (build, starts) = (build.map_err(text)?, starts.map_err(text)?);
    if starts
        .iter()
        .any(|(time, beside)| !beside || *time > build / 2)
    {
        return Err(format!("{starts:?} beside a build of {build:?}"));
    }
    Ok(())
}

/// After a release that stalls, a thread makes the other releases soon.
fn slow_release(healthy: &Trace) -> Result<(), String> {
    let case = cases::named("gaussian");
    let faults = ["clReleaseEvent", "clReleaseKernel", "clReleaseMemObject"];
    let scenarios = calls::scenarios(healthy, calls::Depth::First);
    for scenario in scenarios
        .iter()
        .filter(|s| faults.iter().any(|fault| s.name.contains(fault)))
    {
        layer::set_rules("clReleaseProgram 1 stall 700");
        drop(Filter::new()?);
        layer::set_rules("");
        calls::try_one(case, healthy, scenario)
            .map_err(|why| format!("{}: {why}", scenario.name))?;
    }
    Ok(())
}

/// Memory that is made and dropped faster than a slow driver releases it does not pile up.
fn memory_after_a_slow_release(_: &Trace) -> Result<(), String> {
    const BUFFERS: usize = 60;
    let context = opencl::open("auto").map_err(text)?;
    let before = layer::memory();
    layer::set_rules("clReleaseMemObject 1 stall 700\nclReleaseMemObject 2+ stall 10");
    let mut most = 0;
    for _ in 0..BUFFERS {
        drop(context.device_memory(64).map_err(text)?);
        most = most.max(layer::memory() - before);
    }
    layer::set_rules("");
    drop(context);
    match most < BUFFERS as i64 / 4 {
        true => Ok(()),
        false => Err(format!("{most} memory objects are alive")),
    }
}

/// An upload belongs to the frame whose kernels wait for it, and a download to the frame whose kernels
/// wrote the memory, whenever they are made.
fn timeline_of_a_gpu(_: &Trace) -> Result<(), String> {
    layer::set_rules(GPU);
    // Both frames are written before the first one is filtered, and read after the second one.
    let meter = Meter::new(true);
    let mut filters = [Filter::counted_by(&meter)?, Filter::counted_by(&meter)?];
    for filter in &mut filters {
        let input = filter.buffers[0].make_mut();
        input.map_writable().map_err(text)?.fill(7);
    }
    let steps = || {
        let frame = meter.last_frame().ok_or("there is no timeline")?;
        let names = frame.steps.iter().map(|span| span.step.name());
        Ok::<_, String>(names.collect::<Vec<_>>())
    };
    for filter in &mut filters {
        let [input, output] = filter.frames()?;
        let done = filter.operator.run(&input, &output, &meter);
        done.and_then(|done| done.wait("a frame")).map_err(text)?;
        let seen = steps()?;
        if seen != ["upload", "kernel"] {
            return Err(format!("{seen:?} after the kernels"));
        }
    }
    for (filter, expected) in filters.iter().zip([2, 3]) {
        drop(filter.buffers[1].map_readable().map_err(text)?);
        let seen = steps()?;
        if seen != ["upload", "kernel", "download"][..expected] {
            return Err(format!("{seen:?} after a frame was read"));
        }
    }
    drop(filters);
    layer::set_rules("");
    Ok(())
}

/// The host may write a frame at once, but what it writes reaches the device only after the kernels of all elements have
/// read the frame. Each element has its own queue: here the element that read first ends last.
fn write_behind_readers(_: &Trace) -> Result<(), String> {
    const HELD: Duration = Duration::from_millis(600);
    layer::set_rules(GPU);
    let [mut slow, mut fast] = [Filter::new()?, Filter::new()?];
    let write = |filter: &mut Filter, level: u8| {
        let buffer = filter.buffers[0].make_mut();
        let bytes = buffer.map_writable();
        bytes.map(|mut bytes| bytes.fill(level)).map_err(text)
    };
    write(&mut slow, 10)?;
    let [input, output] = slow.frames()?;
    let same = fast.importer.import(&slow.buffers[0]).map_err(text)?;
    let [_, other] = fast.frames()?;
    let meter = Meter::new(false);
    let hold = format!("clEnqueueNDRangeKernel 1 hold {}", HELD.as_millis());
    layer::set_rules(&format!("{GPU}\n{hold}"));
    let held = slow.operator.run(&input, &output, &meter).map_err(text)?;
    let read = fast.operator.run(&same, &other, &meter);
    read.and_then(|read| read.wait("a frame")).map_err(text)?;
    let begun = Instant::now();
    drop((input, same));
    write(&mut slow, 20)?;
    let waited = begun.elapsed();
    held.wait("a frame").map_err(text)?;
    let of_first = slow.buffers[1].map_readable().map_err(text)?[0];
    let [input, output] = slow.frames()?;
    let again = slow.operator.run(&input, &output, &meter);
    again
        .and_then(|again| again.wait("a frame"))
        .map_err(text)?;
    let of_second = slow.buffers[1].map_readable().map_err(text)?[0];
    layer::set_rules("");
    if waited > HELD / 2 {
        return Err(format!("the host waited for {waited:?}"));
    }
    match [of_first, of_second] {
        [10, 20] => Ok(()),
        found => Err(format!("kernels have read {found:?}")),
    }
}

/// After a frame that the host has read, the transfer of the next one is enqueued behind the kernel that writes it, before the
/// host asks; after one that nobody read, it is not.
fn read_each_time(_: &Trace) -> Result<(), String> {
    layer::set_rules(GPU);
    let mut filter = Filter::new()?;
    let meter = Meter::new(false);
    let reads = || {
        let report = Report::now().unwrap_or_default();
        let calls = report.calls_since(&Report::default());
        calls.get("clEnqueueReadBuffer").copied().unwrap_or(0)
    };
    // Whether the host reads the frame, and the transfers while the kernel and the host's map are enqueued.
    let frames = [
        (true, [0, 1]),
        (true, [1, 0]),
        (true, [1, 0]),
        (false, [1, 0]),
        (false, [0, 0]),
        (true, [0, 1]),
    ];
    for (level, (is_read, expected)) in (1..).zip(frames) {
        let input = filter.buffers[0].make_mut();
        input.map_writable().map_err(text)?.fill(level);
        let [input, output] = filter.frames()?;
        let before = reads();
        let done = filter.operator.run(&input, &output, &meter);
        done.and_then(|done| done.wait("a frame")).map_err(text)?;
        let after_kernel = reads();
        if is_read {
            let bytes = filter.buffers[1].map_readable().map_err(text)?;
            if bytes.iter().any(|byte| *byte != level) {
                return Err(format!("other bytes than {level}"));
            }
        }
        let seen = [after_kernel - before, reads() - after_kernel];
        if seen != expected {
            return Err(format!("frame {level}: {seen:?} instead of {expected:?}"));
        }
    }
    drop(filter);
    layer::set_rules("");
    Ok(())
}

/// Where events wait for their release, those of memory that was made and dropped do not pile up.
fn events_are_released(_: &Trace) -> Result<(), String> {
    const BUFFERS: usize = 200;
    layer::set_rules(cases::NVIDIA.lies);
    let context = opencl::open("auto").map_err(text)?;
    let alive = || {
        let alive = Report::now().unwrap_or_default().alive();
        let events = alive.iter().find(|(kind, _)| *kind == "event");
        events.map_or(0, |(_, count)| *count)
    };
    let mut most = 0;
    for _ in 0..BUFFERS {
        let buffer = ClBuffer::new(&context, 64, &Meter::new(false)).map_err(text)?;
        buffer.read_with(|_| ()).map_err(text)?;
        most = most.max(alive());
    }
    drop(context);
    layer::set_rules("");
    match most < BUFFERS as i64 / 4 {
        true => Ok(()),
        false => Err(format!("{most} events are alive")),
    }
}

/// The download for a read, in one queue, is flushed before the host may write and the upload in the other queue waits for it.
fn flush_of_a_download(_: &Trace) -> Result<(), String> {
    layer::set_rules(GPU);
    let before = Report::now().unwrap_or_default();
    let context = opencl::open("auto").map_err(text)?;
    let buffer = ClBuffer::new(&context, 64, &Meter::new(false)).map_err(text)?;
    buffer.read_with(|_| ()).map_err(text)?;
    let write = Access {
        read: false,
        write: true,
    };
    buffer.map(write).map_err(text)?;
    let after = Report::now().unwrap_or_default();
    buffer.unmap();
    drop((buffer, context));
    layer::set_rules("");
    match after.unflushed() - before.unflushed() {
        0 => Ok(()),
        waits => Err(format!("{waits} waits for a queue that was not flushed")),
    }
}
