//! An inspection node at the line and a viewing station elsewhere, over RTP.
//!
//! ```text
//! cargo run --release --example remote -- station --port 5004
//! cargo run --release --example remote -- node --host 192.0.2.7 --port 5004
//! ```
//!
//! The node inspects and sends packed masks (an eighth of a byte per pixel). RTP drops metas, so
//! the node sends verdict and defects as events (`reports`, field `events`), which `clmaskunpack` turns into
//! metas again. Start both in any order and restart either: the node repeats its caps every second.
//!
//! A lost packet costs its mask and the verdict of the next mask, because after a gap the last event may
//! belong to the lost mask. The station reports the missing verdict.

use clinspect_testkit::live;
mod node;
mod station;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(
    name = "remote",
    about = "An inspection node and a viewing station over RTP"
)]
struct Args {
    #[command(subcommand)]
    side: Side,
}

#[derive(Debug, Subcommand)]
enum Side {
    /// Inspects frames, prints the results, and sends masks with verdict and defects
    Node(node::Args),
    /// Receives masks and results, prints the results, and shows or saves the masks
    Station(station::Args),
}

fn main() -> Result<()> {
    let args = Args::parse();
    gst::init()?;
    gstclinspect::register_static()?;
    live::stop::on_ctrl_c()?;
    match args.side {
        Side::Node(args) => node::run(&args),
        Side::Station(args) => station::run(&args),
    }
}
