//! The trained picture.

/// Most frames of a training: the sums of a sample and of its squares fit their integers.
pub const MOST_FRAMES: u32 = 4096;

/// Side of the blocks whose samples are summed, px.
const BLOCK_SIDE: usize = 4;
/// The highest sum of a block, a bit above that of 16 samples of 8 bits.
const MOST_BLOCK: u32 = 4095;

/// Mean and standard deviation of each sample over the frames of a training, 1/256 grey level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    width: usize,
    height: usize,
    bits: u32,
    frames: u32,
    mean: Vec<u32>,
    deviation: Vec<u32>,
}

impl Model {
    /// The picture with these samples, row by row.
    ///
    /// # Errors
    /// A sentence, if the sizes contradict each other, or samples of `bits` bits have no such mean or deviation.
    pub fn new(
        [width, height]: [usize; 2],
        bits: u32,
        frames: u32,
        mean: Vec<u32>,
        deviation: Vec<u32>,
    ) -> Result<Self, String> {
        let pixels = width.checked_mul(height).filter(|&pixels| pixels > 0);
        if pixels != Some(mean.len()) || pixels != Some(deviation.len()) {
            return Err(format!(
                "the arrays have {} and {} samples, which is not {width}x{height}",
                mean.len(),
                deviation.len()
            ));
        }
        if bits != 8 && bits != 16 {
            return Err(format!("samples of {bits} bits are neither of 8 nor of 16"));
        }
        if frames == 0 {
            return Err("it was made from no frame".into());
        }
        let highest = 256 * ((1_u32 << bits) - 1);
        if let Some(mean) = mean.iter().find(|&&mean| mean > highest) {
            return Err(format!(
                "a mean of {mean} is above {highest}, the largest one of {bits}-bit samples"
            ));
        }
        // Half of the samples are the lowest one then, half the highest.
        if let Some(deviation) = deviation.iter().find(|&&v| v > highest / 2) {
            return Err(format!(
                "a deviation of {deviation} is above {}, the largest one of {bits}-bit samples",
                highest / 2
            ));
        }
        Ok(Self {
            width,
            height,
            bits,
            frames,
            mean,
            deviation,
        })
    }

    /// The picture of `frames` frames, from the sums of each sample and of its square.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub fn from_sums(
        size: [usize; 2],
        bits: u32,
        frames: u32,
        sums: &[u32],
        squares: &[u64],
    ) -> Result<Self, String> {
        let n = u64::from(frames.max(1));
        let mean = |&sum: &u32| ((512 * u64::from(sum) + n) / (2 * n)) as u32;
        let deviation = |(&sum, &square): (&u32, &u64)| {
            // The sums are exact, so the difference is not negative; with up to 4096 frames of 16 bits it fits.
            let spread = (n * square).saturating_sub(u64::from(sum) * u64::from(sum));
            (root_256(spread) / n) as u32
        };
        Self::new(
            size,
            bits,
            frames,
            sums.iter().map(mean).collect(),
            sums.iter().zip(squares).map(deviation).collect(),
        )
    }

    /// Width and height, px.
    pub fn size(&self) -> [usize; 2] {
        [self.width, self.height]
    }

    /// Bits of the format's samples, 8 or 16.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Number of frames of the training.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Mean of each sample, 1/256 grey level.
    pub fn mean(&self) -> &[u32] {
        &self.mean
    }

    /// Standard deviation of each sample, 1/256 grey level.
    pub fn deviation(&self) -> &[u32] {
        &self.deviation
    }

    /// Sums of the mean over blocks of 4x4 samples, in levels of 8 bits, of samples with `depth` significant bits. Samples
    /// beside the last whole block are left out.
    pub fn block_sums(&self, depth: u32) -> Vec<u16> {
        let [across, down] = self.size().map(|n| n / BLOCK_SIDE);
        let blocks = (0..down).flat_map(|j| (0..across).map(move |i| [i, j]));
        let sum = |[i, j]: [usize; 2]| {
            let rows = (BLOCK_SIDE * j..).take(BLOCK_SIDE);
            let at = |y| y * self.width + BLOCK_SIDE * i;
            let samples = rows.flat_map(|y| &self.mean[at(y)..at(y) + BLOCK_SIDE]);
            let sum: u32 = samples.map(|mean| (mean + 128) >> 8).sum();
            (sum >> depth.saturating_sub(8)).min(MOST_BLOCK) as u16
        };
        blocks.map(sum).collect()
    }

    /// Why frames of this size and these samples cannot be compared with the picture.
    ///
    /// # Errors
    /// A sentence with both.
    pub fn check_fits(&self, [width, height]: [usize; 2], bits: u32) -> Result<(), String> {
        if self.size() == [width, height] && self.bits == bits {
            return Ok(());
        }
        Err(format!(
            "the model is of {}x{} frames with {}-bit samples, but frames are {width}x{height} with {bits}-bit samples",
            self.width, self.height, self.bits
        ))
    }
}

