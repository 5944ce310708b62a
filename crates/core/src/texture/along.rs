//! The neighbours of a texture's pixels, and the mean over one repeat, along rows and columns or along two vectors.
//!
//! # Source
//! docs/semantics.md, "Textures along vectors"; `p`, `o`, `m`, `e`, `R` and `t` are defined there.

use super::Repeat;

/// After which distances a texture repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// Along x and y.
    Axes([Repeat; 2]),
    /// Along two vectors, of which one at least is parallel to neither axis, or lies along the other one's.
    Vectors([VectorRepeat; 2]),
}

/// Along one vector: the neighbours, and the places of the samples of the mean over one repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorRepeat {
    /// The vector in 1/16 px, x and y; its longer component is positive.
    pub vector: [i32; 2],
    /// The other vector.
    pub other: [i32; 2],
    /// Weights of the mean; the pitch is the longer component.
    pub repeat: Repeat,
}

impl Repeats {
    /// The repeats along two vectors in px, the first of which is averaged over first.
    ///
    /// # Errors
    /// The number of a vector that is shorter than [`Repeat::MIN_PITCH_PX`] along both axes, or that frames of `size` (width,
    /// height) do not hold: they must be longer than two of it and a pixel along each axis.
    pub fn new(vectors: [[f64; 2]; 2], size: [usize; 2]) -> Result<Self, usize> {
        let rounded = vectors.map(|v| v.map(|c| (16.0 * c).round() as i32));
        for (number, (v, of)) in rounded.iter().zip(vectors).enumerate() {
            let is_long = of.iter().any(|c| c.abs() >= Repeat::MIN_PITCH_PX);
            let is_held = |(&c, &length)| 2 * margin(c) < length;
            if !is_long || !v.iter().zip(&size).all(is_held) {
                return Err(number);
            }
        }
        let [a, b] = rounded;
        Ok(match [a, b] {
            [[x, 0], [0, y]] => Self::Axes([Repeat::of(x.abs(), true), Repeat::of(y.abs(), false)]),
            _ => Self::Vectors([
                VectorRepeat::new(a, b, true),
                VectorRepeat::new(b, a, false),
            ]),
        })
    }

    /// The repeats along rows and columns, if these are compared.
    pub fn axes(&self) -> Option<&[Repeat; 2]> {
        match self {
            Self::Axes(axes) => Some(axes),
            Self::Vectors(_) => None,
        }
    }

    /// Rows above and below that a smoothed sample's residual, and its mean over one repeat, are computed from.
    pub(super) fn rows(&self) -> [usize; 2] {
        match self {
            Self::Axes([_, y]) => [y.margin(), y.full as usize + 1],
            Self::Vectors(vectors) => {
                let rows = vectors.map(|along| margin(along.vector[1]));
                // A place outside of the web is replaced by that in a cell beside, one vector away along both.
                let cells = rows[0] + rows[1];
                let places = vectors.map(|along| {
                    let rows = along.places().into_iter().map(|[_, y]| margin(y));
                    cells + rows.max().unwrap_or(0)
                });
                [rows[0] + rows[1], places[0] + places[1]]
            }
        }
    }
}

impl VectorRepeat {
    fn new(v: [i32; 2], other: [i32; 2], is_first: bool) -> Self {
        let long = v[long_axis(v)];
        Self {
            vector: if long < 0 { v.map(|c| -c) } else { v },
            other,
            repeat: Repeat::of(long.abs(), is_first),
        }
    }

    /// The places of the samples of the mean, in 1/16 px from the pixel, from `j = -m-1` on.
    pub fn places(&self) -> Vec<[i32; 2]> {
        let axis = long_axis(self.vector);
        let p = i64::from(self.repeat.pitch);
        let o = i64::from(self.vector[1 - axis]);
        let end = self.repeat.full + 1;
        (-end..=end)
            .map(|j| {
                let across = i64::from(j) * o;
                let across = across.signum() * ((32 * across.abs() + p) / (2 * p));
                let mut place = [across as i32; 2];
                place[axis] = 16 * j;
                place
            })
            .collect()
    }
}

