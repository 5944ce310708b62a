//! How bright a part is, compared with the trained one: docs/semantics.md, "Parts in a frame".

/// Fraction bits of a gain and an offset.
const BITS: i32 = 16;
/// Further fraction bits of a gain's change per pixel.
const SLOPE_BITS: i32 = 10;
/// Side of a block whose samples are summed, px.
const SIDE: f64 = 4.0;
/// Samples of a block.
const SAMPLES: f64 = SIDE * SIDE;
/// Fewest blocks that tell a light.
const LEAST: usize = 16;
/// Blocks count that are no further off than this many medians, or two grey levels.
const FAR: f64 = 3.0;
const NEAR: f64 = 2.0 * SAMPLES;
/// Least and largest gain.
const GAINS: [f64; 2] = [0.25, 4.0];
/// Unknowns: the gain, its changes along x and y, and the offset.
const UNKNOWNS: usize = 4;

/// A sample `s` of the pixel (x, y) of a cut becomes `(s·g + offset + 2^15) >> 16` with `g = gain + ((by_x·x + by_y·y) >> 10)`,
/// limited to the levels that samples have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Light {
    /// Of the first pixel, 2^-16.
    pub gain: i64,
    /// Change per pixel along x and y, 2^-26.
    pub slope: [i64; 2],
    /// Grey levels of a sample, 2^-16.
    pub offset: i64,
}

impl Default for Light {
    /// That of the training.
    fn default() -> Self {
        Self {
            gain: 1 << BITS,
            slope: [0; 2],
            offset: 0,
        }
    }
}

impl Light {
    /// Which makes the part of a frame most like the trained one. `blocks`: pixels of level 4 of the cut, and the sums of
    /// 4x4 samples there, of the part as it was read and of the trained one, in grey levels of 8 bits. `depth`: bits of a
    /// sample. That of the training, if the blocks do not tell.
    pub fn between(blocks: &[([usize; 2], u16, u16)], size: [usize; 2], depth: u32) -> Self {
        // A bright defect would bend the squares of all blocks to itself, so they begin near the median of the ratios.
        let lit = blocks.iter().filter(|&&(_, frame, _)| frame > 0);
        let ratio = median(lit.map(|&(_, frame, model)| f64::from(model) / f64::from(frame)));
        let fit = near(blocks, &Fit([ratio, 0.0, 0.0, 0.0]));
        let fit = fit.and_then(|fit| near(blocks, &fit));
        fit.and_then(|fit| fit.light(size, depth))
            .unwrap_or_default()
    }
}

/// `m = (a + b·x + c·y)·f + o` with places in blocks.
#[derive(Debug, Clone, Copy)]
struct Fit([f64; UNKNOWNS]);

impl Fit {
    fn gain(&self, x: f64, y: f64) -> f64 {
        let [a, b, c, _] = self.0;
        a + b * x + c * y
    }

    fn off(&self, &([x, y], frame, model): &([usize; 2], u16, u16)) -> f64 {
        let gain = self.gain(x as f64, y as f64);
        (f64::from(model) - gain * f64::from(frame) - self.0[3]).abs()
    }

    /// In integers; `None` for a light that no lamp gives.
    fn light(&self, [width, height]: [usize; 2], depth: u32) -> Option<Light> {
        let [right, lower] = [width, height].map(|n| n as f64 / SIDE);
        let corners = [(0.0, 0.0), (right, 0.0), (0.0, lower), (right, lower)];
        let is_gain = |(x, y): (f64, f64)| {
            let [least, most] = GAINS;
            (least..=most).contains(&self.gain(x, y))
        };
        if !corners.into_iter().all(is_gain) {
            return None;
        }
        let [a, b, c, offset] = self.0;
        // The middle of a block lies 1.5 px from the middle of its first pixel.
        let middle = (SIDE - 1.0) / 2.0;
        let first = a - middle * (b + c) / SIDE;
        let scaled = |v: f64, bits: i32| (v * f64::from(bits).exp2()).round() as i64;
        let level = f64::from(depth.saturating_sub(8)).exp2();
        Some(Light {
            gain: scaled(first, BITS),
            slope: [b, c].map(|slope| scaled(slope / SIDE, BITS + SLOPE_BITS)),
            offset: scaled(offset / SAMPLES * level, BITS),
        })
    }
}

/// Least squares over the blocks that are near a fit.
fn near(blocks: &[([usize; 2], u16, u16)], fit: &Fit) -> Option<Fit> {
    let most = (FAR * median(blocks.iter().map(|block| fit.off(block)))).max(NEAR);
    solved(blocks.iter().filter(|block| fit.off(block) <= most))
}

