//! Tiles of the comparison across scales on a GPU: their sizes, and the local memory that they take.

/// Work-items per tile; the kernels' GROUP.
pub const TILE_GROUP: usize = 256;

/// Sizes of tiles along an axis, px: along it and across it. The first one that fits is the fastest.
const ALONG_X: [[usize; 2]; 2] = [[512, 32], [256, 32]];
const ALONG_Y: [[usize; 2]; 3] = [[256, 64], [512, 32], [256, 32]];

/// The tiles of a frame, and the words of local memory for the odd and for the even levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaleTiles {
    /// Columns and rows of a tile along x, px.
    pub x: [usize; 2],
    /// Columns and rows of a tile along y, px.
    pub y: [usize; 2],
    /// Words of levels 1 and 3.
    pub first: usize,
    /// Words of levels 2 and 4.
    pub second: usize,
}

impl ScaleTiles {
    /// Chooses tiles for `levels` levels. `reach`: the largest distance along x and along y, px, 0 where nothing is
    /// compared. `None` if no tile fits into `local_memory` bytes, or neighbours are so far away that most of a tile's
    /// samples would be those of other tiles.
    pub fn choose(levels: usize, reach: [usize; 2], local_memory: u64) -> Option<Self> {
        let fits = |words: &[usize; 2]| 4 * (words[0] + words[1] + 8) as u64 <= local_memory;
        let along = |sizes: &[[usize; 2]],
                     reach: usize,
                     words: fn(usize, usize, [usize; 2]) -> [usize; 2]| {
            if reach == 0 {
                return Some(([0, 0], [0, 0]));
            }
            let near = sizes.iter().filter(|size| 4 * reach <= 3 * size[0]);
            near.map(|&size| (size, words(levels, reach, size)))
                .find(|(_, words)| fits(words))
        };
        let (x, x_words) = along(&ALONG_X, reach[0], words_along_x)?;
        let (y, y_words) = along(&ALONG_Y, reach[1], words_along_y)?;
        let [first, second] = [0, 1].map(|n| x_words[n].max(y_words[n]) + 1);
        let tiles = Self {
            x,
            y: [y[1], y[0]],
            first,
            second,
        };
        fits(&[first, second]).then_some(tiles)
    }
}

/// Blocks of a level across the axis of a tile that is `size` px wide, with those around it.
fn across(levels: usize, level: usize, size: usize) -> usize {
    (size >> level) + (2 << (levels - level)) - 2
}

/// Samples along the axis before and behind a tile.
fn head(levels: usize, reach: usize) -> usize {
    reach + (1 << levels) - 1
}

fn tail(levels: usize, reach: usize) -> usize {
    reach + (2 << levels) - 3
}

/// The larger one of the odd and of the even levels.
fn odd_and_even(levels: usize, words: impl Fn(usize) -> usize) -> [usize; 2] {
    [1, 2].map(|first| (first..=levels).step_by(2).map(&words).max().unwrap_or(0))
}

fn words_along_x(levels: usize, reach: usize, [columns, rows]: [usize; 2]) -> [usize; 2] {
    let head = head(levels, reach).next_multiple_of(16);
    let words = (head + columns + tail(levels, reach)).next_multiple_of(16) / 2;
    odd_and_even(levels, |level| words * across(levels, level, rows))
}

fn words_along_y(levels: usize, reach: usize, [rows, columns]: [usize; 2]) -> [usize; 2] {
    let rows = head(levels, reach) + rows + tail(levels, reach);
    odd_and_even(levels, |level| {
        let lead = (1 << (levels - level)) - 1_usize;
        let [pad, step] = if level == 1 { [4, 2] } else { [2, 1] };
        let blocks = lead.next_multiple_of(pad) - lead + across(levels, level, columns);
        rows * blocks.div_ceil(2).next_multiple_of(step)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fit_into_local_memory() {
        let local = 48 << 10;
        let tiles = |levels, reach| ScaleTiles::choose(levels, reach, local).map(|t| (t.x, t.y));
        assert_eq!(tiles(3, [66, 66]), Some(([512, 32], [64, 256])));
        assert_eq!(tiles(4, [66, 66]), Some(([256, 32], [32, 256])));
        assert_eq!(tiles(1, [66, 0]), Some(([512, 32], [0, 0])));
        assert_eq!(tiles(3, [400, 66]), None);
        assert_eq!(tiles(3, [66, 400]), None);
        assert_eq!(ScaleTiles::choose(3, [66, 66], 16 << 10), None);
        // 22 and 10 rows of 672 columns; 408 rows of 20 and 10 words.
        let tiles = ScaleTiles::choose(3, [66, 66], local).unwrap();
        assert_eq!([tiles.first, tiles.second], [408 * 20 + 1, 408 * 10 + 1]);
        let tiles = ScaleTiles::choose(3, [66, 0], local).unwrap();
        assert_eq!([tiles.first, tiles.second], [22 * 336 + 1, 10 * 336 + 1]);
    }
}
