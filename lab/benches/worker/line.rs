//! A pipeline `appsrc ! ... ! appsink` with frames from a pool whose buffers are filled once, so that the source costs
//! nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::{Duration, Instant},
};

use clinspect_opencl::{ClAllocator, Meter, new_plain_pool, new_video_pool};
use gst::prelude::*;

use crate::{
    Error,
    operators::info_of,
    protocol::{Frame, Settings},
};

/// Bayer frames are not raw video.
const BAYER: &str = "video/x-bayer";
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

/// Time between timestamps at full speed. The interval of messages is in running time.
const FRAME_TIME: gst::ClockTime = gst::ClockTime::from_mseconds(1);

/// A frame at the sink, after its bytes are on the host if they are read.
pub struct Arrival {
    pub pts: Option<gst::ClockTime>,
    pub at: Instant,
}

/// The frames of a source.
#[derive(Clone)]
struct Frames {
    pool: gst::BufferPool,
    made: Arc<AtomicU64>,
    /// Time between timestamps.
    frame_time: gst::ClockTime,
    /// Whether to map each frame for writing, as a source that writes in place does.
    written: bool,
    /// Whether to wrap the memory anew for each frame, as cameras' elements do.
    wrapped: bool,
}

impl Frames {
    /// The next frame, and when its buffer was free.
    fn next(&self) -> Result<(gst::Buffer, Instant), Error> {
        let mut buffer = self.pool.acquire_buffer(None)?;
        let started = Instant::now();
        if self.wrapped {
            let mapped = buffer
                .into_mapped_buffer_readable()
                .map_err(|_| "unreadable")?;
            buffer = gst::Buffer::from_slice(mapped);
        }
        let frame = buffer.make_mut();
        frame.set_pts(self.frame_time * self.made.fetch_add(1, Ordering::Relaxed));
        if self.written {
            drop(frame.map_writable()?);
        }
        Ok((buffer, started))
    }
}

/// One pipeline.
pub struct Line {
    pub pipeline: gst::Pipeline,
    /// The elements between source and sink.
    pub middle: gst::Element,
    source: gst_app::AppSrc,
    frames: Frames,
    pub arrivals: Receiver<Arrival>,
    /// Counts the uploads of the pool's memory.
    pub meter: Option<Arc<Meter>>,
    /// The picture for the pool that the first element will propose.
    picture: Option<Vec<u8>>,
}

impl Line {
    /// Pipeline `number`.
    pub fn new(frame: &Frame, settings: &Settings, number: usize) -> Result<Self, Error> {
        let (caps, size) = caps_of(frame, settings)?;
        let (pool, meter) = pool(&caps, size, settings)?;
        let picture = frame.read()?;
        fill(&pool, &picture)?;
        let source = gst_app::AppSrc::builder()
            .caps(&caps)
            .format(gst::Format::Time)
            .max_buffers(WAITING)
            .max_bytes(0)
            .block(true)
            .is_live(settings.rate > 0)
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
        let chain: [gst::Element; 3] = [
            source.clone().upcast(),
            middle.clone().upcast(),
            sink.upcast(),
        ];
        pipeline.add_many(&chain)?;
        gst::Element::link_many(&chain)?;
        Ok(Self {
            pipeline,
            middle: middle.upcast(),
            source,
            frames: Frames {
                pool,
                made: Arc::default(),
                frame_time: match settings.rate {
                    0 => FRAME_TIME,
                    rate => gst::ClockTime::SECOND / rate,
                },
                written: matches!(settings.source.as_str(), "pool" | "proposed"),
                wrapped: settings.source == "wrapped",
            },
            arrivals,
            meter,
            picture: (settings.source == "proposed").then_some(picture),
        })
    }

    pub fn playing(mut self) -> Result<Self, Error> {
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
        let before = std::mem::replace(&mut self.frames.pool, pool);
        before.set_active(false)?;
        Ok(())
    }

    pub fn push(&self) -> Result<Instant, Error> {
        let (frame, started) = self.frames.next()?;
        self.source
            .push_buffer(frame)
            .map_err(|flow| format!("{flow}: {}", self.failure()))?;
        Ok(started)
    }