/// The upper one of the two in the middle; 0 of none.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Least squares; sums in the order of the blocks, so that each CPU gets the same.
fn solved<'a>(blocks: impl Iterator<Item = &'a ([usize; 2], u16, u16)>) -> Option<Fit> {
    let mut rows = [[0.0; UNKNOWNS + 1]; UNKNOWNS];
    let mut count = 0;
    for &([x, y], frame, model) in blocks {
        let f = f64::from(frame);
        let terms = [f, f * x as f64, f * y as f64, 1.0, f64::from(model)];
        for (row, by) in rows.iter_mut().zip(terms) {
            for (sum, term) in row.iter_mut().zip(terms) {
                *sum += by * term;
            }
        }
        count += 1;
    }
    if count < LEAST {
        return None;
    }
    // Gauss, with the largest pivot.
    for n in 0..UNKNOWNS {
        let pivot = (n..UNKNOWNS).max_by(|&a, &b| rows[a][n].abs().total_cmp(&rows[b][n].abs()))?;
        rows.swap(n, pivot);
        let row = rows[n];
        // A plain part does not tell its light's offset.
        if row[n].abs() < 1e-6 {
            return None;
        }
        for other in (0..UNKNOWNS).filter(|&other| other != n) {
            let factor = rows[other][n] / row[n];
            for (term, own) in rows[other].iter_mut().zip(row) {
                *term -= factor * own;
            }
        }
    }
    let mut fit = [0.0; UNKNOWNS];
    for (n, value) in fit.iter_mut().enumerate() {
        *value = rows[n][UNKNOWNS] / rows[n][n];
    }
    fit.iter().all(|v: &f64| v.is_finite()).then_some(Fit(fit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(light: impl Fn(usize, usize, f64) -> f64) -> Vec<([usize; 2], u16, u16)> {
        let places = (0..20).flat_map(|y| (0..30).map(move |x| [x, y]));
        let block = |[x, y]: [usize; 2]| {
            let frame = 300 + (x * 7919 + y * 104_729) % 1200;
            (
                [x, y],
                frame as u16,
                light(x, y, frame as f64).round() as u16,
            )
        };
        places.map(block).collect()
    }

    #[test]
    fn light_that_falls_is_found_and_a_defect_does_not_change_it() {
        let falls =
            |x: usize, y: usize, f: f64| f * (1.0 + 0.02 * x as f64 - 0.01 * y as f64) + 48.0;
        let mut blocks = blocks(falls);
        let light = Light::between(&blocks, [120, 80], 8);
        let at = |light: Light, sample: i64, x: i64, y: i64| {
            let gain = light.gain + ((light.slope[0] * x + light.slope[1] * y) >> SLOPE_BITS);
            (sample * gain + light.offset + (1 << (BITS - 1))) >> BITS
        };
        for (sample, x, y) in [(30, 0, 0), (60, 118, 2), (90, 60, 79), (40, 119, 79)] {
            let gain = 1.0 + 0.02 * (x as f64 - 1.5) / 4.0 - 0.01 * (y as f64 - 1.5) / 4.0;
            let wanted = (sample as f64 * gain + 3.0).round() as i64;
            let got = at(light, sample, x, y);
            assert!(
                (got - wanted).abs() <= 1,
                "{sample} {x} {y}: {got} {wanted}"
            );
        }
        for (_, frame, _) in blocks.iter_mut().take(60) {
            *frame = 4000;
        }
        let other = Light::between(&blocks, [120, 80], 8);
        assert!((at(other, 60, 118, 2) - at(light, 60, 118, 2)).abs() <= 1);
        // 12 bits: the same gain, an offset in its own levels.
        let deep = Light::between(&blocks, [120, 80], 12);
        assert_eq!((deep.gain, deep.slope), (other.gain, other.slope));
        assert!((deep.offset - 16 * other.offset).abs() <= 16);
    }

    #[test]
    fn blocks_that_do_not_tell_leave_the_light() {
        let few = &blocks(|_, _, f| 2.0 * f)[..15];
        assert_eq!(Light::between(few, [120, 80], 8), Light::default());
        let plain: Vec<_> = (0..400).map(|n| ([n % 20, n / 20], 0, 500)).collect();
        assert_eq!(Light::between(&plain, [80, 80], 8), Light::default());
        let dark = blocks(|_, _, f| f / 8.0);
        assert_eq!(Light::between(&dark, [120, 80], 8), Light::default());
    }
}
