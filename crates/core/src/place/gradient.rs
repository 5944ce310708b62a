//! Gradients of a level and their directions.

use super::level::Plane;

/// Length of a direction.
pub const LONG: i32 = 127;
/// Gradients below this one have shorter directions: 2 grey levels per px of the level.
const FLOOR: f64 = 1024.0;

/// The rows of the gradients of a picture along x and along y, 1/512 grey level per px: `[1 2 1]⊗[1 2 1]`, then differences
/// of the pixels on both sides; edge samples are repeated.
pub fn each_row(picture: &Plane, mut row: impl FnMut(usize, &[i32], &[i32])) {
    let Plane { width, height, .. } = *picture;
    if width == 0 || height == 0 {
        return;
    }
    let smooth = |y: usize, out: &mut Vec<i32>| {
        let near = [y.saturating_sub(1), y, (y + 1).min(height - 1)].map(|y| picture.row(y));
        let [above, own, below] = near;
        let column = |x: usize| above[x] + 2 * own[x] + below[x];
        let mut columns = Vec::with_capacity(width + 2);
        columns.push(column(0));
        columns.extend((0..width).map(column));
        columns.push(column(width - 1));
        out.clear();
        out.extend(columns.windows(3).map(|c| c[0] + 2 * c[1] + c[2]));
    };
    let mut rows = [(); 3].map(|()| Vec::with_capacity(width));
    smooth(0, &mut rows[0]);
    smooth(0, &mut rows[1]);
    let (mut along_x, mut along_y) = (vec![0; width], vec![0; width]);
    for y in 0..height {
        smooth((y + 1).min(height - 1), &mut rows[2]);
        let [above, own, below] = &rows;
        for (value, near) in along_x[1..].iter_mut().zip(own.windows(3)) {
            *value = near[2] - near[0];
        }
        let last = width - 1;
        along_x[0] = own[last.min(1)] - own[0];
        along_x[last] = own[last] - own[last.saturating_sub(1)];
        for ((value, below), above) in along_y.iter_mut().zip(below).zip(above) {
            *value = below - above;
        }
        row(y, &along_x, &along_y);
        rows.rotate_left(1);
    }
}

/// The length of a gradient, rounded down. A root in f64 is correctly rounded and the sum below 2^34, so no root of a number
/// below a square reaches that square's.
pub fn length(gx: i32, gy: i32) -> f64 {
    let [gx, gy] = [gx, gy].map(f64::from);
    (gx * gx + gy * gy).sqrt().floor()
}

/// The direction of a gradient of this length. A quotient in f64 of integers below 2^24 is rounded down exactly: if it is
/// not an integer, it is farther from the next one than f64 errs.
pub fn direction(gx: i32, gy: i32, length: f64) -> [i16; 2] {
    let by = length.max(FLOOR);
    let half = (0.5 * by).floor();
    [gx, gy].map(|g| {
        let long = ((f64::from(LONG * g.abs()) + half) / by) as i32;
        (if g < 0 { -long } else { long }) as i16
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_directions_are_those_of_integers() {
        let mut n = 1_u64;
        for _ in 0..200_000 {
            n = n
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let shift = n >> 59;
            let [gx, gy] = [n >> 20, n >> 40].map(|v| (v % 131_041) as i32 - 65_520);
            let [gx, gy] = [gx >> (shift % 12), gy >> (shift % 7)];
            let square = i64::from(gx) * i64::from(gx) + i64::from(gy) * i64::from(gy);
            let exact = square.isqrt();
            assert_eq!(length(gx, gy), exact as f64);
            let by = exact.max(1024);
            let along = |g: i32| i64::from(g.signum()) * ((127 * i64::from(g.abs()) + by / 2) / by);
            let found = direction(gx, gy, exact as f64).map(i64::from);
            assert_eq!(found, [along(gx), along(gy)], "{gx} {gy}");
        }
        // Next to squares.
        for root in [3_i32, 1000, 65_519] {
            assert_eq!(length(root, 0), f64::from(root));
            assert_eq!(length(root, 1), f64::from(root));
        }
    }

    #[test]
    fn gradient_of_a_ramp_is_its_slope_and_edges_are_repeated() {
        let values = (0..5)
            .flat_map(|y| (0..6).map(move |x| 16 * (3 * x + 2 * y)))
            .collect();
        let picture = Plane {
            width: 6,
            height: 5,
            values,
        };
        let mut inner = 0;
        each_row(&picture, |y, gx, gy| {
            for x in 0..6 {
                if (2..4).contains(&x) && y == 2 {
                    assert_eq!([gx[x], gy[x]], [3 * 512, 2 * 512]);
                    inner += 1;
                }
            }
            if y == 0 {
                // Along x the first pixel is smoothed to 48, and the second to 4·48.
                assert_eq!(gx[0], 4 * (4 * 48 - 48));
            }
        });
        assert_eq!(inner, 2);
        each_row(
            &Plane {
                width: 1,
                height: 1,
                values: vec![9],
            },
            |_, gx, gy| assert_eq!([gx, gy], [[0], [0]]),
        );
    }
}
