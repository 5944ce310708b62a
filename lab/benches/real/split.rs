//! Frames that teach, clean frames and defective frames that test, and what is found at equal numbers of failed frames.

use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

/// Numbers of failed clean frames at which the found ones are told.
pub const FAILED: [usize; 5] = [0, 1, 2, 5, 10];
/// The fabric of which the defective strips were taken at several speeds of the line, and the difference of the pitch
/// along y up to which a strip shows the speed of the learning frames.
const MIXED_SPEEDS: u32 = 2;
const SPEED_TOLERANCE: f64 = 0.03;

/// What a method measures of a frame: by channel the lowest limit at which nothing is marked.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub fabric: u32,
    pub is_clean: bool,
    /// Pitch along y, px; `None` without an estimate.
    pub pitch_y: Option<f64>,
    /// In the whole frame; empty if the method cannot judge the frame.
    pub peaks: Vec<f64>,
    /// The mean over tiles of the peak in each tile; zeros for a method without tiles.
    pub typical: Vec<f64>,
    /// In the box of each defect.
    pub in_boxes: Vec<Vec<f64>>,
}

/// The limits of a fabric are `mean + margin · (most − mean)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    pub mean: Vec<f64>,
    pub most: Vec<f64>,
}

impl Learned {
    fn from(frames: &[&Sample]) -> Self {
        let channels = frames.first().map_or(0, |sample| sample.peaks.len());
        let mean =
            |c: usize| frames.iter().map(|s| s.typical[c]).sum::<f64>() / frames.len() as f64;
        let most = |c: usize| frames.iter().map(|s| s.peaks[c]).fold(0.0, f64::max);
        Self {
            mean: (0..channels).map(mean).collect(),
            most: (0..channels).map(most).collect(),
        }
    }

    /// The margin from which on nothing of these values is marked.
    fn margin_of(&self, values: &[f64]) -> f64 {
        let of = |((value, mean), most): ((&f64, &f64), &f64)| (value - mean) / (most - mean);
        let each = values.iter().zip(&self.mean).zip(&self.most).map(of);
        each.fold(f64::NEG_INFINITY, f64::max)
    }

    /// The limits at a margin.
    pub fn limits(&self, margin: f64) -> Vec<f64> {
        let of = |(mean, most): (&f64, &f64)| mean + margin * (most - mean);
        self.mean.iter().zip(&self.most).map(of).collect()
    }
}

/// A tested frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Tested {
    /// Index of the sample.
    pub at: usize,
    /// The margin from which on the frame passes, or its defects are missed; `None`: the frame was not judged.
    pub margin: Option<f64>,
}

/// A split of the frames into those that teach and those that test.
#[derive(Clone, Debug, Default)]
pub struct Split {
    pub clean: Vec<Tested>,
    pub defective: Vec<Tested>,
    /// By fabric.
    pub learned: Vec<(u32, Learned)>,
}

impl Split {
    /// Of each fabric `learn` clean frames teach, the first ones in the order of the samples, or random ones.
    pub fn new(
        samples: &[Sample],
        fabrics: &[u32],
        learn: usize,
        rng: Option<&mut ChaCha8Rng>,
    ) -> Self {
        let mut split = Self::default();
        let mut rng = rng;
        for &fabric in fabrics {
            let of = |is_clean: bool| {
                let is_one = move |s: &Sample| s.fabric == fabric && s.is_clean == is_clean;
                (0..samples.len())
                    .filter(|&at| is_one(&samples[at]))
                    .collect::<Vec<_>>()
            };
            let mut clean = of(true);
            if let Some(rng) = &mut rng {
                clean.shuffle(*rng);
            }
            // Frames that cannot be judged do not teach.
            let taught: Vec<usize> = (clean.iter().copied())
                .filter(|&at| !samples[at].peaks.is_empty())
                .take(learn)
                .collect();
            clean.retain(|at| !taught.contains(at));
            let frames: Vec<&Sample> = taught.iter().map(|&at| &samples[at]).collect();
            let learned = Learned::from(&frames);
            let pitch = median(frames.iter().filter_map(|sample| sample.pitch_y).collect());
            let has_speed = |at: &usize| {
                let is_near = |(y, pitch): (f64, f64)| (y - pitch).abs() <= SPEED_TOLERANCE * pitch;
                fabric != MIXED_SPEEDS || samples[*at].pitch_y.zip(pitch).is_some_and(is_near)
            };
            let is_judged = |at: &usize| !samples[*at].peaks.is_empty();
            split.clean.extend(clean.iter().map(|&at| Tested {
                at,
                margin: is_judged(&at).then(|| learned.margin_of(&samples[at].peaks)),
            }));
            let defective = of(false);
            let with_defects = defective.iter().filter(|at| has_speed(at));
            split.defective.extend(with_defects.map(|&at| {
                let boxes = samples[at].in_boxes.iter();
                let margins = boxes.map(|values| learned.margin_of(values));
                Tested {
                    at,
                    margin: is_judged(&at).then(|| margins.fold(f64::NEG_INFINITY, f64::max)),
                }
            }));
            split.learned.push((fabric, learned));
        }
        split
    }

