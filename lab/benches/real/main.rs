//! What the elements and their peers find on pictures that a user has downloaded.
//!
//! `lab/real` runs it. No picture is written or shown. The elements give the same bits on every device, and random
//! splits have a seed, so the tables repeat.

mod aitex;
mod boards;
mod cloth;
mod fabrics;
mod grid;
mod line;
mod marks;
mod parts;
mod peers;
mod pictures;
mod split;
mod surfaces;
mod texture;

use std::{path::PathBuf, time::Instant};

use anyhow::Result;
use clap::{Parser, Subcommand};

use cloth::Effort;
use peers::Peers;

/// Measures on real pictures, and prints the tables.
#[derive(Parser)]
#[command(name = "real")]
struct Args {
    #[command(subcommand)]
    data: DataSet,
    /// A Python with numpy and cv2; without it the peers are left out
    #[arg(long, global = true)]
    python: Option<PathBuf>,
    /// The script of the peers
    #[arg(long, global = true, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/real/peers.py"))]
    peers: PathBuf,
    /// Also print a line per fabric, and what is measured of each frame
    #[arg(long, global = true)]
    verbose: bool,
}

#[derive(Subcommand)]
enum DataSet {
    /// Woven cloth: AITEX
    Cloth {
        /// Holds Defect_images, Mask_images and NoDefect_images
        folder: PathBuf,
        #[command(flatten)]
        random: Random,
    },
    /// Boards: DeepPCB
    Boards {
        /// PCBData, which holds trainval.txt and test.txt
        folder: PathBuf,
        /// Measure the pairs on which settings may be chosen
        #[arg(long)]
        tune: bool,
    },
    /// Boards at any place and angle: cut from DeepPCB
    Parts {
        /// PCBData, which holds trainval.txt and test.txt
        folder: PathBuf,
        /// Measure the pairs on which settings may be chosen
        #[arg(long)]
        tune: bool,
        /// The element
        #[arg(
            long,
            default_value = "clreference align=any edge-tolerance=1 opening=3"
        )]
        elements: String,
    },
    /// Expanded metal at any angle: the grid of MVTec AD
    Grid {
        /// Holds N-0.png and N-1.png, a tile and its mask
        folder: PathBuf,
        #[command(flatten)]
        random: Random,
    },
    /// Surfaces without a repeat: leather, metal, drawn grain
    Surfaces {
        /// Holds a folder `good` and a folder `defective` of PNG or JPEG pictures
        folder: PathBuf,
        /// Good frames that teach
        #[arg(long, default_value_t = 32)]
        learn: usize,
        /// Cut pictures into square tiles of this side, px
        #[arg(long, default_value_t = 0)]
        tile: usize,
        /// Elements, of which the last one learns; may be given several times
        #[arg(long, default_values = ["clsurface", "clsurface channels=dark-lines", "cltexture"])]
        elements: Vec<String>,
        #[command(flatten)]
        random: Random,
    },
    /// Single photographs of cloth and mesh
    Fabrics {
        /// Holds 1.jpg to 19.jpg
        folder: PathBuf,
    },
}

#[derive(clap::Args)]
struct Random {
    /// Random choices of the frames that teach
    #[arg(long, default_value_t = 40)]
    splits: u64,
    /// Seed of the random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<()> {
    let args = Args::parse();
    gst::init()?;
    gstclinspect::register_static()?;
    let started = Instant::now();
    let peers = (args.python.as_deref())
        .map(|python| Peers::start(python, &args.peers))
        .transpose()?;
    let effort = |random: &Random| Effort {
        splits: random.splits,
        seed: random.seed,
        verbose: args.verbose,
    };
    let document = match &args.data {
        DataSet::Cloth { folder, random } => cloth::measure(folder, peers, &effort(random))?,
        DataSet::Grid { folder, random } => grid::measure(folder, peers, &effort(random))?,
        DataSet::Surfaces {
            folder,
            learn,
            tile,
            elements,
            random,
        } => {
            let settings = surfaces::Settings {
                learn: *learn,
                tile: *tile,
                elements: elements.clone(),
            };
            surfaces::measure(folder, &settings, &effort(random))?
        }
        DataSet::Fabrics { folder } => fabrics::measure(folder, peers, args.verbose)?,
        DataSet::Parts {
            folder,
            tune,
            elements,
        } => parts::measure(folder, *tune, elements, args.verbose)?,
        DataSet::Boards { folder, tune } => boards::measure(folder, peers, *tune, args.verbose)?,
    };
    eprintln!("all: {:.0} s", started.elapsed().as_secs_f64());
    print!("{document}");
    Ok(())
}
