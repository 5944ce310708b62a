//! Reference of the search for parts at any place and angle.
//!
//! Source: docs/semantics.md, "Free placement".

use std::{cmp::Reverse, collections::BTreeSet, f64::consts::TAU};

const TURN: i64 = 16_384;

/// A picture, row-major.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Samples along x.
    pub width: usize,
    /// Samples along y.
    pub height: usize,
    /// Bits of a sample.
    pub bits: u32,
    /// Row by row.
    pub samples: Vec<i64>,
}

impl Picture {
    /// Sums of 4x4 samples in grey levels of 8 bits.
    pub fn sums(&self) -> Grid {
        Grid::new(self.width / 4, self.height / 4, |x, y| {
            let block = (0..16).map(|i| self.samples[(4 * y + i / 4) * self.width + 4 * x + i % 4]);
            (block.sum::<i64>() >> (self.bits - 8)).min(4095)
        })
    }

    /// Level k, 1/16 grey level.
    fn level(&self, k: usize) -> Grid {
        let (sums, m) = (self.sums(), k / 4);
        let square = (k * k) as i64;
        Grid::new(sums.width / m, sums.height / m, |x, y| {
            let block = (0..m * m).map(|i| sums.at(m * x + i % m, m * y + i / m));
            (16 * block.sum::<i64>() + square / 2) / square
        })
    }
}

/// Integers in rows.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Along x.
    pub width: usize,
    /// Along y.
    pub height: usize,
    /// Row by row.
    pub values: Vec<i64>,
}

impl Grid {
    fn new(width: usize, height: usize, value: impl Fn(usize, usize) -> i64) -> Self {
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        Self {
            width,
            height,
            values: pixels.map(|(x, y)| value(x, y)).collect(),
        }
    }

    fn at(&self, x: usize, y: usize) -> i64 {
        self.values[y * self.width + x]
    }

    /// With the edge repeated.
    fn repeated(&self, x: i64, y: i64) -> i64 {
        let x = x.clamp(0, self.width as i64 - 1) as usize;
        self.at(x, y.clamp(0, self.height as i64 - 1) as usize)
    }
}

/// Gradients, their lengths and directions.
struct Edges {
    width: usize,
    height: usize,
    length: Vec<i64>,
    direction: Vec<[i64; 2]>,
}

impl Edges {
    fn new(p: &Grid) -> Self {
        let q = Grid::new(p.width, p.height, |x, y| {
            let mut sum = 0;
            for (j, wy) in [(-1, 1), (0, 2), (1, 1)] {
                for (i, wx) in [(-1, 1), (0, 2), (1, 1)] {
                    sum += wx * wy * p.repeated(x as i64 + i, y as i64 + j);
                }
            }
            sum
        });
        let (mut length, mut direction) = (Vec::new(), Vec::new());
        for y in 0..p.height as i64 {
            for x in 0..p.width as i64 {
                let gx = q.repeated(x + 1, y) - q.repeated(x - 1, y);
                let gy = q.repeated(x, y + 1) - q.repeated(x, y - 1);
                let n = (gx * gx + gy * gy).isqrt();
                let d = n.max(1024);
                length.push(n);
                direction.push([gx, gy].map(|g| g.signum() * ((127 * g.abs() + d / 2) / d)));
            }
        }
        Self {
            width: p.width,
            height: p.height,
            length,
            direction,
        }
    }

    fn direction(&self, x: i64, y: i64) -> [i64; 2] {
        let inside = (0..self.width as i64).contains(&x) && (0..self.height as i64).contains(&y);
        if inside {
            self.direction[y as usize * self.width + x as usize]
        } else {
            [0; 2]
        }
    }
}

pub(crate) fn turn(angle: i64) -> [i64; 2] {
    let angle = TAU * angle as f64 / TURN as f64;
    [angle.cos(), angle.sin()].map(|v| (16_384.0 * v).round() as i64)
}

/// Cells grown by their 8 neighbours.
fn grown(cells: &[bool], width: usize) -> Vec<bool> {
    let height = cells.len() / width;
    let near = |x: usize, y: usize| {
        let rows = y.saturating_sub(1)..(y + 2).min(height);
        rows.flat_map(|y| (x.saturating_sub(1)..(x + 2).min(width)).map(move |x| y * width + x))
            .any(|at| cells[at])
    };
    (0..cells.len())
        .map(|at| near(at % width, at / width))
        .collect()
}

