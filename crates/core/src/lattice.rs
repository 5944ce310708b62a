//! The vectors after which a pattern repeats, and comparisons along them.
//!
//! # Source
//! docs/semantics.md, "Comparison along vectors"; `D`, `P`, `F`, `A` and `θ` are defined there.

use super::{
    ClError,
    pitch::{Axis, Comparison},
    region::Rect,
};

/// The vectors of a lattice are parallel if the sine of the angle between them is smaller: 1°.
const LEAST_SINE: f64 = 0.0175;
/// A longer component is longer than any frame, px.
const MOST_PX: f64 = (1 << 21) as f64;

/// One or two vectors after which a pattern repeats, px; x to the right, y down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lattice {
    vectors: [[f64; 2]; 2],
    count: usize,
}

impl Lattice {
    /// A lattice of one or two vectors.
    ///
    /// # Errors
    /// [`ClError::Refused`] for another number of vectors, a vector that is shorter than a pixel or longer than any
    /// frame, a component that is not a finite number, and parallel vectors.
    pub fn new(vectors: &[[f64; 2]]) -> Result<Self, ClError> {
        let mut own = [[0.0; 2]; 2];
        let count = vectors.len();
        if !(1..=2).contains(&count) {
            return Err(refused(format!(
                "a lattice has one or two vectors, not {count}"
            )));
        }
        for (at, &vector) in vectors.iter().enumerate() {
            let [x, y] = vector;
            if !(x.is_finite() && y.is_finite()) {
                return Err(refused(format!(
                    "the lattice's vector ({x}, {y}) has a component that is not a finite number; set pixels"
                )));
            }
            if x.abs() >= MOST_PX || y.abs() >= MOST_PX {
                return Err(refused(format!(
                    "the lattice's vector ({x}, {y}) is longer than any frame; set the distance after which the \
                     pattern repeats, in pixels"
                )));
            }
            if Distance::new(vector, 1).is_short() {
                return Err(refused(format!(
                    "the lattice's vector ({x}, {y}) is shorter than 1 pixel along both axes; set the distance after \
                     which the pattern repeats, in pixels"
                )));
            }
            if let Some(slot) = own.get_mut(at) {
                *slot = vector;
            }
        }
        let [a, b] = own;
        let cross = a[0] * b[1] - a[1] * b[0];
        if count == 2 && cross.abs() < LEAST_SINE * length(a) * length(b) {
            return Err(refused(format!(
                "the lattice's vectors ({}, {}) and ({}, {}) are parallel; set vectors of two directions, or one vector \
                 for a pattern of lines",
                a[0], a[1], b[0], b[1]
            )));
        }
        Ok(Self {
            vectors: own,
            count,
        })
    }

    /// The lattice of a property: `ax, ay` or `ax, ay, bx, by` in pixels; `None` of no numbers.
    ///
    /// # Errors
    /// [`ClError::Refused`] for another number of numbers; as [`Self::new`].
    pub fn of_numbers(numbers: &[f64]) -> Result<Option<Self>, ClError> {
        match *numbers {
            [] => Ok(None),
            [ax, ay] => Self::new(&[[ax, ay]]).map(Some),
            [ax, ay, bx, by] => Self::new(&[[ax, ay], [bx, by]]).map(Some),
            _ => Err(refused(format!(
                "lattice has {} numbers; set four, <ax, ay, bx, by>, for a pattern with two vectors, two, <ax, ay>, for \
                 one, or none to compare along rows and columns",
                numbers.len()
            ))),
        }
    }

    /// The vectors: `A`, and `B` if there are two.
    pub fn vectors(&self) -> &[[f64; 2]] {
        self.vectors.get(..self.count).unwrap_or_default()
    }

    /// Both vectors; instead of a second one that is not there, the one along the lines, as long as the first.
    pub fn both(&self) -> [[f64; 2]; 2] {
        let [a, b] = self.vectors;
        [a, if self.count == 2 { b } else { [-a[1], a[0]] }]
    }

    /// The pitches along x and y, px, 0 for none, if the first vector lies along x and the second along y, or if the only
    /// one lies along an axis: then rows and columns are compared.
    pub fn pitches(&self) -> Option<[f64; 2]> {
        match *self.vectors() {
            [[x, 0.0]] => Some([x.abs(), 0.0]),
            [[0.0, y]] => Some([0.0, y.abs()]),
            [[x, 0.0], [0.0, y]] => Some([x.abs(), y.abs()]),
            _ => None,
        }
    }

