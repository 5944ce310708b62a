//! Surfaces on which nothing repeats: pictures in a folder `good`, and pictures in a folder `defective`.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

use crate::{cloth::Effort, line::Line, pictures::Grey};

/// Longest wait for what is learned beside the frames.
const LEARNED_WITHIN: Duration = Duration::from_secs(120);

/// What is measured.
pub struct Settings {
    /// Good frames that teach; the others test.
    pub learn: usize,
    /// Side of the tiles that a picture is cut into, px; 0 for whole pictures.
    pub tile: usize,
    /// Elements; the last one learns.
    pub elements: Vec<String>,
}

/// The frames of a picture.
type Picture = Vec<Grey>;

/// Counts over the pictures that test.
#[derive(Default)]
struct Counts {
    /// Good frames that fail, and that get no verdict.
    failed: usize,
    unjudged: usize,
    /// Defective pictures of which a frame fails; those of which no frame gets a verdict.
    found: usize,
    unjudged_defective: usize,
}

/// Measures the pictures in a folder.
///
/// # Errors
/// There are too few pictures, or elements fail.
pub fn measure(folder: &Path, settings: &Settings, effort: &Effort) -> Result<String> {
    let [good, defective] = ["good", "defective"].map(|kind| read(&folder.join(kind)));
    let (good, defective) = (good?, defective?);
    let all = || good.iter().chain(&defective);
    let least = |axis: usize| all().map(|picture| picture.size[axis]).min().unwrap_or(0);
    let size = [least(0), least(1)];
    let frames_of = |pictures: &[Grey]| -> Vec<Picture> {
        pictures
            .iter()
            .map(|picture| tiles(picture, size, settings.tile))
            .collect()
    };
    let (good, defective) = (frames_of(&good), frames_of(&defective));
    let good: Vec<&Grey> = good.iter().flatten().collect();
    let tested = good.len().saturating_sub(settings.learn);
    if tested == 0 || defective.is_empty() {
        bail!(
            "{} has {} good frames, of which {} teach, and {} defective pictures",
            folder.display(),
            good.len(),
            settings.learn,
            defective.len()
        );
    }
    let [width, height] = good[0].size;
    let mut document = format!(
        "{} good frames of {width}x{height} teach, {tested} good frames and {} defective pictures test; {} random splits, \
         seed {}\n\n| elements | good frames failed / without a verdict | defective found / without a verdict | random \
         splits: good failed %, defective found % |\n|---|---|---|---|\n",
        settings.learn,
        defective.len(),
        effort.splits,
        effort.seed
    );
    for elements in &settings.elements {
        let line = format!(
            "{elements} name=judge learn=\"learn,frames={}\" reports=reports,messages=false",
            settings.learn
        );
        let first = run(&line, &good, &defective, settings.learn, effort.verbose)?;
        let mut rng = ChaCha8Rng::seed_from_u64(effort.seed);
        let mut sums = [0, 0];
        for _ in 0..effort.splits {
            let mut good = good.clone();
            good.shuffle(&mut rng);
            let counts = run(&line, &good, &defective, settings.learn, false)?;
            sums[0] += counts.failed;
            sums[1] += counts.found;
        }
        let each = [tested, defective.len()].map(|count| (count as u64 * effort.splits) as f64);
        let share = |n: usize| match effort.splits {
            0 => "–".to_owned(),
            _ => format!("{:.1}", 100.0 * sums[n] as f64 / each[n]),
        };
        let row = format!(
            "| `{elements}` | {} / {} of {tested} | {} / {} of {} | {}, {} |",
            first.failed,
            first.unjudged,
            first.found,
            first.unjudged_defective,
            defective.len(),
            share(0),
            share(1)
        );
        eprintln!("{row}");
        writeln!(document, "{row}")?;
    }
    Ok(document)
}

/// Runs elements on the good frames, of which the first ones teach, then on those of the defective pictures.
fn run(
    elements: &str,
    good: &[&Grey],
    defective: &[Picture],
    learn: usize,
    verbose: bool,
) -> Result<Counts> {
    let (teachers, others) = good.split_at(learn);
    let line = Line::new(elements, teachers[0].size, true)?;
    let mut counts = Counts::default();
    let mut is_judging = false;
    for frame in teachers {
        is_judging = !line.judge(frame)?.is_unjudged();
    }
    // What is learned beside the frames is in force with a later one.
    let end = Instant::now() + LEARNED_WITHIN;
    while !is_judging && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
        is_judging = !line.judge(teachers[learn - 1])?.is_unjudged();
    }
    for frame in others {
        let judged = line.judge(frame)?;
        counts.failed += usize::from(judged.is_failed());
        counts.unjudged += usize::from(judged.is_unjudged());
    }
    for (number, picture) in defective.iter().enumerate() {
        let judged = picture.iter().map(|frame| line.judge(frame));
        let judged = judged.collect::<Result<Vec<_>>>()?;
        let is_found = judged.iter().any(|of| of.is_failed());
        if verbose {
            eprintln!("defective {number}: found {is_found}");
        }
        counts.found += usize::from(is_found);
        counts.unjudged_defective += usize::from(judged.iter().all(|of| of.is_unjudged()));
    }
    Ok(counts)
}

/// The pictures of a folder, in the order of their names.
fn read(folder: &Path) -> Result<Vec<Grey>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>>>()?;
    files.sort_unstable();
    let pictures = files.iter().filter_map(|file| {
        let end = file.extension()?.to_str()?.to_ascii_lowercase();
        match end.as_str() {
            "png" => Some(Grey::png(file)),
            "jpg" | "jpeg" => Some(Grey::jpeg(file)),
            _ => None,
        }
    });
    pictures.collect()
}

/// A picture without what lies beyond `size`, cut into tiles of this side, without rests; 0: whole.
fn tiles(picture: &Grey, [width, height]: [usize; 2], side: usize) -> Picture {
    if side == 0 {
        return vec![picture.rows(0, height).columns(0, width)];
    }
    let rows = (0..height / side).map(|row| picture.rows(row * side, side));
    let tiles = rows.flat_map(|row| {
        let columns = 0..width / side;
        columns.map(move |column| row.columns(column * side, side))
    });
    tiles.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picture_is_cut_into_whole_tiles_or_to_the_least_size() {
        let picture = Grey {
            size: [7, 5],
            samples: (0..35).collect(),
        };
        let cut = tiles(&picture, [7, 4], 2);
        assert_eq!(cut.len(), 6);
        assert_eq!(cut[4].samples, [16, 17, 23, 24]);
        let whole = tiles(&picture, [3, 2], 0);
        assert_eq!(whole[0].samples, [0, 1, 2, 7, 8, 9]);
        assert_eq!(whole.len(), 1);
    }
}
