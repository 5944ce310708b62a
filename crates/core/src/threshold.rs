//! A threshold that is learned from good frames.
//!
//! # Source
//! docs/semantics.md, "Learned thresholds".

/// Thresholds per grey level.
const STEPS: usize = 4;

/// Pixels of good frames, by the highest threshold that marks them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    /// By quarters of a grey level; the last one also has the pixels above.
    counts: Vec<u64>,
    judged: u64,
}

impl Reached {
    /// The index of the last count for samples of `depth` bits.
    pub fn last(depth: u32) -> usize {
        STEPS * ((1 << depth) - 1)
    }

    /// Adds the counts of a frame, and behind them the number of its judged pixels. Frames of another depth begin anew.
    pub fn add(&mut self, frame: &[u32]) {
        let Some((&judged, counts)) = frame.split_last() else {
            return;
        };
        if counts.len() != self.counts.len() {
            *self = Self {
                counts: vec![0; counts.len()],
                judged: 0,
            };
        }
        for (sum, &count) in self.counts.iter_mut().zip(counts) {
            *sum += u64::from(count);
        }
        self.judged += u64::from(judged);
    }

    /// Judged pixels of all frames.
    pub fn judged(&self) -> u64 {
        self.judged
    }

    /// The lowest multiple of a quarter grey level that at most `rate` of a million judged pixels reach, plus `margin`;
    /// at most the highest grey level. `None` if no pixel was judged.
    pub fn threshold(&self, rate: f64, margin: f64) -> Option<f64> {
        if self.judged == 0 {
            return None;
        }
        let allowed = rate * self.judged as f64 / 1e6;
        // Pixels that reach a threshold are those of its count and of all above.
        let mut reaching = 0;
        let above = self.counts.iter().rposition(|&count| {
            reaching += count;
            reaching as f64 > allowed
        });
        let lowest = above.map_or(0, |above| above + 1);
        let highest = (self.counts.len() - 1) / STEPS;
        Some((lowest as f64 / STEPS as f64 + margin).min(highest as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::Reached;

    /// 8-bit counts with some pixels at some thresholds.
    fn reached(pixels: &[(usize, u32)], judged: u32) -> Reached {
        let mut frame = vec![0; Reached::last(8) + 2];
        for &(at, count) in pixels {
            frame[at] = count;
        }
        frame[Reached::last(8) + 1] = judged;
        let mut reached = Reached::default();
        reached.add(&frame);
        reached
    }

    #[test]
    fn threshold_is_the_lowest_that_the_rate_allows() {
        let good = reached(&[(0, 999_990), (40, 7), (44, 3)], 1_000_000);
        assert_eq!(good.threshold(0.0, 0.0), Some(11.25));
        assert_eq!(good.threshold(2.9, 0.0), Some(11.25));
        assert_eq!(good.threshold(3.0, 0.0), Some(10.25));
        assert_eq!(good.threshold(10.0, 0.5), Some(0.75));
        assert_eq!(good.threshold(1e6, 0.0), Some(0.0));
    }

    #[test]
    fn threshold_of_several_frames_counts_all_their_pixels() {
        let mut both = reached(&[(80, 1)], 100);
        assert_eq!(both.threshold(5000.0, 0.0), Some(20.25));
        both.add(&{
            let mut clean = vec![0; Reached::last(8) + 2];
            clean[Reached::last(8) + 1] = 100;
            clean
        });
        assert_eq!(both.judged(), 200);
        assert_eq!(both.threshold(5000.0, 0.0), Some(0.0));
    }

    #[test]
    fn threshold_stays_a_grey_level_and_needs_judged_pixels() {
        let full = reached(&[(Reached::last(8), 9)], 9);
        assert_eq!(full.threshold(0.0, 3.0), Some(255.0));
        assert_eq!(reached(&[], 0).threshold(1.0, 0.5), None);
    }
}