    /// Width and height of the box around a cell, px: the pitches if these are the pattern's.
    pub fn cell_box(&self) -> [f64; 2] {
        let sum = |axis: usize| self.vectors().iter().map(|v| v[axis].abs()).sum();
        [sum(0), sum(1)]
    }

    /// Lengths of the vectors, px; 0 for a second one that is not there.
    pub fn lengths(&self) -> [f64; 2] {
        self.vectors.map(length)
    }
}

fn length([x, y]: [f64; 2]) -> f64 {
    x.hypot(y)
}

fn refused(why: String) -> ClError {
    ClError::Refused(why)
}

/// The way from a pixel to a neighbour, 1/256 px (`D`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distance {
    /// Along x, with its sign.
    pub x: i32,
    /// Along y, with its sign.
    pub y: i32,
}

impl Distance {
    /// `times` vectors; both components are finite, and so small that `times` of them fit.
    fn new([x, y]: [f64; 2], times: u32) -> Self {
        // Halves are rounded away from zero.
        let round = |v: f64| (256.0 * f64::from(times) * v).round() as i32;
        Self {
            x: round(x),
            y: round(y),
        }
    }

    fn is_short(self) -> bool {
        self.x.abs() < 256 && self.y.abs() < 256
    }

    fn reversed(self) -> Self {
        Self {
            x: -self.x,
            y: -self.y,
        }
    }

    /// Pixels at the edges of a frame, along x and y, that lack a neighbour at this distance (`P + u`).
    pub fn margins(self) -> [usize; 2] {
        [self.x, self.y].map(margin)
    }

    /// The pixels of a frame whose neighbour at this distance has all its samples in the frame; may be empty.
    fn held(self, [width, height]: [usize; 2]) -> Rect {
        let (x0, x1) = behind_edge(self.x, margin(self.x), width);
        let (y0, y1) = behind_edge(self.y, margin(self.y), height);
        Rect { x0, y0, x1, y1 }
    }

    /// The pixels that are at least `edge` away from each edge beyond which their neighbour at this distance lies.
    fn away(self, [width, height]: [usize; 2], edge: usize) -> Rect {
        let (x0, x1) = behind_edge(self.x, margin(self.x).min(edge), width);
        let (y0, y1) = behind_edge(self.y, margin(self.y).min(edge), height);
        Rect { x0, y0, x1, y1 }
    }
}

fn margin(distance: i32) -> usize {
    (distance.unsigned_abs() as usize).div_ceil(256)
}

/// Places of an axis of `n` that are at least `margin` away from the edge towards which `distance` points.
fn behind_edge(distance: i32, margin: usize, n: usize) -> (usize, usize) {
    if distance < 0 {
        (margin.min(n), n)
    } else {
        (0, n.saturating_sub(margin))
    }
}

/// One comparison of a pixel with its two neighbours, one multiple of a vector away in both senses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorComparison {
    /// Number of the vector: 0 for `A`, 1 for `B`.
    pub vector: usize,
    /// Multiple of the vector.
    pub multiple: u32,
    /// To the neighbour at `+k·v`.
    pub distance: Distance,
    /// To the neighbour at `+2k·v`, which is rounded on its own.
    pub double: Distance,
}

impl VectorComparison {
    /// The comparison at `multiple` times a vector in px; `None` for a distance under one pixel along both axes or beyond
    /// what a frame can hold.
    pub fn new(vector: usize, v: [f64; 2], multiple: u32) -> Option<Self> {
        let is_held = |c: f64| f64::from(multiple) * c.abs() < MOST_PX;
        if !v.into_iter().all(is_held) {
            return None;
        }
        let distance = Distance::new(v, multiple);
        (!distance.is_short()).then(|| Self {
            vector,
            multiple,
            distance,
            double: Distance::new(v, 2 * multiple),
        })
    }

