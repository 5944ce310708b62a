//! Reference of lists of defects: groups of near pixels, over the strips of a web.
//!
//! Every pixel is compared with every pixel near it. Nothing is kept from strip to strip: the groups are
//! those of the whole web, and each is listed in the strip in which it closes.
//!
//! Source: docs/semantics.md, "Defects and verdict", "A web of strips", "Defects: features".

use std::ops::Range;

/// Which defects are listed.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Defects of fewer marked pixels are left out.
    pub min_area: u32,
    /// Pixels whose Chebyshev distance is at most one more are one defect.
    pub merge_distance: u32,
    /// Largest number of defects listed with a strip.
    pub max_defects: usize,
    /// Rows after which an open defect is closed by force.
    pub max_defect_rows: u32,
}

/// A web with its differences; row-major, `width` pixels a row.
#[derive(Clone, Copy, Debug)]
pub struct Web<'a> {
    /// Whether a pixel is marked.
    pub mask: &'a [bool],
    /// The signed difference of each marked pixel in grey levels, a multiple of 1/512.
    pub differences: &'a [Option<f64>],
    /// The finest level that marks each pixel; `None` for a pixel marked only for want of a pattern.
    pub levels: &'a [Option<u32>],
    /// Pixels per row.
    pub width: usize,
}

/// One defect. Rows are relative to row 0 of the strip that lists the defect.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Defect {
    /// Left edge of the box in pixels.
    pub x: i64,
    /// Top edge of the box in pixels.
    pub y: i64,
    /// Width of the box in pixels.
    pub width: u32,
    /// Height of the box in pixels.
    pub height: u32,
    /// Marked pixels.
    pub area: u32,
    /// Mean of the pixel centres along x; the centre of pixel 0 is 0.5.
    pub centroid_x: f64,
    /// Mean of the pixel centres along y; the centre of pixel 0 is 0.5.
    pub centroid_y: f64,
    /// Mean of the signed differences in grey levels.
    pub mean_difference: f64,
    /// The signed difference of largest magnitude in grey levels; the first in scan order.
    pub peak_difference: f64,
    /// 1 if every difference is above 0, -1 if every one is below, else 0.
    pub polarity: i32,
    /// The finest level that marks a pixel; 0 also if no level does.
    pub level: u32,
    /// A pixel is near a defect that was closed by force above it.
    pub is_continued: bool,
    /// The defect was closed by force.
    pub is_cut: bool,
    /// 4 times the root of the larger eigenvalue of the second central moments.
    pub major_axis: f64,
    /// 4 times the root of the smaller eigenvalue.
    pub minor_axis: f64,
    /// Direction of the major axis in radians from +x towards +y.
    pub orientation: f64,
    /// Pixel sides between a pixel of the defect and a pixel that is not of the defect.
    pub boundary_length: u32,
}

/// What one strip lists.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct List {
    /// Largest area first, ties in the scan order of their first pixels.
    pub defects: Vec<Defect>,
    /// There were more defects than `max_defects`.
    pub overflow: bool,
    /// Area of the largest defect that is open at the end of the strip.
    pub largest_open: u64,
}

/// The list of a frame.
pub fn defects(web: Web, rules: &Rules) -> List {
    let height = web.mask.len().checked_div(web.width).unwrap_or(0);
    let mut lists = defects_of_web(web, &[height], rules);
    lists.pop().unwrap_or_default()
}

