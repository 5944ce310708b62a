//! Polygons, drawn exactly.
//!
//! # Source
//! docs/semantics.md, "Pixels that are not judged".

use std::ops::Range;

use super::Bitmap;
use crate::mask::packed_stride;

/// Largest coordinate, px. A coordinate in 1/256 px then has at most 53 bits, so that the products of
/// two differences fit 128 bits, and rounding an f64 to it is exact.
const LARGEST: f64 = (1_u64 << 45) as f64;
/// Parts of a pixel.
const PARTS: i64 = 256;

/// A closed polygon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Polygon {
    /// In 1/256 px.
    vertices: Vec<[i64; 2]>,
}

/// An edge that is not horizontal, in 1/256 px; `y0 < y1`.
#[derive(Debug, Clone, Copy)]
struct Edge {
    x0: i64,
    y0: i64,
    x1: i64,
    y1: i64,
}

impl Edge {
    /// The rows whose pixel centres are not above the upper end, and above the lower one.
    fn rows(&self) -> Range<i64> {
        first_centre(self.y0)..first_centre(self.y1)
    }

    /// The first pixel of a row whose centre is not left of the edge.
    fn first_pixel(&self, y: i64) -> i64 {
        if self.x0 == self.x1 {
            return first_centre(self.x0);
        }
        let [x0, y0, x1, y1] = [self.x0, self.y0, self.x1, self.y1].map(i128::from);
        let centre = i128::from(PARTS * y + PARTS / 2);
        let height = y1 - y0;
        // The edge is at `crossing / height`.
        let crossing = x0 * height + (centre - y0) * (x1 - x0);
        let parts = i128::from(PARTS);
        let pixel = ceil_div(crossing - parts / 2 * height, parts * height);
        // Within the edge's ends, so within 46 bits.
        pixel as i64
    }
}

/// The first pixel whose centre is at `position` or after it, in 1/256 px.
fn first_centre(position: i64) -> i64 {
    -(PARTS / 2 - position).div_euclid(PARTS)
}

fn ceil_div(a: i128, b: i128) -> i128 {
    -(-a).div_euclid(b)
}

impl Polygon {
    /// A polygon with the points `<x0, y0, x1, y1, ...>`, px.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the numbers.
    pub fn new(numbers: &[f64]) -> Result<Self, String> {
        if numbers.len() < 6 || !numbers.len().is_multiple_of(2) {
            return Err(format!(
                "a polygon has {} numbers; give it at least three points, <x0, y0, x1, y1, x2, y2>",
                numbers.len()
            ));
        }
        if let Some(wrong) = numbers.iter().find(|n| !(-LARGEST..=LARGEST).contains(*n)) {
            return Err(format!(
                "{wrong} is no coordinate of a polygon; set numbers of pixels from -2^45 to 2^45"
            ));
        }
        let part = |n: f64| (PARTS as f64 * n).round() as i64;
        let (points, _) = numbers.as_chunks::<2>();
        Ok(Self {
            vertices: points.iter().map(|&[x, y]| [part(x), part(y)]).collect(),
        })
    }

    fn edges(&self) -> impl Iterator<Item = Edge> {
        let next = self.vertices.iter().cycle().skip(1);
        let edges = self.vertices.iter().zip(next).map(|(&a, &b)| {
            let ([x0, y0], [x1, y1]) = if a[1] <= b[1] { (a, b) } else { (b, a) };
            Edge { x0, y0, x1, y1 }
        });
        edges.filter(|edge| edge.y0 < edge.y1)
    }

    /// Whether the polygon may have a pixel in `rows` rows from `first` on.
    pub(super) fn touches(&self, first: u64, rows: usize) -> bool {
        self.edges()
            .any(|edge| !window(edge.rows(), first, rows).is_empty())
    }

    /// Sets the pixels of the polygon; row 0 of the bitmap is row `first`.
    pub(super) fn draw(&self, first: u64, bitmap: &mut Bitmap) {
        let (width, rows) = (bitmap.width, bitmap.rows());
        let stride = packed_stride(width);
        // The bit where a row crosses an edge is inverted; then a pixel is inside if the number of set
        // bits up to it is odd.
        let windows = (self.edges()).map(|edge| window(edge.rows(), first, rows));
        let drawn = (windows.filter(|window| !window.is_empty()))
            .fold(rows..0, |a, b| a.start.min(b.start)..a.end.max(b.end));
        if drawn.is_empty() || width == 0 {
            return;
        }
        let mut crossings = vec![0_u8; stride * drawn.len()];
        let (mut left, mut right) = (stride, 0);
        for edge in self.edges() {
            for row in window(edge.rows(), first, rows) {
                let x = edge.first_pixel(row as i64 + first as i64).max(0);
                if let Some(x) = usize::try_from(x).ok().filter(|&x| x < width) {
                    (left, right) = (left.min(x / 8), right.max(x / 8 + 1));
                    crossings[(row - drawn.start) * stride + x / 8] ^= 0x80 >> (x % 8);
                }
            }
        }
        if left >= right {
            return;
        }
        let last = 0xff_u8 << (8 * stride - width);
        for (row, crossings) in drawn.zip(crossings.chunks_exact(stride)) {
            let row = bitmap.row_mut(row);
            if fill(&crossings[left..right], &mut row[left..right]) {
                row[right..].fill(0xff);
            }
            // Bits past the width stay 0.
            if let Some(byte) = row.last_mut() {
                *byte &= last;
            }
        }
    }
}

/// Sets the pixels with an odd number of crossings up to them; returns whether it is odd after the last
/// one.
fn fill(crossings: &[u8], row: &mut [u8]) -> bool {
    let (words, bytes) = crossings.as_chunks::<8>();
    let (out_words, out_bytes) = row.as_chunks_mut::<8>();
    let mut inside = 0_u64;
    for (crossings, out) in words.iter().zip(out_words) {
        let mut bits = u64::from_be_bytes(*crossings);
        for shift in [1, 2, 4, 8, 16, 32] {
            bits ^= bits >> shift;
        }
        bits ^= inside;
        inside = (bits & 1).wrapping_neg();
        *out = (u64::from_be_bytes(*out) | bits).to_be_bytes();
    }
    let mut inside = inside as u8;
    for (crossings, out) in bytes.iter().zip(out_bytes) {
        let mut bits = *crossings;
        for shift in [1, 2, 4] {
            bits ^= bits >> shift;
        }
        bits ^= inside;
        inside = (bits & 1).wrapping_neg();
        *out |= bits;
    }
    inside != 0
}

/// The part of an edge's rows in a bitmap of `rows` rows that begins at row `first`.
fn window(edge: Range<i64>, first: u64, rows: usize) -> Range<usize> {
    // An edge has less than 2^46 rows, all of them numbers of 46 bits.
    let first = i64::try_from(first)
        .unwrap_or(i64::MAX / 2)
        .min(i64::MAX / 2);
    let rows = i64::try_from(rows)
        .unwrap_or(i64::MAX / 2)
        .min(i64::MAX / 2);
    let inside = |y: i64| (y - first).clamp(0, rows) as usize;
    inside(edge.start)..inside(edge.end)
}