    /// The smallest margin at which at most `failed` clean frames fail.
    pub fn margin_at(&self, failed: usize) -> f64 {
        let mut margins: Vec<f64> = self
            .clean
            .iter()
            .filter_map(|tested| tested.margin)
            .collect();
        margins.sort_by(|a, b| b.total_cmp(a));
        margins.get(failed).copied().unwrap_or(f64::NEG_INFINITY)
    }

    /// Number of clean frames that fail at a margin, and of defective frames that are found.
    pub fn at(&self, margin: f64) -> [usize; 2] {
        let above = |tested: &&Tested| tested.margin.is_some_and(|needed| needed > margin);
        [&self.clean, &self.defective].map(|frames| frames.iter().filter(above).count())
    }

    /// Share of the defective frames that are found when at most `failed` clean frames fail.
    pub fn found_at(&self, failed: usize) -> f64 {
        let [_, found] = self.at(self.margin_at(failed));
        found as f64 / self.defective.len().max(1) as f64
    }

    /// Clean and defective frames without a verdict.
    pub fn unjudged(&self) -> [usize; 2] {
        let none = |tested: &&Tested| tested.margin.is_none();
        [&self.clean, &self.defective].map(|frames| frames.iter().filter(none).count())
    }
}

/// The mean share of found frames over `splits` random splits, for each of [`FAILED`].
pub fn mean_found(
    samples: &[Sample],
    fabrics: &[u32],
    learn: usize,
    splits: u64,
    seed: u64,
) -> [f64; FAILED.len()] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut sums = [0.0; FAILED.len()];
    for _ in 0..splits {
        let split = Split::new(samples, fabrics, learn, Some(&mut rng));
        for (sum, failed) in sums.iter_mut().zip(FAILED) {
            *sum += split.found_at(failed);
        }
    }
    sums.map(|sum| sum / splits.max(1) as f64)
}

/// The mean shares of clean frames that fail and of defective frames that are found at a margin.
pub fn mean_at(
    samples: &[Sample],
    fabrics: &[u32],
    learn: usize,
    margin: f64,
    splits: u64,
    seed: u64,
) -> [f64; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut sums = [0.0; 2];
    for _ in 0..splits {
        let split = Split::new(samples, fabrics, learn, Some(&mut rng));
        let [failed, found] = split.at(margin);
        sums[0] += failed as f64 / split.clean.len().max(1) as f64;
        sums[1] += found as f64 / split.defective.len().max(1) as f64;
    }
    sums.map(|sum| sum / splits.max(1) as f64)
}