    /// The pixels of a `width` × `height` frame that this comparison judges, as rectangles without common pixels: those
    /// with both neighbours, then, unless `inward` is `None`, those that lack one, have the one two distances away on the
    /// other side, and are at least `inward` pixels away from each edge beyond which the missing one lies.
    pub fn judged(&self, width: usize, height: usize, inward: Option<usize>) -> Vec<Rect> {
        let size = [width, height];
        let (ahead, behind) = (self.distance, self.distance.reversed());
        let mut judged = vec![ahead.held(size).intersect(&behind.held(size))];
        if let Some(edge) = inward {
            for (missing, there, far) in [
                (behind, ahead, self.double),
                (ahead, behind, self.double.reversed()),
            ] {
                let with = there.held(size).intersect(&far.held(size));
                let with = with.intersect(&missing.away(size, edge));
                judged.extend(without(&with, &missing.held(size)));
            }
        }
        judged.retain(|rect| !rect.is_empty());
        judged
    }
}

impl From<&Comparison> for VectorComparison {
    fn from(c: &Comparison) -> Self {
        let near = 256 * c.whole + c.fraction;
        let far = 256 * c.whole2 + c.fraction2;
        let along = |distance| match c.axis {
            Axis::X => Distance { x: distance, y: 0 },
            Axis::Y => Distance { x: 0, y: distance },
        };
        Self {
            vector: usize::from(c.axis == Axis::Y),
            multiple: c.multiple,
            distance: along(near),
            double: along(far),
        }
    }
}

