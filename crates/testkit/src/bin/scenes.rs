//! Draws simulated scenes into PNG files, which `scripts/demo` inspects.

use std::{fmt::Write, fs, path::PathBuf};

use anyhow::Result;
use clap::{Parser, ValueEnum};
use clinspect_testkit::{
    cloth::{ClothRoller, ClothSpec},
    label::LabelSpec,
    panel::PanelSpec,
    planted::Planted,
    scenes::{self, Sequence},
};

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Scene {
    /// Display panels, as an area camera sees them
    Panel,
    /// Printed labels
    Label,
    /// A woven web, as a line camera sees it: each file is a strip
    Web,
}

/// Draws a simulated scene into PNG files; planted.txt names the defects.
#[derive(Debug, Parser)]
#[command(name = "scenes")]
struct Args {
    scene: Scene,
    /// Folder for the files
    folder: PathBuf,
    /// Files to draw
    #[arg(long, value_name = "N", default_value_t = 60)]
    frames: usize,
    /// Good panels or labels before those of which every third has eight defects
    #[arg(long, value_name = "N", default_value_t = 0)]
    good: usize,
    /// Rows of a strip of the web
    #[arg(long, value_name = "N", default_value_t = 1024)]
    rows: usize,
    /// Circumference of a damaged roller that leaves a knot on the web each turn, rows; the web has no other defects
    #[arg(long, value_name = "ROWS")]
    roller: Option<f64>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let sequence = Sequence {
        frames: args.frames,
        good: args.good,
        ..Sequence::default()
    };
    let planted = match args.scene {
        Scene::Panel => text(&scenes::panels(
            &args.folder,
            PanelSpec::default(),
            sequence,
        )?)?,
        Scene::Label => text(&scenes::labels(
            &args.folder,
            LabelSpec::default(),
            sequence,
        )?)?,
        Scene::Web => {
            let roller = args.roller.map(|period_px| ClothRoller {
                period_px,
                across: 0.85,
            });
            let spec = ClothSpec {
                // Their kinds come again in each section of the drawn web.
                defects: roller.is_none(),
                roller,
                ..ClothSpec::default()
            };
            scenes::web(&args.folder, spec, sequence.seed, args.frames, args.rows)?;
            let planted = spec.planted(sequence.seed, 0..(args.frames * args.rows) as u64);
            let lines = planted.iter().map(|defect| {
                let (kind, x, y) = (defect.kind.name(), defect.left, defect.top);
                format!(
                    "row {y}, column {x}: {kind} of {}x{} px\n",
                    defect.width, defect.height
                )
            });
            lines.collect()
        }
    };
    fs::write(args.folder.join("planted.txt"), planted)?;
    Ok(())
}

fn text(frames: &[Vec<Planted<&str>>]) -> Result<String> {
    let mut text = String::new();
    for (number, frame) in frames.iter().enumerate() {
        for defect in frame {
            let (file, kind) = (scenes::file_name(number), defect.kind);
            writeln!(text, "{file}: {kind} at {:.1},{:.1}", defect.x, defect.y)?;
        }
    }
    Ok(text)
}
