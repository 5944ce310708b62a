//! `clinspect-station try`: a recipe is tested like code, on frames that people have judged.

mod before;

use std::{
    fmt::Write as _,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clinspect_results::report::ReportedDefect;
use config::{
    file::Config,
    recipes::{RecipeContent, Recipes},
};
use plan::CameraConfig;
use run::{
    recorded::Label,
    trial::{
        Row, Table,
        folder::{self, FolderFrame},
        table_of,
    },
};
use serde_json::{Value, json};

use crate::{CANNOT_RUN, start_gstreamer};
use before::EarlierVerdicts;

/// Judges frames in a folder with a recipe.
///
/// FOLDER has folders good and failed with pictures, or recordings of failed frames with what people said about them, or a
/// folder of either kind for each camera. The first run keeps its table in FOLDER/.clinspect-try.json. Later runs compare
/// with it, and exit with 1 if a good frame fails, or a failed frame passes, that did not before.
#[derive(clap::Args)]
pub struct Args {
    /// The recipe's file
    recipe: PathBuf,
    /// The folder with the frames
    #[arg(long, value_name = "FOLDER")]
    frames: PathBuf,
    /// Only this camera
    #[arg(long)]
    camera: Option<String>,
    /// The station's configuration, whose settings hold where the recipe says nothing
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Prints the table as JSON
    #[arg(long)]
    json: bool,
    /// Keeps this table as the one that later runs compare with
    #[arg(long)]
    accept: bool,
}

/// Prints the table. Exits with 1 if a frame is judged wrong that was not before, and with 2 if the frames cannot be judged.
pub fn run(args: &Args) -> ExitCode {
    match tried(args) {
        Ok((text, is_good)) => {
            // A reader that has left is no failure.
            let _ = write!(io::stdout(), "{text}");
            match is_good {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            }
        }
        Err(why) => {
            let _ = writeln!(io::stderr(), "{why:#}");
            CANNOT_RUN.into()
        }
    }
}

/// A camera's frames as they were judged.
struct CameraTable {
    camera: String,
    table: Table,
}

/// What is printed, and whether nothing is worse than before.
fn tried(args: &Args) -> anyhow::Result<(String, bool)> {
    start_gstreamer()?;
    let RecipeContent { id, cameras, .. } = read(args)?;
    let mut judged = Vec::new();
    for (camera, found) in frames(args, &cameras)? {
        let labels: Vec<Label> = found.iter().map(FolderFrame::label).collect();
        let mut load = |at: usize| match found.get(at) {
            Some(found) => found.load(),
            None => Err("no frame".to_owned()),
        };
        let table = table_of(camera, &labels, &mut load, &mut |_| true);
        let table = table.map_err(anyhow::Error::msg);
        judged.push(CameraTable {
            camera: camera.name.clone(),
            table: table.with_context(|| format!("camera {}", camera.name))?,
        });
    }
    let mut before = EarlierVerdicts::read(&args.frames)?;
    let is_good = judged.iter().all(|of| {
        let mut rows = of.table.rows.iter();
        !rows.any(|row| before.is_news(&of.camera, row))
    });
    let text = match args.json {
        true => {
            let cameras = judged.iter().map(|of| of.json(&before));
            let cameras: Value = cameras.collect();
            format!(
                "{:#}\n",
                json!({ "recipe": id, "cameras": cameras, "is_good": is_good })
            )
        }
        false => judged.iter().map(|of| of.text(&before)).collect(),
    };
    for of in &judged {
        before.take(&of.camera, &of.table, args.accept);
    }
    match before.write(&args.frames, &id) {
        Err(why) if args.accept => {
            return Err(why).context("the table cannot be kept");
        }
        Err(why) => {
            let _ = writeln!(
                io::stderr(),
                "note: the table is not kept for later runs: {why}"
            );
        }
        Ok(()) => {}
    }
    Ok((text, is_good || args.accept))
}

fn read(args: &Args) -> anyhow::Result<RecipeContent> {
    let of_file = |path: &Path, mistakes: Vec<_>| {
        let lines: Vec<String> = (mistakes.iter())
            .map(|mistake| format!("{}:{mistake}", path.display()))
            .collect();
        anyhow::Error::msg(lines.join("\n"))
    };
    let bases = match &args.config {
        None => None,
        Some(file) => {
            let config = Config::read_at_start(file);
            Some(config.map_err(|mistakes| of_file(file, mistakes))?.cameras)
        }
    };
    Recipes::read_file(&args.recipe, bases.as_deref())
        .map_err(|mistakes| of_file(&args.recipe, mistakes))
}

/// The cameras with their frames.
fn frames<'c>(
    args: &Args,
    cameras: &'c [CameraConfig],
) -> anyhow::Result<Vec<(&'c CameraConfig, Vec<FolderFrame>)>> {
    let folder = &args.frames;
    let mut wanted: Vec<&CameraConfig> = cameras.iter().collect();
    if let Some(name) = &args.camera {
        wanted.retain(|camera| camera.name == *name);
        if wanted.is_empty() {
            bail!("the recipe has no camera {name}");
        }
    }
    let mut all = Vec::new();
    for camera in &wanted {
        let own = folder.join(&camera.name);
        let of = if own.is_dir() { &own } else { folder };
        let found = folder::find(of, &camera.name);
        let found = found.with_context(|| format!("{} cannot be read", of.display()))?;
        let is_sorted = found
            .iter()
            .any(|of| matches!(of, FolderFrame::Sorted { .. }));
        if of == folder && is_sorted && wanted.len() > 1 {
            bail!(
                "the frames in {} may be of any of the {} cameras; name one with --camera, or move the frames into folders \
                 named after the cameras",
                folder.display(),
                wanted.len()
            );
        }
        if found.is_empty() {
            let _ = writeln!(io::stderr(), "note: camera {} has no frames", camera.name);
        } else {
            all.push((*camera, found));
        }
        let left_out = folder::left_out(of);
        let left_out = left_out.with_context(|| format!("{} cannot be read", of.display()))?;
        if !left_out.is_empty() {
            let _ = writeln!(
                io::stderr(),
                "note: left out of camera {}, because these are no PNG, PNM or JPEG pictures: {}",
                camera.name,
                left_out.join(", ")
            );
        }
    }
    if all.is_empty() {
        bail!(
            "there are no frames in {}; put pictures into its folders good and failed, or name a folder of recordings",
            folder.display()
        );
    }
    Ok(all)
}

