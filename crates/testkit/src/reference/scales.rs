//! Reference of `scales`: the comparison at coarser levels.
//!
//! Source: docs/semantics.md, "Stains".

use super::pitch_threshold::{Comparison, Settings, neighbour_of};

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

/// The blocks that count at levels 1 to `s.scales` in a frame of these samples, row-major, level by level.
/// `is_marked`: whether a pixel is marked itself.
pub(super) fn marked_blocks(
    samples: &[i64],
    [width, height]: [usize; 2],
    s: &Settings,
    comparisons: &[Comparison],
    is_marked: impl Fn(usize) -> bool,
) -> Vec<Block> {
    let frame = || Picture {
        size: [width, height],
        samples: samples.to_vec(),
        unit: 1,
    };
    let mut pictures = [frame(), frame()];
    let mut blocks = Vec::new();
    for level in 1..=s.scales {
        pictures = [0, 1].map(|axis: usize| pictures[axis].next(level, axis == 1));
        let size = 1 << level;
        let theta = (256.0 * s.threshold * s.scale_factors[level as usize - 1]).round() as i64;
        for y in (0..height).step_by(size) {
            for x in (0..width).step_by(size) {
                if !may_judge([x, y], size, [width, height], s) {
                    continue;
                }
                let mut largest: Option<i64> = None;
                let mut counts = false;
                for comparison in comparisons {
                    let picture = &pictures[usize::from(comparison.along_columns)];
                    let theta = theta * picture.unit;
                    let Some(sides) = sides([x, y], size, picture, comparison, s) else {
                        continue;
                    };
                    let found = fire(sides, theta, s);
                    if found.is_some() {
                        let explained = explained([x, y], level, [width, height], |pixel| {
                            let at = pixel[1] * width + pixel[0];
                            is_marked(at).then(|| {
                                let missing = sides.missing;
                                sides_of_pixel(
                                    samples,
                                    [width, height],
                                    pixel,
                                    comparison,
                                    missing,
                                    s,
                                )
                            })
                        });
                        let rest = Sides {
                            left: sides.left - explained[0],
                            right: sides.right - explained[1],
                            ..sides
                        };
                        counts |= fire(rest, theta, s).is_some();
                    }
                    if let Some(found) = found
                        && largest.is_none_or(|before| found.abs() > before.abs())
                    {
                        largest = Some(found);
                    }
                }
                if let Some(largest) = largest.filter(|_| counts) {
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
fn may_judge([x, y]: [usize; 2], size: usize, [width, height]: [usize; 2], s: &Settings) -> bool {
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

/// Which neighbour lies outside the frame, and is replaced.
#[derive(Clone, Copy, PartialEq)]
enum Missing {
    None,
    Left,
    Right,
}

/// The differences of a centre to its neighbours, 1/256.
#[derive(Clone, Copy)]
struct Sides {
    left: i64,
    right: i64,
    missing: Missing,
}

fn fire(sides: Sides, theta: i64, s: &Settings) -> Option<i64> {
    super::pitch_threshold::fire(0, -sides.left, -sides.right, theta, s)
}

/// The blurred or plain centre, 1/256.
fn centre(sample: impl Fn(usize) -> i64, at: usize, comparison: &Comparison, s: &Settings) -> i64 {
    let f = (comparison.distance_q8 & 255) as i64;
    let a = if s.match_center {
        (f * (256 - f) + 256) / 512
    } else {
        0
    };
    let beside = if a > 0 {
        sample(at - 1) - 2 * sample(at) + sample(at + 1)
    } else {
        0
    };
    256 * sample(at) + a * beside
}

/// The differences of a block in 1/256 of the picture's unit; `None` if the comparison does not judge it.
fn sides(
    [x, y]: [usize; 2],
    size: usize,
    picture: &Picture,
    comparison: &Comparison,
    s: &Settings,
) -> Option<Sides> {
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
    if !is_inside(at) {
        return None;
    }
    let neighbour = |distance_q8, to_right| {
        neighbour_of(at, distance_q8, to_right, |i| {
            is_inside(i).then(|| sample(i))
        })
    };
    let left = neighbour(comparison.distance_q8, false);
    let right = neighbour(comparison.distance_q8, true);
    // The blurred centre needs the samples beside it.
    let edge = s.edge_margin.max(1);
    let (left, right, missing) = match (left, right) {
        (Some(left), Some(right)) => (left, right, Missing::None),
        (None, Some(right)) if comparison.is_inward && at >= edge + size - 1 => {
            (neighbour(comparison.double_q8, true)?, right, Missing::Left)
        }
        (Some(left), None) if comparison.is_inward && at + 2 * (size - 1) + edge < n => (
            left,
            neighbour(comparison.double_q8, false)?,
            Missing::Right,
        ),
        _ => return None,
    };
    let centre = centre(sample, at, comparison, s);
    Some(Sides {
        left: centre - left,
        right: centre - right,
        missing,
    })
}

/// The differences of a pixel to the neighbours that a block's comparison has, in 1/256 grey level.
fn sides_of_pixel(
    samples: &[i64],
    [width, height]: [usize; 2],
    [x, y]: [usize; 2],
    comparison: &Comparison,
    missing: Missing,
    s: &Settings,
) -> [i64; 2] {
    let (at, n) = if comparison.along_columns {
        (y, height)
    } else {
        (x, width)
    };
    let sample = |i: usize| {
        if comparison.along_columns {
            samples[i * width + x]
        } else {
            samples[y * width + i]
        }
    };
    let neighbour = |distance_q8, to_right| {
        let inside = |i: usize| (i < n).then(|| sample(i));
        neighbour_of(at, distance_q8, to_right, inside).expect("a neighbour inside the frame")
    };
    let left = match missing {
        Missing::Left => neighbour(comparison.double_q8, true),
        _ => neighbour(comparison.distance_q8, false),
    };
    let right = match missing {
        Missing::Right => neighbour(comparison.double_q8, false),
        _ => neighbour(comparison.distance_q8, true),
    };
    let centre = centre(sample, at, comparison, s);
    [centre - left, centre - right]
}

/// How often each sample is among those whose mean is a block's sample, along an axis: from `size - 1` samples before
/// the block on.
fn weights(level: u32) -> Vec<i64> {
    let mut weights = vec![1];
    for k in 0..level {
        let step = 1 << k;
        let mut wider = vec![0; weights.len() + 3 * step];
        for (at, weight) in weights.iter().enumerate() {
            for tap in 0..4 {
                wider[at + tap * step] += weight;
            }
        }
        weights = wider;
    }
    weights
}

/// The part of a block's differences that marked pixels have; `sides_of` is `None` for a pixel that is not marked.
fn explained(
    [x, y]: [usize; 2],
    level: u32,
    [width, height]: [usize; 2],
    sides_of: impl Fn([usize; 2]) -> Option<[i64; 2]>,
) -> [i64; 2] {
    let weights = weights(level);
    let before = (1 << level) - 1;
    let mut sums = [0; 2];
    for (v, of_row) in weights.iter().enumerate() {
        for (u, of_column) in weights.iter().enumerate() {
            let (Some(px), Some(py)) = ((x + u).checked_sub(before), (y + v).checked_sub(before))
            else {
                continue;
            };
            if px >= width || py >= height {
                continue;
            }
            if let Some([left, right]) = sides_of([px, py]) {
                sums[0] += of_row * of_column * left;
                sums[1] += of_row * of_column * right;
            }
        }
    }
    // In the unit of the level's samples, rounded down.
    let shift = 4 * level.saturating_sub(2);
    sums.map(|sum| sum >> shift)
}