/// `⌊√(65536·n)⌋` for `n` under 2^57.
fn root_256(n: u64) -> u64 {
    let square = u128::from(n) << 16;
    // The estimate is wrong by 1 at most.
    let mut root = ((n as f64).sqrt() * 256.0) as u64;
    while u128::from(root) * u128::from(root) > square {
        root -= 1;
    }
    while u128::from(root + 1) * u128::from(root + 1) <= square {
        root += 1;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_exact_around_squares() {
        for k in [0_u64, 1, 2, 3, 255, 65_535, 1 << 20, (1 << 28) - 1] {
            for n in [(k * k).saturating_sub(1), k * k, k * k + 1] {
                assert_eq!(
                    u128::from(root_256(n)),
                    (u128::from(n) << 16).isqrt(),
                    "{n}"
                );
            }
        }
    }

    #[test]
    fn model_from_sums_rounds_the_mean_half_up_and_the_deviation_down() {
        // Samples 0 and 1: mean 0.5, deviation 0.5. Samples 3, 3, 4 and 512 frames of 65535.
        let model = Model::from_sums([1, 1], 8, 2, &[1], &[1]).expect("a model");
        assert_eq!((model.mean(), model.deviation()), (&[128][..], &[128][..]));
        let model = Model::from_sums([1, 1], 8, 3, &[10], &[34]).expect("a model");
        // 853.33 and √(2/9)·256 = 120.67
        assert_eq!((model.mean(), model.deviation()), (&[853][..], &[120][..]));
        let n = u64::from(MOST_FRAMES);
        let sum = (n / 2 * 65_535) as u32;
        let model = Model::from_sums([1, 1], 16, MOST_FRAMES, &[sum], &[n / 2 * 65_535 * 65_535]);
        let model = model.expect("a model");
        assert_eq!(model.mean(), [128 * 65_535]);
        assert_eq!(model.deviation(), [128 * 65_535]);
    }

    #[test]
    fn block_sums_are_those_of_whole_blocks_in_levels_of_8_bits() {
        let mean: Vec<u32> = (0..9 * 7).map(|i| 256 * i + 127).collect();
        let model = Model::new([9, 7], 8, 1, mean, vec![0; 63]).expect("a model");
        // The 16 samples from 0 on, and from 4 on; their fractions are rounded away.
        assert_eq!(model.block_sums(8), [240, 304]);
        let model = Model::new([4, 4], 16, 1, vec![256 * 65_535; 16], vec![0; 16]);
        let model = model.expect("a model");
        assert_eq!(model.block_sums(16), [4095]);
        assert_eq!(model.block_sums(12), [4095]);
        let model = Model::new([4, 4], 16, 1, vec![256 * 1000; 16], vec![0; 16]);
        assert_eq!(model.expect("a model").block_sums(12), [1000]);
    }

    #[test]
    fn model_that_contradicts_itself_is_refused() {
        for (size, bits, frames, mean, word) in [
            ([2, 1], 8, 1, vec![0], "2x1"),
            ([1, 1], 12, 1, vec![0], "12 bits"),
            ([1, 1], 8, 0, vec![0], "no frame"),
            ([1, 1], 8, 1, vec![65_281], "65281"),
            ([0, 1], 8, 1, vec![], "0x1"),
        ] {
            let deviation = vec![0; mean.len()];
            let why = Model::new(size, bits, frames, mean, deviation).expect_err(word);
            assert!(why.contains(word), "{why}");
        }
        // The bits of an infinite and of an undefined number.
        for deviation in [0x7f80_0000, 0x7fc0_0000, 32_641] {
            let why = Model::new([1, 1], 8, 1, vec![0], vec![deviation]).expect_err("too large");
            assert!(why.contains("above 32640"), "{why}");
        }
    }
}
