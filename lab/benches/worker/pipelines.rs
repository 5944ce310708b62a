//! Whole pipelines: `appsrc ! ... ! appsink` with frames from a pool whose buffers are filled once,
//! so that the source costs nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::{Duration, Instant},
};

use clinspect_opencl::{ClAllocator, Meter, Step, new_video_pool};
use gst::prelude::*;
use serde_json::{Map, Value, json};

use crate::{
    Contestant, Error,
    operators::info_of,
    protocol::{Frame, Settings, Times},
    skip,
};

/// Longest wait for a frame.
const PATIENCE: Duration = Duration::from_secs(60);
/// Buffers filled before the first frame: more than a pipeline without queues holds.
const FILLED: u32 = 8;
/// Strips that a web gets before the first run: more than the elements hold.
const STRIPS_AT_FIRST: u32 = 8;
/// No strip arrives for this long: the others are held.
const HELD: Duration = Duration::from_secs(2);
/// Frames that wait in the source; more would only add latency.
const WAITING: u64 = 3;

/// Time between timestamps. The interval of messages is in running time.
const FRAME_TIME: gst::ClockTime = gst::ClockTime::from_mseconds(1);

/// One pipeline, playing.
struct Line {
    pipeline: gst::Pipeline,
    source: gst_app::AppSrc,
    arrivals: Receiver<Instant>,
    pool: gst::BufferPool,
    pushed: AtomicU64,
    /// Whether to map each frame for writing, as a source that writes in place does.
    written: bool,
    /// Whether to wrap the memory anew for each frame, as cameras' elements do.
    wrapped: bool,
    /// Counts the uploads of the pool's memory.
    meter: Option<Arc<Meter>>,
    /// The picture for the pool that the first element will propose.
    picture: Option<Vec<u8>>,
}

struct Pipelines {
    lines: Vec<Line>,
    latency: bool,
}

/// Pipelines that each live for one frame.
struct Starts {
    frame: Frame,
    settings: Settings,
}

pub fn prepare(frame: &Frame, settings: &Settings) -> Result<Box<dyn Contestant>, Error> {
    for word in settings
        .pipeline
        .split(['!', ' '])
        .filter(|w| !w.is_empty())
    {
        if !word.contains('=') && gst::ElementFactory::find(word).is_none() {
            return Err(skip(format!("GStreamer has no element {word} here")));
        }
    }
    if settings.start {
        return Ok(Box::new(Starts {
            frame: frame.clone(),
            settings: settings.clone(),
        }));
    }
    if settings.gpus > 0 {
        let gpus = clinspect_opencl::devices()?
            .iter()
            .filter(|d| d.is_gpu)
            .count();
        if gpus < settings.gpus {
            return Err(skip(format!("the machine has {gpus} GPUs")));
        }
    }
    let lines = (0..settings.pipelines.max(1))
        .map(|number| Line::new(frame, settings, number).and_then(Line::playing))
        .collect::<Result<Vec<_>, _>>()?;
    if settings.web {
        lines.iter().try_for_each(Line::begin_web)?;
    } else if settings.source == "proposed" {
        // The frame before the proposal.
        lines.iter().try_for_each(|line| line.wait().map(drop))?;
    }
    Ok(Box::new(Pipelines {
        lines,
        latency: settings.latency,
    }))
}

impl Line {
    /// Pipeline `number`.
    fn new(frame: &Frame, settings: &Settings, number: usize) -> Result<Self, Error> {
        let info = match settings.format.as_str() {
            "" => info_of(frame)?,
            name => {
                let format = gst_video::VideoFormat::from_string(name);
                let (width, height) = (frame.width.try_into()?, frame.height.try_into()?);
                gst_video::VideoInfo::builder(format, width, height).build()?
            }
        };
        let caps = info.to_caps()?;
        let (pool, meter) = pool(&info, &caps, settings)?;
        let picture = frame.read()?;
        fill(&pool, &picture)?;
        let source = gst_app::AppSrc::builder()
            .caps(&caps)
            .format(gst::Format::Time)
            .max_buffers(WAITING)
            .max_bytes(0)
            .block(true)
            .build();
        let sink = gst_app::AppSink::builder().sync(false).build();
        let (sender, arrivals) = channel();
        receive(&sink, sender, settings.variant == "read");
        let middle = gst::parse::bin_from_description(&settings.pipeline, true)?;
        if settings.gpus > 0 {
            let device = format!("gpu:{}", number % settings.gpus);
            for element in middle.iterate_elements().into_iter().flatten() {
                element.set_property("device", &device);
            }
        }
        let pipeline = gst::Pipeline::new();
        let chain: [gst::Element; 3] = [source.clone().upcast(), middle.upcast(), sink.upcast()];
        pipeline.add_many(&chain)?;
        gst::Element::link_many(&chain)?;
        Ok(Self {
            pipeline,
            source,
            arrivals,
            pool,
            pushed: AtomicU64::new(0),
            written: matches!(settings.source.as_str(), "pool" | "proposed"),
            wrapped: settings.source == "wrapped",
            meter,
            picture: (settings.source == "proposed").then_some(picture),
        })
    }

