//! Patterns of lines: their direction, and their one vector.

use super::{
    FLOOR, LEAST_PX, RISE, STRONG, Vector,
    correlation::{Correlation, Neighbourhood},
    vector::combination,
};

/// Largest `i` and `j` of the lattice vectors `i·A + j·B` that may lie along lines. Peaks on fine lines stand where a line meets
/// whole lags, so that the shortest vector along the lines is often no short one of these.
const MULTIPLES: i32 = 6;

/// Steps per pixel along the normal.
const STEPS: usize = 4;
/// Steps to each side within which a maximum is the largest value.
const WIDTH: usize = 6;
/// Rounds that straighten the direction.
const ROUNDS: usize = 3;
/// Places along the ridge through lag 0 that tell its direction, and the first one's distance, px.
const PLACES: usize = 24;
const FIRST_PLACE_PX: f64 = 4.0;
/// Places across the ridge at each of these: a quarter of a pixel apart, up to 1.5 px to each side.
const ACROSS: usize = 13;
/// Share of the lags along the ridge that is used: near the end the neighbours across it are not known.
const INSIDE: f64 = 0.9;
/// Lags along a ridge over which the mean is taken.
const MEANS: usize = 41;

/// Ridges on each side that are fitted, near ones first.
const REACHES: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 40.0];
/// Largest distance of a lag from its ridge, and of the parabola's vertex from the lag, px.
const NEAR_PX: f64 = 0.75;
const FARTHEST_VERTEX_PX: f64 = 1.2;
/// Lags nearer to lag 0 than this, px, hold the peak of noise.
const NOISE_PX: f64 = 4.0;
/// Curvature above which there is no ridge.
const CURVATURE: f64 = -1e-6;

/// Decline of the correlation over the nearest ridges, as of a pitch (`pitch_estimate.rs`).
const SUFFICIENT_SECOND: f64 = 0.64;
const MIN_KEPT: f64 = 0.65;

/// The direction of the lines, if the pattern consists of lines: a lattice vector of at least the correlation `least` on the
/// way to which the correlation does not fall.
pub fn direction(r: &Correlation, a: Vector, b: Vector, least: f64) -> Option<Vector> {
    (0..=MULTIPLES)
        .flat_map(|j| (-MULTIPLES..=MULTIPLES).map(move |i| (i, j)))
        .filter(|&(i, j)| (j > 0 || i > 0) && divisor(i, j) == 1)
        .map(|(i, j)| combination(f64::from(i), a, f64::from(j), b))
        .find(|&v| r.holds(v) && r.at(v) >= least && r.is_ridge(v))
}

/// The greatest common divisor.
fn divisor(i: i32, j: i32) -> i32 {
    if j == 0 { i.abs() } else { divisor(j, i % j) }
}

/// The repeat of lines.
pub struct Lines {
    /// Normal to the lines, as long as their period, px.
    pub vector: Vector,
    /// Standard error of the period, px.
    pub error: f64,
    /// Correlation over the nearest periods; 0 if it declines too fast.
    pub confidence: f64,
}

/// The period of lines along about the unit vector `along`.
pub fn period(r: &Correlation, along: Vector) -> Option<Lines> {
    let [mx, my] = r.largest.map(|lag| lag as f64);
    let within = |u: Vector| (mx / u[0].abs().max(1e-9)).min(my / u[1].abs().max(1e-9));
    let longest = INSIDE * within(along);
    let along = straightened(r, along, longest);
    let mut normal = [-along[1], along[0]];
    if normal[0] < -1e-6 || normal[0].abs() <= 1e-6 && normal[1] < 0.0 {
        normal = normal.map(|c| -c);
    }

    let end = within(normal);
    let profile = profile(r, normal, along, end, longest / 3.0);
    let first = first_top(&profile)?;
    let (n, m, p) = (
        profile[first],
        profile[first - STEPS],
        profile[first + STEPS],
    );
    let start = first as f64 / STEPS as f64 + 0.5 * (m - p) / (m - 2.0 * n + p).min(-1e-12);
    let ridges = fit(r, start, normal);

    let teeth: Vec<f64> = (1..=4)
        .map(|m| f64::from(m) * ridges.period)
        .take_while(|&lag| lag < end)
        .map(|lag| interpolated(&profile, lag * STEPS as f64))
        .collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let last = *teeth.last()?;
    let farther = match teeth.get(2..) {
        Some(farther @ [_, ..]) => mean(farther),
        _ => last,
    };
    let is_kept =
        teeth.len() < 3 || teeth[1] >= SUFFICIENT_SECOND || farther >= MIN_KEPT * mean(&teeth[..2]);
    Some(Lines {
        vector: ridges.normal.map(|c| ridges.period * c),
        error: ridges.error,
        confidence: if is_kept {
            mean(&teeth).min(farther)
        } else {
            0.0
        },
    })
}

/// The direction of the ridge through lag 0.
fn straightened(r: &Correlation, mut along: Vector, longest: f64) -> Vector {
    let across = |k: usize| 0.25 * (k as f64 - (ACROSS / 2) as f64);
    for _ in 0..ROUNDS {
        let normal = [-along[1], along[0]];
        let (mut moment, mut square) = (0.0, 0.0);
        for place in 0..PLACES {
            let t =
                FIRST_PLACE_PX + (longest - FIRST_PLACE_PX) * place as f64 / (PLACES - 1) as f64;
            let values: [f64; ACROSS] =
                std::array::from_fn(|k| r.at(combination(t, along, across(k), normal)));
            let mut top = 1;
            for k in 2..ACROSS - 1 {
                if values[k] > values[top] {
                    top = k;
                }
            }
            let (m, n, p) = (values[top - 1], values[top], values[top + 1]);
            if n >= m && n >= p {
                let vertex = across(top) + 0.125 * (m - p) / (m - 2.0 * n + p).min(-1e-12);
                moment += t * vertex;
                square += t * t;
            }
        }
        let slope = if square > 0.0 { moment / square } else { 0.0 };
        let turned = combination(1.0, along, slope, normal);
        let scale = 1.0 / turned[0].hypot(turned[1]);
        along = turned.map(|c| scale * c);
    }
    along
}