/// Twice the median.
fn twice_median(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    values[(values.len() - 1) / 2] + values[values.len() / 2]
}

/// The pixels of level 4 of the region that is found without one, or why there is none.
pub fn found_region(picture: &Picture) -> Result<Vec<bool>, &'static str> {
    let sums = picture.sums();
    let (w, h) = (sums.width, sums.height);
    let outer = |at: usize, by: usize| {
        let (x, y) = (at % w, at / w);
        x < by || y < by || x >= w - by || y >= h - by
    };
    let ring: Vec<usize> = (0..w * h).filter(|&at| outer(at, 2)).collect();
    let median2 = twice_median(ring.iter().map(|&at| sums.values[at]).collect());
    // Differences from the median, in halves; their median in quarters.
    let differences: Vec<i64> = sums
        .values
        .iter()
        .map(|v| (2 * v - median2).abs())
        .collect();
    let spread4 = twice_median(ring.iter().map(|&at| differences[at]).collect());
    let lengths = Edges::new(&sums).length;
    // In quarters: abs(sum - M) > max(128, 4 D).
    let differs: Vec<bool> = (0..w * h)
        .map(|at| 2 * differences[at] > (4 * 128).max(4 * spread4) || lengths[at] > 4096)
        .collect();
    // Spreads as long as anything changes.
    let spread = |mut set: Vec<bool>, allowed: &dyn Fn(usize) -> bool| loop {
        let before = set.clone();
        for at in 0..w * h {
            let (x, y) = (at % w, at / w);
            let near = (x > 0 && set[at - 1])
                || (x + 1 < w && set[at + 1])
                || (y > 0 && set[at - w])
                || (y + 1 < h && set[at + w]);
            set[at] |= near && allowed(at);
        }
        if set == before {
            break set;
        }
    };
    let start = (0..w * h).map(|at| outer(at, 1) && !differs[at]).collect();
    let ground = spread(start, &|at| !differs[at]);
    let mut left: Vec<bool> = ground.iter().map(|ground| !ground).collect();
    let mut pieces = Vec::new();
    while let Some(first) = left.iter().position(|&set| set) {
        let mut piece = vec![false; w * h];
        piece[first] = true;
        let piece = spread(piece, &|at| left[at]);
        for at in 0..w * h {
            left[at] &= !piece[at];
        }
        pieces.push(piece);
    }
    let pixels = |piece: &Vec<bool>| piece.iter().filter(|&&set| set).count();
    let most = pieces.iter().map(pixels).max().ok_or("nothing found")?;
    pieces.retain(|piece| 10 * pixels(piece) >= most);
    let region: Vec<bool> = (0..w * h).map(|at| pieces.iter().any(|p| p[at])).collect();
    if (0..w * h).any(|at| region[at] && outer(at, 1)) {
        return Err("at the edge");
    }
    Ok(region)
}

/// A point of the model: pixel of its level, offset and direction.
#[derive(Clone, Copy)]
struct Point {
    pixel: [i64; 2],
    offset: [i64; 2],
    direction: [i64; 2],
}

struct Points {
    points: Vec<Point>,
    reach: i64,
}

