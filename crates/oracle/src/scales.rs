//! Reference of `scales`: the comparison at coarser levels.
//!
//! Source: docs/semantics.md, "Stains".

use crate::pitch_threshold::{self, Comparison, fire, neighbour_of};

/// A block that a level marks.
pub(super) struct Block {
    /// `k`; a block has `2^k` pixels a side.
    pub level: u32,
    /// Column of the first pixel.
    pub x: usize,
    /// Row of the first pixel.
    pub y: usize,
    /// The difference in 1/512 grey level, rounded half away from zero.
    pub times_512: i64,
}

/// A picture of a level: means of boxes.
struct Picture {
    /// Samples in a row, and rows.
    size: [usize; 2],
    samples: Vec<i64>,
    /// Samples per grey level.
    unit: i64,
}

impl Picture {
    fn at(&self, x: i64, y: i64) -> i64 {
        let [width, height] = self.size;
        let x = x.clamp(0, width as i64 - 1) as usize;
        let y = y.clamp(0, height as i64 - 1) as usize;
        self.samples[y * width + x]
    }

    /// The next level's picture: every second row (x) or column (y).
    fn next(&self, level: u32, along_columns: bool) -> Self {
        let [width, height] = self.size;
        let step = 1_i64 << (level - 1);
        let [step_x, step_y] = if along_columns { [1, step] } else { [step, 1] };
        let size = if along_columns {
            [width.div_ceil(2), height]
        } else {
            [width, height.div_ceil(2)]
        };
        let mut samples = Vec::with_capacity(size[0] * size[1]);
        for y in 0..size[1] as i64 {
            for x in 0..size[0] as i64 {
                let (left, top) = if along_columns {
                    (2 * x, y)
                } else {
                    (x, 2 * y)
                };
                let mut sum = 0;
                for j in -1..=2 {
                    for i in -1..=2 {
                        sum += self.at(left + i * step_x, top + j * step_y);
                    }
                }
                samples.push(if level > 2 { (sum + 8) >> 4 } else { sum });
            }
        }
        let unit = if level > 2 { self.unit } else { 16 * self.unit };
        Self {
            size,
            samples,
            unit,
        }
    }
}

/// The blocks that levels 1 to `s.scales` mark in a frame of these samples and in the repaired frame, row-major, level by
/// level.
pub(super) fn marked_blocks(
    samples: &[i64],
    repaired: &[i64],
    [width, height]: [usize; 2],
    s: &pitch_threshold::Settings,
    comparisons: &[Comparison],
) -> Vec<Block> {
    let frame = |samples: &[i64]| Picture {
        size: [width, height],
        samples: samples.to_vec(),
        unit: 1,
    };
    let mut pictures = [frame(samples), frame(samples)];
    let mut of_repaired = [frame(repaired), frame(repaired)];
    let mut blocks = Vec::new();
    for level in 1..=s.scales {
        pictures = [0, 1].map(|axis: usize| pictures[axis].next(level, axis == 1));
        of_repaired = [0, 1].map(|axis: usize| of_repaired[axis].next(level, axis == 1));
        let size = 1 << level;
        let theta = (256.0 * s.threshold * s.scale_factors[level as usize - 1]).round() as i64;
        for y in (0..height).step_by(size) {
            for x in (0..width).step_by(size) {
                if !may_judge([x, y], size, [width, height], s) {
                    continue;
                }
                let largest = |pictures: &[Picture; 2]| {
                    let mut largest: Option<i64> = None;
                    for comparison in comparisons {
                        let picture = &pictures[usize::from(comparison.along_columns)];
                        let found = compare([x, y], size, picture, comparison, theta, s);
                        if let Some(found) = found
                            && largest.is_none_or(|before| found.abs() > before.abs())
                        {
                            largest = Some(found);
                        }
                    }
                    largest
                };
                // The difference is that of the repaired frame.
                if let (Some(_), Some(largest)) = (largest(&pictures), largest(&of_repaired)) {
                    let unit = pictures[0].unit;
                    let rounded = (2 * largest.abs() + unit) / (2 * unit);
                    blocks.push(Block {
                        level,
                        x,
                        y,
                        times_512: rounded * largest.signum(),
                    });
                }
            }
        }
    }
    blocks
}

/// Whether all pixels of the frame whose mean a block's sample is lie in one region and none is ignored.
fn may_judge(
    [x, y]: [usize; 2],
    size: usize,
    [width, height]: [usize; 2],
    s: &pitch_threshold::Settings,
) -> bool {
    let reach = |at: usize, n: usize| at.saturating_sub(size - 1)..(at + 2 * size - 1).min(n);
    let (columns, rows) = (reach(x, width), reach(y, height));
    let is_inside = |&[left, top, w, h]: &[usize; 4]| {
        left <= columns.start
            && columns.end <= left.saturating_add(w)
            && top <= rows.start
            && rows.end <= top.saturating_add(h)
    };
    if !s.rois.is_empty() && !s.rois.iter().any(is_inside) {
        return false;
    }
    !rows.into_iter().any(|row| {
        columns
            .clone()
            .any(|column| s.ignored.get(row * width + column) == Some(&true))
    })
}

/// The difference in 1/512 of the picture's unit, if the comparison marks the block.
fn compare(
    [x, y]: [usize; 2],
    size: usize,
    picture: &Picture,
    comparison: &Comparison,
    theta: i64,
    s: &pitch_threshold::Settings,
) -> Option<i64> {
    let [width, height] = picture.size;
    let (at, n, line) = if comparison.along_columns {
        (y, height, x / size)
    } else {
        (x, width, y / size)
    };
    let sample = |i: usize| {
        let (i, line) = (i as i64, line as i64);
        if comparison.along_columns {
            picture.at(line, i)
        } else {
            picture.at(i, line)
        }
    };
    // The pixels whose means are taken must lie inside the frame.
    let is_inside = |i: usize| i >= size - 1 && i + 2 * (size - 1) < n;
    let neighbour = |to_right| {
        let distance = comparison.distance_q8;
        neighbour_of(at, distance, to_right, |i| is_inside(i).then(|| sample(i)))
    };
    let (left, right) = (neighbour(false)?, neighbour(true)?);
    let mut centre = 256 * sample(at);
    if s.match_center {
        let f = (comparison.distance_q8 & 255) as i64;
        let a = (f * (256 - f) + 256) / 512;
        centre += a * (sample(at - 1) - 2 * sample(at) + sample(at + 1));
    }
    fire(centre, left, right, theta * picture.unit, s)
}