/// The median, of an even number the mean of the two in the middle.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    let is_even = values.len().is_multiple_of(2);
    Some(if is_even {
        (values[middle - 1] + upper) / 2.0
    } else {
        upper
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(fabric: u32, peak: f64) -> Sample {
        Sample {
            fabric,
            is_clean: true,
            pitch_y: Some(7.0),
            peaks: vec![peak, 1.0],
            typical: vec![2.0, 0.0],
            in_boxes: Vec::new(),
        }
    }

    fn defective(fabric: u32, pitch_y: f64, in_box: f64) -> Sample {
        Sample {
            is_clean: false,
            pitch_y: Some(pitch_y),
            in_boxes: vec![vec![0.0; 2], vec![in_box, 0.5]],
            ..clean(fabric, 99.0)
        }
    }

    #[test]
    fn limits_lie_above_the_mean_of_the_tiles() {
        let samples = [clean(1, 4.0), clean(1, 6.0)];
        let learned = Learned::from(&[&samples[0], &samples[1]]);
        assert_eq!(learned.limits(1.5), [2.0 + 1.5 * 4.0, 1.5]);
        assert_eq!(learned.margin_of(&[8.0, 1.0]), 1.5);
        // The channel that needs most decides.
        assert_eq!(learned.margin_of(&[8.0, 3.0]), 3.0);
    }

    #[test]
    fn found_frames_are_counted_at_equal_failed_frames() {
        let mut samples = vec![clean(1, 6.0)];
        samples.extend([6.8, 6.4, 7.2].map(|peak| clean(1, peak)));
        samples.extend([6.3, 6.9, 10.0].map(|peak| defective(1, 20.0, peak)));
        let split = Split::new(&samples, &[1], 1, None);
        assert_eq!((split.clean.len(), split.defective.len()), (3, 3));
        assert!((split.margin_at(0) - 1.3).abs() < 1e-9);
        assert_eq!(split.at(split.margin_at(0)), [0, 1]);
        assert_eq!(split.at(split.margin_at(1)), [1, 2]);
        assert_eq!(split.at(split.margin_at(9)), [3, 3]);
        assert_eq!(split.found_at(1), 2.0 / 3.0);
        // A limit just below a peak lets the frame fail.
        assert_eq!(split.at(1.299), [1, 1]);
    }

    #[test]
    fn strips_of_another_speed_and_other_fabrics_do_not_test() {
        let samples = [
            clean(2, 6.0),
            clean(2, 5.0),
            clean(3, 5.0),
            defective(2, 7.2, 9.0),
            defective(2, 7.3, 9.0),
        ];
        let split = Split::new(&samples, &[2], 1, None);
        assert_eq!(
            split
                .defective
                .iter()
                .map(|tested| tested.at)
                .collect::<Vec<_>>(),
            [3]
        );
        assert_eq!(
            split
                .clean
                .iter()
                .map(|tested| tested.at)
                .collect::<Vec<_>>(),
            [1]
        );
    }

    #[test]
    fn frames_without_a_verdict_neither_teach_nor_pass_nor_are_found() {
        let blank = |sample: Sample| Sample {
            peaks: Vec::new(),
            ..sample
        };
        let samples = [
            blank(clean(1, 0.0)),
            clean(1, 6.0),
            blank(defective(1, 7.0, 9.0)),
            defective(1, 7.0, 9.0),
        ];
        let split = Split::new(&samples, &[1], 1, None);
        assert_eq!(split.learned[0].1.most, [6.0, 1.0]);
        assert_eq!(split.unjudged(), [1, 1]);
        assert_eq!(split.at(1.0), [0, 1]);
    }

    #[test]
    fn random_splits_repeat_with_their_seed() {
        let samples: Vec<Sample> = (0..12u32)
            .map(|i| clean(1, f64::from(5 + i * 7 % 12)))
            .chain((0..9).map(|i| defective(1, 7.0, f64::from(6 + i))))
            .collect();
        let found = |seed| mean_found(&samples, &[1], 4, 5, seed);
        assert_eq!(found(1), found(1));
        assert_ne!(found(1), found(2));
        assert!(found(1).windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(
            mean_at(&samples, &[1], 4, f64::NEG_INFINITY, 3, 1),
            [1.0, 1.0]
        );
    }

    #[test]
    fn median_of_even_numbers_lies_between_the_middle_ones() {
        assert_eq!(median(vec![4.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}