impl Points {
    fn new(picture: &Picture, k: usize, cells: &[bool], centre2: [i64; 2], most: usize) -> Self {
        let edges = Edges::new(&picture.level(k));
        let columns = picture.width / 4;
        let allowed = grown(&grown(cells, columns), columns);
        let m = k / 4;
        let is_point = |x: usize, y: usize| {
            edges.length[y * edges.width + x] >= 2048
                && (0..m * m).all(|i| allowed[(m * y + i / m) * columns + m * x + i % m])
        };
        for c in 1.. {
            let mut chosen = Vec::new();
            for y in (0..edges.height).step_by(c) {
                for x in (0..edges.width).step_by(c) {
                    let mut best: Option<[usize; 2]> = None;
                    for y in y..(y + c).min(edges.height) {
                        for x in x..(x + c).min(edges.width) {
                            let longer = best.is_none_or(|[i, j]| {
                                edges.length[y * edges.width + x]
                                    > edges.length[j * edges.width + i]
                            });
                            if is_point(x, y) && longer {
                                best = Some([x, y]);
                            }
                        }
                    }
                    chosen.extend(best);
                }
            }
            if chosen.len() <= most {
                let point = |&[x, y]: &[usize; 2]| {
                    let pixel = [x as i64, y as i64];
                    let of = |axis: usize| {
                        let centre = (128 * centre2[axis]).div_euclid(k as i64);
                        128 * (2 * pixel[axis] + 1) - centre
                    };
                    Point {
                        pixel,
                        offset: [of(0), of(1)],
                        direction: edges.direction(pixel[0], pixel[1]),
                    }
                };
                let points: Vec<Point> = chosen.iter().map(point).collect();
                let square = |p: &Point| p.offset[0] * p.offset[0] + p.offset[1] * p.offset[1];
                let length = points.iter().map(square).max().unwrap_or(0).isqrt();
                return Self {
                    points,
                    reach: length * 5 / 4 / 256 + 2,
                };
            }
        }
        unreachable!("a cell of the whole picture leaves one point")
    }

    fn norm(&self) -> i64 {
        127 * 127 * self.points.len() as i64
    }

    /// The points of a pose: places from the pixel that holds the centre in its middle, and directions.
    fn turned(&self, angle: i64, scale: i64) -> Vec<[[i64; 2]; 2]> {
        let [c, s] = turn(angle);
        let turned = |point: &Point| {
            let ([rx, ry], [ux, uy]) = (point.offset, point.direction);
            [
                [c * rx - s * ry, s * rx + c * ry].map(|v| (v * scale + (1 << 29)) >> 30),
                [c * ux - s * uy, s * ux + c * uy].map(|v| (v + (1 << 13)) >> 14),
            ]
        };
        self.points.iter().map(turned).collect()
    }
}

/// The score of points from a pixel.
fn score(edges: &Edges, turned: &[[[i64; 2]; 2]], [x, y]: [i64; 2]) -> i64 {
    let mut score = 0;
    for [at, v] in turned {
        let u = edges.direction(x + at[0], y + at[1]);
        score += u[0] * v[0] + u[1] * v[1];
    }
    score
}

/// A pose: the centre lies in the middle of a pixel of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pose {
    /// Pixel of the level.
    pub x: i64,
    /// Pixel of the level.
    pub y: i64,
    /// 1/16384 turn.
    pub angle: i64,
    /// 1/256
    pub scale: i64,
    /// Sum of products.
    pub score: i64,
}

impl Pose {
    fn order(&self) -> (Reverse<i64>, i64, i64, i64, i64) {
        (Reverse(self.score), self.y, self.x, self.angle, self.scale)
    }

    fn is_near(&self, other: &Self, reach: i64) -> bool {
        let (dx, dy) = (self.x - other.x, self.y - other.y);
        16 * (dx * dx + dy * dy) <= reach * reach
    }
}

fn angle_between(a: i64, b: i64) -> i64 {
    let d = (a - b).rem_euclid(TURN);
    d.min(TURN - d)
}

/// Rule 2.
fn places(mut poses: Vec<Pose>, reach: i64, most: usize, each: usize, step: i64) -> Vec<Pose> {
    poses.sort_by_key(Pose::order);
    let mut places: Vec<Vec<Pose>> = Vec::new();
    for pose in poses {
        match places
            .iter()
            .position(|place| pose.is_near(&place[0], reach))
        {
            Some(n) => {
                let apart = |o: &Pose| angle_between(pose.angle, o.angle) > step;
                if places[n].len() < each && places[n].iter().all(apart) {
                    places[n].push(pose);
                }
            }
            None if places.len() < most => places.push(vec![pose]),
            None => (),
        }
    }
    places.into_iter().flatten().collect()
}

/// The trained part.
pub struct Model {
    levels: Vec<(usize, Points)>,
    scales: Vec<i64>,
    step: i64,
    /// Rule 4.
    pub alike: bool,
    samples: Vec<[i64; 2]>,
}

