//! Which parts of a frame are drawn on, as few rectangles.

use super::{
    bits::{Bits, WORD},
    layout::Rect,
};

/// A tile's width, a word of [`Bits`], and its height, px.
const TILE: [i32; 2] = [WORD as i32, 16];
/// GStreamer's blender takes each line of the frame apart and puts it together again, once for
/// each rectangle on it. A gap is worth the blending of its clear pixels where it is narrower than
/// this part of the line.
const GAP_SHARE: i32 = 3;

/// Tiles of a frame that are drawn on.
#[derive(Debug)]
pub(super) struct Tiles {
    frame: Rect,
    columns: usize,
    used: Vec<bool>,
}

impl Tiles {
    pub fn new(frame: Rect) -> Self {
        let count = |n: i32, tile: i32| n.max(0).cast_unsigned().div_ceil(tile.cast_unsigned());
        let columns = count(frame.width, TILE[0]) as usize;
        let rows = count(frame.height, TILE[1]) as usize;
        Self {
            frame,
            columns,
            used: vec![false; columns * rows],
        }
    }

    /// Something is drawn in a rectangle.
    pub fn use_rect(&mut self, rect: Rect) {
        let rect = rect.and(self.frame);
        if rect.is_empty() {
            return;
        }
        let [left, right] = [rect.x, rect.right() - 1].map(|x| (x / TILE[0]) as usize);
        for row in rect.y / TILE[1]..=(rect.bottom() - 1) / TILE[1] {
            let row = row as usize * self.columns;
            self.used[row + left..=row + right].fill(true);
        }
    }

    /// Something is drawn on every marked pixel.
    pub fn use_bits(&mut self, bits: &Bits) {
        for y in 0..self.frame.height {
            let row = (y / TILE[1]) as usize * self.columns;
            for (used, &word) in self.used[row..].iter_mut().zip(bits.row(y as usize)) {
                *used |= word != 0;
            }
        }
    }

    /// Rectangles that hold every used tile, and do not overlap.
    pub fn rectangles(&self) -> Vec<Rect> {
        let mut done: Vec<Rect> = Vec::new();
        let mut above: Vec<Rect> = Vec::new();
        let rows = self.used.chunks(self.columns.max(1));
        for (row, tiles) in (0..).zip(rows) {
            let runs = self.runs(row, tiles);
            let same = above.len() == runs.len()
                && (above.iter().zip(&runs)).all(|(a, b)| a.x == b.x && a.width == b.width);
            if same {
                for (above, run) in above.iter_mut().zip(&runs) {
                    above.height = run.bottom() - above.y;
                }
            } else {
                done.append(&mut above);
                above = runs;
            }
        }
        done.append(&mut above);
        done
    }

    /// The used parts of a row of tiles.
    fn runs(&self, row: i32, tiles: &[bool]) -> Vec<Rect> {
        let mut runs: Vec<Rect> = Vec::new();
        for (column, _) in (0..).zip(tiles).filter(|&(_, &used)| used) {
            let tile = Rect::new(column * TILE[0], row * TILE[1], TILE[0], TILE[1]);
            let tile = tile.and(self.frame);
            match runs.last_mut() {
                Some(run) if tile.x - run.right() <= self.frame.width / GAP_SHARE => {
                    run.width = tile.right() - run.x;
                }
                _ => runs.push(tile),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_hold_what_is_drawn_and_do_not_overlap() {
        let frame = Rect::new(0, 0, 1000, 300);
        let drawn = [
            Rect::new(3, 3, 10, 10),
            Rect::new(3, 18, 10, 30),
            Rect::new(900, 20, 5, 5),
            Rect::new(990, 290, 100, 100),
            Rect::new(-50, 100, 60, 1),
        ];
        let mut tiles = Tiles::new(frame);
        for rect in drawn {
            tiles.use_rect(rect);
        }
        let found = tiles.rectangles();
        for rect in drawn.map(|rect| rect.and(frame)) {
            for (x, y) in
                (rect.y..rect.bottom()).flat_map(|y| (rect.x..rect.right()).map(move |x| (x, y)))
            {
                let pixel = Rect::new(x, y, 1, 1);
                assert_eq!(
                    found.iter().filter(|r| r.touches(pixel)).count(),
                    1,
                    "{pixel:?}"
                );
            }
        }
        for (index, one) in found.iter().enumerate() {
            assert_eq!(one.and(frame), *one);
            assert!(found[index + 1..].iter().all(|other| !one.touches(*other)));
        }
        // Two tiles on top of each other are one rectangle; far apart on a line they are two.
        assert_eq!(found.len(), 6, "{found:?}");
    }

    #[test]
    fn nothing_drawn_and_frames_of_one_pixel_are_no_fault() {
        for size in [1, 63, 64, 65] {
            let frame = Rect::new(0, 0, size, size);
            let mut tiles = Tiles::new(frame);
            assert!(tiles.rectangles().is_empty());
            tiles.use_rect(Rect::new(0, 0, i32::MAX, i32::MAX));
            let area: i32 = tiles.rectangles().iter().map(|r| r.width * r.height).sum();
            assert_eq!(area, size * size);
        }
    }
}
