//! Medians of repeated runs.

use std::time::Instant;

use crate::Error;

/// Runs that are not counted.
const WARM_UP: u32 = 3;

/// Median time of `runs` runs, ms, after a warm-up.
///
/// # Errors
/// The first error of a run.
pub fn median_ms(runs: u32, mut run: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    median_of(runs, || {
        let started = Instant::now();
        run()?;
        Ok(started.elapsed().as_secs_f64() * 1e3)
    })
}

/// Median of the times that `runs` runs return, ms, after a warm-up.
///
/// # Errors
/// The first error of a run.
pub fn median_of(runs: u32, mut run: impl FnMut() -> Result<f64, Error>) -> Result<f64, Error> {
    for _ in 0..WARM_UP {
        run()?;
    }
    let times = (0..runs).map(|_| run()).collect::<Result<Vec<_>, _>>()?;
    Ok(median(times))
}

/// The median; of an even number of values the upper one, without values NaN.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
