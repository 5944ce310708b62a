//! Prints the defects of every frame, read from the meta that `clpitchthreshold` attaches.
//!
//! ```text
//! cargo run --release --example print_defects
//! cargo run --release --example print_defects -- \
//!     v4l2src ! videoconvert ! clpitchthreshold output=frame
//! ```
//!
//! The arguments are a pipeline as for `gst-launch-1.0`, without a sink. Its frames must carry a
//! `GstClDefectMeta`, which `clpitchthreshold` attaches (`output=frame` keeps the picture). Without
//! arguments the program inspects a chessboard with one spot. The elements are linked into this
//! program; `print_defects.py` does the same in Python.

use std::io::{Write, stdout};

use anyhow::{Context, Result, bail};
use clap::Parser;
use clinspect_testkit::live;
use gstclinspect::results::DefectResult;

use live::frames::Frames;

/// A chessboard of squares of 8 px with a bright spot on a dark square.
const PATTERN: &str = "compositor name=mix sink_1::xpos=170 sink_1::ypos=122 ! \
    video/x-raw,format=I420,width=320,height=240,framerate=30/1 ! \
    clpitchthreshold name=inspect output=frame \
    videotestsrc num-buffers=3 pattern=checkers-8 ! \
    video/x-raw,format=I420,width=320,height=240,framerate=30/1 ! mix. \
    videotestsrc num-buffers=3 pattern=white ! \
    video/x-raw,format=I420,width=6,height=4,framerate=30/1 ! mix.";

/// Prints the defects of every frame.
#[derive(Parser)]
#[command(name = "print_defects")]
struct Args {
    /// Pipeline as for gst-launch-1.0, without a sink; its frames must carry a GstClDefectMeta
    /// [default: a chessboard with one spot]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pipeline: Vec<String>,
}

fn main() -> Result<()> {
    let mut description = Args::parse().pipeline.join(" ");
    gst::init()?;
    gstclinspect::register_static()?;
    if description.is_empty() {
        description = PATTERN.into();
    }
    let frames = Frames::of(&description)?;
    while let Some(sample) = frames.next() {
        let buffer = sample.buffer().context("a sample without a frame")?;
        let results = DefectResult::read(buffer);
        if results.is_empty() {
            bail!("a frame carries no GstClDefectMeta: put clpitchthreshold into the pipeline");
        }
        for result in &results {
            write!(stdout(), "{result}")?;
        }
    }
    frames.close()
}
