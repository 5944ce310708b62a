//! Drawn parts at any place and angle of a frame, with ground truth.

use clinspect_oracle::place::Picture;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A part in a frame, the middle of which lies at a place, px, at an angle, clockwise in rad.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    /// px from the frame's upper left corner.
    pub at: [f64; 2],
    /// rad
    pub angle: f64,
    /// 1: as large as it was trained.
    pub scale: f64,
    /// Left and right are swapped.
    pub is_mirrored: bool,
}

impl Placed {
    /// At a place, px, and an angle.
    pub fn new(x: f64, y: f64, degrees: f64) -> Self {
        Self {
            at: [x, y],
            angle: degrees.to_radians(),
            scale: 1.0,
            is_mirrored: false,
        }
    }
}

/// What is drawn.
#[derive(Debug, Clone)]
pub enum Part {
    /// A plate of a size with rectangles `x0, y0, x1, y1, level` on it.
    Board([f64; 2], Vec<[f64; 5]>),
    /// A regular polygon of a number of sides and a radius, with a hole.
    Nut(u32, f64, f64),
    /// A disc of a radius; a notch of a size, if it is not 0, tells its angle.
    Disc(f64, f64),
    /// A plain square plate of a side.
    Plate(f64),
    /// A blurred spot of a radius, which has no edges.
    Spot(f64),
}

impl Part {
    /// A plate of `width` x `height` px with some rectangles.
    pub fn board(seed: u64, width: f64, height: f64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut rectangle = || {
            let x = width * random.random_range(-0.48..0.40);
            let y = height * random.random_range(-0.48..0.40);
            let right = (x + width * random.random_range(0.05..0.2)).min(0.48 * width);
            let lower = (y + height * random.random_range(0.05..0.2)).min(0.48 * height);
            [x, y, right, lower, random.random_range(10.0..230.0)]
        };
        Self::Board([width, height], (0..24).map(|_| rectangle()).collect())
    }

    /// The level at a place from the part's middle; `None` outside the part.
    fn level(&self, x: f64, y: f64) -> Option<f64> {
        let radius = x.hypot(y);
        match self {
            Self::Board([width, height], rectangles) => {
                let covers = |r: &&[f64; 5]| x >= r[0] && x < r[2] && y >= r[1] && y < r[3];
                let level = rectangles.iter().rev().find(covers).map_or(80.0, |r| r[4]);
                (x.abs() <= width / 2.0 && y.abs() <= height / 2.0).then_some(level)
            }
            Self::Nut(sides, outer, hole) => {
                let sector = std::f64::consts::TAU / f64::from(*sides);
                let from_middle = y.atan2(x).rem_euclid(sector) - sector / 2.0;
                let is_inside = radius * from_middle.cos() <= outer * (sector / 2.0).cos();
                (is_inside && radius > *hole).then_some(70.0)
            }
            Self::Disc(outer, notch) => {
                let is_notch = x > outer - 2.0 * notch && y.abs() < *notch;
                let level = if radius > outer * 0.6 { 60.0 } else { 140.0 };
                (radius <= *outer).then_some(if is_notch { 230.0 } else { level })
            }
            Self::Plate(side) => (x.abs().max(y.abs()) <= side / 2.0).then_some(90.0),
            Self::Spot(size) => {
                let level = 200.0 - 20.0 * (1.0 - radius / size).max(0.0);
                (radius < *size).then_some(level)
            }
        }
    }
}

/// How a frame is seen.
#[derive(Debug, Clone)]
pub struct View {
    /// px
    pub size: [usize; 2],
    /// Bits of a sample.
    pub bits: u32,
    /// Factor of all levels.
    pub light: f64,
    /// The light falls along x by this share of the levels.
    pub falling: f64,
    /// Largest error of a sample, grey levels of 8 bits.
    pub noise: f64,
    /// A bar over the frame: first and last column, and its level.
    pub bar: [f64; 3],
    /// Rectangles on the ground.
    pub clutter: usize,
    /// Of noise and clutter.
    pub seed: u64,
}

impl View {
    /// Even light, 8 bits, a little noise.
    pub fn new(width: usize, height: usize) -> Self {
        Self {
            size: [width, height],
            bits: 8,
            light: 1.0,
            falling: 0.0,
            noise: 4.0,
            bar: [0.0; 3],
            clutter: 0,
            seed: 1,
        }
    }

    /// A frame with parts on a plain ground of level 200.
    pub fn draw(&self, part: &Part, placed: &[Placed]) -> Picture {
        let [width, height] = self.size;
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let mut piece = || {
            let [x, y] = self.size.map(|n| random.random_range(-20.0..n as f64));
            let [w, h] = [(); 2].map(|()| random.random_range(4.0..60.0));
            [x, y, x + w, y + h, random.random_range(20.0..220.0)]
        };
        let clutter: Vec<[f64; 5]> = (0..self.clutter).map(|_| piece()).collect();
        let level = |x: f64, y: f64| {
            if x >= self.bar[0] && x < self.bar[1] {
                return self.bar[2];
            }
            let shown = placed.iter().rev().find_map(|place| {
                let [dx, dy] = [x - place.at[0], y - place.at[1]].map(|v| v / place.scale);
                let (sine, cosine) = place.angle.sin_cos();
                let along = cosine * dx + sine * dy;
                let along = if place.is_mirrored { -along } else { along };
                part.level(along, cosine * dy - sine * dx)
            });
            let covers = |r: &&[f64; 5]| x >= r[0] && x < r[2] && y >= r[1] && y < r[3];
            let ground = || clutter.iter().rev().find(covers).map_or(200.0, |r| r[4]);
            shown.unwrap_or_else(ground)
        };
        let highest = f64::from((1_u32 << self.bits) - 1);
        let mut samples = Vec::new();
        for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
            let mut sum = 0.0;
            for i in 0..9 {
                let [dx, dy] = [i % 3, i / 3].map(|i| (f64::from(i) + 0.5) / 3.0);
                sum += level(x as f64 + dx, y as f64 + dy) / 9.0;
            }
            let light = self.light * (1.0 - self.falling * x as f64 / width as f64);
            sum = sum * light + self.noise * random.random_range(-1.0..1.0);
            let sample = (sum * f64::from(1_u32 << (self.bits - 8))).round();
            samples.push(sample.clamp(0.0, highest) as i64);
        }
        Picture {
            width,
            height,
            bits: self.bits,
            samples,
        }
    }
}
