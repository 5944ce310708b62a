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
    let energy = energy(picture);
    let [a, b] = vectors;
    Some([vector(picture, a, energy)?, vector(picture, b, energy)?])
}

/// The correlation at lag 0, not divided by itself.
fn energy(picture: &Picture) -> f64 {
    Lags::new(picture, [0; 2], ROWS, &[]).means[1].max(1e-9)
}

fn vector(picture: &Picture, start: Vector, energy: f64) -> Option<Vector> {
    let mut vector = start;
    let mut first = None;
    let mut farthest = None;
    for multiple in MULTIPLES {
        let expected = vector.map(|c| multiple * c);
        let Some((lags, [x, y])) = climb(picture, expected.map(f64::round), ROWS, &[]) else {
            break;
        };
        let near = neighbourhood(&lags);
        let r = near.middle() / energy;
        let away = [x - expected[0], y - expected[1]];
        let least = first.map_or(FLOOR, |first| LEAST * first);
        if r < least || length(away) > (NEAR * length(vector)).max(NEAR_PX) {
            break;
        }
        first.get_or_insert(r);
        let (step, _) = near.vertex();
        vector = [(x + step[0]) / multiple, (y + step[1]) / multiple];
        farthest = Some((multiple, [x, y], lags));
    }
    let (multiple, place, known) = farthest?;
    let (lags, [x, y]) = climb(picture, place, 1, &known)?;
    let (step, _) = neighbourhood(&lags).vertex();
    Some([(x + step[0]) / multiple, (y + step[1]) / multiple])
}

/// The correlation at any lag up to a third of the sides, bilinear between whole lags; 0 beyond.
pub fn correlation(picture: &Picture, [x, y]: Vector) -> f64 {
    if !holds(picture, [x, y]) {
        return 0.0;
    }
    let energy = energy(picture);
    let (fx, fy) = (x - x.floor(), y - y.floor());
    let row = |y: f64| {
        let place = [x.floor() as isize + 1, y as isize];
        let [near, far, _] = Lags::new(picture, place, ROWS, &[]).means;
        (1.0 - fx) * near + fx * far
    };
    ((1.0 - fy) * row(y.floor()) + fy * row(y.floor() + 1.0)) / energy
}

fn holds(picture: &Picture, [x, y]: Vector) -> bool {
    let largest = |side: usize| side as f64 / REPEATS as f64;
    x.abs() <= largest(picture.width) && y.abs() <= largest(picture.height)
}

/// The lags around the maximum that few blocks reach from a whole lag, and its place. Every `step`th row is multiplied; `known`:
/// products of every [`ROWS`]th row.
fn climb(
    picture: &Picture,
    [mut x, mut y]: Vector,
    step: usize,
    known: &[Lags],
) -> Option<([Lags; 3], Vector)> {
    if !holds(picture, [x, y]) {
        return None;
    }
    let mut before = Vec::new();
    for _ in 0..BLOCKS {
        let lags = [-1, 0, 1].map(|dy| {
            let place = [x as isize, y as isize + dy];
            // A block one row away shares two rows of lags.
            let shared = before.iter().position(|lags: &Lags| lags.place == place);
            match shared {
                Some(shared) => before.swap_remove(shared),
                None => Lags::new(picture, place, step, known),
            }
        });
        let [dx, dy] = neighbourhood(&lags).uphill();
        if (dx, dy) == (0, 0) {
            return Some((lags, [x, y]));
        }
        before = lags.into();
        (x, y) = (x + dx as f64, y + dy as f64);
    }
    None
}

/// The correlations around a whole lag; not divided by that at lag 0.
fn neighbourhood(lags: &[Lags; 3]) -> Neighbourhood {
    Neighbourhood::new(|dx, dy| lags[(dy + 1) as usize].means[(dx + 1) as usize])
}

/// The products of the samples with those at the lags `x − 1`, `x` and `x + 1`, `y`.
struct Lags {
    /// `x`, `y`.
    place: [isize; 2],
    /// Their sums in each row that was multiplied.
    sums: Vec<[f64; 3]>,
    /// Their means.
    means: [f64; 3],
}

impl Lags {
    /// Multiplies every `step`th row. Of `known` the sums of every [`ROWS`]th row at the same place are taken.
    fn new(picture: &Picture, place: [isize; 2], step: usize, known: &[Self]) -> Self {
        let [x, y] = place;
        let mut all = Self {
            place,
            sums: Vec::new(),
            means: [0.0; 3],
        };
        let across = y.unsigned_abs();
        let lags = [x - 1, x, x + 1];
        let farthest = lags.map(isize::unsigned_abs).into_iter().max();
        if farthest.is_none_or(|farthest| farthest >= picture.width) || across >= picture.height {
            return all;
        }
        let known = known.iter().find(|known| known.place == place);
        let (first, second) = if y < 0 { (across, 0) } else { (0, across) };
        let outside = |x: isize| x.max(0) as usize;
        let begins = lags.map(|lag| outside(-lag));
        let ends = lags.map(|lag| picture.width - outside(lag));
        // Columns whose neighbours at all three lags lie in the picture.
        let (begin, end) = (begins[0], ends[2].max(begins[0]));
        let at = |column: usize, lag: isize| column.wrapping_add_signed(lag);
        let sums_of = |row: usize| {
            let (a, b) = (picture.row(first + row), picture.row(second + row));
            let most = products(&a[begin..end], &b[at(begin, x - 1)..at(end, x + 1)]);
            std::array::from_fn(|k| {
                let others = (begins[k]..begin).chain(end..ends[k]);
                let product = |column: usize| f64::from(a[column] * b[at(column, lags[k])]);
                most[k] + others.map(product).sum::<f64>()
            })
        };
        let rows = (0..picture.height - across).step_by(step);
        all.sums.extend(rows.map(|row| {
            let known = known.filter(|_| row % ROWS == 0);
            known.map_or_else(|| sums_of(row), |known| known.sums[row / ROWS])
        }));
        let mut sums = [0.0; 3];
        for of_row in &all.sums {
            sums.iter_mut()
                .zip(of_row)
                .for_each(|(sum, row)| *sum += row);
        }
        let count = all.sums.len();
        all.means = std::array::from_fn(|k| sums[k] / (count * (ends[k] - begins[k])) as f64);
        all
    }
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
