//! Whether pictures show the same object, and how it lies in them.

use clinspect_core::reference::{Aligner, Freedom, check_size};

use super::{
    Views,
    picture::{Picture, median},
};

/// Largest shift that is looked for, px of the reduced picture.
const RANGE: usize = 64;
const BLOCK: usize = 4;

/// How the pictures lie to the first one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Similarity {
    /// Mean correlation of the parts with structure, 0 to 1: of the middle picture.
    pub score: f64,
    /// The same of the worst picture.
    pub least_score: f64,
    /// Largest shift along x or y, px.
    pub shift: f64,
    /// Farthest that turn and stretch move a pixel of the border, px.
    pub bent: f64,
}

/// Aligns all pictures with the first; `None` if they are too small.
pub fn same(views: &[Views]) -> Option<Similarity> {
    let first = views.first()?;
    let (by, whole) = (first.by, &first.whole);
    let [width, height] = [whole.width, whole.height];
    let side = width.min(height);
    let range = RANGE.min(side.saturating_sub(8 * BLOCK) / 4);
    if range == 0 || check_size([width, height], range).is_err() {
        return None;
    }
    let size = [width, height];
    let mut aligner = Aligner::new(&sums(whole), size, range, Freedom::Affine, |_, _| true).ok()?;
    let mut scores = Vec::new();
    let mut same = Similarity::default();
    for view in views.get(1..)? {
        let found = aligner.find(&sums(&view.whole));
        scores.push(found.score);
        let scale = by as f64;
        for shift in found.warp.shift(size) {
            same.shift = same.shift.max(shift.abs() * scale);
        }
        let [_, a, b, _, d, e] = found
            .warp
            .coefficients
            .map(|of| f64::from(of).abs() / (1 << 20) as f64);
        let [half_x, half_y] = [width, height].map(|side| side as f64 / 2.0 * scale);
        same.bent = same
            .bent
            .max((a * half_x + b * half_y).max(d * half_x + e * half_y));
    }
    same.least_score = scores.iter().copied().fold(1.0, f64::min);
    same.score = median(scores);
    Some(same)
}

/// Sums of 4x4 samples.
fn sums(picture: &Picture) -> Vec<u16> {
    let area = (BLOCK * BLOCK) as f32;
    let reduced = picture.reduced(BLOCK);
    reduced
        .samples
        .iter()
        .map(|mean| (mean * area).round() as u16)
        .collect()
}