    fn playing(mut self) -> Result<Self, Error> {
        self.pipeline.set_state(gst::State::Playing)?;
        if let Some(picture) = self.picture.take() {
            self.take_proposed_pool(&picture)?;
        }
        Ok(self)
    }

    /// Replaces the pool by the one that the first element proposes, after a first frame.
    fn take_proposed_pool(&mut self, picture: &[u8]) -> Result<(), Error> {
        self.push()?;
        let caps = self.source.caps().ok_or("the source has no caps")?;
        let pad = self.source.static_pad("src").ok_or("no source pad")?;
        let until = Instant::now() + PATIENCE;
        // Elements propose a pool once they have the caps.
        let (pool, size) = loop {
            let mut query = gst::query::Allocation::new(Some(&caps), true);
            let answers = pad.peer_query(&mut query);
            if let Some((Some(pool), size, ..)) = query.allocation_pools().next()
                && answers
            {
                break (pool, size);
            }
            if Instant::now() > until {
                return Err(format!("no pool is proposed: {}", self.failure()).into());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut config = pool.config();
        config.set_params(Some(&caps), size, FILLED, 0);
        pool.set_config(config)?;
        pool.set_active(true)?;
        fill(&pool, picture)?;
        let before = std::mem::replace(&mut self.pool, pool);
        before.set_active(false)?;
        Ok(())
    }

    fn push(&self) -> Result<Instant, Error> {
        let mut buffer = self.pool.acquire_buffer(None)?;
        let started = Instant::now();
        if self.wrapped {
            let mapped = buffer
                .into_mapped_buffer_readable()
                .map_err(|_| "unreadable")?;
            buffer = gst::Buffer::from_slice(mapped);
        }
        let frame = buffer.make_mut();
        frame.set_pts(FRAME_TIME * self.pushed.fetch_add(1, Ordering::Relaxed));
        if self.written {
            drop(frame.map_writable()?);
        }
        self.source
            .push_buffer(buffer)
            .map_err(|flow| format!("{flow}: {}", self.failure()))?;
        Ok(started)
    }

    /// Pushes the first strips. From now on a strip arrives for each one that is pushed.
    fn begin_web(&self) -> Result<(), Error> {
        for _ in 0..STRIPS_AT_FIRST {
            self.push()?;
        }
        self.wait()?;
        while self.arrivals.recv_timeout(HELD).is_ok() {}
        Ok(())
    }

    fn wait(&self) -> Result<Instant, Error> {
        self.arrivals
            .recv_timeout(PATIENCE)
            .map_err(|_| format!("no frame arrives: {}", self.failure()).into())
    }

    /// The pipeline's error, if any.
    fn failure(&self) -> String {
        let message = self
            .pipeline
            .bus()
            .and_then(|bus| bus.pop_filtered(&[gst::MessageType::Error]));
        message.map_or_else(|| "no error was posted".into(), |m| format!("{m:?}"))
    }

    /// Pushes frames; returns when the last one has arrived.
    fn run(&self, frames: u32) -> Result<(), Error> {
        for _ in 0..frames {
            self.push()?;
        }
        for _ in 0..frames {
            self.wait()?;
        }
        // Drop the messages, which would pile up.
        if let Some(bus) = self.pipeline.bus() {
            bus.set_flushing(true);
            bus.set_flushing(false);
        }
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // At this point a failure cannot be reported.
        let _ = self.pipeline.set_state(gst::State::Null);
        let _ = self.pool.set_active(false);
    }
}

/// A pool of frames, with the meter of its memory if that is device memory.
fn pool(
    info: &gst_video::VideoInfo,
    caps: &gst::Caps,
    settings: &Settings,
) -> Result<(gst::BufferPool, Option<Arc<Meter>>), Error> {
    let size = u32::try_from(info.size())?;
    let (pool, meter) = if matches!(settings.source.as_str(), "system" | "wrapped" | "proposed") {
        let pool = gst_video::VideoBufferPool::new().upcast::<gst::BufferPool>();
        let mut config = pool.config();
        config.set_params(Some(caps), size, FILLED, 0);
        pool.set_config(config)?;
        (pool, None)
    } else {
        let meter = Meter::new(true);
        let allocator = ClAllocator::new(&clinspect_opencl::open(&settings.device)?, &meter);
        let pool = new_video_pool(&allocator, caps, size, FILLED, false)?;
        (pool, Some(meter))
    };
    pool.set_active(true)?;
    Ok((pool, meter))
}

/// Fills the pool's buffers; later frames keep that content.
fn fill(pool: &gst::BufferPool, picture: &[u8]) -> Result<(), Error> {
    let mut buffers = Vec::new();
    for _ in 0..FILLED {
        let mut buffer = pool.acquire_buffer(None)?;
        for part in buffer.make_mut().map_writable()?.chunks_mut(picture.len()) {
            part.copy_from_slice(&picture[..part.len()]);
        }
        buffers.push(buffer);
    }
    Ok(())
}

/// Reports each frame's arrival, after its bytes are on the host if `read`.
fn receive(sink: &gst_app::AppSink, sender: Sender<Instant>, read: bool) {
    let arrived = move |sink: &gst_app::AppSink| {
        let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
        let buffer = sample.buffer().ok_or(gst::FlowError::Error)?;
        if read {
            drop(buffer.map_readable().map_err(|_| gst::FlowError::Error)?);
        }
        // The receiver is gone only after the run.
        let _ = sender.send(Instant::now());
        Ok(gst::FlowSuccess::Ok)
    };
    sink.set_callbacks(
        gst_app::AppSinkCallbacks::builder()
            .new_sample(arrived)
            .build(),
    );
}

impl Contestant for Starts {
    fn run(&mut self) -> Result<Times, Error> {
        let line = Line::new(&self.frame, &self.settings, 0)?;
        let started = Instant::now();
        let line = line.playing()?;
        line.push()?;
        Ok(Times {
            wall_ns: (line.wait()? - started).as_nanos() as u64,
            device_ns: 0,
        })
    }

    fn result(&mut self) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }
}

impl Contestant for Pipelines {
    fn run(&mut self) -> Result<Times, Error> {
        let times = self.run_many(1)?;
        times
            .into_iter()
            .next()
            .ok_or_else(|| "the run has no time".into())
    }

