//! Distances and thresholds of the pitch comparison, and the pixels that it can judge.
//!
//! # Source
//! docs/semantics.md, "Pitch comparison and threshold"; `P`, `F`, `A`, `u`, `P2`, `F2` and `θ` are
//! defined there.

use super::region::Rect;

/// Axis of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Neighbours left and right.
    X,
    /// Neighbours above and below.
    Y,
}

/// One comparison of a pixel with its two neighbours at one distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison {
    /// Axis along which the neighbours lie.
    pub axis: Axis,
    /// Whole pixels of the distance (`P`).
    pub whole: i32,
    /// Fraction of the distance in 1/256 px (`F`).
    pub fraction: i32,
    /// Blur of the matched centre in 1/256 (`A`).
    pub blur: i32,
    /// Multiple of the pitch.
    pub multiple: u32,
    /// Whole pixels of twice the distance (`P2`), for neighbours that are replaced inward.
    pub whole2: i32,
    /// Fraction of twice the distance in 1/256 px (`F2`).
    pub fraction2: i32,
}

impl Comparison {
    /// Distance of `multiple` pitches of `pitch_px`, rounded to 1/256 px.
    ///
    /// Returns `None` for a distance under one pixel or beyond what a frame can hold.
    pub fn new(axis: Axis, pitch_px: f64, multiple: u32) -> Option<Self> {
        let distance = (256.0 * f64::from(multiple) * pitch_px).round();
        if !(256.0..256.0 * f64::from(1 << 21)).contains(&distance) {
            return None;
        }
        let distance = distance as i32;
        let distance2 = (512.0 * f64::from(multiple) * pitch_px).round() as i32;
        let fraction = distance & 255;
        Some(Self {
            axis,
            whole: distance >> 8,
            fraction,
            blur: (fraction * (256 - fraction) + 256) / 512,
            multiple,
            whole2: distance2 >> 8,
            fraction2: distance2 & 255,
        })
    }

    /// Pixels at each edge of the frame that lack a neighbour (`P + u`).
    pub fn margin(&self) -> usize {
        self.whole as usize + usize::from(self.fraction > 0)
    }

    /// The same for a neighbour at twice the distance.
    pub fn margin2(&self) -> usize {
        self.whole2 as usize + usize::from(self.fraction2 > 0)
    }

    /// The pixels of a `width` × `height` frame that this comparison judges, as rectangles without
    /// common pixels: those with both neighbours, then, unless `inward` is `None`, those that lack the
    /// left (upper) or the right (lower) neighbour and are at least `inward` pixels away from that edge.
    /// Rectangles may be empty.
    pub fn judged(&self, width: usize, height: usize, inward: Option<usize>) -> [Rect; 3] {
        let n = match self.axis {
            Axis::X => width,
            Axis::Y => height,
        };
        let (margin, margin2) = (self.margin().min(n), self.margin2().min(n));
        let left = margin.min(n - margin2);
        let right = (n - margin).max(margin2);
        let sides = match inward {
            Some(edge) => [
                (edge.min(left), left),
                (right, n.saturating_sub(edge).max(right)),
            ],
            None => [(0, 0); 2],
        };
        [(margin, (n - margin).max(margin)), sides[0], sides[1]].map(|(from, to)| match self.axis {
            Axis::X => Rect {
                x0: from,
                y0: 0,
                x1: to,
                y1: height,
            },
            Axis::Y => Rect {
                x0: 0,
                y0: from,
                x1: width,
                y1: to,
            },
        })
    }
}

/// The threshold in 1/256 grey levels (`θ`); `threshold` is at least 0.
pub fn threshold_q8(threshold: f64) -> i32 {
    (256.0 * threshold)
        .round()
        .clamp(0.0, f64::from(i32::MAX / 2)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_half_pixel_pitch_has_fraction_128_and_blur_32() {
        let c = Comparison::new(Axis::X, 9.5, 1).expect("comparison");
        assert_eq!((c.whole, c.fraction, c.blur), (9, 128, 32));
        assert_eq!(c.margin(), 10);
    }

    #[test]
    fn comparison_whole_pitch_reads_no_further_tap() {
        let c = Comparison::new(Axis::X, 5.0, 2).expect("comparison");
        assert_eq!((c.whole, c.fraction, c.blur, c.margin()), (10, 0, 0, 10));
        let [judged, left, right] = c.judged(21, 4, None);
        assert_eq!((judged.x0, judged.x1, judged.y1), (10, 11, 4));
        assert!(left.is_empty() && right.is_empty());
        assert!(c.judged(20, 4, None)[0].is_empty());
    }

    #[test]
    fn comparison_inward_judges_the_whole_axis_from_three_distances_and_a_pixel() {
        for (pitch, multiple) in [(5.0, 1), (5.0, 4), (7.35, 1), (9.5, 3), (1.002, 1)] {
            let c = Comparison::new(Axis::Y, pitch, multiple).expect("comparison");
            let whole = c.margin() + c.margin2();
            for n in 0..2 * whole {
                let judged: usize = (c.judged(3, n, Some(0)).iter()).map(Rect::height).sum();
                if n >= whole {
                    assert_eq!(judged, n, "{c:?} of {n}");
                } else {
                    assert!(judged < n || n == 0, "{c:?} of {n}");
                }
                // Two pixels at each edge, of those that are not judged with both neighbours.
                let edge: usize = (c.judged(3, n, Some(2)).iter()).map(Rect::height).sum();
                if n >= whole {
                    assert_eq!(edge, n - 2 * c.margin().min(2), "{c:?} of {n}");
                }
            }
        }
    }

    #[test]
    fn comparison_impossible_distance_is_refused() {
        for pitch in [0.0, 0.9, -1.0, f64::NAN, f64::INFINITY, 1e12] {
            assert_eq!(Comparison::new(Axis::X, pitch, 1), None, "{pitch}");
        }
    }
}