/// The lists of strips of `heights` rows; the last one ends the web.
pub fn defects_of_web(web: Web, heights: &[usize], rules: &Rules) -> Vec<List> {
    assert_eq!(web.mask.len(), web.width * heights.iter().sum::<usize>());
    assert_eq!(web.mask.len(), web.differences.len());
    assert_eq!(web.mask.len(), web.levels.len());
    let mut strips: Vec<Range<usize>> = Vec::new();
    for height in heights {
        let start = strips.last().map_or(0, |strip| strip.end);
        strips.push(start..start + height);
    }
    let mut groups = Groups::new(web, rules);
    let mut largest_open = Vec::new();
    for (at, strip) in strips.iter().enumerate() {
        for y in strip.clone() {
            groups.add_row(y);
        }
        let is_last = at + 1 == strips.len();
        largest_open.push(if is_last {
            0
        } else {
            groups.largest_open(strip.end)
        });
    }

    let mut lists = vec![List::default(); strips.len()];
    for group in 0..groups.members.len() {
        if groups.members[group].is_empty() {
            continue;
        }
        let at = groups.closes_in(group, &strips);
        let defect = groups.describe(group, strips[at].start);
        if defect.area >= rules.min_area {
            lists[at].defects.push(defect);
        }
    }
    for (list, largest_open) in lists.iter_mut().zip(largest_open) {
        list.largest_open = largest_open;
        // The sort is stable, and groups are in the scan order of their first pixels.
        list.defects
            .sort_by_key(|defect| std::cmp::Reverse(defect.area));
        list.overflow = list.defects.len() > rules.max_defects;
        list.defects.truncate(rules.max_defects);
    }
    lists
}

/// Groups of pixels, row by row.
struct Groups<'a> {
    web: Web<'a>,
    reach: usize,
    max_rows: usize,
    height: usize,
    /// By pixel: its group.
    group: Vec<usize>,
    /// By group: its pixels, the first in scan order first; empty if it became part of an earlier group.
    members: Vec<Vec<usize>>,
    last_rows: Vec<usize>,
    is_continued: Vec<bool>,
}

impl<'a> Groups<'a> {
    fn new(web: Web<'a>, rules: &Rules) -> Self {
        Self {
            web,
            reach: rules.merge_distance as usize + 1,
            max_rows: rules.max_defect_rows as usize,
            height: web.mask.len().checked_div(web.width).unwrap_or(0),
            group: vec![usize::MAX; web.mask.len()],
            members: Vec::new(),
            last_rows: Vec::new(),
            is_continued: Vec::new(),
        }
    }

    fn first_row(&self, group: usize) -> usize {
        self.members[group][0] / self.web.width
    }

    /// The row before which the group is closed by force, if it is still open then.
    fn limit(&self, group: usize) -> usize {
        self.first_row(group).saturating_add(self.max_rows)
    }

    /// Joins each pixel of row `y` with the pixels near it, above and to the left.
    fn add_row(&mut self, y: usize) {
        let width = self.web.width;
        for x in 0..width {
            let pixel = y * width + x;
            if !self.web.mask[pixel] {
                continue;
            }
            let own = self.members.len();
            self.members.push(vec![pixel]);
            self.last_rows.push(y);
            self.is_continued.push(false);
            self.group[pixel] = own;
            for above in y.saturating_sub(self.reach)..=y {
                let right = x.saturating_add(self.reach).min(width - 1);
                for near in x.saturating_sub(self.reach)..=right {
                    let other = above * width + near;
                    if other < pixel && self.web.mask[other] {
                        self.join(pixel, other, y);
                    }
                }
            }
        }
    }

    fn join(&mut self, pixel: usize, other: usize, y: usize) {
        let (a, b) = (self.group[pixel], self.group[other]);
        if a == b {
            return;
        }
        if self.limit(b) <= y {
            self.is_continued[a] = true;
            return;
        }
        // Groups are numbered in the order of their first pixels.
        let (first, second) = (a.min(b), a.max(b));
        let moved = std::mem::take(&mut self.members[second]);
        for &pixel in &moved {
            self.group[pixel] = first;
        }
        self.members[first].extend(moved);
        self.last_rows[first] = self.last_rows[first].max(self.last_rows[second]);
        self.is_continued[first] |= self.is_continued[second];
    }

    /// The largest group with a pixel that the next rows could reach.
    fn largest_open(&self, end: usize) -> u64 {
        (0..self.members.len())
            .filter(|&group| !self.members[group].is_empty())
            .filter(|&group| self.last_rows[group] + self.reach >= end && self.limit(group) > end)
            .map(|group| self.members[group].len() as u64)
            .max()
            .unwrap_or(0)
    }

    /// Whether the group is open where it reaches its limit, and the web goes on.
    fn is_cut(&self, group: usize) -> bool {
        self.limit(group) < self.height && self.last_rows[group] + self.reach >= self.limit(group)
    }

