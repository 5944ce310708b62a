//! Draws README's pictures of `inspectoverlay`.
//!
//! ```text
//! cargo run --release --example overlay_pictures -- FOLDER [PHOTOGRAPH.png]
//! ```
//!
//! Writes into FOLDER: `overlay-frame.jpg`, a panel with results as metas of the frame;
//! `overlay-mask-pad.jpg`, the same panel with masks from a separate branch; and, if a photograph
//! is given, `overlay-histogram.jpg`.

use clinspect_testkit::{self as common};
use std::{
    io::{Write, stdout},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;
use common::panel::{PanelGenerator, PanelSpec};
use gst::prelude::*;

const WIDTH: usize = 800;
const HEIGHT: usize = 450;
const DEFECTS: usize = 7;
const SEED: u64 = 5;
/// The inspection of a panel. Borders are not compared: the outermost pixels of a smoothed frame hold
/// mirrored samples.
const INSPECT: &str = "clgaussian kernel-size=5 sigma=0.8 ! clhistogram ! \
    clpitchthreshold name=inspect pitch-x=7.35 pitch-y=7.35 threshold=10 \
    merge-distance=3";
/// A colour format, because on a grey frame the overlay would be grey.
const COLOUR: &str = "videoconvert ! video/x-raw,format=RGB";
const PICTURE: &str = "videoconvert ! jpegenc quality=72 ! filesink name=file";

/// Draws README's pictures of inspectoverlay.
#[derive(Parser)]
#[command(name = "overlay_pictures")]
struct Args {
    /// Folder for the pictures; created if it is missing
    folder: PathBuf,
    /// Photograph (PNG) for the picture of a histogram
    photograph: Option<PathBuf>,
}

fn main() -> Result<()> {
    let Args { folder, photograph } = Args::parse();
    gst::init()?;
    gstclinspect::register_static()?;
    gstinspectoverlay::register_static()?;
    std::fs::create_dir_all(&folder)?;
    let spec = PanelSpec {
        width: WIDTH,
        height: HEIGHT,
        ..PanelSpec::default()
    };
    let mut generator = PanelGenerator::new(spec, SEED).map_err(|why| anyhow!(why))?;
    let panel = generator.next_random(DEFECTS).samples;

    let source = format!(
        "appsrc name=in format=time \
         caps=video/x-raw,format=GRAY8,width={WIDTH},height={HEIGHT},framerate=1/1"
    );
    let line = format!("{source} ! {INSPECT} output=frame ! {COLOUR} ! inspectoverlay ! {PICTURE}");
    make(
        &line,
        &folder.join("overlay-frame.jpg"),
        Input::Frame(&panel),
    )?;

    let line = format!(
        "{source} ! tee name=t  \
         t. ! queue ! {COLOUR} ! inspectoverlay name=o verdict-position=bottom \
         histogram-corner=top-left tint-color=0xb030d0ff box-color=0xff30d0ff ! {PICTURE}  \
         t. ! queue ! {INSPECT} ! o.mask"
    );
    make(
        &line,
        &folder.join("overlay-mask-pad.jpg"),
        Input::Frame(&panel),
    )?;

    if let Some(photograph) = photograph {
        let line = format!(
            "filesrc name=in ! pngdec ! videoconvert ! video/x-raw,format=RGB ! clhistogram ! \
             inspectoverlay histogram-corner=bottom-left ! {PICTURE}"
        );
        let picture = folder.join("overlay-histogram.jpg");
        make(&line, &picture, Input::File(&photograph))?;
    }
    Ok(())
}

/// Input of a pipeline's element `in`.
enum Input<'a> {
    /// The bytes of a frame.
    Frame(&'a [u8]),
    File(&'a Path),
}

/// Runs a pipeline that writes a picture, to its end.
fn make(line: &str, picture: &Path, input: Input) -> Result<()> {
    let pipeline = gst::parse::launch(line)?.downcast::<gst::Pipeline>();
    let pipeline = pipeline.map_err(|_| anyhow!("this is not a pipeline: {line}"))?;
    let source = pipeline.by_name("in").context("no source")?;
    let file = pipeline.by_name("file").context("no sink")?;
    file.set_property("location", picture);
    if let Input::File(path) = input {
        source.set_property("location", path);
    }
    pipeline.set_state(gst::State::Playing)?;
    if let Input::Frame(frame) = input {
        let source = source.downcast::<gst_app::AppSrc>();
        let source = source.map_err(|_| anyhow!("the source is not an appsrc"))?;
        let mut buffer = gst::Buffer::from_slice(frame.to_vec());
        let fields = buffer.make_mut();
        fields.set_pts(gst::ClockTime::ZERO);
        fields.set_duration(gst::ClockTime::SECOND);
        fields.set_offset(0);
        source.push_buffer(buffer)?;
        source.end_of_stream()?;
    }
    let ends = [gst::MessageType::Eos, gst::MessageType::Error];
    let bus = pipeline.bus().context("a pipeline has a bus")?;
    let end = bus.timed_pop_filtered(gst::ClockTime::from_seconds(120), &ends);
    pipeline.set_state(gst::State::Null)?;
    match end.context("the pipeline does not end")?.view() {
        gst::MessageView::Error(error) => bail!("{}", error.error().message()),
        _ => {
            writeln!(stdout(), "{}", picture.display())?;
            Ok(())
        }
    }
}
