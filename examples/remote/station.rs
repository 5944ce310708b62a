//! The viewing station.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use gst::prelude::*;
use gst_video::prelude::*;
use gstclinspect::results::{DefectResult, Verdict};
use gstinspectpublish::address::Host;

use crate::live::{running::Running, stop::stopped};

/// Receive buffer of the socket, bytes: room for several masks of 4K frames.
const RECEIVE_BUFFER: u32 = 4 << 20;
/// Interval at which an idle station checks whether to end.
const POLL: gst::ClockTime = gst::ClockTime::from_mseconds(50);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address to listen at; 0.0.0.0 = all IPv4 addresses of this machine, :: = all
    #[arg(long, default_value = "0.0.0.0")]
    address: String,
    /// UDP port to listen at; 0 = a free one, which is printed
    #[arg(long, default_value_t = 5004)]
    port: u16,
    /// Frames to receive; 0 = until stopped
    #[arg(long, default_value_t = 0)]
    frames: u64,
    /// End after this many seconds without a frame, counted from the first frame; 0 = never
    #[arg(long, default_value_t = 0.0)]
    silence: f64,
    /// Folder for the masks of failed frames, as PNG
    #[arg(long, value_name = "DIR")]
    failed: Option<PathBuf>,
    /// Show the masks in a window
    #[arg(long)]
    display: bool,
}

/// Receives until enough frames came or frames stop coming.
///
/// # Errors
/// The error of the first element that fails, or why a picture cannot be written.
pub fn run(args: &Args) -> Result<()> {
    let silence = Duration::try_from_secs_f64(args.silence).context("--silence")?;
    if let Some(folder) = &args.failed {
        fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    }
    let display = if args.display {
        "t. ! queue leaky=downstream max-size-buffers=2 ! videoconvert ! autovideosink sync=false"
    } else {
        ""
    };
    // The caps of the mask come in the stream.
    let station = Running::new(&format!(
        "udpsrc name=network address={} port={} buffer-size={RECEIVE_BUFFER} \
         caps=application/x-rtp,media=application,clock-rate=90000,encoding-name=X-GST ! \
         rtpgstdepay ! clmaskunpack ! tee name=t ! queue ! \
         appsink name=masks sync=false {display}",
        Host::new(&args.address).map_err(anyhow::Error::msg)?.bare(),
        args.port
    ))?;
    let masks: gst_app::AppSink = station.get("masks")?;
    let network: gst::Element = station.get("network")?;
    station.start();

    let mut told = false;
    let mut received = 0;
    let mut last = None::<Instant>;
    let mut failure = Ok(());
    station.run_while(|| {
        if !told && network.current_state() >= gst::State::Paused {
            told = true;
            eprintln!("listening on port {}", network.property::<i32>("port"));
        }
        while let Some(sample) = masks.try_pull_sample(POLL) {
            failure = take(&sample, args.failed.as_deref());
            received += 1;
            last = Some(Instant::now());
            let enough = args.frames > 0 && received >= args.frames;
            if enough || failure.is_err() || stopped() {
                return false;
            }
        }
        silence.is_zero() || last.is_none_or(|last| last.elapsed() < silence)
    })?;
    failure
}

/// Prints the results of a mask, and saves the mask if its frame failed.
fn take(sample: &gst::Sample, folder: Option<&Path>) -> Result<()> {
    let buffer = sample.buffer().context("a sample without a mask")?;
    let results = DefectResult::read(buffer);
    let mut text: String = results.iter().map(ToString::to_string).collect();
    if results.is_empty() {
        text = "a mask without verdict: packets before it were lost\n".into();
    }
    std::io::stdout().write_all(text.as_bytes())?;
    let Some(folder) = folder else { return Ok(()) };
    for result in results.iter().filter(|r| r.verdict == Verdict::Fail) {
        let path = folder.join(format!("frame-{:06}.png", result.frame_number));
        picture(sample)?
            .save(&path)
            .with_context(|| format!("{}", path.display()))?;
    }
    Ok(())
}

/// The mask as a picture.
fn picture(sample: &gst::Sample) -> Result<image::GrayImage> {
    let buffer = sample.buffer().context("a sample without a mask")?;
    let caps = sample.caps().context("a sample without caps")?;
    let info = gst_video::VideoInfo::from_caps(caps)?;
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info)?;
    let stride = usize::try_from(frame.plane_stride()[0])?;
    let rows = frame.plane_data(0)?.chunks(stride);
    let (width, height) = (frame.width(), frame.height());
    let pixels = rows
        .take(height as usize)
        .flat_map(|row| row[..width as usize].to_vec())
        .collect();
    match image::GrayImage::from_raw(width, height, pixels) {
        Some(picture) => Ok(picture),
        None => bail!("a mask of {width}x{height} with fewer pixels"),
    }
}
