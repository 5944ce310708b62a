//! Angles, and the table of their sines.

use std::sync::LazyLock;

/// Units of an angle in a turn.
pub const TURN: i32 = 1 << 14;
/// Scale 1.
pub const ONE: i32 = 256;
/// Fraction bits of a sine.
pub const SINE_BITS: u32 = 14;

const QUARTER: i32 = TURN / 4;
/// Fraction bits of the series.
const BITS: u32 = 60;
/// `⌊π·2^60⌋`
const PI: i128 = 3_622_009_729_038_561_421;
/// The 13th term of the series for a quarter of a turn is below 2^-60.
const TERMS: i128 = 13;

/// `round(2^14·sin)` of the angles of the first quarter, from integers alone: the series in units of 2^-60 errs by less
/// than 2^-53, and no value of the table lies that close to the middle between two integers (see the test).
static QUARTER_SINES: LazyLock<Vec<i32>> = LazyLock::new(|| {
    let rounded = |sine: i128| (sine + (1 << (BITS - SINE_BITS - 1))) >> (BITS - SINE_BITS);
    (0..=QUARTER).map(|a| rounded(series(a)) as i32).collect()
});

/// The sine of an angle of the first quarter, 2^-60.
fn series(angle: i32) -> i128 {
    let x = i128::from(angle) * PI / i128::from(TURN / 2);
    let square = (x * x) >> BITS;
    let (mut term, mut sum) = (x, x);
    for n in 1..TERMS {
        term = -((term * square) >> BITS) / (2 * n * (2 * n + 1));
        sum += term;
    }
    sum
}

/// `round(2^14·sin)` of an angle in 1/16384 turn.
pub fn sine(angle: i32) -> i32 {
    let angle = angle.rem_euclid(TURN);
    let (quarter, within) = (angle / QUARTER, angle % QUARTER);
    let of = |a: i32| QUARTER_SINES.get(a as usize).copied().unwrap_or(0);
    match quarter {
        0 => of(within),
        1 => of(QUARTER - within),
        2 => -of(within),
        _ => -of(QUARTER - within),
    }
}

/// `round(2^14·cos)` of an angle in 1/16384 turn.
pub fn cosine(angle: i32) -> i32 {
    sine(angle + QUARTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_the_rounded_sine_and_no_value_lies_near_the_middle_of_two_integers() {
        let step = 1_i128 << (BITS - SINE_BITS);
        for angle in 0..=QUARTER {
            let exact = series(angle);
            let from_middle = (exact.rem_euclid(step) - step / 2).abs();
            assert!(from_middle > 1 << 12, "{angle}: {from_middle}");
        }
        for angle in -TURN..2 * TURN {
            let real = std::f64::consts::TAU * f64::from(angle) / f64::from(TURN);
            assert_eq!(f64::from(sine(angle)), (16384.0 * real.sin()).round());
            assert_eq!(f64::from(cosine(angle)), (16384.0 * real.cos()).round());
        }
    }
}