impl Model {
    /// Of the part of a picture whose samples are set, or why there is none.
    pub fn new(picture: &Picture, region: &[bool], scales: &[i64]) -> Result<Self, &'static str> {
        let (w, h) = (picture.width, picture.height);
        let set = |x: usize, y: usize| region[y * w + x];
        let columns: Vec<usize> = (0..w).filter(|&x| (0..h).any(|y| set(x, y))).collect();
        let rows: Vec<usize> = (0..h).filter(|&y| (0..w).any(|x| set(x, y))).collect();
        let bounds = [&columns, &rows].map(|v| [v[0] as i64, v[v.len() - 1] as i64 + 1]);
        let centre2 = bounds.map(|[first, past]| first + past);
        let diagonal2: i64 = bounds
            .map(|[first, past]| (past - first).pow(2))
            .iter()
            .sum();
        let fits = |k: &i64| diagonal2 >= (24 * k) * (24 * k);
        let coarsest = [64, 32, 16, 8].into_iter().find(fits).unwrap_or(4) as usize;
        let cells = Grid::new(w / 4, h / 4, |x, y| {
            i64::from((0..16).any(|i| set(4 * x + i % 4, 4 * y + i / 4)))
        });
        let part: Vec<bool> = cells.values.iter().map(|&v| v > 0).collect();
        let mut levels = Vec::new();
        let mut k = coarsest;
        while k >= 4 {
            let most = if k == coarsest { 192 } else { 384 };
            let points = Points::new(picture, k, &part, centre2, most);
            if points.points.len() < 24 {
                return Err("too few edges");
            }
            levels.push((k, points));
            k /= 2;
        }
        let points = &levels[0].1;
        let step = TURN / if points.reach < 20 { 64 } else { 128 };
        let edges = Edges::new(&picture.level(coarsest));
        let own = centre2.map(|c| c / (2 * coarsest as i64));
        let turned = around(points, &edges, own, 0, 256, step);
        let alike = turned.iter().any(|pose| {
            10 * pose.score >= 6 * points.norm() && angle_between(pose.angle, 0) > 2 * step
        });
        let inner = |x: usize, y: usize| {
            x > 0
                && y > 0
                && x + 1 < cells.width
                && y + 1 < cells.height
                && (0..9).all(|i| cells.at(x + i % 3 - 1, y + i / 3 - 1) > 0)
        };
        let mut samples = Vec::new();
        for y in 0..cells.height {
            for x in (0..cells.width).filter(|&x| inner(x, y)) {
                let [x, y] = [x, y].map(|v| 2 * (4 * v as i64 + 2));
                samples.push([x - centre2[0], y - centre2[1]]);
            }
        }
        let every = (samples.len() / 2000).max(1);
        Ok(Self {
            samples: samples.into_iter().step_by(every).collect(),
            scales: scales.to_vec(),
            levels,
            step,
            alike,
        })
    }

    /// The share of the points of level 4 whose direction a picture shows at their places, as points and all points. The
    /// picture's first sample is the trained picture's at `first`.
    pub fn same_edges(&self, read: &Picture, first: [i64; 2]) -> [usize; 2] {
        let edges = Edges::new(&read.level(4));
        let points = &self.levels[self.levels.len() - 1].1.points;
        let same = points.iter().filter(|point| {
            let [x, y] = [0, 1].map(|axis| point.pixel[axis] - first[axis] / 4);
            let (u, v) = (edges.direction(x, y), point.direction);
            10 * (u[0] * v[0] + u[1] * v[1]) > 7 * 127 * 127
        });
        [same.count(), points.len()]
    }

    /// Samples of the inner region, half px from the centre, of which a motion shows those that lie in a frame.
    pub fn samples(&self) -> &[[i64; 2]] {
        &self.samples
    }

    /// The cells that the part covers in a frame.
    fn covers(&self, pose: &Pose, k: i64, [width, height]: [usize; 2]) -> BTreeSet<[i64; 2]> {
        let [c, s] = turn(pose.angle).map(|v| v * pose.scale);
        let mut cells = BTreeSet::new();
        for [rx, ry] in &self.samples {
            // 2^-23 px
            let along = |centre: i64| (k * (2 * centre + 1) - 1) * (1 << 22);
            let x = c * rx - s * ry + along(pose.x);
            let y = s * rx + c * ry + along(pose.y);
            let last = [width, height].map(|n| (n as i64 - 1) << 23);
            if x >= 0 && y >= 0 && x <= last[0] && y <= last[1] {
                cells.insert([x, y].map(|v| v / (8 << 23)));
            }
        }
        cells
    }
}

