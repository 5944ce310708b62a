//! Boards of DeepPCB: each test picture beside its template.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{
    line::Line,
    marks::{Area, Outcome},
    peers::Peers,
    pictures::Grey,
};

/// Of this many pairs one tunes, and one is reported.
pub const PARTS: usize = 7;
/// Index modulo [`PARTS`] of the pairs that are reported, and of those to tune settings with.
pub const REPORTED: usize = 0;
pub const TUNED: usize = 3;
/// Settings of the element.
struct Method {
    name: &'static str,
    /// Everything but the training and `min-area`.
    elements: &'static str,
    /// Pixels of the model that a listed defect has at least.
    min_area: usize,
}

const METHODS: [Method; 6] = [
    Method {
        name: "`clreference`, defaults",
        elements: "clreference",
        min_area: 1,
    },
    Method {
        name: "`clgaussian ! clreference align=translation normalize=gain threshold=14` (for printed labels)",
        elements: "clgaussian kernel-size=5 sigma=0.8 ! clreference align=translation normalize=gain threshold=14",
        min_area: 1,
    },
    Method {
        name: "`clreference align=translation edge-tolerance=2 threshold=100 min-area=5`",
        elements: "clreference align=translation edge-tolerance=2 threshold=100",
        min_area: 5,
    },
    Method {
        name: "`clreference align=affine edge-tolerance=1 threshold=12 opening=3 min-area=9`",
        elements: "clreference align=affine edge-tolerance=1 threshold=12 opening=3",
        min_area: 9,
    },
    Method {
        name: "`clreference align=local edge-tolerance=1 threshold=12 opening=3 min-area=9`",
        elements: "clreference align=local edge-tolerance=1 threshold=12 opening=3",
        min_area: 9,
    },
    Method {
        name: "`clreference align=local edge-tolerance=0 threshold=120 opening=3 min-area=9`",
        elements: "clreference align=local edge-tolerance=0 threshold=120 opening=3",
        min_area: 9,
    },
];
const PEERS: [[&str; 2]; 2] = [
    ["phase-correlate", "cv2: phaseCorrelate, absdiff, open 3"],
    ["ecc", "cv2: tolerance 2, ECC affine, blobs of 9 px or more"],
];

/// A pair of pictures.
pub struct Pair {
    pub template: PathBuf,
    pub picture: PathBuf,
    pub boxes: Vec<Area>,
}

/// Counts over pictures.
#[derive(Default)]
struct Counts {
    pictures: usize,
    boxes: usize,
    found: usize,
    false_blobs: usize,
    with_false: usize,
    unjudged: usize,
}

impl Counts {
    fn add(&mut self, outcome: &Outcome) {
        self.pictures += 1;
        self.boxes += outcome.is_found.len();
        self.found += outcome.is_found.iter().filter(|&&found| found).count();
        self.false_blobs += outcome.false_blobs;
        self.with_false += usize::from(outcome.false_blobs > 0);
    }

    fn row(&self, name: &str) -> String {
        let recall = 100.0 * self.found as f64 / self.boxes.max(1) as f64;
        let each = self.false_blobs as f64 / self.pictures.max(1) as f64;
        let (with_false, unjudged) = (self.with_false, self.unjudged);
        format!("| {name} | {recall:.1} | {each:.2} | {with_false} | {unjudged} |")
    }
}

/// Measures the boards in a folder.
///
/// # Errors
/// A picture is missing, or a method fails.
pub fn measure(folder: &Path, peers: Option<Peers>, tune: bool, verbose: bool) -> Result<String> {
    let remainder = if tune { TUNED } else { REPORTED };
    let pairs: Vec<Pair> = pairs(folder)?
        .into_iter()
        .skip(remainder)
        .step_by(PARTS)
        .collect();
    let boxes: usize = pairs.iter().map(|pair| pair.boxes.len()).sum();
    let mut document = format!(
        "{} pairs (index i % {PARTS} = {remainder}), {boxes} boxes\n\n\
         | method | recall % | false per picture | pictures with a false one | no verdict |\n|---|---|---|---|---|\n",
        pairs.len()
    );
    for method in METHODS {
        let mut counts = Counts::default();
        for pair in &pairs {
            let template = Grey::jpeg(&pair.template)?;
            let elements = format!(
                "{} train-frames=1 min-area={} limits=\"limits,max-defects=100000\"",
                method.elements, method.min_area
            );
            let line = Line::new(&elements, template.size, false)?;
            line.judge(&template)?;
            let judged = line.judge(&Grey::jpeg(&pair.picture)?)?;
            counts.unjudged += usize::from(judged.is_unjudged());
            let outcome = judged.listed(&pair.boxes);
            if verbose {
                eprintln!(
                    "{}: {} false, {} listed, {:?}",
                    pair.picture.display(),
                    outcome.false_blobs,
                    judged.result.defects.len(),
                    judged.result.alignment
                );
            }
            counts.add(&outcome);
        }
        eprintln!("{}", method.name);
        writeln!(document, "{}", counts.row(method.name))?;
    }
    if let Some(mut peers) = peers {
        for [method, name] in PEERS {
            let mut counts = Counts::default();
            for pair in &pairs {
                counts.add(&peers.board(method, &pair.template, &pair.picture, &pair.boxes)?);
            }
            eprintln!("{name}");
            writeln!(document, "{}", counts.row(name))?;
        }
    }
    Ok(document)
}

/// The pairs in the order of the data set's own lists, `trainval.txt` and `test.txt`.
pub fn pairs(folder: &Path) -> Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    for list in ["trainval.txt", "test.txt"] {
        let list = folder.join(list);
        let text = fs::read_to_string(&list).with_context(|| list.display().to_string())?;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let mut names = line.split_whitespace();
            let (Some(picture), Some(boxes)) = (names.next(), names.next()) else {
                bail!("{} holds the line {line:?}, not two names", list.display());
            };
            let with = |end: &str| folder.join(picture.replace(".jpg", end));
            let boxes = folder.join(boxes);
            let text = fs::read_to_string(&boxes).with_context(|| boxes.display().to_string())?;
            pairs.push(Pair {
                template: with("_temp.jpg"),
                picture: with("_test.jpg"),
                boxes: text.lines().filter_map(area).collect(),
            });
        }
    }
    Ok(pairs)
}

/// The box in a line `x0 y0 x1 y1 class`.
fn area(line: &str) -> Option<Area> {
    let numbers: Vec<usize> = line
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let &[x0, y0, x1, y1, _] = numbers.as_slice() else {
        return None;
    };
    Some(Area { x0, y0, x1, y1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_means_over_pictures_and_boxes() {
        let mut counts = Counts::default();
        let outcome = |is_found: &[bool], false_blobs| Outcome {
            is_found: is_found.to_vec(),
            false_blobs,
        };
        counts.add(&outcome(&[true, false, true], 3));
        counts.add(&outcome(&[true], 0));
        assert_eq!(counts.row("x"), "| x | 75.0 | 1.50 | 1 | 0 |");
    }

    #[test]
    fn line_of_five_numbers_is_a_box() {
        let area_of = |line| area(line).map(|a| [a.x0, a.y0, a.x1, a.y1]);
        assert_eq!(area_of("466 441 493 470 3"), Some([466, 441, 493, 470]));
        assert_eq!(area_of("466 441 493"), None);
        assert_eq!(area_of(""), None);
    }
}
