//! Misprints: where each kind can be, and what it changes.

use rand::{Rng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use tiny_skia::{LineCap, Path, PathBuilder, Stroke};

use super::{INK, LabelGenerator, PAPER, Pose, layer::Layer};
use crate::planted::{Patch, Planted};

/// Tries per misprint before the label counts as full.
const TRIES: usize = 2000;
/// Free pixels between two misprints' boxes.
const APART: usize = 12;

/// Kinds of misprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MisprintKind {
    /// A disc in a printed area that has less ink, or none; the size is its diameter.
    MissingInk,
    /// A dark disc on the paper; the size is its diameter.
    ExtraInk,
    /// Ink that was dragged from a printed edge over the paper; the size is its width.
    Smear,
    /// Another letter; the size is that of the letter. Its contrast is always that of the ink.
    WrongCharacter,
    /// A straight scratch over paper and ink, which turns both towards grey; the size is its width.
    Scratch,
}

impl MisprintKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::MissingInk,
        Self::ExtraInk,
        Self::Smear,
        Self::WrongCharacter,
        Self::Scratch,
    ];

    /// Name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::MissingInk => "missing ink",
            Self::ExtraInk => "extra ink",
            Self::Smear => "smear",
            Self::WrongCharacter => "wrong character",
            Self::Scratch => "scratch",
        }
    }
}

/// A misprint to plant, at a place that the generator finds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Misprint {
    /// Kind.
    pub kind: MisprintKind,
    /// Size, see [`MisprintKind`]; wrong characters have their own.
    pub size_px: f64,
    /// Change before the optics, grey levels, at most what ink and paper differ by.
    pub contrast: f64,
}

/// Ground truth of a misprint.
pub type PlantedMisprint = Planted<MisprintKind>;

/// The clean label of a frame: coverage of the ink and of the paper, 0..=1 per pixel.
pub(super) struct Clean<'a> {
    pub generator: &'a LabelGenerator,
    pub pose: &'a Pose,
    pub ink: &'a [f32],
    pub paper: &'a [f32],
}

