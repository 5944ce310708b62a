//! The flat field: references, gains, and the samples that cannot be corrected.

use crate::layout::FrameLayout;

/// Components that show light; a fourth one is alpha and stays as it is.
const MOST_COLORS: usize = 3;
/// A gain of 1.
pub const UNIT_GAIN: u16 = 4096;
/// Largest share of saturated samples in a white reference.
const MOST_SATURATED: f64 = 0.01;

/// Number of rows, of samples of a component in a row, and of components of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The frame's height, or 1 where all rows share a reference.
    pub rows: usize,
    /// The frame's width.
    pub width: usize,
    /// 1 for grey, 3 for R, G and B.
    pub components: usize,
}

impl Shape {
    /// The references of frames of `layout`; with `line` all rows share one.
    pub fn of(layout: &FrameLayout, line: bool) -> Self {
        Self {
            rows: if line { 1 } else { layout.height },
            width: layout.width,
            components: layout.components.len().min(MOST_COLORS),
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.rows * self.width * self.components
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The average of frames: `values[(y * width + x) * components + c]` in 1/256 grey level, the components in
/// the order R, G, B.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Rows, width and components.
    pub shape: Shape,
    /// The averages.
    pub values: Vec<u32>,
}

impl Reference {
    /// The averages `round(256 * sum / count)`, half up, of `count` ≥ 1 samples each.
    pub fn average(shape: Shape, sums: impl Iterator<Item = u64>, count: u64) -> Self {
        let count = count.max(1);
        Self {
            shape,
            values: sums
                .map(|sum| ((512 * sum + count) / (2 * count)) as u32)
                .collect(),
        }
    }

    /// Least, mean and largest value, grey levels.
    pub fn range(&self) -> [f64; 3] {
        let least = self.values.iter().min().copied().unwrap_or(0);
        let largest = self.values.iter().max().copied().unwrap_or(0);
        let sum: u64 = self.values.iter().map(|&value| u64::from(value)).sum();
        let mean = sum as f64 / self.values.len().max(1) as f64;
        [f64::from(least), mean, f64::from(largest)].map(|value| value / 256.0)
    }
}

/// Bad samples of a component that follow each other in a row and share their neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadRun {
    /// Component.
    pub component: u32,
    /// Row; 0 where all rows share a reference.
    pub row: u32,
    /// First column.
    pub first: u32,
    /// Number of columns.
    pub count: u32,
    /// Columns of the nearest good samples left and right; one of them may be missing.
    pub neighbours: [Option<u32>; 2],
}

/// How frames are corrected: `(max(0, 256 * sample - dark) * gain + 2^19) >> 20`, then bad samples are
/// replaced. A bad sample has dark 0 and gain 1, so a row without a good sample stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// Rows, width and components of the values.
    pub shape: Shape,
    /// Dark values, 1/256 grey level; `None`: all are 0.
    pub dark: Option<Vec<u32>>,
    /// Gains, 1/4096.
    pub gain: Vec<u16>,
    /// Level of an even white surface after the correction, 1/256 grey level.
    pub target: u32,
    /// Number of bad samples.
    pub bad: usize,
    /// The bad samples in rows that have good ones.
    pub runs: Vec<BadRun>,
}

impl Correction {
    /// A correction that changes nothing, with dark values of 0 or without dark values.
    pub fn unit(shape: Shape, has_dark: bool) -> Self {
        Self {
            shape,
            dark: has_dark.then(|| vec![0; shape.len()]),
            gain: vec![UNIT_GAIN; shape.len()],
            target: 0,
            bad: 0,
            runs: Vec::new(),
        }
    }

    /// Gains from the references; `target` (0: the mean) and `min_range` ≥ 1 are in 1/256 grey level.
    ///
    /// # Errors
    /// A sentence that says why these references cannot be used.
    pub fn new(
        dark: Option<&Reference>,
        white: &Reference,
        target: u32,
        min_range: u32,
    ) -> Result<Self, String> {
        let shape = white.shape;
        if dark.is_some_and(|dark| dark.shape != shape) {
            return Err(
                "the dark and the white reference have different sizes; take both again".into(),
            );
        }
        let dark = dark.map(|dark| &dark.values);
        if let Some(dark) = dark
            && sum(&white.values) < sum(dark)
        {
            return Err(
                "the white reference is darker than the dark one; emit take-dark while no light \
                 reaches the sensor, and take-white with the lamp on"
                    .into(),
            );
        }
        let range = |at: usize, white: u32| {
            let dark = dark.and_then(|dark| dark.get(at)).copied().unwrap_or(0);
            let range = white.saturating_sub(dark);
            (range >= min_range.max(1)).then_some(range)
        };
        let ranges: Vec<Option<u32>> = (white.values.iter().enumerate())
            .map(|(at, &white)| range(at, white))
            .collect();
        let good = ranges.iter().flatten().count();
        let bad = ranges.len() - good;
        if bad > good {
            return Err(format!(
                "in {bad} of {} samples the white reference is less than min-range={} grey levels above \
                 dark; turn the lamp on, light the whole frame, or lower min-range",
                ranges.len(),
                f64::from(min_range) / 256.0
            ));
        }
        let target = if target == 0 {
            let (sum, good) = (
                ranges.iter().flatten().map(|&r| u64::from(r)).sum::<u64>(),
                good as u64,
            );
            ((2 * sum + good) / (2 * good.max(1))) as u32
        } else {
            target
        };
        let gain = |range: u32| {
            let (numerator, range) = (u64::from(UNIT_GAIN) * u64::from(target), u64::from(range));
            ((2 * numerator + range) / (2 * range)).min(u16::MAX.into()) as u16
        };
        Ok(Self {
            shape,
            dark: dark.map(|dark| {
                let values = dark.iter().zip(&ranges);
                values
                    .map(|(&dark, range)| range.map_or(0, |_| dark))
                    .collect()
            }),
            gain: ranges
                .iter()
                .map(|range| range.map_or(UNIT_GAIN, gain))
                .collect(),
            target,
            bad,
            runs: if bad == 0 {
                Vec::new()
            } else {
                bad_runs(shape, &ranges)
            },
        })
    }
}