    /// Latency runs: the time of each frame; other runs: the mean time per frame.
    fn run_many(&mut self, times: u32) -> Result<Vec<Times>, Error> {
        let time = |wall_ns| Times {
            wall_ns,
            device_ns: 0,
        };
        if self.latency {
            let line = self.lines.first().ok_or("there is no pipeline")?;
            return (0..times)
                .map(|_| {
                    let pushed = line.push()?;
                    Ok(time((line.wait()? - pushed).as_nanos() as u64))
                })
                .collect();
        }
        let started = Instant::now();
        let done: Result<Vec<()>, String> = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .lines
                .iter_mut()
                .map(|line| scope.spawn(move || line.run(times).map_err(|e| e.to_string())))
                .collect();
            threads
                .into_iter()
                .map(|t| t.join().unwrap_or_else(|_| Err("a thread panicked".into())))
                .collect()
        });
        done?;
        let frames = u64::from(times) * self.lines.len() as u64;
        Ok(vec![time(started.elapsed().as_nanos() as u64 / frames)])
    }

    fn result(&mut self) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }

    /// By element: the rate of each step, MB/s, and how frames reached the device.
    fn about(&self) -> Value {
        let mut about = Map::new();
        let Some(line) = self.lines.first() else {
            return Value::Null;
        };
        if let Some(steps) = line.meter.as_ref().and_then(|meter| meter.steps()) {
            let upload = steps.iter().find(|(step, _)| *step == Step::Upload);
            let rate = upload.map_or(0.0, |(_, profile)| profile.mean_rate());
            about.insert("source".into(), json!({"upload": rate.round()}));
        }
        for element in line.pipeline.iterate_recurse().into_iter().flatten() {
            if element.find_property("stats").is_none() {
                continue;
            }
            let Ok(stats) = element.property_value("stats").get::<gst::Structure>() else {
                continue;
            };
            let mut fields = Map::new();
            for step in Step::ALL {
                let name = step.name();
                if let Ok(rate) = stats.get::<f64>(format!("{name}-mean-mbps")) {
                    fields.insert(name.into(), json!(rate.round()));
                }
                if let Ok(ns) = stats.get::<u64>(format!("{name}-mean-ns")) {
                    fields.insert(format!("{name}-ns"), json!(ns));
                }
            }
            for way in ["zero-copy", "wrapped", "copied"] {
                if let Ok(frames) = stats.get::<u64>(format!("frames-{way}")) {
                    fields.insert(way.into(), json!(frames));
                }
            }
            let name = element.factory().map(|f| f.name().to_string());
            // GStreamer's sinks have a property of this name too.
            if let Some(name) = name.filter(|name| name.starts_with("cl")) {
                about.insert(name, Value::Object(fields));
            }
        }
        Value::Object(about)
    }
}
