//! Where the marks of a model's pixels lie in the frame.

use super::{NODE_TILE, UNITS, Warp};
use crate::components::MeasuredDefect;

impl Warp {
    /// How far a marked pixel reaches in the frame, 1/256 px: along x and along y `[low, high]`. A pixel of the model at P
    /// marks each pixel F of the frame with `-low ≤ P - 256·F ≤ high`: of a shift exactly one, and of a frame that is
    /// stretched some more, so that marks have no holes.
    pub fn reach(&self) -> [[i32; 2]; 2] {
        let [_, a, b, _, d, e] = self.coefficients.map(i32::unsigned_abs);
        let half = UNITS / 2;
        [[a, b], [d, e]].map(|[a, b]| {
            let stretch = u64::from(a) + u64::from(b);
            // Neighbours of a pixel are half a pixel away along both axes.
            let mut more = (half as u64 * stretch).div_ceil(1 << 20) as i32;
            if self.nodes.is_some() {
                // Nodes differ by 4 px at most.
                more += half * 8 / NODE_TILE as i32;
            }
            if more > 0 {
                // Displacements are rounded.
                more += 1;
            }
            [half + more, half + more - 1]
        })
    }

    /// Moves a defect of the model's pixels to where it lies in a frame of this size: box and centroid. The box holds
    /// all pixels of the frame that the defect marks. Area, axes and boundary stay those of the model's pixels.
    pub fn place(&self, defect: &mut MeasuredDefect, [width, height]: [usize; 2]) {
        if self.is_identity() {
            return;
        }
        let local = self.nodes.as_ref().map_or(0, |nodes| {
            let shifts = nodes.u.iter().chain(&nodes.v);
            shifts.map(|shift| shift.abs()).max().unwrap_or(0)
        });
        let right = defect.x + defect.width.max(1) as i32 - 1;
        let lower = defect.y + defect.height.max(1) as i32 - 1;
        let corners = [
            [defect.x, defect.y],
            [right, defect.y],
            [defect.x, lower],
            [right, lower],
        ];
        let reach = self.reach();
        let [x, y] = [0, 1].map(|axis| {
            let places = corners.map(|at| UNITS * at[axis] + self.affine(at[0], at[1])[axis]);
            let [low, high] = reach[axis];
            let last = [width, height][axis] as i32 - 1;
            let first_at = places.iter().min().unwrap_or(&0) - local - high;
            let last_at = places.iter().max().unwrap_or(&0) + local + low;
            let first = ((first_at + UNITS - 1) >> 8).clamp(0, last);
            [first, (last_at >> 8).clamp(first, last)]
        });
        let centre = [defect.centroid_x, defect.centroid_y];
        let [shift_x, shift_y] = self.real_displacement(centre.map(|v| v - 0.5));
        defect.centroid_x += shift_x;
        defect.centroid_y += shift_y;
        (defect.x, defect.width) = (x[0], (x[1] - x[0] + 1) as u32);
        (defect.y, defect.height) = (y[0], (y[1] - y[0] + 1) as u32);
    }

    /// The displacement of a place between pixels, px; local shifts are those of the pixel that holds the place.
    fn real_displacement(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let [t0, t1, t2, t3, t4, t5] = self.transform();
        let affine = [t0 + (t1 - 1.0) * x + t2 * y, t3 + t4 * x + (t5 - 1.0) * y];
        match &self.nodes {
            Some(nodes) => {
                let local = nodes.at((x + 0.5).floor() as i32, (y + 0.5).floor() as i32);
                [0, 1].map(|axis| affine[axis] + f64::from(local[axis]) / f64::from(UNITS))
            }
            None => affine,
        }
    }

    /// The displacement of the middle of a frame without local shifts, px.
    pub fn shift(&self, size: [usize; 2]) -> [f64; 2] {
        let middle = size.map(|n| (n as f64 - 1.0) / 2.0);
        Self {
            nodes: None,
            coefficients: self.coefficients,
        }
        .real_displacement(middle)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{MOST_LOCAL, Nodes},
        *,
    };

    /// The pixels of a frame that a pixel of the model marks.
    fn marked(warp: &Warp, x: i32, y: i32, size: [usize; 2]) -> Vec<[i32; 2]> {
        let d = warp.displacement(x, y);
        let at = [256 * x + d[0], 256 * y + d[1]];
        let reach = warp.reach();
        let holds = |f: i32, axis: usize| {
            (-reach[axis][0]..=reach[axis][1]).contains(&(at[axis] - 256 * f))
        };
        let pixels = (0..size[1] as i32).flat_map(|fy| (0..size[0] as i32).map(move |fx| [fx, fy]));
        pixels
            .filter(|&[fx, fy]| holds(fx, 0) && holds(fy, 1))
            .collect()
    }

