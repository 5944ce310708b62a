//! Rectangles of pixels.

/// A rectangle in pixels; a width or height of 0 or less is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Area {
    pub x: i32,
    pub y: i32,
    pub width: i32,
    pub height: i32,
}

impl Area {
    pub fn new(x: i32, y: i32, width: i32, height: i32) -> Self {
        Self {
            x,
            y,
            width,
            height,
        }
    }

    /// One past the last column.
    pub fn right(self) -> i32 {
        self.x + self.width
    }

    /// One past the last row.
    pub fn bottom(self) -> i32 {
        self.y + self.height
    }

    pub fn is_empty(self) -> bool {
        self.width <= 0 || self.height <= 0
    }

    /// The intersection.
    pub fn and(self, other: Self) -> Self {
        let (x, y) = (self.x.max(other.x), self.y.max(other.y));
        Self {
            x,
            y,
            width: self.right().min(other.right()) - x,
            height: self.bottom().min(other.bottom()) - y,
        }
    }

    pub fn touches(self, other: Self) -> bool {
        !self.and(other).is_empty()
    }

    /// The rectangle without a border of width `by`; empty if nothing remains.
    pub fn inset(self, by: i32) -> Self {
        Self::new(
            self.x + by,
            self.y + by,
            self.width - 2 * by,
            self.height - 2 * by,
        )
    }
}
