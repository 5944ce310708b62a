//! Embeds the elements in an application. The application makes the frames, in memory that the
//! device reads without a copy, and takes results as typed values, from metas and from the bus.
//!
//! ```text
//! cargo run --release --example embed
//! ```
//!
//! No plugin needs to be installed: the elements are linked into the program.

use std::io::{Write, stdout};

use anyhow::{Context, Result, bail};
use clap::Parser;
use gst::prelude::*;
use gst_video::prelude::*;
use gstclinspect::results::{DefectResult, HistogramResult};

const FRAMES: u64 = 12;
const FRAME_DURATION: gst::ClockTime = gst::ClockTime::from_mseconds(40);
const WIDTH: u32 = 320;
const HEIGHT: u32 = 240;
/// Pixels after which the pattern repeats.
const PITCH: usize = 16;
/// One frame in this many has a defect.
const DEFECT_EVERY: u64 = 5;

/// Embeds the elements in an application that makes the frames in memory of the device.
#[derive(Parser)]
#[command(name = "embed")]
struct Args {}

/// A grid of bright squares; some frames have a dark spot.
fn draw(buffer: &mut gst::BufferRef, info: &gst_video::VideoInfo, number: u64) -> Result<()> {
    let mut frame = gst_video::VideoFrameRef::from_buffer_ref_writable(buffer, info)?;
    let stride = usize::try_from(frame.plane_stride()[0])?;
    let rows = frame.plane_data_mut(0)?.chunks_mut(stride);
    for (y, row) in rows.take(HEIGHT as usize).enumerate() {
        for (x, pixel) in row.iter_mut().take(WIDTH as usize).enumerate() {
            let bright = x % PITCH < PITCH / 2 && y % PITCH < PITCH / 2;
            let spot = number % DEFECT_EVERY == DEFECT_EVERY - 1
                && (100..106).contains(&x)
                && (80..84).contains(&y);
            *pixel = match (spot, bright) {
                (true, _) => 20,
                (false, true) => 200,
                (false, false) => 60,
            };
        }
    }
    Ok(())
}

/// Frame `number` in a buffer of the pool that the elements offer.
fn frame(
    appsrc: &gst_app::AppSrc,
    info: &gst_video::VideoInfo,
    number: u64,
) -> Result<gst::Buffer> {
    let mut buffer = match gstclinspect::downstream_pool(appsrc, &info.to_caps()?) {
        Some(pool) => pool.acquire_buffer(None)?,
        None => gst::Buffer::with_size(info.size())?,
    };
    let fields = buffer.make_mut();
    draw(fields, info, number)?;
    fields.set_pts(FRAME_DURATION * number);
    fields.set_duration(FRAME_DURATION);
    // Metas and messages use the offset as the frame's number.
    fields.set_offset(number);
    Ok(buffer)
}

fn main() -> Result<()> {
    Args::parse();
    gst::init()?;
    gstclinspect::register_static()?;
    let format = gst_video::VideoFormat::Gray8;
    let info = gst_video::VideoInfo::builder(format, WIDTH, HEIGHT).build()?;
    let pipeline = gst::parse::launch(
        "appsrc name=frames format=time ! clhistogram name=histogram reports=reports,interval=0 ! clpitchthreshold \
         output=frame reports=reports,interval=0 ! appsink name=results sync=false",
    )?;
    let pipeline = pipeline
        .downcast::<gst::Pipeline>()
        .ok()
        .context("no pipeline")?;
    let element = |name: &str| pipeline.by_name(name).context("an element of the pipeline");
    let appsrc = element("frames")?
        .downcast::<gst_app::AppSrc>()
        .ok()
        .context("no appsrc")?;
    let results = element("results")?
        .downcast::<gst_app::AppSink>()
        .ok()
        .context("no appsink")?;

    appsrc.set_caps(Some(&info.to_caps()?));
    let mut next = 0;
    let callbacks = gst_app::AppSrcCallbacks::builder().need_data(move |appsrc, _| {
        if next == FRAMES {
            let _ = appsrc.end_of_stream();
            return;
        }
        match frame(appsrc, &info, next) {
            // Refused only while the pipeline stops; the frame is not needed then.
            Ok(buffer) => _ = appsrc.push_buffer(buffer),
            Err(why) => gst::element_error!(appsrc, gst::ResourceError::Failed, ("{why:#}")),
        }
        next += 1;
    });
    appsrc.set_callbacks(callbacks.build());

    let bus = pipeline.bus().context("a pipeline has a bus")?;
    // The bus also has errors from before the first frame.
    let started = pipeline.set_state(gst::State::Playing);
    if started.is_ok() {
        // If this thread is slow, the source waits: no frame is lost.
        while let Ok(sample) = results.pull_sample() {
            report(sample.buffer().context("a sample without a frame")?)?;
        }
    }
    let mut failed = None;
    for message in bus.iter() {
        match message.view() {
            gst::MessageView::Element(element) => told(element.structure()),
            gst::MessageView::Error(error) => failed = Some(error.error().to_string()),
            _ => {}
        }
    }
    let stats: gst::Structure = element("histogram")?.property("stats");
    pipeline.set_state(gst::State::Null)?;
    if let Some(failed) = failed {
        bail!("{failed}");
    }
    writeln!(
        stdout(),
        "{} frames, {} of them in memory of the device, {} copied",
        stats.get::<u64>("frames")?,
        stats.get::<u64>("frames-zero-copy")?,
        stats.get::<u64>("frames-copied")?
    )?;
    Ok(())
}

/// A frame's results, from the metas on it.
fn report(buffer: &gst::BufferRef) -> Result<()> {
    for histogram in HistogramResult::read(buffer) {
        let Some(grey) = histogram.statistics.first() else {
            continue;
        };
        writeln!(
            stdout(),
            "frame {}: median {}, mean {:.2}",
            histogram.frame_number,
            grey.median,
            grey.mean
        )?;
    }
    for result in DefectResult::read(buffer) {
        writeln!(
            stdout(),
            "frame {}: {}",
            result.frame_number,
            result.verdict.name()
        )?;
        for defect in &result.defects {
            writeln!(
                stdout(),
                "  {} of {}x{} px at {}: difference {:.1}",
                result.class_name(defect.class),
                defect.width,
                defect.height,
                result.position(defect),
                defect.mean_difference
            )?;
        }
    }
    Ok(())
}

/// A message of the elements. The bus carries verdicts too, for applications that see no buffers.
fn told(message: Option<&gst::StructureRef>) {
    let Some(message) = message.filter(|m| m.name() == "clpitchthreshold") else {
        return;
    };
    if let (Ok(number), Ok("fail")) = (message.get::<u64>("frame-number"), message.get("verdict")) {
        // A reader that has left, as `head` does, is found out by the next result.
        let _ = writeln!(stdout(), "bus: frame {number} failed");
    }
}
