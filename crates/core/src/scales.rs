//! The levels of a comparison across scales: sizes, places in memory, and which comparison judges which block.
//!
//! # Source
//! docs/semantics.md, "Stains".

use super::{
    ignored::{Bitmap, count_bits},
    pitch::{Axis, Comparison},
    region::Rect,
    window::Window,
};

/// Most levels besides the frame.
pub const MAX_SCALES: usize = 4;
/// Thresholds of the levels as parts of the threshold, unless the user sets others.
pub const SCALE_FACTORS: [f64; MAX_SCALES] = [0.6, 0.3, 0.15, 0.08];
/// Most rows of blocks that a work-item of a GPU judges.
pub(crate) const MOST_SET_ROWS: usize = 8;
/// Judged blocks from which on work-items are enough to fill a GPU.
const MANY_BLOCKS: usize = 1 << 18;
/// Elements to which rows of a level are padded.
const ROW_ALIGNMENT: usize = 8;

/// Samples before the first sample of a block whose mean is taken.
pub fn before(level: usize) -> usize {
    (1 << level) - 1
}

/// Samples behind the first sample of a block whose mean is taken.
pub fn behind(level: usize) -> usize {
    2 * before(level)
}

/// Samples of a level per grey level.
pub fn unit(level: usize) -> i32 {
    if level == 1 { 16 } else { 256 }
}

/// A level for the kernels. Twin of `scale_level_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct LevelWords {
    theta: i64,
    shift: i32,
    remainder: i32,
    count: i32,
    pitch: i32,
    rows: i32,
    x_at: i32,
    y_at: i32,
    marks_at: i32,
    from: i32,
    past: i32,
    first: i32,
    end: i32,
    unit: i32,
    set_rows: i32,
}

/// Blocks that one comparison judges with the same taps. Twin of `scale_comparison_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct ScaleComparison {
    base: i32,
    step: i32,
    x0: i32,
    x1: i32,
    y0: i32,
    y1: i32,
    before: i32,
    after: i32,
    left_near: i32,
    left_far: i32,
    right_near: i32,
    right_far: i32,
    fraction: i32,
    blur: i32,
    index: i32,
    unused: i32,
}

const _: () = assert!(size_of::<LevelWords>() == 64 && size_of::<ScaleComparison>() == 64);

/// A level of the window of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Level {
    /// `k`; a block has `1 << shift` pixels a side.
    pub shift: usize,
    /// Rows between the first row of the first block and row 0 of the plane.
    pub remainder: usize,
    /// Blocks in a row.
    pub count: usize,
    /// Elements between rows of the pictures and of the marks.
    pub pitch: usize,
    /// Rows of blocks.
    pub rows: usize,
    /// First element of picture x.
    pub x_at: usize,
    /// First element of picture y.
    pub y_at: usize,
    /// First byte of the marks.
    pub marks_at: usize,
    /// The first judged row of blocks.
    pub from: usize,
    /// The row of blocks behind the last judged one.
    pub past: usize,
}

/// What the comparisons of the levels are made from.
#[derive(Debug, Clone, Copy)]
pub struct Scales<'a> {
    /// Number of levels besides the frame.
    pub levels: usize,
    /// Pixels in a row.
    pub width: usize,
    /// The comparisons of the pixels.
    pub comparisons: &'a [Comparison],
    /// The regions of interest in the plane.
    pub regions: &'a [Rect],
    /// Whether the centre is blurred as its neighbours are.
    pub is_matched: bool,
}

/// The levels of a window, level 1 first, and the size of their memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Levels {
    /// The levels.
    pub levels: Vec<Level>,
    /// Elements of the pictures.
    pub elements: usize,
    /// Bytes of the marks.
    pub marks: usize,
}