fn sum(values: &[u32]) -> u64 {
    values.iter().map(|&value| u64::from(value)).sum()
}

/// Runs of samples without a value, in rows that have one.
fn bad_runs(shape: Shape, ranges: &[Option<u32>]) -> Vec<BadRun> {
    let mut runs = Vec::new();
    for row in 0..shape.rows {
        for component in 0..shape.components {
            let is_good = |x: usize| {
                let at = (row * shape.width + x) * shape.components + component;
                ranges.get(at).is_some_and(Option::is_some)
            };
            let mut left = None;
            let mut x = 0;
            while x < shape.width {
                if is_good(x) {
                    left = Some(x);
                    x += 1;
                    continue;
                }
                let right = (x..shape.width).find(|&x| is_good(x));
                let end = right.unwrap_or(shape.width);
                if left.is_some() || right.is_some() {
                    runs.push(BadRun {
                        component: component as u32,
                        row: row as u32,
                        first: x as u32,
                        count: (end - x) as u32,
                        neighbours: [left, right].map(|x| x.map(|x| x as u32)),
                    });
                }
                x = end;
            }
        }
    }
    runs
}

/// Refuses a white reference of which the share `saturated` of all samples is at the highest level.
///
/// # Errors
/// A sentence that says what to do.
pub fn check_saturation(saturated: f64) -> Result<(), String> {
    if saturated > MOST_SATURATED {
        return Err(format!(
            "{:.1} % of the samples are saturated, and at most {} % may be; lower the exposure, the gain or \
             the light",
            100.0 * saturated,
            100.0 * MOST_SATURATED
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[u32]) -> Reference {
        Reference {
            shape: Shape {
                rows: 1,
                width: values.len(),
                components: 1,
            },
            values: values.to_vec(),
        }
    }

    #[test]
    fn averages_round_half_up() {
        let shape = line(&[0; 4]).shape;
        let sums = [1, 2, 3, 255 * 512];
        // 256/512 = 0.5 and 768/512 = 1.5 round up.
        let average = Reference::average(shape, sums.into_iter(), 512);
        assert_eq!(average.values, [1, 1, 2, 65_280]);
        assert_eq!(average.range()[2], 255.0);
    }

    #[test]
    fn gains_bring_white_to_the_target() {
        let (dark, white) = (
            line(&[256, 0, 512, 0]),
            line(&[25_856, 51_200, 25_600, 2047]),
        );
        let correction = Correction::new(Some(&dark), &white, 0, 2048).unwrap();
        // The ranges are 25600, 51200, 25088; the last is below 2048.
        assert_eq!(correction.target, 33_963);
        assert_eq!(correction.gain, [5434, 2717, 5545, UNIT_GAIN]);
        assert_eq!(correction.dark.as_deref(), Some(&[256, 0, 512, 0][..]));
        assert_eq!(correction.bad, 1);
        let run = BadRun {
            component: 0,
            row: 0,
            first: 3,
            count: 1,
            neighbours: [Some(2), None],
        };
        assert_eq!(correction.runs, [run]);
        // At most 65535/4096.
        let bright = Correction::new(None, &white, 65_535 * 256, 2048).unwrap();
        assert_eq!(bright.gain[0], u16::MAX);
    }

    #[test]
    fn bad_samples_at_edges_and_whole_rows_have_the_neighbours_that_exist() {
        let shape = Shape {
            rows: 3,
            width: 4,
            components: 1,
        };
        let good = 2560;
        let values = vec![0, good, 0, 0, 0, 0, 0, 0, good, good, good, good];
        let white = Reference { shape, values };
        let error = Correction::new(None, &white, 0, 2048).unwrap_err();
        assert!(error.contains("7 of 12"), "{error}");
        let ranges: Vec<_> = white.values.iter().map(|&v| (v > 0).then_some(v)).collect();
        let found: Vec<_> = bad_runs(shape, &ranges)
            .iter()
            .map(|run| (run.row, run.first, run.count, run.neighbours))
            .collect();
        // The middle row has no good sample.
        assert_eq!(
            found,
            [(0, 0, 1, [None, Some(1)]), (0, 2, 2, [Some(1), None])]
        );
    }

    #[test]
    fn references_that_cannot_be_right_are_refused() {
        let (dark, white) = (line(&[9000; 4]), line(&[8000; 4]));
        let error = Correction::new(Some(&dark), &white, 0, 1).unwrap_err();
        assert!(error.contains("darker than the dark"), "{error}");
        let error = Correction::new(None, &line(&[300; 4]), 0, 2048).unwrap_err();
        assert!(
            error.contains("4 of 4") && error.contains("min-range=8"),
            "{error}"
        );
        let error = Correction::new(Some(&line(&[1; 3])), &white, 0, 1).unwrap_err();
        assert!(error.contains("different sizes"), "{error}");
        assert!(check_saturation(0.01).is_ok());
        assert!(check_saturation(0.0101).unwrap_err().contains("saturated"));
    }
}