/// The axis of the longer component: x of equal ones.
fn long_axis([x, y]: [i32; 2]) -> usize {
    usize::from(y.abs() > x.abs())
}

/// Pixels from a pixel to the farther tap of a neighbour.
fn margin(sixteenths: i32) -> usize {
    (sixteenths.unsigned_abs() as usize).div_ceil(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: [usize; 2] = [usize::MAX; 2];

    fn vectors(vectors: [[f64; 2]; 2]) -> [VectorRepeat; 2] {
        match Repeats::new(vectors, LARGE) {
            Ok(Repeats::Vectors(along)) => along,
            other => panic!("{vectors:?}: {other:?}"),
        }
    }

    #[test]
    fn vectors_along_the_axes_are_pitches() {
        let axes = |px, py| Repeat::new(px, true, 1000).zip(Repeat::new(py, false, 1000));
        let along = |v| Repeats::new(v, LARGE).expect("repeats").axes().copied();
        let wanted = axes(7.3, 5.0).map(<[Repeat; 2]>::from);
        assert!(wanted.is_some());
        for v in [
            [[7.3, 0.0], [0.0, 5.0]],
            [[-7.3, -0.0], [0.03, -5.0]],
            [[7.3, -0.03], [0.0, 5.0]],
        ] {
            assert_eq!(along(v), wanted, "{v:?}");
        }
        // The mean along the first vector comes first.
        assert_eq!(along([[0.0, 5.0], [7.3, 0.0]]), None);
        assert_eq!(along([[7.3, 0.04], [0.0, 5.0]]), None);
    }

    #[test]
    fn places_are_a_pixel_apart_along_the_longer_component() {
        // 5 px, and two fifths of a pixel across: p = 80, o = 32, m = 2.
        let [a, b] = vectors([[-5.0, -2.0], [3.0, 3.0]]);
        assert_eq!((a.vector, a.repeat.full), ([80, 32], 2));
        let places = [
            [-48, -19],
            [-32, -13],
            [-16, -6],
            [0, 0],
            [16, 6],
            [32, 13],
            [48, 19],
        ];
        assert_eq!(a.places(), places);
        // Of equal components x is the longer one.
        assert_eq!(
            (b.vector, b.other, b.places()[3]),
            ([48, 48], [-80, -32], [16, 16])
        );
        let [down, _] = vectors([[2.0, -5.0], [3.0, 3.0]]);
        assert_eq!((down.vector, down.places()[4]), ([-32, 80], [-6, 16]));
    }

    #[test]
    fn vectors_that_frames_do_not_hold_are_refused() {
        let size = [40, 30];
        assert!(Repeats::new([[19.0, 14.0], [-3.0, 9.0]], size).is_ok());
        for (v, number) in [
            ([[19.1, 1.0], [-3.0, 9.0]], 0),
            ([[9.0, -15.0], [-3.0, 9.0]], 0),
            ([[9.0, 1.0], [3.0, 14.1]], 1),
            ([[9.0, 1.0], [-1.9, 1.9]], 1),
        ] {
            assert_eq!(Repeats::new(v, size), Err(number), "{v:?}");
        }
    }

    #[test]
    fn rows_hold_all_cells_beside() {
        // Of a pitch as ever: the neighbour, and half of the repeat.
        let axes = Repeats::new([[7.3, 0.0], [0.0, 5.0]], LARGE).expect("repeats");
        assert_eq!(axes.rows(), [5, 3]);
        let turned = Repeats::new([[5.0, 2.0], [-1.0, 4.5]], LARGE).expect("repeats");
        // 2 + 5 rows; the mean's farthest places lie 19 and 32 sixteenths away, and a cell 7 rows more.
        assert_eq!(turned.rows(), [7, 2 + 7 + 2 + 7]);
    }
}
