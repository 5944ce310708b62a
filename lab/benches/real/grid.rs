//! Expanded metal that lies at another angle in each picture: the grid of MVTec AD, as tiles of 128 px with masks.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

use crate::{
    cloth::{Effort, PEER_MARGIN},
    line::Line,
    marks::{Area, Mask},
    peers::{Part, Peers},
    pictures::Grey,
    split::{Sample, Split, mean_at},
};

/// Side of a tile, px, and its place in the file, which shows the tile beside other pictures.
const SIDE: usize = 128;
const PLACE: usize = 2;
/// Tiles are enlarged so many times, which is about half of the size of MVTec AD's own pictures.
const SCALE: usize = 4;
/// A mark counts as on the defect up to this distance from the defect's box, px.
const BOX_MARGIN_PX: usize = 4;
/// Good frames that teach; the others test.
const LEARN: usize = 11;

/// What stands behind the elements' names in a table, their settings, and the margin of their limits.
const METHODS: [[&str; 3]; 3] = [
    ["", "", "-1"],
    [" with `min-contrast=0`", "min-contrast=0", "-1"],
    [
        " with `min-contrast=0`, margin 0.3",
        "min-contrast=0",
        "0.3",
    ],
];
const ELEMENTS: &str = "clgaussian kernel-size=5 sigma=0.8 ! clpitchthreshold";

/// An enlarged tile.
struct Tile {
    path: PathBuf,
    grey: Grey,
    /// Boxes of the defects, with a margin; empty for a good frame.
    boxes: Vec<Area>,
}

/// Counts over the frames that test.
#[derive(Default)]
struct Counts {
    failed: usize,
    unjudged: usize,
    found: usize,
    unjudged_defective: usize,
}

/// Measures the tiles in a folder.
///
/// # Errors
/// A picture is missing, or a method fails.
pub fn measure(folder: &Path, peers: Option<Peers>, effort: &Effort) -> Result<String> {
    let tiles = read(folder)?;
    let (good, defective): (Vec<&Tile>, Vec<&Tile>) =
        tiles.iter().partition(|tile| tile.boxes.is_empty());
    if good.len() <= LEARN || defective.is_empty() {
        bail!("{} has too few pictures", folder.display());
    }
    let tested = good.len() - LEARN;
    let mut document = format!(
        "{LEARN} good frames teach, {tested} good and {} defective frames test; {} random splits, seed {}\n\n\
         | method | good frames failed / without a verdict | defective found | defective without a verdict | random \
         splits: good failed %, defective found % |\n|---|---|---|---|---|\n",
        defective.len(),
        effort.splits,
        effort.seed
    );
    let mut row = |name: &str, first: &Counts, random: [f64; 2]| -> Result<()> {
        let [failed, found] = random.map(|share| 100.0 * share);
        let line = format!(
            "| {name} | {} / {} of {tested} | {} of {} | {} | {failed:.1}, {found:.1} |",
            first.failed,
            first.unjudged,
            first.found,
            defective.len(),
            first.unjudged_defective
        );
        eprintln!("{line}");
        Ok(writeln!(document, "{line}")?)
    };
    for [behind, settings, margin] in METHODS {
        let elements = format!(
            "{ELEMENTS} {settings} name=judge learn=\"learn,frames={LEARN},margin={margin}\" reports=reports,messages=false"
        );
        let first = run(&elements, &good, &defective, effort.verbose)?;
        let mut rng = ChaCha8Rng::seed_from_u64(effort.seed);
        let mut sums = [0, 0];
        for _ in 0..effort.splits {
            let mut good = good.clone();
            good.shuffle(&mut rng);
            let counts = run(&elements, &good, &defective, false)?;
            sums[0] += counts.failed;
            sums[1] += counts.found;
        }
        let each = [tested, defective.len()].map(|frames| frames as f64 * effort.splits as f64);
        let name = format!("`{ELEMENTS}`{behind}");
        row(
            &name,
            &first,
            [sums[0] as f64 / each[0], sums[1] as f64 / each[1]],
        )?;
    }
    if let Some(mut peers) = peers {
        let mut samples = Vec::new();
        for tile in &tiles {
            let part = Part {
                scale: SCALE,
                light: [SCALE * SIDE / 64; 2],
                ..Part::new(&tile.path, [PLACE, PLACE, SIDE, SIDE], &tile.boxes)
            };
            let peaks = peers.notch(&part)?;
            samples.push(Sample {
                is_clean: tile.boxes.is_empty(),
                typical: vec![0.0; peaks.peaks.len()],
                peaks: peaks.peaks,
                in_boxes: peaks.boxes,
                ..Sample::default()
            });
        }
        let [failed, found] = Split::new(&samples, &[0], LEARN, None).at(PEER_MARGIN);
        let first = Counts {
            failed,
            found,
            ..Counts::default()
        };
        let random = mean_at(
            &samples,
            &[0],
            LEARN,
            PEER_MARGIN,
            effort.splits,
            effort.seed,
        );
        let name = format!("cv2: FFT notch, three maps, {PEER_MARGIN} times the largest");
        row(&name, &first, random)?;
    }
    Ok(document)
}