/// Rule 4: a pose at all angles, at most 1 px from its place: its 8 best local maxima.
fn around(
    points: &Points,
    edges: &Edges,
    [x, y]: [i64; 2],
    angle: i64,
    scale: i64,
    step: i64,
) -> Vec<Pose> {
    let mut all = Vec::new();
    for angle in (0..TURN / step).map(|n| n * step) {
        let mut best: Option<Pose> = None;
        let turned = points.turned(angle, scale);
        for (dy, dx) in (-1..2).flat_map(|dy| (-1..2).map(move |dx| (dy, dx))) {
            let (x, y) = (x + dx, y + dy);
            if !(0..edges.width as i64).contains(&x) || !(0..edges.height as i64).contains(&y) {
                continue;
            }
            let score = score(edges, &turned, [x, y]);
            if best.is_none_or(|best| score > best.score) {
                best = Some(Pose {
                    x,
                    y,
                    angle,
                    scale,
                    score,
                });
            }
        }
        all.push(best.unwrap());
    }
    let count = all.len();
    let mut peaks: Vec<Pose> = (0..count)
        .filter(|&n| {
            let score = all[n].score;
            let (before, behind) = (all[(n + count - 1) % count], all[(n + 1) % count]);
            before.score <= score && score > behind.score || all[n].angle == angle
        })
        .map(|n| all[n])
        .collect();
    peaks.sort_by_key(|pose| (Reverse(pose.score), pose.angle));
    peaks.truncate(8);
    peaks
}

/// Rule 1: the candidates of the coarsest level.
fn candidates(model: &Model, edges: &Edges, most: i64) -> Vec<Pose> {
    let points = &model.levels[0].1;
    let (w, h) = (edges.width as i64, edges.height as i64);
    let angles = TURN / model.step;
    let mut best = Vec::new();
    for angle in (0..angles).map(|angle| angle * model.step) {
        let scales = model
            .scales
            .iter()
            .map(|&scale| (scale, points.turned(angle, scale)));
        let scales: Vec<_> = scales.collect();
        for (y, x) in (0..h).flat_map(|y| (0..w).map(move |x| (y, x))) {
            let mut pose: Option<Pose> = None;
            for (scale, turned) in &scales {
                let score = score(edges, turned, [x, y]);
                if pose.is_none_or(|pose| score > pose.score) {
                    pose = Some(Pose {
                        x,
                        y,
                        angle,
                        scale: *scale,
                        score,
                    });
                }
            }
            best.push(pose.unwrap());
        }
    }
    let at = |a: i64, x: i64, y: i64| &best[((a.rem_euclid(angles) * h + y) * w + x) as usize];
    let is_tried = |a: i64| from_zero(a.rem_euclid(angles) * model.step) <= most + model.step;
    let mut found = Vec::new();
    for a in (0..angles).filter(|&a| is_tried(a)) {
        for (y, x) in (0..h).flat_map(|y| (0..w).map(move |x| (y, x))) {
            let pose = at(a, x, y);
            let is_highest = || {
                (-1..2).filter(|da| is_tried(a + da)).all(|da| {
                    (y - 1..y + 2).filter(|j| (0..h).contains(j)).all(|j| {
                        (x - 1..x + 2)
                            .filter(|i| (0..w).contains(i))
                            .all(|i| at(a + da, i, j).score <= pose.score)
                    })
                })
            };
            if 20 * pose.score >= 7 * points.norm() && is_highest() {
                found.push(*pose);
            }
        }
    }
    found.sort_by_key(Pose::order);
    found.truncate(4096);
    found
}