impl CameraTable {
    fn text(&self, before: &EarlierVerdicts) -> String {
        let Self { camera, table } = self;
        let mut text = String::new();
        let right = |label| {
            table
                .rows
                .iter()
                .filter(move |row| row.label == label && row.is_right())
        };
        let [good, failed] = [Label::Good, Label::Failed].map(|label| right(label).count());
        let (all_good, all_failed) = (table.good.all(), table.failed.all());
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{camera}: good: {good} of {all_good} pass");
        let _ = writeln!(text, "{camera}: failed: {failed} of {all_failed} fail");
        let wrong: Vec<&Row> = table.rows.iter().filter(|row| !row.is_right()).collect();
        let width = wrong.iter().map(|row| row.name.len()).max().unwrap_or(0);
        for row in wrong {
            let age = match before.is_news(camera, row) {
                true => "new",
                false => "as before",
            };
            let verdict = match (row.verdict, row.missed) {
                ("fail", 1..) => format!("fail, but {} of the marked places missed", row.missed),
                (verdict, _) => verdict.to_owned(),
            };
            let defect = match largest(row) {
                Some(of) => format!(
                    "; largest defect: {}, {} px at {}, {}",
                    of.class, of.area, of.x, of.y
                ),
                None => String::new(),
            };
            let _ = writeln!(text, "  {:width$}  {verdict} ({age}){defect}", row.name);
        }
        text
    }

    fn json(&self, before: &EarlierVerdicts) -> Value {
        let rows = self.table.rows.iter().map(|row| {
            json!({
                "name": row.name,
                "label": row.label,
                "verdict": row.verdict,
                "missed": row.missed,
                "is_right": row.is_right(),
                "before": before.verdict(&self.camera, &row.name),
                "is_new": before.is_news(&self.camera, row),
                "largest": largest(row),
            })
        });
        json!({
            "camera": self.camera,
            "good": self.table.good,
            "failed": self.table.failed,
            "rows": rows.collect::<Value>(),
        })
    }
}

/// The largest defect of a frame.
fn largest(row: &Row) -> Option<&ReportedDefect> {
    let defects = row.report.inspections.iter().flat_map(|of| &of.defects);
    defects.max_by_key(|of| of.area)
}
