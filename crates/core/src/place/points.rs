//! The directions of a model on one level.

use super::{
    gradient::{LONG, direction, each_row, length},
    level::{FINEST, Plane},
    region::Region,
    turn::{SINE_BITS, cosine, sine},
};

/// Least gradient of a point: 4 grey levels per px.
const LEAST: f64 = 2048.0;
/// Fewer points tell no place.
const FEWEST: usize = 24;
/// Fraction bits of an offset, and of a scale.
const OFFSET_BITS: u32 = 8;

/// A point, and its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Pixel of the level.
    pub at: [i32; 2],
    /// From the model's centre, 1/256 px of the level.
    offset: [i32; 2],
    pub direction: [i16; 2],
}

/// A point at an angle and a scale.
#[derive(Debug, Clone, Copy, Default)]
pub struct TurnedPoint {
    /// From the model's centre, px of the level.
    pub offset: [i32; 2],
    pub direction: [i16; 2],
}

/// The points of a level.
#[derive(Debug, Clone)]
pub struct Points {
    /// Scale of the level.
    pub level: usize,
    pub points: Vec<Point>,
    /// Pixels that no offset exceeds at any scale, and more.
    pub reach: i32,
}

impl Points {
    /// The strongest pixel of each cell of `c`x`c` pixels, for the smallest `c` that leaves at most `most` points.
    /// `centre2`: half px of the model.
    ///
    /// # Errors
    /// A sentence, if there are too few.
    pub fn new(
        picture: &Plane,
        level: usize,
        region: &Region,
        centre2: [i32; 2],
        most: usize,
    ) -> Result<Self, String> {
        let Plane { width, height, .. } = *picture;
        let covered = region.covered_pixels(level / FINEST, [width, height]);
        let mut lengths = vec![0.0; width * height];
        let mut directions = vec![[0; 2]; width * height];
        each_row(picture, |y, gx, gy| {
            for x in 0..width {
                let (at, n) = (y * width + x, length(gx[x], gy[x]));
                if covered[at] && n >= LEAST {
                    lengths[at] = n;
                    directions[at] = direction(gx[x], gy[x], n);
                }
            }
        });
        let strong: Vec<usize> = (0..lengths.len()).filter(|&at| lengths[at] > 0.0).collect();
        let mut chosen = strong.clone();
        let mut side = 1;
        while chosen.len() > most {
            side += 1;
            chosen = strongest(&strong, &lengths, width, side);
        }
        if chosen.len() < FEWEST {
            return Err("the part has too few edges".into());
        }
        let k = level as i32;
        let points: Vec<Point> = (chosen.iter())
            .map(|&at| {
                let pixel = [at % width, at / width].map(|v| v as i32);
                Point {
                    at: pixel,
                    offset: [0, 1].map(|axis| {
                        128 * (2 * pixel[axis] + 1) - (128 * centre2[axis]).div_euclid(k)
                    }),
                    direction: directions[at],
                }
            })
            .collect();
        let square = |point: &Point| {
            let [x, y] = point.offset.map(i64::from);
            x * x + y * y
        };
        let largest = points.iter().map(square).max().unwrap_or(0).isqrt();
        Ok(Self {
            level,
            points,
            reach: (largest * 5 / 4 / 256 + 2) as i32,
        })
    }

    /// The score of equal directions.
    pub fn norm(&self) -> i64 {
        self.points.len() as i64 * i64::from(LONG * LONG)
    }

    /// The points at an angle and a scale.
    pub fn turned(&self, angle: i32, scale: i32) -> impl Iterator<Item = TurnedPoint> {
        let [c, s] = [cosine(angle), sine(angle)];
        let (wide, bits) = ([c, s, scale].map(i64::from), SINE_BITS + 2 * OFFSET_BITS);
        self.points.iter().map(move |point| {
            let [rx, ry] = point.offset.map(i64::from);
            let [wc, ws, scale] = wide;
            let place = |v: i64| ((v * scale + (1 << (bits - 1))) >> bits) as i32;
            let [ux, uy] = point.direction.map(i32::from);
            let turned = |v: i32| ((v + (1 << (SINE_BITS - 1))) >> SINE_BITS) as i16;
            TurnedPoint {
                offset: [place(wc * rx - ws * ry), place(ws * rx + wc * ry)],
                direction: [turned(c * ux - s * uy), turned(s * ux + c * uy)],
            }
        })
    }
}

/// The pixel of largest gradient of each cell, the first of equals; cells in scan order.
fn strongest(strong: &[usize], lengths: &[f64], width: usize, side: usize) -> Vec<usize> {
    let columns = width.div_ceil(side);
    let mut best: Vec<Option<usize>> = Vec::new();
    for &at in strong {
        let cell = at / width / side * columns + at % width / side;
        if best.len() <= cell {
            best.resize(cell + 1, None);
        }
        if best[cell].is_none_or(|other| lengths[at] > lengths[other]) {
            best[cell] = Some(at);
        }
    }
    best.into_iter().flatten().collect()
}
