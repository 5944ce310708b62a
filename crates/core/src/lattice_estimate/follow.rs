//! Vectors in use, found again in the next picture without FFT.

use super::{FLOOR, REPEATS, Vector, correlation::Neighbourhood, picture::Picture, vector::length};

/// Multiples of a vector whose peaks are sought, one after the other.
const MULTIPLES: [f64; 4] = [1.0, 2.0, 4.0, 8.0];
/// One row of this many is multiplied on the way to a peak. Where all edges of a pattern meet these rows at the same distance, the
/// place is shifted by up to a pixel, so the last one is that of all rows.
const ROWS: usize = 4;
/// Blocks of 3 × 3 lags on the way to a peak.
const BLOCKS: usize = 3;
/// Least correlation at a multiple, as a share of that at the vector.
const LEAST: f64 = 0.7;
/// Largest distance of a peak from where it is expected, as a share of the vector, or px if that is more.
const NEAR: f64 = 0.2;
const NEAR_PX: f64 = 1.0;

/// The vectors, refined; `None` if one is lost.
pub fn follow(picture: &Picture, vectors: [Vector; 2]) -> Option<[Vector; 2]> {
    let energy = correlations(picture, 0, 0, ROWS)[1].max(1e-9);
    let [a, b] = vectors;
    Some([vector(picture, a, energy)?, vector(picture, b, energy)?])
}

fn vector(picture: &Picture, start: Vector, energy: f64) -> Option<Vector> {
    let mut vector = start;
    let mut first = None;
    let mut farthest = None;
    for multiple in MULTIPLES {
        let expected = vector.map(|c| multiple * c);
        let Some((near, [x, y])) = climb(picture, expected.map(f64::round), ROWS) else {
            break;
        };
        let r = near.middle() / energy;
        let away = [x - expected[0], y - expected[1]];
        let least = first.map_or(FLOOR, |first| LEAST * first);
        if r < least || length(away) > (NEAR * length(vector)).max(NEAR_PX) {
            break;
        }
        first.get_or_insert(r);
        let (step, _) = near.vertex();
        vector = [(x + step[0]) / multiple, (y + step[1]) / multiple];
        farthest = Some((multiple, [x, y]));
    }
    let (multiple, place) = farthest?;
    let (near, [x, y]) = climb(picture, place, 1)?;
    let (step, _) = near.vertex();
    Some([(x + step[0]) / multiple, (y + step[1]) / multiple])
}

/// The correlation at any lag up to a third of the sides, bilinear between whole lags; 0 beyond.
pub fn correlation(picture: &Picture, [x, y]: Vector) -> f64 {
    if !holds(picture, [x, y]) {
        return 0.0;
    }
    let energy = correlations(picture, 0, 0, ROWS)[1].max(1e-9);
    let (fx, fy) = (x - x.floor(), y - y.floor());
    let row = |y: f64| {
        let [near, far, _] = correlations(picture, x.floor() as isize + 1, y as isize, ROWS);
        (1.0 - fx) * near + fx * far
    };
    ((1.0 - fy) * row(y.floor()) + fy * row(y.floor() + 1.0)) / energy
}

fn holds(picture: &Picture, [x, y]: Vector) -> bool {
    let largest = |side: usize| side as f64 / REPEATS as f64;
    x.abs() <= largest(picture.width) && y.abs() <= largest(picture.height)
}

/// The correlations of every `rows`th row around the maximum that few blocks reach from a whole lag, and its place.
fn climb(
    picture: &Picture,
    [mut x, mut y]: Vector,
    rows: usize,
) -> Option<(Neighbourhood, Vector)> {
    if !holds(picture, [x, y]) {
        return None;
    }
    for _ in 0..BLOCKS {
        let near = around(picture, [x, y], rows);
        let [dx, dy] = near.uphill();
        if (dx, dy) == (0, 0) {
            return Some((near, [x, y]));
        }
        (x, y) = (x + dx as f64, y + dy as f64);
    }
    None
}

/// The correlations around a whole lag, of every `step`th row; not divided by that at lag 0.
fn around(picture: &Picture, [x, y]: Vector, step: usize) -> Neighbourhood {
    let (x, y) = (x as isize, y as isize);
    let rows = [-1, 0, 1].map(|dy| correlations(picture, x, y + dy, step));
    Neighbourhood::new(|dx, dy| rows[(dy + 1) as usize][(dx + 1) as usize])
}

/// The mean products of the samples of every `step`th row with those at the lags `x − 1`, `x` and `x + 1`, `y`.
fn correlations(picture: &Picture, x: isize, y: isize, step: usize) -> [f64; 3] {
    let across = y.unsigned_abs();
    let lags = [x - 1, x, x + 1];
    let farthest = lags.map(isize::unsigned_abs).into_iter().max();
    if farthest.is_none_or(|farthest| farthest >= picture.width) || across >= picture.height {
        return [0.0; 3];
    }
    let (first, second) = if y < 0 { (across, 0) } else { (0, across) };
    let place = |x: isize| x.max(0) as usize;
    let begins = lags.map(|lag| place(-lag));
    let ends = lags.map(|lag| picture.width - place(lag));
    // Columns whose neighbours at all three lags lie in the picture.
    let (begin, end) = (begins[0], ends[2].max(begins[0]));
    let at = |column: usize, lag: isize| column.wrapping_add_signed(lag);
    let rows = (0..picture.height - across).step_by(step);
    let count = rows.clone().count();
    let mut sums = [0f64; 3];
    for row in rows {
        let (a, b) = (picture.row(first + row), picture.row(second + row));
        let most = products(&a[begin..end], &b[at(begin, x - 1)..at(end, x + 1)]);
        for k in 0..3 {
            let others = (begins[k]..begin).chain(end..ends[k]);
            let product = |column: usize| f64::from(a[column] * b[at(column, lags[k])]);
            sums[k] += most[k] + others.map(product).sum::<f64>();
        }
    }
    std::array::from_fn(|k| sums[k] / (count * (ends[k] - begins[k])) as f64)
}

/// The sums of the products of `a` with the samples of `b` from the first, second and third one on, in lanes that do not depend
/// on each other; `b` holds two more samples.
fn products(a: &[f32], b: &[f32]) -> [f64; 3] {
    const LANES: usize = 8;
    let mut lanes = [[0f32; LANES]; 3];
    let (blocks, rest) = a.as_chunks::<LANES>();
    let [first, second, third] = [0, 1, 2].map(|k| b[k..].as_chunks::<LANES>().0);
    for ((a, first), (second, third)) in blocks.iter().zip(first).zip(second.iter().zip(third)) {
        for (lanes, b) in lanes.iter_mut().zip([first, second, third]) {
            for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
                *lane += a * b;
            }
        }
    }
    let b = &b[blocks.len() * LANES..];
    std::array::from_fn(|k| {
        let rest: f32 = rest.iter().zip(&b[k..]).map(|(a, b)| a * b).sum();
        f64::from(rest) + lanes[k].iter().map(|&lane| f64::from(lane)).sum::<f64>()
    })
}
