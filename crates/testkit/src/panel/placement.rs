//! Random defects whose ghosts cannot meet.
//!
//! A comparison at distance `k·p` sees a defect again at `±k·p`. Two defects `2k·p` apart on a line
//! affect the same neighbours: they can hide each other or mark pixels between them.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::defects::{Defect, DefectKind};

/// Free cells between any two defects' outlines, along x or along y.
const APART_CELLS: f64 = 5.0;
/// Free cells between two outlines that share rows (or columns): more than 2·4 for `multiples` of
/// 4.
const APART_IN_LINE_CELLS: f64 = 9.0;
/// Free cells to the border; on frames of few cells, this share of the frame if it is less.
const BORDER_CELLS: f64 = 5.0;
const BORDER_SHARE: f64 = 0.2;

/// Start and end along x and along y, px; infinite along a line.
pub struct Outline([(f64, f64); 2]);

/// A frame's size and its pitches, px.
pub struct Field {
    /// Width and height, px.
    pub size: [usize; 2],
    /// Pitches along x and y, px.
    pub pitch: [f64; 2],
}

impl Field {
    /// A random defect of this kind with `contrast` grey levels: random place, usual size, and a
    /// random sign if the kind allows both.
    pub fn propose(&self, kind: DefectKind, contrast: f64, rng: &mut ChaCha8Rng) -> Defect {
        let at = [0, 1].map(|axis| {
            let border = self.border(axis);
            border + rng.random::<f64>() * ((self.size[axis] - 1) as f64 - 2.0 * border)
        });
        let size_px = match kind {
            DefectKind::Particle => rng.random_range(2.0..6.0),
            DefectKind::Pinhole => rng.random_range(1.5..2.5),
            DefectKind::Scratch => rng.random_range(1.2..2.0),
            DefectKind::ColumnLine | DefectKind::RowLine => rng.random_range(1.0..2.0),
            DefectKind::Blob => [12.0, 20.0][rng.random_range(0..2)],
            DefectKind::Bridge => (0.3 * self.pitch[1]).max(1.5),
            DefectKind::MissingCell => self.pitch[0],
        };
        let sign = if rng.random() { 1.0 } else { -1.0 };
        let defect = Defect::new(kind, at[0], at[1], size_px, sign * contrast.abs());
        match kind {
            DefectKind::Scratch => {
                // Oblique: 15 to 75 degrees from either axis.
                let angle = rng.random_range(15f64..75.0) * sign;
                defect.with_line(rng.random_range(20.0..40.0), angle.to_radians())
            }
            DefectKind::Bridge => defect.with_line((0.5 * self.pitch[0]).max(3.0), 0.0),
            _ => defect,
        }
    }

    /// Sorts lines first: a line needs a free stripe.
    pub fn lines_first(kinds: &mut [DefectKind]) {
        kinds.sort_by_key(|kind| !matches!(kind, DefectKind::ColumnLine | DefectKind::RowLine));
    }

    /// The largest outline of the defect along x and y, after its move to the pattern and the blur
    /// over `reach` px.
    pub fn outline(&self, defect: &Defect, reach: f64) -> Outline {
        let half = defect.size_px / 2.0;
        let (sin, cos) = defect.angle_rad.sin_cos();
        let along = (defect.length_px / 2.0).max(half);
        // Half a cell for the size, and half a cell for the move to the nearest place.
        let [cell_x, cell_y] = self.pitch;
        let around = |centre: f64, half: f64| (centre - half - reach, centre + half + reach);
        let all = (f64::NEG_INFINITY, f64::INFINITY);
        let (x, y) = (defect.x, defect.y);
        Outline(match defect.kind {
            DefectKind::Particle | DefectKind::Pinhole | DefectKind::Blob => {
                [around(x, half), around(y, half)]
            }
            DefectKind::Scratch => [
                around(x, half + along * cos.abs()),
                around(y, half + along * sin.abs()),
            ],
            DefectKind::MissingCell => [around(x, cell_x), around(y, cell_y)],
            DefectKind::Bridge => [
                around(x, cell_x / 2.0 + along),
                around(y, cell_y / 2.0 + half),
            ],
            DefectKind::ColumnLine => [around(x, half), all],
            DefectKind::RowLine => [all, around(y, half)],
        })
    }

    /// Whether the defect keeps its distance from the border and from the others.
    pub fn admits(&self, new: &Outline, others: &[Outline]) -> bool {
        self.inside(new) && others.iter().all(|other| self.apart(new, other))
    }

    fn border(&self, axis: usize) -> f64 {
        (BORDER_CELLS * self.pitch[axis]).min(BORDER_SHARE * self.size[axis] as f64)
    }

    fn inside(&self, outline: &Outline) -> bool {
        (0..2).all(|axis| {
            let (start, end) = outline.0[axis];
            let border = self.border(axis);
            let last = (self.size[axis] - 1) as f64;
            // A line runs from border to border.
            start == f64::NEG_INFINITY || (start >= border && end <= last - border)
        })
    }

    fn apart(&self, a: &Outline, b: &Outline) -> bool {
        let gaps = [0, 1].map(|axis| {
            let (a, b) = (a.0[axis], b.0[axis]);
            (a.0.max(b.0) - a.1.min(b.1)) / self.pitch[axis]
        });
        (0..2).any(|axis| {
            let needed = if gaps[1 - axis] < 0.0 {
                APART_IN_LINE_CELLS
            } else {
                APART_CELLS
            };
            gaps[axis] >= needed
        })
    }
}
