//! Defects of a web of cloth, the same kinds in each section of its length.

use std::ops::Range;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::ClothSpec;

/// Rows of a section. The defects "on a seam" lie on multiples of 1024 rows.
pub const SECTION_ROWS: u64 = 4096;

/// Kind of a planted defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClothKind {
    /// A thick place of a weft thread.
    Slub,
    /// A darker warp thread over 1500 rows.
    WarpStreak,
    /// A weft thread is missing over the whole width.
    MissingWeft,
    /// A small bright knot.
    Knot,
    /// A hole with dark ground.
    Hole,
    /// A dark stain; the weave is seen through it.
    Stain,
}

impl ClothKind {
    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Slub => "slub",
            Self::WarpStreak => "warp streak",
            Self::MissingWeft => "missing weft",
            Self::Knot => "knot",
            Self::Hole => "hole",
            Self::Stain => "stain",
        }
    }
}

/// A defect in pixels of the web.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClothDefect {
    /// What it is.
    pub kind: ClothKind,
    /// Left edge of its box, px.
    pub left: usize,
    /// First row of its box, counted from the web's first row.
    pub top: u64,
    /// Width of its box, px.
    pub width: usize,
    /// Rows of its box.
    pub height: usize,
}

/// Kind, centre along x as a share of the line, centre in rows of the section, width and height in px
/// (0: the whole width).
type Place = (ClothKind, f32, i64, usize, usize);

/// So far apart that neither a defect nor its image one or four repeats away meets another one.
const PLACES: [Place; 10] = [
    (ClothKind::Hole, 0.55, 0, 26, 26),
    (ClothKind::Knot, 0.70, 280, 9, 9),
    (ClothKind::Knot, 0.40, 600, 9, 9),
    (ClothKind::Slub, 0.60, 1024, 60, 12),
    (ClothKind::Stain, 0.70, 1600, 44, 44),
    (ClothKind::WarpStreak, 0.30, 2074, 5, 1500),
    (ClothKind::Hole, 0.70, 2048, 22, 22),
    (ClothKind::Knot, 0.50, 2500, 9, 9),
    (ClothKind::MissingWeft, 0.50, 3072, 0, 9),
    (ClothKind::Slub, 0.45, 3600, 48, 12),
];
/// A listed defect is that of a planted one if their boxes are closer than this, px.
const NEAR: u64 = 3;
/// Largest random shift of a place along the line, as a share of it.
const SHIFT: f32 = 0.03;

/// The defects of a section. The one on its first row reaches into the section before; a web's first
/// row has none.
pub fn section(spec: &ClothSpec, seed: u64, section: u64) -> Vec<ClothDefect> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // Streams from y + 1 on are those of the rows.
    rng.set_stream(u64::MAX - section);
    let places = PLACES.iter().filter_map(|&(kind, x, y, width, height)| {
        let x = spec.width as f32 * (x + rng.random_range(-SHIFT..SHIFT));
        let centre = section as i64 * SECTION_ROWS as i64 + y;
        let top = u64::try_from(centre - height as i64 / 2).ok()?;
        let (left, width) = match width {
            0 => (0, spec.width),
            width => ((x as usize).saturating_sub(width / 2), width),
        };
        Some(ClothDefect {
            kind,
            left,
            top,
            width: width.min(spec.width - left),
            height,
        })
    });
    places.collect()
}

/// A damaged roller leaves a knot at the same place across, once each turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClothRoller {
    /// Circumference, rows.
    pub period_px: f64,
    /// Place across, as a share of the line.
    pub across: f32,
}

impl ClothRoller {
    /// Width and height of a mark, px.
    const SIZE: usize = 9;

    /// The marks of a web of `width` px in these rows, and perhaps some around them. The first is half a turn behind the
    /// beginning of the web.
    pub fn marks(&self, width: usize, rows: Range<u64>) -> impl Iterator<Item = ClothDefect> {
        let Self { period_px, across } = *self;
        let left = (width as f32 * across) as usize;
        let turns = (rows.start as f64 / period_px) as u64..=(rows.end as f64 / period_px) as u64;
        turns.map(move |turn| ClothDefect {
            kind: ClothKind::Knot,
            left: left.min(width - Self::SIZE),
            top: ((turn as f64 + 0.5) * period_px).round() as u64,
            width: Self::SIZE,
            height: Self::SIZE,
        })
    }
}

impl ClothDefect {
    /// Rows of its box.
    pub fn rows(&self) -> Range<u64> {
        self.top..self.top + self.height as u64
    }

    /// Whether a box of these columns and rows of the web touches this defect's, or almost.
    pub fn is_met(&self, columns: Range<u64>, rows: Range<u64>) -> bool {
        let near = |a: Range<u64>, b: Range<u64>| a.start < b.end + NEAR && b.start < a.end + NEAR;
        let own = self.left as u64..(self.left + self.width) as u64;
        near(columns, own) && near(rows, self.rows())
    }

    /// Changes the levels of the web's row `y`.
    pub fn draw(&self, y: u64, levels: &mut [f32]) {
        let dy = centred((y - self.top) as usize, self.height);
        let levels = &mut levels[self.left..self.left + self.width];
        for (i, level) in levels.iter_mut().enumerate() {
            let dx = centred(i, self.width);
            // 0 outside, 1 from a quarter of the radius inside.
            let disc = (4.0 * (1.0 - dx.hypot(dy))).clamp(0.0, 1.0);
            *level = match self.kind {
                ClothKind::Slub => *level + 60.0 * disc,
                ClothKind::Knot => *level + 80.0 * disc,
                ClothKind::Stain => *level - 30.0 * disc,
                ClothKind::Hole => *level + (12.0 - *level) * disc,
                ClothKind::WarpStreak => *level - 55.0 * (1.5 * (1.0 - dx.abs())).min(1.0),
                ClothKind::MissingWeft => *level - 55.0 * (1.5 * (1.0 - dy.abs())).min(1.0),
            };
        }
    }
}

/// Position of pixel `i` of `len` from the centre, in half lengths.
fn centred(i: usize, len: usize) -> f32 {
    (2 * i + 1) as f32 / len as f32 - 1.0
}
