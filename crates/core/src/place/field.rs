//! The directions of a frame's level, with zeros around.

use super::{
    gradient::{direction, each_row, length},
    level::Plane,
    products::Directions,
};

/// Pixels of a row whose scores are summed at once.
pub const LANES: usize = 32;
/// Pixels beyond the reach of a model's points that a shift may read.
const BEYOND: usize = 2;

/// Directions, zero outside the level.
#[derive(Debug, Clone)]
pub struct Field {
    pub width: i32,
    pub height: i32,
    /// Zeros on each side.
    pub margin: i32,
    pub stride: i32,
    pub directions: Directions,
}

impl Field {
    /// `reach`: pixels that an offset may have along an axis.
    pub fn new(picture: &Plane, reach: i32) -> Self {
        let margin = reach as usize + BEYOND;
        let Plane { width, height, .. } = *picture;
        let stride = (width + 2 * margin).next_multiple_of(LANES) + LANES;
        let len = stride * (height + 2 * margin);
        let [mut along_x, mut along_y] = [(); 2].map(|()| vec![0; len]);
        each_row(picture, |y, gx, gy| {
            let first = (y + margin) * stride + margin;
            let x = along_x[first..first + width].iter_mut();
            let y = along_y[first..first + width].iter_mut();
            for ((x, y), (&gx, &gy)) in x.zip(y).zip(gx.iter().zip(gy)) {
                [*x, *y] = direction(gx, gy, length(gx, gy));
            }
        });
        Self {
            width: width as i32,
            height: height as i32,
            margin: margin as i32,
            stride: stride as i32,
            directions: Directions {
                x: along_x,
                y: along_y,
            },
        }
    }

    /// Where a pixel lies among the directions; it may lie in the margin.
    pub fn index(&self, x: i32, y: i32) -> usize {
        ((y + self.margin) * self.stride + x + self.margin) as usize
    }

    /// Whether a pixel of the level is meant.
    pub fn holds(&self, x: i32, y: i32) -> bool {
        (0..self.width).contains(&x) && (0..self.height).contains(&y)
    }
}
