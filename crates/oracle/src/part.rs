//! Reference of what follows a pose: how a part is read from a frame, and where its marks lie.
//!
//! Source: docs/semantics.md, "Parts in a frame". How the fit is found is tested apart.

use crate::place::{Picture, Pose, turn};

/// Where the pixels of a cut of the model lie in the frame: `c + a·x + b·y` along x, then along y, 2^-20 px.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Motion(pub [[i64; 3]; 2]);

impl Motion {
    /// Of a pose of level 4, and of a fit that displaces pixels of the frame read through the pose, 2^-20 px. `centre2`: of the
    /// model, half px; `first`: the first pixel of the cut.
    pub fn new(pose: &Pose, centre2: [i64; 2], first: [i64; 2], fit: [[i64; 3]; 2]) -> Self {
        let [c, s] = turn(pose.angle).map(|v| i128::from(v * pose.scale));
        // All in 2^-43 px: the fit in 2^-21, the pose in 2^-22.
        let mut lines = [[0; 3]; 2];
        for term in 0..3 {
            // The place in the cut, then from the model's centre.
            let place = [0, 1].map(|axis| {
                let own = i128::from(term == 1 + axis) << 21;
                let fitted = 2 * i128::from(fit[axis][term]) + own;
                let from_centre = (2 * first[axis] + 1 - centre2[axis]) as i128 * (1 << 20);
                if term == 0 {
                    fitted + from_centre
                } else {
                    fitted
                }
            });
            let turned = [c * place[0] - s * place[1], s * place[0] + c * place[1]];
            for (axis, at) in [pose.x, pose.y].into_iter().enumerate() {
                let centre = if term == 0 {
                    i128::from(4 * (2 * at + 1) - 1) << 42
                } else {
                    0
                };
                let sum = turned[axis] + centre;
                lines[axis][term] = (sum + (1 << 22)).div_euclid(1 << 23) as i64;
            }
        }
        Self(lines)
    }

    /// Where a pixel lies in the frame, 1/256 px.
    pub fn position(&self, x: i64, y: i64) -> [i64; 2] {
        self.0
            .map(|[c, a, b]| (c + a * x + b * y + 2048).div_euclid(4096))
    }

    /// Whether all samples that a pixel is read from lie in a frame.
    pub fn is_inside(&self, x: i64, y: i64, frame: [usize; 2]) -> bool {
        let place = self.position(x, y);
        (0..2).all(|axis| (0..=256 * (frame[axis] as i64 - 1)).contains(&place[axis]))
    }

    /// A frame as the pixels of a cut of a size are read from it; outside the frame its edge repeats.
    pub fn read(&self, frame: &Picture, size: [usize; 2]) -> Picture {
        let last = [frame.width as i64 - 1, frame.height as i64 - 1];
        let at = |x: i64, y: i64| {
            let (x, y) = (x.clamp(0, last[0]), y.clamp(0, last[1]));
            frame.samples[y as usize * frame.width + x as usize]
        };
        let pixels = (0..size[1]).flat_map(|y| (0..size[0]).map(move |x| [x as i64, y as i64]));
        let read = |[x, y]: [i64; 2]| {
            let place = self.position(x, y);
            let [x, y] = place.map(|v| v.div_euclid(256));
            let [fx, fy] = place.map(|v| v.rem_euclid(256));
            let above = (256 - fx) * at(x, y) + fx * at(x + 1, y);
            let below = (256 - fx) * at(x, y + 1) + fx * at(x + 1, y + 1);
            ((256 - fy) * above + fy * below + 32_768) >> 16
        };
        Picture {
            width: size[0],
            height: size[1],
            bits: frame.bits,
            samples: pixels.map(read).collect(),
        }
    }

    /// The pixels of a frame that a marked pixel marks.
    pub fn marks(&self, x: i64, y: i64, frame: [usize; 2]) -> Vec<[i64; 2]> {
        let place = self.position(x, y);
        let half = self.0.map(|[_, a, b]| {
            let wide = 128 * (a.abs() + b.abs());
            (wide.div_euclid(1 << 20) + i64::from(wide % (1 << 20) > 0) + 1).max(128)
        });
        let range = |axis: usize| {
            let near = place[axis].div_euclid(256);
            let all = (near - 4).max(0)..(near + 5).min(frame[axis] as i64);
            all.filter(move |f| {
                let from = place[axis] - 256 * f;
                -half[axis] <= from && from < half[axis]
            })
        };
        range(1)
            .flat_map(|y| range(0).map(move |x| [x, y]))
            .collect()
    }
}
