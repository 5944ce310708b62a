//! Sums of products of directions.

/// Points whose products are summed at once: see [`sums`].
const CHUNK: usize = 256;

/// Directions along x and along y.
#[derive(Debug, Clone, Default)]
pub struct Directions {
    pub x: Vec<i16>,
    pub y: Vec<i16>,
}

/// Where a point lies among the directions, and its own direction.
pub type PointAt = (usize, [i16; 2]);

/// For N neighbours from `at`: the sums over the points of the products of directions.
///
/// Compilers make vectors of 16 bits of this, which need no instruction that old CPUs lack. A product fits 16 bits, since
/// directions are at most 128.4 long. `low` is the sum modulo 2^16, `256·high` is at most 255 a point below it: both tell
/// the sum of 256 points exactly.
pub fn sums<const N: usize>(directions: &Directions, at: usize, points: &[PointAt]) -> [i32; N] {
    let mut sums = [0; N];
    for points in points.chunks(CHUNK) {
        let (mut low, mut high) = ([0_i16; N], [0_i16; N]);
        for &(offset, [vx, vy]) in points {
            let first = at + offset;
            let [x, y] = [&directions.x, &directions.y]
                .map(|values| values.get(first..).and_then(<[i16]>::first_chunk::<N>));
            let (Some(x), Some(y)) = (x, y) else {
                continue;
            };
            for i in 0..N {
                let product = x[i].wrapping_mul(vx).wrapping_add(y[i].wrapping_mul(vy));
                low[i] = low[i].wrapping_add(product);
                high[i] += product >> 8;
            }
        }
        for (sum, (low, high)) in sums.iter_mut().zip(low.into_iter().zip(high)) {
            let coarse = 256 * i32::from(high);
            *sum += coarse + i32::from((low as u16).wrapping_sub(coarse as u16));
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_at_the_largest_products_and_over_several_chunks() {
        let longest = [[127, 0], [90, 91], [-91, 90], [0, -127], [-128, 3], [5, -9]];
        for count in [1, 255, 256, 257, 384, 600] {
            for turn in 0..longest.len() {
                let direction = |i: usize| longest[(i / 37 + i % 7 * turn) % longest.len()];
                let directions = Directions {
                    x: (0..900).map(|i| direction(i)[0]).collect(),
                    y: (0..900).map(|i| direction(i)[1]).collect(),
                };
                let points: Vec<PointAt> = (0..count)
                    .map(|i| (i, longest[(i * turn / 5) % longest.len()]))
                    .collect();
                let found: [i32; 16] = sums(&directions, 20, &points);
                for (lane, found) in found.into_iter().enumerate() {
                    let product = |&(offset, v): &PointAt| {
                        let u = direction(20 + offset + lane);
                        i64::from(u[0]) * i64::from(v[0]) + i64::from(u[1]) * i64::from(v[1])
                    };
                    assert_eq!(i64::from(found), points.iter().map(product).sum::<i64>());
                }
            }
        }
    }
}