    fn closes_in(&self, group: usize, strips: &[Range<usize>]) -> usize {
        let closes = |strip: &Range<usize>| {
            let is_past = self.last_rows[group] + self.reach < strip.end;
            is_past || self.is_cut(group) && self.limit(group) <= strip.end
        };
        strips.iter().position(closes).unwrap_or(strips.len() - 1)
    }

    fn describe(&self, group: usize, origin: usize) -> Defect {
        let width = self.web.width;
        let mut pixels = self.members[group].clone();
        pixels.sort_unstable();
        let points: Vec<[i64; 2]> = pixels
            .iter()
            .map(|pixel| {
                let (x, y) = ((pixel % width) as i64, (pixel / width) as i64);
                [x, y - origin as i64]
            })
            .collect();
        let along = |axis: usize| points.iter().map(move |point| point[axis]);
        let (left, right) = (along(0).min().unwrap_or(0), along(0).max().unwrap_or(0));
        let (top, bottom) = (along(1).min().unwrap_or(0), along(1).max().unwrap_or(0));
        let area = points.len() as f64;
        // Twice the centres are integers, so that each mean is rounded once.
        let centre =
            |axis: usize| along(axis).map(|v| 2 * v + 1).sum::<i64>() as f64 / (2.0 * area);
        let centroid = [centre(0), centre(1)];
        // From integers, so that the mixed moment of a symmetric shape is exactly 0.
        let moment = |a: usize, b: usize| {
            let n = points.len() as i128;
            let sum = |axis: usize| along(axis).map(i128::from).sum::<i128>();
            let products = |point: &[i64; 2]| i128::from(point[a]) * i128::from(point[b]);
            let all: i128 = points.iter().map(products).sum();
            (n * all - sum(a) * sum(b)) as f64 / (n * n) as f64
        };
        let (xx, xy, yy) = (moment(0, 0), moment(0, 1), moment(1, 1));
        // Eigenvalues of [[xx, xy], [xy, yy]].
        let (half_sum, half_difference) = ((xx + yy) / 2.0, (xx - yy) / 2.0);
        let spread = half_difference.hypot(xy);

        let (mut sum, mut peak, mut bright, mut dark) = (0.0, 0.0_f64, 0, 0);
        for &pixel in &pixels {
            let difference = self.web.differences[pixel].unwrap_or(0.0);
            // Differences are multiples of 1/512, so this sum is exact in any order.
            sum += difference;
            if difference.abs() > peak.abs() {
                peak = difference;
            }
            if difference > 0.0 {
                bright += 1;
            } else if difference.is_sign_negative() {
                // -0.0 is a dark tile's.
                dark += 1;
            }
        }
        let levels = pixels.iter().filter_map(|&pixel| self.web.levels[pixel]);
        Defect {
            x: left,
            y: top,
            width: (right - left + 1) as u32,
            height: (bottom - top + 1) as u32,
            area: pixels.len() as u32,
            centroid_x: centroid[0],
            centroid_y: centroid[1],
            mean_difference: sum / area,
            peak_difference: peak,
            polarity: if bright == pixels.len() {
                1
            } else if dark == pixels.len() {
                -1
            } else {
                0
            },
            level: levels.min().unwrap_or(0),
            is_continued: self.is_continued[group],
            is_cut: self.is_cut(group),
            major_axis: 4.0 * (half_sum + spread).sqrt(),
            minor_axis: 4.0 * (half_sum - spread).max(0.0).sqrt(),
            orientation: 0.5 * (2.0 * xy).atan2(xx - yy),
            boundary_length: self.boundary(group),
        }
    }

    fn boundary(&self, group: usize) -> u32 {
        let (width, height) = (self.web.width as i64, self.height as i64);
        let mut sides = 0;
        for &pixel in &self.members[group] {
            let (x, y) = ((pixel as i64) % width, (pixel as i64) / width);
            for (nx, ny) in [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)] {
                let is_inside = nx >= 0 && nx < width && ny >= 0 && ny < height;
                if !is_inside || self.group[(ny * width + nx) as usize] != group {
                    sides += 1;
                }
            }
        }
        sides
    }
}
