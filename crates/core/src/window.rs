//! The part of a plane that an operator works on.

/// Rows of a plane that are processed, among the rows that are there.
///
/// A frame is its own window. A strip of a web is processed with rows of the web above and below it, so
/// that its result does not depend on where the web is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first processed row.
    pub first: usize,
    /// Number of processed rows.
    pub rows: usize,
    /// Number of rows that are there.
    pub height: usize,
    /// Number of the web's row that is row 0 of the plane; 0 for a frame.
    pub web_row: u64,
    /// The plane is part of a web.
    pub is_web: bool,
    /// The last row that is there is the last row of the web. True for a frame.
    pub ends: bool,
}

impl Window {
    /// A whole frame.
    pub fn frame(height: usize) -> Self {
        Self {
            first: 0,
            rows: height,
            height,
            web_row: 0,
            is_web: false,
            ends: true,
        }
    }

    /// The processed rows.
    pub fn span(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.rows
    }

    /// Whether the web ends with the processed rows; true for a frame.
    pub fn ends_web(&self) -> bool {
        self.ends && self.span().end == self.height
    }

    /// The window in the plane without the rows before the first multiple of `step` rows of the web and, unless the web
    /// ends, behind the last one.
    #[must_use]
    pub fn whole(&self, step: usize) -> Self {
        let before = (self.web_row.next_multiple_of(step as u64) - self.web_row) as usize;
        let skipped = before.min(self.first);
        let height = self.height - skipped;
        Self {
            first: self.first - skipped,
            height: if self.ends {
                height
            } else {
                height - height % step
            },
            web_row: self.web_row + skipped as u64,
            ..*self
        }
    }

    /// The window in a plane with one row for `1 << shift` rows.
    #[must_use]
    pub fn subsampled(&self, shift: u32) -> Self {
        let up = |rows: usize| (rows + (1 << shift) - 1) >> shift;
        Self {
            first: self.first >> shift,
            rows: up(self.rows),
            height: up(self.height),
            ..*self
        }
    }
}

/// Rows of a web that a strip needs besides its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reach {
    /// Rows above and below each row.
    pub both: usize,
    /// Rows below each of the web's first [`Self::first`] rows, and above each of as many last rows:
    /// neighbours that take the place of those outside the web.
    pub inward: usize,
    /// Number of rows at each end of the web that lack a neighbour.
    pub first: usize,
    /// Height of a row of tiles, which must be there as a whole; 0 without tiles.
    pub tile: usize,
    /// Rows above each row, if these are more than [`Self::both`].
    pub above: usize,
}

impl Reach {
    /// Most rows above a strip.
    pub fn above(&self) -> usize {
        self.both.max(self.inward).max(self.tile).max(self.above)
    }

    /// Most rows below a strip.
    pub fn below(&self) -> usize {
        self.both.max(self.inward).max(self.tile.saturating_sub(1))
    }

    /// Number of the web's rows that must have come before the strip of these rows is processed, unless
    /// the web ends before.
    pub fn to_come(&self, strip: &std::ops::Range<u64>) -> u64 {
        let (both, inward, first) = (self.both as u64, self.inward as u64, self.first as u64);
        let mut rows = strip.end + both;
        if strip.start < first {
            rows = rows.max(strip.end.min(first) + inward);
        }
        if self.tile > 0 {
            rows = rows.max(strip.end.next_multiple_of(self.tile as u64));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reach_says_when_a_strip_can_be_processed() {
        let reach = Reach {
            both: 66,
            inward: 33,
            first: 17,
            tile: 34,
            above: 0,
        };
        // Two rows of tiles end at row 68, before the 66 rows below row 30.
        assert_eq!(reach.to_come(&(0..30)), 96);
        assert_eq!(reach.to_come(&(30..40)), 106);
        assert_eq!((reach.above(), reach.below()), (66, 66));
        let upward = Reach { above: 90, ..reach };
        assert_eq!((upward.above(), upward.below()), (90, 66));
        let near = Reach { both: 8, ..reach };
        // Row 9 lacks its upper neighbour: it needs row 42.
        assert_eq!(near.to_come(&(0..10)), 43);
        assert_eq!(near.to_come(&(0..30)), 50);
        assert_eq!(near.to_come(&(30..40)), 68);
        assert_eq!(Reach::default().to_come(&(5..6)), 6);
    }

    #[test]
    fn window_subsampled_rounds_outward() {
        let window = Window {
            first: 4,
            rows: 7,
            height: 13,
            ..Window::frame(0)
        };
        let half = window.subsampled(1);
        assert_eq!((half.first, half.rows, half.height), (2, 4, 7));
    }

    #[test]
    fn window_of_whole_steps_begins_and_ends_at_multiples() {
        let strip = Window {
            first: 70,
            rows: 20,
            height: 161,
            web_row: 36,
            is_web: true,
            ends: false,
        };
        let whole = strip.whole(32);
        // Rows 64 to 191 of the web.
        assert_eq!((whole.web_row, whole.first, whole.height), (64, 42, 128));
        assert_eq!(whole.rows, 20);
        let last = Window {
            ends: true,
            ..strip
        };
        assert_eq!(last.whole(32).height, 133);
        assert_eq!(Window::frame(77).whole(32), Window::frame(77));
    }
}