impl Scales<'_> {
    /// The levels of the rows of a window.
    pub fn levels(&self, window: &Window) -> Levels {
        let along = |axis| self.comparisons.iter().any(|c| c.axis == axis);
        let mut all = Levels::default();
        for shift in 1..=self.levels {
            let size = 1_u64 << shift;
            let top = window.web_row / size;
            let blocks = |row: usize| (window.web_row + row as u64).div_ceil(size) - top;
            let first = (window.web_row + window.first as u64) / size - top;
            let count = self.width.div_ceil(1 << shift);
            let level = Level {
                shift,
                remainder: (window.web_row % size) as usize,
                count,
                pitch: count.next_multiple_of(ROW_ALIGNMENT),
                rows: blocks(window.height) as usize,
                x_at: all.elements,
                y_at: 0,
                marks_at: all.marks,
                from: first as usize,
                past: blocks(window.first + window.rows) as usize,
            };
            if along(Axis::X) {
                all.elements += (level.rows << shift) * level.pitch;
            }
            let y_at = all.elements;
            if along(Axis::Y) {
                all.elements += window.height * level.pitch;
            }
            all.marks += level.rows * level.pitch;
            all.levels.push(Level { y_at, ..level });
        }
        all
    }

    /// The comparisons of a level in a plane of `height` rows.
    pub fn comparisons(&self, level: &Level, height: usize) -> Vec<ScaleComparison> {
        let mut judged = Vec::new();
        for (index, comparison) in self.comparisons.iter().enumerate() {
            let along_x = comparison.axis == Axis::X;
            let n = if along_x { self.width } else { height };
            let reach = comparison.margin() + before(level.shift);
            let end = n.saturating_sub(comparison.margin() + behind(level.shift));
            for region in self.regions {
                let [x0, x1] = inside(level.shift, [region.x0, region.x1], self.width);
                let [y0, y1] = inside(level.shift, [region.y0, region.y1], height);
                let (x, y) = if along_x {
                    ([x0.max(reach), x1.min(end)], [y0, y1])
                } else {
                    ([x0, x1], [y0.max(reach), y1.min(end)])
                };
                let x = blocks(level.shift, x, 0);
                let y = blocks(level.shift, y, level.remainder);
                if x[0] < x[1] && y[0] < y[1] {
                    judged.push(ScaleComparison {
                        x0: x[0] as i32,
                        x1: x[1] as i32,
                        y0: y[0] as i32,
                        y1: y[1] as i32,
                        index: index as i32,
                        ..self.words(level, comparison)
                    });
                }
            }
        }
        judged
    }

    /// The taps of a comparison.
    fn words(&self, level: &Level, c: &Comparison) -> ScaleComparison {
        let pitch = level.pitch as i32;
        let size = 1 << level.shift;
        let along_x = c.axis == Axis::X;
        // Elements from a sample of the axis' picture to the one `px` pixels on.
        let element = |px: i32| {
            if along_x {
                px.rem_euclid(size) * pitch + px.div_euclid(size)
            } else {
                px * pitch
            }
        };
        let far = c.margin() as i32;
        let base = if along_x {
            level.x_at as i32
        } else {
            level.y_at as i32 - level.remainder as i32 * pitch
        };
        ScaleComparison {
            base,
            step: size * pitch,
            before: element(-1),
            after: element(1),
            left_near: element(-c.whole),
            left_far: element(-far),
            right_near: element(c.whole),
            right_far: element(far),
            fraction: c.fraction,
            blur: if self.is_matched { c.blur } else { 0 },
            ..ScaleComparison::default()
        }
    }
}

impl Levels {
    /// A byte per block, as the marks: 1 where an ignored pixel of the plane is among those whose mean is taken.
    pub fn ignored(&self, pixels: &Bitmap) -> Vec<u8> {
        let mut all = vec![0; self.marks];
        for level in &self.levels {
            for y in 0..level.rows {
                let top = (y << level.shift) as i64 - level.remainder as i64;
                let rows = [
                    top - before(level.shift) as i64,
                    top + behind(level.shift) as i64 + 1,
                ]
                .map(|row| row.clamp(0, pixels.rows() as i64) as usize);
                let or = pixels.any_of_rows(rows[0]..rows[1]);
                let out = &mut all[level.marks_at + y * level.pitch..][..level.count];
                for (x, out) in out.iter_mut().enumerate() {
                    let left = x << level.shift;
                    let from = left.saturating_sub(before(level.shift));
                    let to = (left + behind(level.shift) + 1).min(pixels.width());
                    *out = u8::from(count_bits(&or, from, to) > 0);
                }
            }
        }
        all
    }
}

impl Level {
    /// Rows of blocks that a work-item of a GPU judges.
    pub fn set_rows(&self) -> usize {
        if self.count * (self.past - self.from) < MANY_BLOCKS {
            2
        } else {
            MOST_SET_ROWS
        }
    }

    /// The level for the kernels. `theta_q8`: threshold in 1/256 grey level; `comparisons`: the range of its
    /// comparisons among those of all levels.
    pub fn words(&self, theta_q8: i64, comparisons: std::ops::Range<usize>) -> LevelWords {
        LevelWords {
            theta: theta_q8 * i64::from(unit(self.shift)),
            shift: self.shift as i32,
            remainder: self.remainder as i32,
            count: self.count as i32,
            pitch: self.pitch as i32,
            rows: self.rows as i32,
            x_at: self.x_at as i32,
            y_at: self.y_at as i32,
            marks_at: self.marks_at as i32,
            from: self.from as i32,
            past: self.past as i32,
            first: comparisons.start as i32,
            end: comparisons.end as i32,
            unit: unit(self.shift),
            set_rows: self.set_rows() as i32,
        }
    }
}

/// The first samples of the blocks whose samples all lie in a region, which may end at the axis' ends.
fn inside(level: usize, [from, to]: [usize; 2], n: usize) -> [usize; 2] {
    [
        if from == 0 { 0 } else { from + before(level) },
        if to == n {
            n
        } else {
            to.saturating_sub(behind(level))
        },
    ]
}

/// The blocks that begin at samples from .. to-1; block 0 begins `remainder` samples before sample 0.
fn blocks(level: usize, [from, to]: [usize; 2], remainder: usize) -> [usize; 2] {
    [from, to].map(|sample| (sample + remainder).div_ceil(1 << level))
}