/// Rule 3: a pose climbs from a level `finer` times as coarse.
fn climb(
    model: &Model,
    (points, edges): (&Points, &Edges),
    pose: Pose,
    finer: i64,
    steps: [i64; 2],
) -> Pose {
    let mut best = Pose {
        x: finer * pose.x,
        y: finer * pose.y,
        score: -1,
        ..pose
    };
    let (first, then) = ([0, 1, -1, 2], [0, -1, 1]);
    let first = if finer == 1 { &first[..3] } else { &first[..] };
    for shifts in [first, &then, &then, &then] {
        let from = best;
        for da in [0, -steps[0], steps[0]] {
            for ds in [0, -steps[1], steps[1]] {
                let (angle, scale) = (from.angle + da, from.scale + ds);
                let (least, most) = (model.scales[0], model.scales[model.scales.len() - 1]);
                if scale < least || scale > most {
                    continue;
                }
                let turned = points.turned(angle, scale);
                for (dy, dx) in shifts
                    .iter()
                    .flat_map(|dy| shifts.iter().map(move |dx| (dy, dx)))
                {
                    let (x, y) = (from.x + dx, from.y + dy);
                    let inside = (0..edges.width as i64).contains(&x)
                        && (0..edges.height as i64).contains(&y);
                    if !inside {
                        continue;
                    }
                    let score = score(edges, &turned, [x, y]);
                    if score > best.score {
                        best = Pose {
                            x,
                            y,
                            angle: angle.rem_euclid(TURN),
                            scale,
                            score,
                        };
                    }
                }
            }
        }
        if best.score == from.score {
            break;
        }
    }
    best
}

/// An angle's distance from 0.
fn from_zero(angle: i64) -> i64 {
    angle.min(TURN - angle)
}

/// The places of a model in a frame, with their poses on level 4; `n` parts are wanted.
pub fn find(model: &Model, frame: &Picture, n: usize) -> Vec<Vec<Pose>> {
    find_within(model, frame, n, TURN / 2)
}

/// The same of parts that are turned by at most `most`, 1/16384 turn.
pub fn find_within(model: &Model, frame: &Picture, n: usize, most: i64) -> Vec<Vec<Pose>> {
    let (mut step, mut scale_step) = (model.step, 0);
    if let [.., a, b] = model.scales[..] {
        scale_step = b - a;
    }
    let mut poses = Vec::new();
    let mut last = 0;
    for (index, (k, points)) in model.levels.iter().enumerate() {
        let edges = Edges::new(&frame.level(*k));
        if index == 0 {
            poses = candidates(model, &edges, most);
            poses = places(poses, points.reach, 4 + 2 * n, 8, step);
        } else {
            (step, scale_step) = (step / 2, scale_step / 2);
        }
        let finer = if index == 0 { 1 } else { 2 };
        let from = (points, &edges);
        let climbed = |&pose: &Pose| climb(model, from, pose, finer, [step, scale_step]);
        poses = poses.iter().map(climbed).collect();
        let each = [8, 6, 4, 4, 4][index];
        poses = places(poses, points.reach, 3 + 2 * n, each, 2 * step);
        last = index;
    }
    let points = &model.levels[last].1;
    let edges = Edges::new(&frame.level(4));
    if model.alike {
        let best = places(poses, points.reach, 3 + 2 * n, 1, step);
        let turned = |p: Pose| around(points, &edges, [p.x, p.y], p.angle, p.scale, step);
        poses = best.into_iter().flat_map(turned).collect();
    }
    while 8 * points.reach * step > 16_384 {
        (step, scale_step) = (step / 2, scale_step / 2);
        for pose in &mut poses {
            *pose = climb(model, (points, &edges), *pose, 1, [step, scale_step]);
        }
    }
    poses.retain(|pose| from_zero(pose.angle) <= most);
    poses.sort_by_key(Pose::order);
    let mut chosen: Vec<Vec<Pose>> = Vec::new();
    let mut taken = BTreeSet::new();
    for pose in poses {
        let near = |place: &Vec<Pose>| pose.is_near(&place[0], points.reach);
        if let Some(place) = chosen.iter_mut().find(|place| near(place)) {
            if !place.contains(&pose) && place.len() < 4 && 20 * pose.score >= 17 * place[0].score {
                place.push(pose);
            }
        } else if chosen.len() < n + 2 {
            let covers = model.covers(&pose, 4, [frame.width, frame.height]);
            if 5 * covers.intersection(&taken).count() <= covers.len() {
                taken.extend(covers);
                chosen.push(vec![pose]);
            }
        }
    }
    chosen
}
