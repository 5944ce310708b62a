//! Reference of `clflatfield`: averages, gains, bad samples, and the corrected frame.
//!
//! Source: docs/semantics.md, "Flat field".

use crate::plane::Samples;

/// The references of a frame: a value per sample, row-major, for each component.
#[derive(Clone, Debug)]
pub struct Field {
    /// Dark values, 1/256 grey level; zeros without a dark reference.
    pub dark: Vec<Vec<u32>>,
    /// White values, 1/256 grey level.
    pub white: Vec<Vec<u32>>,
    /// The values are those of a row, which all rows share.
    pub line: bool,
    /// Level after the correction, 1/256 grey level; 0 = the mean.
    pub target: u32,
    /// Samples with less between dark and white are bad, 1/256 grey level.
    pub min_range: u32,
    /// The highest level.
    pub most: u32,
}

/// The average of a component over frames, 1/256 grey level, rounded half up; with `line` over all rows too.
pub fn average(frames: &[Samples], line: bool) -> Vec<u32> {
    let (width, height) = (frames[0].width, frames[0].height);
    let rows: Vec<Vec<usize>> = if line {
        vec![(0..height).collect()]
    } else {
        (0..height).map(|y| vec![y]).collect()
    };
    let mut averages = Vec::new();
    for rows in rows {
        for x in 0..width {
            let mut sum = 0_u64;
            let mut count = 0_u64;
            for frame in frames {
                for &y in &rows {
                    sum += u64::from(frame.get(x, y));
                    count += 1;
                }
            }
            averages.push(((256 * sum + count / 2) / count) as u32);
        }
    }
    averages
}

impl Field {
    /// `W - D` of a sample; `None` if the sample is bad.
    fn range(&self, component: usize, at: usize) -> Option<u32> {
        let (white, dark) = (self.white[component][at], self.dark[component][at]);
        (white >= dark + self.min_range.max(1)).then(|| white - dark)
    }

    fn ranges(&self) -> impl Iterator<Item = Option<u32>> {
        (0..self.white.len())
            .flat_map(move |c| (0..self.white[c].len()).map(move |at| self.range(c, at)))
    }

    /// Number of bad samples.
    pub fn bad(&self) -> usize {
        self.ranges().filter(Option::is_none).count()
    }

    /// The level of a white surface after the correction, 1/256 grey level.
    pub fn level(&self) -> u64 {
        if self.target > 0 {
            return self.target.into();
        }
        let good: Vec<u64> = self.ranges().flatten().map(u64::from).collect();
        let count = good.len() as u64;
        (good.iter().sum::<u64>() + count / 2) / count
    }

    /// The corrected samples of a component, row-major.
    pub fn correct(&self, component: usize, source: Samples) -> Vec<u32> {
        let level = self.level();
        let mut corrected = Vec::new();
        for y in 0..source.height {
            let at = |x: usize| if self.line { x } else { y * source.width + x };
            let row: Vec<Option<u32>> = (0..source.width)
                .map(|x| {
                    let range = u64::from(self.range(component, at(x))?);
                    let gain = ((2 * 4096 * level + range) / (2 * range)).min(65_535);
                    let dark = u64::from(self.dark[component][at(x)]);
                    let light = (256 * u64::from(source.get(x, y))).saturating_sub(dark);
                    Some(((light * gain + (1 << 19)) >> 20).min(self.most.into()) as u32)
                })
                .collect();
            for x in 0..source.width {
                let left = row[..x].iter().rev().find_map(|&value| value);
                let right = row[x..].iter().find_map(|&value| value);
                corrected.push(match (row[x], left, right) {
                    (Some(value), ..) => value,
                    (None, Some(left), Some(right)) => (left + right + 1) >> 1,
                    (None, Some(only), None) | (None, None, Some(only)) => only,
                    (None, None, None) => source.get(x, y),
                });
            }
        }
        corrected
    }
}
