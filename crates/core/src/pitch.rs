//! Distances and thresholds of the pitch comparison.
//!
//! # Source
//! docs/semantics.md, "Pitch comparison and threshold"; `P`, `F`, `A`, `u`, `P2`, `F2` and `θ` are
//! defined there.

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
    }

    #[test]
    fn comparison_impossible_distance_is_refused() {
        for pitch in [0.0, 0.9, -1.0, f64::NAN, f64::INFINITY, 1e12] {
            assert_eq!(Comparison::new(Axis::X, pitch, 1), None, "{pitch}");
        }
    }
}