impl Clean<'_> {
    /// Draws a misprint at a random place that suits its kind and has no other misprint; `None` if no
    /// such place was found.
    pub fn plant(
        &self,
        misprint: &Misprint,
        taken: &[Patch<MisprintKind>],
        rng: &mut ChaCha8Rng,
    ) -> Option<Patch<MisprintKind>> {
        (0..TRIES).find_map(|_| {
            let patch = match misprint.kind {
                MisprintKind::WrongCharacter => self.wrong_character(rng),
                _ => self.shape(misprint, rng),
            }?;
            let is_apart = taken
                .iter()
                .all(|other| is_apart(&other.truth.bbox, &patch.truth.bbox));
            is_apart.then_some(patch)
        })
    }

    fn size(&self) -> [usize; 2] {
        [self.generator.spec.width, self.generator.spec.height]
    }

    fn pixel(&self, x: usize, y: usize) -> [f32; 2] {
        let at = y * self.size()[0] + x;
        [self.ink[at], self.paper[at]]
    }

    /// A misprint that is a shape.
    fn shape(&self, misprint: &Misprint, rng: &mut ChaCha8Rng) -> Option<Patch<MisprintKind>> {
        let [width, height] = self.size();
        let size = misprint.size_px as f32;
        let at = [
            rng.random_range(0.0..width as f32),
            rng.random_range(0.0..height as f32),
        ];
        // A cheap look at the centre before anything is drawn.
        let [ink, paper] = self.pixel(at[0] as usize, at[1] as usize);
        let is_start = match misprint.kind {
            MisprintKind::MissingInk => ink > 0.9,
            MisprintKind::Smear => ink > 0.5,
            _ => ink < 0.05 && paper > 0.95,
        };
        if !is_start {
            return None;
        }
        let turn = match misprint.kind {
            MisprintKind::Smear => rng.random_range(-0.2..0.2_f32),
            MisprintKind::Scratch => rng.random_range(0.0..std::f32::consts::TAU),
            _ => 0.0,
        };
        let length = match misprint.kind {
            MisprintKind::Smear => rng.random_range(10.0..24.0) + size,
            MisprintKind::Scratch => rng.random_range(20.0..45.0) + size,
            // A disc.
            _ => 0.0,
        };
        let (sin, cos) = turn.sin_cos();
        let end = [at[0] + length * cos, at[1] + length * sin];
        let layer = Layer::new(&capsule(at, end, size)?);
        let contrast = (misprint.contrast as f32).min(PAPER - INK);
        let [columns, rows] = layer.extent([0.0; 2], self.size());
        // Sums of the coverage where the shape shows, and everywhere.
        let (mut shown, mut whole) = (0.0, 0.0);
        let mut change = Vec::with_capacity(columns.len() * rows.len());
        for y in rows.clone() {
            for x in columns.clone() {
                let coverage = layer.at(x as f32, y as f32);
                let [ink, paper] = self.pixel(x, y);
                let share = match misprint.kind {
                    MisprintKind::MissingInk => ink,
                    MisprintKind::Scratch => (2.0 * ink - 1.0) * paper,
                    _ => (ink - 1.0) * paper,
                };
                whole += coverage;
                shown += coverage * share.abs();
                change.push(f64::from(contrast * coverage * share));
            }
        }
        let least = match misprint.kind {
            // Both begin or end in what hides them.
            MisprintKind::Smear | MisprintKind::Scratch => 0.6,
            _ => 0.97,
        };
        if shown < least * whole {
            return None;
        }
        let sign = match misprint.kind {
            MisprintKind::MissingInk => 1.0,
            _ => -1.0,
        };
        let centre = [0, 1].map(|axis| f64::from(at[axis] + end[axis]) / 2.0);
        let truth = Planted::new(
            misprint.kind,
            centre,
            misprint.size_px,
            sign * f64::from(contrast),
        );
        let bounds = [columns.start, rows.start, columns.len(), rows.len()];
        truth.drawn(bounds, &change)
    }

    /// Another letter in a line of text.
    fn wrong_character(&self, rng: &mut ChaCha8Rng) -> Option<Patch<MisprintKind>> {
        let parts = &self.generator.parts;
        let lines: Vec<usize> = (0..parts.len())
            .filter(|&i| parts[i].line.is_some())
            .collect();
        let part = *lines.choose(rng)?;
        let line = parts[part].line.as_ref()?;
        let place = *line.letters().choose(rng)?;
        let right = line.letter(place);
        let others: Vec<char> = match right {
            '0'..='9' => ('0'..='9').collect(),
            'A'..='Z' => ('A'..='Z').collect(),
            _ => ('a'..='z').collect(),
        };
        let wrong = *others.choose(rng).filter(|&&wrong| wrong != right)?;
        let shift = self.pose.shift_of(part);
        let [old, new] = [right, wrong].map(|letter| line.outline(place, letter));
        let [old, new] = [Layer::new(&old?), Layer::new(&new?)];
        let extents = [&old, &new].map(|layer| layer.extent(shift, self.size()));
        let [columns, rows] = [0, 1].map(|axis| {
            let [a, b] = extents.each_ref().map(|extent| &extent[axis]);
            a.start.min(b.start)..a.end.max(b.end)
        });
        let mut change = Vec::with_capacity(columns.len() * rows.len());
        for y in rows.clone() {
            for x in columns.clone() {
                let at = [x as f32 - shift[0], y as f32 - shift[1]];
                let more = new.at(at[0], at[1]) - old.at(at[0], at[1]);
                change.push(f64::from((INK - PAPER) * more));
            }
        }
        let [x, y] = line.centre(place);
        let truth = Planted::new(
            MisprintKind::WrongCharacter,
            [x + shift[0], y + shift[1]].map(f64::from),
            columns.len().max(rows.len()) as f64,
            f64::from(INK - PAPER),
        );
        let bounds = [columns.start, rows.start, columns.len(), rows.len()];
        truth.drawn(bounds, &change)
    }
}

/// A disc, stretched from one place to another.
fn capsule(from: [f32; 2], to: [f32; 2], width: f32) -> Option<Path> {
    let mut path = PathBuilder::new();
    if from == to {
        path.push_circle(from[0], from[1], width / 2.0);
        return path.finish();
    }
    path.move_to(from[0], from[1]);
    path.line_to(to[0], to[1]);
    let stroke = Stroke {
        width,
        line_cap: LineCap::Round,
        ..Stroke::default()
    };
    // Circles of a few pixels, drawn at four samples per pixel.
    path.finish()?.stroke(&stroke, 8.0)
}

fn is_apart(a: &[usize; 4], b: &[usize; 4]) -> bool {
    (0..2).any(|axis| {
        let clear = |a: &[usize; 4], b: &[usize; 4]| a[axis] + a[axis + 2] + APART <= b[axis];
        clear(a, b) || clear(b, a)
    })
}