/// Runs elements on the good frames, of which the first ones teach, then on the defective ones.
fn run(elements: &str, good: &[&Tile], defective: &[&Tile], verbose: bool) -> Result<Counts> {
    let mut counts = Counts::default();
    let line = Line::new(elements, [SCALE * SIDE; 2], true)?;
    for (at, tile) in good.iter().enumerate() {
        let judged = line.judge(&tile.grey)?;
        if verbose {
            let result = &judged.result;
            eprintln!(
                "{}: good, {:?}, threshold {:.1}, {} px marked of {}, vectors {:.2?}, {:?}",
                tile.path.display(),
                result.verdict,
                result.threshold,
                result.defect_pixels,
                result.judged_pixels,
                result.lattice,
                judged.strongest()
            );
        }
        if at >= LEARN {
            counts.failed += usize::from(judged.is_failed());
            counts.unjudged += usize::from(judged.is_unjudged());
        }
    }
    for tile in defective {
        let judged = line.judge(&tile.grey)?;
        let is_found = judged.outcome(&tile.boxes, 1).is_found.contains(&true);
        if verbose {
            let verdict = judged.result.verdict;
            eprintln!("{}: {verdict:?}, found {is_found}", tile.path.display());
        }
        counts.found += usize::from(is_found && judged.is_failed());
        counts.unjudged_defective += usize::from(judged.is_unjudged());
    }
    Ok(counts)
}

/// The tiles, in the order of their numbers: `N-0.png` shows a tile, `N-1.png` its mask.
fn read(folder: &Path) -> Result<Vec<Tile>> {
    let mut tiles = Vec::new();
    for number in 0.. {
        let path = folder.join(format!("{number}-0.png"));
        if !path.exists() {
            break;
        }
        let grey = tile(&Grey::png(&path)?, &path)?;
        let mask = Grey::png(&folder.join(format!("{number}-1.png")))?.enlarged(SCALE);
        let mask = Mask {
            size: mask.size,
            is_marked: mask.samples.iter().map(|&sample| sample > 127).collect(),
        };
        let grown = |area: &Area| area.grown(BOX_MARGIN_PX, mask.size);
        tiles.push(Tile {
            path,
            grey,
            boxes: mask.boxes().iter().map(grown).collect(),
        });
    }
    Ok(tiles)
}

/// The enlarged tile in the picture of a file.
fn tile(picture: &Grey, path: &Path) -> Result<Grey> {
    if picture.size.iter().any(|&side| side < PLACE + SIDE) {
        bail!("{} is smaller than a tile", path.display());
    }
    let tile = picture.rows(PLACE, SIDE).columns(PLACE, SIDE);
    Ok(tile.enlarged(SCALE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tile_is_cut_and_enlarged() {
        let size = [392, 132];
        let is_inside = |v: usize| (PLACE..PLACE + SIDE).contains(&v);
        let at = |i: usize| is_inside(i % size[0]) && is_inside(i / size[0]);
        let samples = (0..size[0] * size[1]).map(|i| if at(i) { 200 } else { 0 });
        let picture = Grey {
            size,
            samples: samples.collect(),
        };
        let cut = tile(&picture, Path::new("x")).unwrap();
        assert_eq!(cut.size, [512, 512]);
        assert!(cut.samples.iter().all(|&sample| sample == 200));
        assert!(tile(&picture.rows(0, 129), Path::new("x")).is_err());
    }
}