/// The mean correlation along the lines, in steps of a quarter of a pixel along the normal up to `end`.
fn profile(r: &Correlation, normal: Vector, along: Vector, end: f64, half: f64) -> Vec<f64> {
    let [mx, my] = r.largest.map(|lag| lag as f64);
    let steps = (end * STEPS as f64).ceil() as usize;
    (0..steps)
        .map(|step| {
            let x = step as f64 / STEPS as f64;
            let values = (0..MEANS).map(|i| {
                let t = half * (2.0 * i as f64 / (MEANS - 1) as f64 - 1.0);
                let [x, y] = combination(x, normal, t, along);
                r.at([x.clamp(-mx, mx), y.clamp(-my, my)])
            });
            values.sum::<f64>() / MEANS as f64
        })
        .collect()
}

/// The first maximum of the profile that has nearly the largest correlation.
fn first_top(profile: &[f64]) -> Option<usize> {
    let is_top = |&i: &usize| {
        let around = &profile[i.saturating_sub(WIDTH)..(i + WIDTH + 1).min(profile.len())];
        let value = profile[i];
        let largest = around.iter().copied().fold(f64::MIN, f64::max);
        let lowest = profile[..i].iter().copied().fold(f64::MAX, f64::min);
        value > FLOOR && value >= largest && value - lowest >= RISE * value
    };
    let from = (LEAST_PX * STEPS as f64) as usize;
    let tops: Vec<usize> = (from..profile.len().saturating_sub(STEPS))
        .filter(is_top)
        .collect();
    let best = tops.iter().map(|&i| profile[i]).fold(0.0, f64::max);
    tops.into_iter().find(|&i| profile[i] >= STRONG * best)
}

/// Linear between values; that at the end beyond it.
fn interpolated(values: &[f64], place: f64) -> f64 {
    let whole = place.floor();
    let at = |i: usize| values[i.min(values.len() - 1)];
    let (near, far) = (at(whole as usize), at(whole as usize + 1));
    near + (place - whole) * (far - near)
}

struct Ridges {
    period: f64,
    normal: Vector,
    error: f64,
}

/// Fits period and direction together to all ridges, by a parabola along the normal at each lag beside one, near ridges first.
fn fit(r: &Correlation, start: f64, start_normal: Vector) -> Ridges {
    let [mx, my] = r.largest.map(|lag| lag as isize);
    let mut ridges = Ridges {
        period: start,
        normal: start_normal,
        error: start,
    };
    for reach in REACHES {
        let (n, period) = (ridges.normal, ridges.period);
        // Of m·m, m·t and t·t; of m·s and t·s; of s·s. The ridge number m, the place t along it, the distance s of its top.
        let (mut squares, mut products, mut energy) = ([0.0; 3], [0.0; 2], 0.0);
        let (mut count, mut has_other) = (0usize, false);
        for y in 0..=my {
            for x in -mx..=mx {
                let (fx, fy) = (x as f64, y as f64);
                let s = fx * n[0] + fy * n[1];
                let m = (s / period).round();
                let is_beside = (s - m * period).abs() <= NEAR_PX && m.abs() <= reach;
                if !is_beside
                    || fx * fx + fy * fy < NOISE_PX * NOISE_PX
                    || r.whole(x, y) < 0.5 * FLOOR
                {
                    continue;
                }
                let near = Neighbourhood::new(|dx, dy| r.whole(x + dx, y + dy));
                let [gx, gy, hx, hy, mixed] = near.derivatives();
                let curvature = hx * n[0] * n[0] + 2.0 * mixed * n[0] * n[1] + hy * n[1] * n[1];
                let vertex = -(gx * n[0] + gy * n[1]) / curvature.min(-1e-12);
                if curvature >= CURVATURE || vertex.abs() > FARTHEST_VERTEX_PX {
                    continue;
                }
                let (t, s) = (fy * n[0] - fx * n[1], s + vertex);
                count += 1;
                has_other |= m != 0.0;
                (squares.iter_mut().zip([m * m, m * t, t * t])).for_each(|(sum, v)| *sum += v);
                (products.iter_mut().zip([m * s, t * s])).for_each(|(sum, v)| *sum += v);
                energy += s * s;
            }
        }
        let [mm, mt, tt] = squares;
        let determinant = mm * tt - mt * mt;
        if count < 3 || !has_other || determinant <= 1e-9 * mm * tt {
            break;
        }
        let [ms, ts] = products;
        let period = (ms * tt - ts * mt) / determinant;
        let slope = (ts * mm - ms * mt) / determinant;
        let residues = (energy - period * ms - slope * ts).max(0.0);
        let error = (residues / (count - 2) as f64 * tt / determinant).sqrt();
        let scale = 1.0 / 1f64.hypot(slope);
        ridges = Ridges {
            period: period * scale,
            normal: [scale * (n[0] + slope * n[1]), scale * (n[1] - slope * n[0])],
            error,
        };
    }
    ridges
}