    fn warps(size: [usize; 2]) -> Vec<Warp> {
        let [columns, rows] = Nodes::tiles(size);
        let alternating = |i: usize| {
            if i.is_multiple_of(2) {
                MOST_LOCAL
            } else {
                -MOST_LOCAL
            }
        };
        let nodes = Nodes {
            columns,
            rows,
            u: (0..columns * rows).map(alternating).collect(),
            v: (0..columns * rows).map(|i| -alternating(i)).collect(),
        };
        let mut warps = vec![Warp::shifted([384, -192]), Warp::shifted([-512, 256])];
        for coefficients in [
            [0; 6],
            [1_000_000, 83_886, 83_886, 0, 83_886, 83_886],
            [-1_000_000, -83_886, 83_886, 1_500_000, -83_886, 83_886],
            [1_000_000, -70_000, -20_000, 1_500_000, 30_000, -60_000],
        ] {
            for nodes in [None, Some(nodes.clone())] {
                warps.push(Warp {
                    coefficients,
                    nodes,
                });
            }
        }
        warps
    }

    #[test]
    fn a_shifted_pixel_marks_one_pixel_and_halves_round_up() {
        let warp = Warp::shifted([384, -192]);
        assert_eq!(marked(&warp, 4, 5, [20, 20]), [[6, 4]]);
        assert_eq!(warp.reach(), [[128, 127]; 2]);
        assert_eq!(warp.shift([20, 9]), [1.5, -0.75]);
    }

    #[test]
    fn marks_of_the_whole_model_have_no_holes_and_no_mark_is_lost() {
        let size @ [width, height] = [75, 66];
        for warp in warps(size) {
            let mut frame = vec![false; width * height];
            for (x, y) in (-20..90).flat_map(|x| (-20..90).map(move |y| (x, y))) {
                let pixels = marked(&warp, x, y, size);
                let d = warp.displacement(x, y);
                let is_inside = (0..width as i32).contains(&(x + ((d[0] + 128) >> 8)))
                    && (0..height as i32).contains(&(y + ((d[1] + 128) >> 8)));
                assert!(!is_inside || !pixels.is_empty(), "{warp:?} {x} {y}");
                for [x, y] in pixels {
                    frame[y as usize * width + x as usize] = true;
                }
            }
            let hole = frame.iter().position(|set| !set);
            assert_eq!(hole, None, "{warp:?}");
        }
    }

    #[test]
    fn box_of_a_placed_defect_holds_all_its_marks_and_a_shift_moves_it_exactly() {
        let size @ [width, height] = [75, 66];
        for warp in warps(size) {
            for [x0, y0, w, h] in [[20, 30, 1, 1], [9, 12, 40, 7], [30, 20, 3, 35]] {
                let mut defect = MeasuredDefect {
                    x: x0,
                    y: y0,
                    width: w as u32,
                    height: h as u32,
                    centroid_x: f64::from(x0) + f64::from(w) / 2.0,
                    centroid_y: f64::from(y0) + f64::from(h) / 2.0,
                    ..MeasuredDefect::default()
                };
                warp.place(&mut defect, size);
                let [right, lower] = [
                    defect.x + defect.width as i32,
                    defect.y + defect.height as i32,
                ];
                assert!(defect.x >= 0 && defect.y >= 0);
                assert!(right <= width as i32 && lower <= height as i32);
                for (x, y) in (x0..x0 + w).flat_map(|x| (y0..y0 + h).map(move |y| (x, y))) {
                    for [x, y] in marked(&warp, x, y, size) {
                        let is_in =
                            (defect.x..right).contains(&x) && (defect.y..lower).contains(&y);
                        assert!(is_in, "{warp:?}: {x} {y} not in {defect:?}");
                    }
                }
                // A pixel that is moved by half a pixel has its centre at the edge of the one that it marks.
                let (x, y) = (defect.centroid_x, defect.centroid_y);
                assert!(x >= f64::from(defect.x) && x <= f64::from(right));
                assert!(y >= f64::from(defect.y) && y <= f64::from(lower));
            }
        }
        let mut defect = MeasuredDefect {
            x: 10,
            y: 10,
            width: 4,
            height: 5,
            centroid_x: 12.25,
            centroid_y: 12.5,
            ..MeasuredDefect::default()
        };
        Warp::shifted([-512, 320]).place(&mut defect, size);
        assert_eq!([defect.x, defect.y], [8, 11]);
        assert_eq!([defect.width, defect.height], [4, 5]);
        assert_eq!([defect.centroid_x, defect.centroid_y], [10.25, 13.75]);
    }
}