/// The pixels of a rectangle that do not lie in another one, as rectangles without common pixels; they may be empty.
fn without(rect: &Rect, hole: &Rect) -> [Rect; 4] {
    let inside = rect.intersect(hole);
    if inside.is_empty() {
        return [*rect, Rect::default(), Rect::default(), Rect::default()];
    }
    let beside = Rect {
        y0: inside.y0,
        y1: inside.y1,
        ..*rect
    };
    [
        Rect {
            y1: inside.y0,
            ..*rect
        },
        Rect {
            x1: inside.x0,
            ..beside
        },
        Rect {
            x0: inside.x1,
            ..beside
        },
        Rect {
            y0: inside.y1,
            ..*rect
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{area, union_of};

    fn why(lattice: Result<Lattice, ClError>) -> String {
        match lattice {
            Err(ClError::Refused(why)) => why,
            other => format!("not refused: {other:?}"),
        }
    }

    #[test]
    fn lattice_that_cannot_be_used_is_refused() {
        for (vectors, reason) in [
            (&[][..], "not 0"),
            (&[[9.0, 1.0], [1.0, 9.0], [3.0, 3.0]], "not 3"),
            (&[[9.0, f64::NAN]], "not a finite number"),
            (&[[f64::INFINITY, 0.0]], "not a finite number"),
            (&[[0.99, -0.99]], "shorter than 1 pixel"),
            (&[[9.0, 0.0], [0.0, 0.0]], "shorter than 1 pixel"),
            (&[[9.0, 1.0], [1e7, 0.0]], "longer than any frame"),
            (&[[9.0, 1.0], [-18.0, -2.0]], "parallel"),
            (&[[9.0, 1.0], [9.0, 1.1]], "parallel"),
        ] {
            let refused = why(Lattice::new(vectors));
            assert!(refused.contains(reason), "{vectors:?}: {refused}");
        }
        // Half a pixel along each axis is refused by components, not by length: 0.998 px are 255.5 of 256.
        assert!(Lattice::new(&[[0.998_05, 0.0]]).is_ok());
        assert!(Lattice::new(&[[9.0, 1.0], [9.0, 1.5]]).is_ok());
    }

    #[test]
    fn numbers_of_a_property_are_one_vector_or_two() {
        assert_eq!(Lattice::of_numbers(&[]).ok(), Some(None));
        let lattice = |numbers: &[f64]| Lattice::of_numbers(numbers).ok().flatten();
        let one = lattice(&[3.0, 4.0]).expect("a lattice");
        assert_eq!(
            (one.vectors(), one.lengths()),
            (&[[3.0, 4.0]][..], [5.0, 0.0])
        );
        let two = lattice(&[8.0, 1.0, -2.0, 7.0]).expect("a lattice");
        assert_eq!(two.vectors(), [[8.0, 1.0], [-2.0, 7.0]]);
        assert_eq!((two.cell_box(), two.pitches()), ([10.0, 8.0], None));
        assert!(why(Lattice::of_numbers(&[1.0; 3]).map(|l| l.expect("one"))).contains("3 numbers"));
    }

    #[test]
    fn vector_of_lines_has_one_along_them() {
        let both = |vectors: &[[f64; 2]]| Lattice::new(vectors).expect("a lattice").both();
        assert_eq!(both(&[[8.0, 1.5]]), [[8.0, 1.5], [-1.5, 8.0]]);
        assert_eq!(both(&[[8.0, 1.5], [0.0, 5.0]]), [[8.0, 1.5], [0.0, 5.0]]);
    }

    #[test]
    fn vectors_along_the_axes_are_pitches() {
        let pitches = |vectors: &[[f64; 2]]| Lattice::new(vectors).expect("a lattice").pitches();
        assert_eq!(pitches(&[[7.5, 0.0], [0.0, -9.0]]), Some([7.5, 9.0]));
        assert_eq!(pitches(&[[-7.5, -0.0]]), Some([7.5, 0.0]));
        assert_eq!(pitches(&[[0.0, 9.0]]), Some([0.0, 9.0]));
        // The order of the comparisons is that of the vectors.
        assert_eq!(pitches(&[[0.0, 9.0], [7.5, 0.0]]), None);
        assert_eq!(pitches(&[[7.5, 0.01], [0.0, 9.0]]), None);
    }

    #[test]
    fn comparison_at_a_pitch_is_that_along_its_vector() {
        for pitch in [5.0, 7.35, 1.002] {
            let x = Comparison::new(Axis::X, pitch, 3).expect("a comparison");
            let along_x = VectorComparison::new(0, [pitch, 0.0], 3);
            assert_eq!(Some(VectorComparison::from(&x)), along_x);
            let y = Comparison::new(Axis::Y, pitch, 3).expect("a comparison");
            let along_y = VectorComparison::new(1, [0.0, pitch], 3);
            assert_eq!(Some(VectorComparison::from(&y)), along_y);
        }
    }

    #[test]
    fn comparison_at_a_whole_pitch_judges_all_with_both_neighbours() {
        let c = VectorComparison::new(0, [5.0, 0.0], 2).expect("a comparison");
        assert_eq!(c.judged(21, 4, None), [Rect::new(10, 0, 1, 4)]);
        assert!(c.judged(20, 4, None).is_empty());
    }

    #[test]
    fn comparison_inward_judges_the_whole_axis_from_three_distances_and_a_pixel() {
        for (pitch, multiple) in [(5.0, 1), (5.0, 4), (7.35, 1), (9.5, 3), (1.002, 1)] {
            for pitch in [pitch, -pitch] {
                let c = VectorComparison::new(1, [0.0, pitch], multiple).expect("a comparison");
                let ([_, margin], [_, margin2]) = (c.distance.margins(), c.double.margins());
                let whole = margin + margin2;
                for n in 0..2 * whole {
                    let judged = |edge| c.judged(3, n, Some(edge));
                    let rows = |edge| judged(edge).iter().map(Rect::height).sum::<usize>();
                    assert_eq!(area(&union_of(&judged(0), &judged(0))), 3 * rows(0) as u64);
                    if n >= whole {
                        assert_eq!(rows(0), n, "{c:?} of {n}");
                        // Two pixels at each edge, of those that are not judged with both neighbours.
                        assert_eq!(rows(2), n - 2 * margin.min(2), "{c:?} of {n}");
                    } else {
                        assert!(rows(0) < n || n == 0, "{c:?} of {n}");
                    }
                }
            }
        }
    }

    #[test]
    fn pixels_with_the_neighbour_beyond_two_edges_keep_away_from_both() {
        let comparison = VectorComparison::new(0, [5.0, -3.0], 1).expect("a comparison");
        let judged = comparison.judged(40, 30, Some(2));
        let holds = |x, y| {
            judged
                .iter()
                .filter(|r| (r.x0..r.x1).contains(&x) && (r.y0..r.y1).contains(&y))
                .count()
        };
        // The neighbour at -v of the lower left corner lies beyond the left and the lower edge.
        assert_eq!(
            [
                holds(2, 27),
                holds(1, 27),
                holds(2, 28),
                holds(20, 28),
                holds(0, 15)
            ],
            [1, 0, 0, 0, 0]
        );
        // The upper left corner: -v lies beyond the left edge, +v beyond the upper one.
        assert_eq!(
            [holds(4, 2), holds(5, 2), holds(5, 3), holds(4, 5)],
            [0, 0, 1, 0]
        );
        assert_eq!([holds(4, 6), holds(2, 6), holds(1, 6)], [1, 1, 0]);
        assert!(judged.iter().all(|r| !r.is_empty()));
        assert!((0..40).all(|x| (0..30).all(|y| holds(x, y) <= 1)));
    }
}
