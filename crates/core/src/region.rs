//! Rectangles of pixels, half-open.

/// Pixels `x0 ≤ x < x1`, `y0 ≤ y < y1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rect {
    /// First column.
    pub x0: usize,
    /// First row.
    pub y0: usize,
    /// One past the last column.
    pub x1: usize,
    /// One past the last row.
    pub y1: usize,
}

impl Rect {
    /// A rectangle from its corner and size.
    pub fn new(x: usize, y: usize, width: usize, height: usize) -> Self {
        Self {
            x0: x,
            y0: y,
            x1: x.saturating_add(width),
            y1: y.saturating_add(height),
        }
    }

    /// Pixels per row.
    pub fn width(&self) -> usize {
        self.x1.saturating_sub(self.x0)
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.y1.saturating_sub(self.y0)
    }

    /// Whether no pixel lies inside.
    pub fn is_empty(&self) -> bool {
        self.width() == 0 || self.height() == 0
    }

    /// The pixels in both.
    pub fn intersect(&self, other: &Self) -> Self {
        Self {
            x0: self.x0.max(other.x0),
            y0: self.y0.max(other.y0),
            x1: self.x1.min(other.x1),
            y1: self.y1.min(other.y1),
        }
    }

    /// The region in samples of a component that is subsampled by the two shifts: grown outward to
    /// whole samples and clipped to the component's `width` × `height`.
    pub fn subsample(&self, w_sub: u32, h_sub: u32, width: usize, height: usize) -> Self {
        let up = |v: usize, shift: u32| (v + (1 << shift) - 1) >> shift;
        Self {
            x0: (self.x0 >> w_sub).min(width),
            y0: (self.y0 >> h_sub).min(height),
            x1: up(self.x1, w_sub).min(width),
            y1: up(self.y1, h_sub).min(height),
        }
    }
}

/// The pixels of a region property: `<x, y, width, height>`, all zero for the whole frame.
///
/// # Errors
/// A sentence that says what is wrong if the region is empty or not inside the frame.
pub fn user_region(region: [u32; 4], width: usize, height: usize) -> Result<Rect, String> {
    if region == [0; 4] {
        return Ok(Rect::new(0, 0, width, height));
    }
    let [x, y, w, h] = region.map(|v| v as usize);
    let rect = Rect::new(x, y, w, h);
    if rect.is_empty() {
        return Err(format!(
            "the region <{x}, {y}, {w}, {h}> holds no pixel: give it a width and a height of at \
             least 1, or four zeros for the whole frame"
        ));
    }
    if rect.x1 > width || rect.y1 > height {
        return Err(format!(
            "the region <{x}, {y}, {w}, {h}> reaches outside the {width}x{height} frame: \
             x + width may be at most {width}, y + height at most {height}"
        ));
    }
    Ok(rect)
}

/// Checks a region property without a frame.
///
/// # Errors
/// A sentence that says what is wrong if the region is empty.
pub fn check_region(region: [u32; 4]) -> Result<(), String> {
    user_region(region, usize::MAX, usize::MAX).map(|_| ())
}

/// The pixels that lie in at least one of `a` and in at least one of `b`, as rectangles without common
/// pixels.
pub fn union_of(a: &[Rect], b: &[Rect]) -> Vec<Rect> {
    let pieces: Vec<Rect> = a
        .iter()
        .flat_map(|r| b.iter().map(move |s| r.intersect(s)))
        .filter(|r| !r.is_empty())
        .collect();
    let mut ys: Vec<usize> = pieces.iter().flat_map(|r| [r.y0, r.y1]).collect();
    ys.sort_unstable();
    ys.dedup();
    let mut union = Vec::new();
    for band in ys.windows(2) {
        let mut spans: Vec<(usize, usize)> = pieces
            .iter()
            .filter(|r| r.y0 <= band[0] && band[0] < r.y1)
            .map(|r| (r.x0, r.x1))
            .collect();
        spans.sort_unstable();
        let mut end = 0;
        for (x0, x1) in spans {
            let rect = Rect {
                x0: x0.max(end),
                y0: band[0],
                x1,
                y1: band[1],
            };
            if !rect.is_empty() {
                union.push(rect);
            }
            end = end.max(x1);
        }
    }
    union
}

/// Number of pixels in rectangles without common pixels.
pub fn area(rects: &[Rect]) -> u64 {
    let area = |r: &Rect| r.width() as u64 * r.height() as u64;
    rects.iter().map(area).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn union_of_overlapping_rectangles_has_a_pixel_once() {
        let a = [Rect::new(0, 0, 10, 10), Rect::new(5, 5, 10, 10)];
        let b = [Rect::new(0, 0, 20, 7), Rect::new(0, 0, 7, 20)];
        let mut expected = 0;
        for y in 0..20 {
            for x in 0..20 {
                let inside = |r: &Rect| r.x0 <= x && x < r.x1 && r.y0 <= y && y < r.y1;
                expected += u64::from(a.iter().any(inside) && b.iter().any(inside));
            }
        }
        assert_eq!(area(&union_of(&a, &b)), expected);
        assert!(union_of(&a, &[]).is_empty());
    }

    #[test]
    fn subsample_odd_region_grows_to_whole_chroma_samples() {
        let region = Rect::new(3, 1, 2, 2).subsample(1, 1, 4, 3);
        assert_eq!(
            region,
            Rect {
                x0: 1,
                y0: 0,
                x1: 3,
                y1: 2
            }
        );
    }

    #[test]
    fn user_region_outside_the_frame_is_refused_with_a_sentence() {
        assert!(user_region([0, 0, 0, 0], 7, 5).is_ok());
        assert!(user_region([6, 4, 1, 1], 7, 5).is_ok());
        assert!(user_region([6, 4, 2, 1], 7, 5).is_err());
        assert!(user_region([0, 0, 0, 1], 7, 5).is_err());
        assert!(user_region([u32::MAX, 0, u32::MAX, 1], 7, 5).is_err());
    }
}
