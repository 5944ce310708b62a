//! The inspection node.

use std::io::Write;

use anyhow::{Context, Result};
use gst::prelude::*;
use gstclinspect::results::DefectResult;
use gstinspectpublish::address::Host;

use crate::live::{
    running::Running,
    source::{INSPECTION, frames_of},
};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// test, aravis (GigE Vision, USB3 Vision), v4l2, or a gst-launch description without a sink
    #[arg(long, default_value = "test")]
    source: String,
    /// Properties of clpitchthreshold, as in gst-launch
    #[arg(long, default_value = INSPECTION)]
    inspection: String,
    /// Name or address of the station
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// UDP port of the station
    #[arg(long, default_value_t = 5004)]
    port: u16,
    /// Frames to inspect; 0 = until stopped
    #[arg(long, default_value_t = 0)]
    frames: u32,
}

/// Inspects until the source ends.
///
/// # Errors
/// The error of the first element that fails.
pub fn run(args: &Args) -> Result<()> {
    let end = match args.frames {
        0 => String::new(),
        // identity does not pass the frame at which it ends the stream, hence + 1.
        frames => format!("identity eos-after={} !", u64::from(frames) + 1),
    };
    let node = Running::new(&format!(
        "{} ! {end} clpitchthreshold name=inspect {} reports=reports,events=true ! \
         video/x-bitmask ! rtpgstpay config-interval=1 ! \
         udpsink name=network host={} port={} async=false",
        frames_of(&args.source),
        args.inspection,
        Host::new(&args.host).map_err(anyhow::Error::msg)?.bare(),
        args.port
    ))?;
    let inspect: gst::Element = node.get("inspect")?;
    let pad = inspect.static_pad("src").context("a filter has a source")?;
    pad.add_probe(gst::PadProbeType::BUFFER, |_, info| {
        for result in info
            .buffer()
            .into_iter()
            .flat_map(|b| DefectResult::read(b))
        {
            // The inspection continues even if the output cannot be written.
            let _ = write!(std::io::stdout(), "{result}");
        }
        gst::PadProbeReturn::Ok
    });
    node.start();
    node.run_while(|| true)
}
