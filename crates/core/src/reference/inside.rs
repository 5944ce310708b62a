//! The pixels of a model whose samples lie in a frame.

use super::Warp;
use crate::region::Rect;

/// The pixels of a model whose samples lie in a frame: an interval of columns in each row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inside {
    bounds: Rect,
    /// The columns of each row of the model, half open; `None`: those of the bounds.
    spans: Option<Vec<[i32; 2]>>,
}

impl Inside {
    /// The pixels that are read from a frame of this size.
    pub fn new(warp: &Warp, size: [usize; 2]) -> Self {
        let [width, height] = size;
        if warp.is_identity() {
            return Self {
                bounds: Rect::new(0, 0, width, height),
                spans: None,
            };
        }
        Self::of_spans((0..height).map(|y| warp.span(size, y)).collect())
    }

    /// The pixels in these columns of each row, half open.
    pub fn of_spans(spans: Vec<[usize; 2]>) -> Self {
        let filled = || spans.iter().enumerate().filter(|(_, [x0, x1])| x0 < x1);
        let bounds = Rect {
            x0: filled().map(|(_, [x0, _])| *x0).min().unwrap_or(0),
            y0: filled().next().map_or(0, |(y, _)| y),
            x1: filled().map(|(_, [_, x1])| *x1).max().unwrap_or(0),
            y1: filled().next_back().map_or(0, |(y, _)| y + 1),
        };
        let is_rectangle =
            (spans[bounds.y0..bounds.y1].iter()).all(|span| *span == [bounds.x0, bounds.x1]);
        let spans = spans.iter().map(|span| span.map(|x| x as i32));
        Self {
            bounds,
            spans: (!is_rectangle).then(|| spans.collect()),
        }
    }

    /// The smallest rectangle around the pixels.
    pub fn bounds(&self) -> Rect {
        self.bounds
    }

    /// The columns of each row, half open; `None`: the bounds are all inside.
    pub fn spans(&self) -> Option<&[[i32; 2]]> {
        self.spans.as_deref()
    }

    /// The columns of a row, half open.
    pub fn columns(&self, y: usize) -> [usize; 2] {
        if !(self.bounds.y0..self.bounds.y1).contains(&y) {
            return [0, 0];
        }
        let span = self.spans.as_ref().and_then(|spans| spans.get(y));
        span.map_or([self.bounds.x0, self.bounds.x1], |span| {
            span.map(|x| x as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inside_are_the_pixels_whose_taps_lie_in_the_frame() {
        for x in -30..=30 {
            for y in [-3, 0, 5] {
                let inside = Inside::new(&Warp::shifted([64 * x, 64 * y]), [5, 4]);
                assert_eq!(inside.spans(), None, "{x} {y}");
                let holds = |pixel: i32, shift: i32, size: i32| {
                    let first = pixel + shift.div_euclid(4);
                    first >= 0 && first + i32::from(shift % 4 != 0) < size
                };
                for (column, row) in (0..5).flat_map(|x| (0..4).map(move |y| (x, y))) {
                    let [x0, x1] = inside.columns(row as usize);
                    let expected = holds(column, x, 5) && holds(row, y, 4);
                    assert_eq!((x0..x1).contains(&(column as usize)), expected, "{x} {y}");
                }
            }
        }
    }

    #[test]
    fn rows_of_a_turned_frame_have_spans_of_their_own() {
        let warp = Warp {
            coefficients: [3 << 20, -20_000, 40_000, -(5 << 20), 50_000, 9_000],
            nodes: None,
        };
        let size @ [width, height] = [70, 50];
        let inside = Inside::new(&warp, size);
        let spans = inside.spans().expect("spans");
        assert_eq!(spans.len(), height);
        let mut bounds = Rect {
            x0: width,
            y0: height,
            x1: 0,
            y1: 0,
        };
        for (y, span) in spans.iter().enumerate() {
            let columns @ [x0, x1] = warp.span(size, y);
            assert_eq!(inside.columns(y), columns);
            assert_eq!(*span, columns.map(|x| x as i32));
            if x0 < x1 {
                bounds.x0 = bounds.x0.min(x0);
                bounds.y0 = bounds.y0.min(y);
                bounds.x1 = bounds.x1.max(x1);
                bounds.y1 = y + 1;
            }
        }
        assert_eq!(inside.bounds(), bounds);
        assert!(bounds.height() < height);
    }
}