    /// Lets the pipeline's own thread make each frame when the source is asked for one, as a camera's element does, until
    /// `end`. Returns the number of frames.
    pub fn stream_until(&self, end: Instant) -> Result<u64, Error> {
        let (frames, first) = (
            self.frames.clone(),
            self.frames.made.load(Ordering::Relaxed),
        );
        let (sender, ended) = channel();
        let asked = move |source: &gst_app::AppSrc, _| {
            if Instant::now() < end
                && let Ok((frame, _)) = frames.next()
                && source.push_buffer(frame).is_ok()
            {
                return;
            }
            let _ = sender.send(());
        };
        let callbacks = gst_app::AppSrcCallbacks::builder().need_data(asked);
        self.source.set_callbacks(callbacks.build());
        self.push()?;
        ended
            .recv_timeout(end.saturating_duration_since(Instant::now()) + PATIENCE)
            .map_err(|_| format!("the source is not asked: {}", self.failure()))?;
        self.source
            .set_callbacks(gst_app::AppSrcCallbacks::builder().build());
        Ok(self.frames.made.load(Ordering::Relaxed) - first)
    }

    /// Pushes the first strips. From now on a strip arrives for each one that is pushed.
    pub fn begin_web(&self) -> Result<(), Error> {
        for _ in 0..STRIPS_AT_FIRST {
            self.push()?;
        }
        self.wait()?;
        while self.arrivals.recv_timeout(HELD).is_ok() {}
        Ok(())
    }

    pub fn wait(&self) -> Result<Instant, Error> {
        Ok(self.arrival()?.at)
    }

    /// The next frame at the sink.
    pub fn arrival(&self) -> Result<Arrival, Error> {
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
    pub fn run(&self, frames: u32) -> Result<(), Error> {
        for _ in 0..frames {
            self.push()?;
        }
        for _ in 0..frames {
            self.wait()?;
        }
        self.drop_messages();
        Ok(())
    }

    /// Messages would pile up.
    pub fn drop_messages(&self) {
        if let Some(bus) = self.pipeline.bus() {
            bus.set_flushing(true);
            bus.set_flushing(false);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // At this point a failure cannot be reported.
        let _ = self.pipeline.set_state(gst::State::Null);
        let _ = self.frames.pool.set_active(false);
    }
}

/// The caps of the frames, and their bytes.
fn caps_of(frame: &Frame, settings: &Settings) -> Result<(gst::Caps, usize), Error> {
    if let Some(pattern) = settings.format.strip_prefix("bayer ") {
        let caps = gst::Caps::builder(BAYER)
            .field("format", pattern)
            .field("width", i32::try_from(frame.width)?)
            .field("height", i32::try_from(frame.height)?)
            .field("framerate", gst::Fraction::new(0, 1))
            .build();
        return Ok((caps, frame.width * frame.height));
    }
    let info = match settings.format.as_str() {
        "" => info_of(frame)?,
        name => {
            let format = gst_video::VideoFormat::from_string(name);
            let (width, height) = (frame.width.try_into()?, frame.height.try_into()?);
            gst_video::VideoInfo::builder(format, width, height).build()?
        }
    };
    Ok((info.to_caps()?, info.size()))
}

/// A pool of frames, with the meter of its memory if that is device memory.
fn pool(
    caps: &gst::Caps,
    size: usize,
    settings: &Settings,
) -> Result<(gst::BufferPool, Option<Arc<Meter>>), Error> {
    let size = u32::try_from(size)?;
    let is_bayer = caps.structure(0).is_some_and(|s| s.name() == BAYER);
    let (pool, meter) = if matches!(settings.source.as_str(), "system" | "wrapped" | "proposed") {
        let pool = if is_bayer {
            gst::BufferPool::new()
        } else {
            gst_video::VideoBufferPool::new().upcast()
        };
        let mut config = pool.config();
        config.set_params(Some(caps), size, FILLED, 0);
        pool.set_config(config)?;
        (pool, None)
    } else {
        // Times cost calls of the driver: only rows whose elements take them measure the source.
        let measures = settings.pipeline.contains("profile=true");
        let meter = Meter::new(measures);
        let open = if measures {
            clinspect_opencl::open_profiled
        } else {
            clinspect_opencl::open
        };
        let allocator = ClAllocator::new(&open(&settings.device)?, &meter);
        let pool = if is_bayer {
            new_plain_pool(&allocator, caps, size, FILLED)?
        } else {
            new_video_pool(&allocator, caps, size, FILLED, false)?
        };
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
fn receive(sink: &gst_app::AppSink, sender: Sender<Arrival>, read: bool) {
    let arrived = move |sink: &gst_app::AppSink| {
        let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
        let buffer = sample.buffer().ok_or(gst::FlowError::Error)?;
        if read {
            drop(buffer.map_readable().map_err(|_| gst::FlowError::Error)?);
        }
        // The receiver is gone only after the run.
        let _ = sender.send(Arrival {
            pts: buffer.pts(),
            at: Instant::now(),
        });
        Ok(gst::FlowSuccess::Ok)
    };
    sink.set_callbacks(
        gst_app::AppSinkCallbacks::builder()
            .new_sample(arrived)
            .build(),
    );
}
