//! Reference of the comparison along vectors of any angle: the sums of one pixel.
//!
//! Source: docs/semantics.md, "Comparison along vectors". Values are 65,536 times a sample.

use crate::pitch_threshold;

/// Samples of a frame, row-major.
#[derive(Clone, Copy)]
pub(crate) struct Picture<'a> {
    pub samples: &'a [i64],
    pub width: i64,
    pub height: i64,
}

impl Picture<'_> {
    fn at(&self, x: i64, y: i64) -> i64 {
        self.samples[(y * self.width + x) as usize]
    }

    /// The nearest sample of the frame.
    fn near(&self, x: i64, y: i64) -> i64 {
        self.at(x.clamp(0, self.width - 1), y.clamp(0, self.height - 1))
    }
}

/// The pixel and its neighbours, ×65536.
pub(crate) struct Sums {
    pub centre: i64,
    pub left: i64,
    pub right: i64,
}

/// `round(256·times·v)` for each axis; halves are rounded away from zero.
pub(crate) fn distance(times: u32, v: [f64; 2]) -> [i64; 2] {
    v.map(|component| (256.0 * f64::from(times) * component).round() as i64)
}

/// Whether a neighbour lies beyond the left, right, top and bottom edge.
type Beyond = [bool; 4];

/// The neighbour of a pixel at a distance, or the edges beyond which samples of a weight above 0 lie.
pub(crate) fn neighbour(picture: Picture, [x, y]: [i64; 2], d: [i64; 2]) -> Result<i64, Beyond> {
    let sign = d.map(|d| if d < 0 { -1 } else { 1 });
    let whole = d.map(|d| d.abs() >> 8);
    let fraction = d.map(|d| d.abs() & 255);
    let (mut sum, mut beyond) = (0, [false; 4]);
    for j in 0..2 {
        for i in 0..2 {
            let f = [256 - fraction[0], fraction[0]][i as usize];
            let g = [256 - fraction[1], fraction[1]][j as usize];
            if f * g == 0 {
                continue;
            }
            let column = x + sign[0] * (whole[0] + i);
            let row = y + sign[1] * (whole[1] + j);
            let outside = [
                column < 0,
                column >= picture.width,
                row < 0,
                row >= picture.height,
            ];
            if outside == [false; 4] {
                sum += g * f * picture.at(column, row);
            }
            for (all, one) in beyond.iter_mut().zip(outside) {
                *all |= one;
            }
        }
    }
    if beyond == [false; 4] {
        Ok(sum)
    } else {
        Err(beyond)
    }
}

/// The pixel, blurred along x, then along y, as its neighbours are if the centre is matched.
fn centre(picture: Picture, [x, y]: [i64; 2], d: [i64; 2], is_matched: bool) -> i64 {
    let blur = d.map(|d| {
        let fraction = d.abs() & 255;
        if is_matched {
            (fraction * (256 - fraction) + 256) / 512
        } else {
            0
        }
    });
    let row = |y: i64| {
        let at = |x: i64| picture.near(x, y);
        256 * at(x) + blur[0] * (at(x - 1) - 2 * at(x) + at(x + 1))
    };
    256 * row(y) + blur[1] * (row(y - 1) - 2 * row(y) + row(y + 1))
}

/// The sums of a pixel compared along `multiple` times `v`; `None` if the pixel is not judged.
pub(crate) fn sums(
    picture: Picture,
    [x, y]: [i64; 2],
    (multiple, v): (u32, [f64; 2]),
    s: &pitch_threshold::Settings,
) -> Option<Sums> {
    let d = distance(multiple, v);
    let double = distance(2 * multiple, v);
    let behind = |d: [i64; 2]| d.map(|d| -d);
    let is_smallest = s.multiples.iter().all(|&other| other >= multiple);
    let is_inward = s.inward && is_smallest;
    let margin = s.edge_margin as i64;
    let away = |[left, right, top, bottom]: Beyond| {
        !(left && x < margin
            || right && picture.width - 1 - x < margin
            || top && y < margin
            || bottom && picture.height - 1 - y < margin)
    };
    let at = |d| neighbour(picture, [x, y], d);
    let (left, right) = match (at(behind(d)), at(d)) {
        (Ok(left), Ok(right)) => (left, right),
        (Err(beyond), Ok(right)) if is_inward && away(beyond) => (at(double).ok()?, right),
        (Ok(left), Err(beyond)) if is_inward && away(beyond) => (left, at(behind(double)).ok()?),
        _ => return None,
    };
    Some(Sums {
        centre: centre(picture, [x, y], d, s.match_center),
        left,
        right,
    })
}
